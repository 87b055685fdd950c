/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Rules of ibv_create_flow by ioctl: attributes, malformed lists of specs and driver data,
 * with the kernel's errno; and counters objects. test_verbs_flow_frames.c sends frames.
 */
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>

#include "../lib/raw.h"

#include "../lib/flowcall.h"

static struct vb v;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static uint32_t base;

/* The request: head and specs, and the driver data. */
static struct {
	struct ib_uverbs_create_flow head;
	uint8_t specs[1024];
} in;
static uint8_t drv[64];
static uint32_t drv_len;

static void setup(void)
{
	raw_need();
	v = vb_open(4096);
	cq = ibv_create_cq(v.ctx, 15, NULL, NULL, 0);
	qp = raw_qp(&v, cq, 4, 4, 0);
	base = raw_live();
	memset(&in, 0, sizeof(in));
	in.head.qp_handle = qp->handle;
	in.head.flow_attr.port = 1;
	drv_len = 0;
}

static void teardown(void)
{
	if (!v.ctx)
		return;
	if (raw_live() != base) { /* Criterion does not count assertions of teardown */
		fprintf(stderr, "a refused call left an object\n");
		abort();
	}
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

TestSuite(verbs_flow_spec, .init = setup, .fini = teardown);

/* ---- calls ---- */
static int create(size_t len, uint32_t *handle)
{
	struct ib_uverbs_create_flow_resp out = { 0 };
	struct raw r;
	int rc;

	raw_start(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_attr(&r, UVERBS_ATTR_WRITE_CMD, 8,
		 IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW);
	raw_attr(&r, UVERBS_ATTR_CORE_IN, (uint32_t)len, (uintptr_t)&in);
	raw_attr(&r, UVERBS_ATTR_CORE_OUT, sizeof(out), (uintptr_t)&out);
	if (drv_len > 8)
		raw_attr(&r, UVERBS_ATTR_UHW_IN, drv_len, (uintptr_t)drv);
	else if (drv_len)
		memcpy(&raw_attr(&r, UVERBS_ATTR_UHW_IN, drv_len, 0)->data, drv, drv_len);
	rc = raw_call(v.ctx, &r);
	*handle = out.flow_handle;
	return rc;
}

/* Creates and destroys a rule of the whole request. Returns the errno. */
static int try(void)
{
	uint32_t handle;
	int rc = create(sizeof(in.head) + in.head.flow_attr.size, &handle);

	if (!rc)
		cr_assert_eq(flow_destroy(v.ctx, handle), 0);
	return rc;
}

/* Appends a spec whose value and mask have `filter` bytes each; returns the value. The mask
 * follows it. */
static uint8_t *spec(uint32_t type, uint16_t filter)
{
	struct ib_uverbs_flow_spec_hdr h = { .type = type,
					     .size = (uint16_t)(sizeof(h) + 2 * filter) };
	uint8_t *at = in.specs + in.head.flow_attr.size;

	memcpy(at, &h, sizeof(h));
	memset(at + sizeof(h), 0, 2u * filter);
	in.head.flow_attr.size = (uint16_t)(in.head.flow_attr.size + h.size);
	in.head.flow_attr.num_of_specs++;
	return at + sizeof(h);
}

/* Appends an action with a 32-bit argument. */
static void action(uint32_t type, uint32_t arg)
{
	memcpy(spec(type, 4), &arg, 4);
}

static void no_specs(void)
{
	in.head.flow_attr.size = 0;
	in.head.flow_attr.num_of_specs = 0;
}

/* ---- attributes ---- */
Test(verbs_flow_spec, attributes)
{
	struct ib_uverbs_flow_attr *a = &in.head.flow_attr;
	uint32_t handle;

	cr_expect_eq(try(), 0, "all frames");
#define WITH(field, bad, want) \
	do { \
		typeof(field) was = field; \
		field = bad; \
		cr_expect_eq(try(), want, #field " %u", (unsigned)(bad)); \
		field = was; \
	} while (0)
	WITH(in.head.comp_mask, 1, EINVAL);
	WITH(in.head.qp_handle, 0xffffff, EINVAL);
	WITH(a->port, 0, EINVAL);
	WITH(a->port, 2, EINVAL);
	WITH(a->reserved[0], 1, EINVAL);
	WITH(a->reserved[1], 1, EINVAL);
	WITH(a->priority, 15, 0);
	WITH(a->priority, 16, ENOMEM);
	WITH(a->type, IBV_FLOW_ATTR_ALL_DEFAULT, 0);
	WITH(a->type, IBV_FLOW_ATTR_MC_DEFAULT, 0);
	WITH(a->type, IBV_FLOW_ATTR_SNIFFER, 0);
	WITH(a->type, 4, EOPNOTSUPP);
	WITH(a->flags, 1, EINVAL);
	WITH(a->flags, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, 0);
	WITH(a->flags, IBV_FLOW_ATTR_FLAGS_EGRESS, 0);
	WITH(a->flags, 8, EINVAL);
	a->type = IBV_FLOW_ATTR_ALL_DEFAULT;
	WITH(a->flags, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, EINVAL);
	WITH(a->flags, IBV_FLOW_ATTR_FLAGS_EGRESS, EINVAL);
	a->type = IBV_FLOW_ATTR_NORMAL;
	cr_expect_eq(create(sizeof(in.head) - 1, &handle), ENOSPC);
	cr_expect_eq(create(sizeof(in.head) + 8, &handle), 0, "zeros after the request");
	cr_assert_eq(flow_destroy(v.ctx, handle), 0);
	in.specs[7] = 1;
	cr_expect_eq(create(sizeof(in.head) + 8, &handle), EOPNOTSUPP);
#undef WITH
}

Test(verbs_flow_spec, needs_a_raw_packet_qp_that_receives)
{
	struct ibv_qp *send_only = raw_qp(&v, cq, 4, 0, 0);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *ud = ibv_create_qp(v.pd, &init);

	cr_assert(ud);
	in.head.qp_handle = send_only->handle;
	cr_expect_eq(try(), EINVAL);
	in.head.qp_handle = ud->handle;
	cr_expect_eq(try(), EINVAL);
	cr_assert_eq(ibv_destroy_qp(send_only), 0);
	cr_assert_eq(ibv_destroy_qp(ud), 0);
	base = raw_live(); /* libmlx5 keeps a page of doorbell registers */
}

Test(verbs_flow_spec, requires_net_raw)
{
	net_raw(false);
	cr_expect_eq(try(), EPERM);
	net_raw(true);
	cr_expect_eq(try(), 0);
}

/* A rule keeps its QP busy, also if no frame reaches the QP. */
Test(verbs_flow_spec, keeps_the_qp_busy)
{
	uint32_t drop, out, all;

	in.head.flow_attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
	cr_assert_eq(create(sizeof(in.head), &all), 0);
	cr_expect_eq(ibv_destroy_qp(qp), EBUSY);
	cr_assert_eq(flow_destroy(v.ctx, all), 0);
	in.head.flow_attr.type = IBV_FLOW_ATTR_NORMAL;
	in.head.flow_attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	cr_assert_eq(create(sizeof(in.head), &out), 0);
	cr_expect_eq(ibv_destroy_qp(qp), EBUSY);
	cr_assert_eq(flow_destroy(v.ctx, out), 0);
	in.head.flow_attr.flags = 0;
	spec(IBV_FLOW_SPEC_ACTION_DROP, 0);
	cr_assert_eq(create(sizeof(in.head) + in.head.flow_attr.size, &drop), 0);
	cr_expect_eq(ibv_destroy_qp(qp), EBUSY);
	cr_assert_eq(flow_destroy(v.ctx, drop), 0);
}

Test(verbs_flow_spec, rules_of_one_match_agree)
{
	uint32_t first;

	spec(IBV_FLOW_SPEC_ETH, 16)[16] = 0xff;
	cr_assert_eq(create(sizeof(in.head) + in.head.flow_attr.size, &first), 0);
	cr_expect_eq(try(), 0, "the same once more");
	action(IBV_FLOW_SPEC_ACTION_TAG, 5);
	cr_expect_eq(try(), EEXIST);
	no_specs();
	spec(IBV_FLOW_SPEC_ETH, 16)[16] = 0xff;
	spec(IBV_FLOW_SPEC_ACTION_DROP, 0);
	cr_expect_eq(try(), EEXIST);
	in.head.flow_attr.priority = 1;
	cr_expect_eq(try(), 0, "another priority");
	cr_assert_eq(flow_destroy(v.ctx, first), 0);
}

/* ---- lists of specs ---- */
Test(verbs_flow_spec, lists)
{
	struct ib_uverbs_flow_attr *a = &in.head.flow_attr;
	uint32_t handle;
	int i;

	spec(IBV_FLOW_SPEC_ETH, 16);
	cr_expect_eq(try(), 0);
	cr_expect_eq(create(sizeof(in.head) + a->size - 1, &handle), ENOSPC);
	a->num_of_specs = 2;
	cr_expect_eq(try(), EINVAL, "fewer specs than announced");
	a->num_of_specs = 0;
	cr_expect_eq(try(), EINVAL, "specs that are not announced");
	a->num_of_specs = 1;
	a->size += 8;
	cr_expect_eq(try(), EINVAL, "bytes after the last spec");
	no_specs();
	for (i = 0; i < 10; i++)
		spec(IBV_FLOW_SPEC_ETH, 16);
	cr_expect_eq(try(), 0);
	spec(IBV_FLOW_SPEC_ETH, 16);
	cr_expect_eq(try(), EINVAL, "more than 10 specs");
	no_specs();
	spec(IBV_FLOW_SPEC_ETH, 44);
	cr_expect_eq(try(), EINVAL, "longer than any spec");
	no_specs();
	spec(IBV_FLOW_SPEC_ETH, 16);
	in.specs[6] = 1;
	cr_expect_eq(try(), EINVAL, "reserved field");
}

static int try_type(uint32_t type, uint16_t filter)
{
	no_specs();
	spec(type, filter);
	return try();
}

Test(verbs_flow_spec, sizes_and_types)
{
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ETH, 0), EINVAL);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ETH, 12), 0, "shorter than the kernel's");
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ETH, 6), EINVAL, "not a multiple of 4");
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ETH, 20), 0, "longer, with zeros");
	in.specs[8 + 20 + 16] = 1;
	cr_expect_eq(try(), EINVAL, "longer, with a bit in the mask");
	in.specs[8 + 20 + 16] = 0;
	in.specs[8 + 16] = 1;
	cr_expect_eq(try(), 0, "longer, with a bit in the value");
	in.specs[4] = 4;
	cr_expect_eq(try(), EINVAL, "shorter than its header");
	cr_expect_eq(try_type(IBV_FLOW_SPEC_IPV4, 8), 0, "as libibverbs sends it");
	cr_expect_eq(try_type(IBV_FLOW_SPEC_IPV4, 12), 0);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_IPV6, 40), 0);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_TCP, 4), 0);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_UDP, 4), 0);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_IPV4_EXT, 12), EINVAL, "a type of the library");
	cr_expect_eq(try_type(0x21, 16), EINVAL);
	cr_expect_eq(try_type(0x1004, 4), EINVAL);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_ETH, 16), EOPNOTSUPP);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_VXLAN_TUNNEL, 4), EINVAL);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_VXLAN_TUNNEL, 4), EOPNOTSUPP);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_GRE, 8), EOPNOTSUPP);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_MPLS, 4), EOPNOTSUPP);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ESP, 8), EOPNOTSUPP);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ESP, 6), EINVAL);
}

