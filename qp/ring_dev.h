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
 * Why it is fast (cycles of an H200): a put of a whole warp costs one add (287),
 * one fence (380) and one read-modify-write (287), and the ringer's work is shared by
 * all slots published meanwhile: 256 ready bits are one load latency (271). What is
 * avoided: an atomic with acquire and release (667), a fence of system scope (1017 even
 * when nothing is outstanding), atomics to host memory (over 2000). Exclusive use has
 * one fence and weak loads (50, from the first-level cache), issued together.
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

/* What never changes, read once: the loads are in flight together. */
struct gdk_sq {
	struct gdk_qp_state *st;
	uint64_t *words;
	uint32_t flags, depth, depth_log2;
};

GDK_FN struct gdk_sq gdk_sq_at(struct gdk_qp_state *st)
{
	uint64_t first, second;
	struct gdk_sq q;

	gdk_ldc64x2(st, &first, &second);
	q.st = st;
	q.flags = (uint32_t)first;
	q.depth = (uint32_t)(first >> 32);
	q.depth_log2 = (uint32_t)second;
	q.words = (uint64_t *)(uintptr_t)gdk_ldc64(&st->words);
	return q;
}

GDK_FN struct gdk_sq gdk_sq_of(const struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_sq_at(gdk_state_of_qp(qp));
}

GDK_FN int gdk_sq_scope(const struct gdk_sq *q)
{
	return q->flags & GDK_QPF_SYS_SCOPE ? GDK_SCOPE_SYS : GDK_SCOPE_GPU;
}

/* ---- ready and token bits ---- */

GDK_FN uint64_t *gdk_word(const struct gdk_sq *q, uint64_t idx)
{
	return q->words + (((uint32_t)idx & (q->depth - 1)) / GDK_WORD_SLOTS);
}

GDK_FN uint32_t gdk_word_pos(const struct gdk_sq *q, uint64_t idx)
{
	return (uint32_t)idx & (q->depth - 1) & (GDK_WORD_SLOTS - 1);
}

/* Slots from idx to the end of its word, or of the ring if that is shorter. */
GDK_FN uint32_t gdk_word_left(const struct gdk_sq *q, uint64_t idx)
{
	return (q->depth < GDK_WORD_SLOTS ? q->depth : GDK_WORD_SLOTS) - gdk_word_pos(q, idx);
}

GDK_FN int gdk_odd_lap(const struct gdk_sq *q, uint64_t idx)
{
	return (int)(idx >> q->depth_log2) & 1;
}

/* n slots from idx, all in one word. */
GDK_FN uint32_t gdk_slot_bits(const struct gdk_sq *q, uint64_t idx, uint32_t n)
{
	return (uint32_t)(((uint64_t)1 << n) - 1) << gdk_word_pos(q, idx);
}

/* What a word's value says: how many slots from idx on are published. */
GDK_FN uint32_t gdk_word_run(const struct gdk_sq *q, uint64_t idx, uint64_t word)
{
	const uint32_t left = gdk_word_left(q, idx);
	uint32_t gaps = gdk_odd_lap(q, idx) ? (uint32_t)word : ~(uint32_t)word;

	gaps >>= gdk_word_pos(q, idx);
	gaps = gaps ? gdk_ctz32(gaps) : left;
	return gaps < left ? gaps : left;
}

GDK_FN int gdk_is_ready(const struct gdk_sq *q, uint64_t idx, int scope)
{
	return gdk_word_run(q, idx, gdk_ld64(gdk_word(q, idx), scope)) != 0;
}

/* Publishes n slots from idx, all in one word. True: the token was parked at one
 * of them and is the caller's now. */
