/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the device functions write when they ring: the doorbell register, the DBREC,
 * the two halves of the BlueFlame register, and the counter of the CPU proxy.
 */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig rig;

static void post(unsigned int n)
{
	(void)rig_post_nops(&rig, n, RIG_GPU, 0);
}

/* Reserves, writes and publishes one slot, and submits it with a copy of its WQE. */
static uint64_t post_copy(gdk_mode_t mode)
{
	struct doca_gpu_dev_verbs_wqe *wqe;
	uint64_t idx;

	cr_assert_eq(gdk_reserve(&rig.qp, 1, mode, 0, &idx), 0);
	wqe = gdk_get_wqe_ptr(&rig.qp, idx);
	gdk_wqe_nop(&rig.qp, wqe, (uint16_t)idx, GDK_CE_ALWAYS);
	gdk_mark_ready(&rig.qp, idx, idx, mode, RIG_AUTO);
	gdk_submit_bf(&rig.qp, idx + 1, wqe, gdk_how(mode, GDK_BF, GDK_THREAD, 0));
	return idx;
}

static void expect(const void *at, const uint8_t *bytes, size_t n)
{
	cr_assert_eq(memcmp(at, bytes, n), 0);
}

Test(doorbell_dev, bytes_of_register_and_dbrec)
{
	static const uint8_t reg[8] = { 0x00, 0x00, 0x03, 0x00, 0x00, 0xab, 0xcd, 0x00 };
	static const uint8_t rec[8] = { 0, 0, 0, 0, 0x00, 0x00, 0x00, 0x03 };

	rig_init(&rig, 64, RIG_DB, 0);
	post(3);
	expect(rig.page + 0x800, reg, 8);
	expect(rig.dbrec, rec, 8);
	cr_assert_eq(rig.st->doorbells, 1);
	cr_assert_eq(rig.st->bare_rings, 0);
	cr_assert_eq(rig.st->rung, 3);
}

Test(doorbell_dev, index_wraps_at_16_bits)
{
	static const uint8_t reg[8] = { 0x00, 0x00, 0x01, 0x00, 0x00, 0xab, 0xcd, 0x00 };

	rig_init(&rig, 64, RIG_DB, 0);
	gdk_ring_db(&rig.qp, 0x10001, 0);
	gdk_update_dbr(&rig.qp, 0x10001, 0);
	expect(rig.page + 0x800, reg, 8);
	cr_assert_eq(be32toh(rig.dbrec[1]), 1);
	cr_assert_eq(rig.st->rung, 0x10001);
	cr_assert_eq(rig.st->bare_rings, 1);
	cr_assert_eq(rig.st->bare_records, 1);
}

Test(doorbell_dev, no_dbr_does_not_write_the_dbrec)
{
	rig_init(&rig, 64, RIG_NO_DBR, 0);
	post(1);
	cr_assert_eq(rig.dbrec[1], RIG_POISON);
	cr_assert_eq(rig.st->bare_records, 0);
	cr_assert_eq(rig.st->doorbells, 1);
}

/* A put uses the handler that the caller names. gdk_submit() uses the QP's: it also rings the
 * WQEs of others. */
Test(doorbell_dev, explicit_handler_wins_over_the_qp)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t ticket;

	for (unsigned int m = 0; m < 3; m++) {
		rig_init(&rig, 64, RIG_DB, 0);
		gdk_submit(&rig.qp, 0, gdk_how(modes[m], RIG_DB, GDK_THREAD, 0));
		cr_assert_eq(rig.st->doorbells, 0);
		rig.dbrec[1] = RIG_POISON;
		cr_assert_eq(gdk_put(&rig.qp, a, a, 8, &ticket,
				     gdk_how(modes[m], RIG_NO_DBR, GDK_THREAD, 0)),
			     0);
		cr_assert_eq(rig.dbrec[1], RIG_POISON);
		cr_assert_eq(rig.st->doorbells, 1);
		cr_assert_eq(gdk_reserve(&rig.qp, 1, modes[m], 0, &ticket), 0);
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, 1), 1, GDK_CE_ALWAYS);
		rig_post(&rig, 1, 1, modes[m], RIG_NO_DBR, 0);
		cr_assert_eq(be32toh(rig.dbrec[1]), 2);
		cr_assert_eq(rig.st->doorbells, 2);
		rig_fini(&rig);
	}
}

static uint64_t reg_word(unsigned int at)
{
	return *(const uint64_t *)(const void *)(rig.page + at);
}

