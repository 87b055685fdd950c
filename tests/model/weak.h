/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Release/acquire memory as in views.h, for the device code itself: more locations, longer
 * histories, and scopes. Each location keeps all values that were stored to it, in order. A thread
 * has, for each location, the oldest value that it may still read. A relaxed load may return this
 * value or any newer one, unless fences forbid it.
 *
 * Scopes. All user threads are in one block, or each in its own; the NIC is beyond the GPU. A value
 * carries one view for each scope: what a thread gains that reads the value, is within this scope
 * of the writer, and acquires with a fence of this scope or a wider one.
 *
 * gdk_fence_load_store() is a branch on a GPU, so it gives no right to newer values. But stores
 * after it come after what the thread's loads have seen (ordered), which is visible in the second
 * level cache if its writer released it at that scope (passed): who sees the later store sees it,
 * too.
 */
#ifndef WEAK_H
#define WEAK_H

#include <stdint.h>

#if SRQ
#define SRQ_CQES 4 /* of each of the three CQs */
enum { CQES = 3 * SRQ_CQES };
#else
enum { CQES = 4 };
#endif
#if SRQ || RDMA
enum { MAILS = 3, VIEW = 64 };
#else
enum { MAILS = 0, VIEW = 32 * QUEUES };
#endif
enum { WORDS = RDMA ? 8 : 0 }; /* of the objects of the RDMA library */

enum loc {
	W0,
	W1,
	LEFT,
	WANTED,
	RUNG,
	PARKED,
	DONE, /* completed */
	STATUS,
	CQE_CI,
	UNEVEN,
	LONG_WQE,
	BF_HALF,
	DBREC,
	REG,
	RSVD,  /* sq_rsvd_index of a shared receive queue or of the RDMA library */
	INDEX, /* of gdk_index_advance() */
	MAIL0,
	WORD0 = MAIL0 + MAILS,
	WQE0 = WORD0 + WORDS, /* four locations each: slots of the ring */
	READ0 = WQE0 + 4,     /* the NIC has read the WQE */
	PAY0 = READ0 + 4,     /* payload */
	CQE0 = PAY0 + 4,      /* slots of the CQs */
	QUEUE_LOCS = CQE0 + CQES,
	LOCS = QUEUES * QUEUE_LOCS /* queue 1 has the same locations, behind those of queue 0 */
};
enum { THREADS = 3, NIC = 3, VIEWERS, LONGEST = 250 };
enum { CTA, GPU, SYS, SCOPES };

typedef uint8_t view __attribute__((vector_size(VIEW)));
_Static_assert(LOCS <= sizeof(view), "one byte for each location");

struct message {
	uint64_t val;
	view with[SCOPES];
};

struct memory {
	view cur[VIEWERS];	      /* oldest values that the thread may still read */
	view acq[VIEWERS][SCOPES];    /* what the next acquire fence of the scope adds to cur */
	view rel[VIEWERS][SCOPES];    /* what stores carry: cur at the last release fence */
	view seen[VIEWERS][SCOPES];   /* what the values that the thread loaded carry */
	view passed[VIEWERS][SCOPES]; /* seen at the last gdk_fence_load_store() */
	view ordered[VIEWERS];	      /* what later stores come after */
	view sc;
	unsigned n[LOCS]; /* number of values in the history */
	struct message history[LOCS][LONGEST];
};

static view join(view a, view b)
{
	const view larger = (view)(a > b);

	return (a & larger) | (b & ~larger);
}

static view single(int loc, unsigned place)
{
	view v = { 0 };

	v[loc] = (uint8_t)place;
	return v;
}

static void saw(struct memory *m, int t, int loc, unsigned place, int scope)
{
	int s;

	m->cur[t] = join(m->cur[t], single(loc, place));
	m->acq[t][scope] = join(m->acq[t][scope], m->history[loc][place].with[scope]);
	for (s = scope; s < SCOPES; s++)
		m->seen[t][s] = join(m->seen[t][s], m->history[loc][place].with[s]);
}

