/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC of the posting benchmark: a kernel that runs concurrently with the posting
 * kernel. A team of threads per QP polls the doorbell register (or the proxy's
 * counter, or the DBREC), verifies every rung WQE and writes its CQE.
 *
 * Registers in host memory are polled by a CPU thread, which copies them for the
 * kernel. If the GPU polled them across PCIe, every store to a register, and the fence
 * after it, would wait for the responses. A real NIC does not poll.
 */
#ifndef POST_NIC_CUH
#define POST_NIC_CUH

#include <cooperative_groups.h>

#include "post_cuda.cuh"
#include "post_verify.h"

#define POST_POISON   0xeeeeeeeeeeeeeeeeull
#define POST_PAUSE_NS 1000
/* ns without a doorbell after which the consumer also checks `submitted` or the DBREC */
#define POST_QUIET_NS 20000
#define POST_ROUND    2 /* WQEs per thread between two polls of the register */

enum post_source { POST_REGISTER, POST_RECORD, POST_COUNTER };

struct post_watch {
	struct post_expect want;
	const uint4 *ring;
	uint8_t *cq;
	const uint64_t
		*reg; /* the register or the proxy's counter, or the CPU thread's copy of it */
	const uint32_t *record;
	const uint64_t *submitted; /* index to check if no doorbell arrives; NULL: none */
	uint32_t recorded;	   /* 1: check the DBREC if no doorbell arrives */
	/* Number of rounds that the CPU thread has finished. NULL: no CPU thread copies the
	 * registers. */
	const uint64_t *beat;
	uint64_t slots; /* that all messages take */
	uint32_t depth;
	uint32_t collapsed; /* one CQE for all WQEs, at cq */
	enum post_source source;
};

/* Results of the consumer for one QP. */
struct post_seen {
	uint64_t verified, mismatches, bad; /* bad: bits of enum post_bad */
	uint64_t sum, squares;		    /* of the numbers of the verified messages */
	uint64_t late; /* times that no doorbell arrived although more WQEs were submitted */
	uint64_t start_ns, end_ns;
};

struct post_clock {
	uint64_t start_ns, end_ns; /* of the posting kernel */
};

__device__ static __forceinline__ uint64_t post_look(const struct post_watch *w)
{
	if (w->source == POST_RECORD)
		return *(const volatile uint32_t *)w->record;
	return *(const volatile uint64_t *)w->reg;
}

/* Returns the producer index that v, a value of the polled word, stands for, or `consumed`
 * if it is not a new one. */
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

/* Returns whether the CPU thread that copies registers has finished two rounds since
 * *from was set. Before that, it may still copy an old register value, which could be
 * taken for an index of the next lap. The caller sets *from to 0; the first call stores
 * the current round there. Without a CPU thread, returns true. */
__device__ static bool post_passed(const struct post_watch *w, uint64_t *from)
{
	const uint64_t beat = w->beat ? *(const volatile uint64_t *)w->beat : ~0ull;

	if (*from == 0)
		*from = beat;
	return !w->beat || beat - *from >= 2;
}

/* Waits until the producer index exceeds `consumed` and returns it (at most the number of
 * slots). Returns `consumed` after the deadline. v: last value read from the polled
 * word, possibly an old one.
 * A register in memory holds only the last doorbell written. Several threads can write
 * their doorbells out of order; a NIC would ignore the older one. In that case, after a
 * while without a new doorbell, the function takes the newest index from `submitted` or
 * from the DBREC. It stores the value that the register holds at that time in *stale and
 * ignores this value until the register changes, however far the DBREC gets ahead. */
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
			/* The index is raised before the fence that orders the WQEs, so use the
			 * value read one pause earlier. */
			if (w->submitted) {
				submitted = *(const volatile uint64_t *)w->submitted;
				quiet = now + pause;
			}
		}
		/* pause, so that polling does not load the bus */
		__nanosleep(POST_PAUSE_NS);
		v = post_look(w);
	}
	/* Orders the read of the doorbell before the reads of the WQEs. Pairs with the fence
	 * between the poster's stores to the WQEs and its doorbell. */
	__threadfence();
	return to > w->slots ? w->slots : to;
}

/* Reads as a NIC does across PCIe: the load leaves no copy in this half of the L2 cache,
 * because a copy would delay the next WQE of the slot. */
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

/* Writes the CQEs of slots [from, to); each thread of the team writes a part of them. In a
 * collapsed CQ, thread 0 writes the CQE of the last signaled slot. */
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

/* What the consumer does with the WQEs of a queue pair, one slot each. */
struct post_puts_of_qp {
	/* Checks a slot and counts its messages. Returns the bits of what is wrong. */
	__device__ static __forceinline__ uint32_t check(const struct post_watch *w, uint64_t i,
							 struct post_seen *mine)
	{
		uint64_t k;
		const uint32_t bad = post_check_slot(w, i, &k);

		mine->sum += k;
		mine->squares += k * k;
		return bad;
	}
	__device__ static __forceinline__ void complete(const struct post_watch *w, uint64_t from,
							uint64_t to, uint32_t thread,
							uint32_t threads)
	{
		post_complete(w, from, to, thread, threads);
	}
};

__device__ static void post_report(struct post_seen *out, const struct post_seen *mine)
{
	atomicAdd((unsigned long long *)&out->mismatches, mine->mismatches);
	atomicOr((unsigned long long *)&out->bad, mine->bad);
	atomicAdd((unsigned long long *)&out->sum, mine->sum);
	atomicAdd((unsigned long long *)&out->squares, mine->squares);
	atomicAdd((unsigned long long *)&out->late, mine->late);
}

/*
 * The threads that serve one QP: a cluster of blocks, one block, or a part of a block. A
 * block fills its multiprocessor, so that the posting kernel runs on others. The team has
 * `threads` threads in `blocks` blocks; `thread` is the index of the calling thread.
 */
struct post_team {
	uint32_t qp, blocks, threads, thread;
	uint32_t part; /* index of the part within the block */
};

#define POST_PARTS 4 /* largest number of parts of a block */

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
 * Consumes WQEs in rounds. All WQEs of a round are read and verified before the first
 * CQE of the round is written, because a CQE allows the reuse of its slot and of all
 * earlier ones. Each thread uses the words that it read before it arrives at the barrier,
 * so that its reads are complete at that time. The kernel ends when all messages are
 * consumed, or at the deadline. KIND checks and completes: post_puts_of_qp, or the struct
 * for other WQEs.
 */
template <class KIND>
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
	while (consumed < w.slots) {
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
			look = post_look(&w); /* the value arrives while the WQEs are verified */
#pragma unroll 2
		for (uint64_t i = consumed + t.thread; i < to; i += t.threads) {
			const uint32_t bad = KIND::check(&w, i, &mine);

			wrong |= bad;
			mine.mismatches += bad != 0;
		}
		mine.bad |= wrong;
		if (wrong == ~0u) /* never true: makes the barrier depend on all reads */
			rung[t.part] = 0;
		post_meet(&t);
		KIND::complete(&w, consumed, to, t.thread, t.threads);
		consumed = to;
	}
	if (t.thread == 0) {
		out->end_ns = post_now();
		out->verified = consumed;
	}
	post_report(out, &mine);
	post_meet(&t); /* a block must not exit while others can write to its shared memory */
}

#endif
