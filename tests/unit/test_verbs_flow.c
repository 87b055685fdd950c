/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Matchers and flow rules of the mlx5 driver, by ioctl: each attribute, each refusal with
 * the kernel's errno, and objects that are busy. test_verbs_flow_frames.c sends frames.
 */
#include "../lib/rawnic_eth.h"

#include "../lib/flowcall.h"

enum {
	MASK = MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK,
	TYPE = MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE,
	CRITERIA = MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA,
	MATCHER_FLAGS = MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS,
	TABLE = MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE,
	VALUE = MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE,
	MATCHER = MLX5_IB_ATTR_CREATE_FLOW_MATCHER,
	TO_QP = MLX5_IB_ATTR_CREATE_FLOW_DEST_QP,
	TO_DEVX = MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX,
	ACTIONS = MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS,
	TAG = MLX5_IB_ATTR_CREATE_FLOW_TAG,
	COUNTERS = MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX,
	OFFSET = MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET,
	FLAGS = MLX5_IB_ATTR_CREATE_FLOW_FLAGS,
	MISS = MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS,
	DROP = MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP,
};
#define FULL   640u /* bytes of a whole fte_match_param */
#define OFF_DM 8    /* destination address in the outer headers */

static struct eth e;
static uint8_t mask[FULL], value[FULL];
static uint32_t base, matcher;
static bool opened;

static void setup(void)
{
	struct raw r;

	if (!have_net_raw())
		cr_skip_test("flow rules need CAP_NET_RAW");
	eth_open(&e);
	base = objects_live();
	memset(mask + OFF_DM, 0xff, 6);
	memcpy(value + OFF_DM, "\x02\0\1\2\3\4", 6);
	matcher_call(&r, mask);
	cr_assert_eq(raw_create(e.n.ctx, &r, &matcher), 0);
	opened = true;
}

static void teardown(void)
{
	if (!opened)
		return;
	cr_assert_eq(matcher_destroy(e.n.ctx, matcher), 0);
	if (objects_live() != base) { /* Criterion does not count assertions of teardown */
		fprintf(stderr, "a refused call left an object\n");
		abort();
	}
	eth_close(&e);
}

TestSuite(verbs_flow, .init = setup, .fini = teardown);

/* ---- matchers ---- */
static int make_matcher(struct raw *r)
{
	uint32_t handle;
	int rc = raw_create(e.n.ctx, r, &handle);

	if (!rc)
		cr_assert_eq(matcher_destroy(e.n.ctx, handle), 0);
	return rc;
}

static int matcher_with(uint32_t id, uint32_t len, uint64_t data)
{
	struct raw r;

	matcher_call(&r, mask);
	raw_attr(&r, id, len, data);
	return make_matcher(&r);
}

static int matcher_without(uint32_t id)
{
	struct raw r;

	matcher_call(&r, mask);
	raw_drop(&r, id);
	return make_matcher(&r);
}

Test(verbs_flow, matcher_attributes)
{
	cr_expect_eq(matcher_without(MASK), EINVAL);
	cr_expect_eq(matcher_without(TYPE), EINVAL);
	cr_expect_eq(matcher_without(CRITERIA), EINVAL);
	cr_expect_eq(matcher_without(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE), EINVAL);
	cr_expect_eq(matcher_with(MASK, 6, 0xffff), 0, "six bytes, as pyverbs sends them");
	cr_expect_eq(matcher_with(MASK, FULL, (uintptr_t)mask), 0);
	cr_expect_eq(matcher_with(MASK, 0, 0), EINVAL);
	cr_expect_eq(matcher_with(MASK, FULL + 4, (uintptr_t)mask), EINVAL);
	cr_expect_eq(matcher_with(CRITERIA, 2, 1), EINVAL);
	cr_expect_eq(matcher_with(TYPE, 4, 0), EINVAL);
	cr_expect_eq(matcher_with(TYPE, 0, 0), EINVAL);
}

