/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the device code itself in the memory of weak.h: the code of a send queue; with -DQUEUES=2
 * that of receives, with a receive queue and the send queue of the dumps; with -DSRQ=1 that of a
 * shared receive queue; with -DRDMA=1 that of a connection of the RDMA library, and with both that
 * of its receives. The threads are coroutines; one at a time runs, up to its next access.
 * Random: the order of accesses, and the age of the values that loads return, among those that the
 * memory allows. sites.py has numbered the fences of the code: one of them can be removed (d), get
 * a narrower scope (n), or, if it is sequentially consistent, become an acquire and release fence
 * (w).
 * usage: replay RUNS           each scenario in each configuration RUNS times
 *   ONLY=NAME replay RUNS      only scenarios of such names; SHOW=1 shows the memory of an error
 *        replay RUNS SITE[,SITE] d|n|w  the same with weakened accesses, up to the first error
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#ifndef QUEUES
#define QUEUES 1
#endif
#ifndef SRQ
#define SRQ 0
#endif
#ifndef RDMA
#define RDMA 0
#endif
#define RECEIVES (QUEUES == 2 || SRQ)
#if RDMA
#define GDK_BOTH_SHAPES
#include "gdk_rdma_recv_dev.h"
#else
#include "device/gdk/srq_dev.h"
#endif

static void fail(const char *what);
#include "weak.h"
#include "runs.h"

#define STACK	  65536
#define MOST_STEP 3000 /* accesses of a run in random order */

static struct memory m;
/* The first is the send queue, or the receive queue, the second that of the dumps. */
static struct queue {
	uint64_t page[128] __attribute__((aligned(1024)));
	char ring[64 * 64], cq[64 * 64];
	struct doca_gpu_dev_verbs_qp dev __attribute__((aligned(128)));
	struct gdk_qp_state *st;
	uint32_t dbrec;
	int at;				   /* its first location */
	int recv;			   /* it is a receive queue */
	unsigned base, scale, depth, cqes; /* as those of the scenario */
	unsigned slots;			   /* of the model's ring */
	unsigned wqe_bytes;
	uint64_t last;	/* slots below it were rung */
	uint64_t loose; /* index of a doorbell that nothing orders after its DBREC; 0: none */
	uint64_t executed, made, rings; /* slots, CQEs, doorbells */
	uint64_t written;		/* receives whose data are written */
} queues[QUEUES];
/* What the caller has: the struct of the send queue. */
static struct doca_gpu_dev_verbs_qp *const qp = &queues[QUEUES - 1].dev;

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
	uint64_t awaits;  /* 1 + the receive for which the thread waits */
	uint64_t expect;  /* of a compare-and-swap */
	uint64_t tickets[4]; /* of the receives that it has posted */
	unsigned posted;     /* and their number */
} threads[THREADS];
static jmp_buf scheduler;
static int self;
static uint64_t mail[3];   /* from thread to thread */
static uint64_t own_index; /* of gdk_index_advance() */

static const struct scenario *sc;
static const struct config *cfg;
uint32_t weak_rings;
static uint64_t stores, clock_ns;
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
/* The slot of the model that stands for slot i of the code. */
static uint64_t model_slot(const struct queue *q, uint64_t i)
{
	return (i - q->base) / q->scale;
}
/* The index near the last one of which `low` has the low 16 bits. */
static uint64_t extended(const struct queue *q, uint64_t low)
{
	return q->last + (uint64_t)(int64_t)(int16_t)(uint16_t)(low - q->last);
}

