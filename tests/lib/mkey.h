/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creates indirect memory keys with raw DEVX commands, over plain verbs. The tests
 * build the input of CREATE_MKEY at literal offsets, which are those of mlx5_ifc.h.
 */
#ifndef MKEY_H
#define MKEY_H

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include "access.h"

#define PAGES	   16u
#define LOCAL_READ (1 << 30) /* right to read locally; a region of ibv_reg_mr() always has it */
#define MAX_PIECES 8
#define TAG	   0x5au

/* Input of CREATE_MKEY. */
struct box {
	uint32_t in[(0x110 + 16 * MAX_PIECES) / 4];
	unsigned n;
};

struct key {
	struct mlx5dv_devx_obj *obj;
	uint32_t key;
	uint64_t start;
};

static uint32_t last_status; /* status of the last create() */

static inline void keys_open(struct rig *r)
{
	unsigned i;

	rig_open(r, PAGES);
	for (i = 0; i < PAGES * PAGE; i++)
		r->v.mem[i] = (uint8_t)(i * 31 + i / 251);
}

static inline uint32_t pdn_of(struct ibv_pd *pd)
{
	struct mlx5dv_pd dvpd;
	struct mlx5dv_obj obj = { .pd = { .in = pd, .out = &dvpd } };

	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), 0);
	return dvpd.pdn;
}

static inline void set(uint32_t *in, uint32_t off, uint32_t mask, uint32_t v)
{
	in[off / 4] = htobe32((be32toh(in[off / 4]) & ~mask) | v);
}

static inline void set64(uint32_t *in, uint32_t off, uint64_t v)
{
	set(in, off, 0xffffffff, (uint32_t)(v >> 32));
	set(in, off + 4, 0xffffffff, (uint32_t)v);
}

static inline struct box box_of(const struct rig *r, uint64_t start, uint64_t len,
				uint32_t log_size, int rights)
{
	struct box b = { .n = 0 };

	set(b.in, 0x00, 0, 0x200u << 16);
	set(b.in, 0x10, 0,
	    3u << 8 | !!(rights & LOCAL_READ) << 10 | !!(rights & IBV_ACCESS_LOCAL_WRITE) << 11 |
		    !!(rights & IBV_ACCESS_REMOTE_READ) << 12 |
		    !!(rights & IBV_ACCESS_REMOTE_WRITE) << 13 |
		    !!(rights & IBV_ACCESS_REMOTE_ATOMIC) << 14);
	set(b.in, 0x14, 0, 0xffffff00u | TAG);
	set(b.in, 0x1c, 0, pdn_of(r->v.pd));
	set64(b.in, 0x20, start);
	set64(b.in, 0x28, len);
	set(b.in, 0x48, 0, log_size);
	return b;
}

static inline void piece(struct box *b, const void *addr, uint32_t lkey)
{
	uint32_t at = 0x110 + 16 * b->n++;

	cr_assert_leq(b->n, MAX_PIECES);
	set(b->in, at + 4, 0xffffffff, lkey);
	set64(b->in, at + 8, (uintptr_t)addr);
	set(b->in, 0x44, 0xffffffff, b->n);
	set(b->in, 0x60, 0xffffffff, b->n);
}

static inline struct key create(const struct rig *r, const struct box *b)
{
	uint32_t out[4] = { 0 };
	struct key k = {
		mlx5dv_devx_obj_create(r->v.ctx, b->in, 0x110 + 16 * b->n, out, sizeof(out)), 0, 0
	};

	last_status = be32toh(out[0]) >> 24;
	k.key = be32toh(out[2]) << 8 | (be32toh(b->in[0x14 / 4]) & 0xff);
	k.start = (uint64_t)be32toh(b->in[0x20 / 4]) << 32 | be32toh(b->in[0x24 / 4]);
	return k;
}

static inline struct key made(const struct rig *r, const struct box *b)
{
	struct key k = create(r, b);

	cr_assert(k.obj, "status %#x", last_status);
	return k;
}

static inline void gone(struct key *k)
{
	cr_assert_eq(mlx5dv_devx_obj_destroy(k->obj), 0);
}

#endif
