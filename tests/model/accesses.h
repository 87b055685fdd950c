/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The accesses of the device code to the memory of weak.h, and what the NIC makes of them: part of
 * replay.c. */
#ifndef ACCESSES_H
#define ACCESSES_H

#if SRQ
#include "srq_nic.h"
#endif
#if RDMA
#include "rdma_object.h"
#endif

/* ---- locations ---- */

/* The location of an address, or LOCS: memory that is not modelled. *shift: bits to the right of
 * the accessed word in the location's value. */
static int loc_in(const struct queue *q, const char *c, unsigned *shift)
{
	const struct {
		const void *at;
		int loc;
	} fields[] = {
		{ &q->st->left, LEFT },		 { &q->st->wanted, WANTED },
		{ &q->st->rung, RUNG },		 { &q->st->parked, PARKED },
		{ &q->st->completed, DONE },	 { &q->st->status, STATUS },
		{ &q->st->cqe_ci, CQE_CI },	 { &q->st->uneven, UNEVEN },
		{ &q->st->long_wqe, LONG_WQE },	 { &q->st->bf_half, BF_HALF },
		{ (uint64_t *)(q->st + 1), W0 }, { &q->dbrec, DBREC },
	};
	unsigned i;

	if (c == (const char *)&own_index && q == queues)
		return INDEX;
	if (MAILS && c == (const char *)&q->dev.sq_rsvd_index)
		return RSVD;
	for (i = 0; i < MAILS; i++)
		if (c == (const char *)&mail[i])
			return MAIL0 + (int)i;
#if SRQ
	if (cqe_loc(c) != LOCS)
		return cqe_loc(c);
#endif
#if RDMA
	if (word_loc(c) != LOCS)
		return word_loc(c);
#endif
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (c == fields[i].at)
			return fields[i].loc;
	if (q->depth > 32 && c == (const char *)((uint64_t *)(q->st + 1) + 1))
		return W1;
	/* The store to the register of a receive queue has no effect. */
	if (!q->recv && c >= (char *)q->page && c < (char *)(q->page + 128))
		return REG;
	if (q->cqes && c >= q->ring && c < q->ring + (size_t)q->slots * 64 &&
	    (c - q->ring) % 64 == 4) {
		*shift = 32;
		return WQE0 + (int)((c - q->ring) / 64);
	}
	if (q->cqes && c >= q->cq && c < q->cq + (size_t)q->slots * 64 && (c - q->cq) % 64 == 60)
		return CQE0 + (int)((c - q->cq) / 64);
	return LOCS;
}

static int loc_of(const void *p, unsigned *shift)
{
	int i, loc;

	*shift = 0;
	for (i = 0; i < QUEUES; i++) {
		loc = loc_in(&queues[i], p, shift);
		if (loc < LOCS)
			return i * QUEUE_LOCS + loc;
	}
	return LOCS;
}

static struct queue *queue_of(int loc)
{
	return &queues[loc / QUEUE_LOCS];
}

/* ---- the NIC ---- */

static uint64_t published(const struct queue *q)
{
	const uint64_t words[2] = { newest(&m, q->at + W0), newest(&m, q->at + W1) };
	uint64_t i;

	for (i = q->last; i < q->last + q->depth; i++)
		if ((words[i % q->depth / 32] >> i % q->depth % 32 & 1) == (i / q->depth & 1))
			break;
	return i;
}

static int is_cut(uint64_t e)
{
	const struct op *o;
	int t;

	for (t = 0; t < THREADS; t++)
		for (o = sc->program[t]; o->what != END; o++)
			if ((o->what == POST || (o->what == PUBLISH && sc->cqes)) &&
			    e > real(o->from) && e < real(o->to + 1u))
				return 1;
	return 0;
}

/* The value that the store of WQE i has: its lap, or the last that was stored, because a receive
 * may be offered again without another store. */
static uint64_t wqe_value(const struct queue *q, uint64_t i)
{
	return RECEIVES ? newest(&m, q->at + WQE0 + (int)(i % q->slots)) : i / q->slots + 1;
}

