/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receives that are reserved, marked ready and submitted by hand: which slots a submit offers to
 * the NIC, in each sharing mode; and how known applications drive the receive queue.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "../lib/bound.h"
#include "../lib/recv_rig.h"

#define CTA DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA

static const struct doca_gpu_dev_verbs_addr nothing;
static struct recv_rig r;
static int modes[] = { E2E_EXCL, CTA, E2E_MODE };

ParameterizedTestParameters(recv_rules, a_receive_behind_an_unmarked_slot_is_not_offered)
{
	/* not in exclusive use, where it vouches for the slot */
	return cr_make_param_array(int, modes + 1, 2);
}
ParameterizedTestParameters(recv_rules, a_wait_offers_no_unmarked_slot)
{
	return cr_make_param_array(int, modes, 3);
}
ParameterizedTestParameters(recv_rules, offers_what_is_marked_without_a_gap)
{
	return cr_make_param_array(int, modes, 3);
}
ParameterizedTestParameters(recv_rules, a_submit_above_what_is_reserved_vouches_for_its_slots)
{
	return cr_make_param_array(int, modes, 3);
}
ParameterizedTestParameters(recv_rules, the_producer_index_never_falls)
{
	return cr_make_param_array(int, modes, 3);
}
ParameterizedTestParameters(recv_rules, queue_of_4096_prepared_once_and_offered_again)
{
	return cr_make_param_array(int, modes, 3);
}

static struct gdk_how how_of(int mode)
{
	return gdk_how((gdk_mode_t)mode, GDK_AUTO, GDK_THREAD, 0);
}

static void open_rig(uint32_t rq_wr)
{
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = rq_wr });
}

static void prepare(uint64_t idx, uint32_t len)
{
	gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, idx),
		     (uintptr_t)r.b.buf.mem + idx % 64 * 64, gdk_key(r.b.buf.mr->lkey), len);
}

static void mark(uint64_t from, uint64_t to, int mode)
{
	for (uint64_t i = from; i <= to; i++)
		prepare(i, 64);
	gdk_rq_mark_ready(r.b.dev, from, to, (gdk_mode_t)mode);
}

static uint32_t submit(uint64_t pi, int mode)
{
	cr_assert_eq(gdk_rq_submit(r.b.dev, pi, how_of(mode)), 0);
	return recv_dbrec(&r.b);
}

/* Sends a message, and waits on both sides. Returns its bytes according to the receiver. */
static uint32_t message(uint64_t ticket, uint32_t len, int mode)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), len, &sent, how_of(mode)), 0);
	cr_assert_eq(gdk_recv_wait(r.b.dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
				   (gdk_mode_t)mode, &cqe),
		     0, "message %lu", ticket);
	cr_assert_eq(gdk_wait(r.a.dev, sent, (gdk_mode_t)mode), 0);
	return gdk_cqe_bytes(cqe);
}

ParameterizedTest(const int *mode, recv_rules, offers_what_is_marked_without_a_gap)
{
	uint64_t idx, lap;

	open_rig(8);
	for (lap = 0; lap < 5; lap++) {
		cr_assert_eq(gdk_rq_reserve(r.b.dev, 8, (gdk_mode_t)*mode, 0, &idx), 0);
		cr_assert_eq(idx, lap * 8);
		cr_assert_eq(submit(idx + 4, *mode), idx, "nothing is marked");
		mark(idx + 2, idx + 3, *mode);
		cr_assert_eq(submit(idx + 4, *mode), idx, "slots 0 and 1 are missing");
		mark(idx, idx, *mode);
		cr_assert_eq(submit(idx + 4, *mode), idx + 1, "slot 1 is missing");
		mark(idx + 1, idx + 1, *mode);
		cr_assert_eq(submit(idx + 4, *mode), idx + 4);
		mark(idx + 4, idx + 7, *mode);
		cr_assert_eq(submit(idx + 8, *mode), idx + 8);
		cr_assert_eq(r.b.dev->rq_wqe_pi, idx + 8);
		for (uint64_t i = 0; i < 8; i++)
			cr_assert_eq(message(idx + i, (uint32_t)i + 1, *mode), i + 1);
	}
	recv_rig_close(&r);
}