/* gdk_submit_bf() writes the WQE to alternating halves and stores the DBREC, in every mode. */
Test(doorbell_dev, blueflame_alternates_and_carries_the_wqe)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };

	for (unsigned int m = 0; m < 3; m++) {
		rig_init(&rig, 64, RIG_BF, 0);
		for (unsigned int i = 0; i < 4; i++) {
			const unsigned int reg = i % 2 ? 0x900 : 0x800;

			memset(rig.page, 0, 4096);
			cr_assert_eq(post_copy(modes[m]), i);
			cr_assert_eq(memcmp(rig.page + reg, rig.ring + i * 64, 64), 0,
				     "mode %d: the register does not contain WQE %u", modes[m], i);
			cr_assert_eq(reg_word(reg ^ 0x100), 0);
			cr_assert_eq(be32toh(rig.dbrec[1]), i + 1);
			cr_assert_eq(rig.st->doorbells, i + 1);
			rig_nic(&rig);
		}
		cr_assert_eq(rig.faults, 0);
		cr_assert_eq(rig.ci, 4);
		cr_assert_eq(rig.st->bare_rings, 0);
		rig_fini(&rig);
	}
}

/*
 * A put on a BlueFlame register rings a plain doorbell of 8 bytes, in the first half of the
 * register, with either handler. The half that a later copy uses does not change.
 */
Test(doorbell_dev, put_on_a_blueflame_register_is_a_plain_doorbell)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	static const gdk_handler_t by[] = { RIG_BF, RIG_AUTO, RIG_DB };
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t ticket;

	for (unsigned int m = 0; m < 3; m++) {
		rig_init(&rig, 64, RIG_BF, 0);
		for (unsigned int i = 0; i < 9; i++) {
			memset(rig.page, 0, 4096);
			cr_assert_eq(gdk_put(&rig.qp, a, a, 8, &ticket,
					     gdk_how(modes[m], by[i % 3], GDK_THREAD, 0)),
				     0);
			cr_assert_eq(reg_word(0x800), gdk_db_value(rig.qp.sq_num_shift8_be, i + 1));
			cr_assert_eq(reg_word(0x808), 0);
			cr_assert_eq(reg_word(0x900), 0);
			cr_assert_eq(rig.st->bf_half, 0);
			cr_assert_eq(be32toh(rig.dbrec[1]), i + 1);
			cr_assert_eq(rig.st->doorbells, i + 1);
			rig_nic(&rig);
		}
		/* So are doorbells for several WQEs, and the next copy uses the first half. */
		memset(rig.page, 0, 4096);
		(void)rig_post_nops(&rig, 2, modes[m], 0);
		cr_assert_eq(reg_word(0x800), gdk_db_value(rig.qp.sq_num_shift8_be, 11));
		cr_assert_eq(reg_word(0x808), 0);
		rig_nic(&rig);
		cr_assert_eq(post_copy(modes[m]), 11);
		cr_assert_eq(memcmp(rig.page + 0x800, rig.ring + 11 * 64, 64), 0);
		rig_nic(&rig);
		cr_assert_eq(rig.faults, 0);
		cr_assert_eq(rig.ci, 12);
		rig_fini(&rig);
	}
}

/* gdk_submit_bf_warp() writes the WQE to alternating halves and stores the DBREC, in every mode. */
Test(doorbell_dev, blueflame_by_a_warp)
{
	static const enum doca_gpu_dev_verbs_resource_sharing_mode modes[] = { RIG_EXCL, RIG_CTA,
									       RIG_GPU };
	struct doca_gpu_dev_verbs_wqe copy;
	uint64_t idx;

	for (unsigned int m = 0; m < 3; m++) {
		rig_init(&rig, 64, RIG_BF, 0);
		for (unsigned int i = 0; i < 4; i++) {
			const size_t reg = i % 2 ? 0x900 : 0x800;

			cr_assert_eq(gdk_reserve(&rig.qp, 1, modes[m], 0, &idx), 0);
			gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx,
				    GDK_CE_ALWAYS);
			memcpy(&copy, gdk_get_wqe_ptr(&rig.qp, idx), 64);
			gdk_mark_ready(&rig.qp, idx, idx, modes[m], RIG_AUTO);
			gdk_submit_bf_warp(&rig.qp, idx + 1, &copy,
					   gdk_how(modes[m], GDK_BF, GDK_THREAD, GDK_OPT_SKIP_DB));
			cr_assert_eq(rig.st->rung, idx);
			memset(rig.page, 0, 4096);
			gdk_submit_bf_warp(&rig.qp, idx + 1, &copy,
					   gdk_how(modes[m], GDK_BF, GDK_THREAD, 0));
			cr_assert_eq(memcmp(rig.page + reg, &copy, 64), 0);
			cr_assert_eq(*(uint64_t *)(void *)(rig.page + (reg ^ 0x100)), 0);
			cr_assert_eq(be32toh(rig.dbrec[1]), i + 1);
			rig_nic(&rig);
		}
		post(2);
		post(1);
		rig_nic(&rig);
		cr_assert_eq(rig.ci, 7);
		cr_assert_eq(rig.faults, 0);
		rig_fini(&rig);
	}
}

