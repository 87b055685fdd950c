/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's requester towards a responder whose packets the test builds by
 * hand: the packets of each work request, and the reaction to loss, NAKs and wrong
 * responses (InfiniBand specification, 9.7.5 to 9.7.7 and 9.9.2).
 */
#include "requester_rig.h"

TestSuite(softnic_requester, .fini = wire_over, .timeout = 60);

/* ---- packets of work requests ---- */

Test(softnic_requester, messages_are_segmented_at_the_mtu, .init = no_retransmission)
{
	for (unsigned code = 1; code <= 5; code++) {
		uint32_t mtu = 128u << code, len = 2 * mtu + 1;
		struct wire_packet k;

		wire_restart();
		a.qp.path_mtu = code;
		fake_modify(&a, SN_QPS_RTR);
		fake_modify(&a, SN_QPS_RTS);
		pthread_mutex_lock(&sn_dev->lock);
		a.qp.eng->req.win.size =
			SN_WINDOW_PKTS; /* with a small window, more packets request an ACK */
		pthread_mutex_unlock(&sn_dev->lock);
		post(SN_OP_WRITE, len);
		k = peer_expect(&peer, 0x06, P0);
		cr_assert_eq(k.len, 16 + mtu);
		cr_assert_eq(sn_get64(k.p), 0x1234567800ull);
		cr_assert_eq(sn_get32(k.p + 8), 0xabcd);
		cr_assert_eq(sn_get32(k.p + 12), len);
		cr_assert_arr_eq(k.p + 16, mem, mtu);
		k = peer_expect(&peer, 0x07, P0 + 1);
		cr_assert_eq(k.len, mtu);
		cr_assert_not(k.ackreq && (P0 + 1) % 16);
		k = peer_expect(&peer, 0x08, P0 + 2);
		cr_assert_eq(k.len, 1);
		cr_assert_eq(k.pad, 3);
		cr_assert(k.ackreq);
		cr_assert_eq(k.p[0], mem[2 * mtu]);
		ack(P0 + 2, ACKED);
	}
	expect_cqe(0, 0, 0);
}

Test(softnic_requester, packets_of_each_operation, .init = no_retransmission)
{
	struct fake_wqe w = wqe(SN_OP_WRITE_IMM, 3), f = wqe(SN_OP_FA, 8), c = wqe(SN_OP_CS, 8);
	struct wire_packet k;

	w.imm = htobe32(0x01020304);
	w.fm |= 2;
	fake_post(&a, &w);
	k = peer_expect(&peer, 0x0b, P0);
	cr_assert(k.solicited);
	cr_assert_eq(k.len, 16 + 4 + 3);
	cr_assert_eq(sn_get32(k.p + 16), 0x01020304);
	cr_assert_eq(k.pkey, 0xffff);
	cr_assert_eq(k.qpn, PEER_QPN);
	w.opcode = SN_OP_SEND_IMM;
	w.fm &= ~2;
	fake_post(&a, &w);
	k = peer_expect(&peer, 0x05, P0 + 1);
	cr_assert_not(k.solicited);
	cr_assert_eq(k.len, 4 + 3);
	post(SN_OP_SEND, 3);
	cr_assert_eq(peer_expect(&peer, 0x04, P0 + 2).len, 3);
	f.swap = 5;
	fake_post(&a, &f);
	k = peer_expect(&peer, 0x14, P0 + 3);
	cr_assert_eq(k.len, 28);
	cr_assert_eq(sn_get64(k.p + 12), 5);
	c.swap = 6, c.compare = 7;
	fake_post(&a, &c);
	k = peer_expect(&peer, 0x13, P0 + 4);
	cr_assert_eq(sn_get64(k.p + 12), 6);
	cr_assert_eq(sn_get64(k.p + 20), 7);
}

/* A message without data takes one packet and must complete. */
Test(softnic_requester, empty_messages, .init = no_retransmission)
{
	static const uint8_t ops[] = { SN_OP_SEND, SN_OP_SEND_IMM, SN_OP_WRITE, SN_OP_WRITE_IMM,
				       SN_OP_READ };
	static const uint8_t bth[] = { 0x04, 0x05, 0x0a, 0x0b, 0x0c };
	static const uint8_t len[] = { 0, 4, 16, 20, 16 };
	uint8_t aeth[4] = { ACKED };

	for (unsigned i = 0; i < sizeof(ops); i++) {
		struct fake_wqe w = wqe(ops[i], 0);

		w.nsge = 0;
		fake_post(&a, &w);
		cr_assert_eq(peer_expect(&peer, bth[i], P0 + i).len, len[i]);
	}
	ack(P0 + 3, ACKED);
	peer_send(&peer, 0x10, QPN, P0 + 4, aeth, 4);
	for (unsigned i = 0; i < sizeof(ops); i++)
		expect_cqe(i, 0, 0);
}

