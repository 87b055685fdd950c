/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Flow rules of ibv_create_flow: checks the attributes and the list of specs as the kernel's
 * core and its mlx5 driver do, and converts them to the outer headers of fte_match_param.
 * Specs of inner headers, tunnels and flow actions are refused.
 */
#include "eth.h"
#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/ethernet.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>

#define SPECS_MAX     10u
#define SPEC_MAX      sizeof(struct ib_uverbs_flow_spec_ipv6) /* the largest one */
#define FLAGS_LIMIT   (1u << 3)
#define PRIORITY_LAST 15u
#define TAG_LIMIT     (1u << 24)

/* Fields of the outer headers of fte_match_param: byte offset of the 32-bit word, lowest bit,
 * width. */
enum field {
	ETHERTYPE = 0x04 << 16 | 0 << 8 | 16,
	FIRST_PRIO = 0x0c << 16 | 13 << 8 | 3,
	FIRST_CFI = 0x0c << 16 | 12 << 8 | 1,
	FIRST_VID = 0x0c << 16 | 0 << 8 | 12,
	IP_NEXT = 0x10 << 16 | 24 << 8 | 8,
	IP_DSCP = 0x10 << 16 | 18 << 8 | 6,
	IP_ECN = 0x10 << 16 | 16 << 8 | 2,
	CVLAN_TAG = 0x10 << 16 | 15 << 8 | 1,
	IP_VERSION = 0x10 << 16 | 9 << 8 | 4,
	TCP_SPORT = 0x14 << 16 | 16 << 8 | 16,
	TCP_DPORT = 0x14 << 16 | 0 << 8 | 16,
	UDP_SPORT = 0x1c << 16 | 16 << 8 | 16,
	UDP_DPORT = 0x1c << 16 | 0 << 8 | 16,
};
#define OFF_SMAC 0x00
#define OFF_DMAC 0x08
#define OFF_SRC	 0x20
#define OFF_DST	 0x30

struct eth {
	uint8_t dst[6], src[6];
	uint16_t type, tag;
};

struct ip4 {
	uint32_t src, dst;
	uint8_t proto, tos, ttl, flags;
};

struct ip6 {
	uint8_t src[16], dst[16];
	uint32_t label;
	uint8_t proto, tclass, hops, reserved;
};

struct ports {
	uint16_t dst, src;
};

/* The value or the mask of a spec; zeros after the bytes that the caller gave. */
union filter {
	struct eth eth;
	struct ip4 ip4;
	struct ip6 ip6;
	struct ports ports;
	uint8_t raw[40];
};

/* One call: the rule that it fills, and what the checks of the whole list need. */
struct list {
	struct sn_call *c;
	struct sn_rule *rule;
	void *counters;
	bool first_multicast; /* the first spec selects multicast only */
	bool has_type, type_exact;
	uint16_t ethertype;
	uint8_t ip; /* 4, 6: version of the IP spec; 0: none */
};

static uint32_t field_get(const uint8_t *headers, enum field f)
{
	uint32_t word;

	memcpy(&word, headers + (f >> 16), 4);
	return ntohl(word) >> (f >> 8 & 0xff) & ((1u << (f & 0xff)) - 1);
}

static void field_put(uint8_t *headers, enum field f, uint32_t value)
{
	uint32_t mask = ((1u << (f & 0xff)) - 1) << (f >> 8 & 0xff), word;

	memcpy(&word, headers + (f >> 16), 4);
	word = htonl((ntohl(word) & ~mask) | (value << (f >> 8 & 0xff) & mask));
	memcpy(headers + (f >> 16), &word, 4);
}

static void set(struct sn_rule *r, enum field f, uint32_t mask, uint32_t value)
{
	field_put(r->mask, f, mask);
	field_put(r->match, f, value);
}

static void set_bytes(struct sn_rule *r, unsigned off, const void *mask, const void *value,
		      size_t len)
{
	memcpy(r->mask + off, mask, len);
	memcpy(r->match + off, value, len);
}

/* An IP spec and a spec of layer 4 must agree on the protocol. */
static int set_proto(struct sn_rule *r, uint8_t mask, uint8_t value)
{
	if (!mask)
		return 0;
	if (!field_get(r->mask, IP_NEXT)) {
		set(r, IP_NEXT, mask, value);
		return 0;
	}
	return field_get(r->mask, IP_NEXT) == mask && field_get(r->match, IP_NEXT) == value
		       ? 0
		       : sn_flow_refuse(-EINVAL, "specs with different IP protocols");
}

