/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Executes the send queues of Ethernet frames: fetches WQEs, sends at most
 * SN_ETH_PASS_FRAMES frames of each SQ per pass, waits for a time or for a full receiver without
 * delaying other SQs, and writes the completions. Also the state changes of SQs and RQs.
 */
#include <errno.h>
#include <stdlib.h>

#include "eth_wqe.h"

#define WQES_PER_PASS  256u
#define CE_MASK	       0x0c
#define CE_FIRST_ERROR 0x04
#define CE_ALWAYS      0x08 /* 0x0c: and raise an event */

/* The WQE in progress. */
struct sn_eth_tx {
	struct sn_eth_wqe w;
	bool active;	       /* w is valid and not completed */
	uint32_t next;	       /* frame of w to be built next */
	struct sn_frame *held; /* built and not sent, because a receiver is full */
	uint64_t due;	       /* end of a wait, ns of sn_now(); 0: none */
	uint32_t completed;    /* for cfg.err_after */
	bool egress;	       /* this pass applies rules to sent frames */
	bool ce_error;	       /* an error CQE was written in state ERR */
};

static struct sn_eth_tx *tx_of(const struct sn_qp_eng *q)
{
	return q->qp->type == SN_QPT_SQ ? q->qp->eth->tx : NULL;
}

/* ---- completion ---- */

static void write_cqe(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_eth_wqe *w)
{
	struct sn_cqe_args a = { .opcode = w->synd ? SN_CQE_REQ_ERR : SN_CQE_REQ,
				 .synd = w->synd,
				 .vendor = w->vendor,
				 .wqe_opcode = w->opcode,
				 .counter = w->idx };

	if (w->synd || q->qp->sig_all || (w->fm & CE_MASK) >= CE_ALWAYS)
		sn_cqe_write(e, q->qp->scq, q->qp, &a);
}

/* Completes the WQE in progress. Returns false if the SQ is in error now. */
static bool complete(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx)
{
	tx->active = false;
	tx->due = 0;
	tx->ce_error |= tx->w.synd;
	write_cqe(e, q, &tx->w);
	if (!tx->w.synd && e->dev->cfg.err_after && ++tx->completed >= e->dev->cfg.err_after)
		e->dev->stats.faults_injected++;
	else if (!tx->w.synd)
		return true;
	sn_eth_qp_modify(e->dev, q->qp, SN_QPS_ERR);
	return false;
}

static void fail(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx, uint8_t synd)
{
	tx->w.synd = synd;
	tx->w.vendor = synd == SN_SYND_RETRY ? 0x81 : 0x51;
	if (synd == SN_SYND_LOC_PROT)
		SN_COUNT(e, q->qp, local_prot_errors, 1);
	complete(e, q, tx);
}

/* ---- frames ---- */

/* Applies the egress rules: copies for sniffers, then the first rule that matches, and those equal
 * to it. */
static bool egress_drops(struct sn_eng *e, const struct sn_frame *f, const struct sn_parsed *p)
{
	struct sn_rule *first = sn_flow_find(e->dev->rules, p, true), *r;
	bool drop = false;

	for (; first && first->sniffer; first = sn_flow_find(first->next, p, true))
		sn_eth_copy(e, f, first);
	for (r = first; r && sn_rule_same(first, r); r = sn_flow_find(r->next, p, true)) {
		sn_rule_hit(r, f->len);
		drop |= r->drop;
	}
	e->dev->stats.eth_egress_dropped += drop;
	if (drop && e->dev->cfg.trace)
		sn_trace_frame("tx", f, ", dropped by a rule");
	return drop;
}

static bool egress_rules(const struct sn_eng *e)
{
	const struct sn_rule *r;

	for (r = e->dev->rules; r && !r->egress; r = r->next)
		;
	return r;
}

/* Builds frame `next`. Returns 1: it is held, 0: it was dropped by a rule, -ENOMEM
 * or -EFAULT. */
static int build(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx)
{
	struct sn_frame *f = sn_frame_get(e);
	struct sn_parsed p;

	if (!f)
		return -ENOMEM;
	if (sn_eth_build(e, q, &tx->w, tx->next, f)) {
		sn_frame_put(e, f);
		return -EFAULT;
	}
	f->tdn = q->qp->eth->tis ? q->qp->eth->tis->td->tdn : 0;
	if (tx->w.cs_flags || tx->egress) {
		sn_eth_parse(f->data, f->len, &p);
		sn_eth_checksum(f, &p, tx->w.cs_flags);
		if (tx->egress && egress_drops(e, f, &p)) {
			sn_frame_put(e, f);
			return 0;
		}
	}
	tx->held = f;
	return 1;
}

