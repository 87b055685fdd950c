/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ethernet send queues: multi-packet WQEs, waits for a time, and state ERR with and
 * without flushing.
 */
#include "eth_sq_rig.h"

#define WAIT_TIME 2
#define SECOND	  1000000000ull

TestSuite(eth_send_multi, .init = sq_rig, .fini = sq_fini, .timeout = 60);

/* ---- multi-packet WQEs ---- */

Test(eth_send_multi, each_segment_is_a_packet)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	data(mem, 60);
	inline_data(mem + 100, 61);
	data(mem + 200, 1000);
	inline_data(mem + 300, 28);
	data(mem + 400, 14);
	post();
	cr_assert_eq(nsent, 5);
	expect_frame(0, mem, 60);
	expect_frame(1, mem + 100, 61);
	expect_frame(2, mem + 200, 1000);
	expect_frame(3, mem + 300, 28);
	expect_frame(4, mem + 400, 14);
	expect_cqe(0, SN_OP_EMPW, 0);
	expect_none();
	cr_expect_eq(eth.stats.empw_wqes, 1);
	cr_expect_eq(eth.stats.frames, 5);
}

Test(eth_send_multi, packets_share_the_checksum_flags)
{
	uint8_t frame[3][200];
	uint32_t head, i;

	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(L3 | L4, 0, NULL, 0);
	for (i = 0; i < 3; i++) {
		head = make_headers(frame[i], 4, i ? 17 : 6, 0, 50);
		memset(frame[i] + head, i, 50);
		memcpy(mem + 256 * i, frame[i], head + 50);
		data(mem + 256 * i, head + 50);
	}
	post();
	for (i = 0; i < 3; i++) {
		set_csums(frame[i], i ? 92 : 104, 0, L3 | L4);
		expect_frame(i, frame[i], i ? 92 : 104);
	}
}

Test(eth_send_multi, a_wqe_has_up_to_61_packets)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	for (unsigned i = 0; i < 61; i++)
		data(mem + i, 60 + i);
	post();
	cr_assert_eq(nsent, 61);
	for (unsigned i = 0; i < 61; i++)
		expect_frame(i, mem + i, 60 + i);
}

/* One bad packet stops the whole WQE, because all are checked before the first is sent. */
Test(eth_send_multi, all_packets_are_checked_first)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	data(mem, 60);
	data(mem, 60);
	data(mem + MEM_SIZE - 59, 60);
	post();
	expect_refused(0, SN_OP_EMPW, SN_SYND_LOC_PROT);
	cr_expect_eq(a.qp.stats.local_prot_errors, 1);
}

static void refused_empw(uint8_t synd)
{
	data(mem, 60);
	post();
	expect_refused(0, SN_OP_EMPW, synd);
}

Test(eth_send_multi, refused_if_the_queue_does_not_allow_it)
{
	eth.empw = false;
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	refused_empw(SN_SYND_LOC_OP);
	cr_expect_eq(sn_dev->stats.bad_opcode, 1);
}

Test(eth_send_multi, refuses_a_vlan_tag)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	sn_put32(wqe + 28, 0x80000007);
	refused_empw(SN_SYND_LOC_OP);
}

Test(eth_send_multi, refuses_an_inline_header)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, mem, 18);
	refused_empw(SN_SYND_LOC_OP);
}

Test(eth_send_multi, refuses_a_segment_size)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 100, NULL, 0);
	refused_empw(SN_SYND_LOC_OP);
}

Test(eth_send_multi, refuses_a_short_packet)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	data(mem, 13);
	refused_empw(SN_SYND_LOC_LEN);
}

Test(eth_send_multi, refuses_a_wqe_without_packets)
{
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	post();
	expect_refused(0, SN_OP_EMPW, SN_SYND_LOC_OP);
}

/* ---- payload in GPU memory ---- */

/* The headers are read with the payload of a SEND. Segments of a TSO are read ahead. */
Test(eth_send_multi, payload_may_be_in_gpu_memory)
{
	static uint8_t hdr[128];
	uint32_t head = make_headers(hdr, 4, 6, 0, 0);

	sn_find_mr(sn_dev, lkey)->gpu = true;
	post_send(0, mem, 100);
	expect_frame(0, mem, 100);
	cr_assert_eq(gpu.reads, 1);
	cr_assert_eq(gpu.ahead, 0);
	begin(SN_OP_TSO, CE_ALWAYS);
	eseg(L3 | L4, 1000, hdr, head);
	data(mem, 100000);
	post();
	cr_assert_eq(nsent, 65);
	cr_assert_eq(gpu.ahead, 64);
	cr_assert_eq(gpu.room, 64000);
	post_send(0, mem, 100);
	cr_assert_eq(gpu.reads, 2, "the read after a TSO was announced by it");
	for (unsigned i = 0; i < 100; i++)
		cr_assert(!memcmp(sent[1 + i]->data + head, mem + 1000 * i, 1000));
}

/* ---- waits for a time ---- */

