/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Publish and ring, by any number of threads; qp_dev.h has what callers use.
 *
 * A thread reserves slots by an addition, writes its WQEs, and publishes them by
 * one read-modify-write of the word that holds their ready bits; nobody waits
 * for who came before. Who rings is settled by a token:
 *   held    by one thread, which alone writes rung, record and register;
 *   parked  at slot `rung`, which is not published: the token bit is set, and
 *           the slot's publisher finds it in the old value of its own RMW;
 *   left    (left == 1) where slot `rung` is published but nobody wanted it:
 *           taken by exchanging `left`.
 * The holder rings all that is published without a gap and parks at the gap.
 *
 * No doorbell is lost. Publisher and parking holder meet on the slot's word: if
 * the holder parks first the publisher sees the token, else the holder sees the
 * slot published and goes on. Who leaves the token and who wants a slot rung meet
 * by sequentially consistent fences: left = 1, fence, wanted here; wanted, fence,
 * left there. So if slot k is published late and without a doorbell, with k+1
 * wanted meanwhile, k's publisher rings both. qp/state.h has the words; the model
 * in tests/model says what breaks without each fence.
 *
 * Order: WQEs of one thread execute in the order in which it reserved them, and
 * all WQEs of a QP in the order of their indices, each once.
 *
 * Why it is fast (H200, 1.98 GHz): a put of a whole warp costs one add (145 ns),
 * one fence (190 ns) and one RMW (145 ns), and the ringer's work is shared by all
 * slots that were published meanwhile: 256 ready bits are one load latency. A
 * fence of system scope takes 510 ns even when nothing is outstanding, an atomic
 * with acquire and release 340 ns, a relaxed one 145 ns, an exclusive (weak) load
 * 25 ns.
 */
#ifndef GDK_RING_DEV_H
#define GDK_RING_DEV_H

#include "bf_dev.h"
#include "cpu_proxy_dev.h"
#include "debug_dev.h"

#define GDK_EXCLUSIVE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define GDK_OPT_SKIP_CHECK DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK
#define GDK_OPT_SKIP_DB DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING
#define GDK_SCAN 8 /* words in flight at once */

typedef enum doca_gpu_dev_verbs_resource_sharing_mode gdk_mode_t;
typedef enum doca_gpu_dev_verbs_nic_handler gdk_handler_t;

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
GDK_FN int gdk_handler(const struct doca_gpu_dev_verbs_qp *qp, gdk_handler_t handler)
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

/* ---- ready and token bits ---- */

GDK_FN uint64_t *gdk_word(const struct gdk_qp_state *st, uint64_t idx)
{
	uint64_t *words = (uint64_t *)(uintptr_t)gdk_ldc64(&st->words);

	return words + ((idx & (gdk_ldc32(&st->depth) - 1)) / GDK_WORD_SLOTS);
}

GDK_FN uint32_t gdk_word_pos(const struct gdk_qp_state *st, uint64_t idx)
{
	return (uint32_t)idx & (gdk_ldc32(&st->depth) - 1) & (GDK_WORD_SLOTS - 1);
}

/* Slots from idx to the end of its word, or of the ring if that is shorter. */
GDK_FN uint32_t gdk_word_left(const struct gdk_qp_state *st, uint64_t idx)
{
	const uint32_t depth = gdk_ldc32(&st->depth);

	return (depth < GDK_WORD_SLOTS ? depth : GDK_WORD_SLOTS) - gdk_word_pos(st, idx);
}

GDK_FN int gdk_odd_lap(const struct gdk_qp_state *st, uint64_t idx)
{
	return (int)(idx >> gdk_ldc32(&st->depth_log2)) & 1;
}

/* n slots from idx, all in one word. */
GDK_FN uint32_t gdk_slot_bits(const struct gdk_qp_state *st, uint64_t idx, uint32_t n)
{
	return (uint32_t)(((uint64_t)1 << n) - 1) << gdk_word_pos(st, idx);
}

/* What a word's value says: how many slots from idx on are published. */
GDK_FN uint32_t gdk_word_run(const struct gdk_qp_state *st, uint64_t idx, uint64_t word)
{
	const uint32_t left = gdk_word_left(st, idx);
	uint32_t gaps = gdk_odd_lap(st, idx) ? (uint32_t)word : ~(uint32_t)word;

	gaps >>= gdk_word_pos(st, idx);
	if (gaps)
		gaps = gdk_ctz32(gaps);
	else
		gaps = left;
	return gaps < left ? gaps : left;
}

GDK_FN int gdk_is_ready(const struct gdk_qp_state *st, uint64_t idx, int scope)
{
	return gdk_word_run(st, idx, gdk_ld64(gdk_word(st, idx), scope)) != 0;
}

/* Publishes n slots from idx, all in one word. True: the token was parked at one
 * of them and is the caller's now. */
