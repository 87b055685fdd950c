/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The device functions that read CQEs and update the QP's state: owner bits, 64-bit
 * indices, error CQEs, aborts, time limits, and the CQ's DBREC.
 */
#include <criterion/criterion.h>

#include "device/gdk/platform.h"

/* If set, called when the code converts a wqe_counter: does what other threads might do then. */
static void (*meanwhile)(void);
#define gdk_bswap16(x) (meanwhile ? meanwhile() : (void)0, gdk_bswap16(x))
#include "rig.h"
#include "../lib/post_slots.h"

static struct rig rig;

TestSuite(cq_dev, .timeout = 60);

/* Posts and rings n NOPs with these control flags (GDK_CE_ALWAYS: signalled). */
static void post(uint32_t n, uint32_t flags)
{
	uint64_t idx, i;

	cr_assert_eq(gdk_reserve(&rig.qp, n, RIG_GPU, 0, &idx), 0);
	for (i = idx; i < idx + n; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, flags);
	post_slots(&rig.qp, idx, idx + n - 1, RIG_GPU, RIG_AUTO, 0);
}

static void post_long(uint32_t flags)
{
	const struct gdk_atomic_ext arg = { 0, 0, 1, 2, 3, 4 };
	uint64_t idx;

	cr_assert_eq(gdk_reserve(&rig.qp, 2, RIG_GPU, 0, &idx), 0);
	gdk_wqe_atomic_ext(&rig.qp,
			   gdk_wqe_at(gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx,
				      DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS, flags),
			   gdk_get_wqe_ptr(&rig.qp, idx + 1), gdk_mem(1, gdk_key(2)),
			   gdk_mem(3, gdk_key(4)), 8, &arg);
	post_slots(&rig.qp, idx, idx + 1, RIG_GPU, RIG_AUTO, 0);
}

Test(cq_dev, poll_one_returns_busy_then_done)
{
	rig_init(&rig, 8, RIG_DB, 0);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 0, RIG_GPU), EBUSY);
	post(2, GDK_CE_ALWAYS);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 1, RIG_GPU), EBUSY);
	rig_nic(&rig);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 1, RIG_GPU), 0);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 0, RIG_GPU), 0);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 2, RIG_GPU), EBUSY);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 9, RIG_GPU), EBUSY);
	cr_assert_eq(rig.st->completed, 2);
}

Test(cq_dev, poll_counts_completions)
{
	rig_init(&rig, 8, RIG_DB, 0);
	post(3, GDK_CE_ALWAYS);
	rig_nic(&rig);
	cr_assert_eq(gdk_poll_cq(&rig.qp.cq_sq, 2, RIG_GPU), 0);
	cr_assert_eq(rig.st->cqe_ci, 2);
	cr_assert_eq(gdk_poll_cq(&rig.qp.cq_sq, 1, RIG_GPU), 0);
	cr_assert_eq(rig.st->cqe_ci, 3);
}

Test(cq_dev, indices_go_beyond_16_bits)
{
	const int collapsed[] = { 0, 1 };
	unsigned int c, i;

	for (c = 0; c < 2; c++) {
		rig_init(&rig, 64, RIG_DB, collapsed[c]);
		for (i = 0; i < 70000 / 32; i++) {
			post(32, i % 2 ? GDK_CE_ALWAYS : 0);
			rig_nic(&rig);
			cr_assert_eq(gdk_wait(&rig.qp, 32 * i + 31, RIG_GPU), 0);
			cr_assert_eq(rig.st->completed, 32 * i + 32);
			cr_assert_eq(gdk_poll_ticket(&rig.qp, 32 * i + 32, RIG_GPU), EBUSY);
		}
		cr_assert_eq(rig.faults, 0);
		rig_fini(&rig);
	}
}

Test(cq_dev, cqe_of_a_two_slot_wqe_frees_both_slots)
{
	rig_init(&rig, 2, RIG_DB, 0);
	post_long(GDK_CE_ALWAYS);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, 1, RIG_GPU), 0);
	cr_assert_eq(rig.st->completed, 2);
	cr_assert_eq(rig.st->cqe_ci, 1);
	/* the ring was full; now both slots are free */
	post_long(GDK_CE_ALWAYS);
	cr_assert_eq(rig.qp.sq_rsvd_index, 4);
}

