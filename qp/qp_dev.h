/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Slots of the send queue as callers use them: reserve, write the WQEs, mark them
 * ready, submit. Exclusive use is that of one thread (or one warp through its
 * batches), which marks slots in the order of their indices.
 */
#ifndef GDK_QP_DEV_H
#define GDK_QP_DEV_H

#include "ring_dev.h"
#include "tail_dev.h"

/* Raises wanted to pi and sees to it that it is served. Exclusive: the caller
 * wrote all below pi, and rings at once. */
GDK_FN void gdk_want(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st, uint64_t pi,
		     int scope, gdk_handler_t handler, struct gdk_bf_source src)
{
	uint64_t left, written;

	if (scope == GDK_SCOPE_THREAD) {
		if (!gdk_state_status(st))
			gdk_ring_exclusive(qp, st, pi, handler, src);
		return;
	}
	gdk_rmw_max64(&st->wanted, pi, scope);
	/* wanted, then left: see ring_dev.h */
	gdk_fence_sc(scope);
	gdk_ld64x2((const uint64_t *)(const void *)&st->left, &left, &written, scope);
	if (left | written)
		gdk_take_left(qp, st, scope, handler, src);
}

/* As gdk_want, for waiters, who know only that others shall publish. */
GDK_SLOW_FN void gdk_want_published(const struct doca_gpu_dev_verbs_qp *qp,
				    struct gdk_qp_state *st, uint64_t pi, int scope)
{
	const struct gdk_bf_source none = { NULL, 0 };
	uint64_t written;

	if (gdk_ld64(&st->rung, scope) >= pi)
		return;
	if (scope == GDK_SCOPE_THREAD) {
		written = gdk_ld64(&st->written, scope);
		pi = pi < written ? pi : written;
	}
	gdk_want(qp, st, pi, scope, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, none);
}

/* Until all slots below need are complete. A wait that is over in time ends the
 * QP if `final`. */
GDK_SLOW_FN int gdk_wait_slots(struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			       uint64_t published, uint64_t need, int scope, uint64_t limit_ns)
{
	gdk_want_published(qp, st, published, scope);
	if (scope == GDK_SCOPE_THREAD)
		gdk_settle(qp, st);
	return gdk_wait_completed(st, gdk_qp_cq(qp), need, scope, limit_ns);
}

/*
 * Reserves n slots; *idx is the first, also when an error is returned: the
 * caller then writes no slot. A thread that has to wait for its slots first has
 * everything before them rung as it is published, else it might wait for ever.
 * A failed wait ends the QP: its slots would stay a hole.
 */
GDK_FN int gdk_reserve(struct doca_gpu_dev_verbs_qp *qp, uint32_t n, gdk_mode_t mode,
		       uint32_t code_opt, uint64_t *idx)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const int scope = gdk_mode_scope(mode);
	const uint32_t depth = gdk_ldc32(&st->depth);
	uint64_t done, ended;
	int err;

	if (n == 0 || n > depth) {
		*idx = gdk_ld64(gdk_rsvd_index(qp), scope);
		return -EINVAL;
	}
	/* Two loads in flight; status and abort word come with completed. */
	*idx = gdk_add64(gdk_rsvd_index(qp), n, scope);
	gdk_ld64x2(&st->completed, &done, &ended, scope);
	if (ended)
		return gdk_state_status(st);
	/* The NIC's reads of the slots' last use, its CQE, completed; then our writes. */
	gdk_fence_acq(scope);
	if (code_opt & GDK_OPT_SKIP_CHECK || *idx + n <= done + depth)
		return 0;
	err = gdk_wait_slots(qp, st, *idx, *idx + n - depth, scope,
			     gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU));
	return err ? gdk_state_end(st, err) : 0;
}

/* Publishes [from, to], whose WQEs are written; it is rung when somebody wants it. */
GDK_FN void gdk_mark_ready(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
			   gdk_mode_t mode, gdk_handler_t handler)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_bf_source none = { NULL, 0 };
	const int scope = gdk_mode_scope(mode);

	if (mode == GDK_EXCLUSIVE) {
		gdk_st64(&st->written, to + 1, scope);
		return;
	}
	if (gdk_state_status(st))
		return;
	/* WQEs, then ready bits. */
	gdk_fence_rel(scope);
	if (!gdk_publish(st, from, to, scope))
		return;
	/* The token was taken from `from`; who wants more is seen, or sees it left. */
	gdk_fence_sc(scope);
	gdk_serve(qp, st, from, 0, scope, handler, none);
}

/* Has all slots below pi rung: now, or when the last of them is published. */
GDK_FN void gdk_submit(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, gdk_mode_t mode,
		       gdk_handler_t handler, uint32_t code_opt)
{
	const struct gdk_bf_source none = { NULL, 0 };

	if (!(code_opt & GDK_OPT_SKIP_DB))
		gdk_want(qp, gdk_state_of_qp(qp), pi, gdk_mode_scope(mode), handler, none);
}