static int matcher_of_type(uint8_t type, uint8_t reserved, uint32_t len)
{
	struct ib_uverbs_attr *a;
	struct raw r;

	matcher_call(&r, mask);
	a = raw_attr(&r, TYPE, len, 0);
	a->attr_data.enum_data.elem_id = type;
	a->attr_data.enum_data.reserved = reserved;
	return make_matcher(&r);
}

Test(verbs_flow, matcher_types)
{
	cr_expect_eq(matcher_of_type(MLX5_IB_FLOW_TYPE_NORMAL, 0, 2), 0);
	cr_expect_eq(matcher_of_type(MLX5_IB_FLOW_TYPE_NORMAL, 1, 2), EINVAL);
	cr_expect_eq(matcher_of_type(MLX5_IB_FLOW_TYPE_SNIFFER, 0, 2), EINVAL);
	cr_expect_eq(matcher_of_type(MLX5_IB_FLOW_TYPE_SNIFFER, 0, 0), EOPNOTSUPP);
	cr_expect_eq(matcher_of_type(MLX5_IB_FLOW_TYPE_MC_DEFAULT, 0, 0), EOPNOTSUPP);
	cr_expect_eq(matcher_of_type(4, 0, 0), EOPNOTSUPP);
}

Test(verbs_flow, matcher_tables)
{
	struct raw r;

	cr_expect_eq(matcher_with(TABLE, 8, MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX), 0);
	cr_expect_eq(matcher_with(TABLE, 8, MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX), 0);
	cr_expect_eq(matcher_with(TABLE, 8, MLX5_IB_UAPI_FLOW_TABLE_TYPE_FDB), EOPNOTSUPP);
	cr_expect_eq(matcher_with(TABLE, 8, MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_RX), EOPNOTSUPP);
	cr_expect_eq(matcher_with(TABLE, 8, MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX), EOPNOTSUPP);
	cr_expect_eq(matcher_with(TABLE, 8, 5), EINVAL);
	cr_expect_eq(matcher_with(TABLE, 4, 0), EINVAL);
	cr_expect_eq(matcher_with(MATCHER_FLAGS, 8, IBV_FLOW_ATTR_FLAGS_EGRESS), 0);
	cr_expect_eq(matcher_with(MATCHER_FLAGS, 4, 0), 0);
	cr_expect_eq(matcher_with(MATCHER_FLAGS, 8, IBV_FLOW_ATTR_FLAGS_DONT_TRAP), EINVAL);
	cr_expect_eq(matcher_with(MATCHER_FLAGS, 2, 0), EINVAL);
	matcher_call(&r, mask);
	raw_attr(&r, TABLE, 8, 0);
	raw_attr(&r, MATCHER_FLAGS, 8, 0);
	cr_expect_eq(make_matcher(&r), EINVAL, "a table type and flags");
}

Test(verbs_flow, matcher_that_does_not_exist)
{
	cr_expect_eq(matcher_destroy(e.n.ctx, 0xffffff), ENOENT);
	cr_expect_eq(matcher_destroy(e.n.ctx, dv_handle(e.tir)), ENOENT);
}

/* ---- rules ---- */
static int make_flow(struct raw *r)
{
	uint32_t handle;
	int rc = raw_create(e.n.ctx, r, &handle);

	if (!rc)
		cr_assert_eq(flow_destroy(e.n.ctx, handle), 0);
	return rc;
}

/* A valid rule to the TIR, with one attribute more or changed. */
static int flow_with(uint32_t id, uint32_t len, uint64_t data)
{
	struct raw r;

	flow_call(&r, matcher, value);
	raw_attr(&r, TO_DEVX, 0, dv_handle(e.tir));
	raw_attr(&r, id, len, data);
	return make_flow(&r);
}

static int flow_without(uint32_t id)
{
	struct raw r;

	flow_call(&r, matcher, value);
	raw_attr(&r, TO_DEVX, 0, dv_handle(e.tir));
	raw_drop(&r, id);
	return make_flow(&r);
}