static void set_tos(struct sn_rule *r, uint8_t mask, uint8_t value)
{
	set(r, IP_ECN, mask & 3, value & 3);
	set(r, IP_DSCP, mask >> 2, value >> 2);
}

/* ---- filters ---- */
static int add_eth(struct list *l, const union filter *v, const union filter *m)
{
	uint16_t tag = ntohs(v->eth.tag), tag_mask = ntohs(m->eth.tag);
	struct sn_rule *r = l->rule;

	set_bytes(r, OFF_DMAC, m->eth.dst, v->eth.dst, 6);
	set_bytes(r, OFF_SMAC, m->eth.src, v->eth.src, 6);
	if (tag_mask) {
		set(r, CVLAN_TAG, 1, 1);
		set(r, FIRST_VID, tag_mask, tag);
		set(r, FIRST_CFI, tag_mask >> 12, tag >> 12);
		set(r, FIRST_PRIO, tag_mask >> 13, tag >> 13);
	}
	set(r, ETHERTYPE, ntohs(m->eth.type), ntohs(v->eth.type));
	if (m->eth.type) {
		l->has_type = true;
		l->type_exact = m->eth.type == 0xffff;
		l->ethertype = ntohs(v->eth.type);
	}
	return 0;
}

static int add_ip4(struct list *l, const union filter *v, const union filter *m)
{
	struct sn_rule *r = l->rule;

	if (m->ip4.ttl || m->ip4.flags)
		return sn_flow_refuse(-EOPNOTSUPP, "IPv4 TTL and flags are not matched");
	l->ip = 4;
	set(r, IP_VERSION, 0xf, 4);
	set_bytes(r, OFF_SRC + 12, &m->ip4.src, &v->ip4.src, 4);
	set_bytes(r, OFF_DST + 12, &m->ip4.dst, &v->ip4.dst, 4);
	set_tos(r, m->ip4.tos, v->ip4.tos);
	return set_proto(r, m->ip4.proto, v->ip4.proto);
}

static int add_ip6(struct list *l, const union filter *v, const union filter *m)
{
	struct sn_rule *r = l->rule;

	if ((ntohl(m->ip6.label) | ntohl(v->ip6.label)) >> 20)
		return sn_flow_refuse(-EINVAL, "IPv6 flow label has more than 20 bits");
	if (m->ip6.hops || m->ip6.label)
		return sn_flow_refuse(-EOPNOTSUPP, "IPv6 hop limit and flow label are not matched");
	l->ip = 6;
	set(r, IP_VERSION, 0xf, 6);
	set_bytes(r, OFF_SRC, m->ip6.src, v->ip6.src, 16);
	set_bytes(r, OFF_DST, m->ip6.dst, v->ip6.dst, 16);
	set_tos(r, m->ip6.tclass, v->ip6.tclass);
	return set_proto(r, m->ip6.proto, v->ip6.proto);
}

static int add_tcp(struct list *l, const union filter *v, const union filter *m)
{
	set(l->rule, TCP_SPORT, ntohs(m->ports.src), ntohs(v->ports.src));
	set(l->rule, TCP_DPORT, ntohs(m->ports.dst), ntohs(v->ports.dst));
	return set_proto(l->rule, 0xff, IPPROTO_TCP);
}

static int add_udp(struct list *l, const union filter *v, const union filter *m)
{
	set(l->rule, UDP_SPORT, ntohs(m->ports.src), ntohs(v->ports.src));
	set(l->rule, UDP_DPORT, ntohs(m->ports.dst), ntohs(v->ports.dst));
	return set_proto(l->rule, 0xff, IPPROTO_UDP);
}

static int unsupported(struct list *l, const union filter *v, const union filter *m)
{
	(void)l, (void)v, (void)m;
	return sn_flow_refuse(-EOPNOTSUPP, "specs of ESP, tunnels and MPLS are not matched");
}

static const struct {
	uint32_t type;
	size_t len; /* of value and of mask, in the kernel's structure */
	int (*add)(struct list *l, const union filter *v, const union filter *m);
} filters[] = {
	{ IBV_FLOW_SPEC_ETH, 16, add_eth },
	{ IBV_FLOW_SPEC_IPV4, 12, add_ip4 },
	{ IBV_FLOW_SPEC_IPV6, 39, add_ip6 },
	{ IBV_FLOW_SPEC_TCP, 4, add_tcp },
	{ IBV_FLOW_SPEC_UDP, 4, add_udp },
	{ IBV_FLOW_SPEC_ESP, 8, unsupported },
	{ IBV_FLOW_SPEC_GRE, 8, unsupported },
	{ IBV_FLOW_SPEC_MPLS, 4, unsupported },
	{ IBV_FLOW_SPEC_VXLAN_TUNNEL, 4, unsupported },
};