static void polling_after_a_reset(int collapsed)
{
	rig_init(&rig, 8, RIG_DB, collapsed);
	post(5, GDK_CE_ALWAYS);
	rig_nic(&rig);
	/* Reset the send queue to index 0 and keep the CQEs in the CQ; a reset of a collapsed CQ
	 * invalidates its entry. */
	gdk_qp_state_format(rig.st, 8, rig.st->flags);
	rig.qp.cq_sq.cqe_rsvd = rig.cq_pi;
	gdk_qp_state_bind(rig.st, &rig.qp);
	rig.st->cqe_ci = rig.cq_pi;
	if (collapsed)
		rig.cqe[0].op_own = 0xf1;
	rig.qp.sq_rsvd_index = rig.pi = rig.ci = 0;
	rig.dbrec[1] = 0;
	cr_assert_eq(gdk_poll_ticket(&rig.qp, 0, RIG_GPU), EBUSY);
	post(4, GDK_CE_ALWAYS);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 3, RIG_GPU), EBUSY);
	rig_nic(&rig);
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 1, RIG_GPU), 0);
	cr_assert_eq(gdk_poll_cq_at(&rig.qp.cq_sq, 3, RIG_GPU), 0);
	cr_assert_eq(rig.st->completed, 4);
	rig_fini(&rig);
}

Test(cq_dev, polling_after_a_reset_that_kept_the_cq)
{
	polling_after_a_reset(0);
}

/* The other entries of a collapsed CQ are never written. */
Test(cq_dev, polling_after_a_reset_of_a_collapsed_cq)
{
	polling_after_a_reset(1);
}

Test(cq_dev, error_is_sticky_and_names_the_first_wqe)
{
	uint64_t idx;

	rig_init(&rig, 16, RIG_DB, 0);
	rig.fail_at = 3;
	post(8, GDK_CE_ALWAYS);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, 7, RIG_GPU), -EIO);
	cr_assert_eq(rig.st->status, -EIO);
	cr_assert_eq(gdk_qp_error_wqe(&rig.qp), 3);
	cr_assert_eq(gdk_wait(&rig.qp, 5, RIG_GPU), -EIO);
	cr_assert_eq(gdk_poll_cq_at(&rig.qp.cq_sq, 4, RIG_GPU), -EIO);
	cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &idx), -EIO);
	cr_assert_eq(idx, 8);
}

Test(cq_dev, error_on_a_collapsed_cq)
{
	rig_init(&rig, 16, RIG_DB, 1);
	rig.fail_at = 0;
	post(1, GDK_CE_ALWAYS);
	rig_nic(&rig);
	cr_assert_eq(gdk_poll_collapsed_at(&rig.qp, 0, RIG_GPU), -EIO);
	cr_assert_eq(gdk_qp_error_wqe(&rig.qp), 0);
	cr_assert_eq(rig.st->completed, 0);
}

/* In a collapsed CQ, a flush CQE does not tell which WQEs completed or which one failed. */
Test(cq_dev, flush_on_a_collapsed_cq)
{
	rig_init(&rig, 16, RIG_DB, 1);
	post(3, GDK_CE_ALWAYS);
	rig_nic(&rig);
	cr_assert_eq(gdk_poll_collapsed_at(&rig.qp, 2, RIG_GPU), 0);
	rig.fail_at = 4;
	post(5, GDK_CE_ALWAYS);
	rig_nic(&rig);
	((struct doca_gpunetio_ib_mlx5_err_cqe_ex *)rig.cqe)->syndrome = GDK_SYNDROME_FLUSH;
	cr_assert_eq(gdk_poll_collapsed_at(&rig.qp, 3, RIG_GPU), -EIO);
	cr_assert_eq(rig.st->completed, 3);
	cr_assert_eq(gdk_qp_error_wqe(&rig.qp), 3);
}

