/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Time of waits: pauses between polls, when a doorbell is repeated, and when a wait ends although
 * its WQE is not complete. */
#ifndef GDK_WAIT_TIME_DEV_H
#define GDK_WAIT_TIME_DEV_H

#include "../../device/gdk/status_dev.h"

#define GDK_QP_LIMIT	 UINT64_MAX /* time limit of a wait: that of the QP */
#define GDK_POLLS_REPEAT 64u	    /* empty polls before a doorbell is repeated */
#define GDK_REPEAT_NS	 20000u	    /* first repetition of a doorbell */
#define GDK_CHECK_NS	 1000000u   /* a wait reads the watch word from then on, or at its limit */

/*
 * Where the CQ or the state block is in host memory, each poll is a read over PCIe, and the lanes
 * of a warp poll one after another, so one lane that posts is slowed by 30 that wait. Such waits
 * therefore pause between polls: longer the longer they last, up to the time of a poll, or more if
 * a whole lap of the ring must complete first. On an H200, 16896 threads on one ring of 64 slots in
 * host memory: 50,000 operations take 0.9 s instead of 1.3 s.
 */
#define GDK_PAUSE_NEAR_NS 1024u
#define GDK_PAUSE_FAR_NS  32768u

struct gdk_wait_timer {
	uint64_t start, next; /* ns; the next event, relative to start */
	uint32_t turns;
};

/* Ends one idle turn of a wait. longest_ns: of a pause; 0: none. Returns the time waited if an
 * event is due, otherwise 0. Events are due after GDK_REPEAT_NS, then at 8 times the time each, and
 * at the limit. */
GDK_FN uint64_t gdk_wait_turn(struct gdk_qp_state *st, struct gdk_wait_timer *w, uint64_t *limit_ns,
			      uint32_t longest_ns)
{
	const uint32_t ns = w->turns * 64 < longest_ns ? w->turns * 64 : longest_ns;
	uint64_t now;

	if (ns >= 32)
		gdk_pause_ns(ns);
	gdk_relax(w->turns++);
	now = gdk_now_ns();
	if (!w->start)
		w->start = now;
	if (*limit_ns == GDK_QP_LIMIT)
		*limit_ns = gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU);
	now -= w->start;
	if (now < w->next && now <= *limit_ns - 1)
		return 0;
	w->next = now * 8;
	return now + 1;
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
