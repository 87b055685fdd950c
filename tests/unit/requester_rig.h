/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Rig of test_softnic_requester.c: fixtures that differ in timeouts, probes and
 * transport, and functions that post WQEs, check CQEs and packets, and send
 * responses.
 */
#ifndef REQUESTER_RIG_H
#define REQUESTER_RIG_H

#include "wire_rig.h"

#define SIGNAL 0x08

static void rig(uint8_t timeout, uint8_t reads, enum sn_qp_type type)
{
	wire_rig(type, timeout);
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.max_rd_atomic = reads;
	pthread_mutex_unlock(&sn_dev->lock);
}

/* Timeouts and probes are far in the future, so neither retransmits while a test runs. */
static void no_retransmission(void)
{
	rig(24, 2, SN_QPT_RC);
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.eng->req.srtt = sn_dev->eng->probe_wait_min = 1000000000000ull;
	a.qp.eng->req.win.size = SN_WINDOW_PKTS;
	pthread_mutex_unlock(&sn_dev->lock);
}

static void no_retransmission_one_read(void)
{
	no_retransmission();
	pthread_mutex_lock(&sn_dev->lock);
	a.qp.max_rd_atomic = 1;
	pthread_mutex_unlock(&sn_dev->lock);
}

static void short_timeout(void)
{
	rig(8, 2, SN_QPT_RC);
}

/* The ACK timeout is 4 s, so the engine sends probes long before it. */
static void probes_before_timeout(void)
{
	rig(20, 2, SN_QPT_RC);
}

static void unreliable(void)
{
	rig(24, 2, SN_QPT_UC);
}

static struct fake_wqe wqe(uint8_t opcode, uint32_t len)
{
	return (struct fake_wqe){ .opcode = opcode,
				  .fm = SIGNAL,
				  .raddr = 0x1234567800ull,
				  .rkey = 0xabcd,
				  .nsge = 1,
				  .sge = { { mem, len, key } } };
}

static void post(uint8_t opcode, uint32_t len)
{
	struct fake_wqe w = wqe(opcode, len);

	fake_post(&a, &w);
}

static void expect_cqe(uint32_t index, uint8_t synd, uint8_t vendor)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(&a, false, cqe, 5000), "no CQE for WQE %u", index);
	cr_assert_eq(cqe[63] >> 4, synd ? 13 : 0);
	cr_assert_eq((uint32_t)(cqe[60] << 8 | cqe[61]), index);
	if (synd) {
		cr_assert_eq(cqe[55], synd, "got syndrome 0x%02x, expected 0x%02x", cqe[55], synd);
		cr_assert_eq(cqe[54], vendor, "got vendor syndrome 0x%02x, expected 0x%02x",
			     cqe[54], vendor);
	}
}

static void expect_none(void)
{
	uint8_t cqe[64];

	cr_assert_not(fake_poll(&a, false, cqe, PEER_QUIET_MS), "unexpected CQE of WQE %u",
		      cqe[61]);
}

static void ack(uint32_t psn, uint8_t syndrome)
{
	peer_ack(&peer, QPN, psn, syndrome);
}

/* Expects n packets with consecutive PSNs from psn on, and no packet after them. */
static void expect_packets(uint32_t psn, unsigned n)
{
	struct wire_packet k;

	for (unsigned i = 0; i < n; i++) {
		cr_assert(peer_recv(&peer, &k, 5000), "got %u packets, expected %u", i, n);
		cr_assert_eq(k.psn, (psn + i) & 0xffffff);
	}
	peer_expect_nothing(&peer);
}

/* Sends a response with len bytes of value v. Only a READ response middle (0x0e) has no AETH. */
static void respond(uint8_t opcode, uint32_t psn, uint32_t len, uint8_t v)
{
	uint8_t b[4 + 4096] = { ACKED };

	memset(b + 4, v, len);
	if (opcode == 0x0e)
		peer_send(&peer, opcode, QPN, psn, b + 4, len);
	else
		peer_send(&peer, opcode, QPN, psn, b, 4 + len);
}

#endif
