/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * BlueFlame: the doorbell is a copy of a WQE of one slot. Its 64 bytes are stored to the doorbell
 * register, so the NIC need not read the WQE from the ring. The WQE is written to the ring, and the
 * DBREC is stored, as for other doorbells. The register has two halves, which are used alternately.
 *
 * A GPU thread can store 64 bytes at once only from shared memory, on a GPU with bulk copies
 * (gdk_bf_in_one()); a warp can store them from any memory. In all other cases the doorbell is rung
 * as by handler GPU_SM_DB (ring_dev.h).
 */
#ifndef GDK_BF_DEV_H
#define GDK_BF_DEV_H

#include "device/gdk/ring_dev.h"

#define GDK_BF_HALF 0x100u

/* Returns the address of a half of the register. half: 0 or GDK_BF_HALF. */
GDK_FN uint64_t *gdk_bf_reg(const struct gdk_qp_state *st, uint32_t half)
{
	return (uint64_t *)((uintptr_t)gdk_ldc64(&st->reg) ^ half);
}

/* Copies a WQE to the half of the register that `bf_half` in the state block selects. No other
 * thread accesses `bf_half` meanwhile: the caller holds the token (token_dev.h), or its program
 * orders the calls (gdk_ring_bf()). scope: that of the threads that share the QP. */
GDK_FN void gdk_bf_store(struct gdk_qp_state *st, const void *wqe, int scope)
{
	const uint32_t half = gdk_ld32(&st->bf_half, scope);

	gdk_bf_bulk64(gdk_bf_reg(st, half), wqe);
	gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	if (scope == GDK_SCOPE_THREAD)
		return;
	/* The copy of the WQE to the register must be complete, and `bf_half` stored, before the
	 * caller passes the token on. The next holder takes the token, executes a fence, and then
	 * loads `bf_half` and stores to the register. */
	gdk_bf_settle();
	gdk_fence_rel(scope);
}

/* As gdk_bf_store(), but all lanes of a warp call it, and lane 0 holds the token. words: the WQE,
 * as gdk_bf_ld64_warp() has loaded it. */
GDK_FN void gdk_bf_store_warp(struct gdk_qp_state *st, const uint64_t *words, int scope)
{
	const uint32_t half = (uint32_t)gdk_shfl64(gdk_ld32(&st->bf_half, scope), 0);

	gdk_bf_st64_warp(gdk_bf_reg(st, half), words);
	if (gdk_lane() == 0)
		gdk_st32(&st->bf_half, half ^ GDK_BF_HALF, scope);
	/* Orders the copy of the WQE to the register, and `bf_half`, before the token moves on, as
	 * in gdk_bf_store(). */
	gdk_fence_rel(scope);
}

#endif
