/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Flow rules in the root table of the NIC, by libmlx5: a matcher, a rule and a flow counter each.
 * The kernel allows them to processes with CAP_NET_RAW and destroys them with the process.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "qp/flow/steer.h"

/* A match in the form of libmlx5: only the outer headers. */
union params {
	struct mlx5dv_flow_match_parameters dv;
	uint64_t room[1 + PRM_FTE_LYR_2_4_LEN / sizeof(uint64_t)];
};

static const char *dev_name(const doca_dev_t *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

/* Logs that the kernel refuses a call, and returns its error. */
static doca_error_t refused(const doca_dev_t *dev, const char *action, int sys_err)
{
	if (sys_err == EPERM || sys_err == EACCES) {
		gdk_err("%s: the kernel refused to %s: %s; flow rules need CAP_NET_RAW",
			dev_name(dev), action, strerror(sys_err));
		return DOCA_ERROR_NOT_PERMITTED;
	}
	gdk_err("%s: the kernel refused to %s: %s", dev_name(dev), action, strerror(sys_err));
	switch (sys_err) {
	case ENOMEM:
		return DOCA_ERROR_NO_MEMORY;
	case EOPNOTSUPP:
		return DOCA_ERROR_NOT_SUPPORTED;
	case EEXIST:
		return DOCA_ERROR_ALREADY_EXIST;
	default:
		return DOCA_ERROR_DRIVER;
	}
}

static void fill(union params *p, const struct gdk_eth_fields *fields, bool udp)
{
	memset(p, 0, sizeof(*p));
	p->dv.match_sz = PRM_FTE_LYR_2_4_LEN;
	gdk_match_fill(fields, udp, p->dv.match_buf);
}

/* The identifier of a flow counter has 32 bits. */
static doca_error_t create_counter(struct gdk_rule *rule)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN];
	struct gdk_eth_obj *c = &rule->counter;
	char name[96];
	doca_error_t err;

	c->kind = "flow counter";
	c->destroy = GDK_CMD_DEALLOC_FLOW_COUNTER;
	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_ALLOC_FLOW_COUNTER);
	snprintf(name, sizeof(name), "%s: %s", dev_name(rule->dev), c->kind);
	err = gdk_devx_create(rule->dev->ctx, name, in, sizeof(in), out, sizeof(out), &c->obj);
	if (!err)
		c->number = (uint32_t)prm_get(out, PRM_ALLOC_FLOW_COUNTER_ID);
	return err;
}

static doca_error_t create_matcher(struct gdk_rule *rule, const struct gdk_eth_match *match,
				   uint32_t priority, bool udp)
{
	union params mask;
	struct mlx5dv_flow_matcher_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.priority = (uint16_t)priority,
		.match_criteria_enable = GDK_MATCH_OUTER_HEADERS,
		.match_mask = &mask.dv,
	};

	fill(&mask, &match->mask, udp);
	/* only tagged packets have a VLAN */
	if (match->mask.vlan_id)
		prm_set(mask.dv.match_buf, PRM_FTE_CVLAN_TAG, 1);
	errno = 0;
	rule->matcher = mlx5dv_create_flow_matcher(rule->dev->ctx, &attr);
	return rule->matcher ? DOCA_SUCCESS : refused(rule->dev, "create a flow matcher", errno);
}

static doca_error_t create_flow(struct gdk_rule *rule, const struct gdk_eth_match *match,
				struct mlx5dv_devx_obj *tir, bool udp)
{
	struct mlx5dv_flow_action_attr actions[2];
	union params value;
	size_t n = 1;

	actions[0].type = tir ? MLX5DV_FLOW_ACTION_DEST_DEVX : MLX5DV_FLOW_ACTION_DROP;
	actions[0].obj = tir;
	if (rule->counter.obj) {
		actions[n].type = MLX5DV_FLOW_ACTION_COUNTERS_DEVX;
		actions[n++].obj = rule->counter.obj;
	}
	fill(&value, &match->value, udp);
	if (match->mask.vlan_id)
		prm_set(value.dv.match_buf, PRM_FTE_CVLAN_TAG, 1);
	errno = 0;
	rule->flow = mlx5dv_create_flow(rule->matcher, &value.dv, n, actions);
	return rule->flow ? DOCA_SUCCESS : refused(rule->dev, "create a flow rule", errno);
}

