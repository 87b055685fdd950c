/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Loopback within a transport domain: a TIR receives what an SQ of its own domain sends only
 * if its bit for unicast or multicast permits it. Frames of other domains, of SQs that verbs
 * created, and of other hosts are not affected.
 */
#include "eth_rq_rig.h"

#define OWN 0x10u

static struct rig_rq rq;
static struct sn_td td = { .tdn = OWN };
static struct sn_rule rule;

static void setup(void)
{
	rig_open();
	rig_rq_init(&rq, 0x40);
	rq.tir.td = &td;
	rule = rig_rule(1, &rq.tir);
	sn_flow_insert(sn_dev, &rule);
	rig_post(&rq, 8, 2048);
}

static void teardown(void)
{
	rig_rq_fini(&rq);
	fake_close();
}

TestSuite(eth_loopback, .init = setup, .fini = teardown);

static bool arrives(uint32_t tdn, bool local, bool multicast)
{
	uint64_t before = rig_stats()->eth_delivered;

	build_frame(&(struct build){ .payload = 64 });
	rig_frame.data[0] |= multicast;
	rig_frame.local = local;
	rig_frame.tdn = tdn;
	cr_assert_eq(rig_receive(), SN_ETH_TAKEN);
	return rig_stats()->eth_delivered > before;
}

Test(eth_loopback, own_frames_need_permission)
{
	cr_expect(!arrives(OWN, true, false));
	cr_expect(!arrives(OWN, true, true));
	cr_expect_eq(rig_stats()->eth_rule_dropped, 2);
}

Test(eth_loopback, each_bit_permits_one_kind)
{
	rq.tir.self_lb_block = SN_LOOPBACK_UNICAST;
	cr_expect(arrives(OWN, true, false));
	cr_expect(!arrives(OWN, true, true));
	rq.tir.self_lb_block = SN_LOOPBACK_MULTICAST;
	cr_expect(!arrives(OWN, true, false));
	cr_expect(arrives(OWN, true, true));
}

Test(eth_loopback, other_frames_arrive)
{
	cr_expect(arrives(OWN + 1, true, false), "another transport domain");
	cr_expect(arrives(0, true, false), "an SQ of verbs");
	cr_expect(arrives(OWN, false, true), "another host with the same number");
	rq.tir.td = NULL;
	cr_expect(arrives(OWN, true, false), "a TIR of verbs");
}

/* A frame that no TIR of this process may receive is not copied for it. */
Test(eth_loopback, blocked_frames_are_not_wanted)
{
	build_frame(&(struct build){ .payload = 64 });
	rig_frame.tdn = OWN;
	cr_expect(!sn_eth_wants(sn_dev->eng, &rig_frame));
	rig_frame.tdn = OWN + 1;
	cr_expect(sn_eth_wants(sn_dev->eng, &rig_frame));
	rig_frame.tdn = OWN;
	rq.tir.self_lb_block = SN_LOOPBACK_UNICAST;
	cr_expect(sn_eth_wants(sn_dev->eng, &rig_frame));
}