/*
 * Copies value and mask of a spec. The caller's structure may be shorter or longer than the
 * kernel's; what is longer must be zero in the mask.
 */
static int take_filter(const struct ib_uverbs_flow_spec_hdr *h, size_t known, union filter *v,
		       union filter *m)
{
	const uint8_t *at = (const uint8_t *)(h + 1);
	size_t len = h->size < sizeof(*h) ? 0 : (h->size - sizeof(*h)) / 2, i;

	if (!len || len % 4)
		return sn_flow_refuse(-EINVAL, "spec of a wrong size");
	for (i = known; i < len; i++)
		if (at[len + i])
			return sn_flow_refuse(-EINVAL, "mask has bits after the last field");
	memset(v, 0, sizeof(*v));
	memset(m, 0, sizeof(*m));
	memcpy(v, at, len < known ? len : known);
	memcpy(m, at + len, len < known ? len : known);
	return 0;
}

static int add_filter(struct list *l, const struct ib_uverbs_flow_spec_hdr *h)
{
	union filter v, m;
	size_t i;
	int rc;

	for (i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		if (filters[i].type != (h->type & ~(uint32_t)IBV_FLOW_SPEC_INNER))
			continue;
		rc = take_filter(h, filters[i].len, &v, &m);
		if (rc)
			return rc;
		if (h->type & IBV_FLOW_SPEC_INNER)
			return h->type == (IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_VXLAN_TUNNEL)
				       ? -EINVAL
				       : sn_flow_refuse(-EOPNOTSUPP,
							"inner headers are not matched");
		return filters[i].add(l, &v, &m);
	}
	return sn_flow_refuse(-EINVAL, "unknown spec");
}

/* ---- actions ---- */
static int add_tag(struct list *l, const struct ib_uverbs_flow_spec_action_tag *s)
{
	if (s->size != sizeof(*s))
		return sn_flow_refuse(-EINVAL, "spec of a wrong size");
	if (s->tag_id >= TAG_LIMIT)
		return sn_flow_refuse(-EINVAL, "tag has more than 24 bits");
	l->rule->tag = s->tag_id;
	l->rule->set_tag = true;
	return 0;
}

static int add_count(struct list *l, const struct ib_uverbs_flow_spec_action_count *s)
{
	if (s->size != sizeof(*s))
		return sn_flow_refuse(-EINVAL, "spec of a wrong size");
	if (l->counters)
		return sn_flow_refuse(-EINVAL, "more than one spec of counters");
	l->counters = sn_handle_get(l->c->dev, l->c->ctx, s->handle, SN_COUNTERS);
	return l->counters ? 0 : sn_flow_refuse(-EINVAL, "not a counters object");
}

static int add_action(struct list *l, const struct ib_uverbs_flow_spec_hdr *h)
{
	switch (h->type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		return add_tag(l, (const struct ib_uverbs_flow_spec_action_tag *)h);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return add_count(l, (const struct ib_uverbs_flow_spec_action_count *)h);
	case IBV_FLOW_SPEC_ACTION_DROP:
		if (h->size != sizeof(struct ib_uverbs_flow_spec_action_drop))
			return sn_flow_refuse(-EINVAL, "spec of a wrong size");
		l->rule->drop = true;
		return 0;
	case IBV_FLOW_SPEC_ACTION_HANDLE: /* no flow action can be created */
		if (h->size != sizeof(struct ib_uverbs_flow_spec_action_handle))
			return -EOPNOTSUPP;
		return sn_flow_refuse(-EINVAL, "flow actions are not supported");
	}
	return sn_flow_refuse(-EINVAL, "unknown spec");
}

/* ---- the list ---- */

/* True if the rule is for multicast only, by its first spec, as the kernel determines it. */
static bool spec_multicast(const struct sn_rule *r, uint32_t type)
{
	if (type == IBV_FLOW_SPEC_IPV4)
		return (r->match[OFF_DST + 12] & 0xf0) == 0xe0;
	return type == IBV_FLOW_SPEC_ETH && r->mask[OFF_DMAC] & r->match[OFF_DMAC] & 1;
}