Test(verbs_flow, rule_attributes)
{
	cr_expect_eq(flow_with(VALUE, FULL, (uintptr_t)value), 0);
	cr_expect_eq(flow_with(VALUE, 4, 0), 0, "the rest of the value is zero");
	cr_expect_eq(flow_with(VALUE, 0, 0), EINVAL);
	cr_expect_eq(flow_with(VALUE, FULL + 4, (uintptr_t)value), EINVAL);
	cr_expect_eq(flow_without(VALUE), EINVAL);
	cr_expect_eq(flow_without(MATCHER), EINVAL);
	cr_expect_eq(flow_without(MLX5_IB_ATTR_CREATE_FLOW_HANDLE), EINVAL);
	cr_expect_eq(flow_with(MATCHER, 0, 0xffffff), ENOENT);
	cr_expect_eq(flow_with(MATCHER, 0, dv_handle(e.tir)), ENOENT);
	value[OFF_DM + 8] = 1;
	cr_expect_eq(flow_with(TAG, 4, 1), EINVAL, "the value has bits outside the mask");
	value[OFF_DM + 8] = 0;
	value[MATCH_LEN] = 1;
	cr_expect_eq(flow_with(VALUE, FULL, (uintptr_t)value), EINVAL);
}

Test(verbs_flow, tags)
{
	cr_expect_eq(flow_with(TAG, 4, 0xffffff), 0);
	cr_expect_eq(flow_with(TAG, 4, 0x1000000), EINVAL);
	cr_expect_eq(flow_with(TAG, 2, 1), EINVAL);
	cr_expect_eq(flow_with(TAG, 8, 1), EINVAL);
}

static int flow_to(uint32_t id, uint32_t len, uint64_t data)
{
	struct raw r;

	flow_call(&r, matcher, value);
	raw_attr(&r, id, len, data);
	return make_flow(&r);
}

