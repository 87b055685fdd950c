/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * BlueFlame: a whole WQE of one slot is stored to the register, which spares
 * the NIC the read of the ring. The WQE is in the ring and the record written
 * all the same. The register has two halves, used in turn.
 */
#ifndef GDK_BF_DEV_H
#define GDK_BF_DEV_H

#include "../../device/gdk/gpu_sm_dev.h"

#define GDK_BF_HALF 0x100u

/* What goes to the register; of a source in shared memory, nothing: it stays as it is. */
struct gdk_bf_copy {
	uint64_t w[8];
};

GDK_FN void gdk_bf_load(struct gdk_bf_copy *copy, const void *wqe)
{
	if (gdk_bf_in_one(wqe))
		return;
	GDK_UNROLL
	for (int i = 0; i < 8; i++)
		copy->w[i] = gdk_ld64((const uint64_t *)wqe + i, GDK_SCOPE_GPU);
}

GDK_FN uint64_t *gdk_bf_reg(const struct doca_gpu_dev_verbs_qp *qp, uint32_t half)
{
	return (uint64_t *)((uintptr_t)gdk_ldc64(GDK_QP_AT(qp, sq_db)) ^ half);
}

/* The store is complete on return, so that the source may be reused and a plain
 * doorbell may follow. Only the holder of the token calls: bf_half is its own. */
GDK_FN void gdk_bf_store(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			 const void *wqe, const struct gdk_bf_copy *copy, int scope)
{
	const uint32_t half = gdk_ld32(&st->bf_half, scope);

	if (gdk_bf_in_one(wqe))
		gdk_bf_bulk64(gdk_bf_reg(qp, half), wqe);
	else
		gdk_bf_st64(gdk_bf_reg(qp, half), copy->w);
	gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	/* The half, then the token moves on; next holder: token, fence, half. */
	gdk_fence_rel(scope);
}

/* Both, where nobody else may write to wqe in between. */
GDK_FN void gdk_bf_send(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			const void *wqe, int scope)
{
	struct gdk_bf_copy copy;

	gdk_bf_load(&copy, wqe);
	gdk_bf_store(qp, st, wqe, &copy, scope);
}

/* As gdk_bf_store, by all lanes of a warp, of which lane 0 holds the token; copy is
 * what gdk_bf_ld64_warp made of the WQE. */
GDK_FN void gdk_bf_store_warp(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			      const struct gdk_bf_copy *copy, int scope)
{
	const uint32_t half = (uint32_t)gdk_shfl64(gdk_ld32(&st->bf_half, scope), 0);

	gdk_bf_st64_warp(gdk_bf_reg(qp, half), copy->w);
	if (gdk_lane() == 0)
		gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	/* The half, then the token moves on; next holder: token, fence, half. */
	gdk_fence_rel(scope);
}

#endif
