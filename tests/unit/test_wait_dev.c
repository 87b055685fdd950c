/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * How a GPU thread that polls over PCIe backs off between polls, and when a wait reads
 * the word of the watch. Here, pauses and polls are recorded, and only they advance the
 * clock.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "device/gdk/platform.h"

static uint64_t now_ns, longest_ns, paused_ns;
static uint32_t polls, polls_before;

static void note_pause(uint32_t ns)
{
	if (!paused_ns)
		polls_before = polls;
	cr_expect_leq(ns * 16ull, polls * 1000ull + paused_ns + 1000,
		      "pause too long after %u polls", polls);
	now_ns += ns;
	paused_ns += ns;
	longest_ns = ns > longest_ns ? ns : longest_ns;
}

static void at_time(void);

/* A poll takes 1 us. */
static void note_poll(void)
{
	polls++;
	now_ns += 1000;
	at_time();
}

#define gdk_pause_ns(ns) note_pause(ns)
#define gdk_relax(spins) ((void)(spins), note_poll())
#define gdk_now_ns()	 (now_ns)

#include "rig.h"

#define DEPTH	 64u
#define LIMIT_NS 10000000u

static struct rig rig;

/* Waits for `need` slots, none of which completes, and checks the longest pause. */
static void waits(uint32_t flags, uint64_t need, uint64_t longest)
{
	rig_init(&rig, DEPTH, RIG_DB, 0);
	rig.st->flags |= flags;
	now_ns = 1;
	longest_ns = paused_ns = 0;
	polls = polls_before = 0;
	cr_assert_eq(gdk_wait_completed(rig.st, &rig.qp.cq_sq, need, GDK_SCOPE_GPU, LIMIT_NS),
		     -ETIMEDOUT);
	cr_expect_eq(longest_ns, longest, "longest pause %lu ns", longest_ns);
	cr_expect_geq(now_ns, LIMIT_NS);
	cr_expect_leq(now_ns, LIMIT_NS + (longest ? longest + 2000 : 65000),
		      "timed out after %lu ns", now_ns);
	rig_fini(&rig);
}

TestSuite(wait_dev, .timeout = 30);

Test(wait_dev, near_wait_pauses_no_longer_than_a_poll)
{
	waits(GDK_QPF_HOST_LOOKS, 1, GDK_PAUSE_NEAR_NS);
	cr_expect_eq(polls_before, GDK_PAUSE_TURNS, "%u polls before the first pause",
		     polls_before);
	waits(GDK_QPF_HOST_LOOKS, DEPTH, GDK_PAUSE_NEAR_NS);
}

Test(wait_dev, far_wait_pauses_longer)
{
	waits(GDK_QPF_HOST_LOOKS, DEPTH + 1, GDK_PAUSE_FAR_NS);
}

Test(wait_dev, no_pauses_when_polling_gpu_memory)
{
	waits(0, DEPTH + 1, 0);
}

Test(wait_dev, polling_a_cq_by_index_pauses_too)
{
	rig_init(&rig, DEPTH, RIG_DB, 0);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	rig.st->wait_limit_ns = LIMIT_NS;
	now_ns = 1;
	cr_assert_eq(gdk_poll_cq_at(&rig.qp.cq_sq, 0, RIG_GPU), -ETIMEDOUT);
	cr_expect_eq(longest_ns, GDK_PAUSE_NEAR_NS);
	rig_fini(&rig);
}

Test(wait_dev, pauses_restart_with_the_count_of_polls)
{
	struct gdk_wait_timer w;

	gdk_wait_start(&w, 0);
	w.longest_ns = UINT32_MAX;
	w.spins = UINT32_MAX;
	cr_expect_eq(gdk_wait_pause(&w), GDK_PAUSE_FAR_NS);
	w.spins = 0;
	cr_expect_eq(gdk_wait_pause(&w), 0);
	w.spins = GDK_PAUSE_TURNS;
	cr_expect_eq(gdk_wait_pause(&w), GDK_PAUSE_FIRST_NS);
}

