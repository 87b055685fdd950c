/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * How many packets of a reliable connection may be unacknowledged, and how long
 * to wait before a missing acknowledgement means a loss.
 *
 * Window. After a loss everything behind the lost packet goes again (go-back-N),
 * so a window that overruns the receiver's queue costs a window of packets each
 * time. The rules are TCP's (RFC 5681), with a memory of where packets got lost:
 *  - It begins at WINDOW_FIRST and grows by half of the packets acknowledged,
 *    up to `good`; above, by one packet per window acknowledged. It grows only
 *    while it is what holds packets back. Because acknowledgements pace this
 *    growth, the first packets that overrun a queue are followed by one that fits,
 *    and a NAK tells of the loss; a large first window would lose its whole tail.
 *  - One packet below `wall`, the size at which packets got lost, it stays until
 *    `hold` packets are acknowledged. If the wall is met again `hold` doubles.
 *    If not the window grows by 1, 2, 4, ... packets, up to SN_WINDOW_PKTS.
 *  - A loss reduces it to one packet. That packet queues behind what the receiver
 *    still has to discard, so its acknowledgement shows an empty queue; the window
 *    is then `good`: 3/4 of what it was, or half if that was reached by fast growth.
 *  - An RNR NAK reduces it to NOT_READY, and the next acknowledgement restores it.
 *
 * Time. The timeout of the queue pair, 4.096 us * 2^ack_timeout (IB spec
 * 9.7.6.1.3), counts against retry_cnt. Before it, probes send one packet, the
 * oldest, and count for nothing; the wait doubles with each. The first comes after
 * SRTT + 4 * RTTVAR (RFC 6298), taken from packets sent once (Karn's rule), but not
 * before e->patience. That is PATIENCE_FIRST while no packet is known to be lost: the
 * threads of this NIC and of the peer's may wait milliseconds for a core or for a
 * GPU's driver, and a wire without loss shall see no packet twice. It is
 * PATIENCE_LOSSY once a loss is certain, and doubles with each probe whose answer
 * shows none.
 */
#include "eng.h"

#define WINDOW_FIRST   4u
#define GOOD_MIN       4u
#define NOT_READY      4u
#define HOLD_MIN       64u
#define HOLD_MAX       256u
#define PATIENCE_FIRST 32000000ull /* ns */
#define PATIENCE_LOSSY 500000ull
#define PATIENCE_MAX   48000000ull /* below the usual timeout, 67 ms: one probe fits */

/* ---- window ---- */

void sn_window_open(struct sn_qp_eng *q)
{
	q->req.win = (struct sn_window){ .size = WINDOW_FIRST,
					 .good = SN_WINDOW_PKTS,
					 .wall = SN_WINDOW_PKTS,
					 .step = 1,
					 .hold = 1 };
}

uint32_t sn_window_flight(const struct sn_qp_eng *q)
{
	return (sn_req_cur_psn(q) - q->req.una) & SN_PSN_MASK;
}

/* Packets that may be sent now. */
uint32_t sn_window_room(const struct sn_qp_eng *q)
{
	uint32_t flight = sn_window_flight(q);

	return flight < q->req.win.size ? q->req.win.size - flight : 0;
}

static void grow_slowly(struct sn_window *w, uint32_t acked)
{
	uint32_t need = w->size;

	if (w->size + 1 == w->wall && need < w->hold)
		need = w->hold;
	w->credit += acked;
	if (w->credit < need)
		return;
	w->credit = 0;
	w->size += w->step;
	if (w->size > w->wall)
		w->step *= 2;
}

void sn_window_acked(struct sn_qp_eng *q, uint32_t acked)
{
	struct sn_window *w = &q->req.win;

	if (w->lost) {
		w->lost = false;
		w->size = w->after;
		return;
	}
	if (!w->full || w->size >= SN_WINDOW_PKTS)
		return;
	w->full = false;
	if (w->size < w->good)
		w->size = w->size + acked / 2 < w->good ? w->size + (acked + 1) / 2 : w->good;
	else
		grow_slowly(w, acked);
	if (w->size >= SN_WINDOW_PKTS)
		w->size = w->wall = SN_WINDOW_PKTS;
}

/* A wall that is met again is tried less often; one that is new may be no wall at all. */
static void build_wall(struct sn_window *w, uint32_t flight)
{
	bool fast = w->size < w->good; /* it grew fast, and so went too far */
	uint32_t keep;

	if (fast || w->size < w->wall || w->size > 2 * w->wall) {
		w->wall = flight;
		w->hold /= 2;
	} else if (w->hold < HOLD_MAX) {
		w->hold = w->hold < HOLD_MIN ? HOLD_MIN : 2 * w->hold;
	}
	keep = fast ? w->wall / 2 : w->wall - w->wall / 4;
	w->good = keep > GOOD_MIN ? keep : GOOD_MIN;
	if (w->wall <= w->good)
		w->wall = w->good + 1;
}

/* The cursor is still where it was when the loss was noticed. */
void sn_window_lost(struct sn_qp_eng *q)
{
	struct sn_window *w = &q->req.win;
	uint32_t flight = sn_window_flight(q);

	if (!w->lost && flight) /* without: a NAK of packets from before the last loss */
		build_wall(w, 2 * flight < w->size ? w->size / 2 : w->size);
	w->lost = true;
	w->after = w->good;
	w->size = w->step = 1;
	w->credit = 0;
}

/* The receiver has no room: nothing is lost, and a few packets are enough to ask again. */
void sn_window_not_ready(struct sn_qp_eng *q)
{
	struct sn_window *w = &q->req.win;

	if (w->size <= NOT_READY)
		return;
	w->lost = true;
	w->after = w->size;
	w->size = NOT_READY;
}

/* ---- round trip ---- */

void sn_rtt_begin(struct sn_eng *e, struct sn_qp_eng *q, uint32_t psn)
{
	if (q->req.rtt_at)
		return;
	q->req.rtt_at = e->now;
	q->req.rtt_psn = psn;
}

bool sn_rtt_fits(const struct sn_qp_eng *q, uint64_t ns)
{
	uint64_t rtt = q->req.srtt + 4 * q->req.rttvar;

	return ns <= (rtt > PATIENCE_LOSSY ? rtt : PATIENCE_LOSSY);
}

/* What is sent twice measures nothing. */
void sn_rtt_forget(struct sn_qp_eng *q)
{
	q->req.rtt_at = 0;
}

static void rtt_take(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_qp_req *r = &q->req;
	uint64_t rtt = e->now - r->rtt_at, off;

	if (!r->rtt_at || sn_psn_cmp(r->una, r->rtt_psn) <= 0)
		return;
	r->rtt_at = 0;
	if (!r->srtt) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
		return;
	}
	off = rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt;
	r->rttvar += off / 4 - r->rttvar / 4;
	r->srtt += rtt / 8 - r->srtt / 8;
}

