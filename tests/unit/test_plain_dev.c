/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The plain end: the index below which exclusive use posts without a look at the state block
 * (status_dev.h). It must never be above the slots that are free, and must be 0 when the token is
 * not owned, when fences need system scope, or when the queue pair has ended. test_export.c tests
 * what the host does.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "rig.h"

#define DEPTH 8u

static struct rig rig;
static const struct doca_gpu_dev_verbs_addr there = { 0x1000, 1 }, here = { 0x2000, 2 };

static void begin(uint32_t depth, int handler)
{
	rig_init(&rig, depth, handler, 0);
	rig.st->flags &= ~GDK_QPF_SYS_SCOPE;
	rig.st->wait_limit_ns = 1000000;
}

static int put(gdk_mode_t mode, uint32_t opt)
{
	uint64_t ticket;

	return gdk_put(&rig.qp, there, here, 64, &ticket, gdk_how(mode, RIG_AUTO, RIG_THREAD, opt));
}

static uint64_t plain_end(void)
{
	return rig.qp.gdk_plain_end;
}

TestSuite(plain_dev, .timeout = 60);

/* A full ring is noticed, although most posts do not look at `completed`. */
Test(plain_dev, it_is_one_ring_above_what_is_complete)
{
	uint64_t i;

	begin(DEPTH, RIG_DB);
	cr_assert_eq(plain_end(), 0);
	for (i = 0; i < DEPTH; i++) {
		cr_assert_eq(put(RIG_EXCL, 0), 0);
		cr_assert_eq(plain_end(), DEPTH);
	}
	cr_assert_eq(put(RIG_EXCL, 0), -ETIMEDOUT);
	cr_assert_eq(plain_end(), 0, "the wait for a slot has ended the queue pair");
	rig_fini(&rig);
}

/* With every slot in use, each wait frees one, and the next put is plain again. */
Test(plain_dev, waits_and_polls_raise_it)
{
	uint64_t i;
	int err;

	begin(DEPTH, RIG_DB);
	for (i = 0; i < DEPTH; i++)
		cr_assert_eq(put(RIG_EXCL, 0), 0);
	rig_nic(&rig);
	for (i = 0; i < 3 * DEPTH; i++) {
		if (i % 3 == 0)
			err = gdk_wait(&rig.qp, i, RIG_EXCL);
		else if (i % 3 == 1)
			err = gdk_poll_cq_at(&rig.qp.cq_sq, i, RIG_EXCL);
		else
			err = gdk_poll_one_cq_at(&rig.qp.cq_sq, i, RIG_EXCL);
		cr_assert_eq(err, 0);
		cr_assert_eq(plain_end(), DEPTH + i + 1);
		cr_assert_eq(put(RIG_EXCL, 0), 0);
		rig_nic(&rig);
		cr_assert_eq(rig.faults, 0);
	}
	rig_fini(&rig);
}

Test(plain_dev, shared_use_clears_it)
{
	const gdk_mode_t modes[] = { RIG_CTA, RIG_GPU };
	uint64_t i, end = 0;

	begin(64, RIG_DB);
	for (i = 0; i < 100; i++) {
		cr_assert_eq(put(RIG_EXCL, i & 4 ? GDK_OPT_SKIP_DB : 0), 0);
		cr_assert_neq(plain_end(), 0);
		cr_assert_eq(put(modes[i & 1], 0), 0);
		cr_assert_eq(plain_end(), 0);
		end += 2;
		rig_nic(&rig);
		cr_assert_eq(rig.faults, 0);
		cr_assert_eq(rig.ci, end);
		/* The token is not owned: this wait must not set it. */
		cr_assert_eq(gdk_wait(&rig.qp, end - 1, RIG_EXCL), 0);
		cr_assert_eq(plain_end(), 0);
	}
	rig_fini(&rig);
}

Test(plain_dev, blueflame_of_shared_use_clears_it)
{
	uint8_t wqe[64] __attribute__((aligned(64)));
	uint64_t idx;

	begin(64, RIG_BF);
	cr_assert_eq(put(RIG_EXCL, GDK_OPT_SKIP_DB), 0);
	cr_assert_neq(plain_end(), 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &idx), 0);
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx, GDK_CE_ALWAYS);
	memcpy(wqe, gdk_get_wqe_ptr(&rig.qp, idx), sizeof(wqe));
	gdk_mark_ready(&rig.qp, idx, idx, RIG_GPU, RIG_AUTO);
	gdk_submit_bf(&rig.qp, idx + 1, wqe, gdk_how(RIG_GPU, RIG_BF, RIG_THREAD, 0));
	cr_assert_eq(plain_end(), 0);
	rig_fini(&rig);
}