/* ---- acknowledgements and loss ---- */

Test(softnic_requester, one_ack_completes_several_wqes, .init = no_retransmission)
{
	for (unsigned i = 0; i < 4; i++)
		post(SN_OP_WRITE, 8);
	for (unsigned i = 0; i < 4; i++)
		peer_expect(&peer, 0x0a, P0 + i);
	ack(P0 + 7, ACKED); /* a PSN that was not sent */
	ack(P0 + 4, ACCESS);
	ack(P0 - 1, ACKED); /* the PSN before the first packet */
	expect_none();
	ack(P0 + 2, ACKED);
	for (unsigned i = 0; i < 3; i++)
		expect_cqe(i, 0, 0);
	expect_none();
	ack(P0 + 3, ACKED);
	expect_cqe(3, 0, 0);
}

Test(softnic_requester, sequence_nak_retransmits_once, .init = no_retransmission)
{
	for (unsigned i = 0; i < 4; i++)
		post(SN_OP_WRITE, 8);
	for (unsigned i = 0; i < 4; i++)
		peer_expect(&peer, 0x0a, P0 + i);
	ack(P0 + 1, 0x60);
	expect_cqe(0, 0, 0); /* the NAK acknowledges the packets before it */
	cr_assert(peer_expect(&peer, 0x0a, P0 + 1).ackreq);
	ack(P0 + 1, 0x60); /* repeated NAK */
	peer_expect_nothing(&peer);
	cr_assert_eq(COUNT(retransmits), 1);
	ack(P0 + 1, ACKED); /* the later packets are sent after this ACK */
	peer_expect(&peer, 0x0a, P0 + 2);
	peer_expect(&peer, 0x0a, P0 + 3);
	ack(P0 + 2, 0x60); /* another loss */
	peer_expect(&peer, 0x0a, P0 + 2);
	ack(P0 + 2, ACKED);
	peer_expect(&peer, 0x0a, P0 + 3);
	ack(P0 + 3, ACKED);
	for (unsigned i = 1; i < 4; i++)
		expect_cqe(i, 0, 0);
}

Test(softnic_requester, loss_reduces_the_window, .init = no_retransmission)
{
	for (unsigned i = 0; i < 3; i++)
		post(SN_OP_WRITE, 50 * MTU);
	expect_packets(P0, 64);
	ack(P0, SEQ);
	expect_packets(P0, 1);
	ack(P0, ACKED);
	expect_packets(P0 + 1, 48);
	ack(P0 + 9, ACKED);
	expect_packets(P0 + 49, 9);
	ack(P0 + 10, SEQ);
	expect_packets(P0 + 10, 1);
	ack(P0 + 11, SEQ); /* also acknowledges the packet before */
	expect_packets(P0 + 11, 1);
	ack(P0 + 11, ACKED);
	expect_packets(P0 + 12, 36);
}

Test(softnic_requester, probe_finds_a_loss_before_the_timeout, .init = probes_before_timeout)
{
	post(SN_OP_WRITE, 8);
	peer_expect(&peer, 0x0a, P0);
	peer_expect(&peer, 0x0a, P0);
	ack(P0, ACKED);
	expect_cqe(0, 0, 0);
	cr_assert_eq(COUNT(timeouts), 0);
	cr_assert_geq(COUNT(probes), 1);
}

Test(softnic_requester, retries_until_retry_cnt_then_errors, .init = short_timeout)
{
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.retry_cnt = 2;
	pthread_mutex_unlock(&sn_dev->lock);
	post(SN_OP_WRITE, 8);
	post(SN_OP_WRITE, 8);
	expect_cqe(0, SN_SYND_RETRY, 0x81);
	expect_cqe(1, SN_SYND_FLUSH, 0xf9);
	cr_assert_eq(COUNT(timeouts), 3);
}

Test(softnic_requester, retries_until_rnr_retry_then_errors, .init = no_retransmission)
{
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.rnr_retry = 2;
	a.qp.retry_cnt = 0; /* must not limit RNR retries */
	pthread_mutex_unlock(&sn_dev->lock);
	post(SN_OP_SEND, 8);
	for (unsigned i = 0; i < 3; i++) {
		peer_expect(&peer, 0x04, P0);
		ack(P0, 0x21);
	}
	expect_cqe(0, SN_SYND_RNR, 0x87);
	peer_expect_nothing(&peer);
}

