/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Responder of reliable connections: sequence check, rights check of the whole
 * access before its first byte, execution, and what is owed in return. READ and
 * atomic responses are sent in order from a list of jobs; an acknowledgement or
 * NAK waits until the jobs before it are sent, and one acknowledgement stands
 * for all requests of a pass. Repeated requests are acknowledged, read again, or
 * answered from the kept atomic result, never executed twice.
 */
#include "eng.h"

#define REMOTE_WRITE (1u << 1) /* IBV_ACCESS_* */
#define REMOTE_READ (1u << 2)
#define REMOTE_ATOMIC (1u << 3)
#define RESP_BURST 32u /* response packets per QP and pass */
#define CREDITS_NONE 0x1fu

enum { IN_NONE, IN_SEND, IN_WRITE };

/* ---- replies ---- */

static void reply(struct sn_eng *e, struct sn_qp_eng *q, uint8_t syndrome, uint32_t psn)
{
	struct sn_bth bth = { .opcode = SN_BTH_ACK, .qpn = q->qp->dest_qpn, .psn = psn };
	struct sn_pkt *p = sn_pkt_get(e);

	if (!p)
		return;
	sn_put32(p->data + 12, (uint32_t)syndrome << 24 | (q->msn & SN_PSN_MASK));
	sn_pkt_send(e, q->qp, sn_qp_peer(q->qp), p, &bth, 16);
}

static uint32_t job_data(struct sn_eng *e, struct sn_qp_eng *q, struct sn_job *j, uint8_t *p,
			 uint32_t off)
{
	uint32_t n = j->len - off < q->mtu ? j->len - off : q->mtu;
	struct sn_mr *mr;
	uint64_t va;

	if (!n)
		return 0;
	mr = sn_mr_check(e->dev, j->rkey, q->qp->pdn, j->va + off, n, REMOTE_READ, &va);
	if (!mr || sn_mem_read(mr->gpu, va, p, n))
		return UINT32_MAX;
	return n;
}

static uint8_t resp_opcode(const struct sn_job *j)
{
	if (j->npkts == 1)
		return SN_BTH_RESP_ONLY;
	if (!j->sent)
		return SN_BTH_RESP_FIRST;
	return j->sent + 1 == j->npkts ? SN_BTH_RESP_LAST : SN_BTH_RESP_MIDDLE;
}

/* One response packet; false: the memory went away, a NAK is due instead. */
static bool send_response(struct sn_eng *e, struct sn_qp_eng *q, struct sn_job *j)
{
	struct sn_bth bth = { .qpn = q->qp->dest_qpn, .psn = j->psn + j->sent };
	struct sn_pkt *p = sn_pkt_get(e);
	uint32_t len = 12, n;

	if (!p)
		return true;
	bth.opcode = j->atomic ? SN_BTH_ATOMIC_ACK : resp_opcode(j);
	if (bth.opcode != SN_BTH_RESP_MIDDLE) {
		sn_put32(p->data + len, CREDITS_NONE << 24 | (q->msn & SN_PSN_MASK));
		len += 4;
	}
	if (j->atomic) {
		sn_put64(p->data + len, j->result);
		len += 8;
	} else {
		n = job_data(e, q, j, p->data + len, j->sent * q->mtu);
		if (n == UINT32_MAX) {
			sn_pkt_put(e, p);
			return false;
		}
		len += n;
	}
	sn_pkt_send(e, q->qp, sn_qp_peer(q->qp), p, &bth, len);
	j->sent++;
	return true;
}

/* Called once a pass; the state may be ERR when a fatal NAK is still owed. */
bool sn_rsp_send(struct sn_eng *e, struct sn_qp_eng *q)
{
	unsigned burst = 0;
	struct sn_job *j;

	while (q->job_head != q->job_tail) {
		j = &q->jobs[q->job_head % SN_JOBS];
		if (burst++ >= RESP_BURST)
			return true;
		if (!send_response(e, q, j)) {
			reply(e, q, SN_NAK_ACCESS, j->psn + j->sent);
			SN_COUNT(e, q->qp, naks_sent, 1);
			q->job_head = q->job_tail;
			break;
		}
		if (j->sent >= j->npkts)
			q->job_head++;
	}
	if (q->ack_due && !q->nak_due)
		reply(e, q, CREDITS_NONE, q->epsn - 1);
	if (q->nak_due) {
		reply(e, q, q->nak_due, q->epsn);
		SN_COUNT(e, q->qp, naks_sent, 1);
	}
	burst += q->ack_due || q->nak_due;
	q->ack_due = false;
	q->nak_due = 0;
	return burst;
}

