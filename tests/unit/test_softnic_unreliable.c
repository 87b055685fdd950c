/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The receiving side of unreliable connections and datagrams against packets that
 * the test builds by hand: invalid packets must be dropped without a response
 * (InfiniBand specification, 9.8 and 9.9.3). Also the draining of an unreliable
 * send queue.
 */
#include "wire_rig.h"

#define QKEY   0x11112222u
#define SENDER 0x654321u

static void uc(void)
{
	wire_rig(SN_QPT_UC, 0);
}

static void ud(void)
{
	const int ttl = 17, tos = 0x28;

	wire_rig(SN_QPT_UD, 0);
	setsockopt(peer.fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
	setsockopt(peer.fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.qkey = QKEY;
	pthread_mutex_unlock(&sn_dev->lock);
}

TestSuite(softnic_unreliable, .fini = wire_over, .timeout = 60);

/* ---- unreliable connections ---- */

Test(softnic_unreliable, uc_drops_broken_messages, .init = uc)
{
	uint8_t cqe[64];

	fake_recv(&a, mem, 2 * MTU, key);
	fake_recv(&a, mem + 4096, 2 * MTU, key);
	send_bytes(0x20, P0, MTU, 1);
	send_bytes(0x22, P0 + 2, 8, 1); /* the middle packet is missing */
	send_bytes(0x20, P0 + 3, MTU, 2);
	send_bytes(0x24, P0 + 9, 12, 3);       /* after a gap, but a complete message: accepted */
	send_bytes(0x24, P0 + 10, 3 * MTU, 3); /* beyond the MTU */
	send_write(0x2a, P0 + 11, SIZE - 8, 9, 9, 3);
	send_bytes(0x2c, P0 + 12, 16, 3); /* READ is not allowed */
	send_write(0x2a, P0 + 20, 16384, 8, 8, 0x44);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 2);
	cr_assert_eq(cqe[61], 0, "a broken message consumed a receive");
	cr_assert_eq(sn_get32(cqe + 44), 12);
	peer_expect_nothing(&peer);
	cr_assert_eq(mem[11], 3);
	cr_assert_eq(mem[16384], 0x44);
	cr_assert_eq(COUNT(dropped_messages), 4);
	cr_assert_eq(wire_state(), SN_QPS_RTS);
	send_bytes(0x25, P0 + 22, 12, 5);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 3);
	cr_assert_eq(sn_get32(cqe + 36), 0x05050505);
	cr_assert_eq(cqe[61], 1);
	send_bytes(0x24, P0 + 23, 12, 5); /* no receive is left */
	cr_assert_not(fake_poll(&a, true, cqe, PEER_QUIET_MS));
	peer_expect_nothing(&peer);
	cr_assert_eq(wire_state(), SN_QPS_RTS);
}

/* ---- datagrams ---- */

static void send_datagram(uint8_t opcode, uint32_t qkey, uint32_t len, uint8_t v)
{
	uint8_t b[4200];

	sn_put32(b, qkey);
	sn_put32(b + 4, SENDER);
	memset(b + 8, v, len);
	peer_send(&peer, opcode, QPN, 5, b, 8 + len);
}

Test(softnic_unreliable, datagram_delivers_its_ip_header, .init = ud)
{
	uint8_t cqe[64];
	uint32_t sum = 0;

	memset(mem, 0xee, 256);
	fake_recv(&a, mem, 256, key);
	send_datagram(0x65, QKEY, 4 + 10, 7);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 3);
	cr_assert_eq(sn_get32(cqe + 44), 40 + 10);
	cr_assert_eq(sn_get32(cqe + 36), 0x07070707);
	cr_assert_eq(sn_get32(cqe + 24) & 0xffffff, SENDER);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(mem[i], 0, "byte %u before the IPv4 header is not zero", i);
	cr_assert(mem[20] == 0x45 && mem[21] == 0x28 && mem[28] == 17);
	cr_assert_eq(mem[22] << 8 | mem[23], 20 + 8 + 12 + 8 + 4 + 12 + 4); /* total length */
	cr_assert_eq(mem[29], 17);
	cr_assert_arr_eq(mem + 32, &peer.self.sin_addr, 4);
	cr_assert_arr_eq(mem + 36, &peer.nic.sin_addr, 4);
	for (unsigned i = 20; i < 40; i += 2)
		sum += mem[i] << 8 | mem[i + 1];
	cr_assert_eq((sum & 0xffff) + (sum >> 16), 0xffff, "wrong header checksum");
	cr_assert(mem[40] == 7 && mem[49] == 7 && mem[50] == 0xee);
}

Test(softnic_unreliable, invalid_datagrams_are_dropped, .init = ud)
{
	uint8_t cqe[64];

	send_datagram(0x64, QKEY, 8, 1); /* no receive */
	for (unsigned i = 0; i < 5000 && !COUNT(dropped_messages); i++)
		usleep(1000);
	fake_recv(&a, mem, 8192, key);
	send_datagram(0x64, QKEY + 1, 8, 2);
	peer_send(&peer, 0x64, QPN, 5, mem, 4);
	send_datagram(0x64, QKEY, 4100, 3); /* beyond the MTU */
	send_datagram(0x64, QKEY, 0, 4);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[61], 0);
	cr_assert_eq(sn_get32(cqe + 44), 40);
	cr_assert_eq(COUNT(qkey_violations), 1);
	cr_assert_eq(COUNT(wire_malformed), 1);
	cr_assert_eq(COUNT(dropped_messages), 2);
	peer_expect_nothing(&peer);
}

Test(softnic_unreliable, datagram_longer_than_its_receive, .init = ud)
{
	uint8_t cqe[64];

	fake_recv(&a, mem, 40 + 7, key);
	send_datagram(0x64, QKEY, 8, 1);
	cr_assert(fake_poll(&a, true, cqe, 5000));
	cr_assert_eq(cqe[63] >> 4, 14);
	cr_assert_eq(cqe[55], SN_SYND_LOC_LEN);
}

/* ---- draining ---- */

/*
 * An operation that is partly sent must be finished; the queue is drained when its
 * last packet is sent.
 */
Test(softnic_unreliable, uc_queue_raises_sq_drained, .init = uc)
{
	struct fake_wqe w = { .opcode = SN_OP_WRITE,
			      .fm = 0x08,
			      .rkey = 1,
			      .nsge = 2,
			      .sge = { { mem, 40 * MTU, key }, { mem, 40 * MTU, key } } };
	uint8_t cqe[64];

	pthread_mutex_lock(&sn_dev->lock);
	fake_post(&a, &w); /* more packets than one pass sends */
	for (int i = 0; i < 100 && !a.qp.eng->req.cur_pkt; i++)
		sn_eng_pass(sn_dev->eng);
	cr_assert(a.qp.eng->req.cur_pkt, "no packet was sent");
	fake_async = 0;
	a.qp.sqd_event = true;
	a.qp.state = SN_QPS_SQD;
	sn_eng_qp_state(sn_dev, &a.qp, SN_QPS_RTS);
	pthread_mutex_unlock(&sn_dev->lock);
	cr_assert(fake_poll(&a, false, cqe, 5000));
	pthread_mutex_lock(&sn_dev->lock);
	cr_expect_eq(fake_async, 1, "expected one SQ_DRAINED event");
	cr_expect_not(sn_eng_qp_draining(&a.qp));
	pthread_mutex_unlock(&sn_dev->lock);
}
