/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Which rules receive a frame: the search through copies (sniffers and rules that do not
 * trap), the rule that decides, rules of the same match, and default miss.
 */
#include "eth_rq_rig.h"

#define MASK_DMAC 8 /* offset in the outer headers */

static struct rig_rq rq[4];
static struct sn_rule rule[4];
static unsigned rules;

static void setup(void)
{
	rig_open();
	for (uint32_t i = 0; i < 4; i++) {
		rig_rq_init(&rq[i], 0x40 + i);
		rig_post(&rq[i], 4, 2048);
	}
	rules = 0;
}

static void teardown(void)
{
	cr_assert_eq(rig_outcomes(), rig_stats()->eth_rx_frames, "a frame has no outcome or two");
	for (uint32_t i = 0; i < 4; i++)
		rig_rq_fini(&rq[i]);
	fake_close();
}

TestSuite(eth_rules, .init = setup, .fini = teardown);

/* A rule for RQ number i. exact: it matches the first byte of the destination address. */
static struct sn_rule *add(uint64_t order, unsigned i, bool exact)
{
	struct sn_rule *r = &rule[rules++];

	*r = rig_rule(order, &rq[i].tir);
	if (exact) {
		r->mask[MASK_DMAC] = 0xff;
		r->match[MASK_DMAC] = 2;
	}
	return r;
}

static void insert(void)
{
	for (unsigned i = 0; i < rules; i++)
		sn_flow_insert(sn_dev, &rule[i]);
}

/* Receives a frame and returns the set of RQs that got it. */
static unsigned receivers(void)
{
	uint8_t cqe[64];
	unsigned set = 0;

	build_frame(&(struct build){ .payload = 50 });
	cr_assert_eq(rig_receive(), SN_ETH_TAKEN);
	for (unsigned i = 0; i < 4; i++)
		if (rig_cqe(&rq[i], cqe))
			set |= 1u << i;
	return set;
}

Test(eth_rules, lowest_order_wins)
{
	add(5, 0, false);
	add(4, 1, true);
	add(6, 2, false);
	insert();
	cr_assert_eq(receivers(), 1u << 1);
}

Test(eth_rules, rules_of_one_match_share_a_frame)
{
	add(4, 0, true);
	add(4, 1, false);
	add(4, 2, true);
	add(5, 3, true);
	insert();
	cr_assert_eq(receivers(), 1u << 0 | 1u << 2);
	cr_assert_eq(rule[1].packets, 0);
}

Test(eth_rules, sniffers_receive_copies)
{
	add(SN_ORDER_SNIFFER, 0, false)->sniffer = true;
	add(SN_ORDER_SNIFFER, 1, false)->sniffer = true;
	add(9, 2, false);
	add(10, 3, false);
	insert();
	cr_assert_eq(receivers(), 7);
	cr_assert_eq(rig_stats()->eth_delivered, 1, "a frame counts once");
}

/* A copy of one priority goes to the first match of that priority only. */
Test(eth_rules, rules_that_do_not_trap_pass_the_frame_on)
{
	add(SN_ORDER_BYPASS, 0, true)->sniffer = true;
	add(SN_ORDER_BYPASS, 1, false)->sniffer = true;
	add(SN_ORDER_BYPASS + 1, 2, false);
	insert();
	cr_assert_eq(receivers(), 1u << 0 | 1u << 2);
}

Test(eth_rules, a_drop_ends_the_search)
{
	add(3, 0, true)->drop = true;
	add(4, 1, false);
	insert();
	cr_assert_eq(receivers(), 0);
	cr_assert_eq(rig_stats()->eth_rule_dropped, 1);
}

Test(eth_rules, default_miss_skips_to_what_is_left)
{
	struct sn_rule *miss = add(SN_ORDER_BYPASS + 1, 0, true);

	miss->tir = NULL;
	miss->default_miss = true;
	add(SN_ORDER_BYPASS + 3, 1, false);
	add(SN_ORDER_MULTICAST, 2, false);
	add(SN_ORDER_LEFTOVERS, 3, false);
	insert();
	cr_assert_eq(receivers(), 1u << 3);
	cr_assert_eq(miss->packets, 1);
	sn_flow_remove(&rule[3]);
	cr_assert_eq(receivers(), 0);
	cr_assert_eq(rig_stats()->eth_no_rule, 1);
}
