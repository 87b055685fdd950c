/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The token is the right to ring the doorbell. Threads publish slots (slots_dev.h) in any order,
 * and no thread waits for the publisher of an earlier slot. `rung`, `parked`, `left` and `wanted`
 * are words of the state block (state.h). Slots below `rung` are rung, or the holder is about to
 * ring for them. At any time the token is in one of four states:
 *   held    One thread has the token. Only this thread stores `rung` and the DBREC, apart from
 *           programs that use by_hand_dev.h. It may store the doorbell register after it has handed
 *           the token over (gdk_hand_over()).
 *   parked  The token is at slot `rung`, which is not published. The token bit in the slot's word
 *           is set. The publisher of the slot finds it in the old value of its read-modify-write.
 *   left    `left` is GDK_LEFT, and slot `rung` may be published. Either no thread wanted this slot
 *           to be rung, or the holder has rung often and offers the token to other threads.
 *   owned   `left` is GDK_LEFT_OWN or GDK_LEFT_SYS: a thread in exclusive use has the token
 *           (own_dev.h).
 * To take a token that is left or owned, a thread in shared use exchanges `left` with 0.
 *
 * No doorbell is lost before the QP ends. A holder rings for all slots that are published without a
 * gap, and parks the token at the gap. Publisher and holder both change the word of that slot by a
 * read-modify-write. If the holder is first, the publisher finds the token and rings the doorbell;
 * otherwise the holder sees that the slot is published, and continues.
 *
 * A thread that wants slots to be rung raises `wanted`, and then loads `left`. A holder that leaves
 * the token stores `left`, and then loads `wanted`. Each has a sequentially consistent fence
 * between its two accesses, so at least one of them sees the other's store: either the thread takes
 * the token, or the holder takes it back.
 *
 * Fairness. A holder that has rung the doorbell GDK_RINGS times offers the token: it leaves it, and
 * polls `left` GDK_OFFER_POLLS times, so that a thread that posts meanwhile can take it. If no
 * thread does, and slots are still wanted, the holder takes the token back.
 *
 * All accesses of gdk_take(), gdk_park(), gdk_offer() and gdk_serve() have GPU scope, even if only
 * the threads of one block share the QP. These functions are the slow part of posting (post_dev.h),
 * so one version of them is enough.
 */
#ifndef GDK_TOKEN_DEV_H
#define GDK_TOKEN_DEV_H

#include "device/gdk/bf_dev.h"
#include "device/gdk/debug_dev.h"
#include "device/gdk/slots_dev.h"

#ifndef GDK_RINGS
#define GDK_RINGS 14u /* number of doorbells after which a holder offers the token */
#endif
/* Towards GDK_RINGS, a doorbell for n slots counts as 1 + n / GDK_RING_SLOTS. */
#define GDK_RING_SLOTS	4096u
#define GDK_OFFER_POLLS 16u

/* Values in place of the index of the slot at which a thread found the token, if there is none. */
#define GDK_TOKEN_ELSEWHERE UINT64_MAX	      /* the token is parked, or another thread has it */
#define GDK_TOKEN_LEFT	    (UINT64_MAX - 1u) /* `left` was not 0: try to take the token */

/* Publishes n slots from idx on, which are all in one word. Returns 1 if the token was parked at
 * one of them; the caller then holds the token. */
GDK_FN int gdk_publish_word(struct gdk_qp_state *st, uint32_t depth, uint64_t idx, uint32_t n,
			    int scope)
{
	const uint64_t bits = gdk_slot_bits(depth, idx, n);
	uint64_t *word = gdk_word(st, depth, idx);
	uint64_t old;

	if (gdk_odd_lap(depth, idx))
		old = gdk_rmw_and64(word, ~bits, scope);
	else
		old = gdk_rmw_or64(word, bits, scope);
	old &= bits << GDK_WORD_SLOTS;
	if (old)
		gdk_red_and64(word, ~old, scope);
	return old != 0;
}

/*
 * Publishes n slots from idx on. The caller has executed a release fence after writing the WQEs.
 * The first word is changed last, after a release fence. So a thread that sees the first slot
 * published, and then executes an acquire fence, sees all n slots published (gdk_scan_ready()).
 * Returns 1 if the token was parked at slot idx; the caller then holds the token.
 */
