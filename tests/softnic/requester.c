/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Requester of reliable connections: cuts messages into packets within a window,
 * takes acknowledgements and responses, goes back to the oldest unacknowledged
 * packet on loss, and completes messages in order. Datagrams use the same
 * path and are complete once sent. A READ is asked for in chunks of
 * SN_READ_CHUNK_PKTS responses, each a request of its own on the wire, so that
 * responses cannot overrun the socket.
 */
#include "eng.h"

#define AETH_RNR 0x20u
#define RNR_FOREVER 7

/* RNR timer codes, in units of 10 us */
static const uint32_t rnr_time[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static bool is_atomic(const struct sn_msg *m)
{
	return m->opcode >= SN_OP_CS && m->opcode <= SN_OP_MASKED_FA;
}

static bool is_read(const struct sn_msg *m)
{
	return m->opcode == SN_OP_READ || is_atomic(m);
}

static void timer_start(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint8_t t = q->qp->ack_timeout & 31;

	q->timer = t ? e->now + (4096ull << t) : 0;
}

static void rewind_to(struct sn_qp_eng *q, uint32_t psn)
{
	const struct sn_msg *m = NULL;
	uint32_t n;

	for (n = q->head; n != q->tail; n++) {
		m = sn_msg_at(q, n);
		if (sn_psn_cmp(psn, m->psn + m->npkts) < (m->npkts == 0))
			break;
	}
	q->cur = n;
	q->cur_pkt = 0;
	if (n != q->tail && sn_psn_cmp(psn, m->psn) > 0)
		q->cur_pkt = (psn - m->psn) & SN_PSN_MASK;
}

static uint32_t cur_psn(const struct sn_qp_eng *q)
{
	if (q->cur == q->tail)
		return q->next_psn;
	return (q->msgs[q->cur % SN_MSGS].psn + q->cur_pkt) & SN_PSN_MASK;
}

/* ---- completion ---- */

static void complete(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_msg *m)
{
	struct sn_cqe_args a = { .opcode = m->synd ? SN_CQE_REQ_ERR : SN_CQE_REQ, .synd = m->synd,
				 .vendor = m->vendor, .wqe_opcode = m->opcode,
				 .counter = m->idx };

	if (is_read(m))
		a.byte_cnt = m->len;
	if (m->synd || q->qp->sig_all || (m->fm & 0x0c) == 0x08 || (m->fm & 0x0c) == 0x0c)
		sn_cqe_write(e, q->qp->scq, q->qp, &a);
}

/* 1 done, 0 must wait, -1 failed: m->synd is set */
static int run_local(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	uint8_t buf[4096];
	uint32_t off, n;
	struct sn_cq *cq;

	if (m->synd)
		return -1;
	if (m->opcode == SN_OP_WAIT) {
		cq = sn_find_cq(e->dev, m->wait_cqn);
		if (cq)
			return (int32_t)((uint32_t)cq->pi - m->wait_index) > 0;
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
	if (is_read(m))
		return m->done;
	if (q->qp->type == SN_QPT_UD)
		return q->cur != q->head;
	return sn_psn_cmp(q->una, m->psn + m->npkts) >= 0;
}

void sn_req_complete(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_msg *m;

	while (q->head != q->tail && q->qp->state >= SN_QPS_RTS && q->qp->state != SN_QPS_ERR) {
		m = sn_msg_at(q, q->head);
		if (m->local && q->cur == q->head)
			q->cur++, q->cur_pkt = 0;
		if (!msg_done(e, q, m))
			return;
		complete(e, q, m);
		if (q->cur == q->head)
			q->cur++, q->cur_pkt = 0;
		q->head++;
		if (m->synd || (e->dev->cfg.err_after && ++q->completed >= e->dev->cfg.err_after))
			sn_qp_to_error(e, q);
	}
}

/* The oldest message failed. */
void sn_req_fail(struct sn_eng *e, struct sn_qp_eng *q, uint8_t synd, uint8_t vendor)
{
	struct sn_msg *m;

	if (q->head != q->tail) {
		m = sn_msg_at(q, q->head);
		m->synd = synd;
		m->vendor = vendor;
		complete(e, q, m);
		q->head++;
	}
	sn_qp_to_error(e, q);
}

/* ---- sending ---- */

static uint8_t send_opcode(const struct sn_msg *m, uint32_t pkt)
{
	bool first = pkt == 0, last = pkt + 1 == m->npkts;
	bool imm = m->opcode == SN_OP_SEND_IMM || m->opcode == SN_OP_WRITE_IMM;
	uint8_t base = m->opcode == SN_OP_WRITE || m->opcode == SN_OP_WRITE_IMM ?
		       SN_BTH_WRITE_FIRST : SN_BTH_SEND_FIRST;

	if (first && last)
		return base + 4 + imm;
	if (last)
		return base + 2 + imm;
	return base + !first;
}

static int gather(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_msg *m, uint32_t off,
		  void *dst, uint32_t len)
{
	if (!m->inl)
		return sn_sge_read(e->dev, q->qp->pdn, m->sge, m->nsge, off, dst, len);
	memcpy(dst, m->data + off, len);
	return 0;
}

/* Extended headers and payload of a SEND or WRITE packet; its length or -1. */
static int build_data(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_msg *m, uint32_t pkt,
		      uint8_t opcode, uint8_t *data)
{
	uint32_t off = pkt * q->mtu, n = m->len - off < q->mtu ? m->len - off : q->mtu;
	uint8_t *p = data + 12;

	if (opcode >= SN_BTH_UD_SEND) {
		sn_put32(p, m->ud.qkey & 0x80000000 ? q->qp->qkey : m->ud.qkey);
		sn_put32(p + 4, q->qp->qpn);
		p += 8;
	}
	if (opcode == SN_BTH_WRITE_FIRST || opcode == SN_BTH_WRITE_ONLY ||
	    opcode == SN_BTH_WRITE_ONLY_IMM) {
		sn_put64(p, m->raddr);
		sn_put32(p + 8, m->rkey);
		sn_put32(p + 12, m->len);
		p += 16;
	}
	if ((m->opcode == SN_OP_SEND_IMM || m->opcode == SN_OP_WRITE_IMM) && pkt + 1 == m->npkts) {
		memcpy(p, &m->imm, 4);
		p += 4;
	}
	if (gather(e, q, m, off, p, n))
		return -1;
	return p - data + n;
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
		return 40;
	}
	*opcode = m->opcode == SN_OP_MASKED_CS ? SN_BTH_MASKED_CS : SN_BTH_MASKED_FA;
	return 56;
}

/* Sends the packet at the cursor; false: stopped by an error of this message. */
static bool send_one(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	struct sn_bth bth = { .psn = m->psn + q->cur_pkt, .qpn = q->qp->dest_qpn };
	struct in_addr dst = sn_qp_peer(q->qp);
	struct sn_pkt *p = sn_pkt_get(e);
	uint32_t step = 1;
	int len;

	if (!p)
		return false;
	if (m->opcode == SN_OP_READ) {
		/* chunk borders never move, so a repeated request ends where the first did */
		step = SN_READ_CHUNK_PKTS - q->cur_pkt % SN_READ_CHUNK_PKTS;
		if (step > m->npkts - q->cur_pkt)
			step = m->npkts - q->cur_pkt;
		bth.opcode = SN_BTH_READ_REQ;
		len = build_read(q, m, q->cur_pkt, step, p->data);
	} else if (is_atomic(m)) {
		len = build_atomic(m, &bth.opcode, p->data);
	} else {
		bth.opcode = send_opcode(m, q->cur_pkt);
		bth.ackreq = q->cur_pkt + 1 == m->npkts || bth.psn % 16 == 0;
		bth.solicited = m->solicited && q->cur_pkt + 1 == m->npkts;
		if (q->qp->type == SN_QPT_UD) {
			bth.opcode = m->opcode == SN_OP_SEND ? SN_BTH_UD_SEND : SN_BTH_UD_SEND_IMM;
			bth.ackreq = false;
			bth.qpn = m->ud.qpn;
			dst = m->ud.ip;
		}
		len = build_data(e, q, m, q->cur_pkt, bth.opcode, p->data);
	}
	if (len < 0) {
		sn_pkt_put(e, p);
		SN_COUNT(e, q->qp, local_prot_errors, 1);
		m->synd = SN_SYND_LOC_PROT;
		m->vendor = 0x52;
		return false;
	}
	if (sn_psn_cmp(bth.psn, q->max_sent) < 0)
		SN_COUNT(e, q->qp, retransmits, 1);
	sn_pkt_send(e, q->qp, dst, p, &bth, len);
	q->cur_pkt += step;
	if (sn_psn_cmp(m->psn + q->cur_pkt, q->max_sent) > 0)
		q->max_sent = (m->psn + q->cur_pkt) & SN_PSN_MASK;
	return true;
}

/* Reads and atomics before the cursor that have no response yet. */
static bool reads_pending(struct sn_qp_eng *q, uint32_t limit)
{
	uint32_t n, count = 0;

	for (n = q->head; n != q->cur; n++) {
		const struct sn_msg *m = sn_msg_at(q, n);

		if (is_read(m) && !m->done && !m->synd && ++count >= limit)
			return true;
	}
	return false;
}

static bool may_send(struct sn_qp_eng *q, const struct sn_msg *m)
{
	uint32_t limit = q->qp->max_rd_atomic ? q->qp->max_rd_atomic : 1;

	if (q->qp->type == SN_QPT_UD)
		return true;
	if (((cur_psn(q) - q->una) & SN_PSN_MASK) >= SN_WINDOW_PKTS)
		return false;
	if (q->cur_pkt)
		return true;
	if (m->fm >> 5 && reads_pending(q, 1))
		return false;
	return !is_read(m) || !reads_pending(q, limit);
}

/* A WAIT holds back everything behind it until it is the oldest and true. */
static bool held_by_local(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	if (m->opcode != SN_OP_WAIT || m->synd)
		return m->synd;
	return run_local(e, q, m) <= 0;
}

bool sn_req_send(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_msg *m;
	bool any = false;

	if (q->rnr_until && e->now < q->rnr_until)
		return false;
	q->rnr_until = 0;
	while (q->cur != q->tail) {
		m = sn_msg_at(q, q->cur);
		if (m->synd || (m->local && held_by_local(e, q, m)))
			break;
		if (m->local || q->cur_pkt >= m->npkts) {
			q->cur++;
			q->cur_pkt = 0;
			continue;
		}
		if (!may_send(q, m) || !send_one(e, q, m))
			break;
		if (!q->timer)
			timer_start(e, q);
		any = true;
	}
	if (q->cur != q->tail && sn_msg_at(q, q->cur)->npkts &&
	    q->cur_pkt >= sn_msg_at(q, q->cur)->npkts)
		q->cur++, q->cur_pkt = 0;
	sn_req_complete(e, q);
	return any;
}

/* ---- acknowledgements ---- */

/* Everything before psn arrived; false: a response before it was lost. */
static bool acked_before(struct sn_eng *e, struct sn_qp_eng *q, uint32_t psn)
{
	uint32_t n;

	if (sn_psn_cmp(psn, q->una) <= 0 || sn_psn_cmp(psn, q->max_sent) > 0)
		return true;
	for (n = q->head; n != q->tail; n++) {
		const struct sn_msg *m = sn_msg_at(q, n);

		if (m->npkts && is_read(m) && !m->done &&
		    sn_psn_cmp((m->psn + m->got) & SN_PSN_MASK, psn) < 0) {
			psn = (m->psn + m->got) & SN_PSN_MASK;
			if (sn_psn_cmp(psn, q->una) > 0)
				q->una = psn;
			sn_req_complete(e, q);
			return false;
		}
		if (sn_psn_cmp(m->psn, psn) >= 0)
			break;
	}
	q->una = psn;
	q->retries = q->rnr_retries = 0;
	/* packets not sent again since a rewind, but acknowledged: skip them */
	if (sn_psn_cmp(cur_psn(q), psn) < 0)
		rewind_to(q, psn);
	q->timer = 0;
	if (q->una != q->max_sent)
		timer_start(e, q);
	sn_req_complete(e, q);
	return true;
}

static void resend(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->retries++ >= q->qp->retry_cnt) {
		sn_req_fail(e, q, SN_SYND_RETRY, 0x81);
		return;
	}
	rewind_to(q, q->una);
	timer_start(e, q);
}

