/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Exclusive use by the lanes of a warp: one posts, and several may wait at the same time
 * (qp/README.md). Lanes in lockstep all load a word before one of them stores it. So each test runs
 * the call of one lane once for each of its memory accesses: before this access, the whole call of
 * another lane runs. The words that only grow must not go back, and nothing may be lost.
 */
#include <criterion/criterion.h>
#include <setjmp.h>

#include "device/gdk/platform.h"

static void before_access(void);

/* The pair of words is one access on a GPU. */
static inline void load_pair(const uint64_t *p, uint64_t *a, uint64_t *b, int scope)
{
	gdk_ld64x2(p, a, b, scope);
}

static inline void store_pair(uint64_t *p, uint64_t a, uint64_t b, int scope)
{
	gdk_st64x2(p, a, b, scope);
}

static uint64_t now_ns;
static void turn(void);

#define gdk_ld32(p, scope)	   (before_access(), gdk_ld32(p, scope))
#define gdk_ld64(p, scope)	   (before_access(), gdk_ld64(p, scope))
#define gdk_ld64x2(p, a, b, scope) (before_access(), load_pair(p, a, b, scope))
#define gdk_st32(p, v, scope)	   (before_access(), gdk_st32(p, v, scope))
#define gdk_st64(p, v, scope)	   (before_access(), gdk_st64(p, v, scope))
#define gdk_st64x2(p, a, b, scope) (before_access(), store_pair(p, a, b, scope))
#define gdk_mmio_st64(p, v)	   (before_access(), gdk_mmio_st64(p, v))
#define gdk_red_max64(p, v, scope) (before_access(), gdk_red_max64(p, v, scope))
#define gdk_red_min64(p, v, scope) (before_access(), gdk_red_min64(p, v, scope))
#define gdk_red_inc64(p, scope)	   (before_access(), gdk_red_inc64(p, scope))
#define gdk_relax(spins)	   ((void)(spins), turn())
#define gdk_now_ns()		   (now_ns)

#include "rig.h"

#define DEPTH	 8u
#define LIMIT_NS 1000000u
#define POSTED	 6u /* slots that are posted before the lanes meet */
#define LOW	 1u
#define HIGH	 (POSTED - 1)

struct use {
	int handler, collapsed;
	int unrung; /* the slots are posted without a doorbell: a wait rings */
	int uneven; /* one of them is unsignalled */
	uint64_t base;
};

static struct rig rig;
static const struct use *use;
static uint64_t base; /* index of the first slot */
static const struct doca_gpu_dev_verbs_addr there = { 0x1000, 1 }, here = { 0x2000, 2 };

/* ---- two lanes ---- */

typedef int lane_fn(uint64_t slot);

static struct {
	lane_fn *fn; /* the lane that interrupts */
	uint64_t slot;
	uint32_t at, count; /* it runs before access `at` of the other lane */
	uint32_t turns;	    /* turns of its wait while the other lane stands still */
	enum { NOT_YET, RUNS, WAITS, DONE } state;
	jmp_buf back;
	int result;
} other;
static uint64_t most[4]; /* highest values of the words that only grow */

static void check_growth(const char *when)
{
	const uint64_t now[] = { rig.st->completed, rig.st->cqe_ci, rig.st->rung,
				 rig.qp.cq_sq.cqe_ci };
	const char *const name[] = { "completed", "cqe_ci", "rung", "cqe_ci of the device CQ" };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		cr_assert_geq(now[i], most[i], "%s: %s went back, access %u", when, name[i],
			      other.at);
		most[i] = now[i];
	}
}

static void before_access(void)
{
	check_growth("during the call");
	if (other.state != NOT_YET || other.count++ != other.at)
		return;
	other.state = RUNS;
	other.turns = 0;
	if (setjmp(other.back)) {
		other.state = WAITS;
		return;
	}
	other.result = other.fn(other.slot);
	other.state = DONE;
}

/* A turn of a wait: the NIC works. The interrupting lane may wait for what the other lane is about
 * to do. It then begins its wait again when the other lane's call has returned. */
static void turn(void)
{
	now_ns += 1000;
	rig_nic(&rig);
	if (other.state == RUNS && ++other.turns == 2 * GDK_REPEAT_NS / 1000)
		longjmp(other.back, 1);
}

/* ---- what a lane does ---- */

static int wait_lane(uint64_t slot)
{
	return gdk_wait(&rig.qp, slot, RIG_EXCL);
}

static int wait_for_lane(uint64_t slot)
{
	return gdk_wait_for(&rig.qp, slot, RIG_EXCL, LIMIT_NS);
}

