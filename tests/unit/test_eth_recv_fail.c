/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Received Ethernet frames that cannot be delivered: no WQE, no ready RQ, WQEs that are too
 * short or name invalid memory, and RQs in error.
 */
#include "eth_rq_rig.h"

static struct rig_rq rq[2];
static struct sn_rule rule;
static struct sn_counter_set set;
static uint8_t cqe[64];

static void setup(void)
{
	rig_open();
	rig_rq_init(&rq[0], 0x40);
	rig_rq_init(&rq[1], 0x41);
	rule = rig_rule(1, &rq[0].tir);
	sn_flow_insert(sn_dev, &rule);
	rq[0].eth.counters = &set;
	build_frame(&(struct build){ .payload = 58 }); /* 100 bytes */
}

static void teardown(void)
{
	cr_assert_eq(rig_outcomes(), rig_stats()->eth_rx_frames, "a frame has no outcome or two");
	rig_rq_fini(&rq[0]);
	rig_rq_fini(&rq[1]);
	fake_close();
}

TestSuite(eth_recv_fail, .init = setup, .fini = teardown);

static void expect_error(uint8_t syndrome, uint16_t counter)
{
	cr_assert(rig_cqe(&rq[0], cqe), "no CQE");
	cr_assert_eq(cqe[63] >> 4, SN_CQE_RESP_ERR);
	cr_assert_eq(cqe[55], syndrome);
	cr_assert_eq(cqe[60] << 8 | cqe[61], counter);
	cr_assert_eq(cqe[54], syndrome == SN_SYND_LOC_LEN ? 0x6a
			      : syndrome == SN_SYND_FLUSH ? 0xf9
							  : 0x33);
}

Test(eth_recv_fail, out_of_buffer)
{
	rig_receive();
	cr_assert(rig_stats()->eth_out_of_buffer == 1 && set.out_of_buffer == 1);
	cr_assert_eq(rq[0].eth.stats.out_of_buffer, 1);
	rq[0].eth.counters = NULL;
	rig_receive();
	cr_assert(rig_stats()->eth_out_of_buffer == 2 && set.out_of_buffer == 1);
	rig_post(&rq[0], 1, 100);
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe));
	rig_receive();
	cr_assert_eq(rig_stats()->eth_out_of_buffer, 3);
	cr_assert_eq(rule.packets, 4);
}

Test(eth_recv_fail, an_rq_that_is_not_ready)
{
	static const enum sn_qp_state states[] = { SN_QPS_RST, SN_QPS_ERR };

	for (int i = 0; i < 2; i++) {
		sn_eth_qp_modify(sn_dev, &rq[0].q.qp, states[i]);
		rig_receive();
		cr_assert_eq(rig_stats()->eth_not_ready, (uint64_t)i + 1);
		cr_assert_eq(rq[0].eth.stats.not_ready, (uint64_t)i + 1);
		cr_assert(!rig_cqe(&rq[0], cqe));
	}
}

/* ---- lossless mode ---- */

static enum sn_eth_result receive_lossless(void)
{
	return sn_eth_receive(sn_dev->eng, &rig_frame, true);
}

Test(eth_recv_fail, a_full_rq_delays_the_frame_without_effects)
{
	struct sn_rule both = rig_rule(1, &rq[1].tir);
	struct sn_stats before;

	sn_flow_insert(sn_dev, &both);
	rig_post(&rq[0], 1, 2048);
	before = *rig_stats();
	cr_assert_eq(receive_lossless(), SN_ETH_FULL);
	cr_assert_eq(memcmp(&before, rig_stats(), sizeof(before)), 0, "a counter changed");
	cr_assert(!rule.packets && !both.packets && !rig_cqe(&rq[0], cqe));
	cr_assert(!rq[1].eth.stats.out_of_buffer);
	rig_post(&rq[1], 1, 2048);
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	cr_assert(rig_cqe(&rq[0], cqe) && rig_cqe(&rq[1], cqe));
}

Test(eth_recv_fail, each_rule_needs_a_wqe)
{
	struct sn_rule sniffer = rig_rule(0, &rq[0].tir);

	sniffer.sniffer = true;
	sn_flow_insert(sn_dev, &sniffer);
	rig_post(&rq[0], 1, 2048);
	cr_assert_eq(receive_lossless(), SN_ETH_FULL);
	rig_post(&rq[0], 1, 2048);
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	cr_assert(rig_cqe(&rq[0], cqe) && rig_cqe(&rq[0], cqe));
}

