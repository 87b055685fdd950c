/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the device code itself in the memory of views.h. The three threads are
 * coroutines; one at a time runs, up to its next access. The order of accesses, and the
 * age of the values that loads return, come either from a trace of the model (on
 * standard input) or from random choices among those that the memory model allows.
 * Slot i of the model stands for SCALE slots of the code, from BASE + i * SCALE on, so
 * that the boundaries of the words with ready bits are at the same slots in both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "device/gdk/qp_dev.h"

static void fail(const char *what);
static void Uerror(char *what)
{
	fail(what);
}
#define VIEWS_VALUE  uint64_t
#define VIEWS_PARKED 15
#include "views.h"
#include "scenarios.h"

#if SCENARIO <= 6
#define BASE  30u
#define SCALE 1u
#define DEPTH 64u
#define RING  4 /* slots of the model's ring */
#elif SCENARIO == 7
#define BASE  0u
#define SCALE 16u
#define DEPTH 32u
#define RING  2
#else
#define BASE  0u
#define SCALE 32u
#define DEPTH 64u
#define RING  2
#endif
#define REAL(i) (BASE + (i)*SCALE)
/* first slot of the run; all slots below are complete */
#define START REAL(SCENARIO >= 8 ? 2u : 0u)
#define STACK 65536
#ifndef SHARE /* GPU or CTA */
#define SHARE GPU
#endif
#define MODE CAT(DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_, SHARE)
#ifndef DOORBELL /* GPU_SM_DB or GPU_SM_NO_DBR */
#define DOORBELL GPU_SM_DB
#endif
#define CAT_(a, b) a##b
#define CAT(a, b)  CAT_(a, b)
#define HANDLER	   CAT(DOCA_GPUNETIO_VERBS_NIC_HANDLER_, DOORBELL)

static struct memory m;
static struct doca_gpu_dev_verbs_qp qp;
static struct gdk_qp_state *st;
static uint64_t page[8];
static uint32_t dbrec;

static struct thread {
	ucontext_t context;
	char stack[STACK];
	char kind; /* kind of the next access, as in traces; 0: the thread has ended */
	int loc;
	unsigned place; /* place in the history of the value that the next load returns */
	/* 1: the thread has taken the token from `left`, and its next load of `rung` must return
	 * the newest value */
	int took;
	int needs; /* last slot that the thread waits for, in the model's numbers */
} threads[THREADS];
static ucontext_t scheduler;
static int self;
static uint64_t last, limit_steps;
static const char *failure;

static void fail(const char *what)
{
	if (!failure)
		failure = what;
}

/* ---- accesses ---- */

static int loc_of(const void *p)
{
	const uint64_t *words = (const uint64_t *)(st + 1);

	if (p == &words[0] || p == &words[1])
		return p == &words[0] ? W0 : W1;
	if (p == &st->left)
		return LEFT;
	if (p == &st->wanted)
		return WANTED;
	if (p == &st->rung)
		return RUNG;
	if (p == &st->parked)
		return PARKED;
	if (p == &dbrec)
		return DBREC;
	return p == &page[0] ? DB : LOCS;
}

/* Announces the next access and yields; the scheduler decides when it happens. */
static void step(char kind, int loc)
{
	threads[self].kind = kind;
	threads[self].loc = loc;
	swapcontext(&threads[self].context, &scheduler);
}

static uint64_t published(void)
{
	uint64_t words[2] = { newest(&m, W0), newest(&m, W1) }, i;

	for (i = last; i < last + DEPTH; i++)
		if ((words[i % DEPTH / 32] >> i % 32 & 1) == (i / DEPTH & 1))
			break;
	return i;
}

static int is_cut(uint64_t e)
{
	const struct op *o;
	int t;

	for (t = 0; t < THREADS; t++)
		for (o = program[t]; o->what != END; o++)
			if (o->what != SUBMIT && o->to > o->from && e == REAL(o->to))
				return 1;
	return 0;
}

/* The NIC acts on the index e with the view v of the store that announced it, in
 * addition to what it has seen before. Forbidden: an index beyond the published slots;
 * an index in the middle of a WQE (the rest of the WQE may not be written); and a WQE
 * whose store the NIC need not see yet, because then no release/acquire chain orders
 * the poster's WQE stores before the NIC's reads. */
