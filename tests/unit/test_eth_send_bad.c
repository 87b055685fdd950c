/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ethernet send queues: invalid WQEs complete with an error before anything is sent, and
 * stop the queue. Rules for sent frames drop and count.
 */
#include "eth_sq_rig.h"

TestSuite(eth_send_bad, .init = sq_rig, .fini = sq_fini, .timeout = 60);

static void begin_send(void)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
}

static void refused(uint8_t synd, uint64_t *count)
{
	uint32_t at;

	post();
	expect_refused(0, wqe[3], synd);
	if (count)
		cr_assert_eq(*count, 1);
	at = a.pi;
	post_send(0, mem, 100);
	expect_cqe(at, SN_OP_SEND, SN_SYND_FLUSH);
	cr_assert_eq(nsent, 0);
}

static void refused_reserved(void)
{
	data(mem, 60);
	refused(SN_SYND_LOC_OP, &sn_dev->stats.bad_reserved);
}

/* ---- control segment ---- */

Test(eth_send_bad, reserved_bits_of_the_size_word)
{
	begin_send();
	data(mem, 60);
	wqe[7] = 0x43;
	refused(SN_SYND_LOC_OP, &sn_dev->stats.bad_reserved);
}

Test(eth_send_bad, reserved_bits_of_the_flags_word)
{
	begin_send();
	wqe[9] = 1;
	refused_reserved();
}

Test(eth_send_bad, reserved_fence_mode)
{
	begin_send();
	wqe[11] |= 5 << 5;
	refused_reserved();
}

Test(eth_send_bad, wrong_index)
{
	begin_send();
	wqe[2] = 9;
	data(mem, 60);
	refused(SN_SYND_LOC_OP, &sn_dev->stats.db_unwritten_wqe);
}

Test(eth_send_bad, wrong_queue_number)
{
	begin_send();
	wqe[6] ^= 4;
	data(mem, 60);
	refused(SN_SYND_LOC_OP, &sn_dev->stats.db_unwritten_wqe);
}

Test(eth_send_bad, size_exceeds_the_doorbell)
{
	begin_send();
	data(mem, 60);
	wqe[7] = 60;
	write_wqe();
	a.pi = 1;
	fake_ring(&a);
	pass(1);
	expect_refused(0, SN_OP_NOP, SN_SYND_LOC_OP);
	cr_assert_eq(sn_dev->stats.db_unwritten_wqe, 1);
}

static void bad_opcode(uint8_t opcode, uint8_t modifier)
{
	begin(opcode, CE_ALWAYS);
	wqe[0] = modifier;
	eseg(0, 0, NULL, 0);
	data(mem, 60);
	refused(SN_SYND_LOC_OP, &sn_dev->stats.bad_opcode);
}

Test(eth_send_bad, rdma_write)
{
	bad_opcode(SN_OP_WRITE, 0);
}

Test(eth_send_bad, send_with_immediate)
{
	bad_opcode(SN_OP_SEND_IMM, 0);
}

Test(eth_send_bad, send_enable)
{
	bad_opcode(0x17, 0);
}

Test(eth_send_bad, umr)
{
	bad_opcode(0x25, 0);
}

Test(eth_send_bad, send_with_a_modifier)
{
	bad_opcode(SN_OP_SEND, 1);
}

/* TSO with modifier 1 is the older form of a multi-packet WQE. */
Test(eth_send_bad, old_multi_packet_wqe)
{
	bad_opcode(SN_OP_TSO, 1);
}

Test(eth_send_bad, too_short_for_an_ethernet_segment)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	refused(SN_SYND_LOC_OP, &sn_dev->stats.bad_reserved);
}

/* Bytes after the WQE do not belong to it. */
Test(eth_send_bad, too_short_for_an_insertion)
{
	begin_send();
	sn_put32(wqe + 28, 0x80000007);
	wqe[7] = 1;
	refused(SN_SYND_LOC_OP, &sn_dev->stats.bad_reserved);
}

