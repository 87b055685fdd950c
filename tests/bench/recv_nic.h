/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC of the benchmark of receives: one block of the GPU, or one CPU thread. It polls word 0
 * of the DBREC, verifies the receive WQEs that it offers, and writes their CQEs. recv_forward()
 * also takes sends of one queue pair and completes receives of another with them. Every wait is
 * bounded. The formats of mlx5 are written here a second time on purpose (post_verify.h).
 */
#ifndef RECV_NIC_H
#define RECV_NIC_H

#include "recv_rig.h"

#ifdef __CUDACC__
#define RECV_FN		__device__ static __forceinline__
#define RECV_MEET()	__syncthreads()
#define RECV_CLOCK()	((uint64_t)clock64())
#define RECV_ADD(p, v)	((void)atomicAdd((unsigned long long *)(p), (unsigned long long)(v)))
#define RECV_BITS(p, v) ((void)atomicOr((unsigned long long *)(p), (unsigned long long)(v)))
#else
#define RECV_FN		static inline
#define RECV_MEET()	((void)0)
#define RECV_CLOCK()	gdk_now_ns()
#define RECV_ADD(p, v)	((void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED))
#define RECV_BITS(p, v) ((void)__atomic_fetch_or(p, v, __ATOMIC_RELAXED))
#endif

#define RECV_LADDR    0x7e3400000000ull
#define RECV_BYTES    64u
#define RECV_STEP     64u /* the buffer of message k is at RECV_LADDR + k * RECV_STEP */
#define RECV_ROUND    4u  /* WQEs per thread of the NIC between two looks at the DBREC */
#define RECV_SEND     0x0au
#define RECV_SEND_IMM 0x0bu
#define RECV_CQE      2u /* opcodes of receive CQEs */
#define RECV_CQE_IMM  3u
#define RECV_QPN      0x100u
#define RECV_DBREC_NS 5000u /* the DBREC must show a doorbell's index within this time */
#define RECV_MESSAGE  8u    /* bytes of a message of the round trip */
#define RECV_BUFFERS  64u   /* messages of the round trip use as many buffers in turn */

enum recv_bad {
	RECV_BAD_LENGTH = 1 << 0,
	RECV_BAD_KEY = 1 << 1,
	RECV_BAD_ADDR = 1 << 2,
	RECV_BAD_LAP = 1 << 3,	    /* the slot has the content of its previous lap */
	RECV_BAD_SET = 1 << 4,	    /* a receive is missing or doubled */
	RECV_BAD_SILENT = 1 << 5,   /* no receive or no doorbell arrived in time */
	RECV_BAD_END = 1 << 6,	    /* wrong index or DBREC after the run */
	RECV_BAD_STATUS = 1 << 7,   /* a call returned an error */
	RECV_BAD_CQE = 1 << 8,	    /* a wait returned a wrong CQE, or returned before it */
	RECV_BAD_TICKET = 1 << 9,   /* a wrong ticket */
	RECV_BAD_WQE = 1 << 10,	    /* a wrong send WQE */
	RECV_BAD_PAYLOAD = 1 << 11, /* a message arrived with wrong data */
	RECV_BAD_RECORD = 1 << 12,  /* the DBREC does not show the index of the doorbell */
};

/* Results of the NIC and of the posting threads. */
struct recv_seen {
	uint64_t verified, wrong, bad; /* bad: bits of enum recv_bad */
	uint64_t sum, squares;	       /* of the numbers of the messages */
	uint64_t start_ns, end_ns;
};

struct recv_job {
	const uint64_t *ring;
	const uint32_t *dbrec;
	uint8_t *cq;
	uint32_t *last;	 /* of each slot: 1 + number of its last message */
	uint64_t *begun; /* CQEs below this index are written or being written */
	uint64_t count;	 /* receives of the run, less than 2^32 */
	uint32_t depth;
	uint32_t exact;	   /* 1: message k is in slot k */
	uint32_t alone;	   /* 1: serves all receives without waiting for the DBREC */
	uint64_t limit_ns; /* 0: RECV_LIMIT_NS */
};

RECV_FN void recv_wrong(struct recv_seen *s, uint32_t bad)
{
	s->wrong += bad != 0;
	s->bad |= bad;
}

/* Bytes of the message that completes receive `index`; the waiting thread checks it. */
RECV_FN uint32_t recv_bytes(uint64_t index)
{
	return 1 + (uint32_t)(index * 7 & 63);
}

