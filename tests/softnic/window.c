/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * How many packets of a reliable connection may be unacknowledged, and how long to
 * wait before a missing acknowledgement means a loss. This file owns the window,
 * the round-trip time and the timers; it sends nothing.
 *
 * Window. After a loss the lost packet and all later ones are sent again (go-back-N),
 * so a window that overruns the receiver's queue costs a window of packets each
 * time. The rules are TCP's (RFC 5681), with a memory of the size that caused a loss:
 * - The window begins at WINDOW_FIRST and grows by half of the packets acknowledged,
 *   up to `good`; above `good`, by one packet per window acknowledged. It grows only
 *   after it delayed a packet. Acknowledgements pace this growth, so the first
 *   packets that overrun a queue are followed by one that fits, and the receiver
 *   reports the loss by a NAK. With a large first window its whole tail would be
 *   lost, and no NAK would be sent.
 * - `wall` is the size at which packets were lost. The window stays one packet below
 *   it until `wall_acks` packets are acknowledged. If packets are then lost at the
 *   wall again, `wall_acks` doubles. Otherwise the window grows by 1, 2, 4, ...
 *   packets, up to SN_WINDOW_PKTS.
 * - A loss reduces the window to one packet. The receiver takes this packet after
 *   those that it discards, so its acknowledgement shows that the receiver's queue is
 *   empty. The window is then set to `good`: 3/4 of its size at the loss, or half if
 *   it had grown fast to that size.
 * - An RNR NAK reduces a larger window to NOT_READY. The next acknowledgement restores
 *   its size.
 *
 * Time. The timeout of the queue pair, 4.096 us * 2^ack_timeout (IB spec
 * 9.7.6.1.3), counts against retry_cnt, but not before a peer that peer.c knows has handled
 * the packets. Before the timeout, probes are sent: each
 * retransmits the oldest packet and does not count. The interval between probes
 * doubles. The first probe is sent after SRTT + 4 * RTTVAR (RFC 6298), measured on
 * packets that were sent once (Karn's rule), but not before e->probe_wait_min. This
 * limit is PROBE_WAIT_FIRST until a packet is known to be lost: the threads of this NIC
 * and of the peer's NIC may wait milliseconds for a core or for the GPU driver, and
 * on a wire without loss no packet should be sent twice. The limit becomes
 * PROBE_WAIT_LOSSY when a loss is certain. It doubles, up to PROBE_WAIT_MAX, with each
 * probe whose answer shows no loss.
 */
#include "eng.h"

#define WINDOW_FIRST	 4u
#define GOOD_MIN	 4u
#define NOT_READY	 4u
#define WALL_ACKS_MIN	 64u
#define WALL_ACKS_MAX	 256u
#define PROBE_WAIT_FIRST 32000000ull /* ns */
#define PROBE_WAIT_LOSSY 500000ull   /* ns */
/* ns; less than the usual timeout of 67 ms, so that one probe is sent before the timeout */
#define PROBE_WAIT_MAX 48000000ull

/* ---- window ---- */

void sn_window_open(struct sn_qp_eng *q)
{
	q->req.win = (struct sn_window){ .size = WINDOW_FIRST,
					 .good = SN_WINDOW_PKTS,
					 .wall = SN_WINDOW_PKTS,
					 .step = 1,
					 .wall_acks = 1 };
}

uint32_t sn_window_flight(const struct sn_qp_eng *q)
{
	return (sn_req_cur_psn(q) - q->req.una) & SN_PSN_MASK;
}

/* Returns the number of packets that may be sent now. */
uint32_t sn_window_room(const struct sn_qp_eng *q)
{
	uint32_t flight = sn_window_flight(q);

	return flight < q->req.win.size ? q->req.win.size - flight : 0;
}

static void grow_slowly(struct sn_window *w, uint32_t acked)
{
	uint32_t need = w->size;

	if (w->size + 1 == w->wall && need < w->wall_acks)
		need = w->wall_acks;
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

/*
 * Sets wall (the window size at which packets were lost) and good (the size up to which the window
 * grows fast) after a loss. If the window had reached the old wall (at most twice its size),
 * wall_acks grows, so that the window reaches the wall less often. A loss at another size may be
 * random: this size becomes the wall, and wall_acks is halved.
 */
static void build_wall(struct sn_window *w, uint32_t flight)
{
	bool fast = w->size < w->good; /* the window grew fast and overshot */
	uint32_t keep;

	if (fast || w->size < w->wall || w->size > 2 * w->wall) {
		w->wall = flight;
		w->wall_acks /= 2;
	} else if (w->wall_acks < WALL_ACKS_MAX) {
		w->wall_acks = w->wall_acks < WALL_ACKS_MIN ? WALL_ACKS_MIN : 2 * w->wall_acks;
	}
	keep = fast ? w->wall / 2 : w->wall - w->wall / 4;
	w->good = keep > GOOD_MIN ? keep : GOOD_MIN;
	if (w->wall <= w->good)
		w->wall = w->good + 1;
}

/* To be called before sn_req_rewind(), because the cursor shows how many packets are in flight. */
void sn_window_lost(struct sn_qp_eng *q)
{
	struct sn_window *w = &q->req.win;
	uint32_t flight = sn_window_flight(q);

	if (!w->lost && flight) /* otherwise the NAK reports packets sent before the last loss */
		build_wall(w, 2 * flight < w->size ? w->size / 2 : w->size);
	w->lost = true;
	w->after = w->good;
	w->size = w->step = 1;
	w->credit = 0;
}

/* The receiver has no receive WQE (RNR NAK). This is no loss, and a few packets are enough to try
 * again. */
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

	return ns <= (rtt > PROBE_WAIT_LOSSY ? rtt : PROBE_WAIT_LOSSY);
}

/* Ends the measurement, because a retransmitted packet gives no valid one. */
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

	q->req.since = e->now;
	q->req.timer = timeout(q) ? sn_awake(e) + timeout(q) : 0;
	probe_in(e, q, wait > e->probe_wait_min ? wait : e->probe_wait_min);
}

void sn_timer_stop(struct sn_qp_eng *q)
{
	q->req.timer = q->req.probe = 0;
}

void sn_probe_wait_init(struct sn_eng *e)
{
	e->probe_wait_min = PROBE_WAIT_FIRST;
}

/* A packet was certainly lost. */
void sn_probe_wait_lossy(struct sn_eng *e)
{
	e->probe_wait_min = PROBE_WAIT_LOSSY;
}

/* The answer to a probe showed that no packet was lost. */
void sn_probe_wait_early(struct sn_eng *e)
{
	e->probe_wait_min = 2 * e->probe_wait_min < PROBE_WAIT_MAX ? 2 * e->probe_wait_min
								   : PROBE_WAIT_MAX;
}

/* To be called after una has advanced over acknowledged packets. */
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
	if (e->more) /* packets not yet read from the socket may contain the answer */
		return SN_DUE_NONE;
	if (sn_awake(e) >= q->req.timer)
		return SN_DUE_TIMEOUT;
	if (!q->req.probe || e->now < q->req.probe)
		return SN_DUE_NONE;
	probe_in(e, q, 2 * q->req.probe_wait);
	return SN_DUE_PROBE;
}
