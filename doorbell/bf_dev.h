/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * BlueFlame: the 64 bytes of a WQE of one slot are stored to the register, which saves the NIC
 * the read of the ring. The WQE is in the ring and the DBREC is written as well. The register
 * has two halves, which are used alternately.
 *
 * One thread can store 64 bytes at once only from shared memory (gdk_bf_in_one()); a warp can
 * store them from any memory. In all other cases the doorbell is rung as by GPU_SM_DB.
 */
#ifndef GDK_BF_DEV_H
#define GDK_BF_DEV_H

#include "../../device/gdk/ring_dev.h"

#define GDK_BF_HALF 0x100u

GDK_FN uint64_t *gdk_bf_reg(const struct gdk_qp_state *st, uint32_t half)
{
	return (uint64_t *)((uintptr_t)gdk_ldc64(&st->reg) ^ half);
}

/* Copies the WQE to the register. The caller holds the token, so bf_half is its own. */
GDK_FN void gdk_bf_store(struct gdk_qp_state *st, const void *wqe, int scope)
{
	const uint32_t half = gdk_ld32(&st->bf_half, scope);

	gdk_bf_bulk64(gdk_bf_reg(st, half), wqe);
	gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	if (scope == GDK_SCOPE_THREAD)
		return;
	/* The copy must be complete, and bf_half stored, before the caller passes the token on. The
	 * next holder takes the token, executes a fence, and then loads bf_half and stores the
	 * register. */
	gdk_bf_settle();
	gdk_fence_rel(scope);
}

/* As gdk_bf_store(), by all lanes of a warp, of which lane 0 holds the token. words is what
 * gdk_bf_ld64_warp() loaded. */
GDK_FN void gdk_bf_store_warp(struct gdk_qp_state *st, const uint64_t *words, int scope)
{
	const uint32_t half = (uint32_t)gdk_shfl64(gdk_ld32(&st->bf_half, scope), 0);

	gdk_bf_st64_warp(gdk_bf_reg(st, half), words);
	if (gdk_lane() == 0)
		gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	gdk_fence_rel(scope); /* as in gdk_bf_store() */
}

#endif