/* The NIC acts on the index e with the view v of the store that announced it, in addition to what
 * it has seen before. Forbidden: an index beyond the published slots (exclusive use publishes after
 * the doorbell); an index in the middle of a WQE; and a WQE whose store the NIC need not see yet,
 * because then nothing orders the poster's stores before the NIC's reads. */
static void nic(struct queue *q, view v, uint64_t e)
{
	const view all = join(m.cur[NIC], v);
	uint64_t i;

	if (failure)
		return;
#if SRQ && !RDMA
	for (i = q->last; i < e; i++)
		if (again[i % q->depth] != i)
			fail("a slot is offered that no thread has posted again");
#endif
	if (e > published(q) && !threads[self].own)
		fail("a doorbell covers slots that are not published");
	if (is_cut(e))
		fail("a doorbell ends in the middle of a WQE");
	for (i = model_slot(q, q->last); i < model_slot(q, e); i++)
		if ((uint32_t)oldest(&m, all, q->at + WQE0 + (int)(i % q->slots)) !=
		    (uint32_t)wqe_value(q, i))
			fail("the NIC may read a WQE before its store");
}

static view announced(int loc)
{
	return last_message(&m, loc)->with[nic_scope()];
}

/* The register, or the proxy's counter, was stored. A NIC ignores an index that is not above the
 * last one, but the proxy does not. In exclusive use nothing orders DBREC and register. */
static void nic_rung(struct queue *q, uint64_t e)
{
	const view v = announced(q->at + REG);
	const int late = gdk_has_dbrec(cfg->handler) &&
			 index_of(q, oldest(&m, v, q->at + DBREC)) < e;

	q->rings += cfg->handler != GDK_PROXY;
	if (cfg->handler == GDK_PROXY && e < q->last)
		fail("the counter of the proxy falls");
	if (!late && e >= q->loose)
		q->loose = 0;
	if (e <= q->last)
		return;
	nic(q, v, e);
	if (late && (!threads[self].own || threads[self].own == HAND))
		fail("the NIC may read a DBREC that is older than the doorbell");
	if (late)
		q->loose = e;
	m.cur[NIC] = join(m.cur[NIC], v);
	q->last = e;
}

/* The DBREC of a send queue was stored. A busy NIC may use it without another doorbell, or not. */
static void nic_finds(struct queue *q, uint64_t e)
{
	nic(q, announced(q->at + DBREC), e);
	if (any(4) == 0 && e > q->last && !failure) {
		m.cur[NIC] = join(m.cur[NIC], announced(q->at + DBREC));
		q->last = e;
	}
}
/* The DBREC of a receive queue was stored: the NIC uses the receives below e from now on. */
static void nic_offered(struct queue *q, uint64_t e)
{
	q->rings++;
	if (e < q->last)
		fail("the DBREC of the receive queue falls");
	if (e <= q->last)
		return;
	nic(q, announced(q->at + DBREC), e);
	m.cur[NIC] = join(m.cur[NIC], announced(q->at + DBREC));
	q->last = e;
}

static void nic_writes(struct queue *q, enum loc what, uint64_t i)
{
	store(&m, NIC, q->at + (int)what + (int)(i % q->slots), i / q->slots + 1);
}

#if !SRQ
/* The NIC writes the data of all receives, before the CQE of a dump: with cfg->dump nothing else
 * orders them before a CQE. */
static void nic_flushes(void)
{
	struct queue *rq = &queues[0];

	for (; rq->written < model_slot(rq, rq->executed); rq->written++)
		nic_writes(rq, PAY0, rq->written);
}

/* Executes the next WQE: reads it, writes the payload, then the CQE. Returns 0 if there is none. */
static int nic_executes(struct queue *q)
{
	const unsigned i = (unsigned)model_slot(q, q->executed);
	const unsigned len = QUEUES == 1 && lengths[i] ? lengths[i] : 1;
	unsigned k;

	if (q->executed >= q->last || failure)
		return 0;
	for (k = i; k < i + len; k++) {
		nic_writes(q, READ0, k);
		if (!q->recv || !cfg->dump)
			nic_writes(q, PAY0, k);
	}
	if (QUEUES > 1 && !q->recv)
		nic_flushes();
	fence_rel(&m, NIC, SYS);
	if (q->cqes) {
		store(&m, NIC, q->at + CQE0 + (int)(q->made % q->slots),
		      gdk_bswap16((uint16_t)q->executed) | (q->made / q->slots & 1) << 24);
		q->made++;
	}
	q->executed += (uint64_t)len * q->scale;
	if (!q->cqes)
		store(&m, NIC, q->at + DONE, q->executed);
	stores++;
	return 1;
}