/* ---- Ethernet segment ---- */

Test(eth_send_bad, software_parser_offsets)
{
	begin_send();
	wqe[16] = 1;
	refused_reserved();
}

Test(eth_send_bad, software_parser_flags)
{
	begin_send();
	wqe[21] = 1;
	refused_reserved();
}

Test(eth_send_bad, inner_l3_checksum)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0x10, 0, NULL, 0);
	refused_reserved();
}

Test(eth_send_bad, inner_l4_checksum)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0x20, 0, NULL, 0);
	refused_reserved();
}

Test(eth_send_bad, reserved_checksum_flag)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(1, 0, NULL, 0);
	refused_reserved();
}

Test(eth_send_bad, segment_size_of_a_send)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 100, NULL, 0);
	refused_reserved();
}

Test(eth_send_bad, insertion_of_a_trailer)
{
	begin_send();
	sn_put32(wqe + 28, 0xc0000000);
	refused_reserved();
}

Test(eth_send_bad, inline_header_beyond_the_wqe)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, mem, 18);
	wqe[29] = 35;
	refused_reserved();
}

Test(eth_send_bad, inline_header_of_any_length_is_bounded)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, mem, 18);
	sn_put32(wqe + 28, 0x7fff0000);
	refused_reserved();
}

/* ---- data segments ---- */

Test(eth_send_bad, inline_segment_beyond_the_wqe)
{
	begin_send();
	inline_data(mem, 60);
	sn_put32(wqe + 32, 61 | 0x80000000);
	wqe[7] = 6;
	wqe_len = 96;
	refused(SN_SYND_LOC_OP, &sn_dev->stats.bad_reserved);
}

Test(eth_send_bad, inline_segment_of_any_length_is_bounded)
{
	begin_send();
	inline_data(mem, 60);
	sn_put32(wqe + 32, 0xffffffff);
	refused(SN_SYND_LOC_OP, &sn_dev->stats.bad_reserved);
}

Test(eth_send_bad, unknown_key)
{
	begin_send();
	data(mem, 60);
	sn_put32(wqe + 36, lkey + 1);
	refused(SN_SYND_LOC_PROT, &a.qp.stats.local_prot_errors);
}

Test(eth_send_bad, key_of_another_pd)
{
	a.qp.pdn = 8;
	begin_send();
	data(mem, 60);
	refused(SN_SYND_LOC_PROT, &a.qp.stats.local_prot_errors);
}

Test(eth_send_bad, beyond_the_region)
{
	begin_send();
	data(mem + MEM_SIZE - 60, 61);
	refused(SN_SYND_LOC_PROT, &a.qp.stats.local_prot_errors);
}

Test(eth_send_bad, second_segment_beyond_the_region)
{
	begin_send();
	data(mem, 60);
	data(mem - 1, 60);
	refused(SN_SYND_LOC_PROT, &a.qp.stats.local_prot_errors);
}

/* A count of 0 means 2 GiB. */
Test(eth_send_bad, count_0)
{
	begin_send();
	data(mem, 0);
	refused(SN_SYND_LOC_PROT, &a.qp.stats.local_prot_errors);
}

Test(eth_send_bad, unmapped_memory)
{
	void *hole = (void *)0x10000;

	lkey = fake_mr(hole, 4096, 0);
	begin_send();
	data(hole, 60);
	refused(SN_SYND_LOC_PROT, NULL);
	cr_assert_eq(nframes, 0);
}

Test(eth_send_bad, unreadable_ring)
{
	a.qp.sq_buf = 0x10000;
	begin_send();
	data(mem, 60);
	post();
	expect_refused(0, SN_OP_NOP, SN_SYND_LOC_PROT);
}

/* ---- lengths ---- */

Test(eth_send_bad, shorter_than_an_ethernet_header)
{
	begin_send();
	data(mem, 13);
	refused(SN_SYND_LOC_LEN, &eth.stats.too_long);
}

