/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The requester's side of answers: acknowledgements, each for all packets up to its
 * PSN; NAKs; READ data and atomic results. requester.c sends, window.c owns the
 * number of packets in flight and the times.
 *
 * Packets are sent again, from the oldest unacknowledged one on:
 * - after a NAK for a sequence error; it counts against retry_cnt;
 * - when a response is missing while a later one arrives (implied NAK);
 * - after the waiting time that an RNR NAK contains;
 * - after the timeout of the queue pair; it counts against retry_cnt. The timeout of a peer that
 *   peer.c knows waits until this peer has handled the packets;
 * - when a probe, a retransmission of the oldest packet alone, is answered by an
 *   acknowledgement of that packet alone: the packets sent after it did not
 *   arrive. A probe finds a loss that nothing else shows: of the last packet, of an
 *   acknowledgement, or of a NAK, which is sent only once per loss.
 */
#include "eng.h"

#define RNR_FOREVER 7
#define CE_ALWAYS   0x08 /* the WQE requests a CQE */
/* time without progress after which the peer's process is watched, even before the timeout */
#define WATCH_NS 100000000ull

/* waiting time of each RNR NAK timer code, in units of 10 us */
static const uint32_t rnr_time[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* ---- progress and loss ---- */

static void go_back(struct sn_qp_eng *q)
{
	sn_window_lost(q);
	sn_req_rewind(q, q->req.una);
	q->req.probed = 0;
}

/*
 * Called when an acknowledgement arrives after a probe. If it acknowledges only the probed packet
 * and arrives within one round trip of the probe, it answers the probe, and the first transmission
 * was lost. Otherwise it may be a slow peer's answer to the first transmission: if it acknowledges
 * all packets, or more than the probed one, the probe was sent too early. If it acknowledges the
 * probed packet alone, all packets after it are sent again.
 */
static void probe_answered(struct sn_eng *e, struct sn_qp_eng *q)
{
	bool alone = q->req.una == (q->req.probed & SN_PSN_MASK);

	if (alone && sn_rtt_fits(q, e->now - q->req.probed_at))
		sn_probe_wait_lossy(e);
	else if (!alone || q->req.una == q->req.max_sent)
		sn_probe_wait_early(e);
	if (alone && q->req.una != q->req.max_sent)
		go_back(q);
	q->req.probed = 0;
}

static void progress(struct sn_eng *e, struct sn_qp_eng *q, uint32_t psn)
{
	uint32_t acked = (psn - q->req.una) & SN_PSN_MASK;

	q->req.una = psn;
	q->req.retries = q->req.rnr_retries = 0;
	sn_timer_progress(e, q);
	if (q->req.probed)
		probe_answered(e, q);
	sn_window_acked(q, acked);
}

/* ---- acknowledgements ---- */

/* Returns the PSN of the first missing READ or atomic response before psn, or psn. */
static uint32_t first_missing(struct sn_qp_eng *q, uint32_t psn)
{
	uint32_t n, at;

	for (n = q->req.head; n != q->req.tail; n++) {
		const struct sn_msg *m = sn_msg_at(q, n);

		if (sn_psn_cmp(m->psn, psn) >= 0)
			break;
		at = (m->psn + m->got) & SN_PSN_MASK;
		if (m->npkts && sn_msg_reads(m) && !m->done && sn_psn_cmp(at, psn) < 0)
			return at;
	}
	return psn;
}

/* Handles the acknowledgement of all packets before psn. Returns false if a READ or atomic
 * response before psn is missing. */
static bool acked_before(struct sn_eng *e, struct sn_qp_eng *q, uint32_t psn)
{
	uint32_t upto;

	if (sn_psn_cmp(psn, q->req.una) <= 0 || sn_psn_cmp(psn, q->req.max_sent) > 0)
		return true;
	upto = first_missing(q, psn);
	if (sn_psn_cmp(upto, q->req.una) > 0)
		progress(e, q, upto);
	/* skip packets that were acknowledged before they were sent again */
	if (sn_psn_cmp(sn_req_cur_psn(q), q->req.una) < 0)
		sn_req_rewind(q, q->req.una);
	sn_req_complete(e, q);
	return upto == psn;
}

static void resend(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->req.retries++ >= q->qp->retry_cnt) {
		sn_req_fail(e, q, SN_SYND_RETRY, 0x81);
		return;
	}
	go_back(q);
	sn_timer_start(e, q);
}

/* A response is missing while later ones arrive: resend, once per loss. */
static void response_lost(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->req.again_at == q->req.una + 1)
		return;
	q->req.again_at = q->req.una + 1;
	sn_probe_wait_lossy(e);
	go_back(q);
	sn_timer_start(e, q);
}

/* A responder sends one sequence NAK per missing PSN, so a second one is a duplicate. */
static void out_of_sequence(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->req.again_at == q->req.una + 1)
		return;
	q->req.again_at = q->req.una + 1;
	sn_probe_wait_lossy(e);
	resend(e, q);
}

