/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Flow rules of the mlx5 driver: matchers (mlx5dv_create_flow_matcher) and rules
 * (mlx5dv_create_flow), with the checks of the kernel's drivers and of its flow tables; and
 * what they share with rules of ibv_create_flow (uverbs_flow_spec.c). Frames are matched by
 * their outer headers. Other criteria, other tables and flow actions are refused.
 */
#include "eth.h"
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#define A(id)	      ((uint16_t)(id))
#define PARAM_LEN     sizeof(struct mlx5_ib_match_params)
#define CRITERIA_ALL  0x7fu /* outer, misc, inner, misc 2 to 5 */
#define CRITERIA_OUT  0x01u
#define PRIORITY_LAST 15u
#define TAG_LIMIT     (1u << 24)
#define FLAGS_ALL \
	((uint32_t)MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS | \
	 (uint32_t)MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP)
/* Byte offsets in the outer headers of fte_match_param */
#define OFF_DMAC    0x08
#define OFF_L4_TYPE 0x18 /* 2 bits of a word, and IHL and TTL at its end; others reserved */
#define OFF_DST_IP4 0x3c

/* ---- shared with ibv_create_flow ---- */
int sn_flow_refuse(int rc, const char *why)
{
	sn_trace("flow: %s (errno %d)", why, -rc);
	return rc;
}

/* The kernel also tests the mask of an IPv4 address for the prefix 224/4, so that the full mask
 * does not select multicast. */
bool sn_flow_multicast(const uint8_t *match, const uint8_t *mask)
{
	return (match[OFF_DMAC] & mask[OFF_DMAC] & 1) ||
	       ((match[OFF_DST_IP4] & 0xf0) == 0xe0 && (mask[OFF_DST_IP4] & 0xf0) == 0xe0);
}

/*
 * Rules with the same order, mask and match are one entry of a flow table in the kernel: all
 * drop or none, and all have one tag. A rule without a tag takes the tag of the entry.
 */
static int check_same(const struct sn_dev *dev, struct sn_rule *from)
{
	const struct sn_rule *r;

	for (r = dev->rules; r && r->order <= from->order; r = r->next) {
		if (!sn_rule_same(r, from))
			continue;
		if (r->drop != from->drop || r->default_miss != from->default_miss)
			return sn_flow_refuse(-EEXIST,
					      "a rule with the same match has another action");
		if (from->set_tag && from->tag != r->tag)
			return sn_flow_refuse(-EEXIST,
					      "a rule with the same match has another tag");
		from->tag = r->tag;
		from->set_tag = r->set_tag;
	}
	return 0;
}

int sn_flow_add(struct sn_call *c, struct sn_rule *from, struct sn_rule **rule)
{
	int rc;

	if (c->dev->cfg.infiniband)
		return sn_flow_refuse(-EOPNOTSUPP, "an InfiniBand port has no flow tables");
	rc = check_same(c->dev, from);
	if (rc)
		return rc;
	*rule = sn_rule_create(c->dev, c->ctx, from);
	return *rule ? 0 : -ENOMEM;
}

/* ---- matchers ---- */
static bool any_bit(const uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i])
			return true;
	return false;
}

/* True if the mask has bits outside the outer headers, or reserved bits: the NIC would refuse
 * rules with it. */
static bool mask_beyond(const uint8_t *mask)
{
	return any_bit(mask + SN_MATCH_LEN, PARAM_LEN - SN_MATCH_LEN) || mask[OFF_L4_TYPE] & 0x3f ||
	       mask[OFF_L4_TYPE + 1] || mask[OFF_L4_TYPE + 2] & 0x0f;
}

