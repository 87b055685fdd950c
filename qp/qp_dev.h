/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Slots of the send queue: reserve, publish, ring, by any number of threads.
 *
 * A thread reserves slots by an addition, writes its WQEs, and publishes each
 * slot by writing the slot's lap to its ready word; nobody waits for who came
 * before. submit(p) raises `wanted` to p. Whoever changes ready words or wanted
 * then adds an event to `pending`; who finds it 0 has the ringer's role.
 *
 * No doorbell is lost. Publisher and submitter: store (ready, wanted), then
 * add an event (acq_rel). Ringer: load wanted and ready, ring, then subtract
 * the events it knew of (acq_rel) and leave only if that gives 0. Both sides
 * meet on that one word. An event added before the subtraction keeps it above
 * 0, so the ringer looks again, and having read the event it sees the store;
 * one added after finds 0 and its thread becomes the ringer. So if slot k was
 * published late and without a doorbell, with k+1 wanted meanwhile, k's
 * publisher rings both.
 */
#ifndef GDK_QP_DEV_H
#define GDK_QP_DEV_H

#include "bf_dev.h"
#include "cpu_proxy_dev.h"
#include "debug_dev.h"

#define GDK_EXCLUSIVE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define GDK_OPT_SKIP_CHECK DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK
#define GDK_OPT_SKIP_DB DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING
#define GDK_SCAN 8 /* ready words in flight at once */

GDK_FN struct doca_gpu_dev_verbs_wqe *gdk_get_wqe_ptr(const struct doca_gpu_dev_verbs_qp *qp,
						      uint64_t idx)
{
	const uint64_t mask = gdk_ldc16(GDK_QP_AT(qp, sq_wqe_mask));
	const uint64_t base = gdk_ldc64(GDK_QP_AT(qp, sq_wqe_daddr));

	return (struct doca_gpu_dev_verbs_wqe *)(uintptr_t)(base + ((idx & mask) << 6));
}

GDK_FN uint64_t *gdk_rsvd_index(struct doca_gpu_dev_verbs_qp *qp)
{
	return (uint64_t *)(uintptr_t)GDK_QP_AT(qp, sq_rsvd_index);
}

/* The QP's own handler decides for AUTO, and whether BlueFlame is possible:
 * only then are 64 bytes of the register mapped. */
GDK_FN int gdk_handler(const struct doca_gpu_dev_verbs_qp *qp,
		       enum doca_gpu_dev_verbs_nic_handler handler)
{
	if (handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO ||
	    handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF)
		return (int)gdk_ldc32(GDK_QP_AT(qp, nic_handler));
	return handler;
}

/* A WQE for BlueFlame that its submitter also holds elsewhere (shared memory). */
struct gdk_bf_source {
	const void *wqe; /* NULL: the ring's */
	uint64_t index;
};

/*
 * Hands [from, to) to the NIC. rung is stored first: a completion is understood
 * relative to rung, and must find it raised (here: rung, fence, doorbell; there:
 * CQE, fence, rung).
 */
GDK_FN void gdk_ring(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
		     uint64_t from, uint64_t to, int scope,
		     enum doca_gpu_dev_verbs_nic_handler handler, struct gdk_bf_source src)
{
	const int h = gdk_handler(qp, handler);

	if (gdk_debug_refuses(qp, st, from, to))
		return;
	gdk_st64_rel(&st->rung, to, GDK_SCOPE_GPU);
	if (h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
		gdk_ring_counter(qp, to, scope);
		return;
	}
	if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
		gdk_ring_record(qp, st, to, scope);
	if (h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF && to - from == 1)
		gdk_ring_blueflame(qp, st, src.wqe && src.index == from ?
				   src.wqe : (const void *)gdk_get_wqe_ptr(qp, from), scope);
	else
		gdk_ring_register(qp, st, to, scope);
}

GDK_FN uint32_t gdk_lap(const struct gdk_qp_state *st, uint64_t idx)
{
	return (uint32_t)(idx >> gdk_ldc32(&st->depth_log2)) + 1;
}