GDK_FN int gdk_publish_word(const struct gdk_qp_state *st, uint64_t idx, uint32_t n, int scope)
{
	const uint64_t bits = gdk_slot_bits(st, idx, n);
	uint64_t *word = gdk_word(st, idx);
	uint64_t old;

	if (gdk_odd_lap(st, idx))
		old = gdk_rmw_and64(word, ~bits, scope);
	else
		old = gdk_rmw_or64(word, bits, scope);
	old &= bits << GDK_WORD_SLOTS;
	if (old)
		gdk_rmw_and64(word, ~old, scope);
	return old != 0;
}

/*
 * Publishes [from, to]; the caller fenced after writing the WQEs. The first word
 * goes last, after a fence: who sees slot `from` published and fences sees all, so
 * a doorbell never cuts a WQE of several slots.
 */
GDK_FN int gdk_publish(const struct gdk_qp_state *st, uint64_t from, uint64_t to, int scope)
{
	const uint32_t n = (uint32_t)(to - from) + 1, room = gdk_word_left(st, from);
	const uint32_t first = n < room ? n : room;
	uint32_t at, len;

	for (at = first; at < n; at += len) {
		len = gdk_word_left(st, from + at);
		if (len > n - at)
			len = n - at;
		/* The token is at or before `from`, so it cannot be found here. */
		(void)gdk_publish_word(st, from + at, len, scope);
	}
	if (n > first)
		gdk_fence_rel(scope);
	return gdk_publish_word(st, from, first, scope);
}

/* First slot at or after i that is not published; at most one lap is looked at. */
GDK_FN uint64_t gdk_scan_ready(const struct gdk_qp_state *st, uint64_t i, int scope)
{
	const uint64_t end = i + gdk_ldc32(&st->depth);
	uint64_t word[GDK_SCAN], at;
	uint32_t n, run, left;

	for (;;) {
		for (n = 0, at = i; n < GDK_SCAN; n++) {
			word[n] = gdk_ld64(gdk_word(st, at), scope);
			at += gdk_word_left(st, at);
		}
		for (n = 0; n < GDK_SCAN; n++) {
			left = gdk_word_left(st, i);
			run = gdk_word_run(st, i, word[n]);
			i += run;
			if (i >= end)
				return end;
			if (run < left)
				return i;
		}
	}
}

/* ---- ringing ---- */

/*
 * Hands slots below `to` to the NIC: rung, record, register. rung is stored before
 * the doorbell: a completion is understood relative to it, and must find it raised
 * (here: rung, fence, doorbell; there: CQE, fence, rung). The publishers fenced
 * between WQEs and ready bits and the holder fenced after the bits, so the record
 * follows the WQEs.
 */
GDK_FN void gdk_ring(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
		     uint64_t from, uint64_t to, int scope, gdk_handler_t handler,
		     struct gdk_bf_source src)
{
	const int h = gdk_handler(qp, handler);

	if (gdk_debug_refuses(qp, st, from, to))
		return;
	gdk_st64(&st->rung, to, GDK_SCOPE_GPU);
	if (h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
		gdk_fence_rel(GDK_SCOPE_SYS);
		gdk_counter_store(qp, to);
		return;
	}
	if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
		gdk_dbrec_store(qp, to);
	gdk_rmw_add64(&st->doorbells, 1, scope);
	/* Record, then register: a NIC that lost a doorbell reads the record. */
	gdk_fence_rel(gdk_nic_scope(st));
	if (h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF && to - from == 1)
		gdk_bf_store(qp, st, src.wqe && src.index == from ?
			     src.wqe : (const void *)gdk_get_wqe_ptr(qp, from), scope);
	else
		gdk_db_store(qp, to);
}

/* Parks the token at slot r, which was not published when looked at. False: it is
 * by now, and its publisher saw no token: the caller still holds it. */
GDK_FN int gdk_park(const struct gdk_qp_state *st, uint64_t r, int scope)
{
	const uint64_t token = GDK_TOKEN(gdk_word_pos(st, r));
	uint64_t *word = gdk_word(st, r);

	/* rung was stored before the doorbell's fence: the next holder sees it. */
	if (!gdk_word_run(st, r, gdk_rmw_or64(word, token, scope)))
		return 1;
	gdk_rmw_and64(word, ~token, scope);
	return 0;
}

/* The next holder may be anybody who wants a slot above r. False: somebody does,
 * and the caller holds the token again. */
GDK_FN int gdk_leave(struct gdk_qp_state *st, uint64_t r, int scope)
{
	gdk_st32(&st->left, 1, scope);
	if (gdk_state_status(st))
		return 1;
	/* left, then wanted; there: wanted, then left. One sees the other. */
	gdk_fence_sc(scope);
	return gdk_ld64(&st->wanted, scope) <= r || !gdk_rmw_xchg32(&st->left, 0, scope);
}