/* Sends frames of the WQE in progress. Returns 1: all are sent, 0: it must wait, -1: the SQ is in
 * error. */
static int send_frames(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx,
		       unsigned *budget)
{
	struct sn_eth_stats *stats = &q->qp->eth->stats;
	uint32_t len;
	int made, sent;

	for (; tx->next < tx->w.frames; tx->next++, --*budget) {
		if (!*budget)
			return 0;
		made = tx->held ? 1 : build(e, q, tx);
		if (made == -EFAULT) {
			fail(e, q, tx, SN_SYND_LOC_PROT);
			return -1;
		}
		if (made < 0)
			return 0;
		if (!made)
			continue;
		len = tx->held->len;
		sent = sn_eth_transmit(e, tx->held);
		if (sent < 0)
			fail(e, q, tx, SN_SYND_RETRY);
		if (sent <= 0)
			return sent;
		tx->held = NULL;
		stats->frames++;
		stats->frame_bytes += len;
	}
	return 1;
}

/* ---- waiting for a time ---- */

/* Nanoseconds from `now` to a time at or after it, both as WQEs give times. */
static uint64_t distance(uint64_t now, uint64_t then, bool real_time)
{
	if (!real_time)
		return then - now;
	return ((then >> 32) - (now >> 32)) * 1000000000ull + (uint32_t)then - (uint32_t)now;
}

/* Returns true if the time of the WAIT has come. If the masked difference exceeds half of the mask,
 * the time is in the past. */
static bool time_reached(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx)
{
	bool real_time = sn_clock_real(e->dev, q->qp);
	uint64_t now = sn_clock_stamp(e, real_time), mask = tx->w.wait_mask;
	uint64_t left = (tx->w.wait_value - now) & mask;

	if (!left || left > mask / 2)
		return true;
	tx->due = sn_now() + distance(now, now + left, real_time);
	return false;
}

uint64_t sn_eth_sq_due(const struct sn_qp_eng *q)
{
	const struct sn_eth_tx *tx = tx_of(q);

	return tx && tx->active ? tx->due : 0;
}

/* ---- WQEs ---- */

static uint32_t wqe_blocks(const uint8_t *wqe)
{
	uint32_t ds = sn_get32(wqe + 4) & 0x3f;

	return ds ? (ds + 3) / 4 : 0;
}

static void count_kind(struct sn_eth_stats *stats, const struct sn_eth_wqe *w)
{
	stats->tso_wqes += w->opcode == SN_OP_TSO;
	stats->empw_wqes += w->opcode == SN_OP_EMPW;
	stats->wait_wqes += w->opcode == SN_OP_WAIT;
}

/* Reads and parses the WQE at fetch, which becomes the one in progress. */
static void fetch(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx)
{
	struct sn_eth_wqe *w = &tx->w;
	uint32_t blocks;

	memset(w, 0, offsetof(struct sn_eth_wqe, piece));
	w->idx = q->sq.fetch;
	w->blocks = 1;
	if (!sn_sq_read(q, w->idx, w->raw, 1)) {
		w->synd = SN_SYND_LOC_PROT;
		w->vendor = 0x33;
	} else {
		blocks = wqe_blocks(w->raw);
		if (!blocks || blocks > q->sq.pi - q->sq.fetch)
			sn_eth_wqe_bad(q, w, &e->dev->stats.db_unwritten_wqe,
				       "size is 0 or exceeds the rung index, blocks", blocks);
		else if (blocks > 1 && !sn_sq_read(q, w->idx, w->raw, blocks))
			w->synd = SN_SYND_LOC_PROT;
		else
			w->blocks = blocks, sn_eth_wqe_parse(e, q, w);
	}
	if (e->dev->cfg.trace)
		sn_trace_eth_wqe(q, w);
	q->sq.fetch += w->blocks;
	tx->active = true;
	tx->next = 0;
	SN_COUNT(e, q->qp, wqes, 1);
	count_kind(&q->qp->eth->stats, w);
}

/* Returns false if the SQ must wait or is in error. */
static bool progress(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx, unsigned *budget)
{
	if (!tx->w.synd) {
		if (tx->w.opcode == SN_OP_WAIT && !time_reached(e, q, tx))
			return false;
		if (send_frames(e, q, tx, budget) <= 0)
			return false;
	}
	return complete(e, q, tx);
}