GDK_FN uint32_t *gdk_ready_word(const struct gdk_qp_state *st, uint64_t idx)
{
	uint32_t *ready = (uint32_t *)(uintptr_t)gdk_ldc64(&st->ready);

	return ready + (idx & (gdk_ldc32(&st->depth) - 1));
}

GDK_FN int gdk_is_ready(const struct gdk_qp_state *st, uint64_t idx, int scope)
{
	return gdk_ld32(gdk_ready_word(st, idx), scope) == gdk_lap(st, idx);
}

/*
 * First index in [i, end] that is not published, or end. A range is published
 * last slot first, the first slot after a fence; having seen the first slot and
 * then fenced, the look after the fence sees the whole range, so a doorbell
 * never cuts a WQE of several slots.
 */
GDK_FN uint64_t gdk_scan_ready(const struct gdk_qp_state *st, uint64_t i, uint64_t end, int scope)
{
	uint32_t word[GDK_SCAN], n;

	while (i < end) {
		for (n = 0; n < GDK_SCAN; n++)
			word[n] = gdk_ld32(gdk_ready_word(st, i + n), scope);
		for (n = 0; n < GDK_SCAN && i < end && word[n] == gdk_lap(st, i); n++)
			i++;
		if (n == GDK_SCAN)
			continue;
		/* Publisher: WQE, fence, ready. Here: ready, fence, ring. */
		gdk_fence_acq(scope);
		if (i == end || !gdk_is_ready(st, i, scope))
			return i;
	}
	gdk_fence_acq(scope);
	return i;
}

/* What the holder of the role does once; nothing more is rung on a dead QP. */
GDK_FN void gdk_ring_round(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			   int scope, enum doca_gpu_dev_verbs_nic_handler handler,
			   struct gdk_bf_source src)
{
	const uint64_t from = gdk_ld64(&st->rung, scope);
	const uint64_t end = gdk_ld64(&st->wanted, scope);
	uint64_t to;

	if (end <= from || gdk_state_status(st))
		return;
	to = gdk_scan_ready(st, from, end, scope);
	if (to > from)
		gdk_ring(qp, st, from, to, scope, handler, src);
}

/* Announces a store to ready words or wanted; takes the role if it is free. */
GDK_FN void gdk_event(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st, int scope,
		      enum doca_gpu_dev_verbs_nic_handler handler, struct gdk_bf_source src)
{
	uint32_t served = 1;

	if (gdk_rmw_add32_acq_rel(&st->pending, 1, scope))
		return;
	do {
		gdk_ring_round(qp, st, scope, handler, src);
		served = gdk_rmw_add32_acq_rel(&st->pending, 0u - served, scope) - served;
	} while (served);
}

/* Writes the ready words of [from, to]; the caller adds the event. */
GDK_FN void gdk_publish(const struct gdk_qp_state *st, uint64_t from, uint64_t to, int scope)
{
	uint64_t i;

	if (to > from) {
		gdk_fence_rel(scope);
		for (i = to; i > from; i--)
			gdk_st32(gdk_ready_word(st, i), gdk_lap(st, i), scope);
	}
	/* WQEs and the other ready words, then the first: see gdk_scan_ready. */
	gdk_fence_rel(scope);
	gdk_st32(gdk_ready_word(st, from), gdk_lap(st, from), scope);
}

/* Raises wanted to pi and sees to it that it is served. Exclusive: the caller
 * published all below pi, and rings at once. */
GDK_FN void gdk_want(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st, uint64_t pi,
		     int scope, enum doca_gpu_dev_verbs_nic_handler handler,
		     struct gdk_bf_source src)
{
	uint64_t rung;

	if (scope != GDK_SCOPE_THREAD) {
		gdk_max64(&st->wanted, pi, scope);
		gdk_event(qp, st, scope, handler, src);
		return;
	}
	rung = gdk_ld64(&st->rung, scope);
	if (pi > rung && !gdk_state_status(st))
		gdk_ring(qp, st, rung, pi, scope, handler, src);
}

