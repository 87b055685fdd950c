/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Builds a WQE of a given kind with the product's builders, for tests that check
 * every kind of WQE or its text.
 */
#ifndef WQE_KINDS_H
#define WQE_KINDS_H

#include "rig.h"

#define ADDR  0x1122334455667788u
#define LADDR 0x8877665544332211u
#define RKEY  gdk_key(0x00012345u)
#define LKEY  gdk_key(0x00054321u)

enum kind {
	NOP,
	WRITE,
	WRITE2,
	WRITE_IMM,
	READ,
	INLINE,
	INLINE_LONG,
	FA,
	CS,
	MFA4,
	MFA8,
	MCS4,
	MCS8,
	WAIT,
	DUMP,
	COPY,
	KINDS
};

#define OP(name) DOCA_GPUNETIO_IB_MLX5_OPCODE_##name

/* A request to the copy engine; the result has the key of the destination. */
static inline void build_copy(struct rig *r, uint64_t at)
{
	const struct gdk_wqes wqes = gdk_wqes_of_qp(&r->qp);
	struct gdk_one one = gdk_one_of(GDK_OPCODE_MMO, 4);

	one.w[0] = gdk_pack(0, RKEY.be);
	one.w[1] = gdk_bswap64(ADDR);
	gdk_one_data(&one, 2, LADDR, LKEY, 1u << 31);
	gdk_one_data(&one, 4, ADDR, RKEY, 1u << 31);
	gdk_one_write_mod(&wqes, at, &one, 4, GDK_OPMOD_MMO_DMA);
}

/* Builds a WQE of this kind in slot `at`; one of kind MCS8 also takes the next slot. */
static inline void build(struct rig *r, enum kind kind, uint64_t at)
{
	const struct gdk_atomic_ext ext = { 1, 2, 3, 4, 5, 6 };
	struct doca_gpu_dev_verbs_wqe *w = gdk_get_wqe_ptr(&r->qp, at);
	struct doca_gpu_dev_verbs_wqe *w1 = gdk_get_wqe_ptr(&r->qp, at + 1);
	const uint32_t f = GDK_CE_ALWAYS;
	const uint16_t i = (uint16_t)at;
	const struct gdk_wqe_at imm = { w, i, OP(RDMA_WRITE_IMM), f, htobe32(7) };

	switch (kind) {
	case NOP:
		return gdk_wqe_nop(&r->qp, w, i, f);
	case WRITE:
		return gdk_wqe_rdma(&r->qp, gdk_wqe_at(w, i, OP(RDMA_WRITE), f),
				    gdk_mem(ADDR, RKEY), gdk_mem(LADDR, LKEY), 64);
	case WRITE2:
		return gdk_wqe_rdma2(&r->qp, gdk_wqe_at(w, i, OP(RDMA_WRITE), f),
				     gdk_mem(ADDR, RKEY), gdk_mem(LADDR, LKEY), 64,
				     gdk_mem(LADDR, LKEY), 1u << 29);
	case WRITE_IMM:
		return gdk_wqe_rdma(&r->qp, imm, gdk_mem(ADDR, RKEY), gdk_mem(LADDR, LKEY),
				    1u << 30);
	case READ:
		return gdk_wqe_rdma(&r->qp, gdk_wqe_at(w, i, OP(RDMA_READ), f), gdk_mem(ADDR, RKEY),
				    gdk_mem(LADDR, LKEY), 1);
	case INLINE:
		return gdk_wqe_write_inl(&r->qp, gdk_wqe_at(w, i, OP(RDMA_WRITE), f),
					 gdk_mem(ADDR, RKEY), "twelve bytes", 12);
	case INLINE_LONG:
		return gdk_wqe_write_inl(&r->qp, gdk_wqe_at(w, i, OP(RDMA_WRITE), f),
					 gdk_mem(ADDR, RKEY), "thirteen bytes and a few more", 28);
	case FA:
		return gdk_wqe_atomic(&r->qp, gdk_wqe_at(w, i, OP(ATOMIC_FA), f),
				      gdk_mem(ADDR, RKEY), gdk_mem(LADDR, LKEY), 8, 5, 0);
	case CS:
		return gdk_wqe_atomic(&r->qp, gdk_wqe_at(w, i, OP(ATOMIC_CS), f),
				      gdk_mem(ADDR, RKEY), gdk_mem(LADDR, LKEY), 8, 5, 6);
	case MFA4:
	case MFA8:
		return gdk_wqe_atomic_ext(&r->qp, gdk_wqe_at(w, i, OP(ATOMIC_MASKED_FA), f), w1,
					  gdk_mem(ADDR, RKEY), gdk_mem(LADDR, LKEY),
					  kind == MFA4 ? 4 : 8, &ext);
	case MCS4:
	case MCS8:
		return gdk_wqe_atomic_ext(&r->qp, gdk_wqe_at(w, i, OP(ATOMIC_MASKED_CS), f), w1,
					  gdk_mem(ADDR, RKEY), gdk_mem(LADDR, LKEY),
					  kind == MCS4 ? 4 : 8, &ext);
	case WAIT:
		return gdk_wqe_wait(&r->qp, w, i, f, 9, 0x123);
	case DUMP:
		return gdk_wqe_dump(&r->qp, w, i, f, LADDR, LKEY, 8);
	default:
		return build_copy(r, at);
	}
}

#endif