/* As gdk_submit; wqe is a copy of the last WQE, in shared memory on a GPU. */
GDK_FN void gdk_submit_bf(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, const void *wqe,
			  gdk_mode_t mode, uint32_t code_opt)
{
	const struct gdk_bf_source src = { wqe, pi - 1 };

	if (!(code_opt & GDK_OPT_SKIP_DB))
		gdk_want(qp, gdk_state_of_qp(qp), pi, gdk_mode_scope(mode),
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF, src);
}

/*
 * For a warp that copies the WQE itself: true if slot pi - 1 alone is to be rung, by
 * BlueFlame. The caller then holds the token, and all but the register is written.
 */
GDK_FN int gdk_bf_begin(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			uint64_t pi, int scope)
{
	const struct gdk_bf_source none = { NULL, 0 };
	uint64_t rung;

	if (gdk_ldc32(GDK_QP_AT(qp, nic_handler)) != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF ||
	    gdk_state_status(st))
		return 0;
	if (scope == GDK_SCOPE_THREAD) {
		if (gdk_ld64(&st->rung, scope) + 1 != pi)
			return 0;
		gdk_move_token(st, pi - 1, pi);
		gdk_st64x2((uint64_t *)(void *)&st->left, 0, 0, scope);
	} else {
		gdk_rmw_max64(&st->wanted, pi, scope);
		/* wanted, then left: see ring_dev.h */
		gdk_fence_sc(scope);
		if (!gdk_rmw_xchg32(&st->left, 0, scope))
			return 0;
		gdk_fence_sc(scope);
		rung = gdk_ld64(&st->rung, scope);
		if (rung + 1 != pi || gdk_scan_ready(st, rung, scope) != pi) {
			gdk_serve(qp, st, rung, 1, scope, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF,
				  none);
			return 0;
		}
	}
	if (gdk_debug_refuses(qp, st, pi - 1, pi))
		return 0;
	gdk_st64(&st->rung, pi, GDK_SCOPE_GPU);
	gdk_dbrec_store(qp, pi);
	gdk_add64(&st->doorbells, 1, scope);
	/* Record, then register: a NIC that lost a doorbell reads the record. */
	gdk_fence_rel(gdk_nic_scope(st));
	return 1;
}

/* The register is written: the token goes on. */
GDK_FN void gdk_bf_end(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
		       uint64_t pi, int scope)
{
	const struct gdk_bf_source none = { NULL, 0 };

	if (scope != GDK_SCOPE_THREAD && !gdk_park(st, pi, scope))
		gdk_serve(qp, st, pi, 0, scope, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF, none);
}

/* As gdk_submit_bf, by all lanes of a warp with the same arguments; wqe is anywhere. */
GDK_FN void gdk_submit_bf_warp(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi,
			       const void *wqe, gdk_mode_t mode, uint32_t code_opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const int scope = gdk_mode_scope(mode);
	int copies = 0;

	if (code_opt & GDK_OPT_SKIP_DB)
		return;
	gdk_syncwarp();
	if (gdk_lane() == 0) {
		copies = gdk_bf_begin(qp, st, pi, scope);
		if (!copies)
			gdk_submit(qp, pi, mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF, 0);
	}
	if (gdk_shfl64((uint64_t)copies, 0)) {
		gdk_bf_store_warp(qp, st, wqe, scope);
		if (gdk_lane() == 0)
			gdk_bf_end(qp, st, pi, scope);
	}
	gdk_syncwarp();
}

/* Publish and submit in one. */
GDK_FN void gdk_post(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
		     gdk_mode_t mode, gdk_handler_t handler, uint32_t code_opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_bf_source none = { NULL, 0 };
	const int scope = gdk_mode_scope(mode);
	uint64_t left, written;

	if (code_opt & GDK_OPT_SKIP_DB) {
		gdk_mark_ready(qp, from, to, mode, handler);
		return;
	}
	if (mode == GDK_EXCLUSIVE) {
		gdk_ring_exclusive(qp, st, to + 1, handler, none);
		return;
	}
	gdk_rmw_max64(&st->wanted, to + 1, scope);
	/* WQEs, then ready bits; and wanted, then left. */
	gdk_fence_sc(scope);
	gdk_ld64x2((const uint64_t *)(const void *)&st->left, &left, &written, scope);
	if (gdk_publish(st, from, to, scope)) {
		gdk_fence_acq(scope);
		gdk_serve(qp, st, from, 1, scope, handler, none);
	} else if (left | written) {
		gdk_take_left(qp, st, scope, handler, none);
	}
}

#endif