Test(verbs_flow, destinations)
{
	struct ibv_cq *cq = ibv_create_cq(e.n.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *ud = ibv_create_qp(e.n.pd, &init);

	cr_assert(ud);
	base = objects_live();
	cr_expect_eq(flow_without(TO_DEVX), EINVAL, "no destination");
	cr_expect_eq(flow_with(FLAGS, 4, DROP), EINVAL, "a TIR and drop");
	cr_expect_eq(flow_with(FLAGS, 4, 0), 0);
	cr_expect_eq(flow_with(TO_QP, 0, ud->handle), EINVAL, "a TIR and a QP");
	cr_expect_eq(flow_to(TO_QP, 0, ud->handle), EINVAL, "not a raw packet QP");
	cr_expect_eq(flow_to(TO_QP, 0, 0xffffff), ENOENT);
	cr_expect_eq(flow_to(TO_DEVX, 0, 0xffffff), ENOENT);
	cr_expect_eq(flow_to(TO_DEVX, 0, dv_handle(e.rq)), EINVAL, "not a TIR");
	cr_expect_eq(flow_to(FLAGS, 4, DROP), 0);
	cr_expect_eq(flow_to(FLAGS, 8, MISS), 0);
	cr_expect_eq(flow_to(FLAGS, 4, MISS | DROP), EINVAL);
	cr_expect_eq(flow_to(FLAGS, 4, 4), EINVAL);
	cr_expect_eq(flow_to(FLAGS, 2, DROP), EINVAL);
	cr_assert_eq(objects_live(), base);
	cr_assert_eq(ibv_destroy_qp(ud), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	base = objects_live() - 1; /* libmlx5 keeps objects of its own */
}

Test(verbs_flow, actions_are_refused)
{
	uint32_t three[3] = { 1, 2, 3 };

	cr_expect_eq(flow_with(ACTIONS, 4, 1), ENOENT);
	cr_expect_eq(flow_with(ACTIONS, 6, 1), EINVAL);
	cr_expect_eq(flow_with(ACTIONS, 12, (uintptr_t)three), EINVAL);
}

/* ---- counters of DEVX ---- */

/* Creates 128 << (bulk - 1) flow counters; bulk 0: one. */
static struct mlx5dv_devx_obj *flow_counter(uint32_t bulk)
{
	uint32_t in[4] = { 0 };

	put(in, 0, 0x939u << 16);
	put(in, 0x0c, bulk);
	return make_wide(&e.n, in, sizeof(in), NULL);
}

Test(verbs_flow, counters_of_devx)
{
	struct mlx5dv_devx_obj *c = flow_counter(0), *bulk = flow_counter(1);
	uint64_t two = 0;
	struct raw r;

	cr_expect_eq(flow_with(COUNTERS, 4, dv_handle(c)), 0);
	cr_expect_eq(flow_with(COUNTERS, 4, dv_handle(e.tir)), EINVAL, "not a counter");
	cr_expect_eq(flow_with(COUNTERS, 4, 0xffffff), ENOENT);
	cr_expect_eq(flow_with(COUNTERS, 8, dv_handle(c)), EINVAL, "two counters");
	flow_call(&r, matcher, value);
	raw_attr(&r, TO_DEVX, 0, dv_handle(e.tir));
	raw_attr(&r, COUNTERS, 4, dv_handle(bulk));
	raw_attr(&r, OFFSET, 4, 127);
	cr_expect_eq(make_flow(&r), 0);
	raw_attr(&r, OFFSET, 4, 128);
	cr_expect_eq(make_flow(&r), EINVAL, "behind the last counter of the bulk");
	raw_attr(&r, OFFSET, 8, two);
	cr_expect_eq(make_flow(&r), EINVAL, "two offsets");
	raw_attr(&r, OFFSET, 2, 0);
	cr_expect_eq(make_flow(&r), EINVAL);
	cr_assert_eq(mlx5dv_devx_obj_destroy(c), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(bulk), 0);
}

/* ---- masks ---- */

/* Creates a matcher and a rule of value 0. Returns the errno of the rule. */
static int rule_of_mask(uint8_t criteria)
{
	static const uint8_t zero[FULL];
	uint32_t handle;
	struct raw r;
	int rc;

	matcher_call(&r, mask);
	raw_attr(&r, MASK, FULL, (uintptr_t)mask);
	raw_attr(&r, CRITERIA, 1, criteria);
	cr_assert_eq(raw_create(e.n.ctx, &r, &handle), 0);
	flow_call(&r, handle, zero);
	raw_attr(&r, TO_DEVX, 0, dv_handle(e.tir));
	rc = make_flow(&r);
	cr_assert_eq(matcher_destroy(e.n.ctx, handle), 0);
	return rc;
}

static int rule_of_bit(uint32_t byte, uint8_t bits)
{
	int rc;

	mask[byte] = bits;
	rc = rule_of_mask(1);
	mask[byte] = 0;
	return rc;
}

Test(verbs_flow, masks_that_rules_refuse)
{
	cr_expect_eq(rule_of_mask(0), EINVAL, "outer headers are masked, but not enabled");
	cr_expect_eq(rule_of_mask(1), 0);
	cr_expect_eq(rule_of_mask(0x7f), 0, "criteria with an empty mask");
	cr_expect_eq(rule_of_mask(0x81), EINVAL);
	memset(mask, 0, sizeof(mask));
	cr_expect_eq(rule_of_mask(0), 0, "all frames");
	cr_expect_eq(rule_of_bit(0x1b, 0xff), 0, "TTL");
	cr_expect_eq(rule_of_bit(0x18, 0xc0), 0, "type of layer 4");
	cr_expect_eq(rule_of_bit(0x18, 0x20), EINVAL, "reserved");
	cr_expect_eq(rule_of_bit(0x19, 1), EINVAL, "reserved");
	cr_expect_eq(rule_of_bit(0x1a, 1), EINVAL, "reserved");
	cr_expect_eq(rule_of_bit(0x40, 1), EINVAL, "misc parameters");
	cr_expect_eq(rule_of_bit(0x80, 1), EINVAL, "inner headers");
	cr_expect_eq(rule_of_bit(0xc0, 1), EINVAL, "misc parameters 2");
	cr_expect_eq(rule_of_bit(FULL - 1, 1), EINVAL);
}

static int rule_of_priority(uint16_t priority)
{
	uint32_t handle;
	struct raw r;
	int rc;

	matcher_call(&r, mask);
	raw_attr(&r, TYPE, 2, priority);
	cr_assert_eq(raw_create(e.n.ctx, &r, &handle), 0);
	flow_call(&r, handle, value);
	raw_attr(&r, TO_DEVX, 0, dv_handle(e.tir));
	rc = make_flow(&r);
	cr_assert_eq(matcher_destroy(e.n.ctx, handle), 0);
	return rc;
}

Test(verbs_flow, priorities)
{
	cr_expect_eq(rule_of_priority(15), 0);
	cr_expect_eq(rule_of_priority(16), ENOMEM);
	cr_expect_eq(rule_of_priority(0xffff), ENOMEM);
}

/* id: the attribute that selects the table of sent frames */
static void check_transmit_table(uint32_t id, uint64_t data)
{
	uint32_t rx = matcher;
	struct raw r;

	matcher_call(&r, mask);
	raw_attr(&r, id, 8, data);
	cr_assert_eq(raw_create(e.n.ctx, &r, &matcher), 0);
	cr_expect_eq(flow_to(FLAGS, 4, DROP), 0);
	cr_expect_eq(flow_without(TO_DEVX), 0, "a frame may be sent");
	cr_expect_eq(flow_with(TAG, 4, 1), EINVAL, "a TIR receives");
	cr_assert_eq(matcher_destroy(e.n.ctx, matcher), 0);
	matcher = rx;
}

Test(verbs_flow, transmit_table)
{
	check_transmit_table(TABLE, MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX);
	check_transmit_table(MATCHER_FLAGS, IBV_FLOW_ATTR_FLAGS_EGRESS);
}

/* ---- life of objects ---- */
static uint32_t rule_to_tir(uint32_t tag, uint32_t tag_len)
{
	uint32_t handle;
	struct raw r;

	flow_call(&r, matcher, value);
	raw_attr(&r, TO_DEVX, 0, dv_handle(e.tir));
	if (tag_len)
		raw_attr(&r, TAG, tag_len, tag);
	cr_assert_eq(raw_create(e.n.ctx, &r, &handle), 0);
	return handle;
}

Test(verbs_flow, a_rule_keeps_its_objects_busy)
{
	struct mlx5dv_devx_obj *c = flow_counter(0);
	uint32_t handle;
	struct raw r;

	flow_call(&r, matcher, value);
	raw_attr(&r, TO_DEVX, 0, dv_handle(e.tir));
	raw_attr(&r, COUNTERS, 4, dv_handle(c));
	cr_assert_eq(raw_create(e.n.ctx, &r, &handle), 0);
	cr_expect_eq(matcher_destroy(e.n.ctx, matcher), EBUSY);
	cr_expect_neq(mlx5dv_devx_obj_destroy(e.tir), 0, "the TIR was destroyed");
	cr_expect_neq(mlx5dv_devx_obj_destroy(c), 0, "the counter was destroyed");
	cr_assert_eq(flow_destroy(e.n.ctx, handle), 0);
	cr_expect_eq(flow_destroy(e.n.ctx, handle), ENOENT);
	cr_assert_eq(mlx5dv_devx_obj_destroy(c), 0);
}

Test(verbs_flow, destruction_by_each_method)
{
	struct ib_uverbs_destroy_flow in = { .comp_mask = 1 };
	struct raw r;

	cr_assert_eq(raw_destroy(e.n.ctx, UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_DESTROY_FLOW,
				 MLX5_IB_ATTR_DESTROY_FLOW_HANDLE, rule_to_tir(0, 0)),
		     0);
	in.flow_handle = rule_to_tir(0, 0);
	raw_start(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_attr(&r, UVERBS_ATTR_WRITE_CMD, 8,
		 IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_DESTROY_FLOW);
	memcpy(&raw_attr(&r, UVERBS_ATTR_CORE_IN, sizeof(in), 0)->data, &in, sizeof(in));
	cr_expect_eq(raw_call(e.n.ctx, &r), EINVAL, "comp_mask");
	in.comp_mask = 0;
	memcpy(&raw_attr(&r, UVERBS_ATTR_CORE_IN, sizeof(in), 0)->data, &in, sizeof(in));
	cr_expect_eq(raw_call(e.n.ctx, &r), 0);
	cr_expect_eq(raw_call(e.n.ctx, &r), ENOENT);
}

Test(verbs_flow, rules_of_one_match_agree)
{
	uint32_t a = rule_to_tir(7, 4);

	cr_expect_eq(flow_to(FLAGS, 4, DROP), EEXIST);
	cr_expect_eq(flow_to(FLAGS, 4, MISS), EEXIST);
	cr_expect_eq(flow_with(TAG, 4, 8), EEXIST);
	cr_expect_eq(flow_with(TAG, 4, 7), 0);
	cr_expect_eq(flow_with(FLAGS, 4, 0), 0, "without a tag");
	cr_assert_eq(flow_destroy(e.n.ctx, a), 0);
	cr_expect_eq(flow_to(FLAGS, 4, DROP), 0);
}

Test(verbs_flow, rules_require_net_raw)
{
	net_raw(false);
	cr_expect_eq(flow_with(FLAGS, 4, 0), EPERM);
	net_raw(true);
	cr_expect_eq(flow_with(FLAGS, 4, 0), 0);
}

Test(verbs_flow, closing_the_device_destroys_rules)
{
	struct ibv_context *other = open_nic();
	uint32_t m, rule, before = objects_live();
	struct raw r;

	matcher_call(&r, mask);
	cr_assert_eq(raw_create(other, &r, &m), 0);
	flow_call(&r, m, value);
	raw_attr(&r, FLAGS, 4, DROP);
	cr_assert_eq(raw_create(other, &r, &rule), 0);
	cr_expect_eq(flow_destroy(e.n.ctx, rule), ENOENT, "a handle of another open");
	cr_assert_eq(objects_live(), before + 2);
	cr_assert_eq(ibv_close_device(other), 0);
	cr_assert_leq(objects_live(), before);
}

/* The same by the library. */
Test(verbs_flow, library_calls)
{
	struct {
		size_t len;
		uint8_t bytes[MATCH_LEN];
	} m = { MATCH_LEN, { 0 } }, v = m;
	struct mlx5dv_flow_matcher_attr attr = { .match_mask = (void *)&m,
						 .match_criteria_enable = 1,
						 .priority = 2 };
	struct mlx5dv_flow_action_attr act[2] = {
		{ .type = MLX5DV_FLOW_ACTION_DEST_DEVX, .obj = e.tir },
		{ .type = MLX5DV_FLOW_ACTION_TAG, .tag_value = 0x123456 },
	};
	struct mlx5dv_flow_matcher *lib;
	struct ibv_flow *flow;

	memset(m.bytes + OFF_DM, 0xff, 6);
	lib = mlx5dv_create_flow_matcher(e.n.ctx, &attr);
	cr_assert(lib);
	flow = mlx5dv_create_flow(lib, (void *)&v, 2, act);
	cr_assert(flow);
	cr_expect_eq(mlx5dv_destroy_flow_matcher(lib), EBUSY);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(mlx5dv_destroy_flow_matcher(lib), 0);
}
