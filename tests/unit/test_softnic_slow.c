/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's requester on a path with a slow receiver: a short queue that takes
 * 100 us per packet, either for requests or for responses. All messages must complete
 * with the right data, with few retransmissions, and the queue must be kept busy. Also
 * tests the rules of window, probes and retries. The clock is virtual.
 */
#include "slow_rig.h"

#define SERVICE	   100000u /* ns */
#define SECOND	   1000000000ull
#define NO_MINIMUM 0.0 /* no requirement on the goodput */

TestSuite(softnic_slow, .timeout = 120);

static const unsigned caps[] = { 4, 8, 16, 64, 256 };
static const unsigned mtus[] = { 1, 3, 5 }; /* codes of 256, 1024 and 4096 bytes */

struct sent {
	uint64_t to, back; /* packets to the responder, to the requester; ACKs not counted */
	uint64_t time;
	struct slow_run r;
	struct sn_stats stats;
};

static struct sent run(const struct slow_run *what, unsigned mtu, unsigned way, unsigned cap)
{
	struct sent s = { .r = *what };

	slow_open(mtu, 16);
	slow[way].cap = cap;
	slow[way].service = cap ? SERVICE : 0;
	s.time = slow_go(&s.r, 100 * SECOND);
	s.to = slow[0].packets - slow[0].acks;
	s.back = slow[1].packets - slow[1].acks;
	s.stats = sn_dev->stats;
	slow_close();
	return s;
}

/* The permitted ratio of packets sent to packets needed, for a queue of this length. */
static double limit(unsigned cap)
{
	return cap >= 16 ? 1.25 : cap >= 8 ? 1.6 : 2;
}

static unsigned judge(const struct sent *s, const struct sent *need, unsigned mtu, unsigned way,
		      unsigned cap, double most, double least)
{
	uint64_t sent = way ? s->back : s->to, needed = way ? need->back : need->to;
	double good = (double)needed * SERVICE / s->time;
	double ratio = least ? (double)sent / needed
			     : (double)(s->to + s->back) / (need->to + need->back);

	if (!s->r.failed && s->r.done == s->r.n && ratio <= most && good >= least)
		return 0;
	cr_log_error(
		"queue %u MTU %u: %u of %u messages, syndrome 0x%02x, sent %.3f times the packets "
		"needed, goodput %.2f, %lu retransmissions, %lu timeouts, %lu probes",
		cap, 128u << mtu, s->r.done, s->r.n, s->r.synd, ratio, good, s->stats.retransmits,
		s->stats.timeouts, s->stats.probes);
	return 1;
}

/*
 * full: messages of 64 KiB, otherwise of one packet. way: the side with the short queue,
 * responder (0) or requester (1). least: the required share of the queue's capacity.
 */
static void matrix(struct slow_run r, bool full, unsigned way, double least)
{
	unsigned bad = 0;

	for (r.nops = 0; r.ops[r.nops]; r.nops++)
		;
	for (unsigned m = 0; m < 3; m++) {
		struct sent need;

		r.len = full ? 65536 : (128u << mtus[m]) - 3;
		need = run(&r, mtus[m], way, 0);
		for (unsigned c = 0; c < 5; c++) {
			struct sent s = run(&r, mtus[m], way, caps[c]);

			bad += judge(&s, &need, mtus[m], way, caps[c], least ? limit(caps[c]) : 2,
				     least);
		}
	}
	cr_assert_eq(bad, 0);
}

