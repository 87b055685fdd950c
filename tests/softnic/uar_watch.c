/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Watches the register pages: takes doorbells by atomic exchange with 0, takes arm
 * doorbells of CQs, and maintains each send queue's producer index. Does not parse
 * WQEs (sq.c) and does not write CQEs (cqe.c).
 *
 * The producer index is the index in the doorbell plus the size in blocks: libmlx5
 * writes the index and size of the last WQE to the register, other libraries the next
 * index and size 0. (Inferred from their code.) A 64-byte BlueFlame copy begins with
 * the same two words; the WQE itself is read from the send ring.
 *
 * Lost doorbells. A register holds one value, so a doorbell that another QP overwrites
 * before the poll is lost. A QP with a DBREC loses nothing: after any doorbell on a
 * page, the DBRECs of all QPs of the page are read, at most SCAN_MAX per pass, so that
 * the cost of a doorbell does not depend on the number of QPs. In addition a slow sweep
 * reads all DBRECs.
 *
 * For a QP without DBREC, the next doorbell covers a lost one. If its last doorbell is
 * lost, the send ring replaces it: after *another* QP has rung on the page, the NIC
 * searches the blocks from the producer index on for WQEs whose control segment has
 * exactly the expected index and QP number. It executes them when they are certainly
 * complete: when their bytes have not changed for SETTLE_CUDA or SETTLE_CPU.
 * - SETTLE_CUDA holds for memory that the CUDA driver knows. A GPU does not preempt
 *   a thread within a WQE, but diverged lanes of a warp take turns, and 200 us were
 *   too short on an H200.
 * - SETTLE_CPU holds for other memory. In addition each thread of the process must
 *   have run since or sleep (writers.c), because a thread may lose its core between
 *   the control segment and the rest of a WQE. A thread that gets no core delays this
 *   for 8 s; then the recovery counts as db_forced.
 * Programs of CPU threads need no recovery if they include lossless.h.
 * The 16-bit index repeats after 65536 blocks and a send ring has at most 32768, so
 * a WQE of an earlier lap never has the expected index.
 */
#include <stdlib.h>

#include <zlib.h>

#include "eng.h"
#include "eth.h"

#define SETTLE_CUDA	4000000ull
#define SETTLE_CPU	20000000ull
#define SETTLE_EVERY	100000ull
#define SWEEP_EVERY	1000000ull
#define GPU_SWEEP_EVERY 20000000ull
#define PROBE_EVERY	50000000ull
#define ARM_OFFSET	0x20u
#define WAITING_OFFSET	0x640u /* SOFTNIC_WAITING of lossless.h */
#define LOSSLESS_OFFSET 0x650u /* SOFTNIC_LOSSLESS of lossless.h */
#define POLL_MAX	64u    /* pages polled per pass, besides those of busy QPs */
#define SCAN_MAX	32u    /* QPs of one page whose DBRECs are read in one pass */
#define SWEEP_MAX	64u    /* QPs in one step of the sweep */

/* Offsets of the doorbell registers in a page: 0x600 for QPs without DBREC, then both BlueFlame
 * buffers of two registers. */
static const uint16_t registers[] = { 0x600, 0x800, 0x900, 0xa00, 0xb00 };

/* ---- queue memory ---- */

bool sn_dbrec_read(struct sn_qp_eng *q, unsigned word, uint32_t *value)
{
	uint64_t at = q->qp->dbr + 4 * word;
	uint32_t v;

	if (!q->qp->dbr)
		return false;
	if (q->dbr_gpu || !q->dbr_ok) {
		if (sn_mem_read(q->dbr_gpu, at, &v, 4))
			return false;
	} else {
		v = __atomic_load_n((uint32_t *)(uintptr_t)at, __ATOMIC_ACQUIRE);
	}
	*value = be32toh(v);
	return true;
}

/* Acquire: pairs with the release stores of the threads that wrote the WQEs. The copy itself is
 * a system call, which ThreadSanitizer does not see. */