/* Executes one WQE of any queue. */
static void nic_works(void)
{
	if (!nic_executes(&queues[any(QUEUES)]) && QUEUES > 1 && settling)
		(void)(nic_executes(&queues[0]) || nic_executes(&queues[QUEUES - 1]));
}
#endif

/* ---- accesses ---- */

/* Gives control to the scheduler, which resumes the thread for its next access. */
static void step(void)
{
	if (!_setjmp(threads[self].here))
		_longjmp(scheduler, 1);
}

void weak_at(int site)
{
	weakened |= site == mutants[0] || site == mutants[1];
}

/* The order of an access, none if it is the one that is weakened. */
static int order_of(int order)
{
	const int none = weakened && order;

	weakened = weakened && !order;
	return none ? 0 : order;
}

/* The scope of an access, which is narrower if the access is the one that is weakened. */
static int scope_of(int scope)
{
	const int narrow = weakened && how_weak == 'n';

	weakened = weakened && !narrow;
	return scope - narrow;
}

/* Is this memory that the threads share? Only some of it is modelled. */
static int is_shared(const void *p)
{
	const char *c = p;
	int i;

#if RDMA
	if (is_object(c))
		return 1;
#endif
	for (i = 0; i < QUEUES; i++)
		if ((c >= (char *)queues[i].st &&
		     c < (char *)queues[i].st + gdk_qp_state_size(64)) ||
		    (c >= (char *)&queues[i].dev && c < (char *)(&queues[i].dev + 1)))
			return 1;
	return 0;
}

/* The NIC is beyond the GPU, and so is the CPU proxy. A thread may also load a DBREC because of
 * another thread's store. */
static void check_scope(const void *p, int loc, int scope, int is_load)
{
#if SRQ
	if (scope != GDK_SCOPE_SYS && is_cqe(p))
		fail("an access to a CQE has a narrow scope");
#endif
	if (!threads[self].own && scope - 1 < user_scope() && (loc < LOCS || is_shared(p)))
		fail("an access has a scope without the other threads");
	if (loc == LOCS)
		return;
	loc %= QUEUE_LOCS;
	if (((loc == DBREC && !is_load) || loc == REG || loc >= CQE0) && scope != GDK_SCOPE_SYS)
		fail("an access to the NIC's memory has a narrow scope");
}

uint64_t weak_load(const void *p, size_t bytes, int order, int scope)
{
	unsigned shift, old, n;
	const int loc = loc_of(p, &shift), what = loc % QUEUE_LOCS;
	uint64_t v = 0;
	int apart;

	scope = scope_of(scope);
	order = order_of(order);
	check_scope(p, loc, scope, 1);
	if (loc == LOCS) {
		memcpy(&v, p, bytes);
		return v;
	}
	step();
	old = m.cur[self][loc];
	n = m.n[loc];
	/* Loads of the DBREC are repeated until the expected value arrives. */
	if (!settling && what != DBREC && any(2))
		n = old + 1 + any(n - old);
	apart = what >= CQE0 ? SYS : user_scope();
	v = load(&m, self, loc, n - 1, apart);
	if (order & WEAK_ACQ && scope - 1 >= apart)
		acquire(&m, self, loc, n - 1, apart);
	if (what == RUNG && threads[self].took == 1 + loc / QUEUE_LOCS) {
		threads[self].took = 0;
		if (v != newest(&m, loc))
			fail("the thread that took the token reads an old value of rung");
	}
	v >>= shift;
	return bytes == 4 ? (uint32_t)v : v;
}

/* Forbidden: that the stores of two holders of the token are not ordered. A BlueFlame register is
 * not memory, so there the earlier store must have been seen. */