Test(eth_send_bad, no_data_at_all)
{
	begin_send();
	refused(SN_SYND_LOC_LEN, &eth.stats.too_long);
}

/* The MTU is 1500. */
Test(eth_send_bad, longer_than_the_mtu)
{
	memset(mem, 0x33, 20);
	begin_send();
	data(mem, 1515);
	refused(SN_SYND_LOC_LEN, &eth.stats.too_long);
}

static void make_tags(unsigned n)
{
	memset(mem, 0x33, 22);
	for (unsigned i = 0; i < n; i++)
		memcpy(mem + 12 + 4 * i, "\x81\x00\x00\x07", 4);
}

Test(eth_send_bad, the_mtu_does_not_count_vlan_tags)
{
	for (unsigned tags = 0; tags <= 2; tags++) {
		make_tags(tags);
		post_send(0, mem, 1514 + 4 * tags);
		cr_assert_eq(nsent, tags + 1);
	}
	begin_send();
	sn_put32(wqe + 28, 0x80000007);
	make_tags(2);
	data(mem, 1522);
	post();
	cr_assert_eq(nsent, 4);
	cr_assert_eq(sent[3]->len, 1526);
}

Test(eth_send_bad, one_tag_allows_4_bytes_more)
{
	make_tags(1);
	begin_send();
	data(mem, 1519);
	refused(SN_SYND_LOC_LEN, &eth.stats.too_long);
}

Test(eth_send_bad, three_tags_allow_as_much_as_two)
{
	make_tags(2);
	memcpy(mem + 20, "\x81\x00\x00\x07\x33\x33", 6);
	begin_send();
	data(mem, 1526);
	refused(SN_SYND_LOC_LEN, &eth.stats.too_long);
}

Test(eth_send_bad, the_largest_frame)
{
	sn_dev->cfg.eth_mtu = SN_ETH_MTU_MAX;
	make_tags(2);
	post_send(0, mem, SN_ETH_FRAME_MAX);
	expect_frame(0, mem, SN_ETH_FRAME_MAX);
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	sn_put32(wqe + 28, 0x80000007);
	data(mem, SN_ETH_FRAME_MAX);
	post();
	cr_assert_eq(nsent, 2);
	cr_assert_eq(sent[1]->len, SN_ETH_FRAME_MAX + 4);
	begin_send();
	data(mem, SN_ETH_FRAME_MAX + 1);
	post();
	expect_cqe(0, SN_OP_SEND, 0);
	expect_cqe(1, SN_OP_SEND, 0);
	expect_cqe(2, SN_OP_SEND, SN_SYND_LOC_LEN);
}

/* ---- inline headers that the SQ requires ---- */

/* Sends a frame of make_headers() with `inl` bytes inline. Returns true if it was sent. */
static bool sends_inline(uint8_t mode, uint32_t inl, unsigned ip, unsigned tags, bool not_ip)
{
	uint8_t frame[200];
	uint32_t head = make_headers(frame, ip, 6, tags, 60);
	unsigned before = nsent;

	if (not_ip)
		frame[12 + 4 * tags] = 0x99;
	eth.min_inline = mode;
	memcpy(mem, frame, head + 60);
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, frame, inl);
	data(mem + inl, head + 60 - inl);
	post();
	if (a.qp.state == SN_QPS_ERR) {
		fake_modify(&a, SN_QPS_RST);
		a.pi = a.dbr[1] = 0;
		fake_modify(&a, SN_QPS_RTS);
	}
	return nsent > before;
}

