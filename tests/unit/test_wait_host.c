/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Waits of GPU threads for CQEs in host memory, which they poll over PCIe: how a wait backs off
 * between polls, and how threads share the polls. Pauses and turns are recorded, and only they
 * advance the clock.
 */
#include "wait_clock.h"

static int others_look; /* another thread polls CQEs in each turn */

TestSuite(wait_host, .timeout = 60);

/* Waits for `need` slots, none of which completes, and checks the longest pause. */
static void waits(uint32_t flags, uint64_t need, uint64_t limit_ns, uint64_t longest)
{
	begin(RIG_DB);
	rig.st->flags |= flags;
	cr_assert_eq(gdk_wait_for(&rig.qp, need - 1, RIG_GPU, limit_ns), -ETIMEDOUT);
	cr_expect_eq(longest_pause, longest, "longest pause %lu ns", longest_pause);
	cr_expect_geq(clock_ns, limit_ns);
	cr_expect_leq(clock_ns, limit_ns + longest + 2 * turn_ns + 1, "timed out after %lu ns",
		      clock_ns);
	rig_fini(&rig);
}

Test(wait_host, wait_pauses_for_a_part_of_its_time)
{
	waits(GDK_QPF_HOST_LOOKS, 1, LIMIT_NS, GDK_PAUSE_NS);
	cr_expect_eq(turns_before, 2, "%u turns before the first pause", turns_before);
	waits(GDK_QPF_HOST_LOOKS, DEPTH + 1, LIMIT_NS, GDK_PAUSE_NS);
}

/* The times of looks at CQEs, as the wait notes them. */
static uint32_t looked_at[64], looks;
static int looks_noted;

static void note_looks(void)
{
	const uint32_t at = rig.st ? rig.st->poll_ns : 0;

	if (looks_noted && looks < 64 && (!looks || looked_at[looks - 1] != at))
		looked_at[looks++] = at;
}

static void at_time(void)
{
	if (rig.st && others_look)
		rig.st->poll_ns = (uint32_t)clock_ns;
	note_looks();
	nic_at_its_time();
}

Test(wait_host, threads_look_at_cqes_in_host_memory_at_intervals)
{
	uint32_t i;

	begin(RIG_DB);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	(void)post(RIG_GPU, 1);
	turn_ns = 300;
	looks = 0;
	looks_noted = 1;
	cr_assert_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, 20000), -ETIMEDOUT);
	looks_noted = 0;
	cr_assert_geq(looks, 10);
	for (i = 2; i < looks; i++)
		cr_expect_geq(looked_at[i] - looked_at[i - 1], GDK_LOOK_NS);
	rig_fini(&rig);
}

/* Another thread has looked just now: this one finds its slot complete without a look. */
Test(wait_host, turn_without_a_look_sees_what_others_found)
{
	struct gdk_wait_timer w = { 0, UINT64_MAX, 0, 0 };
	uint64_t limit_ns = 0;

	begin(RIG_DB);
	(void)post(RIG_GPU, 1);
	clock_ns = 5000;
	rig.st->poll_ns = 5000;
	(void)gdk_wait_turn(rig.st, &w, &limit_ns, 1);
	cr_expect_eq(rig.st->poll_ns, 6000, "a look %u ns after the last", rig.st->poll_ns - 5000);
	cr_expect_eq(w.look & 1, 0);
	turn_ns = 999;
	(void)gdk_wait_turn(rig.st, &w, &limit_ns, 1);
	cr_expect_eq(rig.st->poll_ns, 6000);
	cr_expect_eq(w.look & 1, 1);
	rig_fini(&rig);
}

/* As above, for a wait that counts CQEs: 4 slots are complete, but the second CQE has not arrived.
 * Another thread looks at CQEs all the time. */
Test(wait_host, turn_without_a_look_counts_cqes)
{
	uint64_t idx, i;

	begin(RIG_DB);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	rig.st->wait_limit_ns = LIMIT_NS;
	cr_assert_eq(gdk_reserve(&rig.qp, 4, RIG_GPU, 0, &idx), 0);
	for (i = 0; i < 4; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i,
			    i == 3 ? GDK_CE_ALWAYS : 0);
	post_slots(&rig.qp, 0, 3, RIG_GPU, RIG_AUTO, 0);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait_for(&rig.qp, 3, RIG_GPU, LIMIT_NS), 0);
	others_look = 1;
	cr_expect_eq(gdk_poll_cq_at(&rig.qp.cq_sq, 0, RIG_GPU), 0);
	cr_expect_eq(gdk_poll_cq_at(&rig.qp.cq_sq, 1, RIG_GPU), -ETIMEDOUT);
	others_look = 0;
	rig_fini(&rig);
}

/* Its slots are not rung, so it finds no CQE: other threads must be able to look. */
Test(wait_host, thread_whose_slots_are_not_rung_leaves_looks_to_others)
{
	begin(RIG_DB);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	cr_assert_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, LIMIT_NS), -ETIMEDOUT);
	cr_expect_eq(rig.st->poll_ns, 0);
	rig_fini(&rig);
}

/* Another thread looks all the time, and then no more. The CQE arrives shortly before the limit:
 * the wait looks before it ends. */
Test(wait_host, wait_looks_at_its_limit)
{
	begin(RIG_DB);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	(void)post(RIG_GPU, 1);
	others_look = 1;
	served_ns = LIMIT_NS - 2000;
	cr_expect_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, LIMIT_NS), 0);
	cr_expect_geq(clock_ns, served_ns);
	others_look = 0;
	served_ns = 0;
	rig_fini(&rig);
}

Test(wait_host, no_pauses_when_polling_gpu_memory)
{
	waits(0, DEPTH + 1, LIMIT_NS, 0);
}

Test(wait_host, polling_a_cq_by_index_pauses_too)
{
	begin(RIG_DB);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	rig.st->wait_limit_ns = LIMIT_NS;
	cr_assert_eq(gdk_poll_cq_at(&rig.qp.cq_sq, 0, RIG_GPU), -ETIMEDOUT);
	cr_expect_eq(longest_pause, GDK_PAUSE_NS);
	rig_fini(&rig);
}
