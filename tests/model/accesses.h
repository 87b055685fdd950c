/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The accesses of the device code to the memory of weak.h, and what the NIC makes of them: part of
 * replay.c. */
#ifndef ACCESSES_H
#define ACCESSES_H

/* ---- locations ---- */

/* The location of an address, or LOCS: memory that is not modelled. *shift: bits to the right of
 * the accessed word in the location's value. */
static int loc_of(const void *p, unsigned *shift)
{
	const struct {
		const void *at;
		int loc;
	} fields[] = {
		{ &st->left, LEFT },	      { &st->wanted, WANTED },
		{ &st->rung, RUNG },	      { &st->parked, PARKED },
		{ &st->completed, DONE },     { &st->status, STATUS },
		{ &st->cqe_ci, CQE_CI },      { &st->uneven, UNEVEN },
		{ &st->long_wqe, LONG_WQE },  { &st->bf_half, BF_HALF },
		{ (uint64_t *)(st + 1), W0 }, { &dbrec, DBREC },
	};
	const char *c = p;
	unsigned i;

	*shift = 0;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (p == fields[i].at)
			return fields[i].loc;
	if (sc->depth > 32 && p == (uint64_t *)(st + 1) + 1)
		return W1;
	if (c >= (char *)page && c < (char *)(page + 128))
		return REG;
	if (sc->cqes && c >= ring && c < ring + (size_t)slots * 64 && (c - ring) % 64 == 4) {
		*shift = 32;
		return WQE0 + (int)((c - ring) / 64);
	}
	if (sc->cqes && c >= cq && c < cq + (size_t)slots * 64 && (c - cq) % 64 == 60)
		return CQE0 + (int)((c - cq) / 64);
	return LOCS;
}

/* ---- the NIC ---- */