static void nic(view v, uint64_t e)
{
	uint64_t i;

	if (failure)
		return;
	if (e > published())
		fail("a doorbell covers slots that are not published");
	if (is_cut(e))
		fail("a doorbell ends in the middle of a WQE");
	for (i = (last - BASE) / SCALE; REAL(i) < e; i++)
		if (oldest(&m, join(m.cur[NIC], v), WQE0 + (int)(i % RING)) != i / RING + 1)
			fail("the NIC may read a WQE before its store");
}

static uint64_t index_of(uint32_t be)
{
	return gdk_bswap32(be) & 0xffff;
}

static void nic_rung(uint64_t e)
{
	const view v = m.with[first[DB] + m.n[DB] - 1];

	/* With a DBREC, the next holder of the token may write the register first: the older
	 * doorbell is harmless, because the NIC has read the newer DBREC. */
	if (e <= last && gdk_has_record(HANDLER))
		return;
	nic(v, e);
	if (e <= last)
		fail("a doorbell has a lower index than the previous one");
	if (gdk_has_record(HANDLER) && index_of((uint32_t)oldest(&m, v, DBREC)) < e)
		fail("the NIC may read a DBREC that is older than the doorbell");
	m.cur[NIC] = m.acq[NIC] = join(m.cur[NIC], v);
	last = e;
	if (SCENARIO >= 7) {
		fence_rel(&m, NIC);
		store(&m, NIC, DONE, e);
	}
}

uint64_t weak_load(const void *p, size_t bytes, int order)
{
	const int loc = loc_of(p);
	uint64_t v = 0;

	if (loc == LOCS) {
		memcpy(&v, p, bytes);
		return v;
	}
	step('l', loc);
	v = load(&m, self, loc, m.n[loc] - 1 - threads[self].place);
	if (order & WEAK_ACQUIRES)
		fence_acq(&m, self);
	/* Forbidden: an old value of rung. The acquiring exchange of `left` in gdk_take_left()
	 * and gdk_leave() pairs with the release before the store of `left`. */
	if (loc == RUNG && threads[self].took) {
		threads[self].took = 0;
		if (v != newest(&m, RUNG))
			fail("the thread that took the token reads an old value of rung");
	}
	return v;
}

void weak_store(void *p, uint64_t v, size_t bytes, int order)
{
	const int loc = loc_of(p);

	if (loc == LOCS) {
		memcpy(p, &v, bytes);
		return;
	}
	step('s', loc);
	if (order & WEAK_RELEASES)
		fence_rel(&m, self);
	/* Forbidden: a holder that has not seen the previous holder's DBREC store, because then
	 * the two stores could reach the NIC in the wrong order. */
	if (loc == DBREC && at(m.cur[self], loc) != m.n[loc] - 1u)
		fail("the DBREC stores of two token holders are not ordered");
	store(&m, self, loc, v);
	if (loc == DBREC)
		nic(m.with[first[DBREC] + m.n[DBREC] - 1], index_of((uint32_t)v));
	if (loc == DB)
		nic_rung(gdk_bswap32((uint32_t)v) >> 8 & 0xffff);
}

static uint64_t combined(uint64_t old, uint64_t v, enum weak_op op)
{
	switch (op) {
	case WEAK_OR:
		return old | v;
	case WEAK_AND:
		return old & v;
	case WEAK_ADD:
		return old + v;
	case WEAK_MAX:
		return v > old ? v : old;
	default:
		return v;
	}
}

uint64_t weak_rmw(void *p, uint64_t v, size_t bytes, enum weak_op op, int order)
{
	const int loc = loc_of(p);
	uint64_t old = 0;

	if (loc == LOCS) {
		memcpy(&old, p, bytes);
		v = combined(old, v, op);
		memcpy(p, &v, bytes);
		return old;
	}
	step('m', loc);
	v = combined(newest(&m, loc), v, op);
	old = order ? modify_acq_rel(&m, self, loc, v) : modify(&m, self, loc, v);
	threads[self].took |= loc == LEFT && old;
	return old;
}

void weak_fence(enum weak_kind kind)
{
	step(kind == WEAK_ACQ ? 'a' : kind == WEAK_REL ? 'r' : 'c', 0);
	if (kind == WEAK_ACQ)
		fence_acq(&m, self);
	else if (kind == WEAK_REL)
		fence_rel(&m, self);
	else
		fence_sc(&m, self);
}

/* ---- threads ---- */

static void write_wqes(const struct op *o)
{
	int i;

	for (i = o->from; i <= o->to; i++)
		store(&m, self, WQE0 + i % RING, (uint64_t)(i / RING + 1));
}

