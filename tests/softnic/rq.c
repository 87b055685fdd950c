/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receive WQEs: taken when a message needs one, from the QP's own ring or from a
 * shared receive queue (linked list or ring); filled with data; flushed. Also the
 * receive side of UD QPs, which has no other state. responder.c and resource.c hold
 * the receive side of connections.
 */
#include "eng.h"
#include "eth.h"

#define LKEY_END  0x100u
#define GRH_LEN	  40u
#define RQPN_GRH  (1u << 28)
#define RQPN_IPV6 (1u << 24) /* version of the IP header that is stored before the data */
#define RQPN_IPV4 (2u << 24)

static void parse_sges(struct sn_rwqe *w, const uint8_t *p, uint32_t bytes)
{
	uint32_t lkey, count;

	w->nsge = 0;
	w->len = 0;
	for (; bytes >= 16 && w->nsge < 32; bytes -= 16, p += 16) {
		count = sn_get32(p) & 0x7fffffff;
		lkey = sn_get32(p + 4);
		if (lkey == LKEY_END)
			break;
		if (!count)
			count = 1u << 31; /* 2 GiB, as in a send WQE */
		w->sge[w->nsge++] = (struct sn_sge){ sn_get64(p + 8), count, lkey };
		/* Entries of 2 GiB may overflow 32 bits. No message is that long. */
		w->len = w->len + count < count ? UINT32_MAX : w->len + count;
	}
}

/* Number of WQEs posted and not consumed; -1: the DBREC cannot be read. */
static int srq_left(const struct sn_srq *srq)
{
	uint32_t posted;

	/* Acquire: pairs with the program's release store of the count, after it wrote the
	 * WQEs. sn_mem_read() of an aligned word acquires. */
	if (sn_mem_read(srq->dbr_gpu, srq->dbr, &posted, 4))
		return -1;
#ifdef __SANITIZE_THREAD__
	/* There the copy is a system call, which ThreadSanitizer does not see. */
	if (!srq->dbr_gpu)
		(void)__atomic_load_n((const uint32_t *)(uintptr_t)srq->dbr, __ATOMIC_ACQUIRE);
#endif
	return (uint16_t)(be32toh(posted) - srq->consumed);
}

static int take_srq(struct sn_eng *e, struct sn_srq *srq, struct sn_rwqe *w)
{
	uint8_t wqe[16 + 32 * 16];
	uint32_t bytes = 1u << srq->wqe_shift, head = srq->basic ? 0 : 16;
	int left = srq_left(srq);

	if (left <= 0)
		return left;
	if (bytes > sizeof(wqe))
		bytes = sizeof(wqe);
	w->idx = (srq->cyclic ? srq->consumed : srq->next) & (srq->wqe_cnt - 1);
	if (sn_mem_read(srq->gpu, srq->buf + ((uint64_t)w->idx << srq->wqe_shift), wqe, bytes))
		return -1;
	srq->next = (uint32_t)wqe[2] << 8 | wqe[3];
	srq->consumed++;
	parse_sges(w, wqe + head, bytes - head);
	if (srq->limit && (uint32_t)left - 1 < srq->limit) {
		srq->limit = 0; /* one event per arming */
		sn_event_async_srq(e->dev, srq, SN_ASYNC_SRQ_LIMIT);
	}
	return 1;
}

uint32_t sn_rq_left(struct sn_qp_eng *q)
{
	uint32_t pi;
	int left;

	if (q->qp->srq) {
		left = srq_left(q->qp->srq);
		return left < 0 ? UINT32_MAX : (uint32_t)left;
	}
	return sn_dbrec_read(q, 0, &pi) ? (uint16_t)(pi - q->rsp.rq_ci) : UINT32_MAX;
}

int sn_rq_take(struct sn_eng *e, struct sn_qp_eng *q, struct sn_rwqe *w)
{
	struct sn_qp *qp = q->qp;
	uint8_t wqe[32 * 16];
	uint32_t bytes, pi;

	if (qp->srq)
		return take_srq(e, qp->srq, w);
	if (!qp->rq_wqes || !sn_dbrec_read(q, 0, &pi))
		return 0;
	if ((uint16_t)pi == (uint16_t)q->rsp.rq_ci)
		return 0;
	bytes = qp->rq_stride < sizeof(wqe) ? qp->rq_stride : sizeof(wqe);
	w->idx = q->rsp.rq_ci;
	if (sn_mem_read(q->rq_gpu,
			qp->rq_buf + (uint64_t)(w->idx & (qp->rq_wqes - 1)) * qp->rq_stride, wqe,
			bytes))
		return -1;
	q->rsp.rq_ci++;
	parse_sges(w, wqe, bytes);
	return 1;
}

int sn_rq_scatter(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_rwqe *w, uint32_t off,
		  const void *src, uint32_t len)
{
	uint32_t pdn = q->qp->srq ? q->qp->srq->pdn : q->qp->pdn;

	if (off > w->len || len > w->len - off)
		return SN_SYND_LOC_LEN;
	if (!sn_sge_write(e->dev, pdn, w->sge, w->nsge, off, src, len))
		return 0;
	SN_COUNT(e, q->qp, local_prot_errors, 1);
	return SN_SYND_LOC_PROT;
}