GDK_FN int gdk_publish(struct gdk_qp_state *st, uint32_t depth, uint64_t idx, uint32_t n, int scope)
{
	const uint32_t room = gdk_word_room(depth, idx), first = n < room ? n : room;
	uint32_t at, len;

	GDK_LOOP
	for (at = first; at < n; at += len) {
		len = gdk_word_room(depth, idx + at);
		if (len > n - at)
			len = n - at;
		/* The token cannot be parked at one of these slots: slot idx, which is below them,
		 * is not published yet. So the old values are not needed, and the changes of all
		 * words are in flight together. */
		if (gdk_odd_lap(depth, idx + at))
			gdk_red_and64(gdk_word(st, depth, idx + at),
				      ~(uint64_t)gdk_slot_bits(depth, idx + at, len), scope);
		else
			gdk_red_or64(gdk_word(st, depth, idx + at),
				     gdk_slot_bits(depth, idx + at, len), scope);
	}
	if (n > first)
		gdk_fence_rel(scope);
	return gdk_publish_word(st, depth, idx, first, scope);
}

/* Publishes n slots from idx on, where the token is parked, and takes the token. n is at most 32,
 * and the ring has at least 32 slots, so the ready bits are in at most two words: that of idx and
 * that of idx + n. No thread uses these bits until the token moves on, so additions without a
 * result are enough. In an even lap an addition sets the ready bits, in an odd lap it clears them.
 * The first addition also clears the token bit, in the upper half of the word. In an odd lap the
 * lower half of its addend is 2^32 minus the ready bits, which carries 1 into the upper half. The
 * upper half of the addend is 1 less, to cancel this carry. */
GDK_FN void gdk_publish_parked(struct gdk_qp_state *st, uint32_t depth, uint64_t idx, uint32_t n,
			       int scope)
{
	const uint32_t pos = (uint32_t)idx & (GDK_WORD_SLOTS - 1);
	const uint32_t odd_lap = gdk_odd_lap(depth, idx) ? 1u : 0u;
	const uint64_t bits = (uint64_t)(~0u >> (GDK_WORD_SLOTS - n)) << pos;
	const uint32_t here = (uint32_t)bits, rest = (uint32_t)(bits >> GDK_WORD_SLOTS);

	gdk_red_add64(gdk_word(st, depth, idx),
		      gdk_pack(odd_lap ? 0 - here : here, 0 - odd_lap - (1u << pos)), scope);
	/* Adding 0 costs less than a branch. */
	gdk_red_add64(gdk_word(st, depth, idx + n),
		      gdk_odd_lap(depth, idx + n) ? 0 - (uint64_t)rest : rest, scope);
}

/* Takes the token if it is left or owned. Returns the old value of `left`, which is 0 if the token
 * was neither. If the token was owned (GDK_LEFT_OWN or above), the caller must clear the plain end
 * (gdk_plain_clear()). */
GDK_FN uint32_t gdk_take(struct gdk_qp_state *st)
{
	const uint32_t left = gdk_rmw_xchg32(&st->left, 0, GDK_SCOPE_GPU);

	/*
	 * Acquire: pairs with the release fence in gdk_offer(). The caller must see the previous
	 * holder's `rung`, and must store its DBREC after that holder's DBREC. Release: if the
	 * caller parks the token without ringing the doorbell, the same must hold for the thread
	 * that finds the token there. Sequentially consistent: another thread may have raised
	 * `wanted`, seen `left`, and lost the exchange to us. Its fence between `wanted` and `left`
	 * then precedes this one, so our later load of `wanted` sees what it raised.
	 */
	if (left)
		gdk_fence_sc(GDK_SCOPE_GPU);
	return left;
}

/* Parks the token at slot r. Returns 1 if it is parked. Returns 0 if slot r has been published
 * meanwhile: its publisher found no token, so the caller still holds it. */
