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
 *   left    (left == 1) where slot `rung` is published but nobody wanted it,
 *           or (2, 3) with exclusive use: taken by exchanging `left`.
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
 * Successive holders' register stores are an L2 round trip and a fence apart, but
 * nothing orders them; a NIC ignores the older index, as NVIDIA's own headers expect,
 * whose doorbells without a record are stored by any thread without a lock.
 *
 * Why it is fast (H200; tests/bench/post.sh prints these costs). A put of a whole warp
 * to a QP that nobody else uses now is one add (170 to 250 ns, as near or far as its line
 * of the second-level cache is), a fence behind the WQEs (290), one behind the record (240),
 * and one read-modify-write that hands the token on (150), which is under way during that
 * fence where there is one; where the token is parked, it has read together with the add. What
 * never changes is read before the add, which takes the line of the QP's struct from the
 * first-level cache: a load behind it costs 220. Under contention it is one add, one fence
 * and one read-modify-write, and the ringer's work is shared by all slots published
 * meanwhile: 512 ready bits are one load latency (140).
 * Exclusive use has one fence (250, of a put's 400), loads from the first-level cache, and
 * one branch (one_dev.h). A fence costs the same however long ago the last store was, so that
 * nothing can be hidden behind it: what counts is how many instructions there are, 2 each.
 * Avoided are atomics that acquire and release (365 to 530),
 * fences of system scope (500 even when nothing is outstanding), atomics to host memory
 * (1050), and atomics by generic addresses, which wait for a result that nobody wants.
 */
#ifndef GDK_RING_DEV_H
#define GDK_RING_DEV_H

#include "../../device/gdk/bf_dev.h"
#include "../../device/gdk/cpu_proxy_dev.h"
#include "../../device/gdk/debug_dev.h"

#define GDK_EXCLUSIVE	   DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define GDK_OPT_SKIP_CHECK DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK
#define GDK_OPT_SKIP_DB	   DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING
#define GDK_LINE	   16 /* words of a cache line, read at once */

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
	uint32_t flags, depth;
};

GDK_FN struct gdk_sq gdk_sq_but_flags(struct gdk_qp_state *st, uint32_t depth)
{
	struct gdk_sq q;

	q.st = st;
	q.words = (uint64_t *)(void *)(st + 1);
	q.depth = depth;
	q.flags = 0;
	return q;
}

GDK_FN struct gdk_sq gdk_sq_at(struct gdk_qp_state *st)
{
	struct gdk_sq q = gdk_sq_but_flags(st, gdk_ldc32(&st->depth));

	q.flags = gdk_ldc32(&st->flags);
	return q;
}

/* The same from the device struct, so that one load is enough for most of it. */
GDK_FN struct gdk_sq gdk_sq_of(const struct doca_gpu_dev_verbs_qp *qp)
{
	const uint32_t depth = (uint32_t)gdk_ldc16(GDK_QP_AT(qp, sq_wqe_mask)) + 1;
	struct gdk_sq q = gdk_sq_but_flags(gdk_state_of_qp(qp), depth);

	q.flags = gdk_ldc32(&q.st->flags);
	return q;
}

GDK_FN int gdk_sq_scope(const struct gdk_sq *q)
{
	return q->flags & GDK_QPF_SYS_SCOPE ? GDK_SCOPE_SYS : GDK_SCOPE_GPU;
}

/* ---- ready and token bits ---- */

GDK_FN uint64_t *gdk_word(const struct gdk_sq *q, uint64_t idx)
{
	/* In bytes: a shift of 32 bits stays one. */
	const uint32_t at = ((uint32_t)idx >> 2) & ((q->depth - 1) >> 2) & ~7u;

	return (uint64_t *)(void *)((char *)q->words + at);
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
	return ((uint32_t)idx & q->depth) != 0;
}

/* n slots from idx, all in one word. */
GDK_FN uint32_t gdk_slot_bits(const struct gdk_sq *q, uint64_t idx, uint32_t n)
{
	return (uint32_t)(((uint64_t)1 << n) - 1) << gdk_word_pos(q, idx);
}