static void check_holder(int loc)
{
	const view v = join(m.cur[self], m.ordered[self]);
	const struct thread *th = &threads[self];
	const int what = loc % QUEUE_LOCS;

	if (what == DBREC && v[loc] != m.n[loc] - 1)
		fail("the DBREC stores of two holders are not ordered");
	if (what == REG && cfg->handler == GDK_PROXY && v[loc] != m.n[loc] - 1)
		fail("the counter stores of two holders are not ordered");
	if (what == REG && cfg->flags & GDK_QPF_BLUEFLAME && m.cur[self][loc] != m.n[loc] - 1)
		fail("register stores of two holders may overlap");
	if (what == PARKED && th->parks && queue_of(th->parks_in) == queue_of(loc) &&
	    m.ordered[self][th->parks_in] < th->parks - 1)
		fail("parked may be stored before the token");
}

/* Forbidden: that the NIC may start a dump before the receive for which the thread waits is
 * complete. */
static void check_dump(const struct queue *q)
{
	const uint64_t need = threads[self].awaits;
	const struct queue *rq = &queues[0];

	if (need && q != rq &&
	    oldest(&m, m.ordered[self], READ0 + (int)((need - 1) % rq->slots)) <
		    (need - 1) / rq->slots + 1)
		fail("a dump may start before the receive is complete");
}

void weak_store(void *p, uint64_t v, size_t bytes, int order, int scope)
{
	unsigned shift;
	const int loc = loc_of(p, &shift), what = loc % QUEUE_LOCS;
	struct queue *q;

	scope = scope_of(scope);
	order = order_of(order);
	check_scope(p, loc, scope, 0);
	if (loc == LOCS) {
		memcpy(p, &v, bytes);
		return;
	}
	q = queue_of(loc);
	step();
	stores++;
	if (order & WEAK_REL)
		fence_rel(&m, self, scope - 1);
	check_holder(loc);
#if RDMA
	word_changes(what, newest(&m, loc), v);
#endif
	store(&m, self, loc, v);
	if (what == DBREC || what == REG)
		check_dump(q);
	if (what == DBREC && q->recv)
		nic_offered(q, index_of(q, v));
	else if (what == DBREC)
		nic_finds(q, index_of(q, v));
	else if (what == RUNG && cfg->flags & GDK_QPF_RUNG_READ && !threads[self].own)
		nic(q, announced(loc), v);
	if (what == REG)
		nic_rung(q, cfg->handler == GDK_PROXY ? v
						      : extended(q, gdk_bswap32((uint32_t)v) >> 8));
}

/* A copy of 64 bytes to the register. The bulk copy of one thread is asynchronous: the thread's
 * later fences do not cover it before weak_settle(). */
void weak_copy(const void *wqe, int bulk)
{
	uint32_t be;
	view cur;

	step();
	stores++;
	memcpy(&be, wqe, sizeof(be));
	if (!threads[self].own)
		check_holder(REG);
	cur = m.cur[self];
	store(&m, self, REG, 0);
	if (bulk)
		m.cur[self] = cur;
	nic_rung(&queues[0], extended(&queues[0], (gdk_bswap32(be) >> 8) + 1));
}

/* Forbidden: that a WQE is overwritten which the NIC may still read. The NIC has been offered WQE i
 * of a slot if `last` is above it. */
void weak_wqe16(void *p, uint64_t lo, uint64_t hi)
{
	struct queue *q = &queues[0];
	uint64_t words[2] = { lo, hi }, slot, offers;
	const char *c = p;
	int at;

	while (q < queues + QUEUES && (c < q->ring || c >= q->ring + sizeof(q->ring)))
		q++;
	memcpy(p, words, sizeof(words));
	if (q == queues + QUEUES || (c - q->ring) % q->wqe_bytes)
		return;
	slot = (uint64_t)(c - q->ring) / q->wqe_bytes;
	slot = ((slot - q->base) & (q->depth - 1)) % q->slots;
	step();
	stores++;
	at = q->at + (int)slot;
	offers = model_slot(q, q->last);
	offers = offers > slot ? (offers - slot - 1) / q->slots + 1 : 0;
#if RDMA
	check_wqe(lo, slot + offers * q->slots);
#endif
	if (oldest(&m, join(m.cur[self], m.ordered[self]), READ0 + at) != offers)
		fail("a WQE is overwritten before the NIC has read it");
	store(&m, self, WQE0 + at,
	      (uint32_t)newest(&m, WQE0 + at) + 1u + ((uint64_t)gdk_bswap32(4) << 32));
}

