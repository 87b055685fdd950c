/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Counts the doorbells that a thread rings before it releases the token: by an offer, or by parking
 * it at a slot that is not published. GDK_RINGS is 2, so that holders offer it often. Include this
 * file before rig.h, after GDK_WARP is defined.
 */
#ifndef RING_COUNT_H
#define RING_COUNT_H

#define GDK_RINGS 2u
#include "device/gdk/platform.h"

static const void *left_word, *parked_word; /* of the QP */
static const void *counter_word;	    /* the proxy's counter */
static __thread uint32_t rung_now, rung_most, token_offers;

static inline void count_ring(void)
{
	rung_now++;
	rung_most = rung_now > rung_most ? rung_now : rung_most;
}

static inline void count_offer(const void *p, uint32_t v)
{
	if (p == left_word && v == 1) {
		rung_now = 0;
		token_offers++;
	}
}

static inline void count_store64(const void *p)
{
	if (p == counter_word)
		count_ring();
	if (p == parked_word)
		rung_now = 0;
}

#define gdk_mmio_st64(p, v)   (count_ring(), gdk_mmio_st64(p, v))
#define gdk_st64(p, v, scope) (count_store64(p), gdk_st64(p, v, scope))
#define gdk_st32(p, v, scope) (count_offer(p, v), gdk_st32(p, v, scope))

#include "../unit/rig.h"

/* Most doorbells before a release of the token: one's own, then GDK_RINGS for others. */
#define MOST_RINGS (1 + GDK_RINGS)

static inline void count_in(const struct rig *r)
{
	left_word = &r->st->left;
	parked_word = &r->st->parked;
	counter_word = &r->counter;
}

#endif
