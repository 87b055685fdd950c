/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Executes READs and atomics, and sends all answers of a responder: READ responses and
 * atomic results in the order of their requests, from a circular array of jobs, and
 * after them the acknowledgement or NAK. The last max_dest_rd_atomic READs and atomics
 * are remembered (IB spec 9.4.4 and 9.7.5.1.2). A duplicate READ, of the whole or of a
 * part, is read again; a duplicate atomic is answered with the first result. A duplicate
 * of an older READ or atomic is dropped silently.
 */
#include "eng.h"

#define RESP_BURST   32u /* response packets per QP and pass */
#define CREDITS_NONE 0x1fu

/* ---- replies ---- */

static void reply(struct sn_eng *e, struct sn_qp_eng *q, uint8_t syndrome, uint32_t psn)
{
	struct sn_bth bth = { .opcode = SN_BTH_ACK, .qpn = q->qp->dest_qpn, .psn = psn };
	struct sn_pkt *p = sn_pkt_get(e);

	if (!p)
		return;
	sn_put32(p->data + 12, (uint32_t)syndrome << 24 | (q->rsp.msn & SN_PSN_MASK));
	sn_pkt_send(e, q->qp, &q->qp->way, p, &bth, 16);
}

/* Drops all jobs and sends a NAK: the memory or its region was removed after the request. */
static void lost_memory(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_job *j)
{
	q->rsp.epsn = (j->psn + j->sent) & SN_PSN_MASK;
	q->rsp.job_head = q->rsp.job_tail;
	sn_rsp_refuse(e, q, SN_NAK_ACCESS);
}

/* Reads the payload of one response packet. may: number of packets that this pass may still
 * send, including this one. Returns the number of bytes, or UINT32_MAX if the memory cannot be
 * read. */
static uint32_t job_data(struct sn_eng *e, struct sn_qp_eng *q, struct sn_job *j, uint8_t *p,
			 uint32_t off, uint32_t may)
{
	uint32_t n = j->len - off < q->mtu ? j->len - off : q->mtu;
	int rc;

	sn_mem_plan(sn_min64((uint64_t)may * q->mtu, j->len - off));
	rc = sn_mr_read(e->dev, j->rkey, q->qp->pdn, j->va + off, n, SN_REMOTE_READ, p);
	sn_mem_plan(0);
	return rc ? UINT32_MAX : n;
}

static uint8_t resp_opcode(const struct sn_job *j)
{
	if (j->atomic)
		return SN_BTH_ATOMIC_ACK;
	if (j->npkts == 1)
		return SN_BTH_RESP_ONLY;
	if (!j->sent)
		return SN_BTH_RESP_FIRST;
	return j->sent + 1 == j->npkts ? SN_BTH_RESP_LAST : SN_BTH_RESP_MIDDLE;
}

/* Sends one response packet; if no packet can be allocated, a later call sends it. Returns false
 * if the memory to read was removed. */
static bool send_response(struct sn_eng *e, struct sn_qp_eng *q, struct sn_job *j, uint32_t may)
{
	struct sn_bth bth = { .opcode = resp_opcode(j),
			      .qpn = q->qp->dest_qpn,
			      .psn = j->psn + j->sent };
	struct sn_pkt *p = sn_pkt_get(e);
	uint32_t len = 12, n;

	if (!p)
		return true;
	if (bth.opcode != SN_BTH_RESP_MIDDLE) {
		sn_put32(p->data + len, CREDITS_NONE << 24 | (q->rsp.msn & SN_PSN_MASK));
		len += 4;
	}
	if (j->atomic) {
		sn_put64(p->data + len, j->result);
		len += 8;
	} else {
		n = job_data(e, q, j, p->data + len, j->sent * q->mtu, may);
		if (n == UINT32_MAX) {
			sn_pkt_put(e, p);
			return false;
		}
		len += n;
	}
	sn_pkt_send(e, q->qp, &q->qp->way, p, &bth, len);
	j->sent++;
	return true;
}

/* Sends responses, then the acknowledgement or NAK. Returns true if it sent a packet. After a fatal
 * error, the QP's state may already be ERR while the NAK is still to be sent. */