static int matcher_table(struct sn_call *c, struct sn_matcher *m)
{
	struct ib_uverbs_attr *type = sn_attr(c, A(MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE));
	struct ib_uverbs_attr *flags = sn_attr(c, A(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS));
	uint64_t v = 0;

	if (type && flags)
		return sn_flow_refuse(-EINVAL, "matcher with both a table type and flags");
	if ((type && type->len != 8) || (flags && flags->len != 8 && flags->len != 4))
		return -EINVAL;
	m->ft_type = MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_RX;
	if (type) {
		v = sn_attr_num(c, type->attr_id);
		if (v > MLX5_IB_UAPI_FLOW_TABLE_TYPE_RDMA_TX)
			return -EINVAL;
		if (v > MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX)
			return sn_flow_refuse(-EOPNOTSUPP, "only tables NIC RX and NIC TX exist");
		m->ft_type = (uint8_t)v;
	} else if (flags) {
		v = sn_attr_num(c, flags->attr_id);
		if (v & ~(uint64_t)IBV_FLOW_ATTR_FLAGS_EGRESS)
			return -EINVAL;
		if (v)
			m->ft_type = MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX;
	}
	return 0;
}

static int matcher_priority(struct sn_call *c, struct sn_matcher *m)
{
	struct ib_uverbs_attr *a = sn_attr(c, A(MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE));

	if (!a || a->attr_data.enum_data.reserved)
		return -EINVAL;
	if (a->attr_data.enum_data.elem_id > MLX5_IB_FLOW_TYPE_MC_DEFAULT)
		return -EOPNOTSUPP;
	if (a->len != (a->attr_data.enum_data.elem_id ? 0 : sizeof(m->priority)))
		return -EINVAL;
	/* the kernel creates such a matcher, but refuses its rules */
	if (a->attr_data.enum_data.elem_id)
		return sn_flow_refuse(-EOPNOTSUPP, "matcher of a type other than NORMAL");
	sn_attr_in(c, a->attr_id, &m->priority, sizeof(m->priority));
	return 0;
}

static int matcher_fill(struct sn_call *c, struct sn_matcher *m)
{
	struct ib_uverbs_attr *mask = sn_attr(c, A(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK));
	struct ib_uverbs_attr *criteria = sn_attr(c, A(MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA));
	uint8_t full[PARAM_LEN];
	int rc;

	if (!mask || !mask->len || mask->len > sizeof(full) || !criteria || criteria->len != 1)
		return -EINVAL;
	sn_attr_in(c, mask->attr_id, full, sizeof(full));
	memcpy(m->mask, full, sizeof(m->mask));
	m->beyond = mask_beyond(full);
	m->criteria = (uint8_t)sn_attr_num(c, criteria->attr_id);
	rc = matcher_priority(c, m);
	return rc ? rc : matcher_table(c, m);
}

static int matcher_create(struct sn_call *c)
{
	struct sn_matcher *m = calloc(1, sizeof(*m));
	int rc = m ? matcher_fill(c, m) : -ENOMEM;

	if (!rc) {
		m->handle = sn_handle_add(c->dev, c->ctx, SN_MATCHER, m);
		rc = m->handle ? 0 : -ENOMEM;
	}
	if (rc) {
		free(m);
		return rc;
	}
	sn_attr_set_handle(c, A(MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE), m->handle);
	return 0;
}

int sn_matcher_destroy(struct sn_dev *dev, struct sn_matcher *matcher)
{
	if (matcher->users)
		return -EBUSY;
	sn_handle_del(dev, matcher->handle);
	free(matcher);
	return 0;
}

static int matcher_destroy(struct sn_call *c)
{
	struct sn_matcher *m = sn_attr_obj(c, A(MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE),
					   SN_MATCHER);

	return m ? sn_matcher_destroy(c->dev, m) : -ENOENT;
}

/* ---- rules ---- */
static int dest_qp(struct sn_call *c, struct sn_rule *r)
{
	uint16_t id = A(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP);
	void *raw = sn_attr_obj(c, id, SN_RAW);

	if (!raw)
		return sn_attr_obj(c, id, SN_QP)
			       ? sn_flow_refuse(-EINVAL, "destination is not a raw packet QP")
			       : -ENOENT;
	r->tir = sn_raw_tir(raw);
	return r->tir ? 0 : sn_flow_refuse(-EINVAL, "destination QP has no receive queue");
}