/* What a word's value says: is slot idx published? */
GDK_FN int gdk_word_says(const struct gdk_sq *q, uint64_t idx, uint64_t word)
{
	const uint32_t bit = 1u << gdk_word_pos(q, idx), unset = gdk_odd_lap(q, idx) ? bit : 0;

	/* One instruction when the word comes. */
	return (((uint32_t)word ^ unset) & bit) != 0;
}

GDK_FN int gdk_is_ready(const struct gdk_sq *q, uint64_t idx, int scope)
{
	return gdk_word_says(q, idx, gdk_ld64(gdk_word(q, idx), scope));
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
		gdk_red_and64(word, ~old, scope);
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

/* The ready bits of n slots from i, all in one word, turned by one addition. */
GDK_FN uint64_t gdk_turn(const struct gdk_sq *q, uint64_t i, uint32_t n)
{
	const uint64_t bits = gdk_slot_bits(q, i, n);

	return gdk_odd_lap(q, i) ? 0 - bits : bits;
}

/* Turns the ready bits of `from` and what follows in its word, and takes the token. */
GDK_FN uint64_t gdk_turn_held(const struct gdk_sq *q, uint64_t from, uint64_t to)
{
	const uint32_t n = (uint32_t)(to - from) + 1, left = gdk_word_left(q, from);

	return gdk_turn(q, from, n < left ? n : left) - GDK_TOKEN(gdk_word_pos(q, from));
}

/* What is not in the word of `from`. */
GDK_SLOW_FN void gdk_turn_rest(const struct gdk_sq q, uint64_t from, uint64_t to, int scope)
{
	uint32_t left, n;

	for (from += gdk_word_left(&q, from); from <= to; from += left) {
		left = gdk_word_left(&q, from);
		n = (uint32_t)(to - from) + 1;
		gdk_red_add64(gdk_word(&q, from), gdk_turn(&q, from, n < left ? n : left), scope);
	}
}

/* What it takes to publish and ring [from, to] when the token is parked at `from`, all that
 * can be computed before. */
struct gdk_held {
	uint64_t turn, token; /* ready bits, and where the token is parked next */
	uint64_t rest;	      /* few: ready bits in the word where that is */
	uint64_t *word, *next;
	struct gdk_db db;
};

GDK_FN struct gdk_held gdk_held_at(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
				   uint64_t from, uint64_t to)
{
	struct gdk_held h;

	h.turn = gdk_turn_held(q, from, to);
	h.rest = 0;
	h.token = GDK_TOKEN(gdk_word_pos(q, to + 1));
	h.word = gdk_word(q, from);
	h.next = gdk_word(q, to + 1);
	h.db = gdk_db_of(qp, to + 1);
	GDK_COMPUTED(h.turn);
	GDK_COMPUTED(h.token);
	GDK_COMPUTED(h.word);
	GDK_COMPUTED(h.next);
	return h;
}

/*
 * The same where they are few: a word's slots at most, in a ring that is no shorter than a
 * word, so that what does not fit into the first word is in that of the slot that follows.
 * A word is two halves: ready bits, of which some are turned, so that their negative borrows
 * from the other half.
 */
GDK_FN struct gdk_held gdk_held_few(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
				    uint32_t qpn8_be, uint64_t from, uint64_t to)
{
	const uint32_t pos = gdk_word_pos(q, from), odd = (uint32_t)gdk_odd_lap(q, from);
	const uint32_t all = ~0u >> (GDK_WORD_SLOTS - 1 - (uint32_t)(to - from));
	const uint64_t bits = (uint64_t)all << pos, end = to + 1;
	const uint32_t here = (uint32_t)bits, rest = (uint32_t)(bits >> GDK_WORD_SLOTS);
	struct gdk_held h;

	h.turn = gdk_pack(odd ? 0 - here : here, 0 - odd - (1u << pos));
	h.rest = gdk_odd_lap(q, end) ? 0 - (uint64_t)rest : rest;
	h.token = GDK_TOKEN(gdk_word_pos(q, end));
	h.word = gdk_word(q, from);
	h.next = gdk_word(q, end);
	h.db = gdk_db_at(qp, qpn8_be, end);
	GDK_COMPUTED(h.turn);
	GDK_COMPUTED(h.rest);
	GDK_COMPUTED(h.token);
	return h;
}

GDK_FN int gdk_is_few(const struct gdk_sq *q, uint64_t from, uint64_t to)
{
	return (uint32_t)(to - from) < GDK_WORD_SLOTS && q->depth >= GDK_WORD_SLOTS;
}

/* As gdk_publish, by who has the token that is parked at `from`. Nobody looks at these bits
 * before it moves on: no result is waited for. Few: adding 0 costs less than a branch. */
GDK_FN void gdk_publish_held(const struct gdk_sq *q, const struct gdk_held *h, uint64_t from,
			     uint64_t to, int few, int scope)
{
	gdk_red_add64(h->word, h->turn, scope);
	if (few)
		gdk_red_add64(h->next, h->rest, scope);
	else if ((uint32_t)(to - from) >= gdk_word_left(q, from))
		gdk_turn_rest(*q, from, to, scope);
}

/* How many slots from i on are published, up to the end of its line: *left slots. Words
 * beyond a ring shorter than a line are there too (state.h), and not looked at. */
GDK_FN uint32_t gdk_line_run(const struct gdk_sq *q, uint64_t i, uint32_t *left, int scope)
{
	const uint32_t most = GDK_LINE * GDK_WORD_SLOTS;
	const uint32_t span = q->depth < most ? q->depth : most;
	const uint32_t at = (uint32_t)i & (span - 1), first = at / GDK_WORD_SLOTS;
	const uint32_t line = ((uint32_t)i & (q->depth - 1)) - at;
	const uint32_t published = gdk_odd_lap(q, i) ? 0 : ~0u;
	const uint64_t *words = q->words + line / GDK_WORD_SLOTS;
	uint32_t n, word = GDK_LINE, in_word = 1, end, gaps[GDK_LINE];

	GDK_UNROLL
	for (n = 0; n < GDK_LINE; n++) /* their low halves */
		gaps[n] = gdk_ld32((const uint32_t *)(const void *)&words[n], scope);
	GDK_UNROLL
	for (n = GDK_LINE; n-- > 0;) {
		gaps[n] ^= published;
		if (n == first)
			gaps[n] &= ~0u << at % GDK_WORD_SLOTS;
		if (gaps[n] && n >= first)
			word = n, in_word = gaps[n];
	}
	end = word * GDK_WORD_SLOTS + gdk_ctz32(in_word);
	*left = span - at;
	return (end < span ? end : span) - at;
}

/* First slot at or after i that is not published; at most one lap is looked at. */
GDK_FN uint64_t gdk_scan_ready(const struct gdk_sq *q, uint64_t i, int scope)
{
	const uint64_t start = i, end = i + q->depth;
	uint32_t run, left;

	for (;;) {
		run = gdk_line_run(q, i, &left, scope);
		i += run;
		if (i >= end)
			return end;
		if (run == left)
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

/* The WQE itself goes to the register when it is the only one that is not rung. */
GDK_FN int gdk_is_bf(uint64_t from, uint64_t to, int handler)
{
	return handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF && to - from == 1;
}

GDK_FN const void *gdk_bf_wqe(const struct doca_gpu_dev_verbs_qp *qp, uint64_t at,
			      struct gdk_bf_source src)
{
	return src.wqe && src.index == at ? src.wqe : (const void *)gdk_get_wqe_ptr(qp, at);
}

/* Two fences then, before and after it; else one. */
GDK_FN int gdk_has_record(int handler)
{
	return handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY &&
	       handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR;
}

/* Counted first: who sees rung, sees doorbells. */
GDK_FN void gdk_note_ring(const struct gdk_sq *q, uint64_t to, int scope, int handler)
{
	if (handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
		gdk_red_inc64(&q->st->doorbells, scope);
	gdk_st64(&q->st->rung, to, GDK_SCOPE_GPU);
}

/*
 * What comes before the register, for slots below `to`; false: nothing does (a proxy's
 * counter is raised here). The caller stored rung and fenced, which also ordered the
 * WQEs: the NIC may read the record on its own account. rung comes before the doorbell,
 * since a completion is understood relative to it, and must find it raised (here: rung,
 * fence, doorbell; there: CQE, fence, rung).
 */
GDK_FN int gdk_ring_record(const struct gdk_db *db, uint64_t to, int nic, int handler)
{
	if (handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
		gdk_counter_store(db, to);
		return 0;
	}
	if (gdk_has_record(handler)) {
		gdk_dbrec_store(db);
		/* Record, then register: a NIC that lost a doorbell reads the record. */
		gdk_fence_rel(nic);
	}
	return 1;
}

/* Slot `at` by BlueFlame. From its record on, the NIC may be through with the WQE, and
 * others may write the slot: what goes to the register is read before. */
GDK_SLOW_FN void gdk_ring_blueflame(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq q,
				    uint64_t at, int scope, struct gdk_bf_source src)
{
	const int bf = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF;
	const void *wqe = gdk_bf_wqe(qp, at, src);
	const struct gdk_db db = gdk_db_of(qp, at + 1);
	struct gdk_bf_copy copy;

	gdk_bf_load(&copy, wqe);
	(void)gdk_ring_record(&db, at + 1, gdk_sq_scope(&q), bf);
	gdk_bf_store(qp, q.st, wqe, &copy, scope);
}

/* Record, if there is one, then register: see gdk_ring_record. */
GDK_FN void gdk_ring_out(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			 const struct gdk_db *db, uint64_t from, uint64_t to, int scope, int nic,
			 int handler, struct gdk_bf_source src)
{
	if (gdk_is_bf(from, to, handler)) {
		gdk_ring_blueflame(qp, *q, from, scope, src);
	} else if (gdk_ring_record(db, to, nic, handler)) {
		gdk_db_store(db);
		/* A doorbell, then the token; there: the token, then 64 bytes. */
		if (q->flags & GDK_QPF_BLUEFLAME)
			gdk_fence_rel(scope);
	}
}

/* Hands slots from `from` up to `to` to the NIC. */
GDK_FN void gdk_ring(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q, uint64_t from,
		     uint64_t to, int scope, gdk_handler_t handler, struct gdk_bf_source src)
{
	const int h = gdk_handler(qp, handler);
	const struct gdk_db db = gdk_db_of(qp, to);

	if (gdk_debug_refuses(qp, q->st, from, to))
		return;
	gdk_note_ring(q, to, scope, h);
	/* WQEs, rung, then record. */
	gdk_fence_rel(gdk_sq_scope(q));
	gdk_ring_out(qp, q, &db, from, to, scope, gdk_sq_scope(q), h, src);
}

/* The token was put at slot r, which was not published when looked at, nor when it came
 * there: it stays. */
GDK_FN void gdk_parked(const struct gdk_sq *q, uint64_t r, int scope)
{
	/* The token is there, then parked says so; there: parked, then the token. */
	gdk_fence_load_store(scope);
	gdk_st64(&q->st->parked, r, scope);
}

/* Parks the token at slot r. False: the slot is published by now, and its publisher saw no
 * token: the caller still holds it. */
GDK_FN int gdk_park(const struct gdk_sq *q, uint64_t r, int scope)
{
	const uint64_t token = GDK_TOKEN(gdk_word_pos(q, r));
	uint64_t *word = gdk_word(q, r);

	/* rung was stored before the doorbell's fence: the next holder sees it. */
	if (gdk_word_says(q, r, gdk_rmw_or64(word, token, scope))) {
		gdk_red_and64(word, ~token, scope);
		return 0;
	}
	gdk_parked(q, r, scope);
	return 1;
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
 * What the holder of the token does; slots below r are rung, those below e are its own
 * (e == r: look which are published). wanted: some of them certainly are, and the QP
 * lived a moment ago. Nothing is rung on a dead QP. Out of line: few of those who post
 * come here, and it would cost all of them registers.
 */
GDK_SLOW_FN void gdk_serve(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq q,
			   uint64_t r, uint64_t e, int wanted, int scope, gdk_handler_t handler,
			   struct gdk_bf_source src)
{
	struct gdk_qp_state *st = q.st;

	do {
		if (e == r) {
			e = gdk_scan_ready(&q, r, scope);
			if (e == r)
				continue;
			/* Publisher: WQE, fence, ready bits. Here: bits, fence, ring. */
			gdk_fence_acq(scope);
		}
		if (!wanted)
			wanted = gdk_ld64(&st->wanted, scope) > r && !gdk_state_status(st);
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
	gdk_serve(qp, q, rung, rung, 0, scope, handler, src);
}

#endif
