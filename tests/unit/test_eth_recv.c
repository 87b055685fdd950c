/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the NIC does with a received Ethernet frame: the RQs that get it, the bytes in
 * memory, and the counters. test_eth_recv_cqe.c checks the fields of the CQE.
 */
#include <zlib.h>

#include "eth_rq_rig.h"

static struct rig_rq rq[2];
static uint8_t cqe[64];

static void setup(void)
{
	rig_open();
	rig_rq_init(&rq[0], 0x40);
	rig_rq_init(&rq[1], 0x41);
}

static void teardown(void)
{
	cr_assert_eq(rig_outcomes(), rig_stats()->eth_rx_frames, "a frame has no outcome or two");
	rig_rq_fini(&rq[0]);
	rig_rq_fini(&rq[1]);
	fake_close();
}

TestSuite(eth_recv, .init = setup, .fini = teardown);

static void frame_of(uint32_t payload)
{
	build_frame(&(struct build){ .payload = payload });
}

Test(eth_recv, writes_the_frame_to_the_rq_of_the_tir)
{
	struct sn_rule rule = rig_rule(1, &rq[0].tir);

	sn_flow_insert(sn_dev, &rule);
	rig_post(&rq[0], 2, 2048);
	for (uint32_t i = 0; i < 2; i++) {
		frame_of(100 + i);
		cr_assert_eq(rig_receive(), SN_ETH_TAKEN);
		cr_assert(rig_cqe(&rq[0], cqe));
		cr_assert_eq(cqe[63] >> 4, SN_CQE_RESP_SEND);
		cr_assert_eq(sn_get32(cqe + 44), rig_frame.len);
		cr_assert_eq(cqe[60] << 8 | cqe[61], (int)i);
		cr_assert_arr_eq(rig_buf(&rq[0], i), rig_frame.data, rig_frame.len);
		cr_assert_eq(rig_buf(&rq[0], i)[rig_frame.len], RIG_FILL);
	}
	cr_assert(!rig_cqe(&rq[1], cqe));
	cr_assert_eq(rig_stats()->eth_delivered, 2);
	cr_assert_eq(rq[0].eth.stats.frames, 2);
	cr_assert_eq(rq[0].eth.stats.frame_bytes, 2 * rig_frame.len - 1);
	cr_assert_eq(rig_stats()->eth_rx_bytes, 2 * rig_frame.len - 1);
}

/* ---- rules ---- */

Test(eth_recv, a_frame_without_a_rule)
{
	struct sn_rule rule = rig_rule(1, NULL);

	frame_of(10);
	cr_assert_eq(rig_receive(), SN_ETH_TAKEN);
	cr_assert_eq(rig_stats()->eth_no_rule, 1);
	sn_flow_insert(sn_dev, &rule);
	rig_receive();
	cr_assert_eq(rig_stats()->eth_no_rule, 2, "a rule that only counts delivers nothing");
	cr_assert(rule.packets == 1 && rule.bytes == rig_frame.len);
}

Test(eth_recv, the_first_rule_decides)
{
	struct sn_rule first = rig_rule(1, &rq[1].tir), second = rig_rule(2, &rq[0].tir);

	sn_flow_insert(sn_dev, &second);
	sn_flow_insert(sn_dev, &first);
	rig_post(&rq[0], 1, 2048);
	rig_post(&rq[1], 1, 2048);
	frame_of(10);
	rig_receive();
	cr_assert(rig_cqe(&rq[1], cqe) && !rig_cqe(&rq[0], cqe));
	cr_assert(first.packets == 1 && second.packets == 0);
	sn_flow_remove(&first);
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe) && !rig_cqe(&rq[1], cqe));
}

Test(eth_recv, a_rule_drops)
{
	struct sn_rule drop = { .order = 1, .drop = true }, next = rig_rule(2, &rq[0].tir);

	sn_flow_insert(sn_dev, &drop);
	sn_flow_insert(sn_dev, &next);
	rig_post(&rq[0], 1, 2048);
	frame_of(10);
	rig_receive();
	cr_assert(!rig_cqe(&rq[0], cqe));
	cr_assert(rig_stats()->eth_rule_dropped == 1 && drop.packets == 1);
}