static void acquire_blocks(uint64_t va, uint32_t blocks)
{
#ifdef __SANITIZE_THREAD__
	for (; blocks; blocks--, va += 64)
		(void)__atomic_load_n((const uint64_t *)(uintptr_t)va, __ATOMIC_ACQUIRE);
#else
	(void)va;
	(void)blocks;
#endif
}

static bool ring_copy(struct sn_qp_eng *q, uint32_t idx, uint8_t *dst, uint32_t blocks)
{
	uint32_t size = q->qp->sq_wqebbs, at, n;
	uint64_t va;

	for (; blocks; blocks -= n, idx += n, dst += 64 * n) {
		at = idx & (size - 1);
		n = size - at < blocks ? size - at : blocks;
		va = q->qp->sq_buf + 64ull * at;
		if (sn_mem_read(q->sq_gpu, va, dst, 64ull * n))
			return false;
		if (!q->sq_gpu)
			acquire_blocks(va, n);
	}
	return true;
}

/* Reads blocks below pi, with read-ahead, because blocks that were rung do not change. Returns
 * false if the memory cannot be read. */
bool sn_sq_read(struct sn_qp_eng *q, uint32_t idx, void *dst, uint32_t blocks)
{
	uint32_t n = q->sq.pi - idx;

	if (idx - q->sq.cache_at >= q->sq.cache_n ||
	    idx - q->sq.cache_at + blocks > q->sq.cache_n) {
		q->sq.cache_n = 0;
		if (n > SN_SQ_CACHE)
			n = SN_SQ_CACHE;
		if (!q->cache)
			q->cache = malloc(64 * SN_SQ_CACHE);
		if (!q->cache || n < blocks || !ring_copy(q, idx, q->cache, n))
			return false;
		q->sq.cache_at = idx;
		q->sq.cache_n = n;
	}
	memcpy(dst, q->cache + 64 * (idx - q->sq.cache_at), 64 * blocks);
	return true;
}

/* ---- producer index ---- */

/* Advances pi to the given 16-bit index. Returns true if pi changed. */
static bool raise_pi(struct sn_eng *e, struct sn_qp_eng *q, uint32_t index, const char *by)
{
	uint32_t size = q->qp->sq_wqebbs, d = (index - q->sq.fetch) & 0xffff;

	if (d <= q->sq.pi - q->sq.fetch)
		return false;
	if (d > size) {
		if (((q->sq.fetch - index) & 0xffff) > 2 * size)
			sn_violation(&e->dev->stats.bad_doorbell,
				     "QP 0x%x: ignoring %s to index %u, next WQE %u of %u",
				     q->qp->qpn, by, index & 0xffff, q->sq.fetch & 0xffff, size);
		return false;
	}
	q->sq.pi = q->sq.fetch + d;
	q->sq.quiet_since = 0;
	sn_qp_wake(e, q);
	return true;
}

static bool executes(const struct sn_qp_eng *q)
{
	return q->qp->sq_wqebbs && q->qp->state >= SN_QPS_RTS;
}

/* Reads the DBREC, if the QP has one. Returns true if it shows new WQEs. */
bool sn_sq_posted(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint32_t v;

	return executes(q) && !q->qp->no_dbr && sn_dbrec_read(q, 1, &v) &&
	       raise_pi(e, q, v, "DBREC");
}

/* Reads a word that lossless.h keeps in the queue pair's page. Acquire: see is_ringing(). */
static uint64_t lossless_word(const struct sn_eng *e, const struct sn_qp_eng *q, unsigned offset)
{
	uint8_t *uar = e->dev->uars[q->page - e->page].page;

	return uar ? __atomic_load_n((uint64_t *)(void *)(uar + offset), __ATOMIC_ACQUIRE) : 0;
}

static void note_early(struct sn_eng *e, struct sn_qp_eng *q, uint32_t n)
{
	q->sq.early = n;
	q->sq.early_end = q->sq.pi;
	q->sq.early_times++;
	SN_COUNT(e, q->qp, db_recovered, 1);
}

/* A doorbell that arrives after it was recovered was late, not lost: its thread got no core.
 * lossless.h loses none, so there each doorbell makes up for all recoveries since the one before:
 * a thread that is late may ring also for what others posted later. Otherwise a doorbell for what
 * was posted later says nothing about an earlier one. */