/* A response is missing while newer ones arrive: ask again, once per loss. */
static void response_lost(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->lost_at == q->una + 1)
		return;
	q->lost_at = q->una + 1;
	rewind_to(q, q->una);
	timer_start(e, q);
}

static void rnr_nak(struct sn_eng *e, struct sn_qp_eng *q, uint8_t code)
{
	if (q->qp->rnr_retry != RNR_FOREVER && q->rnr_retries++ >= q->qp->rnr_retry) {
		sn_req_fail(e, q, SN_SYND_RNR, 0x87);
		return;
	}
	q->retries = 0; /* it arrived in sequence: the peer lives and the path works */
	rewind_to(q, q->una);
	q->rnr_until = e->now + rnr_time[code & 31] * 10000ull;
	q->timer = 0;
}

static void nak(struct sn_eng *e, struct sn_qp_eng *q, uint8_t syndrome)
{
	SN_COUNT(e, q->qp, naks_received, 1);
	switch (syndrome) {
	case SN_NAK_SEQ:
		resend(e, q);
		return;
	case SN_NAK_INV:
		sn_req_fail(e, q, SN_SYND_REM_INV, 0x8a);
		return;
	case SN_NAK_ACCESS:
		sn_req_fail(e, q, SN_SYND_REM_ACCESS, 0x88);
		return;
	case SN_NAK_OP:
		sn_req_fail(e, q, SN_SYND_REM_OP, 0x89);
		return;
	}
	if (syndrome >> 5 == AETH_RNR >> 5)
		rnr_nak(e, q, syndrome);
	else
		e->dev->stats.wire_malformed++;
}