/* A spec of `filter` bytes with one byte of the mask set, and that of the value if `both`. */
static int try_byte(uint32_t type, uint16_t filter, uint32_t byte, bool both)
{
	uint8_t *value;

	no_specs();
	value = spec(type, filter);
	value[filter + byte] = 0xff;
	value[byte] = both ? 0xff : 0;
	return try();
}

Test(verbs_flow_spec, fields_that_are_not_matched)
{
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV4, 12, 9, false), 0, "type of service");
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV4, 12, 10, false), EOPNOTSUPP, "TTL");
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV4, 12, 11, false), EOPNOTSUPP, "flags");
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV6, 40, 35, false), EOPNOTSUPP, "flow label");
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV6, 40, 32, false), EINVAL, "more than 20 bits");
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV6, 40, 37, false), 0, "traffic class");
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV6, 40, 38, false), EOPNOTSUPP, "hop limit");
	cr_expect_eq(try_byte(IBV_FLOW_SPEC_IPV6, 40, 39, false), EINVAL, "reserved");
}

static int try_pair(uint16_t ethertype, uint16_t mask, uint32_t ip, uint32_t l4)
{
	uint8_t *value;

	no_specs();
	value = spec(IBV_FLOW_SPEC_ETH, 16);
	value[12] = (uint8_t)(ethertype >> 8);
	value[13] = (uint8_t)ethertype;
	value[16 + 12] = (uint8_t)(mask >> 8);
	value[16 + 13] = (uint8_t)mask;
	if (ip)
		spec(ip, ip == IBV_FLOW_SPEC_IPV4 ? 12 : 40);
	if (l4)
		spec(l4, 4);
	return try();
}

