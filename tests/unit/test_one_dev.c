/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Operations of one WQE in exclusive mode, for which there is a fast path. The
 * tests check the ring, the doorbell and the ready words after each operation, over
 * several laps, with each handler (given by the call or by the QP). Also the cases
 * that leave the fast path: errors, a full ring, slots that were
 * reserved earlier but not rung, and ringing by hand.
 */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig rig;
static const struct doca_gpu_dev_verbs_addr there = { 0x123456789abc, 0x11223344 };
static const struct doca_gpu_dev_verbs_addr here = { 0x2468ace02468, 0x55667788 };

static void open_rig(uint32_t depth, int handler, int sys)
{
	rig_init(&rig, depth, handler, 0);
	if (!sys)
		rig.st->flags &= ~GDK_QPF_SYS_SCOPE;
}

static int put(size_t size, uint64_t *ticket, gdk_handler_t handler, uint32_t opt)
{
	return gdk_put(&rig.qp, there, here, size, ticket,
		       gdk_how(RIG_EXCL, handler, RIG_THREAD, opt));
}

static const void *slot(uint64_t i)
{
	return rig.ring + (i & (rig.depth - 1)) * 64;
}

static void (*const by_bf[])(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, const void *wqe,
			     struct gdk_how how) = { gdk_submit_bf, gdk_submit_bf_warp };

/* Exactly the last `depth` slots below `rung` must be published. No word may have the token. */
static void check_words(void)
{
	const uint64_t *words = (const uint64_t *)(const void *)(rig.st + 1), rung = rig.st->rung;
	uint64_t i;

	for (i = rung < rig.depth ? 0 : rung - rig.depth; i < rung; i++)
		cr_assert(gdk_is_ready(rig.st, rig.depth, i),
			  "slot %lu below rung %lu is not published", i, rung);
	for (i = rung; i < rung + rig.depth; i++)
		cr_assert(!gdk_is_ready(rig.st, rig.depth, i),
			  "slot %lu from rung %lu on is published", i, rung);
	for (i = 0; i < (rig.depth + 31) / 32; i++)
		cr_assert_eq(words[i] >> 32, 0);
}

static void check_rung(uint64_t n)
{
	rig_nic(&rig);
	cr_assert_eq(rig.faults, 0);
	cr_assert_eq(rig.ci, n);
	cr_assert_eq(rig.st->rung, n);
	cr_assert_eq(rig.st->doorbells - rig.st->bare_rings, rig.handler == RIG_PROXY ? 0 : n);
	if (rig.handler == RIG_PROXY)
		cr_assert_eq(rig.counter, n);
	else if (rig.handler == RIG_NO_DBR)
		cr_assert_eq(rig.dbrec[1], RIG_POISON);
	else
		cr_assert_eq(rig.dbrec[1], gdk_dbrec_value(n));
	check_words();
}

/* Compares the slot with a WQE that the product's builders make. */
static void check_wqe(uint64_t i, size_t size, const uint8_t *data)
{
	struct doca_gpu_dev_verbs_wqe want;
	const uint32_t write = DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE;

	memcpy(&want, slot(i), sizeof(want)); /* for bytes that a builder does not write */
	if (data)
		gdk_wqe_write_inl(
			&rig.qp,
			gdk_wqe_at(&want, (uint16_t)i, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
				   GDK_CE_ALWAYS),
			gdk_mem(there.addr, gdk_key_doca(there.key)), data, (uint32_t)size);
	else if (size)
		gdk_wqe_rdma(&rig.qp, gdk_wqe_at(&want, (uint16_t)i, write, GDK_CE_ALWAYS),
			     gdk_mem(there.addr, gdk_key_doca(there.key)),
			     gdk_mem(here.addr, gdk_key_doca(here.key)), (uint32_t)size);
	else
		gdk_wqe_nop(&rig.qp, &want, (uint16_t)i, GDK_CE_ALWAYS);
	cr_assert_eq(memcmp(&want, slot(i), sizeof(want)), 0,
		     "slot %lu has a wrong WQE (%zu bytes)", i, size);
}