/* What the holder of the token does; r is rung. Nothing is rung on a dead QP. */
GDK_FN void gdk_serve(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st, uint64_t r,
		      int wanted, int scope, gdk_handler_t handler, struct gdk_bf_source src)
{
	uint64_t e;

	do {
		e = gdk_scan_ready(st, r, scope);
		if (e == r)
			continue;
		wanted = (wanted || gdk_ld64(&st->wanted, scope) > r) && !gdk_state_status(st);
		if (!wanted && gdk_leave(st, r, scope))
			return;
		/* Publisher: WQE, fence, ready bits. Here: bits, fence, ring. */
		gdk_fence_acq(scope);
		gdk_ring(qp, st, r, e, scope, handler, src);
		r = e;
		wanted = 0;
	} while (!gdk_park(st, r, scope));
}

/*
 * Takes the token if it was left, and serves. An exclusive user before may also have
 * gone with slots written that have no ready bits yet: one thread publishes them, and
 * finds the token, which is parked before the first of them.
 */
GDK_SLOW_FN void gdk_take_left(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			       int scope, gdk_handler_t handler, struct gdk_bf_source src)
{
	const uint64_t written = gdk_rmw_and64(&st->written, 0, scope);
	int held = gdk_rmw_xchg32(&st->left, 0, scope) != 0;

	gdk_fence_acq(scope);
	if (written > gdk_ld64(&st->rung, scope)) {
		gdk_fence_rel(scope);
		held |= gdk_publish(st, gdk_ld64(&st->rung, scope), written - 1, scope);
	}
	if (!held)
		return;
	gdk_fence_sc(scope);
	gdk_serve(qp, st, gdk_ld64(&st->rung, scope), 0, scope, handler, src);
}

/* ---- exclusive use ---- */

/* One thread owns everything: ready bits follow in bulk when it rings, with plain
 * accesses, so that shared use may come after. The token goes from `from` to `to`. */
GDK_FN void gdk_move_token(struct gdk_qp_state *st, uint64_t from, uint64_t to)
{
	uint64_t clear = GDK_TOKEN(gdk_word_pos(st, from)), i = from, word;
	uint32_t n, left, bits;

	do {
		left = gdk_word_left(st, i);
		n = (uint32_t)(to - i < left ? to - i : left);
		bits = gdk_slot_bits(st, i, n);
		word = gdk_ld64(gdk_word(st, i), GDK_SCOPE_THREAD) & ~clear;
		word = gdk_odd_lap(st, i) ? word & ~(uint64_t)bits : word | bits;
		if (n < left)
			word |= GDK_TOKEN(gdk_word_pos(st, to));
		gdk_st64(gdk_word(st, i), word, GDK_SCOPE_THREAD);
		clear = 0;
		i += n;
	} while (n == left);
}

/*
 * Rings for all below pi with one fence: WQEs, fence, then rung, record and
 * register, which nothing orders among each other. A NIC takes the index from the
 * doorbell; only one that lost it reads the record, which is then on its way: the
 * next doorbell follows the record by its fence, and gdk_settle rings again where
 * the thread waits and no doorbell came after.
 */
GDK_FN void gdk_ring_exclusive(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			       uint64_t pi, gdk_handler_t handler, struct gdk_bf_source src)
{
	const int h = gdk_handler(qp, handler), own = GDK_SCOPE_THREAD;
	const int proxy = h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	uint64_t rung, doorbells, left, written;

	gdk_ld64x2(&st->rung, &rung, &doorbells, own);
	gdk_ld64x2((const uint64_t *)(const void *)&st->left, &left, &written, own);
	if (pi <= rung || gdk_debug_refuses(qp, st, rung, pi))
		return;
	if (left | written)
		gdk_st64x2((uint64_t *)(void *)&st->left, 0, 0, own);
	gdk_move_token(st, rung, pi);
	gdk_fence_rel(proxy ? GDK_SCOPE_SYS : gdk_nic_scope(st));
	gdk_st64x2(&st->rung, pi, doorbells + !proxy, own);
	if (proxy) {
		gdk_counter_store(qp, pi);
		return;
	}
	if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
		gdk_dbrec_store(qp, pi);
	if (h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF && pi - rung == 1)
		gdk_bf_store(qp, st, src.wqe && src.index == rung ?
			     src.wqe : (const void *)gdk_get_wqe_ptr(qp, rung), own);
	else
		gdk_db_store(qp, pi);
}

/* Record, then register, for the last doorbell: see gdk_ring_exclusive. */
GDK_SLOW_FN void gdk_settle(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st)
{
	const int h = (int)gdk_ldc32(GDK_QP_AT(qp, nic_handler)), own = GDK_SCOPE_THREAD;
	const uint64_t rung = gdk_ld64(&st->rung, own);

	if (rung == gdk_ld64(&st->settled, own) || gdk_state_status(st))
		return;
	gdk_st64(&st->settled, rung, own);
	if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB &&
	    h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF)
		return;
	gdk_fence_rel(gdk_nic_scope(st));
	gdk_db_store(qp, rung);
	gdk_add64(&st->doorbells, 1, own);
	gdk_add64(&st->bare_rings, 1, own);
}

#endif
