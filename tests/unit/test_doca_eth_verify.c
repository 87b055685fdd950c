/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The checks of WQEs in the benchmark of Ethernet sends (bench/eth_verify.h): they must accept what
 * this library posts, in several laps of the ring, whose slots its CQEs free, and must find errors
 * in WQEs that the tests change.
 */
#define GDK_BOTH_SHAPES
#include <criterion/criterion.h>

#include "gdk_sdk_eth_txq_dev.h"

#include "../bench/eth_verify.h"
#include "rig.h"

#define DEPTH	    64u
#define LADDR	    0x7e3400000000u
#define LKEY	    0x88776655u
#define PACKET	    64u
#define PACKETS_MAX 200u

static struct rig rig;
static struct post_expect want;
static uint64_t consumed, sum, squares;

static struct doca_gpu_eth_txq *txq(void)
{
	return (struct doca_gpu_eth_txq *)(void *)&rig.qp;
}

static void open_queue(uint32_t call_packets, uint64_t count)
{
	rig_init(&rig, DEPTH, RIG_DB, 0);
	rig.st->flags |= GDK_QPF_ETHERNET;
	rig.st->uneven = rig.st->long_wqe = 1;
	rig.st->wait_limit_ns = 300000000; /* a CQE that is missing */
	txq()->tx.flags = GDK_ETH_TXF_EMPW;
	want = (struct post_expect){ .laddr = LADDR,
				     .count = count,
				     .qpn = RIG_QPN,
				     .lkey = LKEY,
				     .bytes = PACKET,
				     .call_packets = call_packets,
				     .call_slots = eth_call_slots(call_packets) };
	consumed = sum = squares = 0;
}

TestSuite(doca_eth_verify, .timeout = 60);

/* Sends the packets from number k on. */
static int send_call(uint64_t k)
{
	const struct gdk_how how = gdk_how(RIG_GPU, RIG_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP,
					   0);
	struct gdk_eth_pkt pkts[PACKETS_MAX];
	doca_gpu_dev_eth_ticket_t ticket;
	uint32_t i;

	for (i = 0; i < want.call_packets; i++)
		pkts[i] = gdk_eth_pkt(LADDR + (k + i) * POST_STEP, LKEY, PACKET);
	if (want.call_packets == 1)
		return gdk_eth_send(txq(), pkts[0], 0, how, &ticket);
	return gdk_eth_send_multi(txq(), pkts, want.call_packets, 0, how, &ticket);
}

static uint32_t check(uint64_t slot, unsigned int byte, uint8_t flip)
{
	uint64_t s = 0, q = 0;
	uint32_t w[16], bad;

	memcpy(w, gdk_get_wqe_ptr(&rig.qp, slot), sizeof(w));
	((uint8_t *)w)[byte] ^= flip;
	bad = eth_verify(&want, slot, DEPTH, w, &s, &q);
	if (!flip) {
		sum += s;
		squares += q;
	}
	return bad;
}

/* As the consumer of the benchmark: verifies at most `most` slots, then writes the CQEs. */
static void consume(uint32_t most)
{
	uint64_t to = post_extend(consumed, be32toh(rig.dbrec[1]), DEPTH), i, h, tail;

	to = to - consumed > most ? consumed + most : to;
	for (i = consumed; i < to; i++)
		cr_assert_eq(check(i, 0, 0), 0, "slot %llu", (unsigned long long)i);
	for (h = eth_first_cqe(DEPTH, consumed); (h + 1) * (DEPTH / 2) <= to; h++)
		if (eth_cqe_due(&want, h, DEPTH, consumed, to, &tail))
			memcpy((uint8_t *)&rig.cqe[h % DEPTH] + 56, &tail, sizeof(tail));
	consumed = to;
}

static void send_laps(uint32_t call_packets, uint32_t most)
{
	const uint32_t slots = eth_call_slots(call_packets), calls = 10 * DEPTH / slots;
	const uint64_t count = (uint64_t)calls * call_packets;
	uint32_t i;

	open_queue(call_packets, count);
	for (i = 0; i < calls; i++) {
		cr_assert_eq(send_call((uint64_t)i * call_packets), 0, "call %u of %u packets", i,
			     call_packets);
		consume(most);
		while ((i + 1) * slots - consumed > DEPTH / 4)
			consume(most);
	}
	while (consumed < (uint64_t)calls * slots)
		consume(most);
	cr_expect_eq(sum, post_sum(count));
	cr_expect_eq(squares, post_sum_squares(count));
	cr_expect_eq(rig.qp.sq_rsvd_index, calls * slots);
	rig_fini(&rig);
}

Test(doca_eth_verify, sends_are_accepted)
{
	send_laps(1, 1);
	send_laps(1, DEPTH);
}

Test(doca_eth_verify, multi_packet_sends_are_accepted)
{
	static const uint32_t packets[] = { 2, 3, 32, 61, 62, 63, 122 };
	uint32_t i;

	for (i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		send_laps(packets[i], 1);
		send_laps(packets[i], 7);
		send_laps(packets[i], DEPTH);
	}
}

/* More than half of the ring could wait for CQEs that no WQE generates. */
Test(doca_eth_verify, calls_of_more_than_half_of_the_ring_are_refused)
{
	open_queue(123, 123);
	cr_expect_eq(send_call(0), -EINVAL);
	rig_fini(&rig);
}

/* One bit of each byte; not one that changes an address to that of another packet, which the sums
 * find. */
static void flip_bytes(uint32_t call_packets, uint64_t slot, unsigned int len)
{
	unsigned int byte;

	open_queue(call_packets, call_packets);
	cr_assert_eq(send_call(0), 0);
	for (byte = 0; byte < len; byte++)
		cr_expect_neq(check(slot, byte, byte % 16 == 14 ? 0x80 : 1), 0,
			      "a flipped bit in byte %u of slot %u was accepted", byte,
			      (unsigned int)slot);
	rig_fini(&rig);
}

Test(doca_eth_verify, every_flipped_bit_is_reported)
{
	flip_bytes(1, 0, 48);
	flip_bytes(100, 0, 64);
	flip_bytes(100, 15, 48); /* the last segment is not used */
	flip_bytes(100, 16, 64);
	flip_bytes(100, 16 + 10, 16);
}

Test(doca_eth_verify, cqe_requests_are_checked)
{
	uint32_t i;

	open_queue(1, DEPTH);
	for (i = 0; i < DEPTH; i++)
		cr_assert_eq(send_call(i), 0);
	for (i = 0; i < DEPTH; i++)
		cr_expect_eq(check(i, 11, 8), POST_BAD_FLAGS, "slot %u", i);
}
