/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC of the posting benchmark: a kernel that is resident beside the one
 * that posts, with a team of threads for each QP. It watches the register (or the
 * proxy's counter, or the record), verifies every WQE that was rung, and
 * completes it. Registers in host memory are watched by a thread of the CPU, as the proxy
 * watches its counter, which passes them on through a line of their own: for a NIC is told,
 * and does not ask. If the GPU asked, every store to the register, and with it the fence
 * behind it, would wait for the answers to cross PCIe.
 */
#ifndef POST_NIC_CUH
#define POST_NIC_CUH

#include <cooperative_groups.h>

#include "post_verify.h"

#define POST_POISON   0xeeeeeeeeeeeeeeeeull
#define POST_PAUSE_NS 1000
#define POST_QUIET_NS 20000 /* of a register, then more is looked for elsewhere */
#define POST_ROUND    2	    /* WQEs per thread between two looks at the register */

enum post_source { POST_REGISTER, POST_RECORD, POST_COUNTER };

struct post_watch {
	struct post_expect want;
	const uint4 *ring;
	uint8_t *cq;
	const uint64_t *reg; /* or where it is passed on */
	const uint32_t *record;
	const uint64_t *submitted; /* NULL, or where to look when the register is silent */
	uint32_t recorded;	   /* or that the record says */
	const uint64_t *beat;	   /* rounds of who passes registers on, or NULL */
	uint32_t depth;
	uint32_t collapsed; /* one CQE for all, at cq */
	enum post_source source;
};

/* Filled by the consumer, for one QP. */
struct post_seen {
	uint64_t verified, mismatches, bad; /* bad: enum post_bad */
	uint64_t sum, squares;
	uint64_t late; /* times the register was silent although more was submitted */
	uint64_t start_ns, end_ns;
};

struct post_clock {
	uint64_t start_ns, end_ns; /* of the posting kernel */
};

__device__ static __forceinline__ uint64_t post_now(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

__device__ static __forceinline__ uint64_t post_look(const struct post_watch *w)
{
	if (w->source == POST_RECORD)
		return *(const volatile uint32_t *)w->record;
	return *(const volatile uint64_t *)w->reg;
}

/* Producer index, or `consumed` when nothing new is said. */
__device__ static uint64_t post_decode(const struct post_watch *w, uint64_t v, uint64_t consumed,
				       uint64_t *bad)
{
	if (w->source == POST_COUNTER)
		return v > consumed ? v : consumed;
	if (w->source == POST_RECORD)
		return post_extend(consumed, post_swap32((uint32_t)v), w->depth);
	if (v == 0)
		return consumed;
	if (post_register_qpn(v) != w->want.qpn)
		*bad |= POST_BAD_DOORBELL;
	return post_extend(consumed, post_register_index(v), w->depth);
}

__device__ static __forceinline__ uint64_t post_recorded(const struct post_watch *w,
							 uint64_t consumed)
{
	return post_extend(consumed, post_swap32(*(const volatile uint32_t *)w->record), w->depth);
}

/* Has who passes registers on been twice around since it was silent? Else what it read before,
 * and passes on late, could be taken for an index of the next lap. *from: 0, then when. */
__device__ static bool post_passed(const struct post_watch *w, uint64_t *from)
{
	const uint64_t beat = w->beat ? *(const volatile uint64_t *)w->beat : ~0ull;

	if (*from == 0)
		*from = beat;
	return !w->beat || beat - *from >= 2;
}

/* Waits for more than `consumed`; v is the last look, possibly an old one. A
 * register in memory shows only the last doorbell. Where doorbells may overtake
 * each other, as they may on their way to a NIC, which ignores the older, the
 * newest is found at `submitted`, or in the record, after a while of silence.
 * What the register held then is *stale: it says nothing until it is something else, however
 * far the record leads meanwhile. */
__device__ static uint64_t post_await(const struct post_watch *w, uint64_t v, uint64_t consumed,
				      uint64_t deadline, struct post_seen *seen, uint64_t *stale)
{
	const uint64_t pause = w->submitted ? POST_QUIET_NS / 2 : POST_QUIET_NS;
	uint64_t to, from = 0, quiet = post_now() + pause, submitted = 0;

	while (v == *stale || (to = post_decode(w, v, consumed, &seen->bad)) == consumed) {
		const uint64_t now = post_now();

		to = consumed;
		if (now > deadline)
			break;
		if ((w->submitted || (w->recorded && consumed)) && now > quiet &&
		    post_passed(w, &from)) {
			to = w->recorded ? post_recorded(w, consumed) : submitted;
			if (to > consumed) {
				seen->late++;
				*stale = v;
				break;
			}
			/* Raised before the fence that the WQEs need: it counts as it was. */
			if (w->submitted) {
				submitted = *(const volatile uint64_t *)w->submitted;
				quiet = now + pause;
			}
		}
		/* A NIC is told: it does not keep the bus busy with questions. */
		__nanosleep(POST_PAUSE_NS);
		v = post_look(w);
	}
	/* Doorbell, then WQEs: the poster stored them in the other order. */
	__threadfence();
	return to > w->want.count ? w->want.count : to;
}

/* As a read over PCIe it leaves no copy in this half of the second-level cache, for which the
 * next WQE of the slot would have to wait. */
__device__ static __forceinline__ uint4 post_read16(const uint4 *p)
{
	uint4 v;

	asm volatile("ld.relaxed.sys.v4.u32 {%0, %1, %2, %3}, [%4];"
		     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
		     : "l"(p)
		     : "memory");
	return v;
}

__device__ static __forceinline__ uint32_t post_check_slot(const struct post_watch *w, uint64_t i,
							   uint64_t *k)
{
	const uint4 *wqe = w->ring + (i & (w->depth - 1)) * 4;
	uint32_t word[16] = { 0 };

#pragma unroll
	for (int s = 0; s < 4; s++) {
		if (s == 3 && post_segments(&w->want) < 4)
			break;
		const uint4 v = post_read16(wqe + s);
		word[4 * s] = v.x, word[4 * s + 1] = v.y;
		word[4 * s + 2] = v.z, word[4 * s + 3] = v.w;
	}
	return post_verify(&w->want, i, word, k);
}

/* CQEs of [from, to), by all threads; of a collapsed CQ only the last one stays. */
__device__ static void post_complete(const struct post_watch *w, uint64_t from, uint64_t to,
				     uint32_t thread, uint32_t threads)
{
	if (!w->collapsed) {
		for (uint64_t i = from + thread; i < to; i += threads)
			*(volatile uint64_t *)(w->cq + (i & (w->depth - 1)) * 64 + 56) =
				post_cqe_tail(i, w->depth, w->want.qpn);
		return;
	}
	const uint64_t last = (to - 1) & ~(uint64_t)w->want.signal_mask;

	if (thread == 0 && last >= from)
		*(volatile uint64_t *)(w->cq + 56) = post_cqe_tail(last, w->depth, w->want.qpn);
}

__device__ static void post_report(struct post_seen *out, const struct post_seen *mine)
{
	atomicAdd((unsigned long long *)&out->mismatches, mine->mismatches);
	atomicOr((unsigned long long *)&out->bad, mine->bad);
	atomicAdd((unsigned long long *)&out->sum, mine->sum);
	atomicAdd((unsigned long long *)&out->squares, mine->squares);
	atomicAdd((unsigned long long *)&out->late, mine->late);
}

/*
 * The threads that serve one QP: a cluster of blocks, or a part of a block that fills
 * its multiprocessor, so that those who post find others free.
 */
struct post_team {
	uint32_t qp, blocks, threads, thread;
	uint32_t part; /* of the block */
};

#define POST_PARTS 4 /* of a block, at most */

__device__ static __forceinline__ struct post_team post_team_of(uint32_t blocks, uint32_t parts)
{
	const uint32_t size = blockDim.x / parts;
	struct post_team t;

	t.blocks = blocks;
	t.threads = blocks * size;
	t.part = threadIdx.x / size;
	t.thread = blockIdx.x % blocks * size + threadIdx.x % size;
	t.qp = blockIdx.x / blocks * parts + t.part;
	return t;
}

__device__ static __forceinline__ void post_meet(const struct post_team *t)
{
	if (t->blocks > 1)
		cooperative_groups::this_cluster().sync();
	else
		asm volatile("bar.sync %0, %1;" ::"r"(t->part + 1), "r"(t->threads) : "memory");
}

/*
 * All WQEs of a round are read and judged before the first of their CQEs is written: a
 * CQE says of every earlier slot too that it may be used again. Each thread's verdict
 * depends on what it read, and it arrives at the barrier after it.
 */
__global__ void __launch_bounds__(1024)
	post_consume(const struct post_watch *watches, struct post_seen *seen,
		     volatile uint32_t *up, uint64_t limit_ns, uint32_t blocks, uint32_t parts)
{
	const struct post_team t = post_team_of(blocks, parts);
	const uint64_t deadline = post_now() + limit_ns;
	struct post_seen *out = &seen[t.qp], mine = {};
	__shared__ struct post_watch watch[POST_PARTS];
	__shared__ uint64_t rung[POST_PARTS];
	const struct post_watch &w = watch[t.part];
	uint64_t consumed = 0, look = 0, stale = POST_POISON;

	if (t.thread % (t.threads / blocks) == 0)
		watch[t.part] = watches[t.qp];
	post_meet(&t);
	if (threadIdx.x == 0)
		up[blockIdx.x] = 1;
	if (t.thread == 0)
		out->start_ns = post_now();
	while (consumed < w.want.count) {
		if (t.thread == 0) {
			const uint64_t to = post_await(&w, look, consumed, deadline, &mine, &stale);

			if (blocks == 1)
				rung[t.part] = to;
			else
				for (uint32_t b = 0; b < blocks; b++)
					*cooperative_groups::this_cluster().map_shared_rank(
						&rung[0], b) = to;
		}
		post_meet(&t);
		const uint64_t most = consumed + POST_ROUND * t.threads;
		const uint64_t to = rung[t.part] < most ? rung[t.part] : most;
		uint32_t wrong = 0;

		if (to == consumed)
			break;
		if (t.thread == 0)
			look = post_look(&w); /* arrives while the WQEs are checked */
#pragma unroll 2
		for (uint64_t i = consumed + t.thread; i < to; i += t.threads) {
			uint64_t k;
			const uint32_t bad = post_check_slot(&w, i, &k);

			wrong |= bad;
			mine.mismatches += bad != 0;
			mine.sum += k;
			mine.squares += k * k;
		}
		mine.bad |= wrong;
		if (wrong == ~0u) /* never; so that all was read before the barrier */
			rung[t.part] = 0;
		post_meet(&t);
		post_complete(&w, consumed, to, t.thread, t.threads);
		consumed = to;
	}
	if (t.thread == 0) {
		out->end_ns = post_now();
		out->verified = consumed;
	}
	post_report(out, &mine);
	post_meet(&t); /* nobody leaves while others may write to its shared memory */
}

#endif
