/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * TCP segmentation of Ethernet send queues: the headers, lengths, flags and checksums of
 * each segment, the work of one pass, and WQEs that cannot be segmented.
 */
#include "eth_sq_rig.h"

#define FLAGS_AT 13 /* in the TCP header */

TestSuite(eth_send_tso, .init = sq_rig, .fini = sq_fini, .timeout = 60);

static uint8_t hdr[128];

static void post_tso(uint16_t mss, uint32_t len, uint32_t hdr_len, uint8_t flags)
{
	begin(SN_OP_TSO, CE_ALWAYS);
	eseg(flags, mss, hdr, hdr_len);
	data(mem, len / 3);
	data(mem + len / 3, len - len / 3);
	post();
}

/* Checks segment i of n: `len` bytes of payload from mem + off on. */
static void check_segment(unsigned i, unsigned n, uint32_t off, uint32_t len, unsigned ip,
			  unsigned tags, uint8_t flags)
{
	uint8_t frame[2048], *l3 = frame + 14 + 4 * tags, *tcp = l3 + (ip == 4 ? 20 : 40);
	uint32_t head = make_headers(frame, ip, 6, tags, len), seq = 0xffffff00 + off;
	uint16_t id = 0xfffe + i;

	tcp[FLAGS_AT] = 0x10 | (i ? 0 : 0x80) | (i + 1 == n ? 0x09 : 0);
	sn_put32(tcp + 4, seq);
	if (ip == 4) {
		l3[4] = id >> 8;
		l3[5] = id;
	}
	memcpy(frame + head, mem + off, len);
	set_csums(frame, head + len, tags, flags);
	expect_frame(i, frame, head + len);
}

static void check_tso(unsigned ip, unsigned tags, uint16_t mss, uint32_t len, uint8_t flags)
{
	uint32_t head = make_headers(hdr, ip, 6, tags, len), off;
	unsigned i, n = len ? (len + mss - 1) / mss : 1, at = a.pi;

	hdr[head - 20 + FLAGS_AT] = 0x99; /* CWR, ACK, PSH, FIN */
	post_tso(mss, len, head, flags);
	cr_assert_eq(nsent, n, "%u segments, expected %u", nsent, n);
	for (i = off = 0; i < n; i++, off += mss)
		check_segment(i, n, off, len - off < mss ? len - off : mss, ip, tags, flags);
	expect_cqe(at, SN_OP_TSO, 0);
	expect_none();
	while (nsent)
		__wrap_sn_frame_put(NULL, sent[--nsent]);
}

Test(eth_send_tso, segments_follow_each_other)
{
	for (unsigned ip = 4; ip <= 6; ip += 2)
		for (unsigned tags = 0; tags <= 2; tags++) {
			check_tso(ip, tags, 1000, 10500, L3 | L4);
			check_tso(ip, tags, 1000, 3000, L3 | L4);
			check_tso(ip, tags, 1440, 1440, L3 | L4);
			check_tso(ip, tags, 536, 100, L3 | L4);
		}
	cr_expect_eq(eth.stats.tso_wqes, 24);
}

Test(eth_send_tso, checksums_only_if_selected)
{
	check_tso(4, 0, 700, 2000, 0);
	check_tso(4, 0, 700, 2000, L3);
	check_tso(4, 0, 700, 2000, L4);
}

Test(eth_send_tso, without_payload_one_segment_is_sent)
{
	uint32_t head = make_headers(hdr, 4, 6, 0, 0);

	hdr[head - 20 + FLAGS_AT] = 0x99;
	begin(SN_OP_TSO, CE_ALWAYS);
	eseg(L3 | L4, 1000, hdr, head);
	post();
	cr_assert_eq(nsent, 1);
	check_segment(0, 1, 0, 0, 4, 0, L3 | L4);
	expect_cqe(0, SN_OP_TSO, 0);
}

/* IP and TCP options belong to the headers. */
Test(eth_send_tso, options_are_part_of_the_headers)
{
	uint32_t head = make_headers(hdr, 4, 6, 0, 0);

	memmove(hdr + 38, hdr + 34, head - 34);
	memset(hdr + 34, 1, 4); /* IP: four NOPs */
	hdr[14] = 0x46;
	memset(hdr + 58, 1, 12); /* TCP: twelve NOPs */
	hdr[38 + 12] = 0x80;
	post_tso(100, 250, 70, L3 | L4);
	cr_assert_eq(nsent, 3);
	for (unsigned i = 0; i < 3; i++) {
		uint8_t *p = sent[i]->data;
		uint32_t len = i == 2 ? 50 : 100;

		cr_assert_eq(sent[i]->len, 70 + len);
		cr_assert_eq((unsigned)p[16] << 8 | p[17], 56 + len);
		cr_assert_eq(sn_get32(p + 42), 0xffffff00 + 100 * i);
		cr_assert_eq(ref_csum(0, p + 14, 24), 0xffff);
		cr_assert_eq(ref_csum(ref_csum(0, p + 26, 8) + 6 + 32 + len, p + 38, 32 + len),
			     0xffff);
		cr_assert(!memcmp(p + 58, hdr + 58, 12));
		cr_assert(!memcmp(p + 70, mem + 100 * i, len));
	}
}

