/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The device functions that reserve, publish and submit slots, with unpublished gaps,
 * skipped doorbells, wrap-around of the ring, a full ring, and a QP that has ended.
 */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig rig;
static const enum doca_gpu_dev_verbs_resource_sharing_mode modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };

static uint64_t reserve(uint32_t n, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	uint64_t idx, i;

	cr_assert_eq(gdk_reserve(&rig.qp, n, mode, 0, &idx), 0);
	for (i = idx; i < idx + n; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	return idx;
}

/* Posts n slots in one step or in separate ones. */
static void post(uint32_t n, gdk_mode_t mode, unsigned int at_once)
{
	uint64_t idx;

	if (at_once) {
		(void)rig_post_nops(&rig, n, mode, 0);
		return;
	}
	idx = reserve(n, mode);
	rig_post(&rig, idx, idx + n - 1, mode, RIG_AUTO, 0);
}

Test(qp_dev, late_publisher_rings_wanted_slots)
{
	rig_init(&rig, 64, RIG_DB, 0);
	reserve(3, RIG_GPU);
	gdk_mark_ready(&rig.qp, 1, 1, RIG_GPU, RIG_AUTO);
	gdk_submit(&rig.qp, 2, gdk_how(RIG_GPU, RIG_AUTO, GDK_THREAD, 0));
	cr_assert_eq(rig.st->doorbells, 0);
	cr_assert_eq(rig.st->wanted, 2);
	gdk_mark_ready(&rig.qp, 0, 0, RIG_GPU, RIG_AUTO);
	cr_assert_eq(rig.st->rung, 2);
	cr_assert_eq(rig.st->doorbells, 1);
	cr_assert_eq(rig.st->left, 0);
	cr_assert_eq(*(uint64_t *)(rig.st + 1), GDK_TOKEN(2) | 3);
	/* slot 2 is published but not submitted, so it is not rung */
	gdk_mark_ready(&rig.qp, 2, 2, RIG_GPU, RIG_AUTO);
	cr_assert_eq(rig.st->rung, 2);
	cr_assert_eq(rig.st->left, 1);
}

/*
 * The state block names the slot at which the token is parked, so the next poster
 * need not search the ready words for it.
 */
Test(qp_dev, state_holds_where_the_token_is_parked)
{
	unsigned int i;

	rig_init(&rig, 64, RIG_DB, 0);
	for (i = 0; i < 3; i++) {
		cr_assert_eq(rig.st->parked, i);
		(void)rig_post_nops(&rig, 1, i == 1 ? RIG_CTA : RIG_GPU, 0);
	}
}

/*
 * The thread that publishes slot 0 leaves the token in `left`. The thread that
 * posts slot 1 must take the token from `left`, because it is not parked there.
 */
Test(qp_dev, post_takes_a_token_that_was_left)
{
	unsigned int m, at_once;

	for (m = 1; m < 3; m++)
		for (at_once = 0; at_once < 2; at_once++) {
			rig_init(&rig, 64, RIG_DB, 0);
			reserve(1, modes[m]);
			gdk_mark_ready(&rig.qp, 0, 0, modes[m], RIG_AUTO);
			cr_assert_eq(rig.st->left, 1);
			post(1, modes[m], at_once);
			cr_assert_eq(rig.st->rung, 2);
			cr_assert_eq(rig.st->left, 0);
			cr_assert_eq(rig.st->doorbells, 1);
			rig_fini(&rig);
		}
}

/* If exclusive use owned the token, the thread that takes it repeats the doorbell once. */
Test(qp_dev, a_range_over_several_words_is_published)
{
	unsigned int m, at_once;

	for (m = 0; m < 3; m++)
		for (at_once = 0; at_once < 2; at_once++) {
			rig_init(&rig, 256, RIG_DB, 0);
			post(20, modes[m], at_once);
			post(100, modes[m], at_once);
			post(100, modes[(m + 1) % 3], at_once);
			cr_assert_eq(rig.st->rung, 220);
			cr_assert_eq(rig.st->doorbells - rig.st->bare_rings, 3);
			cr_assert_eq(rig.st->bare_rings, m == 0);
			rig_nic(&rig);
			cr_assert_eq(rig.ci, 220);
			cr_assert_eq(rig.faults, 0);
			rig_fini(&rig);
		}
}

/*
 * In exclusive mode, no fence orders the DBREC store before the register store. So a wait of more
 * than 20 us rings again after a fence. A wait that finds the CQE earlier does not.
 */
Test(qp_dev, exclusive_wait_repeats_the_doorbell_after_20_us)
{
	const uint64_t ms = 1000000;

	rig_init(&rig, 64, RIG_DB, 0);
	post(1, RIG_EXCL, 1);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, 0, RIG_EXCL), 0);
	cr_assert_eq(rig.st->doorbells, 1);
	post(1, RIG_EXCL, 1);
	rig_nic(&rig);
	memset(&rig.cqe[1], 0xff, 64);
	rig.dbrec[1] = RIG_POISON;
	cr_assert_eq(gdk_wait_for(&rig.qp, 1, RIG_EXCL, ms / 2), -ETIMEDOUT);
	/* After 20 us, after 160 us or more, and at the end; fewer if the thread is suspended. */
	cr_assert_geq(rig.st->bare_rings, 1);
	cr_assert_leq(rig.st->bare_rings, 4);
	cr_assert_eq(rig.st->doorbells, 2 + rig.st->bare_rings);
	cr_assert_eq(rig.dbrec[1], RIG_POISON, "a repeated doorbell must not store the DBREC");
	cr_assert_eq(*(uint64_t *)(void *)(rig.page + 0x800),
		     gdk_db_value(rig.qp.sq_num_shift8_be, 2));
	rig_fini(&rig);
}