/* Tests with messages of 64 KiB (MANY) and with messages of one packet (SINGLE). */
#define MANY(name, way, count, least, ...) \
	Test(softnic_slow, name##_of_many_packets) \
	{ \
		matrix((struct slow_run){ { __VA_ARGS__ }, .n = count }, true, way, least); \
	}
#define SINGLE(name, way, least, ...) \
	Test(softnic_slow, name##_of_one_packet) \
	{ \
		matrix((struct slow_run){ { __VA_ARGS__ }, .n = 500 }, false, way, least); \
	}
#define MIXED \
	SN_OP_WRITE, SN_OP_READ, SN_OP_SEND, SN_OP_FA, SN_OP_WRITE_IMM, SN_OP_CS, SN_OP_SEND_IMM

MANY(send, 0, 20, 0.7, SN_OP_SEND)
MANY(send_imm, 0, 20, 0.7, SN_OP_SEND_IMM)
MANY(write, 0, 20, 0.7, SN_OP_WRITE)
MANY(write_imm, 0, 20, 0.7, SN_OP_WRITE_IMM)
MANY(read, 0, 20, 0.7, SN_OP_READ)
MANY(mixed, 0, 60, 0.7, MIXED)
SINGLE(send, 0, 0.7, SN_OP_SEND)
SINGLE(send_imm, 0, 0.7, SN_OP_SEND_IMM)
SINGLE(write, 0, 0.7, SN_OP_WRITE)
SINGLE(write_imm, 0, 0.7, SN_OP_WRITE_IMM)
SINGLE(read, 0, 0.7, SN_OP_READ)
SINGLE(cas, 0, 0.7, SN_OP_CS)
SINGLE(fadd, 0, 0.7, SN_OP_FA)
SINGLE(mixed, 0, 0.7, MIXED)
/*
 * Responses arrive at the short queue. In this queue, ACKs take as long as other
 * packets, so mixed operations have no requirement on the goodput. For them, the packets
 * in both directions are counted.
 */
MANY(read_responses, 1, 60, 0.7, SN_OP_READ)
MANY(mixed_responses, 1, 60, NO_MINIMUM, MIXED)
SINGLE(read_responses, 1, 0.7, SN_OP_READ)
SINGLE(cas_responses, 1, 0.7, SN_OP_CS)
SINGLE(fadd_responses, 1, 0.7, SN_OP_FA)
SINGLE(mixed_responses, 1, NO_MINIMUM, MIXED)

/* Regression: with 32,000 packets, the retries once ran out. */
Test(softnic_slow, five_hundred_long_writes)
{
	struct slow_run what = { .ops = { SN_OP_WRITE }, .nops = 1, .n = 500, .len = 65536 };
	struct sent need = { .to = 32000 }, s = run(&what, 3, 0, 16);

	cr_assert_eq(judge(&s, &need, 3, 0, 16, 1.1, 0.9), 0);
}

/* ---- rules of window, probes and retries ---- */

static struct slow_run writes(unsigned n, uint32_t len)
{
	return (struct slow_run){ .ops = { SN_OP_WRITE }, .nops = 1, .n = n, .len = len };
}

static uint32_t window(void)
{
	return a.qp.eng->req.win.size;
}

/* Runs for `after` ns. From then on, no packet of the requester arrives. */
static void cut_off(struct slow_run *r, uint64_t after)
{
	slow_go(r, after);
	slow[0].cap = 1;
	slow[0].service = 1000 * SECOND;
	slow[0].queue_tail = &slow[0].queue;
	slow[0].queued = 1;
	slow[0].free_at = slow_time + 1000 * SECOND;
	slow_forget(slow[0].queue);
	slow[0].queue = NULL;
}

Test(softnic_slow, nothing_is_retransmitted_without_loss)
{
	struct slow_run r = writes(40, 65536);

	slow_open(3, 16);
	slow_go(&r, SECOND);
	cr_assert_eq(r.done, 40);
	cr_assert_eq(sn_dev->stats.retransmits, 0);
	cr_assert_eq(sn_dev->stats.probes, 0);
	cr_assert_eq(window(), SN_WINDOW_PKTS);
	slow_close();
}

/* Pauses of 25 ms without a loss must not cause a retransmission. */
Test(softnic_slow, pauses_without_loss_cause_no_retransmission)
{
	struct slow_run r = writes(0, 65536);

	slow_open(3, 16);
	for (unsigned i = 0; i < 10; i++) {
		r.n += 4;
		slow[0].service = 25000000;
		slow_go(&r, 24000000);
		slow[0].free_at = slow_time + 1000000;
		slow[0].service = 0;
		slow_go(&r, SECOND);
	}
	cr_assert_eq(r.done, 40);
	cr_assert_eq(sn_dev->stats.retransmits, 0, "%lu retransmissions",
		     sn_dev->stats.retransmits);
	slow_close();
}

/* Before the QP's own timeout of 67 ms, each probe retransmits one packet. */
Test(softnic_slow, probe_is_one_packet)
{
	struct slow_run r = writes(1000, 65536);
	uint64_t before;

	slow_open(3, 16);
	sn_dev->eng->probe_wait_min = 6000000;
	cut_off(&r, SECOND / 1000);
	before = slow[0].packets;
	slow_go(&r, SECOND / 20);
	cr_assert_geq(sn_dev->stats.probes, 2);
	cr_assert_leq(sn_dev->stats.probes, 6, "%lu probes", sn_dev->stats.probes);
	cr_assert_eq(sn_dev->stats.retransmits, sn_dev->stats.probes);
	cr_assert_leq(slow[0].packets - before, SN_WINDOW_PKTS + sn_dev->stats.probes);
	cr_assert_eq(sn_dev->stats.timeouts, 0);
	slow_close();
}

/*
 * With retry_cnt 7, the QP fails after 8 timeouts of 67.1 ms. Each timeout and each
 * probe sends one packet.
 */
Test(softnic_slow, dead_peer_fails_the_qp_after_retry_cnt)
{
	struct slow_run r = writes(1000, 65536);
	uint64_t start;

	slow_open(3, 16);
	cut_off(&r, SECOND / 1000);
	start = slow_time;
	slow_go(&r, 10 * SECOND);
	cr_assert(r.failed);
	cr_assert_eq(r.synd, SN_SYND_RETRY);
	cr_assert_eq(sn_dev->stats.timeouts, 8);
	cr_assert_geq(slow_time - start, 8 * 67000000ull);
	cr_assert_leq(slow_time - start, 9 * 67200000ull);
	cr_assert_leq(sn_dev->stats.retransmits, 7 + sn_dev->stats.probes);
	slow_close();
}

/*
 * A retransmitted packet gives no RTT sample (Karn's algorithm): the estimate must
 * stay near 10 us.
 */
Test(softnic_slow, retransmitted_packet_gives_no_rtt_sample)
{
	struct slow_run r = writes(30, 1000);

	slow_open(3, 16);
	slow_go(&r, SECOND);
	r.n++; /* a single message: only a probe can find its loss */
	slow[0].drop = 1;
	slow_go(&r, SECOND);
	cr_assert_eq(r.done, 31);
	cr_assert_eq(sn_dev->stats.probes, 1);
	cr_assert_leq(a.qp.eng->req.srtt, 100000, "smoothed RTT is %lu ns", a.qp.eng->req.srtt);
	slow_close();
}

/*
 * All packets of a message are lost. The response to the probe shows this, and they
 * are retransmitted at once.
 */
Test(softnic_slow, lost_message_is_found_by_one_probe)
{
	struct slow_run r = writes(30, 65536);

	slow_open(3, 16);
	slow_go(&r, SECOND);
	r.n++;
	slow[0].lose = SN_WINDOW_PKTS;
	slow_go(&r, SECOND);
	cr_assert_eq(r.done, 31);
	cr_assert_eq(sn_dev->stats.timeouts, 0);
	cr_assert_eq(sn_dev->stats.probes, 1, "%lu probes", sn_dev->stats.probes);
	slow_close();
}

/* One message at a time, each lost once. The response to the probe must show the loss at once. */
Test(softnic_slow, lost_packets_of_a_ping_pong_are_found_quickly)
{
	struct slow_run r = writes(20, 8);
	uint64_t start;

	slow_open(3, 16);
	slow_go(&r, SECOND);
	start = slow_time;
	for (unsigned i = 0; i < 20; i++) {
		r.n++;
		slow[0].drop = 1;
		slow_go(&r, SECOND);
	}
	cr_assert_eq(r.done, 40);
	cr_assert_eq(sn_dev->stats.timeouts, 0);
	cr_assert_eq(sn_dev->stats.probes, 20, "%lu probes", sn_dev->stats.probes);
	cr_assert_leq(slow_time - start, SECOND / 10, "took %lu ns", slow_time - start);
	slow_close();
}

/*
 * The receiver first has a queue of 4 packets and takes 100 us per packet. Then its
 * queue is unlimited, and it takes 1 us per packet.
 */
Test(softnic_slow, window_recovers_after_congestion)
{
	struct slow_run r = writes(20, 65536);
	uint64_t before;

	slow_open(3, 16);
	slow[0].cap = 4;
	slow[0].service = SERVICE;
	slow_go(&r, 10 * SECOND);
	cr_assert_eq(r.done, 20);
	cr_assert_leq(window(), 5, "window of %u", window());
	before = sn_dev->stats.retransmits;
	slow[0].cap = 0;
	slow[0].service = 1000;
	r.n += 10; /* 640 packets */
	slow_go(&r, 10 * SECOND);
	cr_assert_eq(r.done, 30);
	cr_assert_eq(window(), SN_WINDOW_PKTS, "window of %u", window());
	cr_assert_eq(sn_dev->stats.retransmits, before);
	slow_close();
}

/* A peer whose thread often waits 20 ms for a core: probes must become less frequent. */
Test(softnic_slow, pausing_peer_gets_few_probes)
{
	struct slow_run r = writes(0, 65536);

	slow_open(3, 16);
	sn_dev->eng->probe_wait_min = 6000000;
	for (unsigned i = 0; i < 40; i++) {
		r.n += 4;
		slow[0].service = 20000000;
		slow_go(&r, 15000000);
		slow[0].free_at = slow_time + 5000000;
		slow[0].service = 0;
		slow_go(&r, SECOND);
	}
	cr_assert_eq(r.done, 160);
	cr_assert_leq(sn_dev->stats.retransmits, 6, "%lu retransmissions",
		      sn_dev->stats.retransmits);
	slow_close();
}
