/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's responder against valid and invalid requests from a peer whose
 * packets the test builds by hand. InfiniBand specification: 9.6 (packets to drop),
 * 9.7.5 and 9.9.3 (which response to send).
 */
#include "wire_rig.h"

static void rc(void)
{
	wire_rig(SN_QPT_RC, 0);
}

TestSuite(softnic_responder, .init = rc, .fini = wire_over, .timeout = 60);

static void send_read(uint32_t psn, uint32_t off, uint32_t len)
{
	send_write(0x0c, psn, off, len, 0, 0);
}

static void send_fetch_add(uint32_t psn, uint32_t off, uint64_t add)
{
	uint8_t b[28];

	reth(b, off, 0, 0, 0);
	sn_put64(b + 12, add);
	sn_put64(b + 20, 0);
	peer_send(&peer, 0x14, QPN, psn, b, sizeof(b));
}

/* ---- sequence ---- */

Test(softnic_responder, psn_gap_is_nacked_once)
{
	send_write(0x0a, P0 + 1, 0, 8, 8, 1);
	peer_expect_ack(&peer, P0, SEQ);
	send_write(0x0a, P0 + 2, 0, 8, 8, 2);
	peer_expect_nothing(&peer);
	send_write(0x0a, P0, 0, 8, 8, 3);
	peer_expect_ack(&peer, P0, ACKED);
	send_write(0x0a, P0 + 2, 0, 8, 8, 4);
	peer_expect_ack(&peer, P0 + 1, SEQ);
	cr_assert_eq(mem[0], 3, "an out-of-sequence request was executed");
	cr_assert_eq(wire_state(), SN_QPS_RTS);
}

Test(softnic_responder, repeated_write_is_acknowledged_not_executed)
{
	send_write(0x0a, P0, 0, 8, 8, 1);
	peer_expect_ack(&peer, P0, ACKED);
	send_write(0x0a, P0 + 1, 64, 8, 8, 1);
	peer_expect_ack(&peer, P0 + 1, ACKED);
	send_write(0x0a, P0, 0, 8, 8, 2);
	peer_expect_ack(&peer, P0 + 1, ACKED);
	cr_assert_eq(mem[0], 1);
	/*
	 * The 2^23 PSNs before the expected one count as repetitions. An older PSN counts
	 * as a future one.
	 */
	send_write(0x0a, P0 + 2 - (1 << 23), 0, 8, 8, 2);
	peer_expect_ack(&peer, P0 + 1, ACKED);
	send_write(0x0a, P0 + 1 - (1 << 23), 0, 8, 8, 2);
	peer_expect_ack(&peer, P0 + 2, SEQ);
	cr_assert_eq(mem[0], 1);
}

Test(softnic_responder, repeated_atomic_returns_its_first_result)
{
	struct wire_packet k;
	uint64_t word = 100;

	memcpy(mem, &word, 8);
	for (unsigned i = 0; i < 3; i++) {
		send_fetch_add(P0 + i, 0, 1);
		k = peer_expect(&peer, 0x12, P0 + i);
		cr_assert_eq(sn_get64(k.p + 4), 100 + i);
	}
	for (unsigned i = 0; i < 3; i++) {
		send_fetch_add(P0 + i, 0, 1);
		k = peer_expect(&peer, 0x12, P0 + i);
		cr_assert_eq(sn_get64(k.p + 4), 100 + i,
			     "a repetition must return the first result");
	}
	memcpy(&word, mem, 8);
	cr_assert_eq(word, 103);
	for (unsigned i = 3; i < 5; i++) {
		send_fetch_add(P0 + i, 0, 1);
		peer_expect(&peer, 0x12, P0 + i);
	}
	/* Of five atomics, four results are kept (max_dest_rd_atomic), so the first is lost. */
	send_fetch_add(P0, 0, 1);
	peer_expect_nothing(&peer);
	send_fetch_add(P0 + 1, 0, 1);
	peer_expect(&peer, 0x12, P0 + 1);
	memcpy(&word, mem, 8);
	cr_assert_eq(word, 105);
}

