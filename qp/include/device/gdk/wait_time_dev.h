/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Timing of waits: how often a waiting thread polls CQEs that are in host memory, how long it
 * pauses, when it repeats the doorbell, and when it gives up although its WQE is not complete. */
#ifndef GDK_WAIT_TIME_DEV_H
#define GDK_WAIT_TIME_DEV_H

#include "device/gdk/status_dev.h"

#define GDK_QP_LIMIT	 UINT64_MAX /* value of a time limit: use that of the QP */
#define GDK_POLLS_REPEAT 64u	    /* number of empty polls before a repeated doorbell */
#define GDK_REPEAT_NS	 20000u	    /* time waited before the first repeated doorbell */
/* From this time on, and at its time limit, a wait also checks the word in which the host reports
 * a missing connection or CPU thread (struct gdk_watch_word). */
#define GDK_CHECK_NS 1000000u
/* Shortest time limit that a wait can end with -EHOSTDOWN. A program may call
 * doca_gpu_verbs_cpu_proxy_progress() only when a short wait has timed out. */
#define GDK_UNSERVED_NS 500000000u

/*
 * If CQEs are in host memory, a poll of a CQE is a read over PCIe, and reads of the same line by
 * several threads follow each other at intervals of a microsecond (H200). Thousands of polling
 * threads would wait for each other for milliseconds. So the threads that wait for one QP share an
 * interval: all together poll CQEs about once in GDK_LOOK_NS. In the other turns of its loop, a
 * waiting thread only loads `completed`, which is in GPU memory. The lanes of a warp execute their
 * turns one after another, so 30 waiting lanes would slow down one lane that posts. Therefore waits
 * with CQEs in host memory also pause, for 1/16 of the time waited so far.
 */
#define GDK_LOOK_NS    1000u
#define GDK_PAUSE_PART 16u
#define GDK_PAUSE_NS   16384u /* longest pause */

struct gdk_wait_timer {
	/* start: time at which the wait began, in ns; 0: not known yet. next: time from start to
	 * the next event, in ns (gdk_wait_turn()). */
	uint64_t start, next;
	uint32_t turns;
	/* Bit 0: the next turn polls no CQE. Bit 1: each turn that polls flips it; it selects which
	 * CQE gdk_look() polls. */
	uint32_t look;
};

/*
 * Ends a turn of a wait in which nothing was found. Returns 0, or the time waited in ns if an event
 * is due; the caller then calls gdk_wait_check(), and in exclusive use repeats the doorbell. Events
 * are due GDK_REPEAT_NS after the start, then each at 8 times the time of the one before, and at
 * the time limit. If the time limit is over, a turn that polled no CQE is followed by one that
 * polls, and then the event is due.
 *
 * limit_ns: the time limit; GDK_QP_LIMIT is replaced by the limit of the QP. looks_from: 0; or, if
 * CQEs are in host memory, the index of a slot: this thread polls no CQEs until `rung` has reached
 * this index. The threads then share the polls: a thread that will poll stores the clock in
 * `poll_ns`, and the others then do not poll for GDK_LOOK_NS. A thread whose slots are not rung
 * must not store `poll_ns`: it would stop the others, but not poll itself.
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
		return waited;
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
 * Returns 0 if a wait goes on after waited_ns, otherwise the negative errno that ends it. Checks
 * the time limit and the hint in the watch word of the queue (state.h). The host stores the hint
 * when it changes the state of the QP, when it rings without a service, and when a service begins
 * or ends to monitor the QP. So the status does not depend on when a thread of the library runs. A
 * wait that began before the QP was in state RTS continues if the QP is in this state when the hint
 * is read. There are few branches, because each kernel that waits has a copy of this code.
 */
GDK_FN int gdk_wait_check(const struct gdk_qp_state *st, uint64_t waited_ns, uint64_t limit_ns)
{
	const struct gdk_watch_word *word =
		(const struct gdk_watch_word *)(uintptr_t)gdk_ldc64(&st->watch);
	const int over = waited_ns > limit_ns - 1;
	uint32_t hint = 0, rung;
	int err = over ? -ETIMEDOUT : 0;

	/* `rung` is loaded first: a doorbell that the CPU rings between the loads is served. */
	rung = GDK_HINT_RUNG(gdk_ld64(&st->rung, GDK_SCOPE_GPU));
	if (over || waited_ns >= GDK_CHECK_NS)
		hint = gdk_ld32(&word->hint, GDK_SCOPE_SYS);
	if (over & (hint != 0) & (limit_ns >= GDK_UNSERVED_NS) & ((int32_t)(rung - hint) > 0))
		err = -EHOSTDOWN;
	return hint == GDK_HINT_UNCONNECTED ? -ENOTCONN : err;
}

/* Ends the QP because a wait failed with err, and returns the status that ended it. Reports err to
 * the host, unless the QP had ended with another status before. */
GDK_FN int gdk_wait_end(struct gdk_qp_state *st, int err)
{
	struct gdk_watch_word *word = (struct gdk_watch_word *)(uintptr_t)gdk_ldc64(&st->watch);
	int status;

	/* Hides the value, so that the compiler does not copy the rest of the function for each
	 * value. */
	GDK_COMPUTED32(err);
	status = gdk_state_end(st, err);

	if (status == err)
		gdk_st32(&word->ended, (uint32_t)-err, GDK_SCOPE_SYS);
	return status;
}

/*
 * Exclusive use: counts a poll that found nothing. Returns 1 at every GDK_POLLS_REPEAT-th such poll
 * since the last doorbell; the caller must then repeat the doorbell. `polled` is the count plus a
 * multiple of `rung`, modulo 2^32. So a count from before the last doorbell is out of range, and
 * the count starts again.
 */
GDK_FN int gdk_poll_repeats(struct gdk_qp_state *st, uint64_t rung)
{
	const uint32_t none = (uint32_t)rung * (GDK_POLLS_REPEAT + 1);
	uint32_t polls = gdk_ld32(&st->polled, GDK_SCOPE_THREAD) - none;

	polls = polls < GDK_POLLS_REPEAT ? polls + 1 : 1;
	gdk_st32(&st->polled, none + polls, GDK_SCOPE_THREAD);
	return polls == GDK_POLLS_REPEAT;
}

#endif
