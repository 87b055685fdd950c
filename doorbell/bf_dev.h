/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * BlueFlame: a whole WQE of one slot is stored to the register, which spares
 * the NIC the read of the ring. The WQE is in the ring and the record written
 * all the same. The register has two halves, used in turn.
 */
#ifndef GDK_BF_DEV_H
#define GDK_BF_DEV_H

#include "gpu_sm_dev.h"

#define GDK_BF_HALF 0x100u

/* The copy is complete on return, so its source may be reused and a plain
 * doorbell may follow. Only the holder of the token calls: bf_half is its own. */
GDK_FN void gdk_bf_store(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			 const void *wqe, int scope)
{
	const uint32_t half = gdk_ld32(&st->bf_half, scope);
	uintptr_t reg = (uintptr_t)gdk_db_reg(qp) ^ half;

	gdk_bf_copy64((uint64_t *)reg, (const uint64_t *)wqe);
	gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	/* The half, then the token moves on; next holder: token, fence, half. */
	gdk_fence_rel(scope);
}

/* As gdk_bf_store, by all lanes of a warp, of which lane 0 holds the token. */
GDK_FN void gdk_bf_store_warp(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			      const void *wqe, int scope)
{
	const uint32_t half = (uint32_t)gdk_shfl64(gdk_ld32(&st->bf_half, scope), 0);

	gdk_bf_copy64_warp((uint64_t *)((uintptr_t)gdk_db_reg(qp) ^ half), (const uint64_t *)wqe);
	if (gdk_lane() == 0)
		gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	/* The half, then the token moves on; next holder: token, fence, half. */
	gdk_fence_rel(scope);
}

/* For those who ring by themselves; the WQE carries its index. */
GDK_FN void gdk_ring_bf(const struct doca_gpu_dev_verbs_qp *qp, const void *wqe)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	gdk_fence_rel(gdk_nic_scope(st));
	gdk_bf_store(qp, st, wqe, GDK_SCOPE_GPU);
	gdk_red_add64(&st->doorbells, 1, GDK_SCOPE_GPU);
	gdk_red_add64(&st->bare_rings, 1, GDK_SCOPE_GPU);
}

/* The same by a warp. */
GDK_FN void gdk_ring_bf_warp(const struct doca_gpu_dev_verbs_qp *qp, const void *wqe)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	gdk_fence_rel(gdk_nic_scope(st));
	gdk_bf_store_warp(qp, st, wqe, GDK_SCOPE_GPU);
	if (gdk_lane() == 0) {
		gdk_red_add64(&st->doorbells, 1, GDK_SCOPE_GPU);
		gdk_red_add64(&st->bare_rings, 1, GDK_SCOPE_GPU);
	}
	gdk_syncwarp();
}

#endif