/* The thread that polls need not wait: each GDK_POLLS_REPEAT-th poll without a CQE rings again. */
Test(qp_dev, exclusive_polls_repeat_the_doorbell)
{
	uint32_t i, before;

	rig_init(&rig, 64, RIG_DB, 0);
	post(1, RIG_EXCL, 1);
	for (i = 1; i <= 2 * GDK_POLLS_REPEAT; i++) {
		cr_assert_eq(gdk_poll_ticket(&rig.qp, 0, RIG_EXCL), EBUSY);
		cr_assert_eq(rig.st->bare_rings, i / GDK_POLLS_REPEAT);
		cr_assert_eq(rig.st->doorbells, 1 + i / GDK_POLLS_REPEAT);
	}
	post(1, RIG_EXCL, 1);
	before = (uint32_t)rig.st->bare_rings;
	for (i = 1; i <= GDK_POLLS_REPEAT; i++)
		cr_assert_eq(gdk_poll_one_cq_at(gdk_qp_cq(&rig.qp), 1, RIG_EXCL), EBUSY);
	cr_assert_geq(rig.st->bare_rings, before + 1);
	cr_assert_leq(rig.st->bare_rings, before + 2);
	rig_nic(&rig);
	before = (uint32_t)rig.st->bare_rings;
	for (i = 1; i <= 2 * GDK_POLLS_REPEAT; i++)
		cr_assert_eq(gdk_poll_ticket(&rig.qp, 1, RIG_EXCL), 0);
	cr_assert_eq(rig.st->bare_rings, before);
	rig_fini(&rig);
}

/* Shared use orders DBREC and register, and without a DBREC there is no order to repair. */
Test(qp_dev, other_waits_do_not_repeat_the_doorbell)
{
	static const int handlers[] = { RIG_DB, RIG_NO_DBR, RIG_PROXY };
	unsigned int h;

	for (h = 0; h < 3; h++) {
		rig_init(&rig, 64, handlers[h], 0);
		post(1, h ? RIG_EXCL : RIG_GPU, 1);
		cr_assert_eq(gdk_wait_for(&rig.qp, 0, h ? RIG_EXCL : RIG_GPU, 500000), -ETIMEDOUT);
		cr_assert_eq(rig.st->doorbells, handlers[h] != RIG_PROXY);
		cr_assert_eq(rig.st->bare_rings, 0);
		rig_fini(&rig);
	}
}

Test(qp_dev, doorbell_never_splits_a_published_range)
{
	rig_init(&rig, 64, RIG_DB, 0);
	reserve(2, RIG_CTA);
	gdk_submit(&rig.qp, 2, gdk_how(RIG_CTA, RIG_AUTO, GDK_THREAD, 0));
	gdk_mark_ready(&rig.qp, 0, 1, RIG_CTA, RIG_AUTO);
	cr_assert_eq(rig.st->rung, 2);
	cr_assert_eq(rig.st->doorbells, 1);
}