Test(verbs_flow_spec, specs_that_contradict_each_other)
{
	uint8_t *ip;

	cr_expect_eq(try_pair(0x0800, 0xffff, IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_UDP), 0);
	cr_expect_eq(try_pair(0x86dd, 0xffff, IBV_FLOW_SPEC_IPV6, IBV_FLOW_SPEC_TCP), 0);
	cr_expect_eq(try_pair(0x8847, 0xffff, IBV_FLOW_SPEC_IPV6, 0), 0, "MPLS");
	cr_expect_eq(try_pair(0x86dd, 0xffff, IBV_FLOW_SPEC_IPV4, 0), EINVAL);
	cr_expect_eq(try_pair(0x0800, 0xffff, IBV_FLOW_SPEC_IPV6, 0), EINVAL);
	cr_expect_eq(try_pair(0x0800, 0xff00, IBV_FLOW_SPEC_IPV4, 0), EINVAL, "partial mask");
	cr_expect_eq(try_pair(0x0806, 0, IBV_FLOW_SPEC_IPV4, 0), 0, "not masked");
	no_specs();
	ip = spec(IBV_FLOW_SPEC_IPV4, 12);
	ip[8] = 6;
	ip[12 + 8] = 0xff;
	spec(IBV_FLOW_SPEC_TCP, 4);
	cr_expect_eq(try(), 0);
	ip[8] = 17;
	cr_expect_eq(try(), EINVAL, "UDP in the IP header, and TCP");
}