void sn_rq_flush(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_cqe_args a = { .opcode = SN_CQE_RESP_ERR, .synd = SN_SYND_FLUSH, .vendor = 0xf9 };
	uint32_t pi;

	if (q->rsp.have_rwqe) {
		q->rsp.have_rwqe = false;
		a.counter = q->rsp.rwqe.idx;
		sn_cqe_write(e, q->qp->rcq, q->qp, &a);
		SN_COUNT(e, q->qp, flushed, 1);
	}
	if (q->qp->srq || !q->qp->rq_wqes || !q->qp->rcq || !sn_dbrec_read(q, 0, &pi))
		return;
	if ((uint16_t)(pi - q->rsp.rq_ci) > q->qp->rq_wqes)
		return;
	for (; (uint16_t)q->rsp.rq_ci != (uint16_t)pi; q->rsp.rq_ci++) {
		a.counter = q->rsp.rq_ci;
		sn_cqe_write(e, q->qp->rcq, q->qp, &a);
		SN_COUNT(e, q->qp, flushed, 1);
	}
}

/* Copies the received IP header to the end of the 40 bytes before the data. The IPv4 checksum is
 * computed, because the kernel does not deliver it. */
static void fill_grh(uint8_t grh[GRH_LEN], const uint8_t *header, uint32_t len)
{
	uint8_t *h = grh + GRH_LEN - len;
	uint32_t sum = 0, i;

	memcpy(h, header, len);
	if (len == GRH_LEN)
		return;
	for (i = 0; i < len; i += 2)
		sum += (uint32_t)h[i] << 8 | h[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	h[10] = sum >> 8;
	h[11] = sum;
}

static void fill_ib_grh(uint8_t grh[GRH_LEN], const struct sn_pkt *pkt)
{
	uint32_t len = pkt->len + 4u;

	grh[0] = 6 << 4;
	grh[4] = len >> 8;
	grh[5] = len;
	grh[6] = 0x1b; /* the next header is a BTH */
	grh[7] = pkt->hop_limit;
	sn_link_local(&pkt->src, grh + 8);
	sn_link_local(&pkt->dst, grh + 24);
}

/* Fills the 40 bytes before the data with a header. Returns the bits that describe the header in
 * the CQE; 0: there is no header, and the bytes stay unchanged. */
static uint32_t fill_room(struct sn_eng *e, uint8_t grh[GRH_LEN], const struct sn_pkt *pkt)
{
	uint32_t ip = pkt->head - 8u;

	if (!e->dev->cfg.infiniband) {
		fill_grh(grh, pkt->ip_udp, ip);
		return RQPN_GRH | (ip == GRH_LEN ? RQPN_IPV6 : RQPN_IPV4);
	}
	/* The wire does not show whether the sender used a GRH. Assume one only on ports that
	 * require it. */
	if (!e->dev->cfg.grh_required)
		return 0;
	fill_ib_grh(grh, pkt);
	return RQPN_GRH;
}

/* Receives a datagram: stores 40 bytes that end with the IP header or the GRH, then the data. */
void sn_rq_ud(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
	      const struct sn_pkt *pkt, const uint8_t *p, uint32_t len)
{
	bool imm = bth->opcode == SN_BTH_UD_SEND_IMM;
	uint32_t head = imm ? 12 : 8;
	struct sn_cqe_args a = { .opcode = imm ? SN_CQE_RESP_SEND_IMM : SN_CQE_RESP_SEND,
				 .solicited = bth->solicited };
	uint8_t grh[GRH_LEN] = { 0 };
	struct sn_rwqe w;
	int synd;

	if (len < head) {
		e->dev->stats.wire_malformed++;
		return;
	}
	if (sn_get32(p) != q->qp->qkey) {
		e->dev->stats.qkey_violations++;
		return;
	}
	if (len - head > q->mtu || sn_rq_take(e, q, &w) != 1) {
		SN_COUNT(e, q->qp, dropped_messages, 1);
		return;
	}
	a.flags_rqpn = fill_room(e, grh, pkt) | (sn_get32(p + 4) & 0xffffff);
	if (e->dev->cfg.infiniband)
		a.slid = sn_lid_of_ip(&pkt->src);
	synd = sn_rq_scatter(e, q, &w, 0, grh, GRH_LEN);
	if (!synd)
		synd = sn_rq_scatter(e, q, &w, GRH_LEN, p + head, len - head);
	a.counter = w.idx;
	a.byte_cnt = GRH_LEN + len - head;
	if (imm)
		memcpy(&a.imm, p + 8, 4);
	if (synd) {
		a.opcode = SN_CQE_RESP_ERR;
		a.synd = synd;
	}
	sn_cqe_write(e, q->qp->rcq, q->qp, &a);
	if (synd)
		sn_qp_to_error(e, q);
}
