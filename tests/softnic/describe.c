/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Describes the state of each queue pair, Ethernet queue and completion queue as text, for the
 * evidence. Indices are the engine's counts; a DBREC has the low 16 bits, or 24 of a CQ.
 */
#include <inttypes.h>
#include <stdio.h>

#include "eng.h"
#include "eth.h"
#include "evidence.h"
#include "text.h"

#define QUEUES_MAX   256u /* described of each kind */
#define LINE_MAX_LEN 512

static const char *const types[] = {
	[SN_QPT_RC] = "qp RC", [SN_QPT_UC] = "qp UC", [SN_QPT_UD] = "qp UD",
	[SN_QPT_SQ] = "sq",    [SN_QPT_RQ] = "rq",
};
static const char *const states[] = {
	[SN_QPS_RST] = "RST",	[SN_QPS_INIT] = "INIT", [SN_QPS_RTR] = "RTR", [SN_QPS_RTS] = "RTS",
	[SN_QPS_SQER] = "SQER", [SN_QPS_SQD] = "SQD",	[SN_QPS_ERR] = "ERR",
};

static void flush(struct sn_text *t, char line[LINE_MAX_LEN], int fd)
{
	dprintf(fd, "%s\n", line);
	*t = (struct sn_text){ line, LINE_MAX_LEN };
}

/* The DBREC may be unmapped by now, so it is read with a check. That of GPU memory is not read. */
static void add_dbrec(struct sn_text *t, uint64_t dbr, bool gpu, unsigned word)
{
	uint32_t v;

	if (!dbr || gpu)
		sn_text_add(t, ", %s", dbr ? "DBREC in GPU memory" : "no DBREC");
	else if (sn_mem_read(false, dbr + 4 * word, &v, 4))
		sn_text_add(t, ", DBREC unreadable");
	else
		sn_text_add(t, ", DBREC %u", be32toh(v));
}

static void add_timer(struct sn_text *t, const char *name, uint64_t at, uint64_t now)
{
	if (at)
		sn_text_add(t, ", %s in %.1f ms", name, ((double)at - (double)now) / 1e6);
}

static void send_side(struct sn_text *t, const struct sn_qp_eng *q, uint64_t now)
{
	const struct sn_qp_req *r = &q->req;
	const struct sn_msg *m = r->head != r->tail ? sn_msg_at(q, r->head) : NULL;
	char op[8];

	sn_text_add(t, "    send: ring %u, pi %u", q->qp->sq_wqebbs, q->sq.pi);
	if (q->qp->no_dbr)
		sn_text_add(t, ", DBREC-less");
	else
		add_dbrec(t, q->qp->dbr, q->dbr_gpu, 1);
	sn_text_add(t, ", ci %u, in flight %u", m ? m->idx : q->sq.fetch, r->tail - r->head);
	if (m)
		sn_text_add(t, " (oldest: WQE %u %s, %u bytes)", m->idx, sn_wqe_name(m->opcode, op),
			    m->len);
	if (q->qp->type == SN_QPT_RC)
		sn_text_add(t, "; PSN unacknowledged %u, next %u; retries %u of %u, RNR %u of %u",
			    r->una, r->max_sent, r->retries, q->qp->retry_cnt, r->rnr_retries,
			    q->qp->rnr_retry);
	add_timer(t, "timeout", r->timer, now);
	add_timer(t, "probe", r->probe, now);
	add_timer(t, "end of RNR wait", r->rnr_until, now);
	if (q->qp->type == SN_QPT_SQ)
		add_timer(t, "end of wait", sn_eth_sq_due(q), now);
}

static void receive_side(struct sn_text *t, const struct sn_qp_eng *q)
{
	const struct sn_srq *srq = q->qp->srq;

	if (srq)
		sn_text_add(t, "    receive: srq 0x%x, ring %u, consumed %u", srq->srqn,
			    srq->wqe_cnt, srq->consumed);
	else
		sn_text_add(t, "    receive: ring %u, ci %u", q->qp->rq_wqes, q->rsp.rq_ci);
	if (srq || q->qp->rq_wqes)
		add_dbrec(t, srq ? srq->dbr : q->qp->dbr, srq ? srq->dbr_gpu : q->dbr_gpu, 0);
	if (q->qp->type <= SN_QPT_UD)
		sn_text_add(t, "; PSN expected %u, answers waiting %u%s", q->rsp.epsn,
			    q->rsp.job_tail - q->rsp.job_head, q->rsp.nak_sent ? ", NAK sent" : "");
}

static void describe_qp(const struct sn_qp_eng *q, uint64_t now, int fd)
{
	const struct sn_qp *qp = q->qp;
	char peer[INET6_ADDRSTRLEN] = "", synd[8];
	char line[LINE_MAX_LEN];
	struct sn_text t = { line, sizeof(line) };

	sn_text_add(&t, "  %s 0x%x: state %s", types[qp->type], qp->qpn, states[qp->state]);
	if (qp->type < SN_QPT_UD && qp->state >= SN_QPS_RTR) {
		sn_addr_text(&qp->way.ip, peer);
		sn_text_add(&t, ", to 0x%x at %s", qp->dest_qpn, peer);
	}
	sn_text_add(&t, ", CQs 0x%x and 0x%x, UAR 0x%x", qp->scq ? qp->scq->cqn : 0,
		    qp->rcq ? qp->rcq->cqn : 0, qp->uar);
	if (qp->last_error.synd)
		sn_text_add(&t, "; last error: %s (vendor 0x%02x) of WQE %u",
			    sn_syndrome_name(qp->last_error.synd, synd), qp->last_error.vendor,
			    qp->last_error.counter);
	flush(&t, line, fd);
	if (qp->sq_wqebbs) {
		send_side(&t, q, now);
		flush(&t, line, fd);
	}
	if (qp->rq_wqes || qp->srq || qp->type == SN_QPT_RC) {
		receive_side(&t, q);
		flush(&t, line, fd);
	}
}

static void describe_cq(const struct sn_cq_eng *c, int fd)
{
	const struct sn_cq *cq = c->cq;
	char line[LINE_MAX_LEN];
	struct sn_text t = { line, sizeof(line) };

	sn_text_add(&t, "  cq 0x%x: ring %u, pi %" PRIu64, cq->cqn, 1u << cq->log_size, cq->pi);
	add_dbrec(&t, cq->dbr, c->dbr_gpu, 0);
	if (cq->channel || cq->subscribed)
		sn_text_add(&t, cq->armed ? ", armed for %u" : ", not armed", cq->arm_ci);
	if (cq->error)
		sn_text_add(&t, ", in error: %s",
			    cq->error == SN_CQ_OVERRUN ? "overrun" : "memory cannot be written");
	flush(&t, line, fd);
}

void sn_describe_queues(struct sn_dev *dev, int fd)
{
	const struct sn_eng *e = dev->eng;
	const struct sn_qp_eng *q;
	const struct sn_cq_eng *c;
	unsigned n = 0;

	if (!e)
		return;
	for (q = e->qps; q && n < QUEUES_MAX; q = q->next, n++)
		describe_qp(q, e->now, fd);
	if (q)
		dprintf(fd, "  %u more queue pairs not listed\n", e->nqps - n);
	for (n = 0, c = e->cqs; c && n < QUEUES_MAX; c = c->next, n++)
		describe_cq(c, fd);
	if (c)
		dprintf(fd, "  %u more completion queues not listed\n", e->ncqs - n);
}
