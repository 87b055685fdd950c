/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the device code itself in the memory of weak.h. The threads are coroutines; one at a time
 * runs, up to its next access. Random: the order of accesses, and the age of the values that loads
 * return, among those that the memory allows. sites.py has numbered the fences of the code: one of
 * them can be removed (d), get a narrower scope (n), or, if it is sequentially consistent, become
 * an acquire and release fence (w).
 * usage: replay RUNS           each scenario in each configuration RUNS times
 *   ONLY=NAME replay RUNS      only scenarios of such names; SHOW=1 shows the memory of an error
 *        replay RUNS SITE[,SITE] d|n|w  the same with weakened accesses, up to the first error
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "device/gdk/by_hand_dev.h"

static void fail(const char *what);
#include "weak.h"
#include "runs.h"

#define STACK	  65536
#define MOST_STEP 3000 /* accesses of a run in random order */

static struct memory m;
static struct doca_gpu_dev_verbs_qp qp __attribute__((aligned(128)));
static struct gdk_qp_state *st;
static uint64_t page[128] __attribute__((aligned(1024)));
static uint32_t dbrec;
static char ring[64 * 64], cq[64 * 64];

static struct thread {
	ucontext_t context;
	jmp_buf here;
	char stack[STACK] __attribute__((aligned(64)));
	int started, ended;
	int own;	  /* the operation is one of exclusive use, or HAND */
	int took;	  /* has taken the token from `left`: its next load of rung must be new */
	int meets;	  /* number of meetings that the thread has reached */
	unsigned parks;	  /* 1 + place of the thread's last store to a word, by which it parked */
	int parks_in;	  /* and the word */
	uint64_t idle_at; /* number of stores when the thread found nothing to do */
} threads[THREADS];
static jmp_buf scheduler;
static int self;

static const struct scenario *sc;
static const struct config *cfg;
uint32_t weak_rings;
static unsigned slots; /* of the model's ring */
static uint64_t last;  /* slots below it were rung */
static uint64_t loose; /* index of a doorbell that nothing orders after its DBREC; 0: none */
static uint64_t executed, cqes, rings, stores, clock_ns;
static unsigned lengths[8]; /* of the WQEs, in slots of the model */
static int settling;	    /* the end of the run: loads return the newest values */
static const char *failure;

static int mutants[2], weakened; /* sites that are weakened; 1: the access of one comes next */
static char how_weak;

static void fail(const char *what)
{
	if (!failure)
		failure = what;
}

static unsigned any(unsigned n)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)((x >> 20) % n);
}

static uint64_t real(unsigned i)
{
	return sc->base + (uint64_t)i * sc->scale;
}
static int user_scope(void)
{
	return cfg->cta ? CTA : GPU;
}
static int nic_scope(void)
{
	return cfg->flags & GDK_QPF_SYS_SCOPE ? SYS : GPU;
}

#include "accesses.h"

/* ---- programs ---- */

/* Forbidden: that a WQE is overwritten which the NIC may still read. */
static void write_wqes(const struct op *o)
{
	const uint64_t len = o->to - o->from + 1u;
	unsigned i;

	if (o->what == PUBLISH && len > 1 && sc->cqes) { /* as gdk_wqe_signal() */
		lengths[o->from] = (unsigned)len;
		gdk_st32(&st->long_wqe, 1, GDK_SCOPE_GPU);
		gdk_st32(&st->uneven, 1, GDK_SCOPE_GPU);
	}
	step();
	for (i = o->from; i <= o->to; i++) {
		const view v = join(m.cur[self], m.ordered[self]);

		if (oldest(&m, v, READ0 + (int)(i % slots)) != i / slots)
			fail("a WQE is overwritten before the NIC has read it");
		store(&m, self, WQE0 + (int)(i % slots),
		      (i / slots + 1) | (uint64_t)gdk_bswap32((uint32_t)len * 4) << 32);
	}
}

