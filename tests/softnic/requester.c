/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Requester: cuts messages into packets within the window, sends them, and
 * completes messages in order. response.c handles the answers, window.c sizes the
 * window. Messages of UC and UD take the same path and are complete once sent.
 *
 * A long READ is sent as several requests, each for up to SN_READ_CHUNK_PKTS responses
 * that fit the window, so that responses cannot overrun the socket. Each request counts
 * against max_rd_atomic. A retransmitted request never extends beyond the end of an
 * earlier request, because the responder repeats only the responses of one request.
 */
#include "eng.h"

#define BURST		  64u /* packets per pass of an unreliable QP, which has no window */
#define ACK_EVERY	  16u
#define CE_MASK		  0x0c
#define CE_ALWAYS	  0x08 /* always write a CQE; 0x0c: and raise an event */
#define FENCE_READS	  2    /* wait for earlier READs and atomics */
#define FENCE_STRONG	  3    /* wait for all earlier messages */
#define FENCE_SMALL_READS 4    /* as FENCE_READS; local operations are in order anyway */

void sn_req_rewind(struct sn_qp_eng *q, uint32_t psn)
{
	const struct sn_msg *m = NULL;
	uint32_t n;

	for (n = q->req.head; n != q->req.tail; n++) {
		m = sn_msg_at(q, n);
		if (sn_psn_cmp(psn, m->psn + m->npkts) < (m->npkts == 0))
			break;
	}
	sn_rtt_forget(q);
	q->req.reads_sent = 0;
	q->req.cur = n;
	q->req.cur_pkt = 0;
	if (n != q->req.tail && sn_psn_cmp(psn, m->psn) > 0)
		q->req.cur_pkt = (psn - m->psn) & SN_PSN_MASK;
}

uint32_t sn_req_cur_psn(const struct sn_qp_eng *q)
{
	if (q->req.cur == q->req.tail)
		return q->req.next_psn;
	return (sn_msg_at(q, q->req.cur)->psn + q->req.cur_pkt) & SN_PSN_MASK;
}

/* ---- completion ---- */

static void complete(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_msg *m)
{
	struct sn_cqe_args a = { .opcode = m->synd ? SN_CQE_REQ_ERR : SN_CQE_REQ,
				 .synd = m->synd,
				 .vendor = m->vendor,
				 .wqe_opcode = m->opcode,
				 .counter = m->idx };

	if (sn_msg_reads(m))
		a.byte_cnt = m->len;
	if (m->inl_reply && !m->synd) {
		a.inl = m->reply;
		a.inl_len = (uint8_t)m->len;
		a.inl_room = q->qp->inline_send;
	}
	q->req.ce_error |= m->synd;
	if (m->synd || q->qp->sig_all || (m->fm & CE_MASK) >= CE_ALWAYS)
		sn_cqe_write(e, q->qp->scq, q->qp, &a);
}

/* Returns 1: done, 0: must wait, -1: failed and m->synd is set. */
static int run_local(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	uint8_t buf[4096];
	uint32_t off, n;
	struct sn_cq *cq;

	if (m->synd)
		return -1;
	if (m->opcode == SN_OP_MMO)
		return sn_dma_run(e, q, m);
	if (m->opcode == SN_OP_WAIT) {
		cq = sn_find_cq(e->dev, m->wait_cqn);
		if (cq)
			return sn_psn_cmp((uint32_t)cq->pi, m->wait_index) > 0;
		m->synd = SN_SYND_LOC_OP;
		return -1;
	}
	for (off = 0; m->opcode == SN_OP_DUMP && off < m->len; off += n) {
		n = m->len - off < sizeof(buf) ? m->len - off : sizeof(buf);
		if (sn_sge_read(e->dev, q->qp->pdn, m->sge, m->nsge, off, buf, n)) {
			m->synd = SN_SYND_LOC_PROT;
			return -1;
		}
	}
	return 1;
}

