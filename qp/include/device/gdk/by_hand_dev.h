/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The steps of posting as functions of their own, for callers that write WQEs themselves: reserve,
 * mark ready, submit. For callers that also order and ring by themselves, other functions store the
 * DBREC, the register (also by BlueFlame) or the counter of the CPU proxy, one at a time. Functions
 * that store a register or the counter raise `rung` first: a thread that finds a CQE needs it to
 * compute the index from the 16 bits in the CQE.
 */
#ifndef GDK_BY_HAND_DEV_H
#define GDK_BY_HAND_DEV_H

#include "device/gdk/post_dev.h"

GDK_FN struct doca_gpu_dev_verbs_wqe *gdk_get_wqe_ptr(const struct doca_gpu_dev_verbs_qp *qp,
						      uint64_t idx)
{
	const uint64_t mask = gdk_ldc16(GDK_QP_AT(qp, sq_wqe_mask));
	const uint64_t base = gdk_ldc64(GDK_QP_AT(qp, sq_wqe_daddr));

	return (struct doca_gpu_dev_verbs_wqe *)(uintptr_t)(base + ((idx & mask) << 6));
}

/* ---- reserve, mark, submit ---- */

/*
 * Reserves n slots. *idx is the first of them. If an error is returned, *idx is also set, but the
 * caller writes no slot. Returns -EINVAL if n is 0 or exceeds the ring. If a wait for free slots
 * fails, the QP ends, because the reserved slots would stay unpublished. If n is more than half of
 * the ring, the last WQE before *idx must generate a CQE: otherwise the wait can end only at its
 * time limit (gdk_op_most()).
 */
GDK_FN int gdk_reserve(struct doca_gpu_dev_verbs_qp *qp, uint32_t n, gdk_mode_t mode, uint32_t opt,
		       uint64_t *idx)
{
	const int scope = gdk_mode_scope(mode);
	struct gdk_post p;
	uint64_t base;

	p.st = gdk_state_of_qp(qp);
	p.wqes = gdk_wqes_of(p.st);
	if (n == 0 || n > p.wqes.mask + 1) {
		*idx = gdk_ld64(gdk_rsvd_index(qp), scope);
		return -EINVAL;
	}
	if (mode == GDK_EXCLUSIVE)
		return gdk_own_reserve(qp, &p, n, GDK_DB, opt | GDK_OPT_SKIP_DB, idx);
	base = gdk_shared_reserve(qp, &p, n, scope, opt);
	*idx = base & ~GDK_FAILED;
	return base & GDK_FAILED ? gdk_state_status(p.st) : 0;
}

/* Returns whether the QP has ended. The caller then publishes no slots, because the program may
 * have ignored that its reservation failed. */
GDK_FN int gdk_ended(const struct gdk_qp_state *st, int scope)
{
	return gdk_ld64((const uint64_t *)(const void *)&st->status, scope) != 0;
}

/* Publishes the slots from `from` to `to`, inclusive. The caller has written their WQEs. The
 * function does not ring: a later submit, post or wait does. */
GDK_FN void gdk_mark_ready(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
			   gdk_mode_t mode, gdk_handler_t handler)
{
	struct gdk_post p;

	p.st = gdk_state_of_qp(qp);
	if (gdk_ended(p.st, gdk_mode_scope(mode)))
		return;
	p.base = from;
	p.total = (uint32_t)(to - from) + 1;
	p.parked = 0;
	p.doorbells = 0;
	if (mode != GDK_EXCLUSIVE) {
		gdk_shared_end(&p, gdk_how(mode, handler, GDK_THREAD, GDK_OPT_SKIP_DB));
		return;
	}
	if (gdk_ld32(&p.st->left, GDK_SCOPE_THREAD) < GDK_LEFT_OWN)
		(void)gdk_own_slow(p.st, 0, 0, 0, GDK_OWN_TAKE);
	gdk_own_mark(p.st, gdk_ldc32(&p.st->depth), from, to + 1);
}

/* Shared use: reserves and publishes the slots below pi that no thread has reserved. The caller has
 * written these slots, and knows that they are free. In exclusive use nothing is done, because
 * gdk_submit() itself publishes all slots below pi. */
