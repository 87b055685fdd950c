/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The objects of raw Ethernet, created with raw DEVX commands on the NIC of rawnic.h: one
 * of each kind, and valid inputs of the commands, which tests change. The fields are at
 * literal offsets.
 */
#ifndef RAWNIC_ETH_H
#define RAWNIC_ETH_H

#include <dlfcn.h>

#include "rawnic.h"

/* Status of firmware commands */
enum {
	BAD_PARAM = 0x3,
	BAD_RES = 0x5,
	NO_RES = 0xf,
	BAD_QP_STATE = 0x10,
	BAD_INP_LEN = 0x50,
	BAD_OUTP_LEN = 0x51,
};
/* States of SQs and RQs */
enum { RST = 0, RDY = 1, ERR = 3 };

/* Offsets in the umem: the rings of SQ and RQ; that of the CQ is at 8192. */
#define SQ_AT 0u
#define RQ_AT 4096u

struct eth {
	struct nic n;
	struct mlx5dv_devx_obj *cq, *td, *tis, *sq, *counters, *rq, *rqt, *tir;
	uint32_t cqn, tdn, tisn, sqn, counter_set, rqn, rqtn, tirn;
};

/* The number of objects of the NIC */
static inline uint32_t eth_objects_live(void)
{
	uint32_t (*fn)(void);

	*(void **)&fn = dlsym(RTLD_DEFAULT, "sn_objects_live");
	cr_assert(fn);
	return fn();
}

/* Replaces the bits of a field. */
static inline void set(uint32_t *box, uint32_t off, uint32_t mask, uint32_t v)
{
	box[off / 4] = htobe32((be32toh(box[off / 4]) & ~mask) | (v & mask));
}

/* Creates an object and returns its 32-bit number in *number, unless that is NULL. */
static inline struct mlx5dv_devx_obj *make_wide(const struct nic *n, const uint32_t *in, size_t len,
						uint32_t *number)
{
	uint32_t out[4] = { 0 };
	struct mlx5dv_devx_obj *o = mlx5dv_devx_obj_create(n->ctx, in, len, out, sizeof(out));

	cr_assert(o, "command %#x: status %#x syndrome %#x", get(in, 0) >> 16, get(out, 0) >> 24,
		  get(out, 4));
	if (number)
		*number = get(out, 8);
	return o;
}

static inline struct mlx5dv_devx_obj *make(const struct nic *n, const uint32_t *in, size_t len,
					   uint32_t *number)
{
	struct mlx5dv_devx_obj *o = make_wide(n, in, len, number);

	if (number)
		*number &= 0xffffff;
	return o;
}

/* Expects that a command that creates an object fails. Returns the syndrome. */
static inline uint32_t refuse(const struct nic *n, const uint32_t *in, size_t len, uint32_t status)
{
	uint32_t out[4] = { 0 };
	struct mlx5dv_devx_obj *o = mlx5dv_devx_obj_create(n->ctx, in, len, out, sizeof(out));

	cr_expect(!o && errno == EREMOTEIO, "command %#x was accepted", get(in, 0) >> 16);
	cr_expect_eq(get(out, 0) >> 24, status, "command %#x: status %#x, not %#x, syndrome %#x",
		     get(in, 0) >> 16, get(out, 0) >> 24, status, get(out, 4));
	if (o)
		mlx5dv_devx_obj_destroy(o);
	return get(out, 4);
}

static inline struct mlx5dv_devx_obj *counter_set(const struct nic *n, uint32_t *id)
{
	uint32_t in[4] = { 0 };

	put(in, 0, 0x771u << 16);
	return make(n, in, sizeof(in), id);
}

static inline void tis_box(const struct eth *e, uint32_t *in)
{
	memset(in, 0, 0x110);
	put(in, 0x00, 0x912u << 16);
	put(in, 0x44, e->tdn);
}

/* Writes the work queue of an SQ or RQ of 16 WQEs. */
static inline void wq_box(const struct eth *e, uint32_t *in, uint32_t log_stride, uint32_t at,
			  uint32_t dbr)
{
	put(in, 0x50, 1u << 28);
	put(in, 0x58, e->n.pdn);
	put(in, 0x64, dbr);
	put(in, 0x70, log_stride << 16 | 4);
	put(in, 0x74, 3u << 30);
	put(in, 0x78, e->n.umem->umem_id);
	put(in, 0x7c, e->n.umem->umem_id);
	put(in, 0x84, at);
}

static inline void sq_box(const struct eth *e, uint32_t *in)
{
	memset(in, 0, 0x110);
	put(in, 0x00, 0x904u << 16);
	put(in, 0x20, 1u << 28); /* flush_in_error_en */
	put(in, 0x24, 0x1234);
	put(in, 0x28, e->cqn);
	put(in, 0x40, 1u << 16);
	put(in, 0x4c, e->tisn);
	wq_box(e, in, 6, SQ_AT, DBR_AT);
	put(in, 0x5c, e->n.uar->page_id);
}