Test(qp_dev, ready_scan_stops_at_bits_of_the_previous_lap)
{
	rig_init(&rig, 4, RIG_DB, 0);
	(void)gdk_publish(rig.st, 4, 0, 4, GDK_SCOPE_GPU);
	cr_assert_eq(gdk_scan_ready(rig.st, 4, 0), 4);
	cr_assert_eq(gdk_scan_ready(rig.st, 4, 4), 4);
	(void)gdk_publish(rig.st, 4, 4, 1, GDK_SCOPE_GPU);
	cr_assert_eq(gdk_scan_ready(rig.st, 4, 4), 5);
}

Test(qp_dev, every_mode_wraps)
{
	unsigned int m, i;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 4, RIG_DB, 0);
		for (i = 0; i < 50; i++) {
			post(1 + i % 3, modes[m], i / 7 % 2);
			rig_nic(&rig);
		}
		cr_assert_eq(gdk_flush(&rig.qp, modes[m]), 0);
		cr_assert_eq(rig.ci, rig.qp.sq_rsvd_index);
		cr_assert_eq(rig.faults, 0);
		rig_fini(&rig);
	}
}

Test(qp_dev, modes_mix_on_one_qp)
{
	unsigned int i;
	uint64_t idx;

	rig_init(&rig, 8, RIG_DB, 0);
	for (i = 0; i < 60; i++) {
		idx = reserve(1, modes[i % 3]);
		rig_post(&rig, idx, idx, modes[i % 3], RIG_AUTO, i % 2 ? GDK_OPT_SKIP_DB : 0);
		rig_nic(&rig);
	}
	gdk_submit(&rig.qp, 60, gdk_how(RIG_GPU, RIG_AUTO, GDK_THREAD, 0));
	rig_nic(&rig);
	cr_assert_eq(rig.ci, 60);
	cr_assert_eq(rig.faults, 0);
}

/* As a caller that knows its slots to be free: no reservation and no mark. */
static uint64_t submit_unreserved(uint64_t from, uint32_t n, gdk_mode_t mode)
{
	uint64_t i, end = from + n;

	for (i = from; i < end; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	gdk_vouch(&rig.qp, end, mode);
	gdk_submit(&rig.qp, end, gdk_how(mode, RIG_AUTO, GDK_THREAD, 0));
	return end;
}

Test(qp_dev, submit_vouches_for_unreserved_slots)
{
	unsigned int m, i;
	uint64_t end;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 8, RIG_DB, 0);
		for (i = 0, end = 0; i < 40; i++) {
			end = submit_unreserved(end, 1 + i % 3, modes[m]);
			cr_assert_eq(rig.st->rung, end, "mode %u, submit %u", m, i);
			rig_nic(&rig);
		}
		cr_assert_eq(gdk_wait(&rig.qp, end - 1, modes[m]), 0);
		cr_assert_eq(rig.ci, end);
		cr_assert_eq(rig.faults, 0);
		rig_fini(&rig);
	}
}

/* The slots below are reserved by another thread, which has not written them. */
Test(qp_dev, submit_does_not_vouch_for_reserved_slots)
{
	rig_init(&rig, 8, RIG_DB, 0);
	(void)reserve(2, RIG_GPU);
	cr_assert_eq(submit_unreserved(2, 2, RIG_GPU), 4);
	cr_assert_eq(rig.st->rung, 0);
	gdk_mark_ready(&rig.qp, 0, 1, RIG_GPU, RIG_AUTO);
	cr_assert_eq(rig.st->rung, 4);
	cr_assert_eq(reserve(1, RIG_GPU), 4);
	rig_fini(&rig);
}

Test(qp_dev, waiting_for_a_slot_rings_published_slots)
{
	uint64_t idx;

	unsigned int m;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 2, RIG_DB, 0);
		rig.st->wait_limit_ns = 20000000;
		idx = reserve(2, modes[m]);
		rig_post(&rig, idx, idx + 1, modes[m], RIG_AUTO, GDK_OPT_SKIP_DB);
		cr_assert_eq(rig.st->doorbells, 0);
		/* No NIC runs, so the wait times out, which ends the QP. */
		cr_assert_eq(gdk_reserve(&rig.qp, 1, modes[m], 0, &idx), -ETIMEDOUT);
		cr_assert_eq(idx, 2);
		cr_assert_eq(rig.st->doorbells - rig.st->bare_rings, 1);
		cr_assert_eq(rig.st->rung, 2);
		cr_assert_eq(gdk_qp_status(&rig.qp), -ETIMEDOUT);
		rig_fini(&rig);
	}
}