static void laps(uint32_t depth, int handler, int known, int sys)
{
	const gdk_handler_t by = known ? (gdk_handler_t)handler : RIG_AUTO;
	uint8_t data[28];
	uint64_t i, ticket;
	size_t size;

	open_rig(depth, handler, sys);
	for (i = 0; i < 5 * depth + 3; i++) {
		size = i % 3 == 2 ? i * 4099 % GDK_CHUNK : 1 + i % 28;
		memset(data, (int)i + 1, sizeof(data));
		memset(rig.ring + (i & (depth - 1)) * 64, 0xa5, 64);
		if (i % 3 == 1)
			cr_assert_eq(gdk_p(&rig.qp, there, data, size, &ticket,
					   gdk_how(RIG_EXCL, by, RIG_THREAD, 0)),
				     0);
		else
			cr_assert_eq(put(size, &ticket, by, 0), 0);
		cr_assert_eq(ticket, i);
		check_wqe(i, size, i % 3 == 1 ? data : NULL);
		check_rung(i + 1);
		cr_assert_eq(rig.st->left, sys ? GDK_LEFT_SYS : GDK_LEFT_OWN);
	}
	rig_fini(&rig);
}

Test(one_dev, every_put_is_complete_and_rung_over_several_laps, .timeout = 60)
{
	static const int handlers[] = { RIG_DB, RIG_NO_DBR, RIG_PROXY, RIG_BF };
	uint32_t depth, h, how;

	for (depth = 1; depth <= 128; depth *= 2)
		for (h = 0; h < 4; h++)
			for (how = 0; how < 4; how++)
				laps(depth, handlers[h], how & 1, how >> 1);
}

/* A put with the handler GPU_SM_BF rings a plain doorbell and leaves the halves of the register. */
Test(one_dev, blueflame_put_rings_a_plain_doorbell)
{
	const uint64_t *reg = (const uint64_t *)(const void *)(rig_init(&rig, 8, RIG_BF, 0),
							       rig.page + 0x800);
	uint64_t i, ticket;

	for (i = 0; i < 20; i++) {
		memset(rig.page, 0, 4096);
		cr_assert_eq(put(64, &ticket, i % 2 ? RIG_AUTO : RIG_BF, 0), 0);
		cr_assert_eq(reg[0], gdk_db_value(rig.qp.sq_num_shift8_be, i + 1));
		cr_assert_eq(reg[1] | reg[0x100 / 8], 0);
		cr_assert_eq(rig.st->bf_half, 0);
		check_rung(i + 1);
	}
	rig_fini(&rig);
}

/* Posts of several slots store whole ready words, over several laps. */
Test(one_dev, posts_of_several_slots_publish_whole_words)
{
	uint32_t depth, n, i;
	uint64_t end;

	for (depth = 1; depth <= 256; depth *= 2)
		for (n = 1; n <= depth; n += 1 + depth / 16) {
			open_rig(depth, RIG_DB, n & 1);
			for (i = 0, end = 0; i < 5 * depth / n + 3; i++) {
				cr_assert_eq(rig_post_nops(&rig, n, RIG_EXCL, 0), end);
				end += n;
				rig_nic(&rig);
				cr_assert_eq(rig.ci, end);
				cr_assert_eq(rig.st->rung, end);
				cr_assert_eq(rig.faults, 0);
				check_words();
			}
			rig_fini(&rig);
		}
}

/* The operations must fail without writing or ringing a WQE, but must set the ticket. */
Test(one_dev, nothing_is_posted_after_the_qp_ended)
{
	uint64_t ticket;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		open_rig(8, RIG_DB, i & 1);
		cr_assert_eq(put(64, &ticket, RIG_DB, 0), 0);
		check_rung(1);
		if (i & 2) {
			rig.st->abort_word = 1;
			rig.qp.gdk_plain_end = rig.st->plain_sys = 0; /* as gdk_verbs_qp_abort() */
		} else {
			(void)gdk_state_end(rig.st, -EIO);
		}
		memset(rig.ring + 64, 0xa5, 128);
		cr_assert_eq(put(64, &ticket, RIG_DB, 0), i & 2 ? -ECANCELED : -EIO);
		cr_assert_eq(ticket, 1);
		cr_assert_lt(put(64, &ticket, RIG_DB, GDK_OPT_SKIP_DB), 0);
		cr_assert_eq(ticket, 2);
		cr_assert_eq(rig.ring[64], 0xa5);
		check_rung(1);
		rig_fini(&rig);
	}
}

