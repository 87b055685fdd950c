/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The steps of posting as functions of their own, for callers that write WQEs themselves: reserve,
 * mark ready, submit. And DBREC, register, BlueFlame and the proxy's counter one by one, for
 * callers that also order and ring by themselves; those that store a register or the counter raise
 * `rung` first, because completions are computed relative to it.
 */
#ifndef GDK_BY_HAND_DEV_H
#define GDK_BY_HAND_DEV_H

#include "../../device/gdk/post_dev.h"

GDK_FN struct doca_gpu_dev_verbs_wqe *gdk_get_wqe_ptr(const struct doca_gpu_dev_verbs_qp *qp,
						      uint64_t idx)
{
	const uint64_t mask = gdk_ldc16(GDK_QP_AT(qp, sq_wqe_mask));
	const uint64_t base = gdk_ldc64(GDK_QP_AT(qp, sq_wqe_daddr));

	return (struct doca_gpu_dev_verbs_wqe *)(uintptr_t)(base + ((idx & mask) << 6));
}

/* ---- reserve, mark, submit ---- */

/*
 * Reserves n slots; *idx is the first, also when an error is returned: the caller then writes no
 * slot. -EINVAL: n is 0 or exceeds the ring. A wait for free slots that fails ends the QP, because
 * its slots would stay unpublished. If n is more than half of the ring, the last WQE before *idx
 * must generate a CQE: otherwise the wait can end at its time limit only (gdk_op_most()).
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

/* After the end of a QP no slot is published: the caller may have ignored that it got none. */
GDK_FN int gdk_ended(const struct gdk_qp_state *st, int scope)
{
	return gdk_ld64((const uint64_t *)(const void *)&st->status, scope) != 0;
}

/* Publishes the slots from..to, whose WQEs the caller has written. Does not ring: a later submit,
 * post or wait does. */
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
 * written them, and knows that they are free. A submit in exclusive use does without. */
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

/* Has all slots below pi rung: now, or when the last of them is published. Exclusive use: the
 * caller has written all of them. */
GDK_FN void gdk_submit(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, struct gdk_how how)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	if (how.opt & GDK_OPT_SKIP_DB)
		return;
	/* The caller may have left out gdk_mark_ready(). */
	if (how.mode == GDK_EXCLUSIVE && !gdk_ended(st, GDK_SCOPE_THREAD))
		gdk_own_mark(st, gdk_ldc32(&st->depth), gdk_ld64(&st->rung, GDK_SCOPE_THREAD), pi);
	(void)gdk_slow(st, pi, 0, GDK_RING | GDK_RING_ALL | GDK_OWN_TAKE, how.mode);
}

/* ---- BlueFlame ---- */

/* Counts the BlueFlame doorbell of slot pi - 1, and stores rung and, after a fence, the DBREC. The
 * caller fences, if needed, and stores the register. */
GDK_FN void gdk_bf_announce(struct gdk_qp_state *st, uint64_t pi, gdk_mode_t mode)
{
	const struct gdk_db db = gdk_db_of(st, pi);
	const uint32_t flags = gdk_ldc32(&st->flags);
	uint64_t rung, doorbells;

	/* An atomic addition would make later loads of its line miss the first-level cache. */
	if (mode == GDK_EXCLUSIVE) {
		gdk_ld64x2(&st->rung, &rung, &doorbells, GDK_SCOPE_THREAD);
		gdk_st64x2(&st->rung, pi, doorbells + 1, GDK_SCOPE_THREAD);
	} else {
		gdk_red_inc64(&st->doorbells, GDK_SCOPE_GPU);
		gdk_st64(&st->rung, pi, GDK_SCOPE_GPU);
	}
	gdk_nic_fence(flags); /* WQE and rung, then DBREC and register */
	gdk_dbrec_store(&db);
}

/*
 * Exclusive use: returns 1 if slot pi - 1 alone is to be rung, on a BlueFlame register. One thread
 * then stores DBREC and register without a fence between them, as in ring_dev.h; a warp has one.
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
	/* The caller may have left out gdk_mark_ready(). */
	gdk_own_mark(st, gdk_ldc32(&st->depth), rung, pi);
	return 1;
}

/* Shared use: as gdk_bf_own(). Returns 1 if the caller holds the token and DBREC and register are
 * to be stored. Otherwise the slot is rung, or will be, as by GPU_SM_DB. */
