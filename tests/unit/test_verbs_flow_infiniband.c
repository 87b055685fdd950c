/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * An InfiniBand port has no flow tables, so that it refuses rules.
 */
/* softnic-run: --link-layer infiniband */
#include "../lib/rawnic.h"

#include "../lib/flowcall.h"

Test(verbs_flow_infiniband, no_rules)
{
	static const uint8_t zero[MATCH_LEN];
	struct ibv_context *ctx = open_nic();
	uint32_t matcher, flow;
	struct raw r;

	if (!have_net_raw())
		cr_skip_test("flow rules need CAP_NET_RAW");
	matcher_call(&r, zero);
	cr_assert_eq(raw_create(ctx, &r, &matcher), 0);
	flow_call(&r, matcher, zero);
	raw_attr(&r, MLX5_IB_ATTR_CREATE_FLOW_FLAGS, 4, MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP);
	cr_assert_eq(raw_create(ctx, &r, &flow), EOPNOTSUPP);
	cr_assert_eq(matcher_destroy(ctx, matcher), 0);
	cr_assert_eq(ibv_close_device(ctx), 0);
}
