/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creates, modifies and queries objects of the first NIC, which must be mlx5_0, with raw
 * DEVX commands. The fields are at literal offsets, so that the tests depend neither on
 * the library's table of fields nor on the software NIC's.
 */
#ifndef RAWNIC_H
#define RAWNIC_H

#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#define RING   16384
#define DBR_AT 12288

struct nic {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_umem *umem;
	void *mem;
	uint32_t pdn, eqn;
};

static inline void put(uint32_t *box, uint32_t off, uint32_t v)
{
	box[off / 4] = htobe32(be32toh(box[off / 4]) | v);
}

static inline uint32_t get(const uint32_t *box, uint32_t off)
{
	return be32toh(box[off / 4]);
}

static inline struct ibv_context *open_nic(void)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	cr_assert(list && list[0]);
	cr_assert_str_eq(ibv_get_device_name(list[0]), "mlx5_0");
	ctx = mlx5dv_open_device(list[0], &attr);
	ibv_free_device_list(list);
	cr_assert(ctx);
	return ctx;
}

static inline void nic_open(struct nic *n)
{
	struct mlx5dv_pd dvpd;
	struct mlx5dv_obj obj;

	n->ctx = open_nic();
	n->pd = ibv_alloc_pd(n->ctx);
	n->uar = mlx5dv_devx_alloc_uar(n->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	cr_assert(n->pd && n->uar);
	n->mem = aligned_alloc(4096, RING);
	memset(n->mem, 0, RING);
	n->umem = mlx5dv_devx_umem_reg(n->ctx, n->mem, RING, IBV_ACCESS_LOCAL_WRITE);
	cr_assert(n->umem);
	obj.pd.in = n->pd;
	obj.pd.out = &dvpd;
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), 0);
	n->pdn = dvpd.pdn;
	cr_assert_eq(mlx5dv_devx_query_eqn(n->ctx, 0, &n->eqn), 0);
}

static inline void nic_close(struct nic *n)
{
	cr_assert_eq(mlx5dv_devx_umem_dereg(n->umem), 0);
	mlx5dv_devx_free_uar(n->uar);
	cr_assert_eq(ibv_dealloc_pd(n->pd), 0);
	cr_assert_eq(ibv_close_device(n->ctx), 0);
	free(n->mem);
}

/* Writes the input of CREATE_CQ: a CQ of 64 entries of 64 bytes at offset 8192, with its DBREC at
 * DBR_AT + 64. */
static inline void cq_box(const struct nic *n, uint32_t *in)
{
	memset(in, 0, 0x110);
	put(in, 0x00, 0x400u << 16);
	put(in, 0x14, n->umem->umem_id);
	put(in, 0x1c, 6u << 24 | n->uar->page_id);
	put(in, 0x24, n->eqn);
	put(in, 0x4c, DBR_AT + 64);
	put(in, 0x54, 8192);
	put(in, 0x58, n->umem->umem_id);
	put(in, 0x5c, 1u << 31);
}

/* Writes the input of CREATE_QP: an RC QP with 16 send WQEBBs at offset 0, no receive queue and
 * its DBREC at DBR_AT. */
static inline void qp_box(const struct nic *n, uint32_t *in, uint32_t cqn)
{
	memset(in, 0, 0x110);
	put(in, 0x00, 0x500u << 16);
	put(in, 0x18, 3u << 11);
	put(in, 0x1c, n->pdn);
	put(in, 0x20, 4u << 11);
	put(in, 0x24, n->uar->page_id);
	put(in, 0x28, 0x1234);
	put(in, 0x94, cqn);
	put(in, 0xb4, cqn);
	put(in, 0xbc, DBR_AT);
	put(in, 0xc4, 3u << 24);
	put(in, 0xe8, 1u << 28);
	put(in, 0xfc, n->umem->umem_id);
	put(in, 0x108, n->umem->umem_id);
	put(in, 0x10c, 1u << 31);
}

static uint32_t last_status, last_syndrome;

static inline struct mlx5dv_devx_obj *create(const struct nic *n, const uint32_t *in,
					     uint32_t *number)
{
	uint32_t out[4] = { 0 };
	struct mlx5dv_devx_obj *o = mlx5dv_devx_obj_create(n->ctx, in, 0x110, out, sizeof(out));

	last_status = get(out, 0) >> 24;
	last_syndrome = get(out, 4);
	if (number)
		*number = get(out, 8) & 0xffffff;
	return o;
}

static inline void modify(struct mlx5dv_devx_obj *o, uint32_t *in, size_t len, uint32_t want_status)
{
	uint32_t out[4] = { 0 };
	int rc = mlx5dv_devx_obj_modify(o, in, len, out, sizeof(out));

	cr_assert_eq(get(out, 0) >> 24, want_status, "status %#x syndrome %#x", get(out, 0) >> 24,
		     get(out, 4));
	cr_assert_eq(rc, want_status ? EREMOTEIO : 0);
}

static inline void modify_box(uint32_t *in, uint32_t opcode, uint32_t qpn)
{
	memset(in, 0, 0x110);
	put(in, 0, opcode << 16);
	put(in, 8, qpn);
}

static inline void rtr_box(uint32_t *in, uint32_t qpn, const union ibv_gid *gid)
{
	modify_box(in, 0x503, qpn);
	put(in, 0x18 + 0x08, 3u << 29 | 30u << 24);
	put(in, 0x18 + 0x14, qpn);
	put(in, 0x18 + 0x20, 1u << 16 | 64);
	memcpy((uint8_t *)in + 0x18 + 0x28, gid->raw, 16);
	put(in, 0x18 + 0x3c, 0x0200);
	memcpy((uint8_t *)in + 0x18 + 0x40, gid->raw + 12, 4);
	put(in, 0x18 + 0x90, 4u << 21);
	put(in, 0x18 + 0x94, 12u << 24 | 0x77);
}

static inline uint32_t qp_state(struct mlx5dv_devx_obj *qp, uint32_t qpn, uint32_t *out)
{
	uint32_t in[4] = { 0 };

	put(in, 0, 0x50bu << 16);
	put(in, 8, qpn);
	memset(out, 0, 0x110);
	cr_assert_eq(mlx5dv_devx_obj_query(qp, in, sizeof(in), out, 0x110), 0);
	return get(out, 0x18) >> 28;
}

#endif