static doca_error_t build(struct gdk_rule *rule, const struct gdk_eth_match *match,
			  uint32_t priority, bool counted)
{
	const bool udp = gdk_match_protocol(match) == IPPROTO_UDP;
	struct mlx5dv_devx_obj *tir = NULL;
	doca_error_t err = DOCA_SUCCESS;

	if (rule->rss)
		err = gdk_rss_tir(rule->rss, match, &tir);
	if (!err && counted)
		err = create_counter(rule);
	if (!err)
		err = create_matcher(rule, match, priority, udp);
	return err ? err : create_flow(rule, match, tir, udp);
}

/* Destroys the objects of a rule, and clears each one that is destroyed. */
static doca_error_t take_down(struct gdk_rule *rule)
{
	int ret;

	if (rule->flow) {
		ret = ibv_destroy_flow(rule->flow);
		if (ret)
			return refused(rule->dev, "destroy a flow rule", ret < 0 ? errno : ret);
		rule->flow = NULL;
	}
	if (rule->matcher) {
		ret = mlx5dv_destroy_flow_matcher(rule->matcher);
		if (ret)
			return refused(rule->dev, "destroy a flow matcher", ret < 0 ? errno : ret);
		rule->matcher = NULL;
	}
	return gdk_eth_destroy_obj(rule->dev, &rule->counter);
}

doca_error_t gdk_rule_create(doca_dev_t *dev, const struct gdk_eth_match *match, uint32_t priority,
			     struct gdk_rss *rss, bool counted, struct gdk_rule **rule)
{
	struct gdk_rule *r;
	doca_error_t err;

	if (gdk_match_multicast(match) && priority != GDK_ETH_PRIORITY_LAST) {
		gdk_err("priority %u of a rule for multicast: the kernel puts such a rule behind "
			"all others (expected %u)",
			priority, GDK_ETH_PRIORITY_LAST);
		return DOCA_ERROR_INVALID_VALUE;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		gdk_err("no memory for a flow rule");
		return DOCA_ERROR_NO_MEMORY;
	}
	r->dev = dev;
	r->rss = rss;
	err = build(r, match, priority, counted);
	if (err) {
		(void)take_down(r);
		free(r);
		return err;
	}
	if (rss)
		rss->rules++;
	atomic_fetch_add(&dev->users, 1);
	*rule = r;
	return DOCA_SUCCESS;
}

doca_error_t gdk_rule_destroy(struct gdk_rule *rule)
{
	doca_error_t err = take_down(rule);

	if (err)
		return err;
	if (rule->rss)
		rule->rss->rules--;
	atomic_fetch_sub(&rule->dev->users, 1);
	free(rule);
	return DOCA_SUCCESS;
}

doca_error_t gdk_rule_query(struct gdk_rule *rule, uint64_t *packets, uint64_t *bytes)
{
	uint8_t in[PRM_QUERY_FLOW_COUNTER_IN_LEN] = { 0 }, out[PRM_QUERY_FLOW_COUNTER_OUT_LEN];
	const uint8_t *count = out + PRM_QUERY_FLOW_COUNTER_AT;
	doca_error_t err;
	char name[32];

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_FLOW_COUNTER);
	prm_set(in, PRM_QUERY_FLOW_COUNTER_ID, rule->counter.number);
	snprintf(name, sizeof(name), "flow counter 0x%x", rule->counter.number);
	err = gdk_devx_query(rule->dev->ctx, rule->counter.obj, name, in, sizeof(in), out,
			     sizeof(out));
	if (err)
		return err;
	*packets += prm_get(count, PRM_TRAFFIC_COUNTER_PACKETS);
	*bytes += prm_get(count, PRM_TRAFFIC_COUNTER_OCTETS);
	return DOCA_SUCCESS;
}