ParameterizedTest(const int *mode, recv_rules, a_receive_behind_an_unmarked_slot_is_not_offered)
{
	uint64_t idx, ticket;

	open_rig(8);
	for (uint64_t lap = 0; lap < 5; lap++) {
		cr_assert_eq(gdk_rq_reserve(r.b.dev, 2, (gdk_mode_t)*mode, 0, &idx), 0);
		mark(idx + 1, idx + 1, *mode);
		cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &ticket, how_of(*mode)), 0);
		cr_assert_eq(ticket, idx + 2);
		cr_assert_eq(recv_dbrec(&r.b), idx, "the NIC would use slot %lu", idx);
		mark(idx, idx, *mode);
		cr_assert_eq(submit(idx + 3, *mode), idx + 3);
		for (uint64_t i = 0; i < 3; i++)
			cr_assert_eq(message(idx + i, 4, *mode), 4);
	}
	recv_rig_close(&r);
}

/* Slot 0 is reserved and not marked; by_submit: a submit vouches for slots 2 to 4. */
static void wait_behind_a_gap(bool by_submit, int mode)
{
	const uint64_t last = by_submit ? 4 : 1;
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t idx;

	open_rig(8);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(r.b.ex, 20000000), DOCA_SUCCESS);
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 2, (gdk_mode_t)mode, 0, &idx), 0);
	mark(1, 1, mode);
	if (by_submit)
		cr_assert_eq(submit(5, mode), 0);
	cr_assert_neq(gdk_recv_wait(r.b.dev, last, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
				    (gdk_mode_t)mode, &cqe),
		      0);
	cr_assert_eq(recv_dbrec(&r.b), 0, "the NIC would use slot 0");
	recv_rig_close(&r);
}

ParameterizedTest(const int *mode, recv_rules, a_wait_offers_no_unmarked_slot)
{
	wait_behind_a_gap(false, *mode);
	wait_behind_a_gap(true, *mode);
}

/* A submit that came too early is served by the thread that marks the missing slot. */
Test(recv_rules, the_last_mark_offers_what_an_earlier_submit_wanted)
{
	uint64_t idx;

	open_rig(8);
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 3, E2E_MODE, 0, &idx), 0);
	mark(1, 2, E2E_MODE);
	cr_assert_eq(submit(3, E2E_MODE), 0);
	mark(0, 0, E2E_MODE);
	cr_assert_eq(recv_dbrec(&r.b), 3);
	recv_rig_close(&r);
}

ParameterizedTest(const int *mode, recv_rules,
		  a_submit_above_what_is_reserved_vouches_for_its_slots)
{
	uint64_t idx, ticket;

	open_rig(8);
	for (uint64_t i = 0; i < 8; i++)
		prepare(i, 64);
	cr_assert_eq(submit(3, *mode), 3, "never reserved nor marked");
	cr_assert_eq(gdk_rq_submit(r.b.dev, 12, how_of(*mode)), -EINVAL, "more than a lap above");
	cr_assert_eq(recv_dbrec(&r.b), 3);
	/* The slots that were vouched for count as reserved. */
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 2, (gdk_mode_t)*mode, 0, &idx), 0);
	cr_assert_eq(idx, 3);
	cr_assert_eq(submit(6, *mode), 3, "vouches for slot 5 only, 3 and 4 are not marked");
	mark(3, 4, *mode);
	cr_assert_eq(submit(6, *mode), 6);
	for (uint64_t i = 0; i < 6; i++)
		cr_assert_eq(message(i, 5, *mode), 5);
	/* Operations of all three kinds follow each other over several laps. */
	for (uint64_t i = 6; i < 60; i++) {
		if (i % 3 == 0) {
			cr_assert_eq(submit(i + 1, *mode), i + 1);
		} else if (i % 3 == 1) {
			cr_assert_eq(
				gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &ticket, how_of(*mode)), 0);
			cr_assert_eq(ticket, i);
		} else {
			cr_assert_eq(gdk_rq_reserve(r.b.dev, 1, (gdk_mode_t)*mode, 0, &idx), 0);
			cr_assert_eq(idx, i);
			mark(idx, idx, *mode);
			cr_assert_eq(submit(idx + 1, *mode), i + 1);
		}
		cr_assert_eq(message(i, 6, *mode), 6);
	}
	recv_rig_close(&r);
}