Test(verbs_flow_spec, actions)
{
	action(IBV_FLOW_SPEC_ACTION_TAG, 0xffffff);
	cr_expect_eq(try(), 0);
	no_specs();
	action(IBV_FLOW_SPEC_ACTION_TAG, 0x1000000);
	cr_expect_eq(try(), EINVAL);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ACTION_TAG, 2), EINVAL);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ACTION_DROP, 0), 0);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ACTION_DROP, 4), EINVAL);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ACTION_HANDLE, 4), EINVAL);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ACTION_HANDLE, 8), EOPNOTSUPP);
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ACTION_COUNT, 4), EINVAL, "no such object");
	cr_expect_eq(try_type(IBV_FLOW_SPEC_ACTION_COUNT, 8), EINVAL);
}

/* ---- counters ---- */
struct data {
	struct mlx5_ib_create_flow head;
	struct mlx5_ib_flow_counters_data counters;
};

static struct mlx5_ib_flow_counters_desc desc[3] = { { IBV_COUNTER_PACKETS, 1 },
						     { IBV_COUNTER_BYTES, 0 },
						     { IBV_COUNTER_PACKETS, 1 } };

static void describe(uint32_t n)
{
	struct data d = { .head.ncounters_data = !!n, .counters.ncounters = n };

	d.counters.counters_data = (uintptr_t)desc;
	memcpy(drv, &d, sizeof(d));
	drv_len = n ? sizeof(d) : sizeof(d.head);
}