/* An Ethertype and an IP spec must agree. */
static int check_ethertype(const struct list *l)
{
	if (!l->has_type || !l->ip)
		return 0;
	return l->type_exact && (l->ethertype == (l->ip == 4 ? ETHERTYPE_IP : ETHERTYPE_IPV6) ||
				 l->ethertype == 0x8847 || l->ethertype == 0x8848)
		       ? 0
		       : sn_flow_refuse(-EINVAL, "Ethertype contradicts the IP spec");
}

static int parse_list(struct list *l, const uint8_t *specs, const struct ib_uverbs_flow_attr *attr)
{
	/* a copy, because the size of a spec may be odd */
	union {
		struct ib_uverbs_flow_spec_hdr head;
		uint64_t align[SPECS_MAX * SPEC_MAX / 8];
	} spec;
	const struct ib_uverbs_flow_spec_hdr *h = &spec.head;
	size_t left = attr->size;
	unsigned i;
	int rc;

	for (i = 0; i < attr->num_of_specs; i++) {
		memcpy(&spec, specs + attr->size - left, left);
		if (left < sizeof(*h) || left < h->size)
			return sn_flow_refuse(-EINVAL, "list of specs ends early");
		if (h->reserved)
			return sn_flow_refuse(-EINVAL, "reserved field of a spec");
		rc = h->type >= IBV_FLOW_SPEC_ACTION_TAG ? add_action(l, h) : add_filter(l, h);
		if (rc)
			return rc;
		if (!i)
			l->first_multicast = spec_multicast(l->rule, h->type);
		left -= h->size;
	}
	return left ? sn_flow_refuse(-EINVAL, "bytes after the last spec") : check_ethertype(l);
}

/* ---- the call ---- */
static bool leftovers(const struct ib_uverbs_flow_attr *a)
{
	return a->type == IBV_FLOW_ATTR_ALL_DEFAULT || a->type == IBV_FLOW_ATTR_MC_DEFAULT;
}

/* The checks of the kernel's core. */
static int check_core(const struct ib_uverbs_create_flow *in)
{
	const struct ib_uverbs_flow_attr *a = &in->flow_attr;

	if (in->comp_mask)
		return -EINVAL;
	if (!sn_net_raw())
		return sn_flow_refuse(-EPERM, "a rule requires CAP_NET_RAW");
	if (a->flags >= FLAGS_LIMIT || (a->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP && leftovers(a)) ||
	    a->num_of_specs > SPECS_MAX || a->size > a->num_of_specs * SPEC_MAX || a->reserved[0] ||
	    a->reserved[1] || a->port != 1)
		return sn_flow_refuse(-EINVAL, "invalid attributes");
	return 0;
}

/* The checks of the mlx5 driver, including those of the driver data. */
static int check_driver(struct sn_call *c, const struct ib_uverbs_flow_attr *a)
{
	struct ib_uverbs_attr *uhw = sn_attr(c, UVERBS_ATTR_UHW_IN);
	struct mlx5_ib_create_flow drv;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	if (uhw && uhw->len && uhw->len < sizeof(drv))
		return -EOPNOTSUPP;
	if (drv.ncounters_data > 1 ||
	    (drv.ncounters_data &&
	     uhw->len < sizeof(drv) + sizeof(struct mlx5_ib_flow_counters_data)))
		return sn_flow_refuse(-EINVAL, "driver data of counters");
	if (a->priority > PRIORITY_LAST)
		return sn_flow_refuse(-ENOMEM, "priority above 15");
	if (a->flags & 1 || (a->flags & IBV_FLOW_ATTR_FLAGS_EGRESS && leftovers(a)))
		return sn_flow_refuse(-EINVAL, "invalid flags");
	if (a->type > IBV_FLOW_ATTR_SNIFFER)
		return sn_flow_refuse(-EOPNOTSUPP, "unknown type of rule");
	return 0;
}

static void set_mc_bit(struct sn_rule *r, bool multicast)
{
	r->mask[OFF_DMAC] = 1;
	r->match[OFF_DMAC] = multicast;
}

/* Creates two rules of one handle, that of *rule. */
static int add_pair(struct list *l, struct sn_rule **rule, struct sn_rule *first,
		    struct sn_rule *second)
{
	struct sn_rule *other;
	int rc = sn_flow_add(l->c, first, rule);

	if (rc)
		return rc;
	rc = sn_flow_add(l->c, second, &other);
	if (rc) {
		sn_rule_destroy(l->c->dev, *rule);
		return rc;
	}
	other->partner = *rule;
	(*rule)->partner = other;
	return 0;
}