/* ---- timers ---- */

static uint64_t timeout(const struct sn_qp_eng *q)
{
	uint8_t t = q->qp->ack_timeout & 31;

	return t ? 4096ull << t : 0;
}

static void probe_in(struct sn_eng *e, struct sn_qp_eng *q, uint64_t wait)
{
	q->req.probe_wait = wait;
	q->req.probe = wait < timeout(q) ? e->now + wait : 0;
}

void sn_timer_start(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint64_t wait = q->req.srtt + 4 * q->req.rttvar;

	q->req.timer = timeout(q) ? e->now + timeout(q) : 0;
	probe_in(e, q, wait > e->patience ? wait : e->patience);
}

void sn_timer_stop(struct sn_qp_eng *q)
{
	q->req.timer = q->req.probe = 0;
}

void sn_patience_start(struct sn_eng *e)
{
	e->patience = PATIENCE_FIRST;
}

/* The wire loses packets. */
void sn_patience_lossy(struct sn_eng *e)
{
	e->patience = PATIENCE_LOSSY;
}

/* A probe was answered, and showed no loss. */
void sn_patience_wrong(struct sn_eng *e)
{
	e->patience = 2 * e->patience < PATIENCE_MAX ? 2 * e->patience : PATIENCE_MAX;
}

/* Of packets acknowledged; una is after them. */
void sn_timer_progress(struct sn_eng *e, struct sn_qp_eng *q)
{
	rtt_take(e, q);
	sn_timer_stop(q);
	if (q->req.una != q->req.max_sent)
		sn_timer_start(e, q);
}

enum sn_due sn_timer_due(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (!q->req.timer)
		return SN_DUE_NONE;
	if (q->req.una == q->req.max_sent) {
		sn_timer_stop(q);
		return SN_DUE_NONE;
	}
	if (e->now >= q->req.timer)
		return SN_DUE_TIMEOUT;
	/* packets that were not looked at yet may be the answer */
	if (!q->req.probe || e->now < q->req.probe || e->behind)
		return SN_DUE_NONE;
	probe_in(e, q, 2 * q->req.probe_wait);
	return SN_DUE_PROBE;
}