static bool msg_done(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	if (m->synd)
		return true;
	if (m->local)
		return run_local(e, q, m) != 0;
	if (sn_msg_reads(m))
		return m->done;
	if (q->qp->type != SN_QPT_RC)
		return q->req.cur != q->req.head;
	return sn_psn_cmp(q->req.una, m->psn + m->npkts) >= 0;
}

static uint32_t send_end(const struct sn_qp_eng *q)
{
	return q->qp->state == SN_QPS_SQD ? q->req.drain_end : q->req.tail;
}

static bool in_send_state(const struct sn_qp_eng *q)
{
	return q->qp->state == SN_QPS_RTS || q->qp->state == SN_QPS_SQD;
}

/* Injects the fault of cfg.err_after: the QP goes to error and reports QP_FATAL. */
static void inject_error(struct sn_eng *e, struct sn_qp_eng *q)
{
	e->dev->stats.faults_injected++;
	sn_event_async_qp(e->dev, q->qp, SN_ASYNC_QP_FATAL);
	sn_qp_to_error(e, q);
}

void sn_req_complete(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_msg *m;

	while (in_send_state(q) && q->req.head != send_end(q)) {
		m = sn_msg_at(q, q->req.head);
		if (!msg_done(e, q, m))
			return;
		complete(e, q, m);
		if (q->req.cur == q->req.head)
			q->req.cur++, q->req.cur_pkt = 0;
		q->req.head++;
		if (m->synd)
			sn_qp_send_error(e, q);
		else if (e->dev->cfg.err_after && ++q->req.completed >= e->dev->cfg.err_after)
			inject_error(e, q);
	}
}

/* ---- draining ---- */

/* Called when the QP enters SQD. Sets drain_end: messages before it are finished, because a packet
 * of them or of a later one was sent; messages from it on wait. */
void sn_req_drain(struct sn_qp_eng *q)
{
	uint32_t n;

	q->req.drained = false;
	q->req.drain_end = q->req.cur + (q->req.cur_pkt > 0);
	for (n = q->req.drain_end; n != q->req.tail; n++)
		if (sn_msg_at(q, n)->npkts && sn_psn_cmp(sn_msg_at(q, n)->psn, q->req.max_sent) < 0)
			q->req.drain_end = n + 1;
}

void sn_req_drained(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->req.drained || q->req.head != q->req.drain_end)
		return;
	q->req.drained = true;
	if (q->qp->sqd_event)
		sn_event_async_qp(e->dev, q->qp, SN_ASYNC_SQ_DRAINED);
}

/* Completes the oldest message with an error and moves the QP to error. */
void sn_req_fail(struct sn_eng *e, struct sn_qp_eng *q, uint8_t synd, uint8_t vendor)
{
	struct sn_msg *m;

	if (q->req.head != q->req.tail) {
		m = sn_msg_at(q, q->req.head);
		m->synd = synd;
		m->vendor = vendor;
		complete(e, q, m);
		q->req.head++;
	}
	sn_qp_to_error(e, q);
}

/* ---- sending ---- */

static uint8_t send_opcode(const struct sn_msg *m, uint32_t pkt)
{
	bool first = pkt == 0, last = pkt + 1 == m->npkts;
	bool imm = m->opcode == SN_OP_SEND_IMM || m->opcode == SN_OP_WRITE_IMM;
	uint8_t base = m->opcode == SN_OP_WRITE || m->opcode == SN_OP_WRITE_IMM ? SN_BTH_WRITE_FIRST
										: SN_BTH_SEND_FIRST;

	if (first && last)
		return base + 4 + imm;
	if (last)
		return base + 2 + imm;
	return base + !first;
}

/* Number of packets that may be sent now. */
static uint32_t room(const struct sn_qp_eng *q)
{
	return q->qp->type == SN_QPT_RC ? sn_window_room(q) : BURST;
}