/* Writes the CQE of receive `index` up to its last 8 bytes, or these, which have the owner bit. */
RECV_FN void recv_cqe_body(uint8_t *cq, uint32_t depth, uint64_t index, uint32_t bytes,
			   uint32_t imm_be)
{
	uint64_t *cqe = (uint64_t *)(void *)(cq + (index & (depth - 1)) * 64);

	gdk_st64(cqe + 4, (uint64_t)imm_be << 32, GDK_SCOPE_GPU);
	gdk_st64(cqe + 5, (uint64_t)post_swap32(bytes) << 32, GDK_SCOPE_GPU);
}
RECV_FN void recv_cqe_tail(uint8_t *cq, uint32_t depth, uint64_t index, uint32_t opcode)
{
	uint64_t *cqe = (uint64_t *)(void *)(cq + (index & (depth - 1)) * 64);
	const uint32_t own = opcode << 4 | (index & depth ? 1 : 0);
	const uint32_t counter = post_swap32((uint32_t)(index & 0xffff) << 16);

	gdk_st64(cqe + 7, (uint64_t)(counter | own << 24) << 32 | post_swap32(RECV_QPN),
		 GDK_SCOPE_GPU);
}

/* Polls until the DBREC offers more receives than `done`, and returns their end. Returns `done`
 * after the deadline. */
RECV_FN uint64_t recv_offered(const uint32_t *dbrec, uint64_t done, uint32_t depth,
			      uint64_t deadline)
{
	uint64_t end;
	uint32_t spins;

	for (spins = 0;; spins++) {
		end = post_extend(done, post_swap32(gdk_ld32(dbrec, GDK_SCOPE_SYS)), depth);
		if (end != done || (spins % 64 == 63 && gdk_now_ns() > deadline))
			break;
		gdk_relax(spins);
	}
	/* Acquire: reads the WQEs after the DBREC. */
	gdk_fence_acq(GDK_SCOPE_SYS);
	return end;
}

struct recv_wqe {
	uint64_t head, addr;
	uint32_t last;
};

RECV_FN struct recv_wqe recv_read(const struct recv_job *j, uint64_t index)
{
	const uint64_t slot = index & (j->depth - 1);
	struct recv_wqe w;

	w.head = gdk_ld64(j->ring + 2 * slot, GDK_SCOPE_SYS);
	w.addr = gdk_ld64(j->ring + 2 * slot + 1, GDK_SCOPE_SYS);
	w.last = j->last[slot];
	return w;
}

/* Verifies the receive WQE in slot `index` and stores the number of its message in *k. */
RECV_FN uint32_t recv_verify(const struct recv_job *j, uint64_t index, const struct recv_wqe *w,
			     uint64_t *k)
{
	const uint64_t off = post_swap64((uint32_t)w->addr, (uint32_t)(w->addr >> 32)) - RECV_LADDR;
	uint32_t bad = post_swap32((uint32_t)w->head) != RECV_BYTES ? RECV_BAD_LENGTH : 0;

	*k = off / RECV_STEP;
	bad |= w->head >> 32 != RECV_LKEY ? RECV_BAD_KEY : 0;
	bad |= off % RECV_STEP || *k >= j->count || (j->exact && *k != index) ? RECV_BAD_ADDR : 0;
	bad |= w->last == (uint32_t)*k + 1 ? RECV_BAD_LAP : 0;
	j->last[index & (j->depth - 1)] = (uint32_t)*k + 1;
	return bad;
}

/* Reads and verifies this thread's WQEs of a round, [from, end). The loads are in flight
 * together. */
RECV_FN void recv_round(const struct recv_job *j, struct recv_seen *mine, uint64_t from,
			uint64_t end, uint32_t threads)
{
	struct recv_wqe w[RECV_ROUND];
	uint64_t k;
	uint32_t n;

	GDK_UNROLL
	for (n = 0; n < RECV_ROUND; n++)
		if (from + n * threads < end)
			w[n] = recv_read(j, from + n * threads);
	GDK_UNROLL
	for (n = 0; n < RECV_ROUND; n++) {
		if (from + n * threads >= end)
			break;
		recv_wrong(mine, recv_verify(j, from + n * threads, &w[n], &k));
		mine->sum += k;
		mine->squares += k * k;
	}
}

/*
 * Serves the receives of a run, by `threads` threads of one block. All WQEs of a round are verified
 * before the first CQE of the round is written, because a CQE allows the reuse of its slot and
 * of all earlier ones. A NIC writes CQEs in their order; these threads write those of one round in
 * any order (`begun`). A round has at most half of the ring, so that no slot is used twice before
 * its first CQE is written. box: one word that the block shares.
 */
