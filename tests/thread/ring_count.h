/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Counts the doorbells that a thread rings between two offers of the token, with GDK_RINGS = 2, so
 * that holders offer it often. Include this file before rig.h, after GDK_WARP is defined.
 */
#ifndef RING_COUNT_H
#define RING_COUNT_H

#define GDK_RINGS 2u
#include "device/gdk/platform.h"

static const void *left_word, *counter_word; /* of the QP: left, and the proxy's counter */
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

static inline void count_counter(const void *p)
{
	if (p == counter_word)
		count_ring();
}

#define gdk_mmio_st64(p, v)   (count_ring(), gdk_mmio_st64(p, v))
#define gdk_st64(p, v, scope) (count_counter(p), gdk_st64(p, v, scope))
#define gdk_st32(p, v, scope) (count_offer(p, v), gdk_st32(p, v, scope))

#include "../unit/rig.h"

/* Most doorbells of one call before it offers the token: its own, then GDK_RINGS for others. */
#define MOST_RINGS (1 + GDK_RINGS)

static inline void count_in(const struct rig *r)
{
	left_word = &r->st->left;
	counter_word = &r->counter;
}

#endif