GDK_FN void gdk_vouch(struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, gdk_mode_t mode)
{
	const int scope = gdk_mode_scope(mode);
	uint64_t from;

	if (mode == GDK_EXCLUSIVE || gdk_ld64(gdk_rsvd_index(qp), scope) >= pi)
		return;
	from = gdk_max64(gdk_rsvd_index(qp), pi, scope);
	if (from < pi)
		gdk_mark_ready(qp, from, pi - 1, mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO);
}

/* Requests the doorbell for all slots below pi. They are rung now, or when the last of them is
 * published. In exclusive use the caller has written all of them, and they are rung now. */
GDK_FN void gdk_submit(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, struct gdk_how how)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	if (how.opt & GDK_OPT_SKIP_DB)
		return;
	/* The caller may have left out gdk_mark_ready(), so the slots are published here. */
	if (how.mode == GDK_EXCLUSIVE && !gdk_ended(st, GDK_SCOPE_THREAD))
		gdk_own_mark(st, gdk_ldc32(&st->depth), gdk_ld64(&st->rung, GDK_SCOPE_THREAD), pi);
	(void)gdk_slow(st, pi, 0, GDK_RING | GDK_RING_ALL | GDK_OWN_TAKE, how.mode);
}

/* ---- BlueFlame ---- */

/* Prepares the BlueFlame doorbell of slot pi - 1: counts the doorbell, stores `rung`, and after a
 * fence stores the DBREC. The caller then executes a fence, if it is needed, and stores the
 * register. */
GDK_FN void gdk_bf_announce(struct gdk_qp_state *st, uint64_t pi, gdk_mode_t mode)
{
	const struct gdk_db db = gdk_db_of(st, pi);
	const uint32_t flags = gdk_ldc32(&st->flags);
	uint64_t rung, doorbells;

	/* Exclusive use counts by load and store: an atomic addition would make later loads of the
	 * cache line miss the first-level cache. */
	if (mode == GDK_EXCLUSIVE) {
		gdk_ld64x2(&st->rung, &rung, &doorbells, GDK_SCOPE_THREAD);
		gdk_st64x2(&st->rung, pi, doorbells + 1, GDK_SCOPE_THREAD);
	} else {
		gdk_red_inc64(&st->doorbells, GDK_SCOPE_GPU);
		gdk_st64(&st->rung, pi, GDK_SCOPE_GPU);
	}
	gdk_nic_fence(flags); /* orders WQE and `rung` before DBREC and register */
	gdk_dbrec_store(&db);
}

/*
 * Exclusive use: publishes slot pi - 1 and returns 1, if this slot alone is to be rung, the caller
 * owns the token, and the queue pair has a BlueFlame register. The caller then stores DBREC and
 * register. A fence between them is needed only if different lanes store them (ring_dev.h).
 */
GDK_FN int gdk_bf_own(struct gdk_qp_state *st, uint64_t pi)
{
	uint64_t rung, doorbells;

	gdk_ld64x2(&st->rung, &rung, &doorbells, GDK_SCOPE_THREAD);
	if (rung + 1 != pi || gdk_ld32(&st->left, GDK_SCOPE_THREAD) < GDK_LEFT_OWN ||
	    gdk_ldc32(&st->handler) != (uint32_t)GDK_BF || gdk_ended(st, GDK_SCOPE_THREAD))
		return 0;
	if (gdk_debug_refuses(st, rung, pi))
		return 0;
	/* The caller may have left out gdk_mark_ready(), so the slot is published here. */
	gdk_own_mark(st, gdk_ldc32(&st->depth), rung, pi);
	return 1;
}

/* As gdk_bf_own(), for shared use. Returns 1 if the caller holds the token and must store DBREC and
 * register. Otherwise the WQE is rung by a store of 8 bytes, by this call or later by the holder of
 * the token. */