bool sn_rsp_send(struct sn_eng *e, struct sn_qp_eng *q)
{
	const struct sn_job *before = NULL;
	unsigned burst = 0;
	struct sn_job *j;

	while (q->rsp.job_head != q->rsp.job_tail) {
		j = &q->rsp.jobs[q->rsp.job_head % SN_JOBS];
		if (burst++ >= RESP_BURST)
			return true;
		if (j != before) /* a READ must not return data older than the previous READ's */
			sn_gpu_fresh();
		before = j;
		if (!send_response(e, q, j, RESP_BURST + 1 - burst)) {
			lost_memory(e, q, j);
			return true;
		}
		if (j->sent >= j->npkts) {
			q->rsp.fresh -= !j->again;
			q->rsp.job_head++;
		}
	}
	if (q->rsp.ack_due && !q->rsp.nak_due)
		reply(e, q, CREDITS_NONE, q->rsp.epsn - 1);
	if (q->rsp.nak_due) {
		reply(e, q, q->rsp.nak_due, q->rsp.epsn);
		SN_COUNT(e, q->qp, naks_sent, 1);
	}
	burst += q->rsp.ack_due || q->rsp.nak_due;
	q->rsp.ack_due = false;
	q->rsp.nak_due = 0;
	return burst;
}

/* ---- jobs ---- */

static struct sn_job *add_job(struct sn_qp_eng *q, uint32_t psn, bool again)
{
	struct sn_job *j = &q->rsp.jobs[q->rsp.job_tail % SN_JOBS];

	q->rsp.job_tail++;
	q->rsp.fresh += !again;
	*j = (struct sn_job){ .psn = psn, .npkts = 1, .again = again };
	return j;
}

static void keep(struct sn_qp_eng *q, const struct sn_job *j)
{
	q->rsp.kept[q->rsp.nkept++ % SN_RES] = *j;
}

/* Returns whether this QP already has its maximum number of unanswered READs and atomics. */
static bool too_many(const struct sn_qp_eng *q)
{
	return q->rsp.fresh >= q->qp->max_dest_rd_atomic;
}

static uint32_t packets(const struct sn_qp_eng *q, uint32_t len)
{
	return len ? (len + q->mtu - 1) / q->mtu : 1;
}

bool sn_rsp_read(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth, const uint8_t *p,
		 uint32_t len)
{
	uint32_t n = len >= SN_RETH ? sn_get32(p + 12) : 0;
	struct sn_job *j;

	if (len != SN_RETH || n > SN_MAX_MSG || q->rsp.in_msg || !q->qp->remote_read ||
	    too_many(q)) {
		sn_rsp_refuse(e, q, SN_NAK_INV);
		return false;
	}
	if (!sn_mr_allows(e->dev, sn_get32(p + 8), q->qp->pdn, sn_get64(p), n, SN_REMOTE_READ)) {
		sn_rsp_refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	j = add_job(q, bth->psn, false);
	j->va = sn_get64(p);
	j->rkey = sn_get32(p + 8);
	j->len = n;
	j->npkts = packets(q, n);
	keep(q, j);
	q->rsp.epsn = (q->rsp.epsn + j->npkts) & SN_PSN_MASK;
	return true;
}

/* ---- atomics ---- */

/* Adds field by field. Each set bit of boundary ends a field, and the carry out of it is
 * dropped. */
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
	case SN_BTH_MASKED_FA4:
		return masked_add(old, swap, sn_get64(arg + 16));
	}
	mask = sn_get64(arg + 16);
	if ((old ^ cmp) & sn_get64(arg + 24))
		return old;
	return (old & ~mask) | (swap & mask);
}

static int word_read(const struct sn_mr *mr, uint64_t va, unsigned size, uint64_t *v)
{
	uint32_t half;

	if (size == 8)
		return sn_mem_read(mr->gpu, va, v, 8);
	if (sn_mem_read(mr->gpu, va, &half, 4))
		return -1;
	*v = half;
	return 0;
}

static int word_write(const struct sn_mr *mr, uint64_t va, unsigned size, uint64_t v)
{
	uint32_t half = (uint32_t)v;

	return size == 8 ? sn_mem_write(mr->gpu, va, &v, 8) : sn_mem_write(mr->gpu, va, &half, 4);
}