Test(eth_recv_fail, only_ready_rqs_delay_frames)
{
	struct sn_td td = { .tdn = 3 };

	sn_eth_qp_modify(sn_dev, &rq[0].q.qp, SN_QPS_RST);
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	cr_assert_eq(rig_stats()->eth_not_ready, 1);
	sn_eth_qp_modify(sn_dev, &rq[0].q.qp, SN_QPS_RTS);
	rule.drop = true;
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	rule.drop = false;
	rig_frame.corrupt = true;
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	rig_frame.corrupt = false;
	rig_frame.len = 5;
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	rig_frame.len = 100;
	rq[0].tir.td = &td;
	rig_frame.tdn = td.tdn;
	rig_frame.local = true;
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	rig_frame.local = false;
	cr_assert_eq(receive_lossless(), SN_ETH_FULL);
}

/* A frame for an RQ that cannot be posted to any more would wait forever. */
Test(eth_recv_fail, a_frame_does_not_wait_for_a_dbrec_that_cannot_be_read)
{
	struct sn_srq rmp = { .pdn = 7, .wqe_cnt = 4, .wqe_shift = 4, .dbr = 0x10 };

	rq[0].q.qp.dbr = 0x10;
	rq[0].q.qp.eng->dbr_ok = false;
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	cr_assert_eq(rig_stats()->eth_out_of_buffer, 1);
	rq[0].q.qp.srq = &rmp;
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	cr_assert_eq(rig_stats()->eth_rx_faults, 1);
}

/* ---- errors ---- */

Test(eth_recv_fail, frames_that_exceed_the_mtu)
{
	sn_dev->cfg.eth_mtu = 1000;
	rig_post(&rq[0], 8, 2048);
	for (uint32_t tags = 0; tags < 3; tags++) {
		struct build b = { .payload = 972 }; /* 1000 bytes with the headers */

		for (uint32_t i = 0; i < tags; i++)
			b.tag_type[i] = 0x8100;
		build_frame(&b);
		cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
		cr_assert(rig_cqe(&rq[0], cqe) && sn_get32(cqe + 44) == 1014 + 4 * tags);
		b.payload++;
		build_frame(&b);
		rig_receive();
		cr_assert(!rig_cqe(&rq[0], cqe));
		cr_assert_eq(rig_stats()->eth_too_long, tags + 1);
	}
	cr_assert(rule.packets == 3 && rq[0].eth.stats.too_long == 0);
	rq[0].q.rpi -= 5;
	rq[0].q.dbr[0] = htobe32(rq[0].q.rpi);
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN, "a frame to be dropped must not wait");
}

Test(eth_recv_fail, a_frame_that_is_longer_than_the_wqe)
{
	rig_post(&rq[0], 1, 99);
	rig_post(&rq[0], 1, 100);
	rig_receive();
	expect_error(SN_SYND_LOC_LEN, 0);
	cr_assert(rig_stats()->eth_too_long == 1 && rq[0].eth.stats.too_long == 1);
	cr_assert_eq(rig_buf(&rq[0], 0)[0], RIG_FILL, "a part of the frame was written");
	cr_assert_eq(rq[0].q.qp.state, SN_QPS_RTS, "the RQ must stay ready");
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe) && cqe[63] >> 4 == SN_CQE_RESP_SEND);
	rq[0].eth.scatter_fcs = true;
	rig_post(&rq[0], 1, 103);
	rig_receive();
	expect_error(SN_SYND_LOC_LEN, 2);
	cr_assert_eq(rig_buf(&rq[0], 2)[0], RIG_FILL);
}

Test(eth_recv_fail, memory_that_cannot_be_written)
{
	unsigned events = fake_async;

	rig_post(&rq[0], 1, 2048);
	sn_put32(rq[0].q.rq + 4, 0x99);
	rig_post(&rq[0], 2, 2048);
	rig_receive();
	expect_error(SN_SYND_LOC_PROT, 0);
	expect_error(SN_SYND_FLUSH, 1);
	expect_error(SN_SYND_FLUSH, 2);
	cr_assert_eq(rq[0].q.qp.state, SN_QPS_ERR);
	cr_assert_eq(rig_stats()->eth_rx_faults, 1);
	cr_assert_eq(fake_async, events + 1);
	rig_receive();
	cr_assert_eq(rig_stats()->eth_not_ready, 1);
}

Test(eth_recv_fail, a_ring_that_cannot_be_read)
{
	rig_post(&rq[0], 1, 2048);
	rq[0].q.qp.rq_buf = 0x10;
	rig_receive();
	expect_error(SN_SYND_LOC_OP, 0);
	cr_assert_eq(rq[0].q.qp.state, SN_QPS_ERR);
	cr_assert_eq(rig_stats()->eth_rx_faults, 1);
}