/* An RNR NAK shows that the request arrived in sequence, so retries count from 0 again. */
Test(softnic_requester, rnr_nak_restores_the_retries, .init = no_retransmission)
{
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.retry_cnt = 1;
	pthread_mutex_unlock(&sn_dev->lock);
	post(SN_OP_SEND, 8);
	peer_expect(&peer, 0x04, P0);
	for (unsigned i = 0; i < 3; i++) {
		ack(P0, SEQ);
		peer_expect(&peer, 0x04, P0);
		ack(P0, 0x21);
		peer_expect(&peer, 0x04, P0);
	}
	ack(P0, ACKED);
	expect_cqe(0, 0, 0);
}

/* After the RNR wait time, the requester sends only four packets until an ACK arrives. */
Test(softnic_requester, rnr_nak_holds_back_later_packets, .init = no_retransmission)
{
	for (unsigned i = 0; i < 6; i++)
		post(SN_OP_SEND, 8);
	for (unsigned i = 0; i < 6; i++)
		peer_expect(&peer, 0x04, P0 + i);
	ack(P0 + 1, 0x20 | 28); /* 163.84 ms */
	expect_cqe(0, 0, 0);
	post(SN_OP_WRITE, 8);
	peer_expect_nothing(&peer);
	for (unsigned i = 1; i < 5; i++)
		peer_expect(&peer, 0x04, P0 + i);
	peer_expect_nothing(&peer);
	ack(P0 + 1, 0);
	peer_expect(&peer, 0x04, P0 + 5);
	peer_expect(&peer, 0x0a, P0 + 6);
}

Test(softnic_requester, fatal_naks, .init = no_retransmission)
{
	static const uint8_t nak[] = { 0x61, 0x62, 0x63 }, vendor[] = { 0x8a, 0x88, 0x89 };
	static const uint8_t synd[] = { SN_SYND_REM_INV, SN_SYND_REM_ACCESS, SN_SYND_REM_OP };

	for (unsigned i = 0; i < 3; i++) {
		wire_restart();
		post(SN_OP_WRITE, 8);
		post(SN_OP_WRITE, 8);
		post(SN_OP_WRITE, 8);
		for (unsigned n = 0; n < 3; n++)
			peer_expect(&peer, 0x0a, P0 + n);
		ack(P0 + 1, nak[i]);
		expect_cqe(0, 0, 0);
		expect_cqe(1, synd[i], vendor[i]);
		expect_cqe(2, SN_SYND_FLUSH, 0xf9);
	}
}

/* ---- READs ---- */

Test(softnic_requester, missing_read_response_is_requested_again, .init = no_retransmission)
{
	struct wire_packet k;

	post(SN_OP_READ, 3 * MTU);
	post(SN_OP_WRITE, 8);
	cr_assert_eq(sn_get32(peer_expect(&peer, 0x0c, P0).p + 12), 3 * MTU);
	peer_expect(&peer, 0x0a, P0 + 3);
	respond(0x0d, P0, MTU, 1);
	respond(0x0f, P0 + 2, MTU, 3);
	k = peer_expect(&peer, 0x0c, P0 + 1);
	cr_assert_eq(sn_get64(k.p), 0x1234567800ull + MTU);
	/* The requester first requests one packet, to test whether the path is free. */
	cr_assert_eq(sn_get32(k.p + 12), MTU);
	/* The WRITE's ACK is ignored, because responses to the earlier READ are missing. */
	ack(P0 + 3, ACKED);
	expect_none();
	peer_expect_nothing(&peer);
	respond(0x10, P0 + 1, MTU, 2);
	k = peer_expect(&peer, 0x0c, P0 + 2);
	cr_assert_eq(sn_get32(k.p + 12), MTU);
	peer_expect(&peer, 0x0a, P0 + 3);
	respond(0x10, P0 + 2, MTU, 3);
	expect_cqe(0, 0, 0);
	expect_none();
	ack(P0 + 3, ACKED);
	expect_cqe(1, 0, 0);
	for (unsigned i = 0; i < 3; i++)
		cr_assert(mem[i * MTU] == i + 1 && mem[i * MTU + MTU - 1] == i + 1);
}

/*
 * A repeated request does not count as outstanding until it is sent, so
 * max_rd_atomic = 1 does not block it.
 */