static void count_late(struct sn_eng *e, struct sn_qp_eng *q, uint32_t index)
{
	if (lossless_word(e, q, LOSSLESS_OFFSET))
		SN_COUNT(e, q->qp, db_recovered, -(uint64_t)q->sq.early_times);
	else if (((q->sq.early_end - index) & 0xffff) < q->sq.early)
		SN_COUNT(e, q->qp, db_recovered, -1);
	q->sq.early = q->sq.early_times = 0;
}

static void rung(struct sn_eng *e, struct sn_qp_eng *q, uint32_t w0, uint32_t w1)
{
	uint32_t index = (w0 >> 8) + ((w1 & 0x3f) + 3) / 4;

	q->sq.last_ring = ++q->page->rings;
	count_late(e, q, index);
	/* A QP in reset has no queue. Its doorbell can come late from a thread that rings for
	 * other threads, so it is no violation. */
	if (!q->qp->sq_wqebbs || q->qp->state == SN_QPS_RST)
		return;
	if (e->dev->cfg.dbrec_only && !q->qp->no_dbr)
		sn_sq_posted(e, q);
	else
		raise_pi(e, q, index, "doorbell");
}

/* ---- DBRECs of a page's QPs, after a ring ---- */

void sn_uar_attach(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_page *page = &e->page[q->qp->uar % SN_MAX_UARS];

	q->page = page;
	SN_LINK(&page->qps, q, page_next, page_at);
	page->nqps++;
	q->sq.last_ring = page->rings;
}

void sn_uar_detach(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_page *page = q->page;

	if (e->sweep == q)
		e->sweep = q->next;
	SN_UNLINK(q, page_next, page_at);
	page->nqps--;
	if (page->at == q)
		page->at = q->page_next;
}

/* Requests that the DBREC of each QP of the page is read once, some in each pass. */
static void request_scan(struct sn_eng *e, struct sn_page *page)
{
	if (!page->to_scan) {
		page->next = e->scans;
		e->scans = page;
	}
	page->to_scan = page->nqps;
}

static bool scan_some(struct sn_eng *e, struct sn_page *page)
{
	unsigned n = page->to_scan < SCAN_MAX ? page->to_scan : SCAN_MAX;

	for (page->to_scan -= n; n && page->qps; n--) {
		if (!page->at)
			page->at = page->qps;
		/* the doorbell of the QP that rang last was not overwritten */
		if (page->at->sq.last_ring != page->rings)
			e->dev->stats.db_recovered += sn_sq_posted(e, page->at);
		page->at = page->at->page_next;
	}
	return page->to_scan;
}

static bool scan_pages(struct sn_eng *e)
{
	struct sn_page **at = &e->scans;
	bool any = e->scans;

	while (*at) {
		if (scan_some(e, *at))
			at = &(*at)->next;
		else
			*at = (*at)->next;
	}
	return any;
}

/* ---- registers ---- */

static bool take_word(uint8_t *reg, uint32_t *w0, uint32_t *w1)
{
	uint64_t v = __atomic_load_n((uint64_t *)(void *)reg, __ATOMIC_ACQUIRE);
	uint8_t b[8];

	memcpy(b, &v, 8);
	if (!v || !sn_get32(b + 4)) /* nothing, or only the first half yet */
		return false;
	v = __atomic_exchange_n((uint64_t *)(void *)reg, 0, __ATOMIC_ACQ_REL);
	memcpy(b, &v, 8);
	*w0 = sn_get32(b);
	*w1 = sn_get32(b + 4);
	return *w1 != 0;
}

/* Clears the rest of a BlueFlame copy. Returns true if there was one. */
static bool take_tail(uint8_t *reg)
{
	uint64_t any = 0;
	unsigned i;

	for (i = 8; i < 64; i += 8)
		if (__atomic_load_n((uint64_t *)(void *)(reg + i), __ATOMIC_RELAXED))
			any |= __atomic_exchange_n((uint64_t *)(void *)(reg + i), 0,
						   __ATOMIC_RELAXED);
	return any;
}

