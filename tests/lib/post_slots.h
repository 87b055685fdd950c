/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Posts WQEs in slots that the test has reserved and written, as an operation does that reserves
 * them itself. */
#ifndef POST_SLOTS_H
#define POST_SLOTS_H

#include "device/gdk/post_dev.h"

/* Publishes [from, to] and, unless opt has GDK_OPT_SKIP_DB, rings. */
static inline void post_slots(struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
			      gdk_mode_t mode, gdk_handler_t handler, uint32_t opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const int ring = !(opt & GDK_OPT_SKIP_DB);
	struct gdk_post p = {
		.st = st,
		.wqes = gdk_wqes_of(st),
		.base = from,
		.idx = from,
		.total = (uint32_t)(to - from) + 1,
		.mask = 1u << gdk_lane(),
		.parked = st->parked == from && st->rung == from && to - from < GDK_WORD_SLOTS &&
			  st->depth >= GDK_WORD_SLOTS &&
			  !(st->flags & (GDK_QPF_BLUEFLAME | GDK_QPF_RUNG_READ)),
		.db = gdk_db_of(st, to + 1),
		.word = gdk_ready_half(st, st->depth, to),
		.bits = gdk_own_bits(st->depth, to),
	};

	/* Here, gdk_own_reserve() makes the case plain. */
	if (mode == GDK_EXCLUSIVE && (st->left < GDK_LEFT_OWN || (ring && st->rung != from)))
		(void)gdk_own_slow(st, from, 0, 0,
				   ring ? GDK_RING | GDK_RING_ALL | GDK_OWN_TAKE : GDK_OWN_TAKE);
	p.doorbells = st->doorbells;
	p.left = st->left;
	gdk_post_end(&p, gdk_how(mode, handler, GDK_THREAD, opt));
}

#endif