static struct sn_eth_tx *tx_make(struct sn_qp_eng *q)
{
	if (!q->qp->eth->tx)
		q->qp->eth->tx = calloc(1, sizeof(*q->qp->eth->tx));
	return q->qp->eth->tx;
}

bool sn_eth_sq_serve(struct sn_eng *e, struct sn_qp_eng *q)
{
	unsigned budget = SN_ETH_PASS_FRAMES, wqes = WQES_PER_PASS;
	struct sn_eth_tx *tx;
	uint64_t before;

	if (q->qp->type != SN_QPT_SQ)
		return false;
	if (q->qp->state == SN_QPS_ERR)
		sn_eth_sq_flush(e, q);
	if (q->qp->state != SN_QPS_RTS || sn_eth_sq_idle(q) || !(tx = tx_make(q)))
		return false;
	tx->egress = egress_rules(e);
	before = q->qp->stats.wqes + q->qp->eth->stats.frames;
	while (budget && wqes--) {
		if (!tx->active && q->sq.fetch == q->sq.pi)
			break;
		if (!tx->active)
			fetch(e, q, tx);
		if (!progress(e, q, tx, &budget))
			break;
	}
	sn_mem_plan(0);
	return q->qp->stats.wqes + q->qp->eth->stats.frames != before;
}

bool sn_eth_sq_idle(const struct sn_qp_eng *q)
{
	const struct sn_eth_tx *tx = tx_of(q);

	if (q->qp->type != SN_QPT_SQ)
		return true;
	if (q->qp->state == SN_QPS_ERR)
		return !q->qp->eth->flush_in_error || q->sq.fetch == q->sq.pi;
	return q->qp->state != SN_QPS_RTS || (q->sq.fetch == q->sq.pi && !(tx && tx->active));
}

/* ---- flush, reset, states ---- */

static void drop_held(struct sn_eng *e, struct sn_eth_tx *tx)
{
	if (tx->held)
		sn_frame_put(e, tx->held);
	tx->held = NULL;
}

static void flush_one(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_tx *tx,
		      struct sn_eth_wqe *w)
{
	w->synd = SN_SYND_FLUSH;
	w->vendor = 0xf9;
	SN_COUNT(e, q->qp, flushed, 1);
	if ((w->fm & CE_MASK) == CE_FIRST_ERROR && tx->ce_error)
		return;
	tx->ce_error = true;
	write_cqe(e, q, w);
}

/* State ERR: completes the posted WQEs with an error, if flush_in_error is set. */
void sn_eth_sq_flush(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_eth_tx *tx = tx_make(q);
	struct sn_eth_wqe *w;
	uint32_t n;

	if (!tx)
		return;
	w = &tx->w;
	drop_held(e, tx);
	if (!q->qp->eth->flush_in_error)
		return;
	if (tx->active)
		flush_one(e, q, tx, w);
	tx->active = false;
	while (q->sq.fetch != q->sq.pi) {
		if (!sn_sq_read(q, q->sq.fetch, w->raw, 1))
			memset(w->raw, 0, 64);
		n = wqe_blocks(w->raw);
		w->idx = q->sq.fetch;
		w->opcode = w->raw[3];
		w->fm = w->raw[11];
		flush_one(e, q, tx, w);
		q->sq.fetch += n && n <= q->sq.pi - q->sq.fetch ? n : 1;
	}
}

void sn_eth_sq_reset(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_eth_tx *tx = tx_of(q);

	if (!tx)
		return;
	drop_held(e, tx);
	q->qp->eth->tx = NULL;
	free(tx);
}

static void sq_state(struct sn_eng *e, struct sn_qp_eng *q, enum sn_qp_state from)
{
	if (q->qp->state == SN_QPS_RST) {
		sn_eth_sq_reset(e, q);
	} else if (q->qp->state == SN_QPS_ERR && from != SN_QPS_ERR) {
		sn_sq_posted(e, q);
		sn_eth_sq_flush(e, q);
	}
}

void sn_eth_state(struct sn_eng *e, struct sn_qp_eng *q, enum sn_qp_state from)
{
	if (q->qp->type == SN_QPT_SQ)
		sq_state(e, q, from);
	else if (q->qp->state == SN_QPS_ERR && from != SN_QPS_ERR)
		sn_eth_rq_flush(e, q);
}