static void expect_read(uint32_t psn, uint32_t off, uint32_t len)
{
	uint32_t n = (len + MTU - 1) / MTU, i, head, part;
	struct wire_packet k;

	for (i = 0; i < n; i++) {
		head = i == 0 || i + 1 == n ? 4 : 0;
		part = len - i * MTU < MTU ? len - i * MTU : MTU;
		k = peer_expect(&peer,
				n == 1	     ? 0x10
				: i == 0     ? 0x0d
				: i + 1 == n ? 0x0f
					     : 0x0e,
				psn + i);
		cr_assert_eq(k.len, head + part);
		cr_assert_arr_eq(k.p + head, mem + off + i * MTU, part);
	}
}

Test(softnic_responder, repeated_read_is_answered_in_part_or_whole)
{
	send_read(P0, 100, 3 * MTU + 5);
	expect_read(P0, 100, 3 * MTU + 5);
	send_read(P0, 100, 3 * MTU + 5);
	expect_read(P0, 100, 3 * MTU + 5);
	send_read(P0 + 2, 100 + 2 * MTU, MTU + 5);
	expect_read(P0 + 2, 100 + 2 * MTU, MTU + 5);
	send_read(P0 + 1, 100 + MTU, MTU);
	expect_read(P0 + 1, 100 + MTU, MTU);
	cr_assert_eq(COUNT(dup_requests), 3);
	/* Not valid repetitions: another address, more bytes than requested first, an atomic. */
	send_read(P0 + 2, 100, MTU + 5);
	send_read(P0 + 2, 100 + 2 * MTU, MTU + 6);
	send_fetch_add(P0 + 1, 0, 1);
	peer_expect_nothing(&peer);
	send_read(P0 + 4, 0, 0);
	peer_expect(&peer, 0x10, P0 + 4);
	send_read(P0 + 4, 0, 0);
	peer_expect(&peer, 0x10, P0 + 4);
	pthread_mutex_lock(&sn_dev->lock); /* so that both arrive before the response */
	send_read(P0 + 3, 100 + 3 * MTU, 5);
	send_read(P0 + 3, 100 + 3 * MTU, 5);
	pthread_mutex_unlock(&sn_dev->lock);
	expect_read(P0 + 3, 100 + 3 * MTU, 5);
	peer_expect_nothing(&peer);
	cr_assert_eq(wire_state(), SN_QPS_RTS);
}

Test(softnic_responder, reads_beyond_max_dest_rd_atomic_are_invalid)
{
	unsigned i;

	pthread_mutex_lock(&sn_dev->lock); /* so that all five arrive together */
	for (i = 0; i < 5; i++)
		send_read(P0 + i, 0, MTU);
	pthread_mutex_unlock(&sn_dev->lock);
	for (i = 0; i < 4; i++)
		expect_read(P0 + i, 0, MTU);
	peer_expect_ack(&peer, P0 + 4, INV);
	cr_assert_eq(wire_state(), SN_QPS_ERR);
}

/* Passes a packet to the engine as if it came from the wire. The caller holds the lock. */
static void feed(uint8_t opcode, uint32_t psn, const uint8_t *bytes, uint32_t len)
{
	struct sn_pkt k = { .no_icrc = true,
			    .src = a.qp.way.ip,
			    .dst = sn_dev->cfg.ip,
			    .len = 12 + len };

	sn_put32(k.data, (uint32_t)opcode << 24 | 0xffff);
	sn_put32(k.data + 4, QPN);
	sn_put32(k.data + 8, psn & 0xffffff);
	memcpy(k.data + 12, bytes, len);
	sn_wire_receive(sn_dev->eng, &k);
}

Test(softnic_responder, pending_responses_precede_a_nak)
{
	uint8_t b[16];

	reth(b, 0, 40 * MTU, 0, 0); /* more packets than one pass sends */
	pthread_mutex_lock(&sn_dev->lock);
	feed(0x0c, P0, b, 16);
	feed(0x15, P0 + 40, b, 16);
	cr_assert_eq(a.qp.state, SN_QPS_ERR);
	pthread_mutex_unlock(&sn_dev->lock);
	expect_read(P0, 0, 40 * MTU);
	peer_expect_ack(&peer, P0 + 40, INV);
}

Test(softnic_responder, region_deregistered_before_the_response)
{
	uint8_t b[16];

	reth(b, 0, 40 * MTU, 0, 0);
	pthread_mutex_lock(&sn_dev->lock);
	feed(0x0c, P0, b, 16);
	sn_find_mr(sn_dev, key)->lkey = 0;
	pthread_mutex_unlock(&sn_dev->lock);
	peer_expect_ack(&peer, P0, ACCESS);
	peer_expect_nothing(&peer);
	cr_assert_eq(wire_state(), SN_QPS_ERR);
}