ParameterizedTest(const int *mode, recv_rules, the_producer_index_never_falls)
{
	const uint64_t step = 1000;
	uint64_t sent;

	open_rig(1024);
	for (uint64_t i = 0; i < 1024; i++)
		prepare(i, 64);
	for (uint64_t i = 0; i < 70000; i += step) {
		cr_assert_eq(submit(i + step, *mode), (i + step) & 0xffff);
		cr_assert_eq(submit(i + 3, *mode), (i + step) & 0xffff, "an earlier index");
		cr_assert_eq(r.b.dev->rq_wqe_pi, i + step);
		for (uint64_t n = 1; n < step; n++)
			cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 1, &sent, how_of(*mode)),
				     0);
		(void)message(i + step - 1, 1, *mode);
	}
	recv_rig_close(&r);
}

/* ---- known applications ---- */

/* NIXL: writes 4096 receives once, submits them without a reservation, polls the CQ by itself, and
 * offers one old slot again for each message. */
ParameterizedTest(const int *mode, recv_rules, queue_of_4096_prepared_once_and_offered_again)
{
	const uint64_t depth = 4096, messages = 2 * depth + 5;
	struct gdk_qp_recv_counters c;
	struct bound b = bound_begin(0, false);
	uint64_t sent;

	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = (uint32_t)depth });
	cr_assert_eq(gdk_qp_cq_rq(r.b.dev)->cqe_num, depth);
	cr_assert_eq(gdk_qp_cq_rq(r.b.dev)->cqe_mask, depth - 1);
	for (uint64_t i = 0; i < depth; i++)
		gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, i), (uintptr_t)r.b.buf.mem + i * 16,
			     gdk_key(r.b.buf.mr->lkey), 16);
	cr_assert_eq(submit(depth, *mode), depth);
	for (uint64_t i = 0; i < messages; i++) {
		memcpy(r.a.buf.mem, &i, sizeof(i));
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, how_of(*mode)), 0);
		while (recv_poll_by_hand(gdk_qp_cq_rq(r.b.dev), i) == EBUSY)
			cr_assert(!bound_passed(&b, i, E2E_WAIT_NS), "message %lu is missing", i);
		cr_assert_eq(memcmp(r.b.buf.mem + i % depth * 16, &i, 8), 0, "message %lu", i);
		cr_assert_eq(submit(r.b.dev->rq_wqe_pi + 1, *mode), (depth + i + 1) & 0xffff);
		cr_assert_eq(gdk_wait(r.a.dev, sent, (gdk_mode_t)*mode), 0);
	}
	cr_assert_eq(gdk_verbs_qp_get_recv_counters(r.b.ex, &c), DOCA_SUCCESS);
	cr_assert_eq(c.posted, depth + messages);
	recv_rig_close(&r);
}

/* Holoscan: receives without a buffer, posted once with GPU sharing; then polls at a ticket, reads
 * the immediate value, and submits the slot after the last one with CTA sharing. */
Test(recv_rules, receives_without_buffer_for_writes_with_immediate)
{
	const struct doca_gpu_dev_verbs_addr terminator = { 0, htobe32(0x100) };
	uint64_t ticket, idx = 63, sent;

	open_rig(64);
	for (uint64_t i = 0; i < 64; i++)
		cr_assert_eq(gdk_recv(r.b.dev, terminator, 0, &ticket,
				      gdk_how(E2E_MODE, GDK_DB, GDK_THREAD, 0)),
			     0);
	for (uint64_t i = 0; i < 200; i++) {
		struct doca_gpu_dev_verbs_cq *cq = gdk_qp_cq_rq(r.b.dev);
		const struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

		cr_assert_eq(gdk_poll_one_cq_at(cq, i, E2E_MODE), EBUSY);
		cr_assert_eq(gdk_put_imm(r.a.dev, recv_remote(&r.b, i), recv_at(&r.a, 0), 40,
					 htobe32((uint32_t)i), &sent, how_of(E2E_MODE)),
			     0);
		cr_assert_eq(gdk_poll_cq_at(cq, i, E2E_MODE), 0);
		cqe = (const void *)(cq->cqe_daddr + (i & cq->cqe_mask) * 64);
		cr_assert_eq(be32toh(cqe->imm_inval_pkey), i);
		cr_assert_eq(gdk_poll_one_cq_at(cq, i, E2E_MODE), 0);
		cr_assert_eq(submit(++idx + 1, CTA), 64 + i + 1);
		cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_MODE), 0);
	}
	recv_rig_close(&r);
}