static void take_ack(struct sn_eng *e, struct sn_qp_eng *q, uint32_t psn, uint8_t syndrome)
{
	bool positive = syndrome >> 5 == 0;

	if (sn_psn_cmp(psn, q->una) < 0 || sn_psn_cmp(psn, q->max_sent) >= 0)
		return; /* old, or never sent */
	if (!acked_before(e, q, (positive ? psn + 1 : psn) & SN_PSN_MASK)) {
		response_lost(e, q);
		return;
	}
	if (!positive && q->qp->state == SN_QPS_RTS)
		nak(e, q, syndrome);
}

static struct sn_msg *msg_of_psn(struct sn_qp_eng *q, uint32_t psn)
{
	uint32_t n;

	for (n = q->head; n != q->tail; n++) {
		struct sn_msg *m = sn_msg_at(q, n);

		if (m->npkts && sn_psn_cmp(psn, m->psn) >= 0 &&
		    sn_psn_cmp(psn, m->psn + m->npkts) < 0)
			return m;
	}
	return NULL;
}

static void local_fault(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, uint8_t synd)
{
	m->synd = synd;
	m->vendor = synd == SN_SYND_BAD_RESP ? 0x78 : 0x52;
	if (synd != SN_SYND_BAD_RESP)
		SN_COUNT(e, q->qp, local_prot_errors, 1);
	sn_req_complete(e, q);
}

