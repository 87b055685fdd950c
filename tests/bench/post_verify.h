/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks for the consumer of the posting benchmark: the WQE expected in a slot, the
 * meaning of a doorbell, the form of a CQE. This is a second implementation of the
 * mlx5 formats on purpose: it shares no code with the product that it checks. Plain C,
 * so that a unit test can run it on a CPU.
 */
#ifndef POST_VERIFY_H
#define POST_VERIFY_H

#include <stdint.h>

#ifdef __CUDACC__
#define POST_FN __host__ __device__ static __forceinline__
#else
#define POST_FN static inline
#endif

#define POST_STEP 64u /* bytes: message k is at raddr + k * POST_STEP and laddr + k * POST_STEP */

/* Properties that all messages of one QP share. */
struct post_expect {
	uint64_t raddr, laddr;
	uint64_t count; /* number of messages */
	uint32_t qpn;
	uint32_t rkey, lkey; /* in the byte order of the WQE */
	uint32_t bytes;
	uint32_t inl;	      /* 1: the payload is inline, see post_payload() */
	uint32_t signal_mask; /* a slot is signaled if its index has none of these bits */
	/* Of an Ethernet queue: the slots and the packets of one call, see eth_verify.h; else 0. */
	uint32_t call_slots, call_packets;
};

enum post_bad {
	POST_BAD_INDEX = 1 << 0,
	POST_BAD_OPCODE = 1 << 1,
	POST_BAD_QPN_DS = 1 << 2,
	POST_BAD_FLAGS = 1 << 3,
	POST_BAD_RADDR = 1 << 4,
	POST_BAD_RKEY = 1 << 5,
	POST_BAD_LENGTH = 1 << 6,
	POST_BAD_LKEY = 1 << 7,
	POST_BAD_LADDR = 1 << 8,
	POST_BAD_PAYLOAD = 1 << 9,
	POST_BAD_DOORBELL = 1 << 10, /* the register names another QP */
	POST_BAD_SET = 1 << 11,	     /* a message is missing or duplicated */
	POST_BAD_END = 1 << 12,	     /* wrong index, DBREC or register after the run */
	POST_BAD_SILENT = 1 << 13,   /* no doorbell arrived */
	POST_BAD_RECORD = 1 << 14,   /* the DBREC does not show the index of the doorbell */
	POST_BAD_EARLY = 1 << 15,    /* a wait returned before the CQE was written */
	POST_BAD_STATUS = 1 << 16,   /* a call returned an error */
};

POST_FN uint32_t post_swap32(uint32_t v)
{
	return v << 24 | (v << 8 & 0xff0000) | (v >> 8 & 0xff00) | v >> 24;
}

POST_FN uint64_t post_swap64(uint32_t first, uint32_t second)
{
	return (uint64_t)post_swap32(first) << 32 | post_swap32(second);
}

/* Word i of the payload of message k if it is inline. */
POST_FN uint32_t post_payload(uint64_t k, uint32_t i)
{
	return i == 0 ? (uint32_t)k : i == 1 ? (uint32_t)(k >> 32) : (uint32_t)k * 5 + i;
}

/* Number of 16-byte segments of the WQE. */
POST_FN uint32_t post_segments(const struct post_expect *x)
{
	return x->inl && x->bytes > 12 ? 4 : 3;
}

POST_FN uint32_t post_verify_inline(const struct post_expect *x, const uint32_t w[16], uint64_t k)
{
	uint32_t bad = post_swap32(w[8]) != (x->bytes | 0x80000000u) ? POST_BAD_LENGTH : 0;

	for (uint32_t i = 0; i < 7; i++)
		if (i * 4 < x->bytes && w[9 + i] != post_payload(k, i))
			bad |= POST_BAD_PAYLOAD;
	return bad;
}

POST_FN uint32_t post_verify_data(const struct post_expect *x, const uint32_t w[16], uint64_t k)
{
	uint32_t bad = post_swap32(w[8]) != x->bytes ? POST_BAD_LENGTH : 0;

	bad |= w[9] != x->lkey ? POST_BAD_LKEY : 0;
	bad |= post_swap64(w[10], w[11]) != x->laddr + k * POST_STEP ? POST_BAD_LADDR : 0;
	return bad;
}

/* Returns which parts of the RDMA write in slot `index` are wrong, as POST_BAD_* bits, and
 * stores the number of its message in *k. The fourth segment is checked only if the WQE
 * has one. */