static void rnr_nak(struct sn_eng *e, struct sn_qp_eng *q, uint8_t code)
{
	if (q->qp->rnr_retry != RNR_FOREVER && q->req.rnr_retries++ >= q->qp->rnr_retry) {
		sn_req_fail(e, q, SN_SYND_RNR, 0x87);
		return;
	}
	q->req.retries = 0; /* the request arrived in sequence, so the path works */
	q->req.again_at = 0;
	sn_window_not_ready(q);
	sn_req_rewind(q, q->req.una);
	q->req.probed = 0;
	q->req.rnr_until = e->now + rnr_time[code & 31] * 10000ull;
	sn_timer_stop(q);
}

static void nak(struct sn_eng *e, struct sn_qp_eng *q, uint8_t syndrome)
{
	SN_COUNT(e, q->qp, naks_received, 1);
	switch (syndrome) {
	case SN_NAK_SEQ:
		out_of_sequence(e, q);
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
	if (syndrome >> 5 == SN_AETH_RNR >> 5)
		rnr_nak(e, q, syndrome);
	else
		e->dev->stats.wire_malformed++;
}

static void take_ack(struct sn_eng *e, struct sn_qp_eng *q, uint32_t psn, uint8_t syndrome)
{
	bool positive = syndrome >> 5 == 0;

	if (sn_psn_cmp(psn, q->req.una) < 0 || sn_psn_cmp(psn, q->req.max_sent) >= 0)
		return; /* a duplicate, or a PSN that was never sent */
	if (!acked_before(e, q, (positive ? psn + 1 : psn) & SN_PSN_MASK))
		response_lost(e, q);
	else if (!positive && q->qp->state != SN_QPS_ERR)
		nak(e, q, syndrome);
}

/* ---- data ---- */

struct sn_msg *sn_msg_of_psn(struct sn_qp_eng *q, uint32_t psn)
{
	uint32_t n;

	for (n = q->req.head; n != q->req.tail; n++) {
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

/* Stores the data of a response of one packet: for the CQE, if it has room and will be written;
 * otherwise in memory. Returns 0 or -EFAULT. */
static int store_reply(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const void *p)
{
	if (m->len && m->len <= q->qp->inline_send && (q->qp->sig_all || m->fm & CE_ALWAYS)) {
		memcpy(m->reply, p, m->len);
		m->inl_reply = true;
		return 0;
	}
	return sn_sge_write(e->dev, q->qp->pdn, m->sge, m->nsge, 0, p, m->len);
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
	if (m->npkts == 1 ? store_reply(e, q, m, p)
			  : sn_sge_write(e->dev, q->qp->pdn, m->sge, m->nsge, off, p, len)) {
		local_fault(e, q, m, SN_SYND_LOC_PROT);
		return;
	}
	m->got++;
	m->done = m->got == m->npkts;
	acked_before(e, q, (m->psn + m->got) & SN_PSN_MASK);
}

/*
 * An 8-byte result is in the CPU's byte order (the mode that the capabilities report), a 4-byte
 * result is big-endian. UCX expects this of hardware.
 */
static void atomic_data(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *p)
{
	uint64_t old = sn_get64(p);
	uint32_t half = htobe32((uint32_t)old);

	if (store_reply(e, q, m, m->len == 8 ? (void *)&old : (void *)&half)) {
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

	if (sn_psn_cmp(bth->psn, q->req.una) < 0 || sn_psn_cmp(bth->psn, q->req.max_sent) >= 0)
		return;
	if (!acked_before(e, q, bth->psn)) {
		response_lost(e, q);
		return;
	}
	m = sn_msg_of_psn(q, bth->psn);
	if (!m || m->done || m->synd || bth->psn != ((m->psn + m->got) & SN_PSN_MASK))
		return;
	if (bth->opcode == SN_BTH_ATOMIC_ACK && sn_msg_atomic(m) && len == 8)
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

	if (q->qp->state < SN_QPS_RTS)
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

/* Returns SN_DUE_NONE instead of a timeout if the peer gets no processor time. A queue pair whose
 * peer is gone fails at once. */
static enum sn_due peer_decides(struct sn_eng *e, struct sn_qp_eng *q, enum sn_due due)
{
	if (!q->peer || (due != SN_DUE_TIMEOUT && e->now - q->req.since < WATCH_NS))
		return due;
	switch (sn_peer_ask(e, q->peer, q->req.since)) {
	case SN_PEER_GONE:
		sn_peer_report(q->peer, "failing the queue pairs that wait for it");
		sn_req_fail(e, q, SN_SYND_RETRY, 0x81);
		return SN_DUE_NONE;
	case SN_PEER_BUSY:
		return due == SN_DUE_TIMEOUT ? SN_DUE_NONE : due;
	default:
		return due;
	}
}

bool sn_req_timer(struct sn_eng *e, struct sn_qp_eng *q)
{
	enum sn_due due = sn_timer_due(e, q);

	if (q->req.timer)
		due = peer_decides(e, q, due);
	switch (due) {
	case SN_DUE_TIMEOUT:
		SN_COUNT(e, q->qp, timeouts, 1);
		resend(e, q);
		return true;
	case SN_DUE_PROBE:
		SN_COUNT(e, q->qp, probes, 1);
		return sn_req_probe(e, q);
	default:
		return false;
	}
}