static int dest_devx(struct sn_call *c, struct sn_rule *r)
{
	uint16_t id = A(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX);
	enum sn_kind kind;

	r->tir = sn_attr_obj(c, id, SN_TIR);
	if (!r->tir)
		return sn_devx_obj(c, id, &kind)
			       ? sn_flow_refuse(-EINVAL, "destination is not a TIR of DEVX")
			       : -ENOENT;
	return 0;
}

/* Returns the flags, or a negative value: they are invalid. */
static int rule_flags(struct sn_call *c)
{
	struct ib_uverbs_attr *a = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_FLAGS));
	uint64_t flags = a ? sn_attr_num(c, a->attr_id) : 0;

	if ((a && a->len != 4 && a->len != 8) || flags & ~(uint64_t)FLAGS_ALL)
		return -EINVAL;
	if (flags == FLAGS_ALL)
		return sn_flow_refuse(-EINVAL, "flags drop and default miss together");
	return (int)flags;
}

/* Where frames go: a QP, a TIR, or what the flags say. */
static int rule_dest(struct sn_call *c, struct sn_rule *r)
{
	bool qp = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_DEST_QP));
	bool devx = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX));
	int flags = rule_flags(c), rc = 0;

	if (flags < 0)
		return flags;
	if (qp + devx + !!flags > 1)
		return sn_flow_refuse(-EINVAL, "more than one destination");
	if (qp)
		rc = dest_qp(c, r);
	else if (devx)
		rc = dest_devx(c, r);
	if (rc)
		return rc;
	if (r->egress && r->tir)
		return sn_flow_refuse(-EINVAL, "a rule of the transmit table cannot have a TIR");
	r->drop = flags & MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP;
	r->default_miss = flags & MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS;
	return 0;
}

static int rule_counter(struct sn_call *c, struct sn_rule *r)
{
	struct ib_uverbs_attr *a = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX));
	struct ib_uverbs_attr *o = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET));
	enum sn_kind kind;

	if ((a && (a->len != sizeof(uint32_t) || a->attr_data.reserved)) || (o && o->len < 4))
		return -EINVAL;
	if (!a)
		return 0;
	if (!sn_devx_obj(c, a->attr_id, &kind))
		return -ENOENT;
	r->counter = sn_attr_obj(c, a->attr_id, SN_FLOW_COUNTER);
	if (!r->counter)
		return sn_flow_refuse(-EINVAL, "not a flow counter");
	if (o && o->len != sizeof(r->counter_index))
		return sn_flow_refuse(-EINVAL, "more than one offset of a counter");
	if (o)
		sn_attr_in(c, o->attr_id, &r->counter_index, sizeof(r->counter_index));
	if (r->counter_index >= r->counter->n)
		return sn_flow_refuse(-EINVAL, "offset is outside the bulk of flow counters");
	return 0;
}

static int rule_tag(struct sn_call *c, struct sn_rule *r)
{
	struct ib_uverbs_attr *a = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_TAG));

	if (!a)
		return 0;
	if (a->len != sizeof(r->tag))
		return -EINVAL;
	sn_attr_in(c, a->attr_id, &r->tag, sizeof(r->tag));
	r->set_tag = true;
	return r->tag < TAG_LIMIT ? 0 : sn_flow_refuse(-EINVAL, "tag has more than 24 bits");
}

/* No flow action can be created, so that no handle of one is valid. */
static int rule_actions(struct sn_call *c)
{
	struct ib_uverbs_attr *a = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS));

	if (!a)
		return 0;
	if (a->len != 4 && a->len != 8)
		return -EINVAL;
	return sn_flow_refuse(-ENOENT, "flow actions are not supported");
}

/* Checks mask and value as the kernel's flow tables do. */
static int rule_match(struct sn_call *c, struct sn_rule *r)
{
	struct ib_uverbs_attr *a = sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE));
	const struct sn_matcher *m = r->matcher;
	uint8_t value[PARAM_LEN];
	size_t i;

	if (!a || !a->len || a->len > sizeof(value))
		return -EINVAL;
	sn_attr_in(c, a->attr_id, value, sizeof(value));
	if (m->criteria & ~CRITERIA_ALL ||
	    (!(m->criteria & CRITERIA_OUT) && any_bit(m->mask, sizeof(m->mask))))
		return sn_flow_refuse(-EINVAL, "the mask contradicts the criteria");
	if (m->beyond)
		return sn_flow_refuse(-EINVAL, "the mask has bits other than the outer headers'");
	for (i = 0; i < sizeof(value); i++)
		if (value[i] & ~(i < SN_MATCH_LEN ? m->mask[i] : 0))
			return sn_flow_refuse(-EINVAL, "the value has bits outside the mask");
	memcpy(r->match, value, sizeof(r->match));
	memcpy(r->mask, m->mask, sizeof(r->mask));
	return 0;
}