Test(cq_dev, error_after_unsignalled_wqes)
{
	rig_init(&rig, 16, RIG_DB, 0);
	rig.fail_at = 3;
	post(5, 0);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, 4, RIG_GPU), -EIO);
	cr_assert_eq(gdk_qp_error_wqe(&rig.qp), 3);
	cr_assert_leq(rig.st->completed, 3);
}

Test(cq_dev, abort_ends_a_wait)
{
	rig_init(&rig, 16, RIG_DB, 0);
	post(1, GDK_CE_ALWAYS);
	rig.st->abort_word = 1;
	cr_assert_eq(gdk_wait(&rig.qp, 0, RIG_GPU), -ECANCELED);
	cr_assert_eq(rig.st->status, -ECANCELED);
	/* no WQE failed, so error_wqe is the first one that is not complete */
	cr_assert_eq(gdk_qp_error_wqe(&rig.qp), 0);
	rig.st->completed = 5;
	cr_assert_eq(gdk_qp_error_wqe(&rig.qp), 5);
}

Test(cq_dev, first_end_status_is_kept)
{
	rig_init(&rig, 16, RIG_DB, 0);
	cr_assert_eq(gdk_state_end(rig.st, -EIO), -EIO);
	cr_assert_eq(gdk_state_end(rig.st, -ETIMEDOUT), -EIO);
	cr_assert_eq(gdk_qp_status(&rig.qp), -EIO);
}

/* A CQE with opcode RESP_ERR ends the QP, as one with REQ_ERR does. */
Test(cq_dev, error_of_the_responder)
{
	rig_init(&rig, 16, RIG_DB, 0);
	post(2, GDK_CE_ALWAYS);
	rig_nic(&rig);
	rig.cqe[1].op_own = DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR << 4;
	cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, 1, RIG_GPU), -EIO);
	cr_assert_eq(gdk_qp_error_wqe(&rig.qp), 1);
	cr_assert_leq(rig.st->completed, 1);
}

/* A wqe_counter at or beyond `rung` is invalid. */
Test(cq_dev, counters_beyond_rung_are_invalid)
{
	uint64_t index;

	cr_assert_not(gdk_counter_extend(0, 0, &index));
	cr_assert_not(gdk_counter_extend(3, 3, &index));
	cr_assert(gdk_counter_extend(3, 2, &index) && index == 2);
	cr_assert(gdk_counter_extend(0x10003, 2, &index) && index == 0x10002);
	cr_assert(gdk_counter_extend(0x10003, 3, &index) && index == 3);
}

/*
 * A thread must ignore a CQE that it read before other threads polled later ones: after `completed`
 * has changed, the slot may be in use again, and its counter belongs to another lap of 65536.
 */
static void others_go_on(void)
{
	rig.st->rung = 0x10005;
	rig.st->completed = 0x10000;
}

Test(cq_dev, stale_cqe_is_ignored)
{
	rig_init(&rig, 8, RIG_DB, 0);
	post(1, GDK_CE_ALWAYS);
	rig_nic(&rig);
	others_go_on();
	rig.st->cqe_ci = 0x10000;
	cr_assert_eq(gdk_fold(rig.st, 0, 0), 0);
	cr_assert_eq(rig.st->completed, 0x10000);
	cr_assert_eq(rig.st->cqe_ci, 0x10000);
}

/* The same, where they poll between the two loads of this thread. */
static void stale_between_loads(int collapsed, int error)
{
	rig_init(&rig, 8, RIG_DB, collapsed);
	rig.fail_at = error ? 0 : UINT64_MAX;
	post(1, GDK_CE_ALWAYS);
	rig_nic(&rig);
	meanwhile = others_go_on;
	cr_assert_eq(gdk_fold(rig.st, 0, 0), 0);
	meanwhile = NULL;
	cr_assert_eq(rig.st->completed, 0x10000);
	cr_assert_eq(rig.st->cqe_ci, 0);
	cr_assert_eq(rig.st->error_wqe, GDK_NO_WQE);
	rig_fini(&rig);
}

Test(cq_dev, cqe_that_becomes_stale_is_ignored)
{
	stale_between_loads(0, 0);
	stale_between_loads(0, 1);
}