/* Sends whose WQEs are written by hand: 0 to 3 data segments, and data in the WQE. */
Test(recv_rules, send_wqes_written_by_hand)
{
	const uint32_t bytes[3] = { 5, 0, 20 };
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct gdk_mem local[3];
	uint64_t idx, ticket;

	open_rig(64);
	for (uint32_t i = 0; i < 1024; i++)
		r.a.buf.mem[i] = e2e_pattern(i, 7);
	for (uint32_t i = 0; i < 3; i++)
		local[i] = gdk_mem((uintptr_t)r.a.buf.mem + 100 * i, gdk_key(r.a.buf.mr->lkey));
	for (uint32_t n = 0; n < 4 + 45; n++) {
		const uint32_t inl = n - 4, len = n < 4 ? (n > 0) * 5u + (n > 2) * 20u : inl;
		struct gdk_wqe_at at;

		cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &ticket, how_of(E2E_EXCL)), 0);
		cr_assert_eq(gdk_reserve(r.a.dev, 1, E2E_EXCL, 0, &idx), 0);
		at = gdk_wqe_at(gdk_get_wqe_ptr(r.a.dev, idx), (uint16_t)idx,
				DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_IMM, GDK_CE_ALWAYS);
		at.imm_be = htobe32(n);
		if (n < 4)
			gdk_wqe_send(r.a.dev, at, local, bytes, n);
		else
			gdk_wqe_send_inl(r.a.dev, at, r.a.buf.mem + 1, inl);
		gdk_mark_ready(r.a.dev, idx, idx, E2E_EXCL, GDK_AUTO);
		gdk_submit(r.a.dev, idx + 1, how_of(E2E_EXCL));
		cr_assert_eq(gdk_recv_wait(r.b.dev, ticket, nothing,
					   DOCA_GPUNETIO_VERBS_MCST_DISABLED, E2E_EXCL, &cqe),
			     0, "WQE %u", n);
		cr_assert_eq(gdk_cqe_bytes(cqe), len, "WQE %u", n);
		cr_assert_eq(be32toh(gdk_cqe_imm(cqe)), n);
		if (n >= 4)
			cr_assert_eq(memcmp(r.b.buf.mem, r.a.buf.mem + 1, inl), 0, "WQE %u", n);
		else if (n)
			cr_assert_eq(memcmp(r.b.buf.mem, r.a.buf.mem, 5), 0);
		if (n == 3)
			cr_assert_eq(memcmp(r.b.buf.mem + 5, r.a.buf.mem + 200, 20), 0);
		cr_assert_eq(gdk_wait(r.a.dev, idx, E2E_EXCL), 0);
	}
	recv_rig_close(&r);
}

/* The index of an update has 32 bits; the queue counts 64. */
Test(recv_rules, an_update_of_the_dbrec_is_a_submit)
{
	open_rig(8);
	for (uint64_t i = 0; i < 8; i++)
		prepare(i, 64);
	for (uint32_t i = 0; i < 100; i += 4) {
		gdk_rq_update_dbr(r.b.dev, i + 4);
		cr_assert_eq(recv_dbrec(&r.b), i + 4);
		gdk_rq_update_dbr(r.b.dev, i + 1);
		cr_assert_eq(recv_dbrec(&r.b), i + 4);
		cr_assert_eq(gdk_rq_wait_slot(r.b.dev, 7, E2E_MODE), 0);
		for (uint32_t n = 0; n < 4; n++)
			(void)message(i + n, 3, E2E_MODE);
		cr_assert_eq(gdk_rq_wait_slot(r.b.dev, i + 11, E2E_MODE), 0);
	}
	recv_rig_close(&r);
}
