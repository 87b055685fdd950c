/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Release/acquire memory as C11 and PTX have it, for the model checker: every
 * location keeps all values that were stored to it, in order, and a thread has
 * for each location the oldest one that it may still read. A relaxed load reads
 * any of those that are left, so loads are early, late or stale and stores
 * arrive in any order, unless a fence says otherwise. A read-modify-write acts
 * on the newest value and passes on what the older ones carried.
 *
 * A view is 16 fields of 4 bits, one per location: the place in its history.
 */
#ifndef VIEWS_H
#define VIEWS_H

typedef unsigned long long view;
#define VIEW_LOW 0x0f0f0f0f0f0f0f0full
#define VIEW_TOP 0x8080808080808080ull

#ifndef VIEWS_VALUE
#define VIEWS_VALUE  unsigned char
#define VIEWS_PARKED 1
#endif
typedef VIEWS_VALUE value;

/* Only the code itself, not its model, has the last one: nothing depends on it. */
enum loc { W0, W1, LEFT, WANTED, RUNG, DBREC, DB, DONE, WQE0, WQE1, WQE2, WQE3, PARKED, LOCS };
enum { THREADS = 3, NIC = 3, VIEWERS, CELLS = 84 + VIEWS_PARKED };

/* Where the history of each location starts, and the end of the last. */
static const unsigned char first[LOCS + 1] = { 0,  15, 29, 39, 49, 55, 61,
					       67, 73, 77, 80, 82, 84, CELLS };

struct memory {
	view with[CELLS];  /* what who reads the value and acquires then knows */
	view cur[VIEWERS]; /* what the thread may not read behind */
	view acq[VIEWERS]; /* and after an acquire fence */
	view rel[VIEWERS]; /* what its stores since the last release fence carry */
	view sc;	   /* what the fences of sequential consistency agree on */
	value val[CELLS];
	unsigned char n[LOCS]; /* values in the history */
};

/* TRACE in the environment: one line for each access of those that led here. */
static void trace(int t, char kind, int loc, unsigned place)
{
	static int on = -1;

	if (on < 0)
		on = !!getenv("TRACE");
	if (on)
		printf("@ %d %c %d %u\n", t, kind, loc, place);
}

static unsigned at(view v, int loc)
{
	return v >> 4 * loc & 15;
}
static view single(int loc, unsigned place)
{
	return (view)place << 4 * loc;
}

/* Greater of each byte, of bytes below 128. */
static view join_bytes(view a, view b)
{
	const view ge = ((((a | VIEW_TOP) - b) & VIEW_TOP) >> 7) * 0xff;

	return (a & ge) | (b & ~ge);
}

static view join(view a, view b)
{
	return join_bytes(a & VIEW_LOW, b & VIEW_LOW) |
	       join_bytes(a >> 4 & VIEW_LOW, b >> 4 & VIEW_LOW) << 4;
}

static void saw(struct memory *m, int t, int loc, unsigned place)
{
	m->cur[t] = join(m->cur[t], single(loc, place));
	m->acq[t] = join(m->acq[t], m->with[first[loc] + place]);
}

static void init(struct memory *m, int loc, value v)
{
	m->val[first[loc]] = v;
	m->n[loc] = 1;
}

/* May t read the value `back` places before the newest? */
static int readable(const struct memory *m, int t, int loc, unsigned back)
{
	return back + at(m->cur[t], loc) < m->n[loc];
}

static value load(struct memory *m, int t, int loc, unsigned back)
{
	const unsigned place = m->n[loc] - 1 - back;

	trace(t, 'l', loc, place);
	saw(m, t, loc, place);
	return m->val[first[loc] + place];
}

static value newest(const struct memory *m, int loc)
{
	return m->val[first[loc] + m->n[loc] - 1];
}

static void append(struct memory *m, int t, int loc, value v, view carried)
{
	const unsigned place = m->n[loc]++;

	if (first[loc] + place >= first[loc + 1])
		Uerror("a history is too short");
	m->val[first[loc] + place] = v;
	m->with[first[loc] + place] = join(carried, single(loc, place));
	m->cur[t] = join(m->cur[t], single(loc, place));
	m->acq[t] = join(m->acq[t], single(loc, place));
}

static void store(struct memory *m, int t, int loc, value v)
{
	trace(t, 's', loc, m->n[loc]);
	append(m, t, loc, v, m->rel[t]);
}

/* Returns the old value; `v` is what the caller made of newest(). */
static value modify(struct memory *m, int t, int loc, value v)
{
	const unsigned place = m->n[loc] - 1;
	const view carried = m->with[first[loc] + place];
	const value old = m->val[first[loc] + place];

	trace(t, 'm', loc, place);
	saw(m, t, loc, place);
	append(m, t, loc, v, join(carried, m->rel[t]));
	return old;
}

/* The same, acquiring what the old value carried and releasing what t knows. */
static value modify_acq_rel(struct memory *m, int t, int loc, value v)
{
	const view carried = m->with[first[loc] + m->n[loc] - 1];
	const view rel = m->rel[t];
	value old;

	m->cur[t] = join(m->cur[t], carried);
	m->rel[t] = m->cur[t];
	old = modify(m, t, loc, v);
	m->rel[t] = rel;
	return old;
}

static void fence_acq(struct memory *m, int t)
{
	trace(t, 'a', 0, 0);
	m->cur[t] = m->acq[t];
}

static void fence_rel(struct memory *m, int t)
{
	trace(t, 'r', 0, 0);
	m->rel[t] = m->cur[t];
}

static void fence_sc(struct memory *m, int t)
{
	trace(t, 'c', 0, 0);
	m->sc = m->cur[t] = m->acq[t] = m->rel[t] = join(m->acq[t], m->sc);
}

/* The oldest value that who has view v may read. */
static value oldest(const struct memory *m, view v, int loc)
{
	return m->val[first[loc] + at(v, loc)];
}

#endif