Test(eth_recv, equal_rules_all_receive)
{
	struct sn_rule a = rig_rule(1, &rq[0].tir), b = rig_rule(1, &rq[1].tir), other = a;

	/* of the same order, but with another mask: it is no part of the same rule */
	memset(other.mask, 0xff, 6);
	frame_of(10);
	memcpy(other.match, rig_frame.data + 6, 6);
	sn_flow_insert(sn_dev, &a);
	sn_flow_insert(sn_dev, &other);
	sn_flow_insert(sn_dev, &b);
	rig_post(&rq[0], 2, 2048);
	rig_post(&rq[1], 2, 2048);
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe) && rig_cqe(&rq[1], cqe));
	cr_assert(!rig_cqe(&rq[0], cqe), "one of another mask received");
	cr_assert_arr_eq(rig_buf(&rq[1], 0), rig_frame.data, rig_frame.len);
	cr_assert(a.packets == 1 && b.packets == 1 && other.packets == 0);
	cr_assert_eq(rig_stats()->eth_delivered, 1, "one frame counts once");
}

Test(eth_recv, sniffers_receive_copies)
{
	struct sn_rule sniffer = rig_rule(0, &rq[1].tir), rule = rig_rule(1, &rq[0].tir);

	sniffer.sniffer = true;
	sn_flow_insert(sn_dev, &sniffer);
	rig_post(&rq[0], 2, 2048);
	rig_post(&rq[1], 2, 2048);
	frame_of(10);
	rig_receive();
	cr_assert(rig_cqe(&rq[1], cqe), "a sniffer alone receives the frame, too");
	sn_flow_insert(sn_dev, &rule);
	rig_receive();
	cr_assert(rig_cqe(&rq[0], cqe) && rig_cqe(&rq[1], cqe));
	cr_assert_eq(rig_stats()->eth_delivered, 2);
}

Test(eth_recv, the_best_outcome_of_several_rules_counts)
{
	struct sn_rule a = rig_rule(1, &rq[0].tir), b = rig_rule(1, &rq[1].tir);

	sn_flow_insert(sn_dev, &a);
	sn_flow_insert(sn_dev, &b);
	rig_post(&rq[1], 1, 2048);
	frame_of(10);
	rig_receive();
	cr_assert(rig_stats()->eth_delivered == 1 && rig_stats()->eth_out_of_buffer == 0);
	cr_assert_eq(rq[0].eth.stats.out_of_buffer, 1);
	rig_receive();
	cr_assert(rig_stats()->eth_delivered == 1 && rig_stats()->eth_out_of_buffer == 1);
	rig_post(&rq[0], 1, 2048);
	rig_receive();
	cr_assert(rig_stats()->eth_delivered == 2 && rig_stats()->eth_out_of_buffer == 1);
	cr_assert_eq(rq[1].eth.stats.out_of_buffer, 2);
}

/* A frame of the TIR's own transport domain needs permission. */
Test(eth_recv, loopback_needs_permission)
{
	struct sn_rule rule = rig_rule(1, &rq[0].tir);
	struct sn_td td = { .tdn = 3 };

	sn_flow_insert(sn_dev, &rule);
	rig_post(&rq[0], 8, 2048);
	for (unsigned i = 0; i < 64; i++) {
		bool multicast = i & 1, local = i & 2, own = i & 4, has_td = i & 8;
		bool passes = !local || !own || !has_td || (i >> 4 & (multicast ? 2u : 1u));

		rq[0].tir.self_lb_block = (uint8_t)(i >> 4);
		rq[0].tir.td = has_td ? &td : NULL;
		frame_of(10);
		rig_frame.data[0] |= multicast;
		rig_frame.local = local;
		rig_frame.tdn = own ? 3 : 4;
		rig_receive();
		cr_assert_eq(rig_cqe(&rq[0], cqe), passes, "case %u", i);
		rig_post(&rq[0], passes, 2048);
	}
	cr_assert_eq(rig_stats()->eth_rule_dropped, 64 - rig_stats()->eth_delivered);
}