static int gather(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_msg *m, uint32_t off,
		  void *dst, uint32_t len)
{
	uint32_t part = 0;

	if (off < m->inl_len) {
		part = m->inl_len - off < len ? m->inl_len - off : len;
		memcpy(dst, m->data + off, part);
	}
	return sn_sge_read(e->dev, q->qp->pdn, sn_msg_sges(m), m->nsge, off + part - m->inl_len,
			   (uint8_t *)dst + part, len - part);
}

/* Writes extended headers and payload of a SEND or WRITE packet. Returns the packet's length with
 * BTH, or -1 if the payload cannot be read. */
static int build_data(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_msg *m, uint32_t pkt,
		      uint8_t *data)
{
	uint32_t off = pkt * q->mtu, n = m->len - off < q->mtu ? m->len - off : q->mtu;
	bool imm = m->opcode == SN_OP_SEND_IMM || m->opcode == SN_OP_WRITE_IMM;
	uint8_t *p = data + 12;
	int rc;

	if (q->qp->type == SN_QPT_UD) {
		sn_put32(p, m->ud.qkey & 0x80000000 ? q->qp->qkey : m->ud.qkey);
		sn_put32(p + 4, q->qp->qpn);
		p += 8;
	}
	if (!pkt && (m->opcode == SN_OP_WRITE || m->opcode == SN_OP_WRITE_IMM)) {
		sn_put64(p, m->raddr);
		sn_put32(p + 8, m->rkey);
		sn_put32(p + 12, m->len);
		p += SN_RETH;
	}
	if (imm && pkt + 1 == m->npkts) {
		memcpy(p, &m->imm, 4);
		p += 4;
	}
	sn_mem_plan(sn_min64((uint64_t)room(q) * q->mtu, m->len - off));
	rc = gather(e, q, m, off, p, n);
	sn_mem_plan(0);
	return rc ? -1 : p - data + (int)n;
}

static int build_read(struct sn_qp_eng *q, const struct sn_msg *m, uint32_t pkt, uint32_t npkts,
		      uint8_t *data)
{
	uint32_t off = pkt * q->mtu, n = npkts * q->mtu;

	if (n > m->len - off)
		n = m->len - off;
	sn_put64(data + 12, m->raddr + off);
	sn_put32(data + 20, m->rkey);
	sn_put32(data + 24, n);
	return 28;
}

static int build_atomic(const struct sn_msg *m, uint8_t *opcode, uint8_t *data)
{
	unsigned i;

	sn_put64(data + 12, m->raddr);
	sn_put32(data + 20, m->rkey);
	for (i = 0; i < 4; i++)
		sn_put64(data + 24 + 8 * i, m->operand[i]);
	if (m->opcode == SN_OP_CS || m->opcode == SN_OP_FA) {
		*opcode = m->opcode == SN_OP_CS ? SN_BTH_CS : SN_BTH_FA;
		return 12 + SN_ATOMIC_ETH;
	}
	*opcode = m->opcode == SN_OP_MASKED_CS ? SN_BTH_MASKED_CS : SN_BTH_MASKED_FA;
	if (m->len == 4)
		*opcode += SN_BTH_MASKED_CS4 - SN_BTH_MASKED_CS;
	return 12 + SN_MASKED_ETH;
}

/* Returns a mask with the bits of the n PSNs from psn on. Bit i stands for PSNs i modulo 64. */
static uint64_t psn_bits(uint32_t psn, uint32_t n)
{
	uint64_t bits = n < 64 ? (1ull << n) - 1 : ~0ull;

	psn %= 64;
	return psn ? bits << psn | bits >> (64 - psn) : bits;
}

/* Number of READ and atomic requests sent and not answered. */
static uint32_t reads_pending(const struct sn_qp_eng *q)
{
	if (!q->req.reads_sent)
		return 0;
	return __builtin_popcountll(q->req.reads_sent & psn_bits(q->req.una, sn_window_flight(q)));
}

