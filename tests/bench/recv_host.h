/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The host part of the benchmark of receives: results of a run and rows. C and C++. */
#ifndef RECV_HOST_H
#define RECV_HOST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recv_post.h"

#define RECV_RUNS     5
#define RECV_RT_DEPTH 1024u
#define RECV_DELAY_NS 2000

/* The figures of one row. */
struct recv_row {
	const char *name, *unit;
	double value[RECV_RUNS], tail; /* of each run; p99.9 of all samples, 0: none */
	int runs;
	uint64_t verified, wrong, bad;
};

static inline void recv_row_add(struct recv_row *r, const struct recv_seen *s)
{
	r->verified += s->verified;
	r->wrong += s->wrong;
	r->bad |= s->bad;
}

static inline void recv_row_bad(struct recv_row *r, uint64_t bad)
{
	r->wrong += bad != 0;
	r->bad |= bad;
}

static inline int recv_by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Names the bits of enum recv_bad on stderr. */
static inline void recv_row_explain(const struct recv_row *r)
{
	static const char *const what[] = {
		"receives of a wrong size",
		"receives with a wrong key",
		"receives with a wrong address",
		"receives with the content of the lap before",
		"a receive is missing or doubled",
		"no receive or doorbell arrived in time",
		"wrong index or DBREC after the run",
		"a call returned an error",
		"a wait returned a wrong CQE",
		"a wrong ticket",
		"a wrong send WQE",
		"a message has wrong data",
		"a doorbell without its DBREC",
	};

	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++)
		if (r->bad >> i & 1)
			fprintf(stderr, "recv: %s: %s\n", r->name, what[i]);
}

/* Prints a row. Returns 1 if it is wrong. */
static inline int recv_row_print(struct recv_row *r)
{
	recv_row_explain(r);
	qsort(r->value, (size_t)r->runs, sizeof(r->value[0]), recv_by_value);
	printf("recv\t%s\t%s\t%.4g\t%.4g\t%.4g\t", r->name, r->unit, r->value[r->runs / 2],
	       r->value[0], r->value[r->runs ? r->runs - 1 : 0]);
	if (r->tail > 0)
		printf("%.4g", r->tail);
	else
		printf("-");
	printf("\t%llu\t%llu\t0x%llx\n", (unsigned long long)r->verified,
	       (unsigned long long)r->wrong, (unsigned long long)r->bad);
	fflush(stdout);
	return r->wrong != 0;
}

/* Whether the memory of a queue pair and the results of its NIC are those of `count` receives with
 * the numbers 0 to count - 1. Returns RECV_BAD_* bits. */
static inline uint64_t recv_judge(const uint8_t *mem, const struct recv_at *at, uint64_t count,
				  const struct recv_seen *nic)
{
	struct doca_gpu_dev_verbs_qp rq;
	uint32_t dbrec;
	uint64_t bad = 0;

	memcpy(&rq, mem + at->rq_dev, sizeof(rq));
	memcpy(&dbrec, mem + at->dbrec, sizeof(dbrec));
	bad |= rq.sq_rsvd_index != count || post_swap32(dbrec) != (count & 0xffff) ? RECV_BAD_END
										   : 0;
	if (nic)
		bad |= nic->sum != post_sum(count) || nic->squares != post_sum_squares(count)
			       ? RECV_BAD_SET
			       : 0;
	return bad;
}

static inline struct recv_job recv_job_of(uint8_t *mem, const struct recv_at *at, uint64_t count,
					  uint32_t threads)
{
	struct recv_job j;

	memset(&j, 0, sizeof(j));
	j.ring = (const uint64_t *)(void *)(mem + at->rq);
	j.dbrec = (const uint32_t *)(void *)(mem + at->dbrec);
	j.cq = mem + at->rcq;
	j.last = (uint32_t *)(void *)(mem + at->last);
	j.begun = recv_begun(mem, at);
	j.count = count;
	j.depth = at->depth;
	j.exact = threads == 1;
	return j;
}

/* Offset of the buffers for receives. */
static inline size_t recv_buf_at(const struct recv_at *at)
{
	return at->buf + (size_t)RECV_BUFFERS * RECV_LINE;
}

/* The direction from queue pair `qpn` at `from` to the one at `to`. */
static inline struct recv_link recv_link_of(uint8_t *from, uint8_t *to, const struct recv_at *at,
					    uint32_t qpn, uint32_t rounds, uint32_t imm)
{
	struct recv_link l;

	memset(&l, 0, sizeof(l));
	l.sq = from + at->sq;
	l.reg = (const uint64_t *)(void *)(from + at->reg);
	l.sq_dbrec = (const uint32_t *)(void *)(from + at->dbrec + 4);
	l.scq = from + at->scq;
	l.send_buf = (uintptr_t)from + at->buf;
	l.qpn = qpn;
	l.rq = (const uint64_t *)(void *)(to + at->rq);
	l.rq_dbrec = (const uint32_t *)(void *)(to + at->dbrec);
	l.rcq = to + at->rcq;
	l.recv_buf = (uintptr_t)to + recv_buf_at(at);
	l.depth = at->depth;
	l.rounds = rounds;
	l.imm = imm;
	return l;
}

static inline struct recv_side recv_side_of(uint8_t *mem, const struct recv_at *at, uint32_t qpn,
					    uint32_t peer, uint32_t rounds, uint32_t *took)
{
	struct recv_side s;

	memset(&s, 0, sizeof(s));
	s.qp = recv_qp(mem, at);
	s.send_buf = (uintptr_t)mem + at->buf;
	s.recv_buf = (uintptr_t)mem + recv_buf_at(at);
	s.qpn = qpn;
	s.peer_qpn = peer;
	s.rounds = rounds;
	s.took = took;
	return s;
}

#endif