Test(eth_recv, tables_spread_frames_by_hash)
{
	struct sn_qp *entries[2] = { &rq[0].q.qp, &rq[1].q.qp };
	struct sn_rqt rqt = { .rq = entries, .n = 2, .max = 2 };
	struct sn_tir tir = { .rqt = &rqt,
			      .fn = SN_HASH_TOEPLITZ,
			      .fields = 15,
			      .udp = true,
			      .key = { 1, 2, 3, 4, 5 } };
	struct sn_rule rule = rig_rule(1, &tir);
	unsigned n[2] = { 0 }, to;

	for (unsigned i = 0; i < SN_HASH_KEY; i++)
		tir.key[i] = (uint8_t)(i * 37 + 11);
	sn_flow_insert(sn_dev, &rule);
	rig_post(&rq[0], 60, 2048);
	rig_post(&rq[1], 60, 2048);
	for (uint16_t i = 0; i < 60; i++) {
		build_frame(&(struct build){ .sport = i });
		rig_receive();
		to = rig_cqe(&rq[0], cqe) ? 0 : 1;
		cr_assert(!to || rig_cqe(&rq[1], cqe));
		cr_assert_eq(sn_get32(cqe + 12) % 2, to, "the CQE's hash selects another RQ");
		n[to]++;
	}
	cr_assert(n[0] > 5 && n[1] > 5, "%u and %u", n[0], n[1]);
	rqt.n = 0;
	rig_receive();
	cr_assert_eq(rig_stats()->eth_not_ready, 1);
}

/* ---- what is written ---- */

static struct sn_rule to_first;

static void direct(uint32_t n, uint32_t len)
{
	to_first = rig_rule(1, &rq[0].tir);
	sn_flow_insert(sn_dev, &to_first);
	rig_post(&rq[0], n, len);
}

static uint32_t received(void)
{
	cr_assert(rig_cqe(&rq[0], cqe));
	cr_assert_eq(cqe[63] >> 4, SN_CQE_RESP_SEND);
	return sn_get32(cqe + 44);
}

Test(eth_recv, vlan_tags_are_stripped)
{
	const uint8_t *buf = rig_buf(&rq[0], 0), *f = rig_frame.data;

	direct(4, 2048);
	build_frame(&(struct build){ .tag_type = { 0x8100 }, .tci = { 0x6123 }, .payload = 40 });
	rig_receive();
	cr_assert_eq(received(), rig_frame.len);
	cr_assert_arr_eq(buf, f, rig_frame.len);
	rq[0].eth.keep_vlan = false;
	buf += RIG_BUF;
	rig_receive();
	cr_assert_eq(received(), rig_frame.len - 4);
	cr_assert_eq(cqe[0x1e] << 8 | cqe[0x1f], 0x6123);
	cr_assert_arr_eq(buf, f, 12);
	cr_assert_arr_eq(buf + 12, f + 16, rig_frame.len - 16);
	cr_assert_eq(buf[rig_frame.len - 4], RIG_FILL);
	/* only the outer tag is stripped; a service tag stays */
	buf += RIG_BUF;
	build_frame(&(struct build){ .tag_type = { 0x8100, 0x8100 }, .tci = { 1, 2 } });
	rig_receive();
	cr_assert_eq(received(), rig_frame.len - 4);
	cr_assert_arr_eq(buf + 12, f + 16, rig_frame.len - 16);
	build_frame(&(struct build){ .tag_type = { 0x88a8, 0x8100 }, .tci = { 1, 2 } });
	rig_receive();
	cr_assert_eq(received(), rig_frame.len);
	cr_assert_eq(cqe[0x1d] & 1, 0);
}

Test(eth_recv, the_fcs_follows_the_frame)
{
	static const uint8_t check[9] = "123456789";
	const uint8_t *buf = rig_buf(&rq[0], 0);
	uint32_t crc, n = rig_frame.len;

	cr_assert_eq(crc32(0, check, 9), 0xcbf43926, "zlib's CRC is that of Ethernet");
	direct(2, 2048);
	rq[0].eth.scatter_fcs = true;
	build_frame(&(struct build){ .tag_type = { 0x8100 }, .payload = 63 });
	n = rig_frame.len;
	crc = (uint32_t)crc32(0, rig_frame.data, n);
	for (int strip = 0; strip < 2; strip++, buf += RIG_BUF) {
		rq[0].eth.keep_vlan = !strip;
		rig_receive();
		cr_assert_eq(received(), n - 4 * (uint32_t)strip + 4);
		for (uint32_t i = 0; i < 4; i++)
			cr_assert_eq(buf[n - 4 * (uint32_t)strip + i], (uint8_t)(crc >> 8 * i));
	}
}