static void run_post(const struct op *o, struct gdk_how how)
{
	const uint32_t n = (o->to - o->from + 1u) * sc->scale;
	struct gdk_post p;

	qp.sq_rsvd_index = real(o->from);
	if (gdk_post_begin(&qp, &p, n, 0, how))
		fail("a reservation fails");
	write_wqes(o);
	gdk_post_end(&p, how);
}

static void run_publish(const struct op *o, gdk_mode_t mode)
{
	uint64_t first;

	qp.sq_rsvd_index = real(o->from);
	if (gdk_reserve(&qp, (o->to - o->from + 1u) * sc->scale, mode, 0, &first))
		fail("a reservation fails");
	write_wqes(o);
	gdk_mark_ready(&qp, first, real(o->to + 1u) - 1, mode, GDK_AUTO);
}

/* Forbidden: that the payload of a WQE which is complete need not be visible. */
static void run_wait(const struct op *o, gdk_mode_t mode)
{
	if (gdk_wait(&qp, real(o->to + 1u) - 1, mode))
		fail("a wait fails");
	if (oldest(&m, m.cur[self], PAY0 + (int)(o->to % slots)) < o->to / slots + 1)
		fail("a thread that has waited may read old payload");
}

/* `to` is the index of a CQE, `from` the slot of its WQE. */
static void run_poll(const struct op *o, gdk_mode_t mode)
{
	if (gdk_poll_cq_at(&qp.cq_sq, o->to, mode))
		fail("a poll fails");
	if (oldest(&m, m.cur[self], PAY0 + (int)(o->from % slots)) < o->from / slots + 1)
		fail("a thread that has found a CQE may read old payload");
}

/* The caller orders and rings by itself. */
static void run_hand(const struct op *o, const uint64_t *wqe)
{
	const uint64_t pi = real(o->to + 1u);

	write_wqes(o);
	if (gdk_has_dbrec(cfg->handler))
		gdk_update_dbr(&qp, pi, 0);
	if (cfg->handler == GDK_PROXY)
		gdk_ring_proxy(&qp, pi,
			       any(2) ? GDK_EXCLUSIVE
				      : DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU);
	else if (cfg->handler != GDK_BF)
		gdk_ring_db(&qp, pi, 0);
	else if (any(2))
		gdk_ring_bf(&qp, wqe);
	else
		gdk_ring_bf_warp(&qp, wqe);
	gdk_bf_settle();
}

static void run_meeting(void)
{
	int t, all = 1;

	threads[self].meets++;
	for (t = 0; t < THREADS; t++)
		all &= threads[t].meets >= threads[self].meets;
	if (all) {
		meet(&m, user_scope());
		stores++;
	}
	while (!all) {
		weak_idle();
		for (t = 0, all = 1; t < THREADS; t++)
			all &= threads[t].meets >= threads[self].meets;
	}
}

static void run_op(const struct op *o)
{
	const int own = o->what >= OWN_POST && o->what <= OWN_WAIT;
	const gdk_mode_t mode = own	   ? GDK_EXCLUSIVE
				: cfg->cta ? DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
					   : DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	const struct gdk_how how = gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
	uint64_t wqe[8] = { gdk_bswap32_24((uint32_t)real(o->to) - 1, 0) };

	threads[self].own = own;
	switch (own ? o->what - OWN_POST + POST : o->what) {
	case POST:
		run_post(o, how);
		break;
	case PUBLISH:
		run_publish(o, mode);
		break;
	case SUBMIT:
		gdk_submit(&qp, real(o->to), how);
		break;
	case BF:
		if (any(2))
			gdk_submit_bf(&qp, real(o->to), wqe, how);
		else
			gdk_submit_bf_warp(&qp, real(o->to), wqe, how);
		break;
	case WAIT:
		run_wait(o, mode);
		break;
	case POLL:
		run_poll(o, mode);
		break;
	case HAND:
		threads[self].own = HAND;
		wqe[0] = gdk_bswap32_24((uint32_t)real(o->to), 0);
		run_hand(o, wqe);
		break;
	default:
		run_meeting();
	}
}