/* Rules for what is left are two, for multicast and for unicast; the specs of the call do not
 * apply to them. */
static int add_leftovers(struct list *l, struct sn_rule **rule, bool all)
{
	struct sn_rule multicast = { .order = SN_ORDER_LEFTOVERS, .tir = l->rule->tir };
	struct sn_rule unicast = multicast;

	set_mc_bit(&multicast, true);
	set_mc_bit(&unicast, false);
	return all ? add_pair(l, rule, &multicast, &unicast) : sn_flow_add(l->c, &multicast, rule);
}

/* A sniffer gets copies of received and of sent frames. */
static int add_sniffer(struct list *l, struct sn_rule **rule)
{
	struct sn_rule rx = { .order = SN_ORDER_SNIFFER, .tir = l->rule->tir, .sniffer = true };
	struct sn_rule tx = rx;

	tx.egress = true;
	return add_pair(l, rule, &rx, &tx);
}

static int add_normal(struct list *l, struct sn_rule **rule, const struct ib_uverbs_flow_attr *a)
{
	bool trap = !(a->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
	struct sn_rule *r = l->rule;
	int rc;

	r->order = trap && l->first_multicast ? SN_ORDER_MULTICAST
					      : SN_ORDER_BYPASS + a->priority * 2u + trap;
	r->egress = a->flags & IBV_FLOW_ATTR_FLAGS_EGRESS;
	r->sniffer = !trap && !r->drop;
	if (r->drop || r->egress) {
		r->held = r->tir;
		r->tir = NULL;
	}
	if (l->counters) {
		rc = sn_counters_bind(l->c, l->counters, &r->counter);
		if (rc)
			return rc;
	}
	return sn_flow_add(l->c, r, rule);
}

static int add_rule(struct list *l, struct sn_rule **rule, const struct ib_uverbs_flow_attr *a)
{
	if (leftovers(a))
		return add_leftovers(l, rule, a->type == IBV_FLOW_ATTR_ALL_DEFAULT);
	if (a->type == IBV_FLOW_ATTR_SNIFFER)
		return add_sniffer(l, rule);
	return add_normal(l, rule, a);
}

/* Finds the TIR of the QP. */
static int find_tir(struct sn_call *c, uint32_t qp, struct sn_rule *r)
{
	void *raw = sn_handle_get(c->dev, c->ctx, qp, SN_RAW);

	if (!raw)
		return sn_flow_refuse(-EINVAL, "not a raw packet QP");
	r->tir = sn_raw_tir(raw);
	return r->tir ? 0 : sn_flow_refuse(-EINVAL, "the QP has no receive queue");
}

/* in: the request, and the specs after it. */
static int create(struct sn_call *c, const struct ib_uverbs_create_flow *in, size_t len,
		  struct sn_rule **rule)
{
	const struct ib_uverbs_flow_attr *a = &in->flow_attr;
	const uint8_t *specs = (const uint8_t *)(in + 1);
	struct sn_rule from = { .order = 0 };
	struct list l = { .c = c, .rule = &from };
	int rc = check_core(in);

	if (!rc && len < sizeof(*in) + a->size)
		rc = -ENOSPC;
	for (len = rc ? 0 : len - sizeof(*in); !rc && len > a->size; len--)
		if (specs[len - 1])
			return -EOPNOTSUPP;
	if (!rc)
		rc = find_tir(c, in->qp_handle, &from);
	if (!rc)
		rc = parse_list(&l, specs, a);
	if (!rc)
		rc = check_driver(c, a);
	return rc ? rc : add_rule(&l, rule, a);
}

int sn_write_create_flow(struct sn_call *c)
{
	struct ib_uverbs_create_flow_resp resp = { .comp_mask = 0 };
	struct ib_uverbs_create_flow *in;
	struct sn_rule *rule;
	size_t len;
	int rc;

	in = sn_attr_dup(c, UVERBS_ATTR_CORE_IN, &len);
	if (!in)
		return -ENOMEM;
	rc = create(c, in, len, &rule);
	free(in);
	if (rc)
		return rc;
	sn_trace("flow %u: order %u%s%s", rule->handle, (unsigned)rule->order,
		 rule->egress ? ", egress" : "", rule->drop ? ", drop" : "");
	resp.flow_handle = rule->handle;
	rc = sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
	if (rc)
		sn_rule_destroy(c->dev, rule);
	return rc;
}