Test(qp_dev, aborted_qp_publishes_and_rings_nothing)
{
	doca_gpu_dev_verbs_ticket_t ticket = 99;
	struct doca_gpu_dev_verbs_addr a = { 0, 0 };
	unsigned int m;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 8, RIG_DB, 0);
		rig.st->abort_word = 1;
		cr_assert_eq(gdk_put(&rig.qp, a, a, 64, &ticket,
				     gdk_how(modes[m], RIG_AUTO, RIG_THREAD, 0)),
			     -ECANCELED);
		cr_assert_eq(ticket, 0);
		cr_assert_eq(rig.ring[3], 0);
		gdk_mark_ready(&rig.qp, 0, 0, modes[m], RIG_AUTO);
		gdk_submit(&rig.qp, 1, gdk_how(modes[m], RIG_AUTO, GDK_THREAD, 0));
		cr_assert_eq(rig.st->doorbells, 0);
		/* Nothing is published; a token that exclusive use owns is not parked. */
		cr_assert_eq(*(uint64_t *)(rig.st + 1), rig.st->left ? 0 : GDK_TOKEN(0));
		cr_assert(!rig.st->left || modes[m] == RIG_EXCL);
		rig_fini(&rig);
	}
}

/*
 * Exclusive use that takes a parked token and then publishes nothing must not leave its bit in the
 * word: the next publisher of the slot would be a second holder.
 */
Test(qp_dev, exclusive_use_without_a_post_leaves_one_token)
{
	const uint64_t *word = (const uint64_t *)(const void *)(rig_init(&rig, 64, RIG_DB, 0),
								rig.st + 1);

	(void)rig_post_nops(&rig, 1, RIG_GPU, 0);
	cr_assert_eq(*word, GDK_TOKEN(1) | 1);
	gdk_submit(&rig.qp, 1, gdk_how(RIG_EXCL, RIG_AUTO, GDK_THREAD, 0));
	cr_assert_eq(*word, 1);
	cr_assert_geq(rig.st->left, GDK_LEFT_OWN);
	(void)rig_post_nops(&rig, 1, RIG_GPU, 0);
	cr_assert_eq(*word, GDK_TOKEN(2) | 3);
	cr_assert_eq(rig.st->left, 0);
	cr_assert_eq(rig.st->rung, 2);
	rig_nic(&rig);
	cr_assert_eq(rig.ci, 2);
	cr_assert_eq(rig.faults, 0);
	rig_fini(&rig);
}

/* An exclusive wait rings slots that shared use published while exclusive use owned the token. */
Test(qp_dev, exclusive_wait_rings_what_shared_use_published)
{
	rig_init(&rig, 64, RIG_DB, 0);
	(void)rig_post_nops(&rig, 1, RIG_EXCL, 0);
	(void)rig_post_nops(&rig, 3, RIG_GPU, GDK_OPT_SKIP_DB);
	reserve(2, RIG_GPU); /* not published, so not rung */
	rig_nic(&rig);
	cr_assert_eq(rig.ci, 1);
	cr_assert_eq(gdk_wait_for(&rig.qp, 3, RIG_EXCL, 1000), -ETIMEDOUT);
	cr_assert_eq(rig.st->rung, 4);
	cr_assert_eq(gdk_wait_for(&rig.qp, 5, RIG_EXCL, 1000), -ETIMEDOUT);
	cr_assert_eq(rig.st->rung, 4);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait_for(&rig.qp, 3, RIG_EXCL, 1000), 0);
	rig_fini(&rig);
}

/* Shared use parked the token at slot 0, and exclusive use then posted 2^32 slots. */
Test(qp_dev, token_is_not_found_where_it_was_parked_long_ago)
{
	uint64_t *word = (uint64_t *)(void *)(rig_init(&rig, 64, RIG_DB, 0), rig.st + 1);
	const uint64_t index = (uint64_t)1 << 32;

	*word = 0;
	rig.st->left = GDK_LEFT_SYS;
	rig.st->parked = 0;
	rig.qp.sq_rsvd_index = rig.st->rung = rig.st->completed = rig.st->cqe_ci = index;
	rig.pi = rig.ci = rig.cq_pi = index;
	cr_assert_eq(rig_post_nops(&rig, 1, RIG_GPU, 0), index);
	cr_assert_eq(*word, GDK_TOKEN(1) | 1);
	cr_assert_eq(rig.st->left, 0);
	cr_assert_eq(rig.st->parked, index + 1);
	cr_assert_eq(rig.st->bare_rings, 1);
	rig_nic(&rig);
	cr_assert_eq(rig.ci, index + 1);
	rig_fini(&rig);
}