/* ---- errors ---- */

static void refuse(struct sn_eng *e, struct sn_qp_eng *q, uint8_t syndrome)
{
	q->nak_due = syndrome;
	SN_COUNT(e, q->qp, remote_access_errors, syndrome == SN_NAK_ACCESS);
	sn_rsp_send(e, q);
	sn_event_async_qp(e->dev, q->qp, syndrome == SN_NAK_ACCESS ? SN_ASYNC_QP_ACCESS_ERR :
					 SN_ASYNC_QP_REQ_ERR);
	sn_qp_to_error(e, q);
}

static void receive_error(struct sn_eng *e, struct sn_qp_eng *q, uint8_t synd)
{
	struct sn_cqe_args a = { .opcode = SN_CQE_RESP_ERR, .synd = synd,
				 .counter = q->rwqe.idx };

	q->have_rwqe = false;
	if (q->qp->rcq)
		sn_cqe_write(e, q->qp->rcq, q->qp, &a);
	q->nak_due = synd == SN_SYND_LOC_LEN ? SN_NAK_INV : SN_NAK_OP;
	sn_rsp_send(e, q);
	sn_qp_to_error(e, q);
}

/* ---- receive WQE of a SEND or of an immediate ---- */

/* false: none posted (RNR sent), or the queue is broken */
static bool need_rwqe(struct sn_eng *e, struct sn_qp_eng *q)
{
	int got;

	if (q->have_rwqe)
		return true;
	got = sn_rq_take(e, q, &q->rwqe);
	if (got < 0) {
		refuse(e, q, SN_NAK_OP);
		return false;
	}
	q->have_rwqe = got;
	if (!got) {
		q->nak_due = 0x20 | (q->qp->min_rnr_timer & 0x1f);
		q->nak_sent = true; /* packets behind this one are not out of sequence */
	}
	return got;
}

static void receive_done(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
			 uint8_t opcode, const uint8_t *imm, uint32_t len)
{
	struct sn_cqe_args a = { .opcode = opcode, .counter = q->rwqe.idx, .byte_cnt = len,
				 .solicited = bth->solicited, .flags_rqpn = q->qp->dest_qpn };

	if (imm)
		memcpy(&a.imm, imm, 4);
	q->have_rwqe = false;
	sn_cqe_write(e, q->qp->rcq, q->qp, &a);
}

/* ---- requests; each returns true when the packet was taken ---- */

static bool do_send(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len)
{
	uint8_t op = bth->opcode, synd;
	bool first = op == SN_BTH_SEND_FIRST || op >= SN_BTH_SEND_ONLY;
	bool last = op >= SN_BTH_SEND_LAST;
	bool imm = op == SN_BTH_SEND_LAST_IMM || op == SN_BTH_SEND_ONLY_IMM;

	if (first != (q->in_msg == IN_NONE) || (!first && q->in_msg != IN_SEND) ||
	    (imm && len < 4) || (!last && len != q->mtu) || len > q->mtu + 4) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (first) {
		if (!need_rwqe(e, q))
			return false;
		q->r_off = 0;
	}
	synd = sn_rq_scatter(e, q, &q->rwqe, q->r_off, imm ? p + 4 : p, imm ? len - 4 : len);
	if (synd) {
		receive_error(e, q, synd);
		return false;
	}
	q->r_off += imm ? len - 4 : len;
	q->in_msg = last ? IN_NONE : IN_SEND;
	if (last)
		receive_done(e, q, bth, imm ? SN_CQE_RESP_SEND_IMM : SN_CQE_RESP_SEND,
			     imm ? p : NULL, q->r_off);
	return true;
}