static inline void rq_box(const struct eth *e, uint32_t *in)
{
	memset(in, 0, 0x110);
	put(in, 0x00, 0x908u << 16);
	put(in, 0x20, 1u << 28 | 1u << 18); /* vsd, flush_in_error_en */
	put(in, 0x24, 0x4321);
	put(in, 0x28, e->cqn);
	put(in, 0x2c, e->counter_set << 24);
	wq_box(e, in, 4, RQ_AT, DBR_AT + 128);
}

static inline void rmp_box(const struct eth *e, uint32_t *in)
{
	memset(in, 0, 0x110);
	put(in, 0x00, 0x90cu << 16);
	put(in, 0x20, 1u << 20);
	put(in, 0x50, 1u << 28);
	put(in, 0x58, e->n.pdn);
	put(in, 0x64, DBR_AT + 192);
	put(in, 0x70, 5u << 16 | 4);
	put(in, 0x78, e->n.umem->umem_id);
	put(in, 0x7c, e->n.umem->umem_id);
	put(in, 0x84, RQ_AT + 1024);
}

/* A table of up to 512 RQs, now with n times the same RQ. The box has 0x110 + 4 * n bytes. */
static inline void rqt_box(const struct eth *e, uint32_t *in, uint32_t n)
{
	uint32_t i;

	memset(in, 0, 0x110 + 4 * n);
	put(in, 0x00, 0x916u << 16);
	put(in, 0x34, 512);
	put(in, 0x38, n);
	for (i = 0; i < n; i++)
		put(in, 0x110 + 4 * i, e->rqn);
}

/* A TIR that selects an RQ by the Toeplitz hash of the IPv4 addresses. */
static inline void tir_box(const struct eth *e, uint32_t *in)
{
	memset(in, 0, 0x110);
	put(in, 0x00, 0x900u << 16);
	put(in, 0x24, 1u << 28);
	put(in, 0x40, e->rqtn);
	put(in, 0x44, 2u << 28 | e->tdn);
	memset((uint8_t *)in + 0x48, 0x5a, 40);
	put(in, 0x70, 3);
}

/* Creates the objects that SQs and RQs need, and an SQ with this ts_format. */
static inline void eth_open_until_sq(struct eth *e, uint32_t ts_format)
{
	uint32_t in[0x110 / 4];

	memset(e, 0, sizeof(*e));
	nic_open(&e->n);
	cq_box(&e->n, in);
	e->cq = make(&e->n, in, 0x110, &e->cqn);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x816u << 16);
	e->td = make(&e->n, in, 16, &e->tdn);
	tis_box(e, in);
	e->tis = make(&e->n, in, 0xc0, &e->tisn);
	sq_box(e, in);
	put(in, 0x20, ts_format << 4);
	e->sq = make(&e->n, in, 0x110, &e->sqn);
}

static inline void eth_open(struct eth *e)
{
	uint32_t in[0x120 / 4];

	eth_open_until_sq(e, 0);
	e->counters = counter_set(&e->n, &e->counter_set);
	rq_box(e, in);
	e->rq = make(&e->n, in, 0x110, &e->rqn);
	rqt_box(e, in, 1);
	e->rqt = make(&e->n, in, 0x114, &e->rqtn);
	tir_box(e, in);
	e->tir = make(&e->n, in, 0x110, &e->tirn);
}

/* Destroys the objects that are not NULL. */
static inline void eth_close(struct eth *e)
{
	struct mlx5dv_devx_obj *all[] = { e->tir, e->rqt,      e->rq, e->sq,
					  e->tis, e->counters, e->td, e->cq };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		cr_assert(!all[i] || !mlx5dv_devx_obj_destroy(all[i]), "object %zu is busy", i);
	nic_close(&e->n);
}

/* Changes the state of an SQ (opcode 0x905) or RQ (0x909). */
static inline void eth_state(struct mlx5dv_devx_obj *q, uint32_t opcode, uint32_t number,
			     uint32_t from, uint32_t to, uint32_t want_status)
{
	uint32_t in[0x110 / 4];

	modify_box(in, opcode, number);
	put(in, 0x08, from << 28);
	put(in, 0x20, to << 20);
	modify(q, in, sizeof(in), want_status);
}

/* opcode: of the MODIFY command, as in eth_state() */
static inline uint32_t eth_query_state(struct mlx5dv_devx_obj *q, uint32_t opcode, uint32_t number)
{
	uint32_t in[4] = { 0 }, out[0x110 / 4] = { 0 };

	put(in, 0, (opcode + 2) << 16);
	put(in, 8, number);
	cr_assert_eq(mlx5dv_devx_obj_query(q, in, sizeof(in), out, sizeof(out)), 0);
	return get(out, 0x20) >> 20 & 15;
}

static inline void eth_reset(struct mlx5dv_devx_obj *q, uint32_t opcode, uint32_t number)
{
	eth_state(q, opcode, number, eth_query_state(q, opcode, number), RST, 0);
}

#endif
