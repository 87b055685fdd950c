/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Frames from one raw packet QP to others of the same process: which QPs receive them by
 * the rules. Priorities of both kinds of rules, actions, counters, and the special types of
 * rules.
 */
#include "flow_rig.h"

TestSuite(verbs_flow_frames, .init = rig_open, .fini = rig_close);

/* ---- which rule ---- */
Test(verbs_flow_frames, priorities)
{
	build(4, IPPROTO_UDP, false);
	EXPECT(0);
	rule_for_dmac(7, 0, 0);
	EXPECT(1 << 0);
	rule_for_dmac(3, 0, 1);
	EXPECT(1 << 1);
	rule_start(IBV_FLOW_ATTR_NORMAL, 5, 0);
	rule_add(2);
	EXPECT(1 << 1);
	cr_assert_eq(ibv_destroy_flow(flows[1]), 0);
	flows[1] = flows[--nflows];
	EXPECT(1 << 2);
	frame[5]++;
	EXPECT(1 << 2);
}

Test(verbs_flow_frames, several_destinations)
{
	build(4, IPPROTO_UDP, false);
	rule_for_dmac(4, 0, 0);
	rule_for_dmac(4, 0, 1);
	EXPECT(1 << 0 | 1 << 1);
	no_rules();
	EXPECT(0);
}

Test(verbs_flow_frames, multicast)
{
	static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };
	uint32_t i;

	build(4, IPPROTO_UDP, false);
	memcpy(frame, group, 6);
	for (i = 0; i < 2; i++) {
		/* of different priorities, but rules for multicast only have one of their own */
		rule_start(IBV_FLOW_ATTR_NORMAL, (uint16_t)i, 0);
		rule_dmac(group);
		rule_add(i);
	}
	EXPECT(1 << 0 | 1 << 1);
	rule_start(IBV_FLOW_ATTR_NORMAL, 15, 0);
	rule_add(2);
	EXPECT(1 << 2); /* a rule that is not for multicast only is searched before */
}

Test(verbs_flow_frames, what_is_left)
{
	build(4, IPPROTO_UDP, false);
	rule_start(IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0);
	rule_add(0);
	rule_start(IBV_FLOW_ATTR_MC_DEFAULT, 0, 0);
	rule_add(1);
	EXPECT(1 << 0);
	frame[0] |= 1;
	EXPECT(1 << 0 | 1 << 1);
	frame[0] &= 0xfe;
	rule_for_dmac(15, 0, 2);
	EXPECT(1 << 2);
	frame[5]++;
	EXPECT(1 << 0);
	cr_assert_eq(ibv_destroy_flow(flows[0]), 0);
	flows[0] = flows[--nflows];
	EXPECT(0);
	frame[0] |= 1;
	EXPECT(1 << 1);
}

Test(verbs_flow_frames, copies)
{
	build(4, IPPROTO_UDP, false);
	rule_for_dmac(2, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, 1);
	EXPECT(1 << 1);
	rule_for_dmac(2, 0, 2);
	EXPECT(1 << 1 | 1 << 2);
	frame[5]++;
	EXPECT(0);
}

/* Polls for n completions of QP 0, and for a short time more. */
static uint32_t sniffed(uint32_t n)
{
	struct timespec nap = { 0, 300000 };
	uint32_t got = 0, tries = 0;
	struct ibv_wc wc;

	for (; tries < 3 || (got < n && tries < 20000); tries++) {
		while (ibv_poll_cq(cq[0], 1, &wc)) {
			cr_assert_eq(wc.byte_len, len);
			cr_assert_arr_eq(v.mem + SLOT * (1 + wc.wr_id), frame, len);
			got++;
		}
		nanosleep(&nap, NULL);
	}
	return got;
}

