/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* A clock for tests of waits: only turns and pauses of the wait advance it, and at_time() of the
 * test is called after each turn. */
#ifndef WAIT_CLOCK_H
#define WAIT_CLOCK_H

#include <criterion/criterion.h>
#include <errno.h>

#include "device/gdk/platform.h"

static uint64_t clock_ns, longest_pause, paused_ns;
static uint32_t turns_made, turns_before; /* turns; before the first pause */
static uint64_t turn_ns = 1000;		  /* duration of a turn, in which the CQ is polled */

static void note_pause(uint32_t ns)
{
	if (!paused_ns)
		turns_before = turns_made;
	cr_expect_leq(ns * 16ull, turns_made * 1000ull + paused_ns + 1000,
		      "pause too long after %u turns", turns_made);
	clock_ns += ns;
	paused_ns += ns;
	longest_pause = ns > longest_pause ? ns : longest_pause;
}

static void at_time(void);

static void note_turn(void)
{
	turns_made++;
	clock_ns += turn_ns;
	at_time();
}

#define gdk_pause_ns(ns) note_pause(ns)
#define gdk_relax(spins) ((void)(spins), note_turn())
#define gdk_now_ns()	 (clock_ns)

#include "rig.h"
#include "../lib/post_slots.h"

#define DEPTH	 64u
#define LIMIT_NS 10000000u

static struct rig rig;
static uint64_t served_ns; /* from this time on, the NIC works; 0: never */

static void begin(int handler)
{
	rig_init(&rig, DEPTH, handler, 0);
	clock_ns = 1;
	longest_pause = paused_ns = 0;
	turns_made = turns_before = 0;
	turn_ns = 1000;
}

/* Posts and rings n signalled NOPs. Returns the last slot. */
static uint64_t post(gdk_mode_t mode, uint32_t n)
{
	uint64_t idx, i;

	cr_assert_eq(gdk_reserve(&rig.qp, n, mode, 0, &idx), 0);
	for (i = idx; i < idx + n; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	post_slots(&rig.qp, idx, idx + n - 1, mode, RIG_AUTO, 0);
	return idx + n - 1;
}

static void nic_at_its_time(void)
{
	if (rig.st && served_ns && clock_ns >= served_ns)
		rig_nic(&rig);
}

#endif
