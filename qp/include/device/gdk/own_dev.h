/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Exclusive use: one thread posts and rings the doorbell, and its posts need no atomic
 * read-modify-writes. The thread owns the token (token_dev.h): `left` is GDK_LEFT_OWN or
 * GDK_LEFT_SYS. It stores the ready bits (slots_dev.h) that shared use expects, so either kind of
 * use may follow the other. The program must order the two, for example by ending the kernel.
 */
#ifndef GDK_OWN_DEV_H
#define GDK_OWN_DEV_H

#include "device/gdk/debug_dev.h"
#include "device/gdk/slots_dev.h"

/* Returns the ready bits of the word of slot `last` for the case that all slots up to `last` are
 * published and none after it. In a ring shorter than a word, bits beyond the ring may be set, too;
 * they are ignored. */
GDK_FN uint32_t gdk_own_bits(uint32_t depth, uint64_t last)
{
	const uint32_t after = ~1u << gdk_word_pos(depth, last);

	return gdk_odd_lap(depth, last) ? after : ~after;
}

/* Publishes the slots from `from` to end - 1, and stores `end` in `marked` (state.h). Unlike
 * gdk_own_end(), keeps the ready bits of other slots, because slots from `end` on may be published
 * already. Also clears the token bits of the words; no thread needs them, because the caller owns
 * the token or takes it next. */
GDK_FN void gdk_own_mark(struct gdk_qp_state *st, uint32_t depth, uint64_t from, uint64_t end)
{
	uint64_t *word;
	uint32_t n, bits, w;

	GDK_LOOP
	for (; from < end; from += n) {
		n = gdk_word_room(depth, from);
		if (n > end - from)
			n = (uint32_t)(end - from);
		bits = gdk_slot_bits(depth, from, n);
		word = gdk_word(st, depth, from);
		w = (uint32_t)gdk_ld64(word, GDK_SCOPE_THREAD);
		gdk_st64(word, gdk_odd_lap(depth, from) ? w & ~bits : w | bits, GDK_SCOPE_THREAD);
	}
	gdk_st64(&st->marked, end, GDK_SCOPE_THREAD);
}

/* Returns the address of the half of slot idx's word that has the ready bits. */
GDK_FN uint32_t *gdk_ready_half(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return (uint32_t *)(void *)gdk_word(st, depth, idx);
}

/* Returns the address of the half of slot idx's word that has the token bits. This half is 0 in all
 * words while a thread owns the token. */
GDK_FN uint32_t *gdk_token_half(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return (uint32_t *)(void *)gdk_word(st, depth, idx) + 1;
}

/* Options of gdk_own_ring(). They may be combined. */
#define GDK_OWN_TAKE   1u /* take the token even if it is parked: the caller will publish slots */
#define GDK_RING       2u /* ring the doorbell for published slots */
#define GDK_RING_ALL   4u /* with GDK_RING: also for unpublished slots; the caller wrote them */
#define GDK_RING_AGAIN 8u /* repeat the last doorbell */

/*
 * Takes the token for exclusive use if it is left; with GDK_OWN_TAKE, also if it is parked. The
 * other options select what follows:
 *   GDK_RING        ring for the slots below pi up to the first unpublished one
 *   GDK_RING_ALL    with GDK_RING: ring for all slots below pi
 *   GDK_RING_AGAIN  only repeat the last doorbell, ordered after the DBREC by a fence; without
 *                   DBREC nothing is repeated
 * One call rings for at most gdk_ring_most() slots. r: the value of `rung`. Returns the new value
 * of `rung`.
 */
GDK_FN uint64_t gdk_own_ring(struct gdk_qp_state *st, uint64_t r, uint64_t pi, uint32_t how)
{
	const uint32_t depth = gdk_ldc32(&st->depth), flags = gdk_ldc32(&st->flags);
	const uint32_t left = gdk_ld32(&st->left, GDK_SCOPE_GPU);
	uint64_t e = r, marked, at;

	if (left == GDK_LEFT || (!left && how & GDK_OWN_TAKE)) {
		gdk_st32(&st->left, flags & GDK_QPF_SYS_SCOPE ? GDK_LEFT_SYS : GDK_LEFT_OWN,
			 GDK_SCOPE_GPU);
		if (!left) {
			/* The token is parked at slot `rung`, or at slot `parked` if functions of
			 * by_hand_dev.h have raised `rung` since then. The code clears both places.
			 * The stores of 0 change no ready bit, because the upper half of a word has
			 * only token bits. */
			at = gdk_ld64(&st->parked, GDK_SCOPE_GPU);
			gdk_st32(gdk_token_half(st, depth, at), 0, GDK_SCOPE_GPU);
			gdk_st32(gdk_token_half(st, depth, r), 0, GDK_SCOPE_GPU);
			gdk_st64(&st->parked, GDK_NO_WQE, GDK_SCOPE_GPU);
		}
	}
	if (how & GDK_RING_ALL) {
		e = how & GDK_RING_AGAIN ? r : pi;
	} else if (how & GDK_RING && !(how & GDK_RING_AGAIN)) {
		/* All slots below `marked` are published. Shared use publishes slots without
		 * storing `marked`; the loop finds these. */
		marked = gdk_ld64(&st->marked, GDK_SCOPE_GPU);
		if (marked > e)
			e = marked < pi ? marked : pi;
		GDK_LOOP
		while (e < pi && gdk_is_ready(st, depth, e))
			e++;
	}
	if (e > r + gdk_ring_most(depth))
		e = r + gdk_ring_most(depth);
	if (!(how & GDK_RING_AGAIN) && e <= r)
		return r;
	if (gdk_debug_refuses(st, r, e))
		return r;
	GDK_LOOP
	do {
		gdk_ring(st, e, (how & GDK_RING_AGAIN) != 0, flags, 1);
		if (how & (GDK_RING_AGAIN | GDK_RING_ALL))
			break;
		/* The caller waits. Meanwhile another lane may have rung for slots above e, and
		 * our DBREC or counter may have replaced its higher one. The fence orders ours
		 * before the load of `rung`. Pairs with the other lane's fence, which orders `rung`
		 * before its DBREC or counter. */
		gdk_fence_sc(GDK_SCOPE_GPU);
		r = e;
		e = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	} while (e > r);
	return e;
}

#endif
