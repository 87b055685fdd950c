/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * How a GPU thread that polls over PCIe backs off between polls. Here, pauses and
 * polls are recorded, and only they advance the clock.
 */
#include <criterion/criterion.h>

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

/* A poll takes 1 us. */
static void note_poll(void)
{
	polls++;
	now_ns += 1000;
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