/* Segments begin and end within inline data. */
Test(eth_send_tso, payload_may_be_inline)
{
	uint32_t head = make_headers(hdr, 4, 6, 0, 0);

	hdr[head - 20 + FLAGS_AT] = 0x99;
	begin(SN_OP_TSO, CE_ALWAYS);
	eseg(L3 | L4, 40, hdr, head);
	inline_data(mem, 100);
	data(mem + 100, 15);
	inline_data(mem + 115, 85);
	post();
	cr_assert_eq(nsent, 5);
	for (unsigned i = 0; i < 5; i++)
		check_segment(i, 5, 40 * i, 40, 4, 0, L3 | L4);
}

Test(eth_send_tso, a_long_wqe_takes_several_passes)
{
	uint32_t head = make_headers(hdr, 4, 6, 0, 0);

	accept_max = 100;
	begin(SN_OP_TSO, CE_ALWAYS);
	eseg(L3 | L4, 1000, hdr, head);
	data(mem, 150000);
	post();
	cr_assert_eq(nsent, 64);
	pass(3);
	cr_assert_eq(nsent, 100);
	expect_none();
	accept_max = SENT_MAX;
	pass(1);
	cr_assert_eq(nsent, 150);
	expect_cqe(0, SN_OP_TSO, 0);
	for (unsigned i = 0; i < 150; i++) {
		cr_assert_eq(sn_get32(sent[i]->data + 38), 0xffffff00 + 1000 * i);
		cr_assert(!memcmp(sent[i]->data + head, mem + 1000 * i, 1000));
	}
}

Test(eth_send_tso, accepts_256_kib_and_no_more)
{
	uint32_t head = make_headers(hdr, 4, 6, 0, 0);

	post_tso(1460, 1 << 18, head, L3 | L4);
	pass(3);
	cr_assert_eq(nsent, 180);
	expect_cqe(0, SN_OP_TSO, 0);
	post_tso(1460, (1 << 18) + 1, head, L3 | L4);
	expect_cqe(2, SN_OP_TSO, SN_SYND_LOC_LEN);
	cr_assert_eq(nsent, 180);
}

/* ---- refused ---- */

static void refused(uint16_t mss, uint32_t head, uint8_t synd)
{
	post_tso(mss, 3000, head, L3 | L4);
	expect_refused(0, SN_OP_TSO, synd);
	cr_assert_eq(a.qp.stats.error_cqes, 1);
}

Test(eth_send_tso, refuses_segment_size_0)
{
	refused(0, make_headers(hdr, 4, 6, 0, 0), SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_segments_longer_than_the_mtu)
{
	refused(1461, make_headers(hdr, 4, 6, 0, 0), SN_SYND_LOC_LEN);
}

Test(eth_send_tso, refuses_udp)
{
	refused(1000, make_headers(hdr, 4, 17, 0, 0), SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_headers_that_are_not_ip)
{
	make_headers(hdr, 4, 6, 0, 0);
	hdr[12] = 0x99;
	refused(1000, 54, SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_headers_that_are_cut)
{
	refused(1000, make_headers(hdr, 4, 6, 0, 0) - 1, SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_headers_without_tcp)
{
	refused(1000, make_headers(hdr, 4, 6, 0, 0) - 20, SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_headers_with_payload)
{
	refused(1000, make_headers(hdr, 4, 6, 0, 0) + 1, SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_a_fragment)
{
	make_headers(hdr, 4, 6, 0, 0);
	hdr[20] = 0x20;
	refused(1000, 54, SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_the_wrong_ip_version)
{
	make_headers(hdr, 4, 6, 0, 0);
	hdr[14] = 0x65;
	refused(1000, 54, SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_a_short_tcp_header)
{
	make_headers(hdr, 4, 6, 0, 0);
	hdr[34 + 12] = 0x40;
	refused(1000, 50, SN_SYND_LOC_OP);
}

Test(eth_send_tso, refuses_a_wqe_without_inline_header)
{
	begin(SN_OP_TSO, CE_ALWAYS);
	eseg(0, 1000, NULL, 0);
	data(mem, 2000);
	post();
	expect_refused(0, SN_OP_TSO, SN_SYND_LOC_OP);
}