GDK_FN int gdk_park(struct gdk_qp_state *st, uint32_t depth, uint64_t r)
{
	const uint64_t token = gdk_token_bit(depth, r);
	uint64_t *word = gdk_word(st, depth, r);

	/* Relaxed: the caller has rung by gdk_ring(), whose last fence comes after the DBREC, or
	 * has not rung since it got the token. */
	if (gdk_word_shows(depth, r, gdk_rmw_or64(word, token, GDK_SCOPE_GPU))) {
		gdk_red_and64(word, ~token, GDK_SCOPE_GPU);
		return 0;
	}
	/* Orders the token bit before `parked`: a thread that loads r from `parked` must find the
	 * token at slot r. */
	gdk_fence_load_store(GDK_SCOPE_GPU);
	gdk_st64(&st->parked, r, GDK_SCOPE_GPU);
	return 1;
}

/*
 * Leaves the token, and polls `left` at most `polls` times to see whether another thread takes it.
 * Returns 1 if the caller has no more to do: another thread took the token, or no slot from r on is
 * wanted, or the QP has ended. Returns 0 if the caller holds the token again; other threads may
 * have taken it, rung and left it meanwhile, so `rung` may have changed. r: the value of `rung`.
 */
GDK_FN int gdk_offer(struct gdk_qp_state *st, uint64_t r, uint32_t polls)
{
	/* Release: pairs with the fence in gdk_take(). The thread that takes the token must see our
	 * `rung`, and must store its DBREC after ours. */
	gdk_fence_rel(GDK_SCOPE_GPU);
	gdk_st32(&st->left, GDK_LEFT, GDK_SCOPE_GPU);
	if (gdk_state_ended(st))
		return 1;
	/* Orders the store to `left` before the load of `wanted`. Pairs with the fences of other
	 * threads between `wanted` and `left`, for example in gdk_shared_want(): see the head of
	 * this file. */
	gdk_fence_sc(GDK_SCOPE_GPU);
	while (polls--)
		if (!gdk_ld32(&st->left, GDK_SCOPE_GPU))
			return 1;
	return gdk_ld64(&st->wanted, GDK_SCOPE_GPU) <= r || !gdk_take(st);
}

/*
 * Serves the token, that is, does the work of its holder: rings the doorbell for slots that are
 * published and wanted. Returns when the token is parked or left, or another thread has taken it.
 * at: the slot at which the caller found the token; or GDK_TOKEN_LEFT, and then this function tries
 * to take the token first.
 */
GDK_FN void gdk_serve(struct gdk_qp_state *st, uint64_t at)
{
	const uint32_t depth = gdk_ldc32(&st->depth), flags = gdk_ldc32(&st->flags);
	uint32_t rings = 0, left;
	int again = 0;
	uint64_t r = at, e;

	if (at == GDK_TOKEN_LEFT) {
		left = gdk_take(st);
		if (!left)
			return;
		r = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
		/* A thread in exclusive use stored DBREC and register without a fence between them,
		 * so its last doorbell is repeated (ring_dev.h). */
		again = left >= GDK_LEFT_OWN;
		if (again)
			gdk_plain_clear(st);
	} else {
		/* Acquire: the caller found the token by a relaxed read-modify-write. Pairs with
		 * the previous holder's fence, if that came before the parking. Otherwise the
		 * caller has waited for the DBREC of that holder (gdk_await_dbrec()). */
		gdk_fence_acq(GDK_SCOPE_GPU);
	}
	GDK_LOOP
	for (;;) {
		e = again ? r : gdk_scan_ready(st, depth, r);
		if (e == r && !again) {
			if (gdk_park(st, depth, r))
				return;
			continue;
		}
		/* Acquire: pairs with the publishers' release fences between WQEs and ready bits.
		 * So the WQEs are ordered before our doorbell. */
		gdk_fence_acq(GDK_SCOPE_GPU);
		if (rings < GDK_RINGS && (again || gdk_ld64(&st->wanted, GDK_SCOPE_GPU) > r) &&
		    !gdk_state_ended(st) && !gdk_debug_refuses(st, r, e)) {
			gdk_ring(st, e, again, flags, 0);
			rings += 1 + (uint32_t)(e - r) / GDK_RING_SLOTS;
			r = e;
			again = 0;
		} else {
			if (gdk_offer(st, r, rings < GDK_RINGS ? 0 : GDK_OFFER_POLLS))
				return;
			r = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
			rings = 0;
		}
	}
}

#endif