static void note_sent(struct sn_qp_eng *q, bool reads, uint32_t psn, uint32_t n)
{
	uint64_t end = reads ? psn_bits(psn + n - 1, 1) : 0, all = psn_bits(psn, n);

	q->req.reads_sent = (q->req.reads_sent & ~all) | end;
	if (sn_psn_cmp(psn, q->req.max_sent) >= 0)
		q->req.read_ends &= ~all;
	q->req.read_ends |= end;
}

/* Returns for how many of n response packets a READ request at psn may be. A retransmitted
 * request ends where an earlier request ended. */
static uint32_t read_limit(const struct sn_qp_eng *q, uint32_t psn, uint32_t n)
{
	uint32_t i;

	if (n > SN_READ_CHUNK_PKTS)
		n = SN_READ_CHUNK_PKTS;
	if (sn_psn_cmp(psn, q->req.max_sent) >= 0)
		return n;
	for (i = 1; i < n && !(q->req.read_ends & psn_bits(psn + i - 1, 1)); i++)
		;
	return i;
}

/* Returns how many PSNs the packet at the cursor takes; 0: it must wait for the window. A READ
 * request takes one PSN per response, and is shortened if the window has less room. */
static uint32_t window_step(struct sn_qp_eng *q, const struct sn_msg *m)
{
	uint32_t fit = room(q), n = 1;

	if (m->opcode == SN_OP_READ)
		n = read_limit(q, sn_req_cur_psn(q), m->npkts - q->req.cur_pkt);
	/* prefer few long requests to one request per arriving response */
	if (fit >= n || (fit && 2 * fit >= q->req.win.size))
		return fit < n ? fit : n;
	q->req.win.full = true;
	return 0;
}

/* Returns whether a SEND or WRITE packet requests an acknowledgement. */
static bool wants_ack(const struct sn_qp_eng *q, const struct sn_msg *m, uint32_t pkt, uint32_t psn)
{
	return pkt + 1 == m->npkts || psn % ACK_EVERY == 0 || q->req.win.size < ACK_EVERY ||
	       sn_psn_cmp(psn, q->req.max_sent) < 0;
}

static int build_message(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_msg *m,
			 uint32_t pkt, struct sn_bth *bth, uint8_t *data)
{
	bth->opcode = send_opcode(m, pkt);
	bth->solicited = m->solicited && pkt + 1 == m->npkts;
	if (q->qp->type == SN_QPT_UC) {
		bth->opcode |= SN_BTH_UC;
	} else if (q->qp->type == SN_QPT_UD) {
		bth->opcode = m->opcode == SN_OP_SEND ? SN_BTH_UD_SEND : SN_BTH_UD_SEND_IMM;
		bth->qpn = m->ud.qpn;
	} else {
		bth->ackreq = wants_ack(q, m, pkt, bth->psn);
	}
	return build_data(e, q, m, pkt, data);
}

/* Sends packet pkt of m, or a READ request for `step` response packets. Returns false if it was
 * not sent: no memory, or a local error, which m->synd holds. */
static bool send_packet(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, uint32_t pkt,
			uint32_t step)
{
	struct sn_bth bth = { .psn = (m->psn + pkt) & SN_PSN_MASK, .qpn = q->qp->dest_qpn };
	const struct sn_way *way = q->qp->type == SN_QPT_UD ? &m->ud.way : &q->qp->way;
	struct sn_pkt *p = sn_pkt_get(e);
	int len;

	if (!p)
		return false;
	if (m->opcode == SN_OP_READ) {
		bth.opcode = SN_BTH_READ_REQ;
		len = build_read(q, m, pkt, step, p->data);
	} else if (sn_msg_atomic(m)) {
		len = build_atomic(m, &bth.opcode, p->data);
	} else {
		len = build_message(e, q, m, pkt, &bth, p->data);
	}
	if (len < 0) {
		sn_pkt_put(e, p);
		SN_COUNT(e, q->qp, local_prot_errors, 1);
		m->synd = SN_SYND_LOC_PROT;
		m->vendor = 0x52;
		return false;
	}
	note_sent(q, sn_msg_reads(m), bth.psn, step);
	if (sn_psn_cmp(bth.psn, q->req.max_sent) < 0)
		SN_COUNT(e, q->qp, retransmits, 1);
	else if (bth.ackreq || sn_msg_reads(m))
		sn_rtt_begin(e, q, bth.psn);
	sn_pkt_send(e, q->qp, way, p, &bth, len);
	if (sn_psn_cmp(bth.psn + step, q->req.max_sent) > 0)
		q->req.max_sent = (bth.psn + step) & SN_PSN_MASK;
	return true;
}