GDK_FN int gdk_bf_begin(struct gdk_qp_state *st, uint64_t pi)
{
	const uint32_t depth = gdk_ldc32(&st->depth);
	uint64_t rung;
	uint32_t left;

	gdk_red_max64(&st->wanted, pi, GDK_SCOPE_GPU);
	gdk_fence_sc(GDK_SCOPE_GPU); /* orders `wanted` before `left`: gdk_shared_want() */
	left = gdk_take(st);
	if (!left)
		return 0;
	rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	if (left >= GDK_LEFT_OWN) {
		gdk_plain_clear(st);
		/* Exclusive use has no fence between DBREC and register. So the NIC may have
		 * received the last store of the register before the DBREC was visible. That
		 * doorbell is therefore repeated. */
		gdk_ring(st, rung, 1, gdk_ldc32(&st->flags), 0);
	}
	if (rung + 1 != pi || gdk_ldc32(&st->handler) != (uint32_t)GDK_BF || gdk_state_status(st) ||
	    gdk_scan_ready(st, depth, rung) != pi) {
		(void)gdk_shared_slow(st, rung, 0, 0, GDK_SERVE);
		return 0;
	}
	/* Orders the ready bit before the doorbell, as in gdk_serve(). */
	gdk_fence_acq(GDK_SCOPE_GPU);
	if (!gdk_debug_refuses(st, rung, pi))
		return 1;
	(void)gdk_shared_slow(st, rung, 0, 0, GDK_SERVE);
	return 0;
}

/* Parks the token at slot pi, after the register store. If that slot is published already, the
 * caller still holds the token, and rings for the slot. */
GDK_FN void gdk_bf_end(struct gdk_qp_state *st, uint64_t pi)
{
	if (!gdk_park(st, gdk_ldc32(&st->depth), pi))
		(void)gdk_shared_slow(st, pi, 0, 0, GDK_SERVE);
}

/* As gdk_submit(), but rings by BlueFlame. wqe is a copy of the last WQE. If a GPU thread passes a
 * copy that is not in shared memory, the doorbell is that of GPU_SM_DB instead. */
GDK_FN void gdk_submit_bf(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, const void *wqe,
			  struct gdk_how how)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const int own = how.mode == GDK_EXCLUSIVE;
	uint64_t copy[8];

	if (how.opt & GDK_OPT_SKIP_DB)
		return;
	wqe = gdk_bf_source(wqe, copy);
	if (!gdk_bf_in_one(wqe) || !(own ? gdk_bf_own(st, pi) : gdk_bf_begin(st, pi))) {
		gdk_submit(qp, pi, how);
		return;
	}
	gdk_bf_announce(st, pi, how.mode);
	if (!own)
		gdk_nic_fence(gdk_ldc32(&st->flags)); /* orders DBREC before register */
	gdk_bf_store(st, wqe, gdk_mode_scope(how.mode));
	if (!own)
		gdk_bf_end(st, pi);
}

/* As gdk_submit_bf(), but all lanes of a warp call it, with the same arguments. wqe may be in any
 * memory. */
GDK_FN void gdk_submit_bf_warp(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, const void *wqe,
			       struct gdk_how how)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const int own = how.mode == GDK_EXCLUSIVE;
	uint64_t words[8];
	int copies = 0;

	if (how.opt & GDK_OPT_SKIP_DB)
		return;
	gdk_syncwarp();
	gdk_bf_ld64_warp(words, wqe);
	if (gdk_lane() == 0) {
		copies = own ? gdk_bf_own(st, pi) : gdk_bf_begin(st, pi);
		if (copies)
			gdk_bf_announce(st, pi, how.mode);
		else
			gdk_submit(qp, pi, how);
	}
	if (gdk_shfl64((uint64_t)copies, 0)) {
		if (gdk_lane() == 0)
			gdk_nic_fence(gdk_ldc32(&st->flags)); /* orders DBREC before register */
		gdk_bf_store_warp(st, words, gdk_mode_scope(how.mode));
		if (gdk_lane() == 0 && !own)
			gdk_bf_end(st, pi);
	}
	gdk_syncwarp();
}

/* ---- DBREC, register and counter by themselves ---- */

GDK_FN void gdk_note_doorbell(struct gdk_qp_state *st)
{
	gdk_red_inc64(&st->doorbells, GDK_SCOPE_GPU);
	gdk_red_inc64(&st->bare_rings, GDK_SCOPE_GPU);
}

GDK_FN int gdk_opt_async(uint32_t opt)
{
	return GDK_ASYNC_STORE && opt & DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE;
}

/* Stores the DBREC, ordered after the WQEs. The NIC may read both at any time afterwards. */
GDK_FN void gdk_update_dbr(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, uint32_t opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_db db = gdk_db_of(st, pi);

	if (gdk_debug_refuses_below(st, pi))
		return;
	if (gdk_opt_async(opt)) {
		gdk_st32_async(db.dbrec, db.dbrec_value);
	} else {
		gdk_nic_fence(gdk_ldc32(&st->flags));
		gdk_dbrec_store(&db);
	}
	gdk_red_inc64(&st->bare_records, GDK_SCOPE_GPU);
}