Test(eth_send_bad, required_inline_headers)
{
	static const struct {
		uint8_t mode;
		uint32_t need; /* of IPv4 without tag */
	} at[] = { { 1, 14 }, { 2, 34 }, { 3, 54 } };

	cr_expect(sends_inline(0, 0, 4, 0, false));
	for (unsigned i = 0; i < 3; i++) {
		cr_expect(sends_inline(at[i].mode, at[i].need, 4, 0, false));
		cr_expect_not(sends_inline(at[i].mode, at[i].need - 1, 4, 0, false));
		cr_expect_not(sends_inline(at[i].mode, at[i].need, 4, 1, false));
		cr_expect(sends_inline(at[i].mode, at[i].need + 4, 4, 1, false));
		cr_expect_eq(sends_inline(at[i].mode, at[i].need, 6, 0, false), i == 0);
		cr_expect(sends_inline(at[i].mode, 14, 4, 0, true));
		cr_expect_not(sends_inline(at[i].mode, 13, 4, 0, true));
	}
}

/* A packet of a multi-packet WQE satisfies the requirement only if it is inline. */
Test(eth_send_bad, required_inline_headers_of_multi_packet_wqes)
{
	eth.min_inline = 1;
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	inline_data(mem, 60);
	post();
	cr_assert_eq(nsent, 1);
	begin(SN_OP_EMPW, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	inline_data(mem, 60);
	data(mem, 60);
	post();
	cr_assert_eq(nsent, 1);
	cr_assert_eq(a.qp.state, SN_QPS_ERR);
}

/* ---- rules for sent frames ---- */

static struct sn_rule rules[3];
static struct sn_flow_count counts[2];
static struct sn_flow_counter counter = { .n = 2, .count = counts };

/* A rule for frames to MAC address 02:00:7f:01:02:LAST. */
static void add_rule(unsigned i, uint64_t order, uint8_t last, bool drop)
{
	struct sn_rule *r = &rules[i];

	r->order = order;
	r->egress = true;
	r->drop = drop;
	r->counter = &counter;
	r->counter_index = 1;
	memset(r->mask + 8, 0xff, 6);
	memcpy(r->match + 8, "\x02\x00\x7f\x01\x02", 5);
	r->match[13] = last;
	sn_flow_insert(sn_dev, r);
}

static void post_to(uint8_t last)
{
	uint32_t head = make_headers(mem, 4, 17, 0, 60);

	mem[5] = last;
	post_send(0, mem, head + 60);
}

Test(eth_send_bad, an_egress_rule_drops_and_counts)
{
	add_rule(0, 5, 3, true);
	post_to(3);
	cr_assert_eq(nsent, 0);
	cr_assert_eq(nframes, 0);
	expect_cqe(0, SN_OP_SEND, 0);
	cr_assert_eq(sn_dev->stats.eth_egress_dropped, 1);
	cr_assert_eq(counts[1].packets, 1);
	cr_assert_eq(counts[1].bytes, 102);
	cr_assert_eq(rules[0].packets, 1);
	post_to(4);
	cr_assert_eq(nsent, 1);
	cr_assert_eq(counts[1].packets, 1);
}

Test(eth_send_bad, the_first_egress_rule_decides)
{
	add_rule(0, 5, 3, true);
	add_rule(1, 4, 3, false);
	post_to(3);
	cr_assert_eq(nsent, 1);
	cr_assert_eq(rules[1].packets, 1);
	cr_assert_eq(rules[0].packets, 0);
	cr_assert_eq(sn_dev->stats.eth_egress_dropped, 0);
}

Test(eth_send_bad, equal_egress_rules_all_count)
{
	add_rule(0, 5, 3, false);
	add_rule(1, 5, 3, true);
	add_rule(2, 5, 4, false);
	post_to(3);
	cr_assert_eq(nsent, 0);
	cr_assert_eq(rules[0].packets, 1);
	cr_assert_eq(rules[1].packets, 1);
	cr_assert_eq(rules[2].packets, 0);
}

/* Rules for received frames do not apply. */
Test(eth_send_bad, an_ingress_rule_drops_nothing)
{
	add_rule(0, 5, 3, true);
	rules[0].egress = false;
	post_to(3);
	cr_assert_eq(nsent, 1);
	cr_assert_eq(rules[0].packets, 0);
}