static void run_program(void)
{
	const struct op *o;

	for (o = sc->program[self]; o->what != END; o++)
		run_op(o);
	threads[self].ended = 1;
	_longjmp(scheduler, 1);
}

/* Lets thread t make its next access and run up to the one after it. */
static void advance(int t)
{
	struct thread *th = &threads[t];

	self = t;
	if (_setjmp(scheduler))
		return;
	if (th->started)
		_longjmp(th->here, 1);
	th->started = 1;
	setcontext(&th->context);
}

/* ---- a run ---- */

static void start_memory(void)
{
	const unsigned done = (unsigned)real(sc->done + sc->left); /* slots that are published */
	const uint64_t start = real(sc->done);
	uint64_t bits = ((uint64_t)1 << (done < 32 ? done : 32)) - 1;
	unsigned i, l;

	memset(&m, 0, offsetof(struct memory, n));
	for (l = 0; l < LOCS; l++)
		init(&m, (int)l, 0);
	init(&m, W0, bits | (sc->left ? 0 : GDK_TOKEN(start % 32)));
	init(&m, W1, sc->done && sc->depth > 32 ? bits : 0);
	init(&m, LEFT, sc->left);
	init(&m, UNEVEN, sc->cqes == 2);
	init(&m, RUNG, start);
	init(&m, PARKED, start);
	init(&m, WANTED, start);
	init(&m, DONE, start);
	init(&m, DBREC, gdk_dbrec_value(start));
	for (i = 0; i < 4; i++) {
		init(&m, WQE0 + (int)i, i < sc->done || i < sc->left);
		init(&m, READ0 + (int)i, i < sc->done);
		init(&m, PAY0 + (int)i, i < sc->done);
		init(&m, CQE0 + (int)i, 0xf0000000u);
	}
	last = executed = start;
}

static void start(void)
{
	int t;

	slots = sc->depth / sc->scale < 4 ? sc->depth / sc->scale : 4;
	weak_rings = sc->rings;
	qp.sq_wqe_mask = (uint16_t)(sc->depth - 1);
	qp.sq_wqe_num = (uint16_t)sc->depth;
	qp.nic_handler = cfg->handler;
	qp.cq_sq.cqe_num = sc->cqes ? slots : sc->depth;
	gdk_qp_state_format(st, sc->depth, cfg->flags);
	gdk_qp_state_bind(st, &qp);
	st->watch = 0;
	start_memory();
	failure = NULL;
	loose = cqes = rings = stores = 0;
	weakened = settling = 0;
	memset(lengths, 0, sizeof(lengths));
	for (t = 0; t < THREADS; t++) {
		struct thread *th = &threads[t];

		th->started = th->ended = th->own = th->took = th->meets = 0;
		th->parks = 0;
		th->idle_at = UINT64_MAX;
		getcontext(&th->context);
		th->context.uc_stack.ss_sp = th->stack;
		th->context.uc_stack.ss_size = STACK;
		th->context.uc_link = NULL;
		makecontext(&th->context, run_program, 0);
	}
}

static int tokens(void)
{
	return __builtin_popcountll(newest(&m, W0) >> 32) +
	       __builtin_popcountll(newest(&m, W1) >> 32) + !!newest(&m, LEFT);
}

/* All threads have ended. */
static void check_end(void)
{
	const uint64_t record = index_of((uint32_t)newest(&m, DBREC));

	if (last < published() && last < newest(&m, WANTED))
		fail("a doorbell is lost");
	if (tokens() != 1)
		fail("there is not one token at the end");
	if (gdk_has_dbrec(cfg->handler) && record != last)
		fail("the DBREC is not that of the last doorbell");
	if (cfg->handler == GDK_PROXY && newest(&m, REG) != last)
		fail("the counter is not that of the last doorbell");
	if (newest(&m, RUNG) != last)
		fail("rung is not that of the last doorbell");
	if (st->doorbells != rings && !st->bare_rings)
		fail("the number of doorbells is wrong");
	if (loose && !threads[0].own)
		fail("a doorbell of exclusive use was not repeated");
}