/* Stores the register, ordered after DBREC and WQEs. */
GDK_FN void gdk_ring_db(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, uint32_t opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_db db = gdk_db_of(st, pi);

	if (gdk_debug_refuses_below(st, pi))
		return;
	if (gdk_ldc32(&st->flags) & GDK_QPF_RUNG_READ)
		gdk_nic_fence(gdk_ldc32(&st->flags)); /* orders WQEs before `rung` */
	gdk_red_max64(&st->rung, pi, GDK_SCOPE_GPU);
	if (gdk_opt_async(opt)) {
		gdk_mmio_st64_async(db.reg, db.reg_value);
	} else {
		gdk_nic_fence(gdk_ldc32(&st->flags));
		gdk_mmio_st64(db.reg, db.reg_value);
	}
	gdk_note_doorbell(st);
}

/* Returns the index after that of a WQE of one slot. The WQE contains the low 16 bits of its index.
 * The upper bits follow from `rung`, because the index is at most one lap above `rung`. Returns
 * `rung` if the index is below `rung`. */
GDK_FN uint64_t gdk_wqe_end(struct gdk_qp_state *st, const void *wqe)
{
	const uint32_t first = gdk_any_ld32((const uint32_t *)wqe, GDK_SCOPE_GPU);
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	const uint16_t more = (uint16_t)((gdk_bswap32(first) >> 8) + 1 - (uint16_t)rung);

	return more <= gdk_ldc32(&st->depth) ? rung + more : rung;
}

/* Raises `rung` to the end of the WQE. Returns 0 if the debug build refuses the WQE; `rung` is then
 * unchanged. */
GDK_FN int gdk_bf_by_hand(struct gdk_qp_state *st, const void *wqe)
{
	const uint64_t pi = gdk_wqe_end(st, wqe);

	if (gdk_debug_refuses_below(st, pi))
		return 0;
	gdk_red_max64(&st->rung, pi, GDK_SCOPE_GPU);
	return 1;
}

/* Copies a WQE to the register, ordered after all earlier stores. If a GPU thread passes a WQE that
 * is not in shared memory, the doorbell of 8 bytes is stored instead. */
GDK_FN void gdk_ring_bf(const struct doca_gpu_dev_verbs_qp *qp, const void *wqe)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	struct gdk_db db;

	if (!gdk_bf_by_hand(st, wqe))
		return;
	gdk_nic_fence(gdk_ldc32(&st->flags));
	if (gdk_bf_in_one(wqe)) {
		gdk_bf_store(st, wqe, GDK_SCOPE_GPU);
	} else {
		db = gdk_db_of(st, gdk_wqe_end(st, wqe));
		gdk_mmio_st64(db.reg, db.reg_value);
	}
	gdk_note_doorbell(st);
}

/* As gdk_ring_bf(), but all lanes of a warp call it. wqe may be in any memory. */
GDK_FN void gdk_ring_bf_warp(const struct doca_gpu_dev_verbs_qp *qp, const void *wqe)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	uint64_t words[8];
	int good = 0;

	gdk_bf_ld64_warp(words, wqe);
	if (gdk_lane() == 0)
		good = gdk_bf_by_hand(st, wqe);
	if (!gdk_shfl64((uint64_t)good, 0))
		return;
	gdk_nic_fence(gdk_ldc32(&st->flags));
	gdk_bf_store_warp(st, words, GDK_SCOPE_GPU);
	if (gdk_lane() == 0)
		gdk_note_doorbell(st);
	gdk_syncwarp();
}

/* Raises the counter of the CPU proxy, ordered after the WQEs. The proxy loads the counter
 * (acquire) and rings, and then the NIC reads the WQEs. So the counter needs the same fence as a
 * store to the register. */
GDK_FN void gdk_ring_proxy(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, gdk_mode_t mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_db db = gdk_db_of(st, pi);

	if (gdk_debug_refuses_below(st, pi))
		return;
	gdk_red_max64(&st->rung, pi, GDK_SCOPE_GPU);
	gdk_nic_fence(gdk_ldc32(&st->flags));
	if (mode == GDK_EXCLUSIVE)
		gdk_st64(db.reg, pi, GDK_SCOPE_SYS);
	else
		gdk_red_max64(db.reg, pi, GDK_SCOPE_SYS);
}

#endif