/* ---- the word of the watch ---- */

static struct gdk_watch_word word;
static uint64_t mapped_ns;  /* from this time on, the word can be read */
static uint64_t changed_ns; /* from this time on, the word has no hint; 0: never */

static void at_time(void)
{
	if (rig.st && now_ns >= mapped_ns && mapped_ns)
		rig.st->watch = (uintptr_t)&word;
	if (changed_ns && now_ns >= changed_ns)
		word.hints = 0;
}

/* Before 900 us any read of the word is one of address 16. */
static void watched_open(uint32_t hints, uint64_t limit_ns)
{
	rig_init(&rig, DEPTH, RIG_DB, 0);
	rig.st->watch = 16;
	rig.st->wait_limit_ns = limit_ns;
	word = (struct gdk_watch_word){ .hints = hints };
	mapped_ns = 900000;
	changed_ns = 0;
	now_ns = 1;
}

static int watched_wait(int way)
{
	if (way == 0)
		return gdk_wait(&rig.qp, 0, RIG_GPU);
	return way == 1 ? gdk_poll_cq_at(&rig.qp.cq_sq, 0, RIG_GPU)
			: gdk_poll_collapsed_at(&rig.qp, 0, RIG_GPU);
}

Test(wait_dev, unconnected_wait_ends_after_a_millisecond)
{
	for (int way = 0; way < 3; way++)
		for (uint64_t limit_ns = 0; limit_ns <= LIMIT_NS; limit_ns += LIMIT_NS) {
			watched_open(GDK_HINT_UNCONNECTED, limit_ns);
			cr_expect_eq(watched_wait(way), -ENOTCONN);
			cr_expect_geq(now_ns, GDK_WAIT_CHECK_NS);
			cr_expect_leq(now_ns, GDK_WAIT_CHECK_NS + 65 * 1000);
			cr_expect_eq(word.refused, 1);
			cr_expect_eq(watched_wait(way), -ENOTCONN, "the status must be sticky");
			rig_fini(&rig);
		}
}

Test(wait_dev, wait_continues_if_the_qp_is_connected_in_time)
{
	for (int way = 0; way < 3; way++) {
		watched_open(GDK_HINT_UNCONNECTED, LIMIT_NS);
		changed_ns = 950000;
		cr_expect_eq(watched_wait(way), -ETIMEDOUT);
		cr_expect_geq(now_ns, LIMIT_NS);
		cr_expect_eq(word.refused, 0);
		rig_fini(&rig);
	}
}

Test(wait_dev, unserved_wait_keeps_its_limit)
{
	for (int way = 0; way < 3; way++) {
		watched_open(GDK_HINT_UNSERVED, LIMIT_NS);
		cr_expect_eq(watched_wait(way), -EHOSTDOWN);
		cr_expect_geq(now_ns, LIMIT_NS);
		cr_expect_leq(now_ns, LIMIT_NS + 65 * 1000);
		rig_fini(&rig);
	}
}

Test(wait_dev, limit_below_a_millisecond_is_kept)
{
	watched_open(GDK_HINT_UNCONNECTED, 100000);
	mapped_ns = 1000;
	cr_expect_eq(gdk_wait(&rig.qp, 0, RIG_GPU), -ENOTCONN);
	cr_expect_leq(now_ns, 100000 + 130 * 1000);
	rig_fini(&rig);
}

/* A limit of the caller is not an error of the QP. */
Test(wait_dev, wait_for_does_not_end_the_qp)
{
	watched_open(GDK_HINT_UNCONNECTED, LIMIT_NS);
	cr_expect_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, LIMIT_NS), -ENOTCONN);
	cr_expect_eq(gdk_qp_status(&rig.qp), 0);
	word.hints = 0;
	cr_expect_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, LIMIT_NS), -ETIMEDOUT);
	cr_expect_eq(gdk_qp_status(&rig.qp), 0);
	rig_fini(&rig);
}