RECV_FN void recv_serve(const struct recv_job *j, struct recv_seen *out, uint32_t thread,
			uint32_t threads, volatile uint64_t *box)
{
	const uint64_t start = gdk_now_ns();
	const uint64_t deadline = start + (j->limit_ns ? j->limit_ns : RECV_LIMIT_NS);
	const uint32_t most = threads * RECV_ROUND < j->depth / 2 ? threads * RECV_ROUND
								  : j->depth / 2;
	struct recv_seen mine = { 0, 0, 0, 0, 0, 0, 0 };
	uint64_t done = 0, end, i;

	while (done < j->count) {
		if (thread == 0 && j->alone) /* one look, at a DBREC of 0 */
			*box = j->count + gdk_ld32(j->dbrec, GDK_SCOPE_SYS);
		else if (thread == 0)
			*box = recv_offered(j->dbrec, done, j->depth, deadline);
		RECV_MEET();
		end = *box;
		if (end == done)
			break;
		end = end < done + most ? end : done + most;
		recv_round(j, &mine, done + thread, end, threads);
		if (thread == 0)
			gdk_st64(j->begun, end, GDK_SCOPE_GPU);
		RECV_MEET();
		for (i = done + thread; i < end; i += threads)
			recv_cqe_body(j->cq, j->depth, i, recv_bytes(i), 0);
		/* Release: a waiter reads the CQE after its owner bit. */
		gdk_fence_rel(GDK_SCOPE_GPU);
		for (i = done + thread; i < end; i += threads)
			recv_cqe_tail(j->cq, j->depth, i, RECV_CQE);
		done = end;
	}
	if (thread == 0) {
		out->start_ns = start;
		out->end_ns = gdk_now_ns();
		out->verified = done;
		recv_wrong(&mine, done < j->count ? RECV_BAD_SILENT : 0);
	}
	RECV_ADD(&out->sum, mine.sum);
	RECV_ADD(&out->squares, mine.squares);
	RECV_ADD(&out->wrong, mine.wrong);
	RECV_BITS(&out->bad, mine.bad);
}

/* ---- one direction of the round trip ---- */

struct recv_link {
	/* the sending queue pair */
	const uint8_t *sq;
	const uint64_t *reg;
	const uint32_t *sq_dbrec;
	uint8_t *scq;
	uint64_t send_buf;
	uint32_t qpn;
	/* the receiving queue pair */
	const uint64_t *rq;
	const uint32_t *rq_dbrec;
	uint8_t *rcq;
	uint64_t recv_buf;
	uint32_t depth;
	uint32_t rounds, imm;	      /* imm: sends have an immediate value */
	uint64_t delay, record_limit; /* in units of RECV_CLOCK() */
	uint64_t limit_ns;	      /* 0: RECV_LIMIT_NS */
	uint64_t spoil;		      /* tests: changes these bits of each message */
	uint32_t spoil_imm;	      /* tests: changes these bits of each immediate value */
};

/* Payload and immediate value of message i of a direction. */
RECV_FN uint64_t recv_payload(uint32_t qpn, uint64_t i)
{
	return ((uint64_t)qpn << 40) + i * 0x100000001ull + 1;
}
RECV_FN uint32_t recv_imm(uint32_t qpn, uint64_t i)
{
	return (uint32_t)i * 2654435761u + qpn;
}

RECV_FN int recv_await_ring(const struct recv_link *l, uint64_t index, uint64_t deadline,
			    uint32_t *bad)
{
	uint32_t spins;
	uint64_t v;

	for (spins = 0;; spins++) {
		v = gdk_ld64_acq(l->reg, GDK_SCOPE_SYS);
		if (v && post_register_qpn(v) != l->qpn)
			*bad |= RECV_BAD_WQE;
		if (v && (int16_t)(post_register_index(v) - (uint32_t)index) > 0)
			return 1;
		if (spins % 64 == 63 && gdk_now_ns() > deadline)
			return 0;
		gdk_relax(spins);
	}
}

