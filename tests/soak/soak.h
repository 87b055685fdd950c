/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* For soak.c: operation, size and content of message n of a queue pair, computed from
 * the seed, and the layout of memory on both sides. */
#ifndef SOAK_H
#define SOAK_H

#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_QPS	    32u
#define SLOTS	    64u /* places for messages per queue pair in each of the three areas */
#define RECVS	    32u /* receives posted per queue pair */
#define MAX_WINDOW  32u
#define BIG	    65536u /* largest message in bytes */
#define GUARD	    64u	   /* guard bytes on each side of a WRITE */
#define SLOT	    (BIG + 2 * GUARD)
#define GUARD_BYTE  0xa5
#define ACK_TIMEOUT 13 /* 34 ms, because a peer may wait that long for a CPU */
#define MAX_RD	    8
#define INLINE	    64u /* largest inline message in bytes; one small message in five is inline */

enum op { WRITE, READ, WRITE_IMM, SEND, FETCH_ADD, CMP_SWAP };

struct message {
	enum op op;
	uint32_t len;
	uint64_t number; /* number of the message that determines the content */
	bool quiet;	 /* unsignaled */
};

struct side {
	union ibv_gid gid;
	uint64_t base;
	uint32_t rkey;
	uint32_t qpn[MAX_QPS];
};

struct run {
	uint64_t messages, seed;
	unsigned qps, window, patience;
	bool server;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[MAX_QPS];
	struct ibv_mr *mr;
	/* shadow (client): expected content of the server's landing places */
	uint8_t *mem, *shadow;
	int gid_index, sock;
	struct side self, peer;
	/* client, per queue pair: messages posted, messages completed, completed additions to the
	 * queue pair's own word, CMP_SWAPs posted */
	uint64_t posted[MAX_QPS], done[MAX_QPS], adds[MAX_QPS], swaps[MAX_QPS];
	/* server, per queue pair: next message to arrive, receives completed; client: completed
	 * additions to the shared word */
	uint64_t next[MAX_QPS], taken[MAX_QPS], expected;
};

#define DIE(...) \
	do { \
		fprintf(stderr, "soak: "); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		exit(1); \
	} while (0)

/* ---- operation, size and content of message n ---- */

static inline uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ull + b * 0xbf58476d1ce4e5b9ull + c;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint32_t size_of(uint64_t r)
{
	uint32_t kind = r % 1000, n = r >> 32;

	if (kind < 10)
		return 0;
	if (kind < 650)
		return 1 + n % 64;
	if (kind < 930)
		return 1 + n % 1024;
	if (kind < 995)
		return 1 + n % 8192;
	return 1 + n % BIG;
}

static inline uint64_t share(const struct run *r, unsigned q)
{
	return r->messages / r->qps + (q < r->messages % r->qps);
}

/* An even message determines its pair: a WRITE is followed by the READ of its data. */
static inline struct message message(const struct run *r, unsigned q, uint64_t n)
{
	static const enum op kinds[] = { WRITE, WRITE, WRITE, WRITE_IMM, WRITE_IMM,
					 SEND,	SEND,  SEND,  FETCH_ADD, CMP_SWAP };
	uint64_t h = mix(r->seed, q + 1, n & ~1ull);
	struct message m = { .number = n, .len = size_of(h) };

	m.op = kinds[(h >> 20) % 10];
	if (m.op == WRITE) {
		m.number = n & ~1ull;
		if (n & 1)
			m.op = READ;
		m.quiet = !(n & 1) && h >> 60 < 4 && n + 1 < share(r, q);
	} else if (n & 1) {
		m.len = size_of(mix(r->seed, q + 1, n));
	}
	if (m.op == FETCH_ADD || m.op == CMP_SWAP)
		m.len = 8;
	return m;
}

static inline void fill(const struct run *r, unsigned q, const struct message *m, uint8_t *p)
{
	uint64_t x = mix(r->seed ^ 0x5eed, q + 1, m->number);
	uint32_t i;

	for (i = 0; i + 8 <= m->len; i += 8) {
		memcpy(p + i, &x, 8);
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	}
	memcpy(p + i, &x, m->len - i);
}

static inline void check(const struct run *r, unsigned q, const struct message *m, const uint8_t *p)
{
	static uint8_t want[BIG];
	uint32_t i;

	fill(r, q, m, want);
	if (!memcmp(want, p, m->len))
		return;
	for (i = 0; want[i] == p[i]; i++)
		;
	DIE("queue pair %u message %" PRIu64 ": byte %u of %u is 0x%02x (expected 0x%02x)", q,
	    m->number, i, m->len, p[i], want[i]);
}

/* ---- memory: the same layout on both sides ---- */

/* Offset of the place of message n in flight (client) or of receive buffer n (server). */
static inline uint64_t slot(unsigned q, uint64_t n)
{
	return ((uint64_t)q * SLOTS + n % SLOTS) * SLOT;
}

static inline uint64_t area(const struct run *r)
{
	return (uint64_t)r->qps * SLOTS * SLOT;
}

/* Offset where WRITEs land in the server, behind the slots. */
static inline uint64_t landing(const struct run *r, unsigned q, uint64_t n)
{
	return area(r) + slot(q, n);
}

/*
 * Offset where the WRITE_IMM that takes receive k lands in the server. Only its last
 * packet takes the receive, so the place must already be free when the first one
 * arrives. It is: at most RECVS receives are posted and MAX_WINDOW messages in flight,
 * so the message that used the place SLOTS receives ago has been checked.
 */
static inline uint64_t imm_place(const struct run *r, unsigned q, uint64_t k)
{
	return 2 * area(r) + slot(q, k);
}
_Static_assert(RECVS + MAX_WINDOW <= SLOTS, "places would be reused too early");

/* Offset of the words for atomics in the server, at the end of its memory. */
static inline uint64_t words(const struct run *r)
{
	return 3 * area(r);
}

static inline uint64_t total(const struct run *r)
{
	return words(r) + 4096;
}

#endif
