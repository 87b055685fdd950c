/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The NIC of the benchmark of Ethernet sends: what post_consume() does with a send queue. */
#ifndef ETH_NIC_CUH
#define ETH_NIC_CUH

#include "eth_verify.h"
#include "post_nic.cuh"

struct eth_sends_of_queue {
	__device__ static __forceinline__ uint32_t check(const struct post_watch *w, uint64_t i,
							 struct post_seen *mine)
	{
		const uint4 *slot = w->ring + (i & (w->depth - 1)) * 4;
		uint32_t word[16] = { 0 };

#pragma unroll
		for (int s = 0; s < 4; s++) {
			if (s == 3 && w->want.call_packets == 1)
				break;
			const uint4 v = post_read16(slot + s);
			word[4 * s] = v.x, word[4 * s + 1] = v.y;
			word[4 * s + 2] = v.z, word[4 * s + 3] = v.w;
		}
		return eth_verify(&w->want, i, w->depth, word, &mine->sum, &mine->squares);
	}

	/* One WQE of each half of the ring generates a CQE, when all its slots are verified. */
	__device__ static __forceinline__ void complete(const struct post_watch *w, uint64_t from,
							uint64_t to, uint32_t thread,
							uint32_t threads)
	{
		uint64_t h = eth_first_cqe(w->depth, from) + thread, tail;

		for (; (h + 1) * (w->depth / 2) <= to; h += threads)
			if (eth_cqe_due(&w->want, h, w->depth, from, to, &tail))
				*(volatile uint64_t *)(w->cq + (h & (w->depth - 1)) * 64 + 56) =
					tail;
	}
};

#endif
