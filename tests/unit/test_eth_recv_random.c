/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Random rules, RQs and frames against a model of reception that shares no code with the NIC: it
 * computes for each frame the RQs that get a CQE, its length, tag and VLAN, and each counter.
 */
#include "eth_rq_rig.h"

#define RQS		   4u
#define RULES		   12u
#define FRAMES		   30000
#define DEFAULT_MISS_ORDER 2u

static struct rig_rq rq[RQS];
static struct sn_rule rule[RULES];
static unsigned age[RULES], births;

/* What the model knows of an RQ: the WQEs that were posted and not used, by length. */
static struct {
	uint32_t len[FAKE_DEPTH], head, tail;
	uint64_t out_of_buffer, not_ready, too_long;
} state[RQS];
static struct sn_stats expected;

static void new_rule(unsigned i)
{
	static const uint8_t flags_of[] = { 0, 0, 0, 1, 2 }; /* 1: drop, 2: no TIR */
	uint8_t what = flags_of[rand() % 5];
	struct sn_rule *r = &rule[i];

	memset(r, 0, sizeof(*r));
	r->order = rand() % 5 ? (uint64_t)(rand() % 5) : SN_ORDER_LEFTOVERS;
	r->sniffer = r->order == 0;
	r->default_miss = r->order == DEFAULT_MISS_ORDER;
	r->drop = what == 1 && !r->sniffer && !r->default_miss;
	r->tir = what == 2 || r->default_miss ? NULL : &rq[(unsigned)rand() % RQS].tir;
	r->set_tag = rand() % 2;
	r->tag = (uint32_t)rand() & 0xffffff;
	if (rand() % 3) { /* the destination port of UDP */
		r->mask[0x1f] = rand() % 2 ? 3 : 1;
		r->match[0x1f] = (uint8_t)rand() & r->mask[0x1f];
	}
	if (rand() % 4 == 0) { /* has a C-tag */
		r->mask[0x12] = 0x80;
		r->match[0x12] = (uint8_t)rand() & 0x80;
	}
	age[i] = births++;
	sn_flow_insert(sn_dev, r);
}

static void setup(void)
{
	rig_open();
	for (unsigned i = 0; i < RQS; i++) {
		rig_rq_init(&rq[i], 0x40 + i);
		rq[i].eth.keep_vlan = i & 1;
		rq[i].eth.scatter_fcs = i & 2;
	}
	for (unsigned i = 0; i < RULES; i++)
		new_rule(i);
}

static void teardown(void)
{
	for (unsigned i = 0; i < RQS; i++)
		rig_rq_fini(&rq[i]);
	fake_close();
}

TestSuite(eth_recv_random, .init = setup, .fini = teardown);

/* ---- the model ---- */

static bool model_match(const struct sn_rule *r, uint16_t dport, bool tagged)
{
	uint8_t m = r->mask[0x1f];

	return (dport & m) == (r->match[0x1f] & m) &&
	       (!r->mask[0x12] || !!r->match[0x12] == tagged);
}

static bool model_same(const struct sn_rule *a, const struct sn_rule *b)
{
	return a->order == b->order && a->mask[0x1f] == b->mask[0x1f] &&
	       a->mask[0x12] == b->mask[0x12] && a->match[0x1f] == b->match[0x1f] &&
	       a->match[0x12] == b->match[0x12];
}

/* Stores which rules receive the frame. Each order has one match: its oldest rule that matches. */
static void model_rules(uint16_t dport, bool tagged, bool *gets)
{
	memset(gets, 0, RULES);
	for (uint64_t order = 0; order <= SN_ORDER_LEFTOVERS; order++) {
		int first = -1;

		for (unsigned i = 0; i < RULES; i++)
			if (rule[i].order == order && model_match(&rule[i], dport, tagged) &&
			    (first < 0 || age[i] < age[first]))
				first = (int)i;
		if (first < 0)
			continue;
		for (unsigned i = 0; i < RULES; i++)
			gets[i] |= model_same(&rule[i], &rule[first]);
		if (order == DEFAULT_MISS_ORDER)
			order = SN_ORDER_LEFTOVERS - 1;
		else if (order)
			return;
	}
}

/* Values as in enum outcome of eth_recv.c. */
enum { NO_RULE, DROPPED, NOT_READY, TOO_LONG, NO_BUFFER, FAULT, DELIVERED };