Test(cq_dev, collapsed_cqe_that_becomes_stale_is_ignored)
{
	stale_between_loads(1, 0);
	stale_between_loads(1, 1);
}

Test(cq_dev, wait_for_timeout_leaves_the_qp_usable)
{
	rig_init(&rig, 16, RIG_DB, 0);
	post(1, GDK_CE_ALWAYS);
	cr_assert_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, 1000000), -ETIMEDOUT);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, 0, RIG_GPU), 0);
}

Test(cq_dev, wait_rings_slots_posted_without_doorbell)
{
	uint64_t idx;

	rig_init(&rig, 16, RIG_DB, 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_EXCL, 0, &idx), 0);
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, 0), 0, GDK_CE_ALWAYS);
	post_slots(&rig.qp, 0, 0, RIG_EXCL, RIG_AUTO, GDK_OPT_SKIP_DB);
	cr_assert_eq(gdk_wait_for(&rig.qp, 0, RIG_EXCL, 1000000), -ETIMEDOUT);
	cr_assert_eq(rig.st->doorbells - rig.st->bare_rings, 1);
}

Test(cq_dev, one_wait_after_several_laps)
{
	uint64_t idx, i;

	/* 22 WQEs through 8 slots, without a check for free slots: only the wait polls. */
	rig_init(&rig, 8, RIG_DB, 0);
	for (i = 0; i < 22; i++) {
		cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_EXCL, GDK_OPT_SKIP_CHECK, &idx), 0);
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
		post_slots(&rig.qp, i, i, RIG_EXCL, RIG_AUTO, 0);
		rig_nic(&rig);
	}
	cr_assert_eq(gdk_wait(&rig.qp, 21, RIG_EXCL), 0);
	cr_assert_eq(rig.st->completed, 22);
}

/* The CQ's DBREC holds the low 24 bits of the consumer index since the CQ's creation. */
Test(cq_dev, consume_writes_the_cq_dbrec)
{
	uint32_t dbrec = RIG_POISON;

	rig_init(&rig, 8, RIG_DB, 0);
	rig.qp.cq_sq.dbrec = &dbrec;
	post(3, GDK_CE_ALWAYS);
	rig_nic(&rig);
	cr_assert_eq(gdk_cq_consume(&rig.qp.cq_sq, 2, 1), 2);
	cr_assert_eq(dbrec, RIG_POISON);
	cr_assert_eq(gdk_cq_consume(&rig.qp.cq_sq, 1, 0), 3);
	cr_assert_eq(be32toh(dbrec), 3);
	cr_assert_eq(rig.st->completed, 3);
	rig.qp.cq_sq.cqe_rsvd = 0xffffff;
	cr_assert_eq(gdk_cq_consume(&rig.qp.cq_sq, 0, 0), 2);
	cr_assert_eq(be32toh(dbrec), 2);
}

/* NVIDIA's sample write_lat polls at cqe_ci, which each poll must have raised. */
Test(cq_dev, polls_raise_the_index_that_programs_read)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	struct doca_gpu_dev_verbs_cq *cq = &rig.qp.cq_sq;

	for (unsigned int i = 0; i < 3; i++) {
		rig_init(&rig, 8, RIG_DB, 0);
		post(3, GDK_CE_ALWAYS);
		rig_nic(&rig);
		cr_assert_eq(gdk_poll_cq_at(cq, 1, modes[i]), 0);
		cr_expect_eq(cq->cqe_ci, 2);
		cr_assert_eq(gdk_poll_cq_at(cq, 0, modes[i]), 0);
		cr_expect_eq(cq->cqe_ci, 2, "an older index lowered it to %lu", cq->cqe_ci);
		cr_assert_eq(gdk_poll_one_cq_at(cq, 2, modes[i]), 0);
		cr_expect_eq(cq->cqe_ci, 3);
		cr_assert_eq(gdk_poll_one_cq_at(cq, 3, modes[i]), EBUSY);
		cr_expect_eq(cq->cqe_ci, 3);
		/* what was polled is reported to the NIC once */
		cr_expect_eq(gdk_cq_consume(cq, 3, 1), 3);
		cr_expect_eq(cq->cqe_ci, 3);
		rig_fini(&rig);
	}
}