static uint64_t published(void)
{
	const uint64_t words[2] = { newest(&m, W0), newest(&m, W1) };
	uint64_t i;

	for (i = last; i < last + sc->depth; i++)
		if ((words[i % sc->depth / 32] >> i % sc->depth % 32 & 1) == (i / sc->depth & 1))
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

/* The NIC acts on the index e with the view v of the store that announced it, in addition to what
 * it has seen before. Forbidden: an index beyond the published slots (exclusive use publishes after
 * the doorbell); an index in the middle of a WQE; and a WQE whose store the NIC need not see yet,
 * because then nothing orders the poster's stores before the NIC's reads. */
static void nic(view v, uint64_t e)
{
	uint64_t i;

	if (failure)
		return;
	if (e > published() && !threads[self].own)
		fail("a doorbell covers slots that are not published");
	if (is_cut(e))
		fail("a doorbell ends in the middle of a WQE");
	for (i = (last - sc->base) / sc->scale; real((unsigned)i) < e; i++)
		if ((uint32_t)oldest(&m, join(m.cur[NIC], v), WQE0 + (int)(i % slots)) !=
		    i / slots + 1)
			fail("the NIC may read a WQE before its store");
}

static uint64_t index_of(uint32_t be)
{
	return gdk_bswap32(be) & 0xffff;
}

static view announced(int loc)
{
	return last_message(&m, loc)->with[nic_scope()];
}

/* The register, or the proxy's counter, was stored. A NIC ignores an index that is not above the
 * last one, but the proxy does not. In exclusive use nothing orders DBREC and register. */
static void nic_rung(uint64_t e)
{
	const view v = announced(REG);
	const int late = gdk_has_dbrec(cfg->handler) &&
			 index_of((uint32_t)oldest(&m, v, DBREC)) < e;

	rings += cfg->handler != GDK_PROXY;
	if (cfg->handler == GDK_PROXY && e < last)
		fail("the counter of the proxy falls");
	if (!late && e >= loose)
		loose = 0;
	if (e <= last)
		return;
	nic(v, e);
	if (late && (!threads[self].own || threads[self].own == HAND))
		fail("the NIC may read a DBREC that is older than the doorbell");
	if (late)
		loose = e;
	m.cur[NIC] = join(m.cur[NIC], v);
	last = e;
}

/* Executes the next WQE: reads it, writes the payload, then the CQE. Returns 0 if there is none. */
static int nic_executes(void)
{
	const unsigned i = (unsigned)((executed - sc->base) / sc->scale);
	const unsigned len = lengths[i] ? lengths[i] : 1;
	unsigned k;

	if (executed >= last || failure)
		return 0;
	for (k = i; k < i + len; k++) {
		store(&m, NIC, READ0 + (int)(k % slots), k / slots + 1);
		store(&m, NIC, PAY0 + (int)(k % slots), k / slots + 1);
	}
	fence_rel(&m, NIC, SYS);
	if (sc->cqes) {
		store(&m, NIC, CQE0 + (int)(cqes % slots),
		      gdk_bswap16((uint16_t)executed) | (cqes / slots & 1) << 24);
		cqes++;
	}
	executed += (uint64_t)len * sc->scale;
	if (!sc->cqes)
		store(&m, NIC, DONE, executed);
	stores++;
	return 1;
}

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

static void check_scope(int loc, int scope)
{
	if (!threads[self].own && scope - 1 < user_scope())
		fail("an access has a scope without the other threads");
	if ((loc == DBREC || loc == REG || loc >= CQE0) && scope != GDK_SCOPE_SYS &&
	    scope != GDK_SCOPE_GPU)
		fail("an access to the NIC's memory has a narrow scope");
}

uint64_t weak_load(const void *p, size_t bytes, int order, int scope)
{
	unsigned shift, old, n;
	const int loc = loc_of(p, &shift);
	uint64_t v = 0;

	order = order_of(order);
	if (loc == LOCS) {
		memcpy(&v, p, bytes);
		return v;
	}
	check_scope(loc, scope);
	step();
	old = m.cur[self][loc];
	n = m.n[loc];
	/* Loads of the DBREC are repeated until the expected value arrives. */
	if (!settling && loc != DBREC && any(2))
		n = old + 1 + any(n - old);
	v = load(&m, self, loc, n - 1, loc >= CQE0 ? SYS : user_scope());
	if (order & WEAK_ACQ)
		fence_acq(&m, self, scope - 1);
	if (loc == RUNG && threads[self].took) {
		threads[self].took = 0;
		if (v != newest(&m, RUNG))
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

	if (loc == DBREC && v[loc] != m.n[loc] - 1)
		fail("the DBREC stores of two holders are not ordered");
	if (loc == REG && cfg->handler == GDK_PROXY && v[loc] != m.n[loc] - 1)
		fail("the counter stores of two holders are not ordered");
	if (loc == REG && cfg->flags & GDK_QPF_BLUEFLAME && m.cur[self][loc] != m.n[loc] - 1)
		fail("register stores of two holders may overlap");
	if (loc == PARKED && threads[self].parks &&
	    m.ordered[self][threads[self].parks_in] < threads[self].parks - 1)
		fail("parked may be stored before the token");
}

void weak_store(void *p, uint64_t v, size_t bytes, int order, int scope)
{
	unsigned shift;
	const int loc = loc_of(p, &shift);

	order = order_of(order);
	if (loc == LOCS) {
		memcpy(p, &v, bytes);
		return;
	}
	check_scope(loc, scope);
	step();
	stores++;
	if (order & WEAK_REL)
		fence_rel(&m, self, scope - 1);
	check_holder(loc);
	store(&m, self, loc, v);
	if (loc == DBREC || (loc == RUNG && cfg->flags & GDK_QPF_RUNG_READ && !threads[self].own))
		nic(announced(loc), loc == RUNG ? v : index_of((uint32_t)v));
	if (loc == REG)
		nic_rung(cfg->handler == GDK_PROXY ? v : gdk_bswap32((uint32_t)v) >> 8 & 0xffff);
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
	nic_rung((gdk_bswap32(be) >> 8 & 0xffff) + 1);
}

void weak_settle(void)
{
	unsigned i;

	if (weakened) {
		weakened = 0;
		return;
	}
	for (i = m.cur[self][REG]; i < m.n[REG]; i++)
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
	default:
		return v;
	}
}

uint64_t weak_rmw(void *p, uint64_t v, size_t bytes, enum weak_op op, int order, int scope)
{
	unsigned shift;
	const int loc = loc_of(p, &shift);
	view rel[SCOPES];
	uint64_t old = 0;

	order = order_of(order);
	if (loc == LOCS) {
		memcpy(&old, p, bytes);
		v = combined(old, v, op);
		memcpy(p, &v, bytes);
		return old;
	}
	check_scope(loc, scope);
	step();
	stores++;
	memcpy(rel, m.rel[self], sizeof(rel));
	if (order & WEAK_ACQ) { /* first the views that the old value carries, then the release */
		saw(&m, self, loc, m.n[loc] - 1, user_scope());
		fence_acq(&m, self, scope - 1);
	}
	if (order & WEAK_REL)
		fence_rel(&m, self, scope - 1);
	v = combined(newest(&m, loc), v, op);
	if ((loc == CQE_CI && v > cqes) || (loc == DONE && v > executed))
		fail("a slot or CQE counts as complete that is not");
	old = modify(&m, self, loc, v, user_scope());
	memcpy(m.rel[self], rel, sizeof(rel));
	if (loc == REG)
		nic_rung(v);
	threads[self].took |= loc == LEFT && old;
	if (loc <= W1 && op == WEAK_OR) {
		threads[self].parks = m.n[loc];
		threads[self].parks_in = loc;
	}
	return old;
}

/* Only the status is changed by a compare-and-swap, and it does not change in these runs. */
uint64_t weak_cas(void *p, uint64_t expect, uint64_t v, size_t bytes)
{
	(void)p, (void)expect, (void)v, (void)bytes;
	weakened = 0;
	fail("the queue pair has ended");
	return 0;
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