/* ---- receives ---- */

Test(softnic_responder, missing_receive_causes_one_rnr_nak)
{
	uint8_t cqe[64];

	send_bytes(0x04, P0, 10, 7);
	peer_expect_ack(&peer, P0, 0x20 | 1);
	send_bytes(0x04, P0 + 1, 10, 8);
	peer_expect_nothing(&peer);
	fake_recv(&a, mem, 64, key);
	send_bytes(0x04, P0, 10, 9);
	peer_expect_ack(&peer, P0, ACKED);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(sn_get32(cqe + 44), 10);
	cr_assert_eq(mem[9], 9);
	send_bytes(0x04, P0, 10, 10); /* a repetition must not consume another receive */
	peer_expect_ack(&peer, P0, ACKED);
	cr_assert_not(fake_poll(&a, true, cqe, PEER_QUIET_MS));
	cr_assert_eq(mem[9], 9);
}

Test(softnic_responder, write_with_immediate_needs_a_receive)
{
	uint8_t b[20 + 8], cqe[64];

	reth(b, 0, 8, 0, 0);
	sn_put32(b + 16, 0x1234);
	memset(b + 20, 5, 8);
	peer_send(&peer, 0x0b, QPN, P0, b, sizeof(b));
	peer_expect_ack(&peer, P0, 0x21);
	fake_recv(&a, NULL, 0, 0x100);
	peer_send(&peer, 0x0b, QPN, P0, b, sizeof(b));
	peer_expect_ack(&peer, P0, ACKED);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 1);
	cr_assert_eq(sn_get32(cqe + 36), 0x1234);
	cr_assert_eq(mem[7], 5);
}

/* The lengths of the three scatter entries add up to more than 2^32; a message must fit. */
Test(softnic_responder, receive_of_more_than_4_gib)
{
	uint8_t cqe[64], *wqe = a.rq;

	fake_recv(&a, mem, 0x55555556, key);
	memcpy(wqe + 16, wqe, 16);
	memcpy(wqe + 32, wqe, 16);
	send_bytes(0x04, P0, 10, 9);
	peer_expect_ack(&peer, P0, ACKED);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 2);
	cr_assert_eq(mem[9], 9);
}

/* Only the key 0x100 ends the list. */
Test(softnic_responder, receive_entry_with_a_count_of_0_has_2_gib)
{
	uint8_t cqe[64];

	fake_recv(&a, mem, 0, key);
	send_bytes(0x04, P0, 10, 9);
	peer_expect_ack(&peer, P0, ACKED);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 2);
	cr_assert_eq(mem[9], 9);
	fake_recv(&a, mem, 0, 0x100);
	send_bytes(0x04, P0 + 1, 1, 9);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 14);
	cr_assert_eq(cqe[55], SN_SYND_LOC_LEN);
}

/*
 * A message of three packets into a receive that is too short: this receive
 * completes in error, and the next one is flushed.
 */
Test(softnic_responder, receive_too_short)
{
	uint8_t cqe[64];

	fake_recv(&a, mem, 2 * MTU + 9, key);
	fake_recv(&a, mem, 64, key);
	send_bytes(0x00, P0, MTU, 1);
	send_bytes(0x01, P0 + 1, MTU, 2);
	send_bytes(0x02, P0 + 2, 10, 3);
	for (unsigned i = 0; i < 3; i++) {
		struct wire_packet k;

		cr_assert(peer_recv(&peer, &k, 5000));
		if (k.p[0] != INV)
			continue;
		cr_assert_eq(k.psn, (P0 + 2) & 0xffffff);
		break;
	}
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 14);
	cr_assert_eq(cqe[55], SN_SYND_LOC_LEN);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[55], SN_SYND_FLUSH);
	cr_assert_eq(wire_state(), SN_QPS_ERR);
}

Test(softnic_responder, receives_of_a_qp_in_error_are_flushed)
{
	uint8_t cqe[64];

	fake_recv(&a, mem, 64, key);
	fake_modify(&a, SN_QPS_ERR);
	fake_recv(&a, mem, 64, key);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(fake_poll(&a, true, cqe, 5000), "no CQE for receive %u", i);
		cr_assert_eq(cqe[55], SN_SYND_FLUSH);
		cr_assert_eq(cqe[61], i);
	}
}