static void write_wait(uint32_t operation, uint64_t value, uint64_t mask)
{
	uint8_t s[32] = { 0 };

	begin(SN_OP_WAIT, CE_ALWAYS);
	wqe[0] = WAIT_TIME;
	sn_put32(s, operation);
	sn_put64(s + 16, value);
	sn_put64(s + 24, mask);
	put_bytes(s, 32);
}

static void post_wait(uint64_t value, uint64_t mask)
{
	write_wait(5, value, mask);
	write_wqe();
	post_send(0, mem, 100);
}

Test(eth_send_multi, waits_for_a_time_in_clock_ticks)
{
	post_wait(stamp_free + 1000, ~0ull);
	pass(3);
	cr_assert_eq(nsent, 0);
	expect_none();
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), clock_ns + 1000);
	stamp_free += 999;
	pass(1);
	cr_assert_eq(nsent, 0);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), clock_ns + 1);
	stamp_free++;
	pass(1);
	expect_cqe(0, SN_OP_WAIT, 0);
	expect_cqe(1, SN_OP_SEND, 0);
	expect_frame(0, mem, 100);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), 0);
	cr_expect_eq(eth.stats.wait_wqes, 1);
}

/* Seconds are in the upper half; 0.9 s and 0.2 s more are 1.1 s. */
Test(eth_send_multi, waits_for_a_real_time)
{
	uint64_t then = ((stamp_real >> 32) + 1) << 32 | 100000000;

	a.qp.ts_format = 2;
	post_wait(then, ~0ull);
	cr_assert_eq(nsent, 0);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), clock_ns + 200000000);
	stamp_real = then - 1;
	pass(1);
	cr_assert_eq(nsent, 0);
	stamp_real = then;
	pass(1);
	cr_assert_eq(nsent, 1);
}

Test(eth_send_multi, the_default_format_is_that_of_the_device)
{
	a.qp.ts_format = 1;
	sn_dev->cfg.ts_format = SN_TS_REAL;
	post_wait(stamp_real + 500, ~0ull);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), clock_ns + 500);
	stamp_real += 500;
	pass(1);
	cr_assert_eq(nsent, 1);
}

Test(eth_send_multi, a_time_in_the_past_does_not_delay)
{
	post_wait(stamp_free - 1000, ~0ull);
	cr_assert_eq(nsent, 1);
	post_wait(stamp_free, ~0ull);
	cr_assert_eq(nsent, 2);
}

/* Under a mask of 2^n - 1 only the low n bits count, cyclically. */
Test(eth_send_multi, the_mask_limits_the_comparison)
{
	const uint64_t mask = (8ull << 32) - 1;

	post_wait((stamp_free + 100) & mask, mask);
	cr_assert_eq(nsent, 0);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), clock_ns + 100);
	stamp_free += 100;
	pass(1);
	cr_assert_eq(nsent, 1);
	stamp_free = 5 * mask + 4; /* 0xffffffff in the low 35 bits, minus 1 and so on */
	post_wait((stamp_free + 3000) & mask, mask);
	cr_assert_eq(nsent, 1);
	stamp_free += 3000;
	pass(1);
	cr_assert_eq(nsent, 2);
	post_wait((stamp_free + mask / 2 + 2) & mask, mask);
	cr_assert_eq(nsent, 3, "more than half the range ahead is in the past");
}

Test(eth_send_multi, the_real_time_may_have_a_mask)
{
	const uint64_t mask = (8ull << 32) - 1;
	uint64_t then = ((stamp_real >> 32) + 1) << 32 | 100000000;

	a.qp.ts_format = 2;
	post_wait(then & mask, mask);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), clock_ns + 200000000);
	stamp_real = then;
	pass(1);
	cr_assert_eq(nsent, 1);
}

/* A frame that a full receiver refuses after a wait has no due time. */
Test(eth_send_multi, a_wait_that_ended_has_no_due_time)
{
	post_wait(stamp_free + 1000, ~0ull);
	accept_max = 0;
	stamp_free += 1000;
	pass(1);
	cr_assert_eq(nframes, 1);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), 0);
}

/* A waiting SQ neither blocks a reset nor leaves a due time behind. */
Test(eth_send_multi, a_reset_ends_a_wait)
{
	post_wait(stamp_free + SECOND, ~0ull);
	fake_modify(&a, SN_QPS_RST);
	cr_assert_eq(sn_eth_sq_due(a.qp.eng), 0);
	stamp_free += SECOND;
	pass(2);
	cr_assert_eq(nsent, 0);
	expect_none();
}

static void refused_wait(void)
{
	post();
	expect_refused(0, SN_OP_WAIT, SN_SYND_LOC_OP);
}

Test(eth_send_multi, refuses_a_wait_without_the_capability)
{
	sn_dev->cfg.wait_on_time = false;
	write_wait(5, 0, ~0ull);
	refused_wait();
	cr_expect_eq(sn_dev->stats.bad_opcode, 1);
}