static uint32_t counters(void)
{
	uint32_t handle;
	struct raw r;

	raw_start(&r, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	raw_attr(&r, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0, 0);
	cr_assert_eq(raw_create(v.ctx, &r, &handle), 0);
	return handle;
}

static int destroy_counters(uint32_t handle)
{
	return raw_destroy(v.ctx, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY,
			   UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, handle);
}

static int read_counters(uint32_t handle, uint64_t *values, uint32_t n, uint32_t flags)
{
	struct raw r;

	raw_start(&r, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ);
	raw_attr(&r, UVERBS_ATTR_READ_COUNTERS_HANDLE, 0, handle);
	raw_attr(&r, UVERBS_ATTR_READ_COUNTERS_BUFF, n * 8, (uintptr_t)values);
	raw_attr(&r, UVERBS_ATTR_READ_COUNTERS_FLAGS, 4, flags);
	return raw_call(v.ctx, &r);
}

Test(verbs_flow_spec, counters_are_described_once)
{
	uint32_t c = counters(), rule, second;
	uint64_t values[4] = { 7, 7, 7, 7 };
	size_t len;

	action(IBV_FLOW_SPEC_ACTION_COUNT, c);
	len = sizeof(in.head) + in.head.flow_attr.size;
	cr_expect_eq(try(), EINVAL, "not described");
	describe(0);
	cr_expect_eq(try(), EINVAL, "not described");
	cr_expect_eq(read_counters(c, values, 4, 0), EINVAL, "without a rule");
	describe(3);
	cr_assert_eq(create(len, &rule), 0);
	cr_expect_eq(try(), EINVAL, "described twice");
	describe(0);
	cr_assert_eq(create(len, &second), 0);
	cr_expect_eq(destroy_counters(c), EBUSY);
	cr_expect_eq(read_counters(c, values, 1, 0), EINVAL, "index 1 is outside");
	cr_expect_eq(read_counters(c, values, 2, 2), EINVAL, "unknown flag");
	cr_expect_eq(read_counters(0xffffff, values, 2, 0), ENOENT);
	cr_expect_eq(read_counters(c, values, 3, IB_UVERBS_READ_COUNTERS_PREFER_CACHED), 0);
	cr_expect(!values[0] && !values[1] && !values[2] && values[3] == 7);
	cr_assert_eq(flow_destroy(v.ctx, rule), 0);
	cr_expect_eq(read_counters(c, values, 4, 0), 0, "one rule is left");
	cr_assert_eq(flow_destroy(v.ctx, second), 0);
	cr_expect_eq(try(), EINVAL, "the description ends with the last rule");
	describe(3);
	cr_expect_eq(try(), 0);
	action(IBV_FLOW_SPEC_ACTION_COUNT, c);
	cr_expect_eq(try(), EINVAL, "two specs of counters");
	cr_assert_eq(destroy_counters(c), 0);
	cr_expect_eq(destroy_counters(c), ENOENT);
}

Test(verbs_flow_spec, driver_data)
{
	struct data *d = (struct data *)(void *)drv;
	uint32_t c = counters();

	describe(0);
	cr_expect_eq(try(), 0);
	drv_len = 4;
	cr_expect_eq(try(), EOPNOTSUPP);
	action(IBV_FLOW_SPEC_ACTION_COUNT, c);
	describe(3);
	drv_len = 16;
	cr_expect_eq(try(), EINVAL, "the description is cut");
	describe(3);
	d->head.ncounters_data = 2;
	cr_expect_eq(try(), EINVAL);
	describe(0x2000);
	cr_expect_eq(try(), EINVAL, "too many");
	describe(1);
	d->counters.counters_data = 0xfff;
	cr_expect_eq(try(), EFAULT);
	desc[2].description = 2;
	describe(3);
	cr_expect_eq(try(), EINVAL, "unknown counter");
	describe(2);
	cr_expect_eq(try(), 0);
	cr_assert_eq(destroy_counters(c), 0);
}
