/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ethernet send queues: SEND with and without inline header, gather lists, checksums, VLAN
 * insertion, completions, the limits of one pass, and a receiver that is full.
 */
#include <errno.h>

#include "eth_sq_rig.h"

TestSuite(eth_send, .init = sq_rig, .fini = sq_fini, .timeout = 60);

Test(eth_send, sends_a_frame_from_memory)
{
	post_send(0, mem, 1000);
	expect_frame(0, mem, 1000);
	expect_cqe(0, SN_OP_SEND, 0);
	cr_expect_eq(eth.stats.frames, 1);
	cr_expect_eq(eth.stats.frame_bytes, 1000);
	cr_expect_eq(a.qp.stats.wqes, 1);
}

/* Inline headers of each length: 2 bytes are in the segment, and the rest is rounded up. */
Test(eth_send, inline_header_precedes_the_data)
{
	static const uint16_t lengths[] = { 1, 2, 3, 18, 19, 34, 35, 60 };
	unsigned i, n = sizeof(lengths) / sizeof(lengths[0]), at = 0;
	uint8_t frame[200];

	for (i = 0; i < n; i++) {
		begin(SN_OP_SEND, CE_ALWAYS);
		eseg(0, 0, mem + 5000, lengths[i]);
		data(mem, 100);
		post();
		memcpy(frame, mem + 5000, lengths[i]);
		memcpy(frame + lengths[i], mem, 100);
		expect_frame(i, frame, 100 + lengths[i]);
		expect_cqe(at, SN_OP_SEND, 0);
		at = a.pi;
	}
}

Test(eth_send, frame_may_be_inline_altogether)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, mem, 60);
	post();
	expect_frame(0, mem, 60);
}

Test(eth_send, gathers_pieces_and_inline_segments)
{
	uint8_t frame[300];

	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, mem, 18);
	data(mem + 1000, 33);
	inline_data(mem + 2000, 5);
	data(mem + 3000, 1);
	inline_data(mem + 4000, 29);
	data(mem + 5000, 77);
	post();
	memcpy(frame, mem, 18);
	memcpy(frame + 18, mem + 1000, 33);
	memcpy(frame + 51, mem + 2000, 5);
	memcpy(frame + 56, mem + 3000, 1);
	memcpy(frame + 57, mem + 4000, 29);
	memcpy(frame + 86, mem + 5000, 77);
	expect_frame(0, frame, 163);
	expect_cqe(0, SN_OP_SEND, 0);
}

/* ---- checksums ---- */

static void check_csum(unsigned ip, uint8_t proto, unsigned tags, uint32_t payload, uint8_t flags)
{
	uint8_t frame[2000];
	uint32_t head = make_headers(frame, ip, proto, tags, payload);

	memcpy(frame + head, mem + 77, payload);
	memcpy(mem + 8192, frame, head + payload);
	post_send(flags, mem + 8192, head + payload);
	set_csums(frame, head + payload, tags, flags);
	expect_frame(nsent - 1, frame, head + payload);
}

Test(eth_send, inserts_the_selected_checksums)
{
	static const uint8_t flags[] = { 0, L3, L4, L3 | L4 };

	for (unsigned f = 0; f < 4; f++)
		for (unsigned ip = 4; ip <= 6; ip += 2)
			for (unsigned tags = 0; tags <= 2; tags++) {
				check_csum(ip, 6, tags, 100, flags[f]);
				check_csum(ip, 17, tags, 101, flags[f]);
			}
}

/* A computed UDP checksum of 0 is sent as 0xffff. */
Test(eth_send, udp_checksum_is_never_0)
{
	uint32_t head = make_headers(mem, 4, 17, 0, 2), at;
	uint8_t frame[64];
	uint16_t sum;

	memset(mem + head, 0, 2);
	memcpy(frame, mem, head + 2);
	set_csums(frame, head + 2, 0, L4);
	at = head - 2;
	sum = frame[at] << 8 | frame[at + 1];
	/* this payload completes the sum to 0xffff */
	mem[head] = sum >> 8;
	mem[head + 1] = sum;
	post_send(L4, mem, head + 2);
	cr_assert_eq(sent[0]->data[at], 0xff);
	cr_assert_eq(sent[0]->data[at + 1], 0xff);
}