/* ---- which CQE belongs to a slot ---- */

static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };

/* Posts n NOPs with these control flags, in this mode, and rings unless opt says not to. */
static uint64_t post_in(gdk_mode_t mode, uint32_t n, uint32_t flags, uint32_t opt)
{
	uint64_t idx, i;

	cr_assert_eq(gdk_reserve(&rig.qp, n, mode, opt, &idx), 0);
	for (i = idx; i < idx + n; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, flags);
	post_slots(&rig.qp, idx, idx + n - 1, mode, RIG_AUTO, opt);
	return idx + n - 1;
}

/*
 * A slot that was not rung yet: its CQ entry holds the CQE of two laps before, which has the same
 * owner bit.
 */
Test(cq_dev, cqe_of_two_laps_before_is_not_accepted)
{
	uint64_t last, slot;
	unsigned int m;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 4, RIG_DB, 0);
		last = post_in(modes[m], 4, GDK_CE_ALWAYS, 0);
		rig_nic(&rig);
		cr_assert_eq(gdk_wait(&rig.qp, last, modes[m]), 0);
		for (slot = 8; slot < 12; slot++) {
			cr_expect_eq(gdk_poll_ticket(&rig.qp, slot, modes[m]), EBUSY);
			cr_expect_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, slot, modes[m]), EBUSY);
			cr_expect_eq(gdk_wait_for(&rig.qp, slot, modes[m], 100000), -ETIMEDOUT);
			cr_expect_eq(rig.st->completed, 4, "mode %u, slot %lu", m, slot);
			cr_expect_eq(rig.st->rung, 4, "mode %u, slot %lu", m, slot);
		}
		rig_fini(&rig);
	}
}

/* The same with slots 4 to 7 unpublished and 0 to 3 complete, so that the ring is full. */
Test(cq_dev, cqe_of_the_lap_before_is_not_accepted)
{
	uint64_t last, idx;
	unsigned int m;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 4, RIG_DB, 0);
		last = post_in(modes[m], 4, GDK_CE_ALWAYS, 0);
		rig_nic(&rig);
		cr_assert_eq(gdk_wait(&rig.qp, last, modes[m]), 0);
		cr_assert_eq(gdk_reserve(&rig.qp, 4, modes[m], 0, &idx), 0);
		cr_expect_eq(gdk_poll_ticket(&rig.qp, 4, modes[m]), EBUSY);
		cr_expect_eq(gdk_poll_ticket(&rig.qp, 7, modes[m]), EBUSY);
		rig_fini(&rig);
	}
}

/* Bit i of `signalled`: WQE i generates a CQE. */
static void mixed(gdk_mode_t mode, uint32_t signalled, int collapsed, int wait)
{
	uint64_t t, cqes = 0, end = 0;
	int i;

	rig_init(&rig, 32, RIG_DB, collapsed);
	for (i = 0; i < 24; i++) {
		t = post_in(mode, 1, signalled >> i & 1 ? GDK_CE_ALWAYS : 0, 0);
		rig_nic(&rig);
		if (!(signalled >> i & 1) && rig.cq_pi == cqes)
			continue;
		cqes = rig.cq_pi;
		end = t + 1;
		if (i % 3 == 0)
			continue; /* polls for several CQEs at once, later */
		if (wait)
			cr_assert_eq(gdk_poll_cq_at(&rig.qp.cq_sq, collapsed ? t : cqes - 1, mode),
				     0);
		else
			cr_assert_eq(
				gdk_poll_one_cq_at(&rig.qp.cq_sq, collapsed ? t : cqes - 1, mode),
				0);
		cr_assert_eq(rig.st->completed, end);
		cr_assert_eq(gdk_poll_ticket(&rig.qp, t, mode), 0);
		cr_assert_eq(gdk_poll_ticket(&rig.qp, t + 1, mode), EBUSY);
		cr_assert_eq(gdk_poll_one_cq_at(&rig.qp.cq_sq, collapsed ? t + 1 : cqes, mode),
			     EBUSY);
		if (!collapsed)
			cr_assert_eq(rig.st->cqe_ci, cqes);
	}
	cr_assert_eq(gdk_wait(&rig.qp, end - 1, mode), 0);
	cr_assert_eq(rig.st->completed, end);
	rig_fini(&rig);
}