Test(eth_recv_fail, wqes_are_flushed_if_the_rq_was_created_so)
{
	for (int flush = 0; flush < 2; flush++) {
		rq[0].eth.flush_in_error = flush;
		sn_eth_qp_modify(sn_dev, &rq[0].q.qp, SN_QPS_RTS);
		rig_post(&rq[0], 1, 2048);
		sn_eth_qp_modify(sn_dev, &rq[0].q.qp, SN_QPS_ERR);
		for (int i = 0; i < 2; i++) /* and those posted later */
			sn_eng_pass(sn_dev->eng);
		if (!flush)
			cr_assert(!rig_cqe(&rq[0], cqe));
	}
	expect_error(SN_SYND_FLUSH, 0);
	expect_error(SN_SYND_FLUSH, 1);
	rig_post(&rq[0], 1, 2048);
	sn_eth_rq_flush(sn_dev->eng, rq[0].q.qp.eng);
	expect_error(SN_SYND_FLUSH, 2);
	cr_assert(!rig_cqe(&rq[0], cqe));
}

Test(eth_recv_fail, a_reset_discards_wqes)
{
	rig_post(&rq[0], 3, 2048);
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe));
	sn_eth_qp_modify(sn_dev, &rq[0].q.qp, SN_QPS_ERR);
	sn_eth_qp_modify(sn_dev, &rq[0].q.qp, SN_QPS_RST);
	rq[0].q.rpi = rq[0].q.dbr[0] = 0;
	while (rig_cqe(&rq[0], cqe))
		continue;
	sn_eth_qp_modify(sn_dev, &rq[0].q.qp, SN_QPS_RTS);
	rig_receive();
	cr_assert_eq(rig_stats()->eth_out_of_buffer, 1);
	rig_post(&rq[0], 1, 2048);
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe) && cqe[61] == 0);
}

/* ---- an RMP ---- */

Test(eth_recv_fail, an_rmp_serves_several_rqs)
{
	struct sn_rule second = rig_rule(1, &rq[1].tir);
	struct sn_srq rmp = { .pdn = 7,
			      .wqe_cnt = 4,
			      .wqe_shift = 4,
			      .cyclic = true,
			      .basic = true };
	uint32_t posted = 0;
	uint8_t ring[64];

	rmp.buf = (uintptr_t)ring;
	rmp.dbr = (uintptr_t)&posted;
	rq[0].q.qp.srq = rq[1].q.qp.srq = &rmp;
	sn_flow_insert(sn_dev, &second);
	for (uint32_t i = 0; i < 3; i++) {
		sn_put32(ring + 16 * i, 2048);
		sn_put32(ring + 16 * i + 4, rq[0].key);
		sn_put64(ring + 16 * i + 8, (uintptr_t)rig_buf(&rq[0], i));
	}
	posted = htobe32(1);
	cr_assert_eq(receive_lossless(), SN_ETH_FULL, "both RQs take a WQE of the RMP");
	posted = htobe32(3);
	cr_assert_eq(receive_lossless(), SN_ETH_TAKEN);
	cr_assert(rig_cqe(&rq[0], cqe) && cqe[61] == 0);
	cr_assert(rig_cqe(&rq[1], cqe) && cqe[61] == 1);
	cr_assert_arr_eq(rig_buf(&rq[0], 1), rig_frame.data, 100);
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe) && !rig_cqe(&rq[1], cqe));
	cr_assert_eq(rq[1].eth.stats.out_of_buffer, 1);
	cr_assert_eq(receive_lossless(), SN_ETH_FULL);
}

/* ---- local delivery ---- */

Test(eth_recv_fail, wants)
{
	cr_assert(sn_eth_wants(sn_dev->eng, &rig_frame));
	rule.mask[15] = 0xff;
	rule.match[15] = 9;
	cr_assert_not(sn_eth_wants(sn_dev->eng, &rig_frame));
	rule.mask[15] = 0;
	rule.egress = true;
	cr_assert_not(sn_eth_wants(sn_dev->eng, &rig_frame));
	rule.egress = false;
	rig_frame.len = 13;
	cr_assert_not(sn_eth_wants(sn_dev->eng, &rig_frame));
	rig_frame.len = SN_ETH_FRAME_MAX + 1;
	cr_assert_not(sn_eth_wants(sn_dev->eng, &rig_frame));
	cr_assert_eq(rig_stats()->eth_rx_frames, 0);
}