POST_FN uint32_t post_verify(const struct post_expect *x, uint64_t index, const uint32_t w[16],
			     uint64_t *k)
{
	const uint32_t ctrl = post_swap32(w[0]);
	const uint32_t ce = index & x->signal_mask ? 0 : 0x08;
	const uint64_t off = post_swap64(w[4], w[5]) - x->raddr;
	uint32_t bad = 0;

	*k = off / POST_STEP;
	bad |= ctrl >> 8 != (index & 0xffff) ? POST_BAD_INDEX : 0;
	bad |= (ctrl & 0xff) != 0x08 ? POST_BAD_OPCODE : 0;
	bad |= post_swap32(w[1]) != (x->qpn << 8 | post_segments(x)) ? POST_BAD_QPN_DS : 0;
	bad |= (w[2] >> 24 & 0x0c) != ce ? POST_BAD_FLAGS : 0;
	bad |= *k >= x->count || off % POST_STEP ? POST_BAD_RADDR : 0;
	bad |= w[6] != x->rkey ? POST_BAD_RKEY : 0;
	return bad | (x->inl ? post_verify_inline(x, w, *k) : post_verify_data(x, w, *k));
}

/* Checks the first two segments of a one-sided WQE of any opcode that asks for a CQE and
 * whose remote address is raddr. Returns POST_BAD_* bits. */
POST_FN uint32_t post_verify_head(uint64_t index, uint32_t opcode, uint32_t qpn, uint64_t raddr,
				  const uint32_t w[8])
{
	const uint32_t ctrl = post_swap32(w[0]);
	uint32_t bad = 0;

	bad |= ctrl >> 8 != (index & 0xffff) ? POST_BAD_INDEX : 0;
	bad |= (ctrl & 0xff) != opcode ? POST_BAD_OPCODE : 0;
	bad |= post_swap32(w[1]) >> 8 != qpn ? POST_BAD_QPN_DS : 0;
	bad |= (w[2] >> 24 & 0x0c) != 0x08 ? POST_BAD_FLAGS : 0;
	return bad | (post_swap64(w[4], w[5]) != raddr ? POST_BAD_RADDR : 0);
}

/* Sum of 0 to count - 1. Together with the sum of squares it detects a lost message
 * that another one replaces. */
POST_FN uint64_t post_sum(uint64_t count)
{
	return count % 2 ? (count - 1) / 2 * count : count / 2 * (count - 1);
}

/* Sum of the squares of 0 to n - 1 modulo 2^64: (n - 1) n (2n - 1) / 6, where n is `count`.
 * The function divides before it multiplies. */
POST_FN uint64_t post_sum_squares(uint64_t count)
{
	uint64_t f[3] = { count - 1, count, 2 * count - 1 };
	const uint64_t primes[2] = { 2, 3 };

	if (count == 0)
		return 0;
	for (int p = 0; p < 2; p++)
		for (int i = 0; i < 3; i++)
			if (f[i] % primes[p] == 0) {
				f[i] /= primes[p];
				break;
			}
	return f[0] * f[1] * f[2];
}

/* Extends a 16-bit producer index to 64 bits, relative to the consumed index. An index
 * outside the ring is that of an old doorbell and is ignored. */
POST_FN uint64_t post_extend(uint64_t consumed, uint32_t index, uint32_t depth)
{
	const uint16_t ahead = (uint16_t)(index - (uint32_t)consumed);

	return ahead <= depth ? consumed + ahead : consumed;
}

/* Producer index from the first eight bytes of the register, read as a little-endian
 * word. A doorbell contains the producer index; a BlueFlame WQE contains its own index,
 * to which the function adds 1. */
POST_FN uint32_t post_register_index(uint64_t v)
{
	const uint32_t ctrl = post_swap32((uint32_t)v);

	return (ctrl >> 8) + ((ctrl & 0xff) != 0);
}

POST_FN uint32_t post_register_qpn(uint64_t v)
{
	return post_swap32((uint32_t)(v >> 32)) >> 8;
}

/* Bytes 56 to 63 of the CQE of slot `index`, as a little-endian word: opcode and QPN
 * of the WQE, wqe_counter, and op_own with the requester opcode and the owner bit of
 * the lap. */
POST_FN uint64_t post_cqe_tail(uint64_t index, uint32_t depth, uint32_t qpn)
{
	const uint32_t counter = (uint32_t)(index & 0xffff);
	const uint32_t owner = index & depth ? 1 : 0;

	return (uint64_t)(post_swap32(counter << 16) | owner << 24) << 32 |
	       post_swap32(0x08u << 24 | qpn);
}

#endif