/* As gdk_want, for waiters, who know only that others shall publish. */
GDK_SLOW_FN void gdk_want_published(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			       uint64_t pi, int scope)
{
	const struct gdk_bf_source none = { NULL, 0 };

	if (gdk_ld64(&st->rung, scope) >= pi)
		return;
	if (scope == GDK_SCOPE_THREAD)
		pi = gdk_scan_ready(st, gdk_ld64(&st->rung, scope), pi, scope);
	gdk_want(qp, st, pi, scope, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, none);
}

/*
 * Reserves n slots; *idx is the first, also when an error is returned: the
 * caller then writes no slot. A thread that has to wait for its slots first has
 * everything before them rung as it is published, else it might wait for ever.
 * A failed wait ends the QP: its slots would stay a hole.
 */
GDK_FN int gdk_reserve(struct doca_gpu_dev_verbs_qp *qp, uint32_t n,
		       enum doca_gpu_dev_verbs_resource_sharing_mode mode, uint32_t code_opt,
		       uint64_t *idx)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const int scope = gdk_mode_scope(mode);
	const uint32_t depth = gdk_ldc32(&st->depth);
	uint64_t need;
	int err;

	if (n == 0 || n > depth) {
		*idx = gdk_ld64(gdk_rsvd_index(qp), scope);
		return -EINVAL;
	}
	*idx = gdk_add64(gdk_rsvd_index(qp), n, scope);
	need = *idx + n;
	err = gdk_state_status(st);
	if (err || code_opt & GDK_OPT_SKIP_CHECK || need <= depth)
		return err;
	need -= depth;
	if (gdk_ld64_acq(&st->completed, scope) >= need)
		return 0;
	gdk_want_published(qp, st, *idx, scope);
	err = gdk_wait_completed(st, gdk_qp_cq(qp), need, scope,
				 gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU));
	return err ? gdk_state_end(st, err) : 0;
}

/* Publishes [from, to], whose WQEs are written. */
GDK_FN void gdk_mark_ready(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
			   enum doca_gpu_dev_verbs_resource_sharing_mode mode,
			   enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_bf_source none = { NULL, 0 };

	if (gdk_state_status(st))
		return;
	gdk_publish(st, from, to, gdk_mode_scope(mode));
	if (mode != GDK_EXCLUSIVE)
		gdk_event(qp, st, gdk_mode_scope(mode), handler, none);
}

/* Has all slots below pi rung: now, or when the last of them is published. */
GDK_FN void gdk_submit(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi,
		       enum doca_gpu_dev_verbs_resource_sharing_mode mode,
		       enum doca_gpu_dev_verbs_nic_handler handler, uint32_t code_opt)
{
	const struct gdk_bf_source none = { NULL, 0 };

	if (!(code_opt & GDK_OPT_SKIP_DB))
		gdk_want(qp, gdk_state_of_qp(qp), pi, gdk_mode_scope(mode), handler, none);
}

/* As gdk_submit; wqe is a copy of the last WQE, in shared memory on a GPU. */
GDK_FN void gdk_submit_bf(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, const void *wqe,
			  enum doca_gpu_dev_verbs_resource_sharing_mode mode, uint32_t code_opt)
{
	const struct gdk_bf_source src = { wqe, pi - 1 };

	if (!(code_opt & GDK_OPT_SKIP_DB))
		gdk_want(qp, gdk_state_of_qp(qp), pi, gdk_mode_scope(mode),
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF, src);
}

/* Publish and submit in one, with one event. */
GDK_FN void gdk_post(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
		     enum doca_gpu_dev_verbs_resource_sharing_mode mode,
		     enum doca_gpu_dev_verbs_nic_handler handler, uint32_t code_opt)
{
	if (mode == GDK_EXCLUSIVE || !(code_opt & GDK_OPT_SKIP_DB)) {
		gdk_publish(gdk_state_of_qp(qp), from, to, gdk_mode_scope(mode));
		gdk_submit(qp, to + 1, mode, handler, code_opt);
	} else {
		gdk_mark_ready(qp, from, to, mode, handler);
	}
}

#endif