/* Verifies the send WQE `index`, and returns the address of its data in *addr. */
RECV_FN uint32_t recv_verify_send(const struct recv_link *l, uint64_t index, uint32_t *imm,
				  uint64_t *addr)
{
	const uint64_t *w =
		(const uint64_t *)(const void *)(l->sq + (index & (RECV_SQ_DEPTH - 1)) * 64);
	const uint64_t ctrl = gdk_ld64(w, GDK_SCOPE_SYS), flags = gdk_ld64(w + 1, GDK_SCOPE_SYS);
	const uint64_t head = gdk_ld64(w + 2, GDK_SCOPE_SYS), to = gdk_ld64(w + 3, GDK_SCOPE_SYS);
	const uint32_t op = l->imm ? RECV_SEND_IMM : RECV_SEND;
	uint32_t bad = post_swap32((uint32_t)ctrl) != ((uint32_t)(index & 0xffff) << 8 | op);

	bad |= post_swap32((uint32_t)(ctrl >> 32)) != (l->qpn << 8 | 2);
	bad |= ((uint32_t)flags >> 24 & 0x0c) != 0x08;
	bad |= post_swap32((uint32_t)head) != RECV_MESSAGE || head >> 32 != RECV_LKEY;
	*imm = (uint32_t)(flags >> 32);
	*addr = post_swap64((uint32_t)to, (uint32_t)(to >> 32));
	bad |= *addr != l->send_buf + index % RECV_BUFFERS * RECV_LINE;
	return bad ? RECV_BAD_WQE : 0;
}

RECV_FN uint32_t recv_verify_buffer(const struct recv_link *l, uint64_t index, uint64_t *addr)
{
	const uint64_t slot = index & (l->depth - 1);
	const uint64_t head = gdk_ld64(l->rq + 2 * slot, GDK_SCOPE_SYS);
	const uint64_t to = gdk_ld64(l->rq + 2 * slot + 1, GDK_SCOPE_SYS);
	uint32_t bad = post_swap32((uint32_t)head) != RECV_MESSAGE ? RECV_BAD_LENGTH : 0;

	*addr = post_swap64((uint32_t)to, (uint32_t)(to >> 32));
	bad |= head >> 32 != RECV_LKEY ? RECV_BAD_KEY : 0;
	return bad | (*addr != l->recv_buf + index % RECV_BUFFERS * RECV_LINE ? RECV_BAD_ADDR : 0);
}

/* Carries message `index`, after its doorbell. Returns RECV_BAD_* bits. A wrong address is not
 * accessed. */
RECV_FN uint32_t recv_carry(const struct recv_link *l, uint64_t index)
{
	const uint64_t start = RECV_CLOCK();
	uint64_t from, to, data = 0;
	uint32_t imm, bad = recv_verify_send(l, index, &imm, &from);
	int recorded;

	bad |= recv_verify_buffer(l, index, &to);
	if (!(bad & RECV_BAD_WQE))
		data = gdk_ld64((const uint64_t *)(uintptr_t)from, GDK_SCOPE_SYS);
	do
		recorded = (int16_t)(post_swap32(gdk_ld32(l->sq_dbrec, GDK_SCOPE_SYS)) -
				     (uint32_t)index) > 0;
	while (RECV_CLOCK() - start < l->delay ||
	       (!recorded && RECV_CLOCK() - start < l->record_limit));
	if (!(bad & RECV_BAD_ADDR))
		gdk_st64((uint64_t *)(uintptr_t)to, data ^ l->spoil, GDK_SCOPE_SYS);
	recv_cqe_body(l->rcq, l->depth, index, RECV_MESSAGE, imm ^ l->spoil_imm);
	/* Release: a waiter reads the message and the CQE after the owner bit. */
	gdk_fence_rel(GDK_SCOPE_GPU);
	recv_cqe_tail(l->rcq, l->depth, index, l->imm ? RECV_CQE_IMM : RECV_CQE);
	gdk_st64((uint64_t *)(void *)(l->scq + (index & (RECV_SQ_DEPTH - 1)) * 64 + 56),
		 post_cqe_tail(index, RECV_SQ_DEPTH, l->qpn), GDK_SCOPE_GPU);
	return bad | (recorded ? 0 : RECV_BAD_RECORD);
}

/* One thread: carries all messages of one direction, each to a receive that is offered. */
RECV_FN void recv_forward(const struct recv_link *l, struct recv_seen *out)
{
	const uint64_t deadline = gdk_now_ns() + (l->limit_ns ? l->limit_ns : RECV_LIMIT_NS);
	struct recv_seen mine = { 0, 0, 0, 0, 0, 0, 0 };
	uint64_t i, offered = 0;
	uint32_t bad = 0;

	for (i = 0; i < l->rounds; i++) {
		if (!recv_await_ring(l, i, deadline, &bad))
			break;
		if (offered <= i)
			offered = recv_offered(l->rq_dbrec, i, l->depth, deadline);
		if (offered <= i)
			break;
		recv_wrong(&mine, recv_carry(l, i));
	}
	recv_wrong(&mine, bad | (i < l->rounds ? RECV_BAD_SILENT : 0));
	mine.verified = i;
	*out = mine;
}

#endif