Test(eth_send_multi, refuses_a_wait_for_a_cqe)
{
	write_wait(5, 0, ~0ull);
	wqe[0] = 0;
	refused_wait();
}

Test(eth_send_multi, refuses_a_wait_for_data)
{
	write_wait(5, 0, ~0ull);
	wqe[0] = 1;
	refused_wait();
}

Test(eth_send_multi, refuses_other_operations)
{
	write_wait(4, 0, ~0ull);
	refused_wait();
}

Test(eth_send_multi, refuses_a_wait_with_a_key)
{
	write_wait(5, 0, ~0ull);
	sn_put32(wqe + 20, lkey);
	refused_wait();
}

Test(eth_send_multi, refuses_a_wait_with_an_address)
{
	write_wait(5, 0, ~0ull);
	wqe[31] = 8;
	refused_wait();
}

Test(eth_send_multi, refuses_mask_0)
{
	write_wait(5, 0, 0);
	refused_wait();
}

Test(eth_send_multi, refuses_a_mask_with_holes)
{
	write_wait(5, 0, 0xff0f);
	refused_wait();
}

Test(eth_send_multi, refuses_a_wait_of_another_size)
{
	write_wait(5, 0, ~0ull);
	wqe[7] = 2;
	refused_wait();
}

/* ---- state ERR ---- */

Test(eth_send_multi, flushes_in_order)
{
	accept_max = 0;
	for (unsigned i = 0; i < 3; i++)
		post_send(0, mem, 100);
	fake_modify(&a, SN_QPS_ERR);
	for (unsigned i = 0; i < 3; i++)
		expect_cqe(i, SN_OP_SEND, SN_SYND_FLUSH);
	expect_none();
	cr_assert_eq(nframes, 0);
	post_send(0, mem, 100);
	pass(1);
	expect_cqe(3, SN_OP_SEND, SN_SYND_FLUSH);
	cr_expect_eq(a.qp.stats.flushed, 4);
}

/* State ERR flushes WQEs whose doorbell has not arrived, too. */
Test(eth_send_multi, flushes_what_the_dbrec_shows)
{
	begin(SN_OP_NOP, CE_ALWAYS);
	write_wqe();
	__atomic_store_n(&a.dbr[1], htobe32(a.pi & 0xffff), __ATOMIC_RELEASE);
	fake_modify(&a, SN_QPS_ERR);
	expect_cqe(0, SN_OP_NOP, SN_SYND_FLUSH);
}

/* Of WQEs that report only the first error, only one CQE is written. */
Test(eth_send_multi, flush_respects_the_completion_bits)
{
	accept_max = 0;
	for (unsigned i = 0; i < 3; i++) {
		begin(SN_OP_SEND, CE_FIRST);
		eseg(0, 0, NULL, 0);
		data(mem, 60);
		post();
	}
	post_send(0, mem, 60);
	fake_modify(&a, SN_QPS_ERR);
	expect_cqe(0, SN_OP_SEND, SN_SYND_FLUSH);
	expect_cqe(3, SN_OP_SEND, SN_SYND_FLUSH);
	expect_none();
}

Test(eth_send_multi, without_flush_in_error_nothing_completes)
{
	eth.flush_in_error = false;
	accept_max = 0;
	post_send(0, mem, 100);
	post_send(0, mem, 100);
	fake_modify(&a, SN_QPS_ERR);
	accept_max = SENT_MAX;
	post_send(0, mem, 100);
	pass(3);
	expect_none();
	cr_assert_eq(nsent, 0);
	cr_assert_eq(nframes, 0);
	cr_assert(sn_eth_sq_idle(a.qp.eng));
}

Test(eth_send_multi, a_bad_wqe_flushes_the_later_ones)
{
	post_send(0, mem, 100);
	begin(0x17, CE_FIRST);
	eseg(0, 0, NULL, 0);
	write_wqe();
	begin(SN_OP_NOP, CE_FIRST);
	write_wqe();
	post_send(0, mem, 100);
	expect_cqe(0, SN_OP_SEND, 0);
	expect_cqe(1, 0x17, SN_SYND_LOC_OP);
	expect_cqe(3, SN_OP_SEND, SN_SYND_FLUSH);
	expect_none();
	cr_assert_eq(nsent, 1);
	cr_expect_eq(sn_dev->stats.bad_opcode, 1);
}

Test(eth_send_multi, injected_errors_stop_the_queue)
{
	sn_dev->cfg.err_after = 2;
	for (unsigned i = 0; i < 3; i++)
		post_send(0, mem, 100);
	expect_cqe(0, SN_OP_SEND, 0);
	expect_cqe(1, SN_OP_SEND, 0);
	pass(1);
	expect_cqe(2, SN_OP_SEND, SN_SYND_FLUSH);
	cr_assert_eq(a.qp.state, SN_QPS_ERR);
	cr_expect_eq(sn_dev->stats.faults_injected, 1);
	sn_dev->cfg.err_after = 0;
}