Test(softnic_requester, missing_read_response_with_max_rd_atomic_1,
     .init = no_retransmission_one_read)
{
	struct wire_packet k;

	post(SN_OP_READ, 20 * MTU);
	cr_assert_eq(sn_get32(peer_expect(&peer, 0x0c, P0).p + 12), 16 * MTU);
	respond(0x0d, P0, MTU, 1);
	respond(0x0e, P0 + 1, MTU, 2);
	respond(0x0e, P0 + 3, MTU, 4);
	k = peer_expect(&peer, 0x0c, P0 + 2);
	cr_assert_eq(sn_get64(k.p), 0x1234567800ull + 2 * MTU);
	cr_assert_eq(sn_get32(k.p + 12), MTU);
	respond(0x10, P0 + 2, MTU, 3);
	k = peer_expect(&peer, 0x0c, P0 + 3); /* the rest of the first request */
	cr_assert_eq(sn_get32(k.p + 12), 13 * MTU);
	for (unsigned i = 3; i < 16; i++)
		respond(i == 3 ? 0x0d : i == 15 ? 0x0f : 0x0e, P0 + i, MTU, i + 1);
	cr_assert_eq(sn_get32(peer_expect(&peer, 0x0c, P0 + 16).p + 12), 4 * MTU);
	for (unsigned i = 16; i < 20; i++)
		respond(i == 16 ? 0x0d : i == 19 ? 0x0f : 0x0e, P0 + i, MTU, i + 1);
	expect_cqe(0, 0, 0);
	for (unsigned i = 0; i < 20; i++)
		cr_assert(mem[i * MTU] == i + 1 && mem[i * MTU + MTU - 1] == i + 1);
}

Test(softnic_requester, no_more_reads_than_max_rd_atomic, .init = no_retransmission)
{
	struct fake_wqe f = wqe(SN_OP_FA, 8);

	for (unsigned i = 0; i < 3; i++)
		post(SN_OP_READ, 8);
	fake_post(&a, &f);
	post(SN_OP_WRITE, 8);
	peer_expect(&peer, 0x0c, P0);
	peer_expect(&peer, 0x0c, P0 + 1);
	peer_expect_nothing(&peer);
	respond(0x10, P0, 8, 1);
	peer_expect(&peer, 0x0c, P0 + 2);
	peer_expect_nothing(&peer);
	respond(0x10, P0 + 1, 8, 1);
	peer_expect(&peer, 0x14, P0 + 3);
	peer_expect(&peer, 0x0a, P0 + 4);
	respond(0x10, P0 + 2, 8, 1);
	respond(0x12, P0 + 3, 8, 1);
	ack(P0 + 4, ACKED);
	for (unsigned i = 0; i < 5; i++)
		expect_cqe(i, 0, 0);
}

/* A long READ is requested in parts; each part counts for max_rd_atomic. */
Test(softnic_requester, parts_of_a_long_read_count_for_max_rd_atomic, .init = no_retransmission)
{
	uint32_t part = 16 * MTU;

	post(SN_OP_READ, 3 * part);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(sn_get32(peer_expect(&peer, 0x0c, P0 + 16 * i).p + 12), part);
	peer_expect_nothing(&peer);
	for (unsigned i = 0; i < 16; i++)
		respond(i == 0 ? 0x0d : i == 15 ? 0x0f : 0x0e, P0 + i, MTU, i);
	peer_expect(&peer, 0x0c, P0 + 32);
}

Test(softnic_requester, wrong_responses_are_bad_response_errors, .init = no_retransmission)
{
	static const struct {
		uint8_t wqe, opcode;
		uint32_t len;
	} bad[] = {
		{ SN_OP_READ, 0x10, 7 }, { SN_OP_READ, 0x10, 9 }, { SN_OP_READ, 0x12, 8 },
		{ SN_OP_FA, 0x12, 4 },	 { SN_OP_FA, 0x10, 8 },	  { SN_OP_WRITE, 0x10, 8 },
	};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wire_restart();
		post(bad[i].wqe, 8);
		peer_expect(&peer,
			    bad[i].wqe == SN_OP_READ ? 0x0c
			    : bad[i].wqe == SN_OP_FA ? 0x14
						     : 0x0a,
			    P0);
		respond(bad[i].opcode, P0, bad[i].len, 1);
		expect_cqe(0, SN_SYND_BAD_RESP, 0x78);
	}
}

/* ---- fences, unreliable connections ---- */

