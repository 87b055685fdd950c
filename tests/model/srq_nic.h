/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC with a shared receive queue, queue 0, and one queue pair with a receive CQ for each
 * thread: part of replay.c. A queue pair has at most one message at a time. It takes the next
 * receive when the message begins, and writes the CQE when the message ends. So receives complete
 * in any order.
 */
#ifndef SRQ_NIC_H
#define SRQ_NIC_H

#define CQS 3

static struct {
	char mem[SRQ_CQES * 64];
	struct doca_gpu_dev_verbs_cq dev;
	uint64_t index[64];   /* receive of each CQE */
	uint64_t made, taken; /* CQEs that the NIC has written, and that threads have used */
	uint64_t busy;	      /* 1 + the receive of the message that has begun; 0: none */
} cqs[CQS];

static uint64_t begun;	  /* messages, of all queue pairs */
static uint64_t again[4]; /* the last receive that a thread has posted or posts in each slot */
static unsigned wants[THREADS]; /* messages that the NIC may begin for the thread, */
static unsigned from[THREADS];	/* and bits: the CQs for their CQEs */

static void nic_writes(struct queue *q, enum loc what, uint64_t i);

static void start_cqs(unsigned num)
{
	unsigned i;

	for (i = 0; i < CQS * SRQ_CQES; i++)
		init(&m, CQE0 + (int)i, 0xf0000000u);
	for (i = 0; i < CQS; i++) {
		cqs[i].dev.cqe_daddr = (void *)cqs[i].mem;
		cqs[i].dev.cqe_num = num;
		cqs[i].dev.cqe_mask = num - 1;
		cqs[i].made = cqs[i].taken = cqs[i].busy = 0;
	}
	begun = 0;
	for (i = 0; i < 4; i++)
		again[i] = UINT64_MAX;
	memset(wants, 0, sizeof(wants));
}

static int is_cqe(const char *c)
{
	return c >= (const char *)cqs && c < (const char *)(cqs + CQS) &&
	       (size_t)(c - (const char *)cqs) % sizeof(cqs[0]) < sizeof(cqs[0].mem);
}

/* The location of word 15 of a CQE, or LOCS. */
static int cqe_loc(const char *c)
{
	int i;

	for (i = 0; i < CQS; i++)
		if (c >= cqs[i].mem && c < cqs[i].mem + sizeof(cqs[i].mem) &&
		    (c - cqs[i].mem) % 64 == 60)
			return CQE0 + i * SRQ_CQES + (int)((c - cqs[i].mem) / 64);
	return LOCS;
}

/* Begins a message for CQ c: takes a receive and reads its WQE. Returns 0 if it cannot. */
static int nic_begins(struct queue *q, unsigned c)
{
	int t;

	for (t = 0; t < THREADS; t++)
		if (wants[t] && from[t] >> c & 1)
			break;
	if (t == THREADS || begun >= q->last)
		return 0;
	wants[t]--;
	cqs[c].busy = ++begun;
	nic_writes(q, READ0, cqs[c].busy - 1);
	stores++;
	return 1;
}

static void nic_ends(struct queue *q, unsigned c)
{
	const unsigned cq = RDMA ? 0 : c;
	const uint64_t i = cqs[c].busy - 1, at = cqs[cq].made++, num = cqs[cq].dev.cqe_num;

	nic_writes(q, PAY0, i);
	fence_rel(&m, NIC, SYS);
	cqs[cq].index[at % 64] = i;
	store(&m, NIC, CQE0 + (int)(cq * SRQ_CQES + at % num),
	      gdk_bswap16((uint16_t)(i % q->depth)) | (at / num & 1) << 24);
	cqs[c].busy = 0;
	stores++;
}

/* Begins or ends a message; at the end of the run, of the first queue pair that has one. */
static void nic_works(void)
{
	unsigned c = any(CQS), n;

	for (n = failure ? 0 : settling ? CQS : 1; n > 0; n--, c = (c + 1) % CQS) {
		if (cqs[c].busy) {
			nic_ends(&queues[0], c);
			return;
		}
		if (nic_begins(&queues[0], c))
			return;
	}
}

#endif