static int ticket_lane(uint64_t slot)
{
	const int err = gdk_poll_ticket(&rig.qp, slot, RIG_EXCL);

	return err == EBUSY ? 0 : err;
}

/* The first slot of uneven use has no CQE. */
static uint64_t cqe_of(uint64_t slot)
{
	return slot - (use->uneven ? 1 : 0);
}

static int poll_at_lane(uint64_t slot)
{
	return gdk_poll_cq_at(&rig.qp.cq_sq, cqe_of(slot), RIG_EXCL);
}

static int poll_one_lane(uint64_t slot)
{
	const int err = gdk_poll_one_cq_at(&rig.qp.cq_sq, cqe_of(slot), RIG_EXCL);

	return err == EBUSY ? 0 : err;
}

static int collapsed_lane(uint64_t slot)
{
	return gdk_poll_collapsed_at(&rig.qp, slot, RIG_EXCL);
}

static int put_lane(uint64_t slot)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	const int err = gdk_put(&rig.qp, there, here, 64, &ticket,
				gdk_how(RIG_EXCL, RIG_AUTO, RIG_THREAD, 0));

	(void)slot;
	rig_nic(&rig);
	return err;
}

/* A batch: only the last of two puts rings. */
static int batch_lane(uint64_t slot)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	const int err = gdk_put(&rig.qp, there, here, 64, &ticket,
				gdk_how(RIG_EXCL, RIG_AUTO, RIG_THREAD, GDK_OPT_SKIP_DB));

	return err ? err : put_lane(slot);
}

/* A WQE that the program writes itself. */
static int by_hand_lane(uint64_t slot)
{
	uint64_t idx;
	const int err = gdk_reserve(&rig.qp, 1, RIG_EXCL, 0, &idx);

	(void)slot;
	if (err)
		return err;
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx, GDK_CE_ALWAYS);
	rig_post(&rig, idx, idx, RIG_EXCL, RIG_AUTO, 0);
	rig_nic(&rig);
	return 0;
}

/* ---- cases ---- */

static const struct use uses[] = {
	{ RIG_DB, 0, 0, 0, 0 },		{ RIG_DB, 0, 0, 1, 0 },	      { RIG_DB, 1, 0, 0, 0 },
	{ RIG_DB, 0, 1, 0, 0 },		{ RIG_DB, 0, 1, 1, 0 },	      { RIG_NO_DBR, 0, 1, 0, 0 },
	{ RIG_PROXY, 0, 1, 0, 0 },	{ RIG_BF, 0, 1, 0, 0 },	      { RIG_DB, 0, 0, 1, 1 << 16 },
	{ RIG_DB, 0, 1, 1, 65536 - 8 }, { RIG_DB, 1, 0, 0, 1 << 16 },
};
#define USES (sizeof(uses) / sizeof(uses[0]))

/* The queue pair has posted and completed `at` WQEs. */
static void start_at(uint64_t at)
{
	const int odd_lap = gdk_odd_lap(DEPTH, at);
	unsigned int i;

	base = at;
	rig.qp.sq_rsvd_index = at;
	rig.qp.cq_sq.cqe_ci = at;
	rig.st->rung = rig.st->completed = rig.st->cqe_ci = rig.st->wanted = rig.st->parked = at;
	*gdk_word(rig.st, DEPTH, at) = gdk_token_bit(DEPTH, at) | (odd_lap ? 0xff : 0);
	rig.pi = rig.ci = rig.cq_pi = at;
	for (i = 0; i < DEPTH; i++)
		rig.cqe[i].op_own = at ? !odd_lap : 0xf1;
	memset(most, 0, sizeof(most));
}

static void begin(void)
{
	const struct use *u = use;
	const uint32_t opt = u->unrung ? GDK_OPT_SKIP_DB : 0;
	uint64_t i, idx;

	rig_init(&rig, DEPTH, u->handler, u->collapsed);
	rig.st->wait_limit_ns = LIMIT_NS;
	rig.lanes_ring = u->unrung;
	rig.dbrec[1] = u->handler == RIG_NO_DBR ? RIG_POISON : htobe32((uint16_t)u->base);
	start_at(u->base);
	other.state = DONE;
	now_ns = 1;
	for (i = 0; i < POSTED; i++) {
		cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_EXCL, 0, &idx), 0);
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx,
			    u->uneven && !i ? 0 : GDK_CE_ALWAYS);
		rig_post(&rig, idx, idx, RIG_EXCL, RIG_AUTO, opt);
	}
	if (u->unrung)
		gdk_mark_ready(&rig.qp, base, idx, RIG_EXCL, RIG_AUTO);
	else
		rig_nic(&rig);
}