/* The index in a DBREC. */
static uint64_t index_of(const struct queue *q, uint64_t be)
{
	return extended(q, gdk_bswap32((uint32_t)be) & 0xffff);
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

/* Is the payload of WQE i of queue 0 visible to the thread? */
static int pays(uint64_t i)
{
	const unsigned n = queues[0].slots;

	return oldest(&m, m.cur[self], PAY0 + (int)(i % n)) >= i / n + 1;
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

#if RDMA && SRQ
#include "rdma_recv_ops.h"
#elif RDMA
#include "rdma_ops.h"
#elif SRQ
#include "srq_ops.h"
#elif QUEUES == 2
#include "recv_ops.h"
#else
#include "send_ops.h"
#endif

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

/* Ready bits of a word when all slots below `end` are published: those of the last lap of each. */
static uint64_t ready_bits(const struct queue *q, unsigned word, uint64_t end)
{
	uint64_t bits = 0;
	unsigned i, at;

	for (i = 0; i < 32; i++) {
		at = word * 32 + i;
		if (at < q->depth && at < end && !((end - 1 - at) / q->depth & 1))
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

static void start_memory(const struct queue *q, unsigned ready, int left)
{
	const uint64_t start = q->last, end = start + (uint64_t)left * q->scale;
	unsigned i, l;

	for (l = 0; l < QUEUE_LOCS; l++)
		init(&m, q->at + (int)l, 0);
	init(&m, q->at + W0, ready_bits(q, 0, end) | (left ? 0 : gdk_token_bit(q->depth, start)));
	init(&m, q->at + W1, ready_bits(q, 1, end));
	init(&m, q->at + LEFT, (uint64_t)left);
	init(&m, q->at + UNEVEN, q->cqes == 2);
	init(&m, q->at + RSVD, start);
	init(&m, q->at + RUNG, start);
	init(&m, q->at + PARKED, start);
	init(&m, q->at + WANTED, start);
	init(&m, q->at + DONE, start);
	init(&m, q->at + DBREC, gdk_dbrec_value(start));
	for (i = 0; i < 4; i++) {
		init(&m, q->at + WQE0 + (int)i, i < ready || i < (unsigned)left);
		init(&m, q->at + READ0 + (int)i, i < ready);
		init(&m, q->at + PAY0 + (int)i, i < ready);
		init(&m, q->at + CQE0 + (int)i, 0xf0000000u);
	}
}

/* Gives the receive queue to the caller's struct, as the export does. */
static void start_recv(struct queue *q)
{
	qp->rq_wqe_daddr = (void *)q->ring;
	qp->rq_wqe_num = q->depth;
	qp->rq_wqe_mask = q->depth - 1;
	qp->rq_wqe_pi = q->last;
	qp->gdk_rq_shift = 4;
	qp->need_mcst = cfg->dump;
	qp->gdk_rq = &q->dev;
	qp->cq_rq = q->dev.cq_sq;
}

static void start_queue(struct queue *q)
{
	struct doca_gpu_dev_verbs_qp *dev = &q->dev;
	const int first = q == queues;

	q->at = (int)(q - queues) * QUEUE_LOCS;
	q->recv = RECEIVES && first;
	q->wqe_bytes = q->recv ? 16 : 64;
	q->base = first ? sc->base : 0;
	q->scale = first ? sc->scale : 1;
	q->depth = first ? sc->depth : DUMP_DEPTH;
	q->cqes = first ? sc->cqes : 1;
	q->slots = q->depth / q->scale < 4 ? q->depth / q->scale : 4;
	q->last = q->executed = q->base + (first ? (uint64_t)sc->done * q->scale : 0);
	q->loose = q->made = q->rings = 0;
	q->written = model_slot(q, q->executed);
	dev->sq_wqe_mask = (uint16_t)(q->depth - 1);
	dev->sq_wqe_num = (uint16_t)q->depth;
	dev->sq_rsvd_index = q->last;
	dev->gdk_plain_end = 0;
	dev->nic_handler = q->recv ? GDK_DB : cfg->handler;
	dev->cq_sq.cqe_num = q->cqes ? q->slots : q->depth;
	dev->cq_sq.cqe_rsvd = 0 - (uint64_t)q->base; /* CQE 0 is that of slot `base` */
	dev->gdk_state = q->st;
	dev->cq_sq.gdk_state = q->st;
	dev->sq_wqe_daddr = (void *)q->ring;
	dev->cq_sq.cqe_daddr = (void *)q->cq;
	dev->sq_dbrec = &q->dbrec;
	dev->sq_db = q->page;
	gdk_qp_state_format(q->st, q->depth, q->recv ? cfg->flags | GDK_QPF_RECV : cfg->flags);
	gdk_qp_state_bind(q->st, dev);
	start_memory(q, first ? sc->done : 0, first ? (int)sc->left : 0);
	if (q->recv)
		start_recv(q);
}

static void start(void)
{
	int t;

	weak_rings = sc->rings;
	memset(&m, 0, offsetof(struct memory, n));
	for (t = 0; t < QUEUES; t++)
		start_queue(&queues[t]);
#if SRQ
	start_cqs(sc->depth);
#endif
#if RDMA
	start_object();
#endif
	failure = NULL;
	stores = 0;
	weakened = settling = 0;
	memset(lengths, 0, sizeof(lengths));
	for (t = 0; t < THREADS; t++) {
		struct thread *th = &threads[t];

		th->started = th->ended = th->own = th->took = th->meets = 0;
		th->parks = th->posted = 0;
		th->awaits = 0;
		th->idle_at = UINT64_MAX;
		getcontext(&th->context);
		th->context.uc_stack.ss_sp = th->stack;
		th->context.uc_stack.ss_size = STACK;
		th->context.uc_link = NULL;
		makecontext(&th->context, run_program, 0);
	}
}

static int tokens(const struct queue *q)
{
	return __builtin_popcountll(newest(&m, q->at + W0) >> 32) +
	       __builtin_popcountll(newest(&m, q->at + W1) >> 32) + !!newest(&m, q->at + LEFT);
}

/* All threads have ended. */
static void check_end(const struct queue *q)
{
	const gdk_handler_t handler = q->recv ? GDK_DB : cfg->handler;

	if (q->last < published(q) && q->last < newest(&m, q->at + WANTED))
		fail("a doorbell is lost");
	if (tokens(q) != 1)
		fail("there is not one token at the end");
	if (gdk_has_dbrec(handler) && index_of(q, newest(&m, q->at + DBREC)) != q->last)
		fail("the DBREC is not that of the last doorbell");
	if (handler == GDK_PROXY && newest(&m, q->at + REG) != q->last)
		fail("the counter is not that of the last doorbell");
	if (newest(&m, q->at + RUNG) != q->last)
		fail("rung is not that of the last doorbell");
	if (q->st->doorbells != q->rings && !q->st->bare_rings)
		fail("the number of doorbells is wrong");
	if (q->loose && !threads[0].own)
		fail("a doorbell of exclusive use was not repeated");
	if (q->recv && qp->rq_wqe_pi > q->last)
		fail("a submitted receive was not offered");
#if RDMA
	check_object();
#elif SRQ
	if (q->last != q->depth + begun)
		fail("a slot that was posted again is not offered");
#endif
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
		nic_works();
		quiet = stores == before ? quiet + 1 : 0;
		if (quiet > 200)
			fail("a doorbell is lost: a thread waits forever");
	}
	for (t = 0; t < QUEUES && !failure; t++)
		check_end(&queues[t]);
}

static const char *once(void)
{
	unsigned steps, t;

	start();
	for (steps = 0; steps < MOST_STEP && !failure; steps++) {
		if (any(16) == 0)
			nic_works();
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
	static const char *const names[] = {
		"word 0",   "word 1", "left",	"wanted",   "rung",    "parked", "completed",
		"status",   "cqe_ci", "uneven", "long_wqe", "bf_half", "DBREC",	 "register",
		"reserved", "index",  "mail",	"mail",	    "mail",    "RDMA 0", "RDMA 1",
		"RDMA 2",   "RDMA 3", "RDMA 4", "RDMA 5",   "RDMA 6",  "RDMA 7"
	};
	int l, t;

	for (l = 0; l < LOCS; l++) {
		printf("%d %s:", l / QUEUE_LOCS,
		       l % QUEUE_LOCS < WQE0 ? names[l % QUEUE_LOCS] : "WQEs, READs, PAYs, CQEs");
		for (t = 0; t < (int)m.n[l]; t++)
			printf(" %lx", (unsigned long)m.history[l][t].val);
		printf("\n");
	}
	for (l = 0; l < QUEUES; l++)
		printf("last %lu, executed %lu, CQEs %lu\n", (unsigned long)queues[l].last,
		       (unsigned long)queues[l].executed, (unsigned long)queues[l].made);
	printf("ended: %d %d %d\n", threads[0].ended, threads[1].ended, threads[2].ended);
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
	struct queue *q;
	long done;

	if (argc != 2 && argc != 4)
		return 2;
	if (argc == 4)
		sscanf(argv[2], "%d,%d", &mutants[0], &mutants[1]);
	how_weak = argc == 4 ? argv[3][0] : 'd';
	for (q = queues; q < queues + QUEUES; q++) {
		q->st = aligned_alloc(GDK_STATE_LINE, gdk_qp_state_size(64));
		if (!q->st)
			return 2;
		memset(q->cq, 0xff, sizeof(q->cq)); /* no CQE */
	}
	for (done = 0; done < runs && !error; done += step_of)
		error = round_of(step_of);
	if (error)
		printf("%s; %s: %s\n", sc->name, cfg->name, error);
	else
		printf("no error found\n");
	if (error && getenv("SHOW"))
		show();
	for (q = queues; q < queues + QUEUES; q++)
		free(q->st);
	return error ? 1 : 0;
}