Test(eth_send, fragments_and_unknown_protocols_get_no_l4_checksum)
{
	uint8_t frame[200];
	uint32_t head = make_headers(frame, 4, 17, 0, 50);

	memset(frame + head, 9, 50);
	frame[20] = 0x20; /* more fragments */
	memcpy(mem, frame, head + 50);
	post_send(L3 | L4, mem, head + 50);
	set_csums(frame, head + 50, 0, L3);
	expect_frame(0, frame, head + 50);
	frame[20] = 0;
	frame[23] = 47;
	memcpy(mem, frame, head + 50);
	post_send(L3 | L4, mem, head + 50);
	set_csums(frame, head + 50, 0, L3);
	expect_frame(1, frame, head + 50);
	memcpy(mem, frame, 12);
	memset(mem + 12, 0x99, 60);
	post_send(L3 | L4, mem, 60);
	expect_frame(2, mem, 60);
}

/* A UDP length that contradicts the IP header prevents the UDP checksum only. */
Test(eth_send, malformed_headers_keep_their_checksums)
{
	uint8_t frame[200];
	uint32_t head = make_headers(frame, 4, 17, 0, 50);

	memset(frame + head, 9, 50);
	frame[39] = 200;
	memcpy(mem, frame, head + 50);
	post_send(L3 | L4, mem, head + 50);
	set_csums(frame, head + 50, 0, L3);
	expect_frame(0, frame, head + 50);
	frame[14] = 0x4f;
	frame[17] = 40; /* total length less than the header */
	memcpy(mem, frame, head + 50);
	post_send(L3 | L4, mem, head + 50);
	expect_frame(1, frame, head + 50);
}

/* The checksum covers the UDP length, and not bytes that follow the datagram in the packet. */
Test(eth_send, udp_checksum_ends_with_the_datagram)
{
	uint8_t frame[200];
	uint32_t head = make_headers(frame, 4, 17, 0, 40);
	uint16_t sum;

	memset(frame + head, 9, 50);
	frame[17] += 10;
	memcpy(mem, frame, head + 50);
	post_send(L4, mem, head + 50);
	sum = ref_csum(ref_csum(0, sent[0]->data + 26, 8) + 17 + 48, sent[0]->data + 34, 48);
	cr_assert_eq(sum, 0xffff);
}

/* ---- VLAN ---- */

static void post_vlan(uint16_t type, uint16_t tci, uint8_t flags, const void *p, uint32_t len)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(flags, 0, NULL, 0);
	sn_put32(wqe + 28, (uint32_t)type << 16 | tci);
	data(p, len);
	post();
}

Test(eth_send, inserts_a_vlan_tag)
{
	uint8_t frame[300], tagged[304];
	uint32_t head = make_headers(frame, 4, 6, 0, 100);

	memcpy(frame + head, mem + 1, 100);
	memcpy(mem, frame, head + 100);
	post_vlan(0x8000, 0xa123, L3 | L4, mem, head + 100);
	set_csums(frame, head + 100, 0, L3 | L4);
	memcpy(tagged, frame, 12);
	memcpy(tagged + 12, "\x81\x00\xa1\x23", 4);
	memcpy(tagged + 16, frame + 12, head + 88);
	expect_frame(0, tagged, head + 104);
	post_vlan(0x8001, 7, L3 | L4, mem, head + 100);
	memcpy(tagged + 12, "\x88\xa8\x00\x07", 4);
	expect_frame(1, tagged, head + 104);
}

/* ---- completions ---- */

Test(eth_send, completion_bits_select_the_cqes)
{
	begin(SN_OP_SEND, CE_ERROR);
	eseg(0, 0, NULL, 0);
	data(mem, 60);
	post();
	begin(SN_OP_SEND, CE_FIRST);
	eseg(0, 0, mem, 40);
	data(mem, 60);
	post();
	begin(SN_OP_NOP, CE_FIRST);
	post();
	expect_none();
	begin(SN_OP_SEND, 0x0c);
	eseg(0, 0, NULL, 0);
	data(mem, 60);
	post();
	expect_cqe(4, SN_OP_SEND, 0);
	begin(SN_OP_NOP, CE_ALWAYS);
	post();
	expect_cqe(5, SN_OP_NOP, 0);
	cr_expect_eq(nsent, 3);
}