/* Everything that was posted is rung and complete, and a ticket of an earlier lap, too. */
static void check_end(int waited)
{
	uint64_t end = rig.qp.sq_rsvd_index, slot;

	check_growth("at the end");
	if (waited)
		cr_assert_geq(rig.st->completed, base + LOW + 1);
	cr_assert_eq(wait_lane(end - 1), 0);
	rig_nic(&rig);
	cr_assert_eq(rig.pi, end, "rung to %llu of %llu", (unsigned long long)rig.pi,
		     (unsigned long long)end);
	cr_assert_eq(rig.st->rung, end);
	cr_assert_eq(rig.st->completed, end);
	if (use->handler == RIG_DB || use->handler == RIG_BF)
		cr_assert_eq(be32toh(rig.dbrec[1]), (uint16_t)end);
	if (use->handler == RIG_PROXY)
		cr_assert_eq(rig.counter, end);
	for (slot = 0; slot < DEPTH; slot++)
		cr_assert_eq(put_lane(0), 0);
	for (slot = base; slot < end; slot++)
		cr_assert_eq(wait_lane(slot), 0, "an old ticket");
	cr_assert_eq(rig.faults, 0);
	cr_assert_eq(rig.st->status, 0);
}

/* From now on: lane b runs before access `at` of the calling lane. */
static void interrupt(lane_fn *b, uint64_t at_b, uint32_t at)
{
	other.fn = b;
	other.slot = base + at_b;
	other.at = at;
	other.count = 0;
	other.state = NOT_YET;
}

/* Runs lane a, interrupted by lane b, once for each access of a. */
static void meet(lane_fn *a, uint64_t at_a, lane_fn *b, uint64_t at_b)
{
	uint32_t at = 0;
	int err, met;

	do {
		begin();
		interrupt(b, at_b, at++);
		err = a(base + at_a);
		cr_assert_eq(err, 0, "use %d, access %u: %d", (int)(use - uses), other.at, err);
		met = other.state != NOT_YET;
		if (other.state != DONE) {
			other.state = DONE;
			other.result = b(base + at_b);
		}
		cr_assert_eq(other.result, 0, "use %d, the other lane, access %u: %d",
			     (int)(use - uses), other.at, other.result);
		check_end(a == wait_lane || b == wait_lane);
		rig_fini(&rig);
	} while (met);
	cr_assert_gt(at, 1);
}

/* Polls of CQEs do not ring. */
static int can(lane_fn *fn)
{
	return !(use->unrung && (fn == poll_at_lane || fn == collapsed_lane));
}

TestSuite(lanes_dev, .timeout = 60);

static lane_fn *const waits[] = { wait_lane,	wait_for_lane, ticket_lane,
				  poll_at_lane, poll_one_lane, collapsed_lane };
#define WAITS (sizeof(waits) / sizeof(waits[0]))

Test(lanes_dev, two_lanes_wait)
{
	unsigned int u, a, b;

	for (u = 0; u < USES; u++)
		for (a = 0; a < WAITS; a++)
			for (b = 0; b < WAITS; b++) {
				use = &uses[u];
				if (!can(waits[a]) || !can(waits[b]))
					continue;
				meet(waits[a], LOW, waits[b], HIGH);
				meet(waits[a], HIGH, waits[b], LOW);
			}
}

static lane_fn *const posts[] = { put_lane, batch_lane, by_hand_lane };
#define POSTS (sizeof(posts) / sizeof(posts[0]))

Test(lanes_dev, one_lane_waits_and_one_posts)
{
	unsigned int u, a, b;

	for (u = 0; u < USES; u++)
		for (a = 0; a < WAITS; a++)
			for (b = 0; b < POSTS; b++) {
				use = &uses[u];
				if (!can(waits[a]))
					continue;
				meet(waits[a], HIGH, posts[b], 0);
				meet(posts[b], 0, waits[a], HIGH);
			}
}

/* A lane polls for the CQE of a WQE that another lane has yet to post. The index of this WQE is
 * computed from `rung`, which the other lane raises during the poll. */
Test(lanes_dev, one_lane_polls_for_the_next_cqe)
{
	unsigned int u, b;
	uint32_t at;

	for (u = 0; u < USES; u++)
		for (b = 0; b < POSTS; b++)
			for (at = 0; at < 100; at++) {
				use = &uses[u];
				begin();
				cr_assert_eq(wait_lane(base + HIGH), 0);
				interrupt(posts[b], 0, at);
				cr_assert_eq(poll_at_lane(base + POSTED), 0, "use %u, access %u", u,
					     at);
				check_end(1);
				rig_fini(&rig);
			}
}