/* Waits for free slots like gdk_reserve(): first submits all slots before them. The
 * acquire fence orders the load of DONE before the reuse of the slots; it pairs with
 * the NIC's release fence before its store of DONE in nic_rung(). */
static void wait_for_slots(const struct op *o)
{
	gdk_submit(&qp, REAL(o->from), MODE, HANDLER, 0);
	threads[self].needs = o->to;
	step('l', DONE);
	load(&m, self, DONE, m.n[DONE] - 1 - threads[self].place);
	fence_acq(&m, self);
}

static int complete(int t, unsigned place)
{
	return m.val[first[DONE] + place] + RING * SCALE > REAL((unsigned)threads[t].needs);
}

static int blocked(int t)
{
	return threads[t].kind == 'l' && threads[t].loc == DONE && !complete(t, m.n[DONE] - 1u);
}

/* 1: post with gdk_post(), which makes the early loads of struct gdk_early. The model does
 * not have these loads, so replays and half of the random runs post without them. */
static int early;

static void post(uint64_t from, uint64_t to)
{
	const struct gdk_early none = { 0, 0, UINT64_MAX, 0, 0 };
	const struct gdk_sq q = gdk_sq_of(&qp);

	if (early)
		gdk_post(&qp, from, to, MODE, HANDLER, 0);
	else
		gdk_post_in(&qp, &q, &none, qp.sq_num_shift8_be, from, to, MODE, HANDLER, 0);
}

static void run_program(void)
{
	const struct op *o;

	for (o = program[self]; o->what != END; o++) {
		if (o->what != SUBMIT && o->to >= RING)
			wait_for_slots(o);
		if (o->what != SUBMIT)
			write_wqes(o);
		if (o->what == POST)
			post(REAL(o->from), REAL(o->to + 1u) - 1);
		else if (o->what == PUBLISH)
			gdk_mark_ready(&qp, REAL(o->from), REAL(o->to + 1u) - 1, MODE, HANDLER);
		else
			gdk_submit(&qp, REAL(o->to), MODE, HANDLER, 0);
	}
	threads[self].kind = 0;
}

/* Lets thread t make its announced access and run to the next one. place: place in the
 * history of the value that a load should return; if the thread may not read this value,
 * the load returns another. */
static void advance(int t, unsigned place)
{
	const struct thread *th = &threads[t];

	if (th->kind == 'l') {
		if (place < at(m.cur[t], th->loc))
			/* the thread has seen a newer value, so older ones are forbidden */
			place = at(m.cur[t], th->loc);
		/* Loads of the DBREC are repeated until the expected value arrives, so return the
		 * newest. */
		if (place >= m.n[th->loc] || th->loc == DBREC)
			place = m.n[th->loc] - 1u;
		while (th->loc == DONE && !complete(t, place))
			place++;
	}
	threads[t].place = place;
	self = t;
	if (++limit_steps > 2000)
		fail("more than 2000 accesses: the threads do not end");
	else
		swapcontext(&scheduler, &threads[t].context);
}

static void start(void)
{
	uint64_t bits = (SCENARIO == 4 ? BASE + 1 : START);
	int t, l;

	memset(&m, 0, sizeof(m));
	/* Without GDK_QPF_SYS_SCOPE, posts of few slots take the fast path of gdk_held_few(). */
	gdk_qp_state_format(st, DEPTH, gdk_has_record(HANDLER) ? 0 : GDK_QPF_SYS_SCOPE);
	failure = NULL;
	last = START;
	limit_steps = 0;
	for (l = 0; l < LOCS; l++)
		init(&m, l, 0);
	bits = ((uint64_t)1 << (bits < 32 ? bits : 32)) - 1;
	init(&m, W0, bits | (SCENARIO == 4 ? 0 : GDK_TOKEN(START % 32)));
	init(&m, W1, SCENARIO >= 8 ? bits : 0);
	init(&m, LEFT, SCENARIO == 4);
	init(&m, RUNG, START);
	init(&m, PARKED, START);
	init(&m, WANTED, START);
	init(&m, DONE, START);
	init(&m, DBREC, gdk_dbrec_value(START));
	init(&m, WQE0, SCENARIO == 4 || SCENARIO >= 8);
	init(&m, WQE1, SCENARIO >= 8);
	for (t = 0; t < THREADS; t++) {
		struct thread *th = &threads[t];

		getcontext(&th->context);
		th->context.uc_stack.ss_sp = th->stack;
		th->context.uc_stack.ss_size = STACK;
		th->context.uc_link = &scheduler;
		makecontext(&th->context, run_program, 0);
		th->took = 0;
		self = t;
		swapcontext(&scheduler, &th->context);
	}
}