/* Sends the packet at the cursor and advances the cursor. Returns false if it was not sent. */
static bool send_one(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, uint32_t step)
{
	if (!send_packet(e, q, m, q->req.cur_pkt, step))
		return false;
	q->req.cur_pkt += step;
	return true;
}

/* Retransmits the oldest packet, or requests one READ response again. Does not move the cursor.
 * Returns false if nothing was sent. */
bool sn_req_probe(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_msg *m = sn_msg_of_psn(q, q->req.una);
	uint64_t sent = q->req.reads_sent;

	if (!m || m->synd)
		return false;
	sn_rtt_forget(q);
	q->req.probed = q->req.una + 1;
	q->req.probed_at = e->now;
	if (!send_packet(e, q, m, (q->req.una - m->psn) & SN_PSN_MASK, 1))
		return false;
	q->req.reads_sent = sent;
	return true;
}

static bool fenced(const struct sn_qp_eng *q, const struct sn_msg *m)
{
	switch (m->fm >> 5) {
	case FENCE_STRONG:
		return q->req.head != q->req.cur;
	case FENCE_READS:
	case FENCE_SMALL_READS:
		return reads_pending(q);
	}
	return false;
}

/* Returns how many PSNs may be sent at the cursor; 0: a fence, max_rd_atomic or the window
 * forbids sending. */
static uint32_t may_send(struct sn_qp_eng *q, const struct sn_msg *m)
{
	uint32_t limit = q->qp->max_rd_atomic ? q->qp->max_rd_atomic : 1;

	if (!q->req.cur_pkt && fenced(q, m))
		return 0;
	if (sn_msg_reads(m) && reads_pending(q) >= limit)
		return 0;
	return window_step(q, m);
}

/* Returns whether a local message blocks the later ones: a failed message always does, a WAIT
 * until its condition is true. */
static bool held_by_local(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	if (m->opcode != SN_OP_WAIT || m->synd)
		return m->synd;
	return run_local(e, q, m) <= 0;
}

bool sn_req_send(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint32_t burst = 0, step;
	struct sn_msg *m;

	if (q->req.rnr_until && e->now < q->req.rnr_until)
		return false;
	q->req.rnr_until = 0;
	while (q->req.cur != send_end(q)) {
		m = sn_msg_at(q, q->req.cur);
		if (m->synd || (m->local && (fenced(q, m) || held_by_local(e, q, m))))
			break;
		if (m->local || q->req.cur_pkt >= m->npkts) {
			q->req.cur++;
			q->req.cur_pkt = 0;
			continue;
		}
		step = may_send(q, m);
		if (!step || !send_one(e, q, m, step))
			break;
		burst++;
		if (q->qp->type == SN_QPT_RC && !q->req.timer)
			sn_timer_start(e, q);
		else if (q->qp->type != SN_QPT_RC && burst == BURST)
			break;
	}
	if (q->req.cur != q->req.tail && sn_msg_at(q, q->req.cur)->npkts &&
	    q->req.cur_pkt >= sn_msg_at(q, q->req.cur)->npkts)
		q->req.cur++, q->req.cur_pkt = 0;
	sn_req_complete(e, q);
	return burst;
}
