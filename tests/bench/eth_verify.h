/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks for the consumer of the benchmark of Ethernet sends: the WQEs expected in a slot, and
 * which of them generate CQEs. As post_verify.h, a second implementation of the mlx5 formats, which
 * shares no code with the product. Plain C, so that a unit test can run it on a CPU.
 *
 * Each call of the sender writes call_packets packets to call_slots slots: one send, or
 * multi-packet WQEs of 61 packets, the last one of the rest.
 */
#ifndef ETH_VERIFY_H
#define ETH_VERIFY_H

#include "post_verify.h"

#define ETH_FULL	61u /* packets of a multi-packet WQE, unless it is the last of a call */
#define ETH_FULL_SLOTS	16u
#define ETH_OPCODE_SEND 0x0au
#define ETH_OPCODE_EMPW 0x29u

/* A WQE: its first slot, its slots, its packets. */
struct eth_wqe {
	uint64_t first;
	uint32_t slots, packets;
};

/* Returns the WQE that contains a slot. */
POST_FN struct eth_wqe eth_wqe_of(const struct post_expect *x, uint64_t slot)
{
	struct eth_wqe e = { slot, 1, 1 };
	uint32_t at, number, last;

	if (x->call_packets == 1)
		return e;
	at = (uint32_t)slot % x->call_slots;
	number = at / ETH_FULL_SLOTS;
	last = (x->call_packets - 1) / ETH_FULL;
	e.first = slot - at % ETH_FULL_SLOTS;
	e.packets = number < last ? ETH_FULL : x->call_packets - last * ETH_FULL;
	e.slots = (2 + e.packets + 3) / 4;
	return e;
}

/* Slots of a call that sends these packets. */
POST_FN uint32_t eth_call_slots(uint32_t packets)
{
	const uint32_t last = (packets - 1) / ETH_FULL;

	return packets == 1 ? 1 : last * ETH_FULL_SLOTS + (2 + packets - last * ETH_FULL + 3) / 4;
}

/* Does a WQE contain the last slot of a half of the ring? Only such WQEs generate CQEs. */
POST_FN int eth_has_cqe(const struct eth_wqe *e, uint32_t depth)
{
	const uint32_t half = depth / 2;

	return (uint32_t)e->first % half + e->slots >= half;
}

/* Returns what is wrong in the first two segments, as POST_BAD_* bits. */
POST_FN uint32_t eth_verify_head(const struct post_expect *x, const struct eth_wqe *e,
				 uint32_t depth, const uint32_t w[16])
{
	const uint32_t opcode = x->call_packets == 1 ? ETH_OPCODE_SEND : ETH_OPCODE_EMPW;
	const uint32_t ctrl = post_swap32(w[0]), ce = eth_has_cqe(e, depth) ? 0x08 : 0;
	uint32_t bad = 0;

	bad |= ctrl >> 8 != (e->first & 0xffff) ? POST_BAD_INDEX : 0;
	bad |= (ctrl & 0xff) != opcode ? POST_BAD_OPCODE : 0;
	bad |= post_swap32(w[1]) != (x->qpn << 8 | (2 + e->packets)) ? POST_BAD_QPN_DS : 0;
	bad |= w[2] != ce << 24 || w[3] ? POST_BAD_FLAGS : 0;
	/* no checksums, no inline header */
	return bad | (w[4] || w[5] || w[6] || w[7] ? POST_BAD_PAYLOAD : 0);
}

/* Checks a data segment, and adds the number of its packet, and its square. */
POST_FN uint32_t eth_verify_data(const struct post_expect *x, const uint32_t w[4], uint64_t *sum,
				 uint64_t *squares)
{
	const uint64_t off = post_swap64(w[2], w[3]) - x->laddr, k = off / POST_STEP;
	uint32_t bad = post_swap32(w[0]) != x->bytes ? POST_BAD_LENGTH : 0;

	bad |= w[1] != x->lkey ? POST_BAD_LKEY : 0;
	bad |= k >= x->count || off % POST_STEP ? POST_BAD_LADDR : 0;
	*sum += k;
	*squares += k * k;
	return bad;
}

/* Returns which parts of a slot are wrong, and adds the numbers of its packets and their squares. w
 * has all 16 words, or 12 if a call sends one packet. */
POST_FN uint32_t eth_verify(const struct post_expect *x, uint64_t slot, uint32_t depth,
			    const uint32_t w[16], uint64_t *sum, uint64_t *squares)
{
	const struct eth_wqe e = eth_wqe_of(x, slot);
	const uint32_t before = (uint32_t)(slot - e.first) * 4;
	uint32_t s = before ? 0 : 2, bad = 0;

	if (!before)
		bad = eth_verify_head(x, &e, depth, w);
	for (; s < 4; s++)
		if (before + s - 2 < e.packets)
			bad |= eth_verify_data(x, w + 4 * s, sum, squares);
	return bad;
}

/* Bytes 56 to 63 of CQE `number` of the queue, as post_cqe_tail(), for the WQE at an index. */
POST_FN uint64_t eth_cqe_tail(uint64_t number, uint64_t index, uint32_t depth, uint32_t qpn)
{
	const uint32_t owner = number & depth ? 1 : 0;

	return (uint64_t)(post_swap32((uint32_t)(index & 0xffff) << 16) | owner << 24) << 32 |
	       post_swap32(ETH_OPCODE_SEND << 24 | qpn);
}

/* CQE number h is that of the WQE which contains the last slot of half h of the ring, in laps that
 * are counted on. Returns whether that WQE ends in slots [from, to), and its CQE. */
POST_FN int eth_cqe_due(const struct post_expect *x, uint64_t h, uint32_t depth, uint64_t from,
			uint64_t to, uint64_t *tail)
{
	const struct eth_wqe e = eth_wqe_of(x, (h + 1) * (depth / 2) - 1);
	const uint64_t end = e.first + e.slots;

	*tail = eth_cqe_tail(h, e.first, depth, x->qpn);
	return end > from && end <= to;
}

/* First CQE that can be due: the WQE of the half before `from` may end behind it. */
POST_FN uint64_t eth_first_cqe(uint32_t depth, uint64_t from)
{
	const uint64_t half = from / (depth / 2);

	return half ? half - 1 : 0;
}

#endif