static bool poll_register(struct sn_eng *e, uint32_t page, uint8_t *reg)
{
	uint32_t w0, w1;
	struct sn_qp *qp;
	bool bf;

	if (!take_word(reg, &w0, &w1))
		return false;
	bf = take_tail(reg);
	e->dev->stats.blueflame += bf;
	e->dev->stats.doorbells += !bf;
	qp = sn_find_qp(e->dev, w1 >> 8);
	if (!qp || !qp->eng || qp->uar != page) {
		sn_violation(&e->dev->stats.bad_doorbell,
			     "page %u: ignoring doorbell of QP 0x%x, no QP of this page", page,
			     w1 >> 8);
	} else {
		qp->stats.blueflame += bf;
		qp->stats.doorbells += !bf;
		rung(e, qp->eng, w0, w1);
	}
	request_scan(e, &e->page[page]);
	return true;
}

static bool poll_arm(struct sn_eng *e, uint8_t *page)
{
	struct sn_cq *cq;
	uint32_t w0, w1;

	if (!take_word(page + ARM_OFFSET, &w0, &w1))
		return false;
	cq = sn_find_cq(e->dev, w1 & 0xffffff);
	/* sn_cq_scan_arms() may have taken this arm already: then arm_word is the same */
	if (cq && cq->eng && !(cq->eng->arm_seen && cq->eng->arm_word == htobe32(w0))) {
		cq->eng->arm_word = htobe32(w0);
		sn_cq_arm(e, cq, w0);
	}
	sn_cq_scan_arms(e, true);
	return true;
}

static bool poll_page(struct sn_eng *e, uint32_t i)
{
	const struct sn_uar *uar = &e->dev->uars[i];
	bool any = false;
	unsigned r;

	e->page[i].polled = e->passes;
	if (!uar->used || !uar->page)
		return false;
	for (r = 0; r < sizeof(registers) / sizeof(registers[0]); r++)
		any |= poll_register(e, i, uar->page + registers[r]);
	return poll_arm(e, uar->page) || any;
}

void sn_uar_list(struct sn_eng *e)
{
	unsigned i;

	e->nuars = 0;
	for (i = 0; i < SN_MAX_UARS; i++)
		if (e->dev->uars[i].used && e->dev->uars[i].page)
			e->uars[e->nuars++] = i;
}

/* Polls at most POLL_MAX pages, in rotation, and the pages of busy QPs. */
bool sn_uar_poll(struct sn_eng *e)
{
	unsigned i, n = e->nuars < POLL_MAX ? e->nuars : POLL_MAX;
	struct sn_qp_eng *q;
	bool any = false;

	for (i = 0; i < n; i++) {
		if (e->next_uar >= e->nuars)
			e->next_uar = 0;
		any |= poll_page(e, e->uars[e->next_uar++]);
	}
	for (q = e->busy; n < e->nuars && q; q = q->busy_next)
		if (q->page->polled != e->passes)
			any |= poll_page(e, q->page - e->page);
	return scan_pages(e) || any;
}

void sn_uar_drain(struct sn_eng *e, uint32_t page)
{
	if (page < SN_MAX_UARS)
		poll_page(e, page);
}

/* ---- slow paths ---- */

static bool sweep_qp(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint32_t pi = q->sq.pi;
	bool any = false;
	uint8_t byte;

	e->sweep_no_dbr |= q->qp->no_dbr;
	if (e->sweep_probes && q->dbr_ok && sn_mem_read(false, q->qp->dbr, &byte, 1))
		q->dbr_ok = false;
	if (q->dbr_gpu && !e->sweep_gpu)
		return false;
	if (sn_sq_posted(e, q)) {
		note_early(e, q, q->sq.pi - pi);
		any = true;
	}
	if (q->qp->state == SN_QPS_ERR && q->qp->type == SN_QPT_RQ)
		sn_eth_rq_flush(e, q);
	else if (q->qp->state == SN_QPS_ERR)
		sn_rq_flush(e, q);
	return any;
}