Test(one_dev, full_ring_waits_unless_the_check_is_skipped)
{
	uint64_t i, ticket;

	open_rig(4, RIG_DB, 0);
	rig.st->wait_limit_ns = 1000;
	for (i = 0; i < 4; i++)
		cr_assert_eq(put(64, &ticket, RIG_DB, 0), 0);
	memset(rig.ring, 0xa5, 64);
	cr_assert_eq(put(64, &ticket, RIG_DB, 0), -ETIMEDOUT);
	cr_assert_eq(ticket, 4);
	cr_assert_eq(rig.ring[0], 0xa5);
	cr_assert_eq(rig.st->rung, 4);
	rig_fini(&rig);
	/* With GDK_OPT_SKIP_CHECK, the put must not wait for a free slot. */
	open_rig(4, RIG_DB, 0);
	for (i = 0; i < 5; i++)
		cr_assert_eq(put(64, &ticket, RIG_DB, GDK_OPT_SKIP_CHECK), 0);
	cr_assert_eq(rig.st->rung, 5);
	rig_fini(&rig);
}

/* A put also rings slots before it that were reserved and written, or posted without a doorbell. */
Test(one_dev, slots_written_before_are_rung_too)
{
	uint64_t idx, ticket;
	uint32_t i;

	for (i = 0; i < 8; i++) {
		open_rig(64, RIG_DB, i & 1);
		if (i & 2)
			cr_assert_eq(put(64, &ticket, RIG_DB, 0), 0);
		if (i & 4) {
			cr_assert_eq(put(64, &idx, RIG_DB, GDK_OPT_SKIP_DB), 0);
			cr_assert(gdk_is_ready(rig.st, rig.depth, idx));
		} else {
			cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_EXCL, 0, &idx), 0);
			gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx,
				    GDK_CE_ALWAYS);
		}
		cr_assert_eq(rig.st->rung, idx);
		cr_assert_eq(put(64, &ticket, RIG_DB, 0), 0);
		cr_assert_eq(ticket, idx + 1);
		rig_nic(&rig);
		cr_assert_eq(rig.ci, idx + 2);
		cr_assert_eq(rig.st->rung, idx + 2);
		cr_assert_eq(rig.faults, 0);
		check_words();
		rig_fini(&rig);
	}
}

/*
 * The token is parked at slot 0, and then slots are rung by hand. The ready word of
 * slot 0 must be correct in the next laps.
 */
Test(one_dev, parked_token_moves_after_ringing_by_hand)
{
	uint64_t i, idx, ticket;

	open_rig(64, RIG_DB, 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 40, RIG_EXCL, 0, &idx), 0);
	for (i = 0; i < 40; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	gdk_update_dbr(&rig.qp, 40, 0);
	gdk_ring_db(&rig.qp, 40, 0);
	rig_nic(&rig);
	for (i = 40; i < 131; i++) {
		cr_assert_eq(put(64, &ticket, RIG_DB, 0), 0);
		cr_assert_eq(*(uint64_t *)(void *)(rig.st + 1) >> 32, 0, "the token is at slot 0");
		rig_nic(&rig);
	}
	cr_assert_eq(rig.ci, 131);
	cr_assert_eq(rig.faults, 0);
	check_words();
	rig_fini(&rig);
}

/* A BlueFlame doorbell by hand publishes the slots below it, although the caller did not. */
Test(one_dev, blueflame_by_hand_publishes_the_slot)
{
	uint64_t idx;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		rig_init(&rig, 8, RIG_BF, 0);
		for (idx = 0; idx < 21;) {
			cr_assert_eq(rig_post_nops(&rig, 1, RIG_EXCL, 0), idx);
			rig_nic(&rig);
			cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_EXCL, 0, &idx), 0);
			gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx,
				    GDK_CE_ALWAYS);
			by_bf[i](&rig.qp, idx + 1, slot(idx),
				 gdk_how(RIG_EXCL, RIG_AUTO, RIG_THREAD, 0));
			rig_nic(&rig);
			cr_assert_eq(rig.ci, ++idx);
			cr_assert_eq(rig.st->rung, idx);
			cr_assert_eq(rig.faults, 0);
			check_words();
		}
		/* Shared use must not ring a slot that is not written, of the next lap. */
		cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &idx), 0);
		(void)rig_post_nops(&rig, 1, RIG_GPU, 0);
		cr_assert_eq(rig.st->rung, idx);
		rig_fini(&rig);
	}
}