Test(softnic_requester, fences, .init = no_retransmission)
{
	static const struct {
		uint8_t fence;
		bool write_waits, read_waits;
	} f[] = {
		{ 0, false, false }, { 1, false, false }, { 2, false, true },
		{ 3, true, true },   { 4, false, true },
	};
	uint32_t psn = P0;

	for (unsigned i = 0; i < 5; i++) {
		struct fake_wqe w = wqe(SN_OP_WRITE, 8);

		w.fm |= f[i].fence << 5;
		post(SN_OP_WRITE, 8);
		fake_post(&a, &w);
		peer_expect(&peer, 0x0a, psn);
		if (f[i].write_waits) {
			peer_expect_nothing(&peer);
			ack(psn, ACKED);
		}
		peer_expect(&peer, 0x0a, psn + 1);
		ack(psn + 1, ACKED);
		post(SN_OP_READ, 8);
		fake_post(&a, &w);
		peer_expect(&peer, 0x0c, psn + 2);
		if (f[i].read_waits) {
			peer_expect_nothing(&peer);
			respond(0x10, psn + 2, 8, 1);
			peer_expect(&peer, 0x0a, psn + 3);
		} else {
			peer_expect(&peer, 0x0a, psn + 3);
			respond(0x10, psn + 2, 8, 1);
		}
		ack(psn + 3, ACKED);
		for (unsigned n = 0; n < 4; n++)
			expect_cqe(4 * i + n, 0, 0);
		psn += 4;
	}
}

/* A fenced NOP blocks later WQEs until the READ before it has its response. */
Test(softnic_requester, fenced_nop_holds_the_queue, .init = no_retransmission)
{
	struct fake_wqe w = wqe(SN_OP_NOP, 0);

	w.fm |= 2 << 5;
	post(SN_OP_READ, 8);
	fake_post(&a, &w);
	post(SN_OP_WRITE, 8);
	peer_expect(&peer, 0x0c, P0);
	peer_expect_nothing(&peer);
	respond(0x10, P0, 8, 1);
	peer_expect(&peer, 0x0a, P0 + 1);
	ack(P0 + 1, ACKED);
	for (unsigned n = 0; n < 3; n++)
		expect_cqe(n, 0, 0);
}

Test(softnic_requester, uc_completes_when_sent, .init = unreliable)
{
	struct fake_wqe w = wqe(SN_OP_WRITE_IMM, 3 * MTU);

	fake_post(&a, &w);
	expect_cqe(0, 0, 0);
	cr_assert_not(peer_expect(&peer, 0x26, P0).ackreq);
	peer_expect(&peer, 0x27, P0 + 1);
	peer_expect(&peer, 0x29, P0 + 2);
	post(SN_OP_SEND, 8);
	peer_expect(&peer, 0x24, P0 + 3);
	expect_cqe(1, 0, 0);
	peer_expect_nothing(&peer);
}

Test(softnic_requester, uc_send_error_leaves_receives_usable, .init = unreliable)
{
	struct fake_wqe w = wqe(SN_OP_WRITE, 8);
	uint8_t cqe[64], b[8] = { 0 };

	fake_recv(&a, mem, 64, key);
	w.sge[0].lkey ^= 1;
	fake_write_wqe(&a, &w);
	fake_write_wqe(&a, &w);
	fake_ring(&a);
	expect_cqe(0, SN_SYND_LOC_PROT, 0x51);
	expect_cqe(1, SN_SYND_FLUSH, 0xf9);
	post(SN_OP_WRITE, 8);
	expect_cqe(2, SN_SYND_FLUSH, 0xf9);
	cr_assert_eq(a.qp.state, SN_QPS_SQER);
	peer_send(&peer, 0x24, QPN, P0, b, 8);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 2);
	fake_modify(&a, SN_QPS_RTS);
	post(SN_OP_WRITE, 8);
	expect_cqe(3, 0, 0);
}

/* ---- draining ---- */

Test(softnic_requester, draining_finishes_started_operations, .init = no_retransmission)
{
	for (unsigned i = 0; i < 3; i++)
		post(SN_OP_READ, 8); /* the third is not started: two may be outstanding */
	peer_expect(&peer, 0x0c, P0);
	peer_expect(&peer, 0x0c, P0 + 1);
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.sqd_event = true;
	fake_async = 0;
	pthread_mutex_unlock(&sn_dev->lock);
	fake_modify(&a, SN_QPS_SQD);
	post(SN_OP_READ, 8);
	respond(0x10, P0, 8, 1);
	expect_cqe(0, 0, 0);
	peer_expect_nothing(&peer);
	cr_assert_eq(fake_async, 0);
	respond(0x10, P0 + 1, 8, 1);
	expect_cqe(1, 0, 0);
	peer_expect_nothing(&peer);
	cr_assert_eq(fake_async, 1, "expected one SQ_DRAINED event");
	fake_modify(&a, SN_QPS_RTS);
	peer_expect(&peer, 0x0c, P0 + 2);
	peer_expect(&peer, 0x0c, P0 + 3);
	cr_assert_eq(fake_async, 1);
}
