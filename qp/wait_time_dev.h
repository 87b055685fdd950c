/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Time of waits: polls of CQEs in host memory, pauses, when a doorbell is repeated, and when a wait
 * ends although its WQE is not complete. */
#ifndef GDK_WAIT_TIME_DEV_H
#define GDK_WAIT_TIME_DEV_H

#include "../../device/gdk/status_dev.h"

#define GDK_QP_LIMIT	 UINT64_MAX /* time limit of a wait: that of the QP */
#define GDK_POLLS_REPEAT 64u	    /* empty polls before a doorbell is repeated */
#define GDK_REPEAT_NS	 20000u	    /* first repetition of a doorbell */
#define GDK_CHECK_NS	 1000000u   /* a wait reads the watch word from then on, or at its limit */

/*
 * Where CQEs are in host memory, a poll of a CQE is a read over PCIe, and reads of the same line by
 * several threads follow each other at intervals of a microsecond (H200). Thousands of threads that
 * poll would wait for each other for milliseconds. So the threads that wait for one QP poll CQEs at
 * intervals of GDK_LOOK_NS, all together; in their other turns they only load completed, which is
 * in GPU memory. The lanes of a warp execute their turns one after another, so one lane that
 * posts is slowed by 30 that wait: such waits also pause, for 1/16 of the time waited so far.
 */
#define GDK_LOOK_NS    1000u
#define GDK_PAUSE_PART 16u
#define GDK_PAUSE_NS   16384u /* longest pause */

struct gdk_wait_timer {
	uint64_t start, next; /* ns; the next event, relative to start */
	uint32_t turns;
	uint32_t look; /* bit 0: the next turn polls no CQE; bit 1: turns with a poll, modulo 2 */
};

/*
 * Ends one idle turn of a wait. looks_from: 0, or if CQEs are in host memory, the value of rung
 * from which on the wait polls CQEs: a thread whose slots are not rung must not keep the others
 * from polling. Returns the time waited if an event is due, otherwise 0. Events are due after
 * GDK_REPEAT_NS, then at 8 times the time each, and at the limit; at the limit after a poll.
 */
GDK_FN uint64_t gdk_wait_turn(struct gdk_qp_state *st, struct gdk_wait_timer *w, uint64_t *limit_ns,
			      uint64_t looks_from)
{
	const uint32_t rested = looks_from ? w->look & 1 : 0;
	uint64_t now, waited;
	int over;

	gdk_relax(w->turns++);
	now = gdk_now_ns();
	w->look = (w->look ^ (rested ? 0 : 2)) & 2;
	if (!w->start)
		w->start = now;
	if (*limit_ns == GDK_QP_LIMIT)
		*limit_ns = gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU);
	waited = now - w->start;
	over = waited > *limit_ns - 1;
	if ((waited >= w->next) | over) {
		if (over && rested)
			return 0;
		w->next = waited * 8;
		return waited + 1;
	}
	if (looks_from) {
		if ((uint32_t)now - gdk_ld32(&st->poll_ns, GDK_SCOPE_GPU) < GDK_LOOK_NS)
			w->look |= 1;
		else if (gdk_ld64(&st->rung, GDK_SCOPE_GPU) >= looks_from)
			gdk_st32(&st->poll_ns, (uint32_t)now, GDK_SCOPE_GPU);
		gdk_pause_ns(waited < GDK_PAUSE_PART * GDK_PAUSE_NS
				     ? (uint32_t)waited / GDK_PAUSE_PART
				     : GDK_PAUSE_NS);
	}
	return 0;
}

/*
 * The watch word and the time limit after waited_ns: 0 if the wait continues, otherwise the status
 * that ends it. The host writes the hints (qp/watch.c): it clears GDK_HINT_UNCONNECTED after the
 * firmware has moved the QP to RTS, so a wait that began before continues.
 */
GDK_FN int gdk_wait_check(const struct gdk_qp_state *st, uint64_t waited_ns, uint64_t limit_ns)
{
	const struct gdk_watch_word *word =
		(const struct gdk_watch_word *)(uintptr_t)gdk_ldc64(&st->watch);
	const int over = waited_ns > limit_ns - 1;
	uint32_t hints = 0;

	if (word && (over || waited_ns > GDK_CHECK_NS))
		hints = gdk_ld32(&word->hints, GDK_SCOPE_SYS);
	if (hints & GDK_HINT_UNCONNECTED)
		return -ENOTCONN;
	return !over ? 0 : hints & GDK_HINT_UNSERVED ? -EHOSTDOWN : -ETIMEDOUT;
}

/* Ends the QP because a wait ended with err, and returns the status that ended it. Reports
 * -ENOTCONN to the host, but not again where the QP had ended before. */
GDK_FN int gdk_wait_end(struct gdk_qp_state *st, int err)
{
	struct gdk_watch_word *word = (struct gdk_watch_word *)(uintptr_t)gdk_ldc64(&st->watch);
	int status;

	GDK_COMPUTED32(err); /* so that the compiler does not copy the rest for each value */
	status = gdk_state_end(st, err);

	if (err == -ENOTCONN && status == err && word)
		gdk_st32(&word->refused, 1, GDK_SCOPE_SYS);
	return status;
}

/* Counts a poll of exclusive use that found nothing. Returns 1 at every GDK_POLLS_REPEAT-th such
 * poll after the last ring: the doorbell must be repeated. `polled` is the count plus a multiple of
 * rung, modulo 2^32, so that a count from before a ring is out of range, and begins anew. */
GDK_FN int gdk_poll_repeats(struct gdk_qp_state *st, uint64_t rung)
{
	const uint32_t none = (uint32_t)rung * (GDK_POLLS_REPEAT + 1);
	uint32_t polls = gdk_ld32(&st->polled, GDK_SCOPE_THREAD) - none;

	polls = polls < GDK_POLLS_REPEAT ? polls + 1 : 1;
	gdk_st32(&st->polled, none + polls, GDK_SCOPE_THREAD);
	return polls == GDK_POLLS_REPEAT;
}

#endif
