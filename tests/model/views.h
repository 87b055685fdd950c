/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Release/acquire memory as defined by C11 and PTX, for the model checker. Each
 * location keeps all values that were stored to it, in order. Each thread has, for
 * each location, the oldest value that it may still read. A relaxed load may return
 * this value or any newer one: loads may be early, late or stale, and stores may
 * arrive in any order, unless fences forbid it. A read-modify-write reads the newest
 * value and, being part of the same release sequence, also carries the view of the
 * store that it replaces.
 *
 * A view has 16 fields of 4 bits, one per location: an index into its history.
 */
#ifndef VIEWS_H
#define VIEWS_H

typedef unsigned long long view;
void hash_cell(unsigned long *sum, unsigned cell, unsigned val, unsigned long with);
#define VIEW_LOW 0x0f0f0f0f0f0f0f0full
#define VIEW_TOP 0x8080808080808080ull

typedef unsigned char value;

enum loc { W0, W1, LEFT, WANTED, RUNG, DBREC, REG, DONE, PARKED, WQE0, WQE1, WQE2, WQE3, LOCS };
enum { THREADS = 3, NIC = 3, VIEWERS, CELLS = 90 };

/* Index of the first history cell of each location, and the end of the last one. */
static const unsigned char first[LOCS + 1] = { 0,  15, 29, 39, 49, 55, 61,
					       67, 73, 79, 83, 86, 88, CELLS };

struct memory {
	view with[CELLS]; /* view that a thread gains if it reads the value and acquires */
	value val[CELLS];
	unsigned long sum[2]; /* hash of the values that were stored, and of their views: hash.h */
	view cur[VIEWERS];    /* oldest values that the thread may still read */
	view acq[VIEWERS];    /* value that cur gets at the next acquire fence */
	view rel[VIEWERS]; /* view carried by stores: the thread's view at its last release fence */
	view sc;	   /* view shared by all sequentially consistent fences */
	view passed[VIEWERS];  /* also carried by stores: what the thread had seen at its last
			       * fence_load_store() */
	unsigned char n[LOCS]; /* number of values in the history */
};

/* With TRACE in the environment, prints one line per access or fence. */
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

/* Maximum of each byte, for bytes below 128. */
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

/* Returns whether t may read the value `back` places before the newest. */
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
	const unsigned place = m->n[loc]++, cell = first[loc] + place;

	if (cell >= first[loc + 1])
		Uerror("the history of a location is too short");
	m->val[cell] = v;
	m->with[cell] = join(carried, single(loc, place));
	hash_cell(m->sum, cell, v, m->with[cell]);
	m->cur[t] = join(m->cur[t], single(loc, place));
	m->acq[t] = join(m->acq[t], single(loc, place));
}

static void store(struct memory *m, int t, int loc, value v)
{
	trace(t, 's', loc, m->n[loc]);
	append(m, t, loc, v, join(m->rel[t], m->passed[t]));
}

/* Read-modify-write, relaxed. v: new value, which the caller computed from newest().
 * Returns the old value. */
static value modify(struct memory *m, int t, int loc, value v)
{
	const unsigned place = m->n[loc] - 1;
	const view carried = m->with[first[loc] + place];
	const value old = m->val[first[loc] + place];

	trace(t, 'm', loc, place);
	saw(m, t, loc, place);
	append(m, t, loc, v, join(carried, join(m->rel[t], m->passed[t])));
	return old;
}

/* Read-modify-write, acquire and release: t gains the view that the old value carries,
 * and the new value carries t's view. */
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

/* A branch on a GPU: later stores come after what the thread's loads have seen, and carry it. */
static void fence_load_store(struct memory *m, int t)
{
	trace(t, 'o', 0, 0);
	m->passed[t] = join(m->passed[t], m->acq[t]);
}

/* Stores v to the DBREC or to a register. Returns whether it is not below the newest value, and
 * ordered after its store. */
static int store_above(struct memory *m, int t, int loc, value v)
{
	const view known = join(m->cur[t], m->passed[t]);
	const int good = at(known, loc) == m->n[loc] - 1u && v >= newest(m, loc);

	store(m, t, loc, v);
	return good;
}

/* The oldest value that a thread with view v may read. */
static value oldest(const struct memory *m, view v, int loc)
{
	return m->val[first[loc] + at(v, loc)];
}

#endif