/* ---- invalid requests ---- */

static const struct wrong {
	const char *what;
	uint8_t opcode, syndrome;
	uint32_t off, dma,
		payload; /* offset and length in the RETH (dma NONE: no RETH); bytes of payload */
} wrong[] = {
#define NONE UINT32_MAX
	{ "SEND_MIDDLE without a first", 0x01, INV, 0, NONE, MTU },
	{ "SEND_LAST without a first", 0x02, INV, 0, NONE, 5 },
	{ "WRITE_MIDDLE without a first", 0x07, INV, 0, NONE, MTU },
	{ "WRITE_LAST without a first", 0x08, INV, 0, NONE, 5 },
	{ "SEND_FIRST that is not full", 0x00, INV, 0, NONE, MTU - 4 },
	{ "SEND_ONLY beyond the MTU", 0x04, INV, 0, NONE, MTU + 4 },
	{ "SEND_ONLY_IMM without its immediate", 0x05, INV, 0, NONE, 0 },
	{ "reserved opcode", 0x15, INV, 0, NONE, 4 },
	{ "SEND_LAST with invalidate", 0x16, INV, 0, NONE, 8 },
	{ "SEND_ONLY with invalidate", 0x17, INV, 0, NONE, 8 },
	{ "WRITE_ONLY without RETH", 0x0a, INV, 0, NONE, 12 },
	{ "WRITE_ONLY shorter than it says", 0x0a, INV, 0, 9, 8 },
	{ "WRITE_ONLY longer than it says", 0x0a, INV, 0, 7, 8 },
	{ "WRITE_FIRST that is all", 0x06, INV, 0, MTU, MTU },
	{ "WRITE beyond the longest message", 0x06, INV, 0, (1u << 30) + 1, MTU },
	{ "WRITE beyond its region", 0x06, ACCESS, SIZE - MTU, MTU + 1, MTU },
	{ "WRITE before its region", 0x0a, ACCESS, -8u, 8, 8 },
	{ "READ with a payload", 0x0c, INV, 0, 8, 4 },
	{ "READ beyond its region", 0x0c, ACCESS, SIZE - 8, 9, 0 },
	{ "READ beyond the longest message", 0x0c, INV, 0, 1u << 31, 0 },
	{ "atomic too short", 0x14, INV, 0, 0, 8 },
	{ "atomic not on a multiple of 8", 0x14, INV, 4, 0, 12 },
	{ "atomic beyond its region", 0x13, ACCESS, SIZE, 0, 12 },
};

static void send_invalid(const struct wrong *w, uint32_t psn)
{
	if (w->dma == NONE)
		send_bytes(w->opcode, psn, w->payload, 0xaa);
	else
		send_write(w->opcode, psn, w->off, w->dma, w->payload, 0xaa);
}

Test(softnic_responder, invalid_requests_get_the_right_syndrome)
{
	uint8_t *before = malloc(SIZE);

	memcpy(before, mem, SIZE);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct wire_packet k;

		send_invalid(&wrong[i], P0);
		cr_assert(peer_recv(&peer, &k, 5000), "%s: no response", wrong[i].what);
		cr_assert(k.opcode == 0x11 && k.psn == P0 && k.p[0] == wrong[i].syndrome,
			  "%s: wrong response: opcode 0x%02x psn 0x%x syndrome 0x%02x",
			  wrong[i].what, k.opcode, k.psn, k.p[0]);
		cr_assert_eq(wire_state(), SN_QPS_ERR, "%s: the QP must be in error",
			     wrong[i].what);
		cr_assert_arr_eq(mem, before, SIZE);
		wire_restart();
	}
	free(before);
}

Test(softnic_responder, operations_without_qp_rights_are_refused)
{
	for (unsigned i = 0; i < 3; i++) {
		wire_restart();
		pthread_mutex_lock(&sn_dev->lock);
		a.qp.remote_write = a.qp.remote_read = a.qp.remote_atomic = false;
		pthread_mutex_unlock(&sn_dev->lock);
		if (i == 0)
			send_write(0x0a, P0, 0, 8, 8, 1);
		else if (i == 1)
			send_read(P0, 0, 8);
		else
			send_fetch_add(P0, 0, 1);
		peer_expect_ack(&peer, P0, INV);
	}
}