void weak_settle(void)
{
	unsigned i;

	if (weakened) {
		weakened = 0;
		return;
	}
	for (i = m.cur[self][REG]; i < m.n[REG]; i++) /* of queue 0 */
		if (m.history[REG][i].val == 0)
			m.cur[self] = join(m.cur[self], single(REG, i));
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
	case WEAK_MIN:
		return v < old ? v : old;
	case WEAK_CAS:
		return old == threads[self].expect ? v : old;
	default:
		return v;
	}
}

uint64_t weak_rmw(void *p, uint64_t v, size_t bytes, enum weak_op op, int order, int scope)
{
	unsigned shift;
	const int loc = loc_of(p, &shift), what = loc % QUEUE_LOCS;
	const struct queue *q;
	view rel[SCOPES];
	uint64_t old = 0;

	scope = scope_of(scope);
	order = order_of(order);
	check_scope(p, loc, scope, 0);
	if (loc == LOCS) {
		memcpy(&old, p, bytes);
		v = combined(old, v, op);
		memcpy(p, &v, bytes);
		return old;
	}
	q = queue_of(loc);
	step();
	stores++;
	memcpy(rel, m.rel[self], sizeof(rel));
	if (order & WEAK_ACQ) { /* first the views that the old value carries, then the release */
		saw(&m, self, loc, m.n[loc] - 1, user_scope());
		fence_acq(&m, self, scope - 1);
	}
	if (order & WEAK_REL)
		fence_rel(&m, self, scope - 1);
	if (op == WEAK_CAS && newest(&m, loc) != threads[self].expect) {
		memcpy(m.rel[self], rel, sizeof(rel));
		stores--;
		return load(&m, self, loc, m.n[loc] - 1, user_scope());
	}
	v = combined(newest(&m, loc), v, op);
	if ((what == CQE_CI && v > q->made) || (what == DONE && v > q->executed))
		fail("a slot or CQE counts as complete that is not");
	old = modify(&m, self, loc, v, user_scope());
	memcpy(m.rel[self], rel, sizeof(rel));
#if RDMA
	word_changes(what, old, v);
#endif
	if (what == REG)
		nic_rung(queue_of(loc), v);
	if (what == LEFT && old)
		threads[self].took = 1 + loc / QUEUE_LOCS;
	if (what <= W1 && op == WEAK_OR) {
		threads[self].parks = m.n[loc];
		threads[self].parks_in = loc;
	}
	return old;
}

/* The status does not change in these runs. */
uint64_t weak_cas(void *p, uint64_t expect, uint64_t v, size_t bytes, int order, int scope)
{
	unsigned shift;

	if (loc_of(p, &shift) % QUEUE_LOCS == STATUS) {
		weakened = 0;
		fail("the queue pair has ended");
		return 0;
	}
	threads[self].expect = expect;
	return weak_rmw(p, v, bytes, WEAK_CAS, order, scope);
}

void weak_fence(enum weak_kind kind, int scope)
{
	if (weakened) {
		weakened = 0;
		if (how_weak == 'd')
			return;
		if (how_weak == 'w')
			kind = WEAK_ACQ_REL;
		else
			scope--;
	}
	if (scope == GDK_SCOPE_THREAD)
		return;
	if (kind == WEAK_SC) {
		step();
		fence_sc(&m, self, scope - 1, user_scope());
	} else if (kind == WEAK_LOAD_STORE) {
		fence_load_store(&m, self);
	} else {
		if (kind & WEAK_ACQ)
			fence_acq(&m, self, scope - 1);
		if (kind & WEAK_REL)
			fence_rel(&m, self, scope - 1);
	}
}

uint64_t weak_now(void)
{
	return clock_ns += any(30000);
}

void weak_idle(void)
{
	threads[self].idle_at = stores;
	step();
}

#endif