static void sweep_again(struct sn_eng *e)
{
	e->sweep = e->qps;
	e->no_dbr = e->sweep_no_dbr;
	e->sweep_no_dbr = false;
	e->sweep_gpu = e->now >= e->next_gpu_sweep;
	e->sweep_probes = e->now >= e->next_probe;
	if (e->sweep_gpu)
		e->next_gpu_sweep = e->now + GPU_SWEEP_EVERY;
	if (e->sweep_probes)
		e->next_probe = e->now + PROBE_EVERY;
}

/* Every SWEEP_EVERY ns, reads the DBRECs of the next SWEEP_MAX queue pairs (those in GPU memory
 * only every GPU_SWEEP_EVERY ns) and the arm words of the CQs. */
bool sn_uar_sweep(struct sn_eng *e)
{
	bool any = false;
	unsigned n;

	if (e->now < e->next_sweep)
		return false;
	e->next_sweep = e->now + SWEEP_EVERY;
	sn_cq_scan_arms(e, false);
	if (!e->sweep)
		sweep_again(e);
	for (n = 0; n < SWEEP_MAX && e->sweep; n++, e->sweep = e->sweep->next)
		any |= sweep_qp(e, e->sweep);
	return any;
}

/* Returns the number of blocks from pi on that hold WQEs of this lap, and their checksum. */
static uint32_t written_ahead(struct sn_qp_eng *q, uint64_t *sum)
{
	uint32_t n = 0, blocks, crc = 0, idx;
	uint8_t wqe[SN_WQE_MAX];

	while (n < q->qp->sq_wqebbs - (q->sq.pi - q->sq.fetch)) {
		idx = q->sq.pi + n;
		if (!ring_copy(q, idx, wqe, 1) || (sn_get32(wqe) >> 8 & 0xffff) != (idx & 0xffff) ||
		    sn_get32(wqe + 4) >> 8 != q->qp->qpn)
			break;
		blocks = ((sn_get32(wqe + 4) & 0x3f) + 3) / 4;
		if (!blocks || n + blocks > q->qp->sq_wqebbs || !ring_copy(q, idx, wqe, blocks))
			break;
		crc = crc32(crc, wqe, 64 * blocks);
		n += blocks;
	}
	*sum = crc;
	return n;
}

/* Returns whether the doorbell of q may still come: a thread waits in lossless.h until the
 * register is free, or the doorbell has just come. Acquire: pairs with the release in
 * softnic_mmio_st64(). */
static bool is_ringing(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint32_t pi = q->sq.pi;

	if (lossless_word(e, q, WAITING_OFFSET))
		return true;
	poll_page(e, (uint32_t)(q->page - e->page));
	return q->sq.pi != pi;
}

/* Advances pi over unrung WQEs of a QP without DBREC if they have not changed for long enough.
 * Returns true if pi changed. Uses the clock instead of e->now, because the pass may have begun
 * long ago. */
static bool settle(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint64_t sum, wait = q->sq_cuda ? SETTLE_CUDA : SETTLE_CPU, before = sn_now();
	uint32_t n = written_ahead(q, &sum);

	sum |= (uint64_t)n << 32;
	if (!n || !q->sq.quiet_since || sum != q->sq.quiet_sum) {
		q->sq.quiet_since = n ? sn_now() : 0;
		q->sq.quiet_sum = sum;
		return false;
	}
	if (before - q->sq.quiet_since < wait ||
	    (!q->sq_cuda &&
	     !sn_writers_passed(&e->writers, q->qp->qpn, q->sq.quiet_since, before)) ||
	    is_ringing(e, q))
		return false;
	q->sq.pi += n;
	note_early(e, q, n);
	q->sq.quiet_since = 0;
	q->sq.last_ring = q->page->rings;
	sn_qp_wake(e, q);
	SN_COUNT(e, q->qp, db_forced, !q->sq_cuda && e->writers.forced);
	return true;
}

bool sn_uar_settle(struct sn_eng *e)
{
	struct sn_qp_eng *q;
	bool any = false;

	if (!e->no_dbr || e->now < e->next_settle)
		return false;
	e->next_settle = e->now + SETTLE_EVERY;
	for (q = e->qps; q; q = q->next)
		if (q->qp->no_dbr && q->sq.last_ring != q->page->rings && executes(q))
			any |= settle(e, q);
	return any;
}