static int rule_order(struct sn_rule *r)
{
	uint16_t priority = r->matcher->priority;

	if (priority > PRIORITY_LAST)
		return sn_flow_refuse(-ENOMEM, "priority above 15");
	/* even priorities of the bypass namespace are for rules that do not trap */
	r->order = SN_ORDER_BYPASS + priority * 2u + 1;
	if (r->matcher->criteria & CRITERIA_OUT && sn_flow_multicast(r->match, r->mask))
		r->order = SN_ORDER_MULTICAST;
	return 0;
}

static int rule_fill(struct sn_call *c, struct sn_rule *r)
{
	int (*const steps[])(struct sn_call *, struct sn_rule *) = { rule_dest, rule_counter,
								     rule_tag, rule_match };
	size_t i;
	int rc = rule_actions(c);

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && !rc; i++)
		rc = steps[i](c, r);
	if (!rc)
		rc = rule_order(r);
	if (!rc && !r->egress && !r->tir && !r->drop && !r->default_miss)
		rc = sn_flow_refuse(-EINVAL, "no destination");
	return rc;
}

static int flow_create(struct sn_call *c)
{
	struct sn_rule from = { .matcher = sn_attr_obj(c, A(MLX5_IB_ATTR_CREATE_FLOW_MATCHER),
						       SN_MATCHER) };
	struct sn_rule *rule;
	int rc;

	if (!sn_attr(c, A(MLX5_IB_ATTR_CREATE_FLOW_MATCHER)))
		return -EINVAL;
	if (!from.matcher)
		return -ENOENT;
	if (!sn_net_raw())
		return sn_flow_refuse(-EPERM, "a rule requires CAP_NET_RAW");
	from.egress = from.matcher->ft_type == MLX5_IB_UAPI_FLOW_TABLE_TYPE_NIC_TX;
	rc = rule_fill(c, &from);
	if (!rc)
		rc = sn_flow_add(c, &from, &rule);
	if (rc)
		return rc;
	sn_trace("flow %u: order %u%s%s", rule->handle, (unsigned)rule->order,
		 rule->egress ? ", egress" : "", rule->drop ? ", drop" : "");
	sn_attr_set_handle(c, A(MLX5_IB_ATTR_CREATE_FLOW_HANDLE), rule->handle);
	return 0;
}

static int destroy_rule(struct sn_call *c, uint64_t handle)
{
	struct sn_rule *rule = sn_handle_get(c->dev, c->ctx, handle, SN_RULE);

	return rule ? sn_rule_destroy(c->dev, rule) : -ENOENT;
}

static int flow_destroy(struct sn_call *c)
{
	return destroy_rule(c, sn_attr_num(c, UVERBS_ATTR_DESTROY_FLOW_HANDLE));
}

static int dv_flow_destroy(struct sn_call *c)
{
	return destroy_rule(c, sn_attr_num(c, A(MLX5_IB_ATTR_DESTROY_FLOW_HANDLE)));
}

int sn_write_destroy_flow(struct sn_call *c)
{
	struct ib_uverbs_destroy_flow in;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	return in.comp_mask ? -EINVAL : destroy_rule(c, in.flow_handle);
}

const struct sn_method sn_methods_flow[] = {
	{ MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE, 0, 0x3f,
	  matcher_create },
	{ MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY, 0, 0x1,
	  matcher_destroy },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, 0, 0x3ff, flow_create },
	{ UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_DESTROY_FLOW, 0, 0x1, dv_flow_destroy },
	{ UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, 0x1, 0, flow_destroy },
	{ .fn = NULL },
};