static void two_wqes(enum doca_gpu_dev_verbs_resource_sharing_mode mode, bool warp)
{
	uint64_t idx;

	rig_init(&rig, 64, RIG_BF, 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 2, mode, 0, &idx), 0);
	for (unsigned int i = 0; i < 2; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	gdk_mark_ready(&rig.qp, 0, 1, mode, RIG_AUTO);
	if (warp)
		gdk_submit_bf_warp(&rig.qp, 2, gdk_get_wqe_ptr(&rig.qp, 1),
				   gdk_how(mode, GDK_BF, GDK_THREAD, 0));
	else
		gdk_submit_bf(&rig.qp, 2, gdk_get_wqe_ptr(&rig.qp, 1),
			      gdk_how(mode, GDK_BF, GDK_THREAD, 0));
	cr_assert_eq(be32toh(*(uint32_t *)(void *)(rig.page + 0x800)) >> 8, 2);
	cr_assert_eq(*(uint64_t *)(void *)(rig.page + 0x808), 0);
	rig_nic(&rig);
	cr_assert_eq(rig.ci, 2);
}

Test(doorbell_dev, blueflame_of_two_wqes_is_a_plain_doorbell)
{
	for (int warp = 0; warp < 2; warp++) {
		two_wqes(RIG_EXCL, warp);
		rig_fini(&rig);
		two_wqes(RIG_GPU, warp);
		rig_fini(&rig);
	}
}

/* Ringing by hand also alternates between the halves, and is also counted in bare_rings. */
Test(doorbell_dev, blueflame_by_hand)
{
	rig_init(&rig, 64, RIG_BF, 0);
	memset(rig.ring, 0x5a, 128);
	gdk_ring_bf(&rig.qp, rig.ring);
	cr_assert_eq(memcmp(rig.page + 0x800, rig.ring, 64), 0);
	gdk_ring_bf_warp(&rig.qp, rig.ring + 64);
	cr_assert_eq(memcmp(rig.page + 0x900, rig.ring + 64, 64), 0);
	cr_assert_eq(rig.st->doorbells, 2);
	cr_assert_eq(rig.st->bare_rings, 2);
}

/* The caller's copy is written to the register only if it is the WQE of the only slot rung. */
Test(doorbell_dev, blueflame_uses_the_callers_copy_only_for_its_slot)
{
	struct doca_gpu_dev_verbs_wqe copy;
	uint64_t idx;

	rig_init(&rig, 64, RIG_BF, 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 2, RIG_GPU, 0, &idx), 0);
	for (unsigned int i = 0; i < 2; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	memcpy(&copy, gdk_get_wqe_ptr(&rig.qp, 1), 64);
	copy.inl_data[63] = 0x77;
	/* Slot 0 is published and slot 1 is not, so slot 0 is rung, without the copy of slot 1. */
	gdk_mark_ready(&rig.qp, 0, 0, RIG_GPU, RIG_AUTO);
	gdk_submit_bf(&rig.qp, 2, &copy, gdk_how(RIG_GPU, GDK_BF, GDK_THREAD, 0));
	cr_assert_eq(rig.st->rung, 1);
	cr_assert_eq(reg_word(0x800), gdk_db_value(rig.qp.sq_num_shift8_be, 1));
	cr_assert_eq(reg_word(0x808), 0);
	gdk_mark_ready(&rig.qp, 1, 1, RIG_GPU, RIG_AUTO);
	cr_assert_eq(rig.st->rung, 2);
	rig_nic(&rig);
	/* Slot 2 is published and rung alone, so its copy is used. */
	cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &idx), 0);
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, 2), 2, GDK_CE_ALWAYS);
	memcpy(&copy, gdk_get_wqe_ptr(&rig.qp, 2), 64);
	copy.inl_data[63] = 0x77;
	memset(rig.page, 0, 4096);
	gdk_mark_ready(&rig.qp, 2, 2, RIG_GPU, RIG_AUTO);
	gdk_submit_bf(&rig.qp, 3, &copy, gdk_how(RIG_GPU, GDK_BF, GDK_THREAD, 0));
	cr_assert_eq(memcmp(rig.page + 0x800, &copy, 64), 0);
}

Test(doorbell_dev, blueflame_only_where_it_is_mapped)
{
	rig_init(&rig, 64, RIG_DB, 0);
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, 0), 0, GDK_CE_ALWAYS);
	rig_post(&rig, 0, 0, RIG_EXCL, RIG_BF, 0);
	cr_assert_eq(*(uint64_t *)(void *)(rig.page + 0x808), 0);
	cr_assert_neq(*(uint64_t *)(void *)(rig.page + 0x800), 0);
}

Test(doorbell_dev, proxy_counter_never_falls)
{
	rig_init(&rig, 64, RIG_PROXY, 0);
	post(5);
	cr_assert_eq(rig.counter, 5);
	gdk_ring_proxy(&rig.qp, 3, RIG_GPU);
	cr_assert_eq(rig.counter, 5);
	cr_assert_eq(rig.st->doorbells, 0);
	cr_assert_eq(rig.dbrec[1], 0);
	cr_assert_eq(*(uint64_t *)(void *)(rig.page + 0x800), 0);
}
