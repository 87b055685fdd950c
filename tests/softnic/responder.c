/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Responder of connections: checks sequence and access rights, and executes SENDs and
 * WRITEs. The rights are checked for a whole access before its first byte. resource.c
 * executes READs and atomics and sends all answers. One acknowledgement covers all
 * requests of a pass. A reliable connection answers an invalid request with a NAK and
 * goes to error; an unreliable one silently drops the message (IB spec 9.9.3). The
 * acknowledgement's credit field is "not used": requesters rely on RNR NAKs.
 */
#include "eng.h"

enum { IN_NONE, IN_SEND, IN_WRITE };

/* ---- errors ---- */

void sn_rsp_refuse(struct sn_eng *e, struct sn_qp_eng *q, uint8_t syndrome)
{
	SN_COUNT(e, q->qp, remote_access_errors, syndrome == SN_NAK_ACCESS);
	q->rsp.in_msg = IN_NONE;
	if (q->qp->type == SN_QPT_UC) {
		SN_COUNT(e, q->qp, dropped_messages, 1);
		return;
	}
	q->rsp.nak_due = syndrome;
	sn_rsp_send(e, q);
	sn_event_async_qp(e->dev, q->qp,
			  syndrome == SN_NAK_ACCESS ? SN_ASYNC_QP_ACCESS_ERR : SN_ASYNC_QP_REQ_ERR);
	sn_qp_to_error(e, q);
}

/* Handles a SEND that is longer than its receive WQE, or whose receive WQE names invalid memory. */
static void receive_error(struct sn_eng *e, struct sn_qp_eng *q, uint8_t synd)
{
	struct sn_cqe_args a = { .opcode = SN_CQE_RESP_ERR,
				 .synd = synd,
				 .counter = q->rsp.rwqe.idx,
				 .vendor = synd == SN_SYND_LOC_LEN ? 0x6a : 0x33 };

	if (q->qp->type == SN_QPT_UC && synd == SN_SYND_LOC_LEN) {
		sn_rsp_refuse(e, q, SN_NAK_INV);
		return;
	}
	q->rsp.have_rwqe = false;
	sn_cqe_write(e, q->qp->rcq, q->qp, &a);
	if (q->qp->type == SN_QPT_RC) {
		q->rsp.nak_due = synd == SN_SYND_LOC_LEN ? SN_NAK_INV : SN_NAK_OP;
		sn_rsp_send(e, q);
	}
	sn_qp_to_error(e, q);
}

/* ---- receive WQE of a SEND or of an immediate ---- */

/* Takes a receive WQE unless the message has one. Returns false if none is posted (RC then answers
 * with an RNR NAK, UC drops the message) or if the WQE cannot be read. */
static bool need_rwqe(struct sn_eng *e, struct sn_qp_eng *q)
{
	int got;

	if (q->rsp.have_rwqe)
		return true;
	got = sn_rq_take(e, q, &q->rsp.rwqe);
	q->rsp.have_rwqe = got > 0;
	if (got > 0)
		return true;
	if (got < 0 || q->qp->type == SN_QPT_UC) {
		sn_rsp_refuse(e, q, SN_NAK_OP);
		return false;
	}
	q->rsp.nak_due = SN_AETH_RNR | (q->qp->min_rnr_timer & 0x1f);
	q->rsp.nak_sent = true; /* later packets are not reported as out of sequence */
	return false;
}

/* data: received bytes that the CQE holds; NULL: they are in memory. */
static void receive_done(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
			 uint8_t opcode, const uint8_t *imm, uint32_t len, const uint8_t *data)
{
	struct sn_cqe_args a = { .opcode = opcode,
				 .counter = q->rsp.rwqe.idx,
				 .byte_cnt = len,
				 .solicited = bth->solicited,
				 .flags_rqpn = q->qp->dest_qpn,
				 .inl = data,
				 .inl_len = data ? (uint8_t)len : 0,
				 .inl_room = q->qp->inline_recv };

	if (imm)
		memcpy(&a.imm, imm, 4);
	q->rsp.have_rwqe = false;
	sn_cqe_write(e, q->qp->rcq, q->qp, &a);
}