GDK_FN int gdk_publish_word(const struct gdk_sq *q, uint64_t idx, uint32_t n, int scope)
{
	const uint64_t bits = gdk_slot_bits(q, idx, n);
	uint64_t *word = gdk_word(q, idx);
	uint64_t old;

	if (gdk_odd_lap(q, idx))
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
GDK_FN int gdk_publish(const struct gdk_sq *q, uint64_t from, uint64_t to, int scope)
{
	const uint32_t n = (uint32_t)(to - from) + 1, room = gdk_word_left(q, from);
	const uint32_t first = n < room ? n : room;
	uint32_t at, len;

	for (at = first; at < n; at += len) {
		len = gdk_word_left(q, from + at);
		if (len > n - at)
			len = n - at;
		/* The token is at or before `from`, so it cannot be found here. */
		(void)gdk_publish_word(q, from + at, len, scope);
	}
	if (n > first)
		gdk_fence_rel(scope);
	return gdk_publish_word(q, from, first, scope);
}

/* First slot at or after i that is not published; at most one lap is looked at. */
GDK_FN uint64_t gdk_scan_ready(const struct gdk_sq *q, uint64_t i, int scope)
{
	const uint64_t start = i, end = i + q->depth;
	uint64_t word[GDK_SCAN], at;
	uint32_t n, run, left;

	for (;;) {
		for (n = 0, at = i; n < GDK_SCAN; n++) {
			word[n] = gdk_ld64(gdk_word(q, at), scope);
			at += gdk_word_left(q, at);
		}
		for (n = 0; n < GDK_SCAN; n++) {
			left = gdk_word_left(q, i);
			run = gdk_word_run(q, i, word[n]);
			i += run;
			if (i >= end)
				return end;
			if (run < left)
				break;
		}
		if (n == GDK_SCAN)
			continue;
		/* Loads are not ordered: a range whose first word was seen may go on
		 * in this one. Publisher: later words, fence, first word. Here: first
		 * word, fence, this word again. */
		if (i == start || gdk_word_pos(q, i) != 0)
			return i;
		gdk_fence_acq(scope);
		if (!gdk_is_ready(q, i, scope))
			return i;
	}
}

/* ---- ringing ---- */

/* The register, or the WQE itself when it is the only one that is not rung. */
GDK_FN void gdk_ring_register(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			      uint64_t from, uint64_t to, int scope, int handler,
			      struct gdk_bf_source src)
{
	if (handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF && to - from == 1)
		gdk_bf_store(qp, st, src.wqe && src.index == from ?
			     src.wqe : (const void *)gdk_get_wqe_ptr(qp, from), scope);
	else
		gdk_db_store(qp, to);
}

/*
 * What comes before the register: rung, record; false: nothing does (a proxy's counter
 * is raised here, or a WQE is refused). rung is stored before the doorbell: a
 * completion is understood relative to it, and must find it raised (here: rung, fence,
 * doorbell; there: CQE, fence, rung).
 */
GDK_FN int gdk_ring_record(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			   uint64_t from, uint64_t to, int scope, int handler)
{
	if (gdk_debug_refuses(qp, q->st, from, to))
		return 0;
	gdk_st64(&q->st->rung, to, GDK_SCOPE_GPU);
	if (handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
		gdk_fence_rel(GDK_SCOPE_SYS);
		gdk_counter_store(qp, to);
		return 0;
	}
	if (handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR) {
		/* WQEs, then the record, which a NIC may read on its own account.
		 * Publishers fenced after their WQEs, so in this GPU's memory they
		 * are where the NIC reads; host memory needs the wider fence. */
		if (q->flags & GDK_QPF_SYS_SCOPE)
			gdk_fence_rel(GDK_SCOPE_SYS);
		gdk_dbrec_store(qp, to);
	}
	gdk_add64(&q->st->doorbells, 1, scope);
	/* Record, then register: a NIC that lost a doorbell reads the record. */
	gdk_fence_rel(gdk_sq_scope(q));
	return 1;
}

/* Hands slots from `from` up to `to` to the NIC. */
GDK_FN void gdk_ring(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q, uint64_t from,
		     uint64_t to, int scope, gdk_handler_t handler, struct gdk_bf_source src)
{
	const int h = gdk_handler(qp, handler);

	if (gdk_ring_record(qp, q, from, to, scope, h))
		gdk_ring_register(qp, q->st, from, to, scope, h, src);
}

/* Parks the token at slot r, which was not published when looked at. False: it is
 * by now, and its publisher saw no token: the caller still holds it. */
GDK_FN int gdk_park(const struct gdk_sq *q, uint64_t r, int scope)
{
	const uint64_t token = GDK_TOKEN(gdk_word_pos(q, r));
	uint64_t *word = gdk_word(q, r);

	/* rung was stored before the doorbell's fence: the next holder sees it. */
	if (!gdk_word_run(q, r, gdk_rmw_or64(word, token, scope)))
		return 1;
	gdk_rmw_and64(word, ~token, scope);
	return 0;
}

/* The next holder may be anybody who wants a slot above r. False: somebody does,
 * and the caller holds the token again; rung may have moved in between. */
GDK_FN int gdk_leave(struct gdk_qp_state *st, uint64_t r, int scope)
{
	/* rung may be an earlier holder's, then left: the next holder sees both. */
	gdk_fence_rel(scope);
	gdk_st32(&st->left, 1, scope);
	if (gdk_state_status(st))
		return 1;
	/* left, then wanted; there: wanted, then left. One sees the other. */
	gdk_fence_sc(scope);
	return gdk_ld64(&st->wanted, scope) <= r || !gdk_rmw_xchg32(&st->left, 0, scope);
}

/*
 * What the holder of the token does; slots below r are rung, those below e known to
 * be published (e == r: none known). wanted: some of them certainly are. Nothing is
 * rung on a dead QP. Out of line: few of those who post come here, and it would cost
 * all of them registers.
 */
GDK_SLOW_FN void gdk_serve(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			   uint64_t r, uint64_t e, int wanted, int scope, gdk_handler_t handler,
			   struct gdk_bf_source src)
{
	const struct gdk_sq q = gdk_sq_at(st);

	do {
		if (e == r)
			e = gdk_scan_ready(&q, r, scope);
		if (e == r)
			continue;
		wanted = (wanted || gdk_ld64(&st->wanted, scope) > r) && !gdk_state_status(st);
		/* Publisher: WQE, fence, ready bits. Here: bits, fence, ring. */
		gdk_fence_acq(scope);
		if (wanted) {
			gdk_ring(qp, &q, r, e, scope, handler, src);
			r = e;
			wanted = 0;
		} else {
			if (gdk_leave(st, r, scope))
				return;
			r = e = gdk_ld64(&st->rung, scope);
		}
	} while (e != r || !gdk_park(&q, r, scope));
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
	const struct gdk_sq q = gdk_sq_at(st);
	uint64_t rung;

	gdk_fence_acq(scope);
	rung = gdk_ld64(&st->rung, scope);
	if (written > rung) {
		gdk_fence_rel(scope);
		held |= gdk_publish(&q, rung, written - 1, scope);
	}
	if (!held)
		return;
	gdk_fence_sc(scope);
	rung = gdk_ld64(&st->rung, scope);
	gdk_serve(qp, st, rung, rung, 0, scope, handler, src);
}

/* ---- exclusive use ---- */

/*
 * One thread owns everything: ready bits follow when it rings, with plain accesses,
 * so that shared use may come after. The token goes from `from` to `to`.
 */
GDK_SLOW_FN void gdk_move_token(struct gdk_qp_state *st, uint64_t from, uint64_t to)
{
	const struct gdk_sq q = gdk_sq_at(st);
	uint64_t clear = GDK_TOKEN(gdk_word_pos(&q, from)), i = from, word;
	uint32_t n, left, bits;

	gdk_st64x2((uint64_t *)(void *)&st->left, 0, 0, GDK_SCOPE_THREAD);
	do {
		left = gdk_word_left(&q, i);
		n = (uint32_t)(to - i < left ? to - i : left);
		bits = gdk_slot_bits(&q, i, n);
		word = gdk_ld64(gdk_word(&q, i), GDK_SCOPE_THREAD) & ~clear;
		word = gdk_odd_lap(&q, i) ? word & ~(uint64_t)bits : word | bits;
		if (n < left)
			word |= GDK_TOKEN(gdk_word_pos(&q, to));
		gdk_st64(gdk_word(&q, i), word, GDK_SCOPE_THREAD);
		clear = 0;
		i += n;
	} while (n == left);
}

/* What an exclusive user reads before it rings, early so that nothing waits. */
struct gdk_excl {
	uint64_t rung, doorbells, left, written;
};

GDK_FN struct gdk_excl gdk_excl_of(struct gdk_qp_state *st)
{
	struct gdk_excl x;

	gdk_ld64x2(&st->rung, &x.rung, &x.doorbells, GDK_SCOPE_THREAD);
	gdk_ld64x2((const uint64_t *)(const void *)&st->left, &x.left, &x.written,
		   GDK_SCOPE_THREAD);
	return x;
}

/*
 * Rings for all below pi with one fence: WQEs, fence, then rung, record and
 * register, which nothing orders among each other. A NIC takes the index from the
 * doorbell; only one that lost it reads the record, which is then on its way: the
 * next doorbell follows the record by its fence, and gdk_settle rings again where
 * the thread waits and no doorbell came after.
 */
GDK_FN void gdk_ring_exclusive(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			       const struct gdk_excl *x, uint64_t pi, gdk_handler_t handler,
			       struct gdk_bf_source src)
{
	const int h = gdk_handler(qp, handler), own = GDK_SCOPE_THREAD;
	const int proxy = h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	const uint32_t n = (uint32_t)(pi - x->rung), pos = gdk_word_pos(q, x->rung);
	uint64_t *word = gdk_word(q, x->rung);
	uint64_t bits;

	if (pi <= x->rung || gdk_debug_refuses(qp, q->st, x->rung, pi))
		return;
	if (!(x->left | x->written) && n < gdk_word_left(q, x->rung)) {
		/* All in one word: its ready bits turn, the token moves by n. */
		bits = (((uint64_t)1 << n) - 1) | (uint64_t)(1u | 1u << n) << GDK_WORD_SLOTS;
		gdk_st64(word, gdk_ld64(word, own) ^ bits << pos, own);
	} else {
		gdk_move_token(q->st, x->rung, pi);
	}
	gdk_fence_rel(proxy ? GDK_SCOPE_SYS : gdk_sq_scope(q));
	gdk_st64x2(&q->st->rung, pi, x->doorbells + !proxy, own);
	if (proxy) {
		gdk_counter_store(qp, pi);
		return;
	}
	if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
		gdk_dbrec_store(qp, pi);
	gdk_ring_register(qp, q->st, x->rung, pi, own, h, src);
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