static void init(struct memory *m, int loc, uint64_t v)
{
	memset(&m->history[loc][0], 0, sizeof(m->history[loc][0]));
	m->history[loc][0].val = v;
	m->n[loc] = 1;
}

static uint64_t newest(const struct memory *m, int loc)
{
	return m->history[loc][m->n[loc] - 1].val;
}

static const struct message *last_message(const struct memory *m, int loc)
{
	return &m->history[loc][m->n[loc] - 1];
}

/* The oldest value that a thread with view v may read. */
static uint64_t oldest(const struct memory *m, view v, int loc)
{
	return m->history[loc][v[loc]].val;
}

/* scope: the narrowest that contains writer and reader. */
static uint64_t load(struct memory *m, int t, int loc, unsigned place, int scope)
{
	saw(m, t, loc, place, scope);
	return m->history[loc][place].val;
}

/* A load with acquire order gains what its value carries, but not, as a fence, what the values of
 * earlier loads carry. */
static void acquire(struct memory *m, int t, int loc, unsigned place, int scope)
{
	m->cur[t] = join(m->cur[t], m->history[loc][place].with[scope]);
	m->ordered[t] = join(m->ordered[t], m->cur[t]);
}

/* carried: a message whose views the new one carries, too, or NULL. */
static void append(struct memory *m, int t, int loc, uint64_t v, const struct message *carried)
{
	const unsigned place = m->n[loc]++;
	struct message *msg = &m->history[loc][place];
	int s;

	if (place >= LONGEST - 1u) {
		fail("the history of a location is too short");
		m->n[loc]--;
	}
	msg->val = v;
	for (s = 0; s < SCOPES; s++) {
		msg->with[s] = join(join(m->rel[t][s], m->passed[t][s]), single(loc, place));
		if (carried)
			msg->with[s] = join(msg->with[s], carried->with[s]);
	}
	m->cur[t] = join(m->cur[t], single(loc, place));
}

static void store(struct memory *m, int t, int loc, uint64_t v)
{
	append(m, t, loc, v, NULL);
}

static uint64_t modify(struct memory *m, int t, int loc, uint64_t v, int scope)
{
	const struct message old = *last_message(m, loc);

	saw(m, t, loc, m->n[loc] - 1, scope);
	append(m, t, loc, v, &old);
	return old.val;
}

static view gained(const struct memory *m, int t, int scope)
{
	view v = m->cur[t];
	int s;

	for (s = 0; s <= scope; s++)
		v = join(v, m->acq[t][s]);
	return v;
}

static void fence_acq(struct memory *m, int t, int scope)
{
	m->cur[t] = gained(m, t, scope);
	m->ordered[t] = join(m->ordered[t], m->cur[t]);
}

static void fence_rel(struct memory *m, int t, int scope)
{
	int s;

	for (s = 0; s <= scope; s++)
		m->rel[t][s] = m->cur[t];
	m->ordered[t] = join(m->ordered[t], m->cur[t]);
}

static void fence_load_store(struct memory *m, int t)
{
	memcpy(m->passed[t], m->seen[t], sizeof(m->seen[t]));
	m->ordered[t] = join(m->ordered[t], gained(m, t, SYS));
}

/* narrow: the narrowest scope that contains all user threads. */
static void fence_sc(struct memory *m, int t, int scope, int narrow)
{
	fence_acq(m, t, scope);
	if (scope >= narrow)
		m->sc = m->cur[t] = join(m->cur[t], m->sc);
	fence_rel(m, t, scope);
}

/* All threads meet at a barrier of this scope. */
static void meet(struct memory *m, int scope)
{
	view all = m->cur[0];
	int t;

	for (t = 1; t < THREADS; t++)
		all = join(all, m->cur[t]);
	for (t = 0; t < THREADS; t++) {
		m->cur[t] = join(all, gained(m, t, SYS));
		fence_rel(m, t, scope);
	}
}

#endif