Test(qp_dev, reservation_larger_than_the_ring_is_refused)
{
	uint64_t idx;

	rig_init(&rig, 8, RIG_DB, 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 9, RIG_GPU, 0, &idx), -EINVAL);
	cr_assert_eq(rig.qp.sq_rsvd_index, 0);
	cr_assert_eq(gdk_qp_status(&rig.qp), 0);
}

/* With GDK_OPT_SKIP_CHECK the caller is responsible for free slots, so the CQ is not polled. */
Test(qp_dev, skipped_availability_check_does_not_poll)
{
	struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t ticket, idx;
	unsigned int m;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, 8, RIG_DB, 0);
		reserve(8, modes[m]);
		rig_post(&rig, 0, 7, modes[m], RIG_AUTO, 0);
		rig_nic(&rig);
		cr_assert_eq(gdk_put(&rig.qp, a, a, 8, &ticket,
				     gdk_how(modes[m], RIG_AUTO, RIG_THREAD, GDK_OPT_SKIP_CHECK)),
			     0);
		cr_assert_eq(gdk_reserve(&rig.qp, 1, modes[m], GDK_OPT_SKIP_CHECK, &idx), 0);
		cr_expect(ticket == 8 && idx == 9);
		cr_expect_eq(rig.st->completed, 0);
		cr_assert_eq(gdk_reserve(&rig.qp, 1, modes[m], 0, &idx), 0);
		cr_expect_geq(rig.st->completed, 3,
			      "mode %d: a reservation with the check must poll the CQ", modes[m]);
		rig_fini(&rig);
	}
}

static uint64_t moved, chunks;

static void add_up(struct rig *r, uint64_t slot, const struct doca_gpu_dev_verbs_wqe *wqe)
{
	(void)slot;
	if (be64toh(wqe->rw_rseg.raddr) != 0x1000 + moved ||
	    be64toh(wqe->rw_dseg0.addr) != 0x2000 + moved)
		rig_fault(r, "chunk address", slot);
	moved += be32toh(wqe->rw_dseg0.byte_count);
	chunks++;
}

Test(qp_dev, large_put_is_split_at_1_gib)
{
	struct doca_gpu_dev_verbs_addr r = { 0x1000, 1 }, l = { 0x2000, 2 };
	const uint64_t size = 3 * GDK_CHUNK + 5;
	uint64_t ticket;

	rig_init(&rig, 8, RIG_DB, 0);
	rig.exec = add_up;
	cr_assert_eq(
		gdk_put(&rig.qp, r, l, size, &ticket, gdk_how(RIG_GPU, RIG_AUTO, RIG_THREAD, 0)),
		0);
	cr_assert_eq(ticket, 3);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, ticket, RIG_GPU), 0);
	cr_assert_eq(moved, size);
	cr_assert_eq(chunks, 4);
	cr_assert_eq(rig.faults, 0);
}

Test(qp_dev, empty_operations_are_nops)
{
	struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t ticket;

	rig_init(&rig, 8, RIG_DB, 0);
	cr_assert_eq(gdk_put(&rig.qp, a, a, 0, &ticket,
			     gdk_how(RIG_EXCL, RIG_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP, 0)),
		     0);
	cr_assert_eq(rig.ring[3], DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP);
	cr_assert_eq(rig.ring[7], 1);
	cr_assert_eq(gdk_p(&rig.qp, a, &a, 0, &ticket, gdk_how(RIG_EXCL, RIG_AUTO, RIG_THREAD, 0)),
		     0);
	cr_assert_eq(rig.ring[64 + 3], DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP);
	cr_assert_eq(gdk_get(&rig.qp, a, a, 0, &ticket, gdk_how(RIG_EXCL, RIG_AUTO, RIG_THREAD, 0)),
		     0);
	cr_assert_eq(rig.ring[128 + 3], DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP);
	cr_assert_eq(ticket, 2);
	rig_nic(&rig);
	cr_assert_eq(gdk_flush(&rig.qp, RIG_EXCL), 0);
}