Test(eth_send, works_over_many_laps_of_the_ring)
{
	for (unsigned i = 0; i < 5 * FAKE_DEPTH; i++) {
		uint32_t at = a.pi;

		begin(SN_OP_SEND, CE_ALWAYS);
		eseg(0, 0, mem + i, 18 + i % 3 * 40);
		data(mem + i + 18 + i % 3 * 40, 100);
		post();
		expect_frame(i, mem + i, 118 + i % 3 * 40);
		expect_cqe(at & 0xffff, SN_OP_SEND, 0);
	}
}

Test(eth_send, a_reset_empties_the_queue)
{
	accept_max = 0;
	post_send(0, mem, 100);
	cr_assert_eq(nframes, 1);
	fake_modify(&a, SN_QPS_RST);
	cr_assert_eq(nframes, 0);
	cr_assert_null(eth.tx);
	accept_max = SENT_MAX;
	a.pi = a.dbr[0] = a.dbr[1] = 0;
	fake_modify(&a, SN_QPS_RTS);
	pass(3);
	expect_none();
	cr_assert_eq(nsent, 0);
	post_send(0, mem + 1, 100);
	expect_frame(0, mem + 1, 100);
	expect_cqe(0, SN_OP_SEND, 0);
}

/* ---- service ---- */

/* Four WQEs of 61 frames and 16 bytes each exceed what one pass sends. */
Test(eth_send, a_pass_sends_a_limited_number_of_frames)
{
	for (unsigned k = 0; k < 4; k++) {
		begin(SN_OP_EMPW, CE_ALWAYS);
		eseg(0, 0, NULL, 0);
		for (unsigned i = 0; i < 61; i++)
			data(mem + 64 * i, 60);
		write_wqe();
	}
	cr_assert_eq(a.pi, FAKE_DEPTH);
	fake_ring(&a);
	pass(1);
	cr_assert_eq(nsent, 64);
	expect_cqe(0, SN_OP_EMPW, 0);
	expect_none();
	pass(1);
	cr_assert_eq(nsent, 128);
	pass(2);
	cr_assert_eq(nsent, 244);
	for (unsigned k = 1; k < 4; k++)
		expect_cqe(16 * k, SN_OP_EMPW, 0);
}

/* The SQ keeps the frame that a full receiver refused, and neither loses nor repeats it. */
Test(eth_send, keeps_a_frame_that_must_wait)
{
	accept_max = 1;
	for (unsigned i = 0; i < 3; i++)
		post_send(0, mem + 100 * i, 100 + i);
	pass(5);
	cr_assert_eq(nsent, 1);
	cr_assert_eq(nframes, 2);
	expect_cqe(0, SN_OP_SEND, 0);
	expect_none();
	cr_expect_eq(eth.stats.frames, 1);
	mem[100] ^= 1; /* the frame was read already */
	accept_max = SENT_MAX;
	pass(1);
	mem[100] ^= 1;
	expect_frame(1, mem + 100, 101);
	expect_frame(2, mem + 200, 102);
	expect_cqe(1, SN_OP_SEND, 0);
	expect_cqe(2, SN_OP_SEND, 0);
}

/* With --eth-pause, the process of the only receiver has ended. */
Test(eth_send, gone_receiver_is_an_error)
{
	wire_error = -EHOSTDOWN;
	post_send(0, mem, 100);
	post_send(0, mem, 100);
	pass(1);
	expect_refused(0, SN_OP_SEND, SN_SYND_RETRY);
	expect_cqe(1, SN_OP_SEND, SN_SYND_FLUSH);
	cr_assert_eq(nframes, 0);
	cr_assert_eq(sn_dev->stats.local_prot_errors, 0);
	wire_error = 0;
}

Test(eth_send, waits_for_memory)
{
	no_frames = true;
	post_send(0, mem, 100);
	pass(2);
	expect_none();
	no_frames = false;
	pass(1);
	expect_frame(0, mem, 100);
	expect_cqe(0, SN_OP_SEND, 0);
}

/* The DBREC alone starts the service, as after a lost doorbell. */
Test(eth_send, a_dbrec_without_a_doorbell_is_found)
{
	begin(SN_OP_SEND, CE_ALWAYS);
	eseg(0, 0, NULL, 0);
	data(mem, 60);
	write_wqe();
	__atomic_store_n(&a.dbr[1], htobe32(a.pi & 0xffff), __ATOMIC_RELEASE);
	for (unsigned i = 0; i < 5 && !nsent; i++, clock_ns += 1000000)
		pass(1);
	expect_frame(0, mem, 60);
}