Test(eth_recv, frames_are_padded_to_cache_lines)
{
	const uint8_t *buf = rig_buf(&rq[0], 0);

	direct(1, 128);
	rq[0].eth.end_pad = true;
	frame_of(58); /* 100 bytes */
	rig_receive();
	cr_assert_eq(received(), 100, "the padding does not count");
	for (uint32_t i = 100; i < 128; i++)
		cr_assert_eq(buf[i], 0);
	cr_assert_eq(buf[128], RIG_FILL);
	rig_post(&rq[0], 1, 110);
	rig_receive();
	cr_assert_eq(received(), 100);
	buf += RIG_BUF;
	for (uint32_t i = 100; i < 110; i++)
		cr_assert_eq(buf[i], 0);
	cr_assert_eq(buf[110], RIG_FILL, "padding beyond the WQE");
	rig_post(&rq[0], 1, 2048);
	frame_of(22); /* 64 bytes need none */
	rig_receive();
	received();
	cr_assert_eq(buf[RIG_BUF + 64], RIG_FILL);
}

Test(eth_recv, frames_are_scattered)
{
	uint8_t *s = rq[0].q.rq, *buf = rig_buf(&rq[0], 0);
	static const uint32_t len[4] = { 5, 11, 20, 300 };

	direct(1, 1);
	for (uint32_t i = 0; i < 4; i++, s += 16) {
		sn_put32(s, len[i]);
		sn_put32(s + 4, rq[0].key);
		sn_put64(s + 8, (uintptr_t)rig_buf(&rq[0], i));
	}
	rq[0].eth.keep_vlan = false;
	build_frame(&(struct build){ .tag_type = { 0x8100 }, .payload = 60 });
	memmove(rig_frame.data + 200, rig_frame.data, rig_frame.len);
	rig_receive();
	cr_assert_eq(received(), rig_frame.len - 4);
	memmove(rig_frame.data + 12, rig_frame.data + 16, rig_frame.len - 16);
	cr_assert_arr_eq(buf, rig_frame.data, 5);
	cr_assert_arr_eq(buf + RIG_BUF, rig_frame.data + 5, 11);
	cr_assert_arr_eq(buf + 2 * RIG_BUF, rig_frame.data + 16, 20);
	cr_assert_arr_eq(buf + 3 * RIG_BUF, rig_frame.data + 36, rig_frame.len - 4 - 36);
	cr_assert(buf[5] == RIG_FILL && buf[RIG_BUF + 11] == RIG_FILL);
}

Test(eth_recv, the_largest_and_the_smallest_frame)
{
	direct(2, RIG_BUF);
	build_frame(&(struct build){ .tag_type = { 0x88a8, 0x8100 }, .payload = 9188 });
	cr_assert_eq(rig_frame.len, SN_ETH_FRAME_MAX);
	rig_receive();
	cr_assert_eq(received(), SN_ETH_FRAME_MAX);
	cr_assert_arr_eq(rig_buf(&rq[0], 0), rig_frame.data, SN_ETH_FRAME_MAX);
	rig_frame.len = 14;
	rig_receive();
	cr_assert_eq(received(), 14);
	rig_frame.len = SN_ETH_FRAME_MAX + 1;
	rig_receive();
	rig_frame.len = 13;
	rig_receive();
	rig_frame.len = 0;
	rig_receive();
	cr_assert_eq(rig_stats()->eth_malformed, 3);
	cr_assert_eq(to_first.packets, 2);
}

Test(eth_recv, corrupt_frames_are_counted)
{
	direct(1, 2048);
	frame_of(10);
	rig_frame.corrupt = true;
	rig_receive();
	cr_assert(!rig_cqe(&rq[0], cqe));
	cr_assert(rig_stats()->eth_fcs_errors == 1 && to_first.packets == 0);
}

/* The RQ's indices wrap at 65536 and its ring many times before. */
Test(eth_recv, indices_wrap)
{
	direct(0, 0);
	for (uint32_t i = 0; i < 70000; i++) {
		rig_post(&rq[0], 1, 256);
		build_frame(&(struct build){ .sport = (uint16_t)i, .dport = (uint16_t)(i >> 8) });
		rig_receive();
		received();
		cr_assert_eq(cqe[60] << 8 | cqe[61], (int)(i & 0xffff));
		cr_assert_arr_eq(rig_buf(&rq[0], i), rig_frame.data, rig_frame.len);
	}
}