/* Runs all threads in turn to their ends; all loads return the newest values. */
static void finish(void)
{
	unsigned quiet = 0, t, left = 1;
	uint64_t before;

	settling = 1;
	while (left && !failure) {
		before = stores;
		for (t = left = 0; t < THREADS && !failure; t++)
			if (!threads[t].ended && ++left)
				advance((int)t);
		nic_executes();
		quiet = stores == before ? quiet + 1 : 0;
		if (quiet > 200)
			fail("a doorbell is lost: a thread waits forever");
	}
	if (!failure)
		check_end();
}

static const char *once(void)
{
	unsigned steps, t;

	start();
	for (steps = 0; steps < MOST_STEP && !failure; steps++) {
		if (any(16) == 0)
			nic_executes();
		/* Prefer the same thread: errors are found faster with few switches. */
		t = any(4) ? (unsigned)self : any(THREADS);
		if (threads[t].ended || (threads[t].idle_at == stores && any(8))) {
			self = (int)any(THREADS);
			if (threads[0].ended && threads[1].ended && threads[2].ended)
				break;
			continue;
		}
		advance((int)t);
	}
	if (!failure)
		finish();
	return failure;
}

static void show(void)
{
	static const char *const names[] = { "word 0",	 "word 1",    "left",	"wanted",  "rung",
					     "parked",	 "completed", "status", "cqe_ci",  "uneven",
					     "long_wqe", "bf_half",   "DBREC",	"register" };
	int l, t;

	for (l = 0; l < LOCS; l++) {
		printf("%s:", l < WQE0 ? names[l] : "WQEs, READs, PAYs, CQEs");
		for (t = 0; t < (int)m.n[l]; t++)
			printf(" %lx", (unsigned long)m.history[l][t].val);
		printf("\n");
	}
	printf("last %lu, executed %lu, CQEs %lu; ended: %d %d %d\n", (unsigned long)last,
	       (unsigned long)executed, (unsigned long)cqes, threads[0].ended, threads[1].ended,
	       threads[2].ended);
}

#define NUM(a) (sizeof(a) / sizeof((a)[0]))

/* Runs every scenario in every configuration `each` times. Returns the first error, or NULL. */
static const char *round_of(long each)
{
	const char *only = getenv("ONLY"); /* part of the name of a scenario */
	size_t s, c;
	long i;

	for (s = 0; s < NUM(scenarios); s++) {
		if (only && !strstr(scenarios[s].name, only))
			continue;
		for (c = 0; c < NUM(configs); c++) {
			sc = &scenarios[s];
			cfg = &configs[c];
			for (i = 0; i < each; i++)
				if (once())
					return failure;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const long runs = argc > 1 ? atol(argv[1]) : 0, step_of = 20;
	const char *error = NULL;
	long done;

	st = aligned_alloc(GDK_STATE_LINE, gdk_qp_state_size(64));
	if (!st || (argc != 2 && argc != 4))
		return 2;
	if (argc == 4)
		sscanf(argv[2], "%d,%d", &mutants[0], &mutants[1]);
	how_weak = argc == 4 ? argv[3][0] : 'd';
	memset(cq, 0xff, sizeof(cq)); /* no CQE */
	qp.gdk_state = st;
	qp.cq_sq.gdk_state = st;
	qp.sq_wqe_daddr = (void *)ring;
	qp.cq_sq.cqe_daddr = (void *)cq;
	qp.sq_dbrec = &dbrec;
	qp.sq_db = page;
	for (done = 0; done < runs && !error; done += step_of)
		error = round_of(step_of);
	if (error)
		printf("%s; %s: %s\n", sc->name, cfg->name, error);
	else
		printf("no error found\n");
	if (error && getenv("SHOW"))
		show();
	free(st);
	return error ? 1 : 0;
}