GDK_FN int gdk_bf_begin(struct gdk_qp_state *st, uint64_t pi)
{
	const uint32_t depth = gdk_ldc32(&st->depth);
	uint64_t rung;
	uint32_t left;

	gdk_red_max64(&st->wanted, pi, GDK_SCOPE_GPU);
	gdk_fence_sc(GDK_SCOPE_GPU); /* as in gdk_shared_want() */
	left = gdk_take(st);
	if (!left)
		return 0;
	rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	if (left >= GDK_LEFT_OWN) {
		gdk_plain_clear(st);
		/* Exclusive use stores DBREC and register without a fence between them. */
		gdk_ring(st, rung, 1, gdk_ldc32(&st->flags));
	}
	if (rung + 1 != pi || gdk_ldc32(&st->handler) != (uint32_t)GDK_BF || gdk_state_status(st) ||
	    gdk_scan_ready(st, depth, rung) != pi) {
		(void)gdk_shared_slow(st, rung, 0, 0, GDK_SERVE);
		return 0;
	}
	gdk_fence_acq(GDK_SCOPE_GPU); /* ready bit, then doorbell: gdk_serve() */
	if (!gdk_debug_refuses(st, rung, pi))
		return 1;
	(void)gdk_shared_slow(st, rung, 0, 0, GDK_SERVE);
	return 0;
}

/* The register is stored: hands the token on. */
GDK_FN void gdk_bf_end(struct gdk_qp_state *st, uint64_t pi)
{
	if (!gdk_park(st, gdk_ldc32(&st->depth), pi))
		(void)gdk_shared_slow(st, pi, 0, 0, GDK_SERVE);
}

/* As gdk_submit(). wqe is a copy of the last WQE, in shared memory on a GPU; in other memory the
 * doorbell is that of GPU_SM_DB. */
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
		gdk_nic_fence(gdk_ldc32(&st->flags)); /* DBREC, then register */
	gdk_bf_store(st, wqe, gdk_mode_scope(how.mode));
	if (!own)
		gdk_bf_end(st, pi);
}

/* As gdk_submit_bf(), by all lanes of a warp with the same arguments; wqe may be in any memory. */
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
			gdk_nic_fence(gdk_ldc32(&st->flags)); /* DBREC, then register */
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

/* Stores the DBREC, ordered after the WQEs: the NIC may read both at any time afterwards. */
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
		gdk_nic_fence(gdk_ldc32(&st->flags)); /* WQEs, then rung: gdk_ring() */
	gdk_red_max64(&st->rung, pi, GDK_SCOPE_GPU);
	if (gdk_opt_async(opt)) {
		gdk_mmio_st64_async(db.reg, db.reg_value);
	} else {
		gdk_nic_fence(gdk_ldc32(&st->flags));
		gdk_mmio_st64(db.reg, db.reg_value);
	}
	gdk_note_doorbell(st);
}

/* Index after a WQE, which contains 16 bits of its own index. The WQE is at most one lap above
 * rung, or below it. */
GDK_FN uint64_t gdk_wqe_end(struct gdk_qp_state *st, const void *wqe)
{
	const uint32_t first = gdk_any_ld32((const uint32_t *)wqe, GDK_SCOPE_GPU);
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	const uint16_t more = (uint16_t)((gdk_bswap32(first) >> 8) + 1 - (uint16_t)rung);

	return more <= gdk_ldc32(&st->depth) ? rung + more : rung;
}

/* Returns 0 if the debug build refuses the WQE. */
GDK_FN int gdk_bf_by_hand(struct gdk_qp_state *st, const void *wqe)
{
	const uint64_t pi = gdk_wqe_end(st, wqe);

	if (gdk_debug_refuses_below(st, pi))
		return 0;
	gdk_red_max64(&st->rung, pi, GDK_SCOPE_GPU);
	return 1;
}

/* Copies a WQE to the register, ordered after the stores before. On a GPU it must be in shared
 * memory; otherwise its doorbell is stored. */
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

/* As gdk_ring_bf(), by a warp; wqe may be in any memory. */
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

/* Raises the proxy's counter, ordered after the WQEs. The proxy loads the counter (acquire) and
 * rings, and the NIC then reads the WQEs; so the fence is that before a register. */
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