/* ---- requests; each function returns true if it executed the packet ---- */

/* Checks the payload length of a packet: all but the last are full, and the last of several is
 * not empty. */
static bool length_fits(const struct sn_qp_eng *q, bool first, bool last, uint32_t len)
{
	if (!last)
		return len == q->mtu;
	return len <= q->mtu && (first || len);
}

/* Whether a message is stored in the CQE. One that exceeds its WQE is an error as usual. */
static bool fits_cqe(const struct sn_qp_eng *q, uint32_t len)
{
	return len && len <= q->qp->inline_recv && len <= q->rsp.rwqe.len;
}

static bool do_send(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len)
{
	uint8_t op = bth->opcode, synd;
	bool first = op == SN_BTH_SEND_FIRST || op >= SN_BTH_SEND_ONLY;
	bool last = op >= SN_BTH_SEND_LAST;
	bool imm = op == SN_BTH_SEND_LAST_IMM || op == SN_BTH_SEND_ONLY_IMM;
	uint32_t head = imm ? 4 : 0;
	const uint8_t *inl;

	if (q->rsp.in_msg != (first ? IN_NONE : IN_SEND) || len < head ||
	    !length_fits(q, first, last, len - head)) {
		sn_rsp_refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (first) {
		if (!need_rwqe(e, q))
			return false;
		q->rsp.r_off = 0;
	}
	inl = first && last && fits_cqe(q, len - head) ? p + head : NULL;
	synd = inl ? 0 : sn_rq_scatter(e, q, &q->rsp.rwqe, q->rsp.r_off, p + head, len - head);
	if (synd) {
		receive_error(e, q, synd);
		return false;
	}
	q->rsp.r_off += len - head;
	q->rsp.in_msg = last ? IN_NONE : IN_SEND;
	if (last)
		receive_done(e, q, bth, imm ? SN_CQE_RESP_SEND_IMM : SN_CQE_RESP_SEND,
			     imm ? p : NULL, q->rsp.r_off, inl);
	return true;
}

static bool write_begin(struct sn_eng *e, struct sn_qp_eng *q, const uint8_t *p)
{
	struct sn_qp_rsp *r = &q->rsp;

	r->w_va = sn_get64(p);
	r->w_rkey = sn_get32(p + 8);
	r->w_left = r->w_len = sn_get32(p + 12);
	/*
	 * A right that the QP does not grant is an invalid request, as in Linux's soft RoCE
	 * (rxe_resp.c, check_op_valid). A right that the region does not grant is an access
	 * error.
	 */
	if (!q->qp->remote_write || r->w_len > SN_MAX_MSG) {
		sn_rsp_refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (!sn_mr_allows(e->dev, r->w_rkey, q->qp->pdn, r->w_va, r->w_len, SN_REMOTE_WRITE)) {
		sn_rsp_refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	return true;
}

static int write_payload(struct sn_eng *e, struct sn_qp_eng *q, const uint8_t *p, uint32_t len)
{
	if (sn_mr_write(e->dev, q->rsp.w_rkey, q->qp->pdn, q->rsp.w_va, len, SN_REMOTE_WRITE, p))
		return -1;
	q->rsp.w_va += len;
	q->rsp.w_left -= len;
	return 0;
}

static bool do_write(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		     const uint8_t *p, uint32_t len)
{
	uint8_t op = bth->opcode;
	bool first = op == SN_BTH_WRITE_FIRST || op >= SN_BTH_WRITE_ONLY;
	bool last = op >= SN_BTH_WRITE_LAST;
	bool imm = op == SN_BTH_WRITE_LAST_IMM || op == SN_BTH_WRITE_ONLY_IMM;
	uint32_t head = (first ? SN_RETH : 0) + (imm ? 4 : 0);

	if (q->rsp.in_msg != (first ? IN_NONE : IN_WRITE) || len < head ||
	    !length_fits(q, first, last, len - head)) {
		sn_rsp_refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (first && !write_begin(e, q, p))
		return false;
	if (imm && !need_rwqe(e, q))
		return false;
	len -= head;
	if (last ? len != q->rsp.w_left : len >= q->rsp.w_left) {
		sn_rsp_refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (write_payload(e, q, p + head, len)) {
		sn_rsp_refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	q->rsp.in_msg = last ? IN_NONE : IN_WRITE;
	if (imm)
		receive_done(e, q, bth, SN_CQE_RESP_WRITE_IMM, p + head - 4, q->rsp.w_len, NULL);
	return true;
}

/* Executes a SEND or WRITE packet that is in sequence. */
static bool do_data(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len)
{
	bool done = bth->opcode <= SN_BTH_SEND_ONLY_IMM ? do_send(e, q, bth, p, len)
							: do_write(e, q, bth, p, len);

	if (done)
		q->rsp.epsn = (q->rsp.epsn + 1) & SN_PSN_MASK;
	return done;
}

/* ---- reliable connections ---- */

static bool execute(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len)
{
	if (bth->opcode <= SN_BTH_WRITE_ONLY_IMM)
		return do_data(e, q, bth, p, len);
	if (bth->opcode == SN_BTH_READ_REQ)
		return sn_rsp_read(e, q, bth, p, len);
	if (sn_bth_atomic(bth->opcode))
		return sn_rsp_atomic(e, q, bth, p, len);
	sn_rsp_refuse(e, q, SN_NAK_INV); /* SEND with invalidate, or a reserved opcode */
	return false;
}

void sn_rsp_request(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len)
{
	int32_t d = sn_psn_cmp(bth->psn, q->rsp.epsn);

	if (d > 0) {
		if (!q->rsp.nak_sent)
			q->rsp.nak_due = SN_NAK_SEQ;
		q->rsp.nak_sent = true;
		return;
	}
	if (d < 0) {
		sn_rsp_again(e, q, bth, p, len);
		return;
	}
	if (!execute(e, q, bth, p, len))
		return;
	q->rsp.nak_sent = false;
	q->rsp.nak_due = 0;
	if (bth->opcode >= SN_BTH_READ_REQ || !q->rsp.in_msg)
		q->rsp.msn++;
	if (bth->opcode < SN_BTH_READ_REQ && bth->ackreq)
		q->rsp.ack_due = true;
}

/* ---- unreliable connections ---- */

static bool begins(uint8_t op)
{
	return op == SN_BTH_SEND_FIRST || op == SN_BTH_SEND_ONLY || op == SN_BTH_SEND_ONLY_IMM ||
	       op == SN_BTH_WRITE_FIRST || op == SN_BTH_WRITE_ONLY || op == SN_BTH_WRITE_ONLY_IMM;
}

/* A PSN gap or the first packet of another message ends the message in progress. After a gap,
 * packets are dropped until the next message begins. */
void sn_rsp_unreliable(struct sn_eng *e, struct sn_qp_eng *q, struct sn_bth *bth, const uint8_t *p,
		       uint32_t len)
{
	bth->opcode &= 0x1f;
	if (bth->opcode > SN_BTH_WRITE_ONLY_IMM) {
		e->dev->stats.wire_malformed++;
		return;
	}
	if (q->rsp.in_msg != IN_NONE && (bth->psn != q->rsp.epsn || begins(bth->opcode))) {
		SN_COUNT(e, q->qp, dropped_messages, 1);
		q->rsp.in_msg = IN_NONE;
	}
	q->rsp.epsn = bth->psn;
	if (begins(bth->opcode) || q->rsp.in_msg != IN_NONE)
		do_data(e, q, bth, p, len);
	q->rsp.epsn = (bth->psn + 1) & SN_PSN_MASK;
}