Test(plain_dev, the_end_of_the_queue_pair_clears_it)
{
	begin(DEPTH, RIG_DB);
	cr_assert_eq(put(RIG_EXCL, 0), 0);
	cr_assert_eq(gdk_state_end(rig.st, -EIO), -EIO);
	cr_assert_eq(plain_end(), 0);
	cr_assert_eq(put(RIG_EXCL, 0), -EIO);
	cr_assert_eq(put(RIG_EXCL, GDK_OPT_SKIP_CHECK), -EIO);
	cr_assert_eq(rig.st->rung, 1);
	rig_fini(&rig);
}

/* Fences need system scope: the shortest path has none, so it must not see the plain end. */
Test(plain_dev, it_is_in_the_state_block_with_host_memory)
{
	uint64_t i;

	rig_init(&rig, DEPTH, RIG_DB, 0);
	rig.st->wait_limit_ns = 1000000;
	for (i = 0; i < 3 * DEPTH; i++) {
		cr_assert_eq(put(RIG_EXCL, 0), 0);
		cr_assert_eq(plain_end(), 0);
		cr_assert_eq(rig.st->plain_sys, i < DEPTH ? DEPTH : i / DEPTH * DEPTH + DEPTH);
		rig_nic(&rig);
		if (i % DEPTH == DEPTH - 1)
			cr_assert_eq(gdk_wait(&rig.qp, i, RIG_EXCL), 0);
	}
	for (i = 0; i < DEPTH; i++)
		cr_assert_eq(put(RIG_EXCL, 0), 0);
	cr_assert_eq(put(RIG_EXCL, 0), -ETIMEDOUT);
	cr_assert_eq(rig.st->plain_sys, 0);
	rig_fini(&rig);
}

/* A doorbell may not cover 32768 slots. */
Test(plain_dev, longest_ring_is_rung_in_halves)
{
	uint64_t i;

	begin(32768, RIG_DB);
	for (i = 0; i < 32768; i++) {
		cr_assert_eq(put(RIG_EXCL, i < 32767 ? GDK_OPT_SKIP_DB : 0), 0);
		cr_assert_leq(plain_end(), rig.st->rung + 0x4000);
	}
	cr_assert_eq(rig.st->rung, 32768);
	cr_assert_geq(rig.st->doorbells, 2);
	rig_fini(&rig);
	/* Without availability check, too. */
	begin(32768, RIG_DB);
	for (i = 0; i < 32768; i++)
		cr_assert_eq(put(RIG_EXCL, i < 32767 ? GDK_OPT_SKIP_DB | GDK_OPT_SKIP_CHECK
						     : GDK_OPT_SKIP_CHECK),
			     0);
	cr_assert_eq(rig.st->rung, 32768);
	cr_assert_geq(rig.st->doorbells, 2);
	rig_fini(&rig);
}

/* Slots that were reserved by hand count, too; a put behind them rings them. */
Test(plain_dev, slots_reserved_by_hand)
{
	uint64_t idx, i;

	begin(DEPTH, RIG_DB);
	cr_assert_eq(put(RIG_EXCL, 0), 0);
	cr_assert_eq(gdk_reserve(&rig.qp, DEPTH - 2, RIG_EXCL, 0, &idx), 0);
	for (i = idx; i < idx + DEPTH - 2; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	gdk_mark_ready(&rig.qp, idx, idx + DEPTH - 3, RIG_EXCL, RIG_AUTO);
	cr_assert_eq(put(RIG_EXCL, 0), 0);
	rig_nic(&rig);
	cr_assert_eq(rig.ci, DEPTH);
	cr_assert_eq(rig.faults, 0);
	rig_fini(&rig);
	begin(DEPTH, RIG_DB);
	cr_assert_eq(put(RIG_EXCL, 0), 0);
	cr_assert_eq(gdk_reserve(&rig.qp, DEPTH - 1, RIG_EXCL, 0, &idx), 0);
	cr_assert_eq(put(RIG_EXCL, 0), -ETIMEDOUT, "the ring is full");
	rig_fini(&rig);
}