/* Runs all threads in turn to their ends; all loads return the newest values. Then no
 * thread may still wait for slots, and all slots that are wanted and published without a
 * gap must be rung. Returns the failure, or NULL. */
static const char *finish(void)
{
	int t, left;

	do {
		for (t = left = 0; t < THREADS; t++)
			if (threads[t].kind && !blocked(t) && ++left)
				advance(t, ~0u);
	} while (left && !failure);
	for (t = 0; t < THREADS; t++)
		if (threads[t].kind)
			fail("a doorbell is lost: a thread waits for slots forever");
	if (last < published() && last < newest(&m, WANTED))
		fail("a doorbell is lost");
	return failure;
}

/* ---- a trace ---- */

struct access {
	int thread, loc;
	unsigned place;
	char kind;
};

static int is_fence(char kind)
{
	return strchr("arc", kind) != NULL;
}

/* The code loads `left` early, the model late: the load gets the value of the thread's
 * next load of `left` in the trace, and that entry is marked as done. */
static unsigned place_of_next_load(struct access *a, const struct access *end, int t, int loc)
{
	for (; loc == LEFT && a < end; a++)
		if (a->thread == t && a->kind == 'l' && a->loc == loc) {
			a->thread = NIC;
			return a->place;
		}
	return 0;
}

/* Follows the trace. Returns 0 if the code makes other accesses than the trace. */
static int follow(struct access *a, const struct access *end)
{
	const struct thread *th;

	for (; a < end && !failure; a++) {
		if (a->thread >= THREADS || a->loc > DONE)
			continue;
		th = &threads[a->thread];
		for (;;) {
			if (!th->kind || blocked(a->thread) ||
			    (is_fence(a->kind) && !is_fence(th->kind)))
				break;
			if (th->kind == a->kind && (is_fence(a->kind) || th->loc == a->loc)) {
				advance(a->thread, a->place);
				break;
			}
			if (is_fence(th->kind) || th->loc == PARKED)
				advance(a->thread, 0);
			else if (th->kind == 'l')
				advance(a->thread, place_of_next_load(a, end, a->thread, th->loc));
			else if (a->kind == 'l')
				break;
			else
				return 0;
			if (failure)
				break;
		}
	}
	return 1;
}

static const char *replay(void)
{
	static struct access trace[4096];
	size_t n = 0;

	while (n < 4096 && scanf(" @ %d %c %d %u", &trace[n].thread, &trace[n].kind, &trace[n].loc,
				 &trace[n].place) == 4)
		n++;
	start();
	printf("%s: ", follow(trace, trace + n) ? "followed the trace" : "left the trace");
	return finish();
}

/* ---- random orders ---- */

static const char *once(void)
{
	const struct thread *th;
	unsigned old, all;
	int t;

	start();
	for (;;) {
		for (t = 0; t < THREADS && (!threads[t].kind || blocked(t)); t++)
			;
		if (failure || t == THREADS)
			return finish();
		/* Prefer the same thread: errors are found faster with few switches. */
		t = rand() % 4 ? self : rand() % THREADS;
		th = &threads[t];
		if (!th->kind || blocked(t)) {
			self = rand() % THREADS;
			continue;
		}
		old = th->kind == 'l' ? at(m.cur[t], th->loc) : 0;
		all = th->kind == 'l' ? m.n[th->loc] - old : 1;
		advance(t, old + (unsigned)rand() % all);
	}
}

int main(int argc, char **argv)
{
	const char *error = NULL;
	long runs = argc > 1 ? atol(argv[1]) : 0, i;

	st = aligned_alloc(GDK_STATE_LINE, gdk_qp_state_size(DEPTH));
	if (!st)
		return 2;
	qp.gdk_state = st;
	qp.sq_wqe_mask = DEPTH - 1;
	qp.sq_wqe_num = DEPTH;
	qp.sq_dbrec = &dbrec;
	qp.sq_db = page;
	qp.nic_handler = HANDLER;
	if (!runs)
		error = replay();
	for (i = 0; i < runs && !error; i++) {
		early = i & 1;
		error = once();
	}
	printf("%s\n", error ? error : "no error found");
	free(st);
	return error ? 1 : 0;
}
