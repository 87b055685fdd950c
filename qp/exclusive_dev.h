/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Exclusive use: one thread posts and rings, without a single atomic access. It keeps the
 * token, and leaves behind what shared use expects, so that either may follow the other.
 */
#ifndef GDK_EXCLUSIVE_DEV_H
#define GDK_EXCLUSIVE_DEV_H

#include "../../device/gdk/ring_dev.h"

/* What a thread that posts reads early, so that it need not wait for it later. */
struct gdk_early {
	uint64_t rung, doorbells;
	uint64_t parked;	/* shared use */
	uint64_t left, written; /* exclusive use */
};

GDK_FN struct gdk_early gdk_early_of(struct gdk_qp_state *st, int scope)
{
	struct gdk_early x = { 0, 0, 0, 0, 0 };

	gdk_ld64x2(&st->rung, &x.rung, &x.doorbells, scope);
	if (scope != GDK_SCOPE_THREAD)
		x.parked = gdk_ld64(&st->parked, scope);
	else
		gdk_ld64x2((const uint64_t *)(const void *)&st->left, &x.left, &x.written, scope);
	return x;
}

/* The ready bits of the word of slot `last`, with all up to it published and none behind. Bits
 * beyond a ring shorter than a word come out as well, and nobody looks at them. */
GDK_FN uint32_t gdk_own_bits(const struct gdk_sq *q, uint64_t last)
{
	return ((2u << gdk_word_pos(q, last)) - 1) ^ (gdk_odd_lap(q, last) ? ~0u : 0);
}

/* Stores them, and that the token is not there. */
GDK_FN void gdk_own_store(const struct gdk_sq *q, uint64_t last)
{
	gdk_st64(gdk_word(q, last), gdk_own_bits(q, last), GDK_SCOPE_THREAD);
}

/* Exclusive use rang for [from, to): ready bits without a look at the words, for all below
 * `from` are published and none above. It takes the token out of its word, and keeps it. */
GDK_FN void gdk_own_words(const struct gdk_sq *q, uint32_t left, uint64_t from, uint64_t to)
{
	uint32_t n = (uint32_t)(to - from), room = gdk_word_left(q, from);

	if (!left) {
		gdk_st64(gdk_word(q, from), 0, GDK_SCOPE_THREAD);
		gdk_st32(&q->st->left, q->flags & GDK_QPF_SYS_SCOPE ? GDK_LEFT_SYS : GDK_LEFT_OWN,
			 GDK_SCOPE_THREAD);
	}
	for (; n > room; n -= room, room = gdk_word_left(q, to - n))
		gdk_own_store(q, to - n + room - 1);
	gdk_own_store(q, to - 1);
}

/* And what was written, but is rung now. */
GDK_FN void gdk_own_rung(const struct gdk_sq *q, uint32_t left, uint64_t written, uint64_t from,
			 uint64_t to)
{
	gdk_own_words(q, left, from, to);
	if (written && written <= to)
		gdk_st64(&q->st->written, 0, GDK_SCOPE_THREAD);
}

/* Shared use left published slots, maybe beyond pi: all go the way of shared use. */
GDK_SLOW_FN void gdk_ring_left(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			       uint64_t pi, gdk_handler_t handler, struct gdk_bf_source src)
{
	gdk_st64(&st->written, pi, GDK_SCOPE_GPU);
	gdk_red_max64(&st->wanted, pi, GDK_SCOPE_GPU);
	gdk_take_left(qp, st, GDK_SCOPE_GPU, handler, src);
}

/*
 * Rings for all below pi with one fence: WQEs, fence, then rung, record and
 * register, which nothing orders among each other. A NIC takes the index from the
 * doorbell; only one that lost it reads the record, which is then on its way: the
 * next doorbell follows the record by its fence, and gdk_settle rings again where
 * the thread waits and no doorbell came after.
 */
GDK_FN void gdk_ring_exclusive(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			       const struct gdk_early *x, uint64_t pi, gdk_handler_t handler,
			       struct gdk_bf_source src)
{
	const int h = gdk_handler(qp, handler), own = GDK_SCOPE_THREAD;
	const int proxy = h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	const struct gdk_db db = gdk_db_of(qp, pi);
	uint64_t doorbells;

	if ((uint32_t)x->left == GDK_LEFT) {
		gdk_ring_left(qp, q->st, pi, handler, src);
		return;
	}
	if (pi <= x->rung || gdk_debug_refuses(qp, q->st, x->rung, pi))
		return;
	doorbells = x->doorbells + !proxy;
	GDK_COMPUTED(doorbells);
	gdk_fence_rel(gdk_sq_scope(q));
	gdk_st64x2(&q->st->rung, pi, doorbells, own);
	if (proxy) {
		gdk_counter_store(&db, pi);
	} else {
		if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
			gdk_dbrec_store(&db);
		if (gdk_is_bf(x->rung, pi, h)) /* nobody else writes the slot meanwhile */
			gdk_bf_send(qp, q->st, gdk_bf_wqe(qp, x->rung, src), own);
		else
			gdk_db_store(&db);
	}
	gdk_own_rung(q, (uint32_t)x->left, x->written, x->rung, pi);
}

/* Record, then register, for the last doorbell: see gdk_ring_exclusive. */
GDK_SLOW_FN void gdk_settle(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st)
{
	const int h = (int)gdk_ldc32(GDK_QP_AT(qp, nic_handler)), own = GDK_SCOPE_THREAD;
	const uint64_t rung = gdk_ld64(&st->rung, own);
	const struct gdk_db db = gdk_db_of(qp, rung);

	if (rung == gdk_ld64(&st->settled, own) || gdk_state_status(st))
		return;
	gdk_st64(&st->settled, rung, own);
	if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB &&
	    h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF)
		return;
	gdk_fence_rel(gdk_nic_scope(st));
	gdk_db_store(&db);
	gdk_add64(&st->doorbells, 1, own);
	gdk_add64(&st->bare_rings, 1, own);
}

#endif