bool sn_rsp_atomic(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		   const uint8_t *p, uint32_t len)
{
	bool masked = bth->opcode >= SN_BTH_MASKED_CS;
	unsigned size = bth->opcode >= SN_BTH_MASKED_CS4 ? 4 : 8;
	uint64_t va, old, new;
	struct sn_job *j;
	struct sn_mr *mr;

	if (len != (masked ? SN_MASKED_ETH : SN_ATOMIC_ETH) || q->rsp.in_msg ||
	    sn_get64(p) & (size - 1) || !q->qp->remote_atomic || too_many(q)) {
		sn_rsp_refuse(e, q, SN_NAK_INV);
		return false;
	}
	mr = sn_mr_word(e->dev, sn_get32(p + 8), q->qp->pdn, sn_get64(p), size, &va);
	if (!mr || word_read(mr, va, size, &old)) {
		sn_rsp_refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	new = atomic_result(bth->opcode, old, p + 12);
	if (new != old && word_write(mr, va, size, new)) {
		sn_rsp_refuse(e, q, SN_NAK_ACCESS);
		return false;
	}
	j = add_job(q, bth->psn, false);
	j->atomic = true;
	j->result = old;
	keep(q, j);
	q->rsp.epsn = (q->rsp.epsn + 1) & SN_PSN_MASK;
	return true;
}

/* ---- duplicates ---- */

static const struct sn_job *kept_at(const struct sn_qp_eng *q, uint32_t psn)
{
	uint32_t most = q->qp->max_dest_rd_atomic, n = q->rsp.nkept < most ? q->rsp.nkept : most;
	const struct sn_job *k;
	uint32_t i;

	for (i = 1; i <= n; i++) {
		k = &q->rsp.kept[(q->rsp.nkept - i) % SN_RES];
		if (((psn - k->psn) & SN_PSN_MASK) < k->npkts)
			return k;
	}
	return NULL;
}

/* Returns whether a job that is not yet started answers at least npkts packets from psn on. A
 * duplicate then needs no second job. */
static bool pending(const struct sn_qp_eng *q, uint32_t psn, uint32_t npkts)
{
	const struct sn_job *j;
	uint32_t n;

	for (n = q->rsp.job_head; n != q->rsp.job_tail; n++) {
		j = &q->rsp.jobs[n % SN_JOBS];
		if (j->psn == psn && j->npkts >= npkts && !j->sent)
			return true;
	}
	return false;
}

static void read_again(struct sn_qp_eng *q, const struct sn_job *k, const struct sn_bth *bth,
		       const uint8_t *p, uint32_t len)
{
	uint32_t off = ((bth->psn - k->psn) & SN_PSN_MASK) * q->mtu;
	struct sn_job *j;

	if (len != SN_RETH || k->atomic || sn_get64(p) != k->va + off ||
	    sn_get32(p + 8) != k->rkey || sn_get32(p + 12) > k->len - off)
		return;
	j = add_job(q, bth->psn, true);
	j->va = sn_get64(p);
	j->rkey = k->rkey;
	j->len = sn_get32(p + 12);
	j->npkts = packets(q, j->len);
}

void sn_rsp_again(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth, const uint8_t *p,
		  uint32_t len)
{
	uint32_t npkts = 1;
	const struct sn_job *k;
	struct sn_job *j;

	SN_COUNT(e, q->qp, dup_requests, 1);
	if (bth->opcode < SN_BTH_READ_REQ) {
		q->rsp.ack_due = true;
		return;
	}
	k = kept_at(q, bth->psn);
	if (bth->opcode == SN_BTH_READ_REQ && len == SN_RETH)
		npkts = packets(q, sn_get32(p + 12));
	if (!k || pending(q, bth->psn, npkts) ||
	    q->rsp.job_tail - q->rsp.job_head >= SN_JOBS - SN_RES)
		return;
	if (bth->opcode == SN_BTH_READ_REQ) {
		read_again(q, k, bth, p, len);
	} else if (k->atomic) {
		j = add_job(q, bth->psn, true);
		j->atomic = true;
		j->result = k->result;
	}
}