/* Checks the CQE of RQ i and consumes the model's WQE. Returns the outcome. */
static int model_deliver(unsigned i, const struct sn_rule *r, uint16_t tci, bool tagged)
{
	uint32_t len = rig_frame.len, room;
	bool strip = tagged && !rq[i].eth.keep_vlan;
	uint8_t cqe[64];

	if (rq[i].q.qp.state != SN_QPS_RTS) {
		state[i].not_ready++;
		return NOT_READY;
	}
	if (state[i].head == state[i].tail) {
		state[i].out_of_buffer++;
		return NO_BUFFER;
	}
	room = state[i].len[state[i].head++ % FAKE_DEPTH];
	len += (rq[i].eth.scatter_fcs ? 4 : 0) - (strip ? 4 : 0);
	cr_assert(rig_cqe(&rq[i], cqe), "RQ %u has no CQE", i);
	if (len > room) {
		cr_assert_eq(cqe[63] >> 4, SN_CQE_RESP_ERR);
		state[i].too_long++;
		return TOO_LONG;
	}
	cr_assert_eq(cqe[63] >> 4, SN_CQE_RESP_SEND);
	cr_assert_eq(sn_get32(cqe + 44), len);
	cr_assert_eq(sn_get32(cqe + 56), r->set_tag ? r->tag : 0);
	cr_assert_eq(cqe[0x1e] << 8 | cqe[0x1f], strip ? tci : 0);
	return DELIVERED;
}

/* The first of these rules by order and age: CQEs of one RQ come in this order. */
static unsigned next_of(const bool *set)
{
	unsigned best = RULES;

	for (unsigned i = 0; i < RULES; i++)
		if (set[i] && (best == RULES || rule[i].order < rule[best].order ||
			       (rule[i].order == rule[best].order && age[i] < age[best])))
			best = i;
	return best;
}

static void model_frame(uint16_t dport, uint16_t tci, bool tagged)
{
	bool gets[RULES];
	int best = NO_RULE, o;
	unsigned i;

	model_rules(dport, tagged, gets);
	while ((i = next_of(gets)) < RULES) {
		gets[i] = false;
		if (rule[i].drop)
			o = DROPPED;
		else if (!rule[i].tir)
			o = NO_RULE;
		else
			o = model_deliver(rule[i].tir->rq->qpn - 0x40, &rule[i], tci, tagged);
		best = o > best ? o : best;
	}
	expected.eth_no_rule += best == NO_RULE;
	expected.eth_rule_dropped += best == DROPPED;
	expected.eth_not_ready += best == NOT_READY;
	expected.eth_too_long += best == TOO_LONG;
	expected.eth_out_of_buffer += best == NO_BUFFER;
	expected.eth_delivered += best == DELIVERED;
}

/* ---- the test ---- */

static void change_something(void)
{
	unsigned i = (unsigned)rand() % RQS, k = (unsigned)rand() % RULES;

	if (rand() % 200 == 0) {
		sn_flow_remove(&rule[k]);
		new_rule(k);
	}
	if (rand() % 100 == 0) { /* neither discards WQEs: no reset, no flush */
		rq[i].q.qp.state = rq[i].q.qp.state == SN_QPS_RTS ? SN_QPS_SQD : SN_QPS_RTS;
	}
	for (int n = rand() % 4; n > 0 && state[i].tail - state[i].head < FAKE_DEPTH; n--) {
		uint32_t len = rand() % 4 ? 400 : 100;

		state[i].len[state[i].tail++ % FAKE_DEPTH] = len;
		rig_post(&rq[i], 1, len);
	}
}

static void compare(int step)
{
	const struct sn_stats *s = rig_stats();

	cr_assert_eq(s->eth_rx_frames, (uint64_t)step + 1);
	cr_assert_eq(rig_outcomes(), s->eth_rx_frames);
	cr_assert(s->eth_no_rule == expected.eth_no_rule &&
			  s->eth_rule_dropped == expected.eth_rule_dropped &&
			  s->eth_not_ready == expected.eth_not_ready &&
			  s->eth_too_long == expected.eth_too_long &&
			  s->eth_out_of_buffer == expected.eth_out_of_buffer &&
			  s->eth_delivered == expected.eth_delivered,
		  "step %d", step);
	for (unsigned i = 0; i < RQS; i++)
		cr_assert(rq[i].eth.stats.out_of_buffer == state[i].out_of_buffer &&
			  rq[i].eth.stats.not_ready == state[i].not_ready &&
			  rq[i].eth.stats.too_long == state[i].too_long);
}

Test(eth_recv_random, agrees_with_the_model)
{
	uint8_t cqe[64];

	for (int step = 0; step < FRAMES; step++) {
		bool tagged = rand() % 2;
		uint16_t dport = (uint16_t)rand(), tci = (uint16_t)rand();
		struct build b = { .dport = dport, .payload = (uint32_t)rand() % 300 };

		if (tagged) {
			b.tag_type[0] = 0x8100;
			b.tci[0] = tci;
		}
		change_something();
		build_frame(&b);
		cr_assert_eq(rig_receive(), SN_ETH_TAKEN);
		model_frame(dport, tci, tagged);
		for (unsigned i = 0; i < RQS; i++)
			cr_assert(!rig_cqe(&rq[i], cqe), "step %d: RQ %u has a CQE", step, i);
		compare(step);
	}
	cr_assert(expected.eth_delivered > 5000 && expected.eth_no_rule && expected.eth_not_ready &&
			  expected.eth_out_of_buffer && expected.eth_rule_dropped &&
			  expected.eth_too_long,
		  "the steps do not cover all outcomes");
}
