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
	return ((2u << gdk_word_pos(depth, last)) - 1) ^ (gdk_odd_lap(depth, last) ? ~0u : 0);
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

#define GDK_OWN_TAKE   16u /* the caller will publish a slot: take the token if it is parked, too */
#define GDK_RING_ALL   32u /* the caller has written all slots: ring them, published or not */
#define GDK_RING_AGAIN 64u /* repeat the last doorbell */

/* Unparks the token. It is at rung, or at `parked` if slots above that one were rung by hand. */
GDK_FN void gdk_own_unpark(struct gdk_qp_state *st, uint64_t rung)
{
	const uint64_t at = gdk_ld64(&st->parked, GDK_SCOPE_GPU);
	const uint32_t depth = gdk_ldc32(&st->depth);

	/* The upper halves have token bits only. */
	gdk_st32((uint32_t *)(void *)gdk_word(st, depth, at) + 1, 0, GDK_SCOPE_GPU);
	gdk_st32((uint32_t *)(void *)gdk_word(st, depth, rung) + 1, 0, GDK_SCOPE_GPU);
	gdk_st64(&st->parked, GDK_NO_WQE, GDK_SCOPE_GPU);
}

/*
 * Takes the token for exclusive use if it is left, and with GDK_OWN_TAKE also if it is parked. Then
 * either rings the slots below pi up to the first unpublished one (GDK_RING_ALL: all), or, with
 * GDK_RING_AGAIN, repeats the last doorbell, fenced after its DBREC (nothing if the handler has no
 * DBREC). Returns the new rung.
 */
GDK_FN uint64_t gdk_own_ring(struct gdk_qp_state *st, uint64_t pi, uint32_t how)
{
	const uint32_t depth = gdk_ldc32(&st->depth), most = gdk_ring_most(depth);
	const uint32_t again = how & GDK_RING_AGAIN, flags = gdk_ldc32(&st->flags);
	const uint32_t left = gdk_ld32(&st->left, GDK_SCOPE_GPU);
	const uint64_t marked = gdk_ld64(&st->marked, GDK_SCOPE_GPU);
	uint64_t r = gdk_ld64(&st->rung, GDK_SCOPE_GPU), e;

	if (!left && how & GDK_OWN_TAKE)
		gdk_own_unpark(st, r);
	if (left == GDK_LEFT || (!left && how & GDK_OWN_TAKE))
		gdk_st32(&st->left, flags & GDK_QPF_SYS_SCOPE ? GDK_LEFT_SYS : GDK_LEFT_OWN,
			 GDK_SCOPE_GPU);
	/* Shared use publishes slots without storing `marked`. */
	if (!(how & GDK_RING_ALL) && pi > marked) {
		GDK_LOOP
		for (e = r > marked ? r : marked; e < pi && gdk_is_ready(st, depth, e); e++)
			;
		pi = e;
	}
	GDK_LOOP
	while (r < pi || again) {
		e = again ? r : r + most < pi ? r + most : pi;
		if (gdk_debug_refuses(st, r, e))
			break;
		gdk_ring(st, e, (int)again, flags);
		r = e;
		if (again)
			break;
	}
	return r;
}

#endif