/* Signalled WQEs first, then some that are not, then signalled ones again. */
Test(cq_dev, even_and_uneven_mixed)
{
	static const uint32_t patterns[] = { 0xffffffff, 0xfffff00f, 0xaaaaaaaa, 0xff0000ff,
					     0x92492492, 0x80808080, 0xffffcfff };
	unsigned int m, p, c, w;

	for (m = 0; m < 3; m++)
		for (p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++)
			for (c = 0; c < 2; c++)
				for (w = 0; w < 2; w++)
					mixed(modes[m], patterns[p], (int)c, (int)w);
}

/* WQEs of two slots among those of one. */
Test(cq_dev, long_and_short_wqes_mixed)
{
	unsigned int c, i;

	for (c = 0; c < 2; c++) {
		rig_init(&rig, 16, RIG_DB, (int)c);
		for (i = 0; i < 60; i++) {
			if (i % 5 == 3)
				post_long(GDK_CE_ALWAYS);
			else
				post(1, i % 4 ? 0 : GDK_CE_ALWAYS);
			rig_nic(&rig);
		}
		post(1, GDK_CE_ALWAYS);
		rig_nic(&rig);
		cr_assert_eq(gdk_wait(&rig.qp, 72, RIG_GPU), 0);
		cr_assert_eq(rig.st->completed, 73);
		rig_fini(&rig);
	}
}

/* ---- errors among many WQEs ---- */

/* WQE `bad` of 100 fails and the others behind it are flushed. A wait for the last one finds it. */
static void error_in(gdk_mode_t mode, uint64_t bad, uint32_t flags, int collapsed)
{
	uint64_t t = 0;
	int i;

	rig_init(&rig, 128, RIG_DB, collapsed);
	rig.fail_at = bad;
	for (i = 0; i < 100; i++)
		t = post_in(mode, 1, i == 99 ? GDK_CE_ALWAYS : flags, 0);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, t, mode), -EIO);
	if (!collapsed)
		cr_expect_eq(gdk_qp_error_wqe(&rig.qp), bad, "%lu instead of %lu, mode %u",
			     gdk_qp_error_wqe(&rig.qp), bad, mode);
	cr_expect_eq(gdk_qp_status(&rig.qp), -EIO);
	cr_expect_leq(rig.st->completed, bad);
	cr_expect_eq(gdk_poll_ticket(&rig.qp, t, mode), -EIO);
	cr_expect_eq(gdk_wait_for(&rig.qp, t, mode, 0), -EIO);
	rig_fini(&rig);
}

Test(cq_dev, first_error_of_many_is_found_by_a_wait_for_the_last)
{
	static const uint64_t bad[] = { 0, 1, 49, 50, 51, 98, 99 };
	unsigned int m, b;

	for (m = 0; m < 3; m++)
		for (b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
			error_in(modes[m], bad[b], GDK_CE_ALWAYS, 0);
			error_in(modes[m], bad[b], 0, 0);
			error_in(modes[m], bad[b], GDK_CE_ALWAYS, 1);
		}
}

/* The same after laps of the ring and of the CQ. */
Test(cq_dev, first_error_is_found_in_later_laps)
{
	uint64_t t, i;
	unsigned int m;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 16, RIG_DB, 0);
		for (i = 0; i < 5; i++) {
			t = post_in(modes[m], 15, GDK_CE_ALWAYS, 0);
			rig_nic(&rig);
			cr_assert_eq(gdk_wait(&rig.qp, t, modes[m]), 0);
		}
		rig.fail_at = 78;
		t = post_in(modes[m], 16, GDK_CE_ALWAYS, 0);
		rig_nic(&rig);
		cr_assert_eq(gdk_wait(&rig.qp, t, modes[m]), -EIO);
		cr_expect_eq(gdk_qp_error_wqe(&rig.qp), 78);
		rig_fini(&rig);
	}
}