/* A sniffer gets a copy of the sent frame, and one when it arrives. */
Test(verbs_flow_frames, sniffer)
{
	struct ibv_wc wc;

	build(4, IPPROTO_UDP, false);
	rule_for_dmac(2, 0, 1);
	rule_start(IBV_FLOW_ATTR_SNIFFER, 0, 0);
	rule_add(0);
	raw_send(&v, sender, 0, len);
	cr_assert_eq(raw_wait(send_cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(sniffed(2), 2);
	cr_assert_eq(ibv_poll_cq(cq[1], 1, &wc), 1);
	rule_start(IBV_FLOW_ATTR_NORMAL, 0, IBV_FLOW_ATTR_FLAGS_EGRESS);
	rule_spec(IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop));
	rule_add(1);
	raw_send(&v, sender, 0, len);
	cr_assert_eq(raw_wait(send_cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(sniffed(1), 1, "the frame is dropped after the copy");
	no_rules();
	raw_send(&v, sender, 0, len);
	cr_assert_eq(raw_wait(send_cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(sniffed(0), 0);
}

/* ---- actions ---- */
Test(verbs_flow_frames, drop)
{
	build(4, IPPROTO_UDP, false);
	rule_for_dmac(4, 0, 0);
	rule_start(IBV_FLOW_ATTR_NORMAL, 3, 0);
	rule_dmac(dmac);
	rule_spec(IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop));
	rule_add(0);
	EXPECT(0);
	frame[5]++;
	EXPECT(0);
	frame[5]--;
	cr_assert_eq(ibv_destroy_flow(flows[--nflows]), 0);
	EXPECT(1);
}

Test(verbs_flow_frames, drop_of_sent_frames)
{
	build(4, IPPROTO_UDP, false);
	rule_for_dmac(4, 0, 0);
	rule_start(IBV_FLOW_ATTR_NORMAL, 1, IBV_FLOW_ATTR_FLAGS_EGRESS);
	rule_dmac(dmac);
	rule_spec(IBV_FLOW_SPEC_ACTION_DROP, sizeof(struct ibv_flow_spec_action_drop));
	rule_add(1);
	EXPECT(0);
	rule_start(IBV_FLOW_ATTR_NORMAL, 0, IBV_FLOW_ATTR_FLAGS_EGRESS);
	rule_dmac(dmac);
	rule_add(1); /* permits the frame, with a higher priority */
	EXPECT(1 << 0);
}

/* ---- counters ---- */
Test(verbs_flow_frames, counters)
{
	struct ibv_counters *c = ibv_create_counters(v.ctx, &(struct ibv_counters_init_attr){ 0 });
	struct ibv_counter_attach_attr packets = { IBV_COUNTER_PACKETS, 2, 0 };
	struct ibv_counter_attach_attr bytes = { IBV_COUNTER_BYTES, 0, 0 };
	static const uint8_t mac[2][6] = { { 2, 0, 0, 0, 0, 0xaa }, { 2, 0, 0, 0, 0, 0xab } };
	struct ibv_flow_spec_counter_action s = { .counters = c };
	uint64_t values[3];
	unsigned i;

	cr_assert(c);
	cr_assert_eq(ibv_attach_counters_point_flow(c, &packets, NULL), 0);
	cr_assert_eq(ibv_attach_counters_point_flow(c, &packets, NULL), 0);
	cr_assert_eq(ibv_attach_counters_point_flow(c, &bytes, NULL), 0);
	build(4, IPPROTO_UDP, false);
	for (i = 0; i < 2; i++) { /* both rules count together */
		rule_start(IBV_FLOW_ATTR_NORMAL, (uint16_t)i, 0);
		rule_dmac(mac[i]);
		s.type = IBV_FLOW_SPEC_ACTION_COUNT;
		s.size = sizeof(s);
		memcpy(rule_spec(s.type, s.size), &s, sizeof(s)); /* it may be misaligned */
		rule_add(0);
	}
	EXPECT(1);
	EXPECT(1);
	frame[5]++;
	EXPECT(1);
	frame[5]++;
	EXPECT(0);
	cr_assert_eq(ibv_read_counters(c, values, 3, 0), 0);
	cr_assert_eq(values[2], 2 * 3, "two counters at one index are added");
	cr_assert_eq(values[0], 3 * len);
	cr_assert_eq(values[1], 0);
	cr_assert_eq(ibv_destroy_counters(c), EBUSY);
	no_rules();
	cr_assert_eq(ibv_destroy_counters(c), 0);
}

/* ---- rules of the mlx5 driver beside those of verbs ---- */
struct match {
	size_t len;
	uint8_t bytes[64];
};

/* A matcher of destination addresses. flags: instead of a table type, unless 0 */
static struct mlx5dv_flow_matcher *dv_matcher_of(uint16_t priority,
						 enum mlx5dv_flow_table_type table, uint32_t flags)
{
	struct match mask = { .len = 64 };
	struct mlx5dv_flow_matcher_attr attr = { .match_mask = (void *)&mask,
						 .match_criteria_enable = 1,
						 .priority = priority,
						 .flags = flags,
						 .ft_type = table };
	struct mlx5dv_flow_matcher *m;

	if (!flags)
		attr.comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE;
	memset(mask.bytes + 8, 0xff, 6);
	m = mlx5dv_create_flow_matcher(v.ctx, &attr);
	cr_assert(m);
	return m;
}

static struct mlx5dv_flow_matcher *dv_matcher(uint16_t priority, enum mlx5dv_flow_table_type table)
{
	return dv_matcher_of(priority, table, 0);
}

/* A rule for the destination address of the frame. */
static struct ibv_flow *dv_rule(struct mlx5dv_flow_matcher *m, struct mlx5dv_flow_action_attr *act,
				size_t n)
{
	struct match value = { .len = 64 };
	struct ibv_flow *f;

	memcpy(value.bytes + 8, frame, 6);
	f = mlx5dv_create_flow(m, (void *)&value, n, act);
	cr_assert(f, "rule: %s", strerror(errno));
	return flows[nflows++] = f;
}

Test(verbs_flow_frames, driver_rules_and_verbs_rules_share_priorities)
{
	struct mlx5dv_flow_matcher *m = dv_matcher(5, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
	struct mlx5dv_flow_action_attr act = { .type = MLX5DV_FLOW_ACTION_DEST_IBV_QP,
					       .qp = qp[0] };

	build(4, IPPROTO_UDP, false);
	dv_rule(m, &act, 1);
	EXPECT(1 << 0);
	rule_for_dmac(6, 0, 1);
	EXPECT(1 << 0);
	rule_for_dmac(5, 0, 2); /* the same priority, mask and value */
	EXPECT(1 << 0 | 1 << 2);
	rule_for_dmac(4, 0, 1);
	EXPECT(1 << 1);
	no_rules();
	cr_assert_eq(mlx5dv_destroy_flow_matcher(m), 0);
}

Test(verbs_flow_frames, driver_drop_miss_and_egress)
{
	struct mlx5dv_flow_matcher *rx = dv_matcher(0, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
	struct mlx5dv_flow_matcher *tx = dv_matcher(0, MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
	struct mlx5dv_flow_matcher *by_flags = dv_matcher_of(0, MLX5DV_FLOW_TABLE_TYPE_NIC_RX,
							     IBV_FLOW_ATTR_FLAGS_EGRESS);
	struct mlx5dv_flow_action_attr drop = { .type = MLX5DV_FLOW_ACTION_DROP },
				       miss = { .type = MLX5DV_FLOW_ACTION_DEFAULT_MISS };

	build(4, IPPROTO_UDP, false);
	rule_for_dmac(6, 0, 1);
	rule_start(IBV_FLOW_ATTR_ALL_DEFAULT, 0, 0);
	rule_add(2);
	EXPECT(1 << 1);
	dv_rule(rx, &miss, 1);
	EXPECT(1 << 2);
	cr_assert_eq(ibv_destroy_flow(flows[--nflows]), 0);
	dv_rule(rx, &drop, 1);
	EXPECT(0);
	cr_assert_eq(ibv_destroy_flow(flows[--nflows]), 0);
	dv_rule(tx, &drop, 1);
	EXPECT(0);
	cr_assert_eq(ibv_destroy_flow(flows[--nflows]), 0);
	EXPECT(1 << 1);
	dv_rule(by_flags, &drop, 1);
	EXPECT(0);
	no_rules();
	cr_assert_eq(mlx5dv_destroy_flow_matcher(rx), 0);
	cr_assert_eq(mlx5dv_destroy_flow_matcher(tx), 0);
	cr_assert_eq(mlx5dv_destroy_flow_matcher(by_flags), 0);
}

Test(verbs_flow_frames, driver_rules_for_multicast_only)
{
	struct mlx5dv_flow_matcher *m[2] = { dv_matcher(3, MLX5DV_FLOW_TABLE_TYPE_NIC_RX),
					     dv_matcher(4, MLX5DV_FLOW_TABLE_TYPE_NIC_RX) };
	struct mlx5dv_flow_action_attr act = { .type = MLX5DV_FLOW_ACTION_DEST_IBV_QP };
	uint32_t i;

	build(4, IPPROTO_UDP, false);
	frame[0] = 1;
	for (i = 0; i < 2; i++) {
		act.qp = qp[i];
		dv_rule(m[i], &act, 1);
	}
	EXPECT(1 << 0 | 1 << 1);
	rule_start(IBV_FLOW_ATTR_NORMAL, 15, 0);
	rule_add(2);
	EXPECT(1 << 2);
	no_rules();
	for (i = 0; i < 2; i++)
		cr_assert_eq(mlx5dv_destroy_flow_matcher(m[i]), 0);
}

/* ---- tags ---- */
static void rule_tag(uint32_t tag)
{
	struct ibv_flow_spec_action_tag *s = rule_spec(IBV_FLOW_SPEC_ACTION_TAG, sizeof(*s));

	s->tag_id = tag;
}

/* An RQ of an extended CQ, which reports tags; returns the tag of the next completion. */
static uint32_t tag_of(struct ibv_cq_ex *ex)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct timespec nap = { 0, 20000 };
	time_t end = time(NULL) + VB_WAIT_S;
	uint32_t tag;

	raw_send(&v, sender, 0, len);
	cr_assert_eq(raw_wait(send_cq).status, IBV_WC_SUCCESS);
	while (ibv_start_poll(ex, &attr)) {
		cr_assert_lt(time(NULL), end, "no completion");
		nanosleep(&nap, NULL);
	}
	cr_assert_eq(ex->status, IBV_WC_SUCCESS);
	tag = ibv_wc_read_flow_tag(ex);
	ibv_end_poll(ex);
	return tag;
}

Test(verbs_flow_frames, tags)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 15, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG };
	struct ibv_cq_ex *ex = ibv_create_cq_ex(v.ctx, &init);
	struct ibv_qp *was = qp[0], *tagged;
	struct mlx5dv_flow_matcher *m = dv_matcher(0, MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
	struct mlx5dv_flow_action_attr act[2] = {
		{ .type = MLX5DV_FLOW_ACTION_DEST_IBV_QP },
		{ .type = MLX5DV_FLOW_ACTION_TAG, .tag_value = 0xfffffe },
	};
	uint32_t i;

	cr_assert(ex);
	tagged = raw_qp(&v, ibv_cq_ex_to_cq(ex), 0, 8, 0);
	raw_ready(tagged);
	for (i = 0; i < 4; i++)
		cr_assert_eq(vb_recv(&v, tagged, i, SLOT * (1 + i), SLOT), 0);
	qp[0] = tagged;
	build(4, IPPROTO_UDP, false);
	rule_for_dmac(4, 0, 0);
	cr_assert_eq(tag_of(ex), 0);
	rule_start(IBV_FLOW_ATTR_NORMAL, 3, 0);
	rule_dmac(dmac);
	rule_tag(0x123456);
	rule_add(0);
	cr_assert_eq(tag_of(ex), 0x123456);
	act[0].qp = tagged;
	dv_rule(m, act, 2);
	cr_assert_eq(tag_of(ex), 0xfffffe);
	no_rules();
	/* a rule without a tag beside one that has the same match */
	rule_start(IBV_FLOW_ATTR_NORMAL, 1, 0);
	rule_dmac(dmac);
	rule_tag(0x77);
	rule_add(1);
	rule_for_dmac(1, 0, 0);
	cr_assert_eq(tag_of(ex), 0x77);
	no_rules();
	qp[0] = was;
	cr_assert_eq(mlx5dv_destroy_flow_matcher(m), 0);
	cr_assert_eq(ibv_destroy_qp(tagged), 0);
	cr_assert_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}