static void read_data(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *p,
		      uint32_t len)
{
	uint32_t off = m->got * q->mtu;
	uint32_t want = m->len - off < q->mtu ? m->len - off : q->mtu;

	if (len != want) {
		local_fault(e, q, m, SN_SYND_BAD_RESP);
		return;
	}
	if (sn_sge_write(e->dev, q->qp->pdn, m->sge, m->nsge, off, p, len)) {
		local_fault(e, q, m, SN_SYND_LOC_PROT);
		return;
	}
	m->got++;
	m->done = m->got == m->npkts;
	acked_before(e, q, (m->psn + m->got) & SN_PSN_MASK);
}

static void atomic_data(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *p)
{
	uint64_t old = sn_get64(p);

	if (sn_sge_write(e->dev, q->qp->pdn, m->sge, m->nsge, 0, &old, 8)) {
		local_fault(e, q, m, SN_SYND_LOC_PROT);
		return;
	}
	m->got = 1;
	m->done = true;
	acked_before(e, q, (m->psn + 1) & SN_PSN_MASK);
}

static void take_data(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		      const uint8_t *p, uint32_t len)
{
	struct sn_msg *m;

	if (sn_psn_cmp(bth->psn, q->una) < 0 || sn_psn_cmp(bth->psn, q->max_sent) >= 0)
		return;
	if (!acked_before(e, q, bth->psn)) {
		response_lost(e, q);
		return;
	}
	m = msg_of_psn(q, bth->psn);
	if (!m || m->done || m->synd || bth->psn != ((m->psn + m->got) & SN_PSN_MASK))
		return;
	if (bth->opcode == SN_BTH_ATOMIC_ACK && is_atomic(m) && len >= 8)
		atomic_data(e, q, m, p);
	else if (bth->opcode != SN_BTH_ATOMIC_ACK && m->opcode == SN_OP_READ)
		read_data(e, q, m, p, len);
	else
		local_fault(e, q, m, SN_SYND_BAD_RESP);
}

void sn_req_response(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		     const uint8_t *p, uint32_t len)
{
	bool aeth = bth->opcode != SN_BTH_RESP_MIDDLE;

	if (q->qp->state < SN_QPS_RTS || q->qp->type != SN_QPT_RC)
		return;
	if (aeth && len < 4) {
		e->dev->stats.wire_malformed++;
		return;
	}
	if (bth->opcode == SN_BTH_ACK)
		take_ack(e, q, bth->psn, p[0]);
	else
		take_data(e, q, bth, aeth ? p + 4 : p, aeth ? len - 4 : len);
}

bool sn_req_timer(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (!q->timer || e->now < q->timer || q->qp->state != SN_QPS_RTS)
		return false;
	q->timer = 0;
	if (q->una == q->max_sent || q->qp->type == SN_QPT_UD)
		return false;
	SN_COUNT(e, q->qp, timeouts, 1);
	resend(e, q);
	return true;
}