/*
 * A message in progress is interrupted by a packet of another kind, or by the start
 * of another message.
 */
Test(softnic_responder, interrupted_message_is_invalid)
{
	static const uint8_t next[] = { 0x00, 0x01, 0x02, 0x04, 0x06, 0x0a, 0x0c, 0x14 };

	for (unsigned i = 0; i < sizeof(next); i++) {
		struct wrong w = { .opcode = next[i], .dma = next[i] < 6 ? NONE : 8, .payload = 8 };

		send_write(0x06, P0, 0, 3 * MTU, MTU, 1);
		peer_expect_ack(&peer, P0, ACKED);
		if (next[i] <= 1)
			w.payload = MTU;
		send_invalid(&w, P0 + 1);
		peer_expect_ack(&peer, P0 + 1, INV);
		wire_restart();
	}
}

Test(softnic_responder, empty_last_packet_is_invalid)
{
	send_write(0x06, P0, 0, MTU, MTU, 1);
	peer_expect_ack(&peer, P0, INV);
	wire_restart();
	fake_recv(&a, mem, 4 * MTU, key);
	send_bytes(0x00, P0, MTU, 1);
	peer_expect_ack(&peer, P0, ACKED);
	send_bytes(0x02, P0 + 1, 0, 1);
	peer_expect_ack(&peer, P0 + 1, INV);
}

Test(softnic_responder, empty_messages)
{
	uint8_t b[20], cqe[64];

	key ^= 1; /* the key of a WRITE or READ without data is not checked */
	send_write(0x0a, P0, 0, 0, 0, 0);
	peer_expect_ack(&peer, P0, ACKED);
	send_read(P0 + 1, 0, 0);
	cr_assert_eq(peer_expect(&peer, 0x10, P0 + 1).len, 4);
	fake_recv(&a, NULL, 0, 0x100);
	fake_recv(&a, NULL, 0, 0x100);
	send_bytes(0x04, P0 + 2, 0, 0);
	peer_expect_ack(&peer, P0 + 2, ACKED);
	reth(b, 0, 0, 0, 0);
	peer_send(&peer, 0x0b, QPN, P0 + 3, b, 20);
	peer_expect_ack(&peer, P0 + 3, ACKED);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(fake_poll(&a, true, cqe, 5000));
		cr_assert_eq(cqe[63] >> 4, i ? 1 : 2);
		cr_assert_eq(sn_get32(cqe + 44), 0);
	}
}

/* ---- packets to drop ---- */

Test(softnic_responder, invalid_packets_are_dropped)
{
	static const uint8_t others[] = { 0x24, 0x44, 0x64, 0xc4 };

	peer.pkey = 0x8001;
	send_write(0x0a, P0, 0, 8, 8, 1);
	peer.pkey = 0xffff;
	peer.version = 1;
	send_write(0x0a, P0, 0, 8, 8, 1);
	peer.version = 0;
	peer.bad_icrc = true;
	send_write(0x0a, P0, 0, 8, 8, 1);
	peer.bad_icrc = false;
	for (unsigned i = 0; i < sizeof(others); i++) /* UC, RD, UD and vendor-specific */
		send_bytes(others[i], P0, 16, 1);
	peer_expect_nothing(&peer);
	cr_assert_eq(COUNT(pkey_violations), 1);
	cr_assert_eq(COUNT(icrc_errors), 1);
	cr_assert_eq(COUNT(wire_malformed), 5);
	peer.pkey = 0x7fff; /* a limited member of the same partition */
	send_write(0x0a, P0, 0, 8, 8, 1);
	peer_expect_ack(&peer, P0, ACKED);
}

Test(softnic_responder, packets_of_another_sender_are_dropped)
{
	struct wire_peer thief;
	char ip_c[16];
	uint8_t b[24];
	uint32_t n;

	fake_ip(ip_c, 3);
	thief = peer_open(ip_c, ip_a);
	n = reth(b, 0, 8, 8, 1);
	peer_send(&thief, 0x0a, QPN, P0, b, n);
	peer_expect_nothing(&thief);
	peer_expect_nothing(&peer);
	cr_assert_neq(mem[0] | mem[1] << 8, 0x0101);
	close(thief.fd);
}
