/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Exclusive use: one thread posts and rings without any atomic access. It owns the token
 * (left == GDK_LEFT_OWN or GDK_LEFT_SYS) and stores the ready bits that shared use expects, so
 * either kind of use may follow the other. The program must order the two, for example by ending
 * the kernel.
 */
#ifndef GDK_OWN_DEV_H
#define GDK_OWN_DEV_H

#include "../../device/gdk/debug_dev.h"
#include "../../device/gdk/slots_dev.h"

/* Ready bits of the word of slot `last`, with all slots up to it published and none after it. The
 * bits beyond a ring shorter than a word are set too, and ignored. */
GDK_FN uint32_t gdk_own_bits(uint32_t depth, uint64_t last)
{
	const uint32_t after = ~1u << gdk_word_pos(depth, last);

	return gdk_odd_lap(depth, last) ? after : ~after;
}

/* Publishes [from, end) and stores marked. Ready bits of other slots are kept, because slots above
 * may be published already, unlike in gdk_own_end(); the token bits of the words are cleared. The
 * caller owns the token. */
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

/* The half of a word that has the ready bits, and the half that has the token bits. The latter is 0
 * while exclusive use owns the token. */
GDK_FN uint32_t *gdk_ready_half(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return (uint32_t *)(void *)gdk_word(st, depth, idx);
}

GDK_FN uint32_t *gdk_token_half(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return (uint32_t *)(void *)gdk_word(st, depth, idx) + 1;
}

/* What gdk_own_ring() shall do. */
#define GDK_OWN_TAKE   1u /* the caller will publish a slot: take the token if it is parked, too */
#define GDK_RING       2u /* ring what is published */
#define GDK_RING_ALL   4u /* with GDK_RING: the caller has written all slots, published or not */
#define GDK_RING_AGAIN 8u /* repeat the last doorbell */

/*
 * Takes the token for exclusive use if it is left, and with GDK_OWN_TAKE also if it is parked. Then
 * either rings the slots below pi up to the first unpublished one (GDK_RING_ALL: all), at most
 * gdk_ring_most() of them, or, with GDK_RING_AGAIN, repeats the last doorbell, fenced after its
 * DBREC (nothing if the handler has no DBREC). r: rung. Returns the new rung.
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
			/* The token is at rung, or at `parked` if slots above that one were rung by
			 * hand. The upper halves of the words have token bits only. */
			at = gdk_ld64(&st->parked, GDK_SCOPE_GPU);
			gdk_st32(gdk_token_half(st, depth, at), 0, GDK_SCOPE_GPU);
			gdk_st32(gdk_token_half(st, depth, r), 0, GDK_SCOPE_GPU);
			gdk_st64(&st->parked, GDK_NO_WQE, GDK_SCOPE_GPU);
		}
	}
	if (how & GDK_RING_ALL) {
		e = how & GDK_RING_AGAIN ? r : pi;
	} else if (how & GDK_RING && !(how & GDK_RING_AGAIN)) {
		/* Shared use publishes slots without storing `marked`. */
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
	gdk_ring(st, e, (how & GDK_RING_AGAIN) != 0, flags);
	return e;
}

#endif
