/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Which thread rings: the token. Threads publish slots in any order, and no thread waits for the
 * publisher of an earlier slot. At any time the token is
 *   held    by one thread, which alone stores rung and DBREC (by_hand_dev.h apart); its store to
 *           the register may follow the hand-over (post_dev.h);
 *   parked  at slot `rung`, which is not published: the token bit in the slot's word is set, and
 *           the publisher of the slot finds it in the old value of its own read-modify-write;
 *   left    (left == GDK_LEFT), although slot `rung` may be published: no thread wanted it to be
 *           rung, or the holder rang often and offers the token to others;
 *   owned   (left >= GDK_LEFT_OWN) by exclusive use (own_dev.h).
 * A thread takes a token that is left or owned by exchanging `left` with 0.
 *
 * No doorbell is lost. A holder rings all slots that are published without a gap, and parks the
 * token at the gap. Publisher and holder both change the word of that slot by a read-modify-write:
 * if the holder is first, the publisher finds the token and rings; otherwise the holder sees that
 * the slot is published and continues. A thread that wants slots to be rung raises `wanted`,
 * and then loads `left`; a holder that leaves the token stores `left`, and then loads `wanted`.
 * Between the two accesses each has a sequentially consistent fence, so at least one of them sees
 * the other's store: either the thread takes the token, or the holder takes it back.
 *
 * Fairness. A holder that has rung GDK_RINGS times offers the token by leaving it. It polls `left`
 * GDK_OFFER_POLLS times, so that a thread that posts meanwhile takes over, and takes the token back
 * only if no thread did and a published slot is still wanted.
 *
 * All accesses of gdk_take(), gdk_park(), gdk_offer() and gdk_serve() have GPU scope, which also
 * serves the threads of one block: they are the slow part of posting (post_dev.h), and one version
 * of them is enough.
 */
#ifndef GDK_TOKEN_DEV_H
#define GDK_TOKEN_DEV_H

#include "../../device/gdk/bf_dev.h"
#include "../../device/gdk/debug_dev.h"
#include "../../device/gdk/slots_dev.h"

#ifndef GDK_RINGS
#define GDK_RINGS 14u /* doorbells of a holder before it offers the token */
#endif
#define GDK_RING_SLOTS	4096u /* each time as many slots of a doorbell count as one doorbell more */
#define GDK_OFFER_POLLS 16u

/* Where a thread found the token, in place of a slot. */
#define GDK_TOKEN_ELSEWHERE UINT64_MAX	      /* another thread holds it, or it is parked */
#define GDK_TOKEN_LEFT	    (UINT64_MAX - 1u) /* it was left; other threads may take it, too */

/* Publishes n slots from idx, all in one word. Returns whether the token was parked at one of them;
 * the caller then holds it. */
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
 * Publishes n slots from idx. The caller has executed a release fence after writing the WQEs. The
 * first word is changed last, after a release fence: a thread that sees the first slot published,
 * and then executes an acquire fence, sees all of them (gdk_scan_ready()). Returns whether the
 * caller now holds the token.
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
		/* The token is parked at slot idx or below, not at one of these slots, so the old
		 * value is not needed, and the changes of all words are in flight together. */
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

/* Takes the token if it is left or owned. Returns the old value of `left`: 0 if it is neither. If
 * it was owned, the caller clears the plain end. */
GDK_FN uint32_t gdk_take(struct gdk_qp_state *st)
{
	const uint32_t left = gdk_rmw_xchg32(&st->left, 0, GDK_SCOPE_GPU);

	/* Acquire: the caller must see the previous holder's rung, and its DBREC store comes after
	 * the previous holder's. Release: if the caller parks the token without ringing, the next
	 * holder's DBREC store must come after both. */
	if (left)
		gdk_fence_sc(GDK_SCOPE_GPU);
	return left;
}

/* Parks the token at slot r. Returns 0 if the slot is published by now: its publisher saw no token,
 * so the caller still holds it. */
GDK_FN int gdk_park(struct gdk_qp_state *st, uint32_t depth, uint64_t r)
{
	const uint64_t token = gdk_token_bit(depth, r);
	uint64_t *word = gdk_word(st, depth, r);

	/* Relaxed: the fence between our DBREC and register orders the DBREC before the token. */
	if (gdk_word_shows(depth, r, gdk_rmw_or64(word, token, GDK_SCOPE_GPU))) {
		gdk_red_and64(word, ~token, GDK_SCOPE_GPU);
		return 0;
	}
	/* The token, then parked: a thread that reads parked == r finds the token there. */
	gdk_fence_load_store(GDK_SCOPE_GPU);
	gdk_st64(&st->parked, r, GDK_SCOPE_GPU);
	return 1;
}

/*
 * Leaves the token and polls `left` at most `polls` times for a thread that takes it. Returns 1 if
 * the caller is done: another thread took the token, or no published slot at or above r is wanted,
 * or the QP has ended. Returns 0 if the caller holds the token again; rung may have changed.
 */
GDK_FN int gdk_offer(struct gdk_qp_state *st, uint64_t r, uint32_t polls)
{
	/* Release: the next holder must see our DBREC and rung once it has taken the token. */
	gdk_fence_rel(GDK_SCOPE_GPU);
	gdk_st32(&st->left, GDK_LEFT, GDK_SCOPE_GPU);
	if (gdk_state_ended(st))
		return 1;
	/* Orders the store of left before the load of wanted. Pairs with the fences between wanted
	 * and left: see the head of this file. */
	gdk_fence_sc(GDK_SCOPE_GPU);
	while (polls--)
		if (!gdk_ld32(&st->left, GDK_SCOPE_GPU))
			return 1;
	return gdk_ld64(&st->wanted, GDK_SCOPE_GPU) <= r || !gdk_take(st);
}

/*
 * Serves as the holder of the token, which the caller found at slot `at` or takes if it is left:
 * rings what is published and wanted, and returns when the token is parked, left or taken by
 * another thread.
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
		/* Exclusive use stores DBREC and register without a fence between them. */
		again = left >= GDK_LEFT_OWN;
		if (again)
			gdk_plain_clear(st);
	} else {
		/* Acquire: the token was found by a relaxed read-modify-write. */
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
		 * The WQEs are then ordered before the doorbell. */
		gdk_fence_acq(GDK_SCOPE_GPU);
		if (rings < GDK_RINGS && (again || gdk_ld64(&st->wanted, GDK_SCOPE_GPU) > r) &&
		    !gdk_state_ended(st) && !gdk_debug_refuses(st, r, e)) {
			gdk_ring(st, e, again, flags);
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