static bool write_begin(struct sn_eng *e, struct sn_qp_eng *q, const uint8_t *p, uint32_t len)
{
	uint64_t va;

	if (len < 16) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	q->w_va = sn_get64(p);
	q->w_rkey = sn_get32(p + 8);
	q->w_left = q->w_len = sn_get32(p + 12);
	/* A right that the QP does not give is an invalid request, as in Linux's soft RoCE
	 * (rxe_resp.c, check_op_valid); one that the region does not give an access error. */
	if (!q->qp->remote_write) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (q->w_len && !sn_mr_check(e->dev, q->w_rkey, q->qp->pdn, q->w_va, q->w_len,
				     REMOTE_WRITE, &va)) {
		refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	return true;
}

static int write_payload(struct sn_eng *e, struct sn_qp_eng *q, const uint8_t *p, uint32_t len)
{
	struct sn_mr *mr;
	uint64_t va;

	if (!len)
		return 0;
	mr = sn_mr_check(e->dev, q->w_rkey, q->qp->pdn, q->w_va, len, REMOTE_WRITE, &va);
	if (!mr || sn_mem_write(mr->gpu, va, p, len))
		return -1;
	q->w_va += len;
	q->w_left -= len;
	return 0;
}

static bool do_write(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		     const uint8_t *p, uint32_t len)
{
	uint8_t op = bth->opcode;
	bool first = op == SN_BTH_WRITE_FIRST || op >= SN_BTH_WRITE_ONLY;
	bool last = op >= SN_BTH_WRITE_LAST;
	bool imm = op == SN_BTH_WRITE_LAST_IMM || op == SN_BTH_WRITE_ONLY_IMM;
	uint32_t head = (first ? 16 : 0) + (imm ? 4 : 0);

	if (first != (q->in_msg == IN_NONE) || (!first && q->in_msg != IN_WRITE) || len < head) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (imm && !need_rwqe(e, q))
		return false;
	if (first && !write_begin(e, q, p, len))
		return false;
	len -= head;
	if (last ? len != q->w_left : len != q->mtu || len >= q->w_left) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (write_payload(e, q, p + head, len)) {
		refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	q->in_msg = last ? IN_NONE : IN_WRITE;
	if (imm)
		receive_done(e, q, bth, SN_CQE_RESP_WRITE_IMM, p + head - 4, q->w_len);
	return true;
}

static struct sn_job *add_job(struct sn_qp_eng *q, uint32_t psn)
{
	struct sn_job *j = &q->jobs[q->job_tail % SN_JOBS];

	if (q->job_tail - q->job_head >= SN_JOBS)
		return NULL;
	memset(j, 0, sizeof(*j));
	j->psn = psn;
	j->npkts = 1;
	q->job_tail++;
	return j;
}

static bool do_read(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len)
{
	uint32_t n = len >= 16 ? sn_get32(p + 12) : 0;
	struct sn_job *j;
	uint64_t va;

	if (len < 16 || q->in_msg != IN_NONE) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (!q->qp->remote_read) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (n && !sn_mr_check(e->dev, sn_get32(p + 8), q->qp->pdn, sn_get64(p), n, REMOTE_READ,
			      &va)) {
		refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	j = add_job(q, bth->psn);
	if (!j)
		return false;
	j->va = sn_get64(p);
	j->rkey = sn_get32(p + 8);
	j->len = n;
	if (n)
		j->npkts = (n + q->mtu - 1) / q->mtu;
	return true;
}

/* Adds field by field: a set bit of boundary ends a field and drops its carry. */
static uint64_t masked_add(uint64_t a, uint64_t b, uint64_t boundary)
{
	uint64_t sum = 0, carry = 0;
	int i;

	for (i = 0; i < 64; i++) {
		uint64_t s = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (s & 1) << i;
		carry = boundary >> i & 1 ? 0 : s >> 1;
	}
	return sum;
}

static uint64_t atomic_result(uint8_t op, uint64_t old, const uint8_t *arg)
{
	uint64_t swap = sn_get64(arg), cmp = sn_get64(arg + 8), mask;

	switch (op) {
	case SN_BTH_FA:
		return old + swap;
	case SN_BTH_CS:
		return old == cmp ? swap : old;
	case SN_BTH_MASKED_FA:
		return masked_add(old, swap, sn_get64(arg + 16));
	}
	mask = sn_get64(arg + 16);
	if ((old ^ cmp) & sn_get64(arg + 24))
		return old;
	return (old & ~mask) | (swap & mask);
}

static bool do_atomic(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		      const uint8_t *p, uint32_t len)
{
	uint32_t want = bth->opcode >= SN_BTH_MASKED_CS ? 44 : 28;
	uint64_t va, old, new;
	struct sn_job *j;
	struct sn_mr *mr;

	if (len < want || q->in_msg != IN_NONE || sn_get64(p) & 7 || !q->qp->remote_atomic) {
		refuse(e, q, SN_NAK_INV);
		return false;
	}
	mr = sn_mr_check(e->dev, sn_get32(p + 8), q->qp->pdn, sn_get64(p), 8, REMOTE_ATOMIC, &va);
	if (!mr || sn_mem_read(mr->gpu, va, &old, 8)) {
		refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	j = add_job(q, bth->psn);
	if (!j)
		return false;
	new = atomic_result(bth->opcode, old, p + 12);
	if (new != old && sn_mem_write(mr->gpu, va, &new, 8)) {
		q->job_tail--;
		refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	j->atomic = true;
	j->result = old;
	q->atomics[q->atomics_next % SN_ATOMICS].psn = bth->psn;
	q->atomics[q->atomics_next % SN_ATOMICS].result = old;
	q->atomics[q->atomics_next++ % SN_ATOMICS].valid = true;
	return true;
}

/* ---- sequence ---- */

static void duplicate(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		      const uint8_t *p, uint32_t len)
{
	struct sn_job *j;
	unsigned i;

	SN_COUNT(e, q->qp, dup_requests, 1);
	if (bth->opcode == SN_BTH_READ_REQ) {
		uint8_t in_msg = q->in_msg;

		q->in_msg = IN_NONE;
		do_read(e, q, bth, p, len);
		q->in_msg = in_msg;
		return;
	}
	if (bth->opcode < SN_BTH_READ_REQ) {
		q->ack_due = true;
		return;
	}
	for (i = 0; i < SN_ATOMICS; i++) {
		if (!q->atomics[i].valid || q->atomics[i].psn != bth->psn)
			continue;
		j = add_job(q, bth->psn);
		if (j) {
			j->atomic = true;
			j->result = q->atomics[i].result;
		}
		return;
	}
}

static uint32_t psns_of(const struct sn_qp_eng *q, const struct sn_bth *bth, const uint8_t *p)
{
	uint32_t n;

	if (bth->opcode != SN_BTH_READ_REQ)
		return 1;
	n = (sn_get32(p + 12) + q->mtu - 1) / q->mtu;
	return n ? n : 1;
}

static bool execute(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len)
{
	if (bth->opcode <= SN_BTH_SEND_ONLY_IMM)
		return do_send(e, q, bth, p, len);
	if (bth->opcode <= SN_BTH_WRITE_ONLY_IMM)
		return do_write(e, q, bth, p, len);
	if (bth->opcode == SN_BTH_READ_REQ)
		return do_read(e, q, bth, p, len);
	return do_atomic(e, q, bth, p, len);
}

void sn_rsp_request(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const struct sn_pkt *pkt, const uint8_t *p, uint32_t len)
{
	int32_t d = sn_psn_cmp(bth->psn, q->epsn);
	uint32_t n;

	(void)pkt;
	if (bth->opcode == SN_BTH_UD_SEND || bth->opcode == SN_BTH_UD_SEND_IMM)
		return;
	if (d > 0) {
		if (!q->nak_sent)
			q->nak_due = SN_NAK_SEQ;
		q->nak_sent = true;
		return;
	}
	if (d < 0) {
		duplicate(e, q, bth, p, len);
		return;
	}
	if (!execute(e, q, bth, p, len))
		return;
	n = psns_of(q, bth, p);
	q->nak_sent = false;
	q->nak_due = 0;
	q->epsn = (q->epsn + n) & SN_PSN_MASK;
	if (bth->opcode >= SN_BTH_READ_REQ || !q->in_msg)
		q->msn++;
	if (bth->opcode < SN_BTH_READ_REQ && bth->ackreq)
		q->ack_due = true;
}
