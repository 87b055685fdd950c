/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Reads struct doca_flow_match: refuses the fields that rules cannot match, and turns the others
 * into a match of gdk_eth_steer.h. A header that a match describes must be in the packet, so that a
 * field of TCP also requires IPv4, TCP and no fragment.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/flow/flow.h"

#define AT(field)   offsetof(struct doca_flow_match, field)
#define SIZE(field) sizeof(((const struct doca_flow_match *)NULL)->field)

#define REFUSED(field) \
	{ \
#field, AT(field), SIZE(field) \
	}
static const struct refused {
	const char *name;
	size_t at, len;
} refused[] = {
	REFUSED(meta.pkt_meta),
	REFUSED(meta.u32),
	REFUSED(parser_meta.inner_l3_type),
	REFUSED(parser_meta.inner_l4_type),
	REFUSED(parser_meta.outer_ip_fragmented),
	REFUSED(parser_meta.inner_ip_fragmented),
	REFUSED(outer.eth.src_mac),
	REFUSED(outer.eth.dst_mac),
	REFUSED(outer.ip6.src_ip),
	REFUSED(outer.ip6.dst_ip),
	REFUSED(outer.ip6.flow_label),
	REFUSED(outer.ip6.next_proto),
	REFUSED(outer.tcp.seq_num),
	REFUSED(outer.transport.src_port),
	REFUSED(outer.transport.dst_port),
	REFUSED(inner.eth.src_mac),
	REFUSED(inner.eth.dst_mac),
	REFUSED(inner.eth.type),
	REFUSED(inner.l3_type),
	REFUSED(inner.ip4.src_ip),
	REFUSED(inner.ip4.dst_ip),
	REFUSED(inner.ip4.next_proto),
	REFUSED(inner.ip6.src_ip),
	REFUSED(inner.ip6.dst_ip),
	REFUSED(inner.ip6.flow_label),
	REFUSED(inner.ip6.next_proto),
	REFUSED(inner.l4_type_ext),
	REFUSED(inner.udp.l4_port.src_port),
	REFUSED(inner.udp.l4_port.dst_port),
	REFUSED(inner.tcp.l4_port.src_port),
	REFUSED(inner.tcp.l4_port.dst_port),
	REFUSED(inner.tcp.flags),
	REFUSED(inner.tcp.seq_num),
	REFUSED(inner.transport.src_port),
	REFUSED(inner.transport.dst_port),
};

/* The supported fields. protocol: that of layer 4 which has the field, or 0. */
#define FIELD(field, member, protocol) \
	{ \
#field, AT(field), SIZE(field), offsetof(struct gdk_eth_fields, member), protocol \
	}
static const struct field {
	const char *name;
	size_t at, len, to;
	uint8_t protocol;
} fields[] = {
	FIELD(outer.eth.type, ether_type, 0),
	FIELD(outer.ip4.src_ip, src_ip, 0),
	FIELD(outer.ip4.dst_ip, dst_ip, 0),
	FIELD(outer.ip4.next_proto, ip_protocol, 0),
	FIELD(outer.udp.l4_port.src_port, src_port, IPPROTO_UDP),
	FIELD(outer.udp.l4_port.dst_port, dst_port, IPPROTO_UDP),
	FIELD(outer.tcp.l4_port.src_port, src_port, IPPROTO_TCP),
	FIELD(outer.tcp.l4_port.dst_port, dst_port, IPPROTO_TCP),
	FIELD(outer.tcp.flags, tcp_flags, IPPROTO_TCP),
};
#define FIELD_LEN_MAX 4

static const struct doca_flow_match zero;

static bool all_are(const void *p, size_t len, uint8_t byte)
{
	const uint8_t *b = p;

	while (len && *b == byte) {
		b++;
		len--;
	}
	return !len;
}

static const uint8_t *in(const struct doca_flow_match *match, size_t at)
{
	return (const uint8_t *)match + at;
}

static doca_error_t refuse(const struct doca_flow_match *match, const char *what)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(refused); i++)
		if (!all_are(in(match, refused[i].at), refused[i].len, 0))
			return GDK_FLOW_REFUSE("%s.%s", what, refused[i].name);
	return DOCA_SUCCESS;
}

static doca_error_t refuse_type(const char *name, int value, const char *expected)
{
	return GDK_FLOW_REFUSE("match.%s %d (expected %s)", name, value, expected);
}

/* ---- types of headers ---- */

/* Adds what a header in the packet requires: IPv4, and a protocol, unless that is 0. */
static const char *require(struct gdk_eth_match *match, uint8_t protocol)
{
	struct gdk_eth_match header = {
		.value.ether_type = htons(ETH_P_IP),
		.mask.ether_type = 0xffff,
	};

	if (protocol) {
		header.value.ip_protocol = protocol;
		header.mask.ip_protocol = 0xff;
		header.mask.fragment = 1;
	}
	return gdk_match_add(match, &header);
}

static doca_error_t contradiction(const char *field)
{
	if (!field)
		return DOCA_SUCCESS;
	gdk_err("invalid match: its fields require different values of %s", field);
	return DOCA_ERROR_INVALID_VALUE;
}

/* The types that the NIC parses; a mask can exclude them. */
static doca_error_t read_parser_meta(const struct doca_flow_match *m,
				     const struct doca_flow_match *mask, struct gdk_eth_match *to)
{
	static const uint8_t protocols[] = { [DOCA_FLOW_L4_META_TCP] = IPPROTO_TCP,
					     [DOCA_FLOW_L4_META_UDP] = IPPROTO_UDP,
					     [DOCA_FLOW_L4_META_ICMP] = IPPROTO_ICMP };
	const unsigned int l3 = m->parser_meta.outer_l3_type, l4 = m->parser_meta.outer_l4_type;
	const bool use_l3 = mask ? mask->parser_meta.outer_l3_type : l3;
	const bool use_l4 = mask ? mask->parser_meta.outer_l4_type : l4;
	const char *field = NULL;

	if (use_l3 && l3 != DOCA_FLOW_L3_META_IPV4)
		return refuse_type("parser_meta.outer_l3_type", (int)l3, "IPV4");
	if (use_l4 && (l4 >= GDK_ARRAY_SIZE(protocols) || !protocols[l4]))
		return refuse_type("parser_meta.outer_l4_type", (int)l4, "TCP, UDP or ICMP");
	if (use_l3)
		field = require(to, 0);
	if (use_l4 && !field)
		field = require(to, protocols[l4]);
	return contradiction(field);
}

/* The headers that a match describes, by their types and by their fields. */
static doca_error_t read_types(const struct doca_flow_match *m, const struct doca_flow_match *mask,
			       struct gdk_eth_match *to)
{
	static const uint8_t protocols[] = { [DOCA_FLOW_L4_TYPE_EXT_TCP] = IPPROTO_TCP,
					     [DOCA_FLOW_L4_TYPE_EXT_UDP] = IPPROTO_UDP };
	const unsigned int l3 = m->outer.l3_type, l4 = m->outer.l4_type_ext;
	const struct doca_flow_match *used = mask ? mask : m;
	const char *field = NULL;
	size_t i;

	if (l3 && l3 != DOCA_FLOW_L3_TYPE_IP4)
		return refuse_type("outer.l3_type", (int)l3, "IP4");
	if (l4 && (l4 >= GDK_ARRAY_SIZE(protocols)))
		return refuse_type("outer.l4_type_ext", (int)l4, "TCP or UDP");
	if (l3)
		field = require(to, 0);
	if (l4 && !field)
		field = require(to, protocols[l4]);
	for (i = 1; i < GDK_ARRAY_SIZE(fields) && !field; i++)
		if (!all_are(in(used, fields[i].at), fields[i].len, 0))
			field = require(to, fields[i].protocol);
	if (field)
		return contradiction(field);
	return read_parser_meta(m, mask, to);
}

/* ---- values ---- */

/* Reads one field. Without a mask, 0 matches all; with all bits set, entries have values. */
static const char *read_field(const struct field *f, const struct doca_flow_match *match,
			      const struct doca_flow_match *mask, bool may_vary,
			      struct gdk_flow_spec *spec)
{
	const uint8_t *value = in(match, f->at);
	const bool vary = may_vary && all_are(value, f->len, 0xff);
	struct gdk_eth_match one = { 0 };
	uint8_t *to_value = (uint8_t *)&one.value + f->to, *to_mask = (uint8_t *)&one.mask + f->to;
	size_t i;

	if (mask)
		memcpy(to_mask, in(mask, f->at), f->len);
	else if (!all_are(value, f->len, 0))
		memset(to_mask, 0xff, f->len);
	if (vary && !all_are(to_mask, f->len, 0)) {
		memcpy((uint8_t *)&spec->per_entry + f->to, to_mask, f->len);
		return NULL;
	}
	for (i = 0; i < f->len; i++)
		to_value[i] = value[i] & to_mask[i];
	return gdk_match_add(&spec->match, &one);
}

doca_error_t gdk_flow_read_spec(const struct doca_flow_match *match,
				const struct doca_flow_match *mask, bool may_vary,
				struct gdk_flow_spec *spec)
{
	doca_error_t err = DOCA_SUCCESS;
	const char *field = NULL;
	size_t i;

	if (match)
		err = refuse(match, "match");
	else
		match = &zero;
	if (!err && mask)
		err = refuse(mask, "match_mask");
	if (!err)
		err = read_types(match, mask, &spec->match);
	if (err)
		return err;
	for (i = 0; i < GDK_ARRAY_SIZE(fields) && !field; i++)
		field = read_field(&fields[i], match, mask, may_vary, spec);
	if (field)
		return contradiction(field);
	return gdk_match_check(&spec->match, "a pipe or an entry");
}

/* Whether the protocol of the match has a field. */
static bool has(const struct gdk_eth_match *match, const struct field *f)
{
	return !f->protocol || gdk_match_protocol(match) == f->protocol;
}

/* Reads the value of one field of an entry. */
static doca_error_t read_value(const struct gdk_flow_spec *spec, const struct field *f,
			       const struct doca_flow_match *match, struct gdk_eth_match *values)
{
	const uint8_t *vary = (const uint8_t *)&spec->per_entry + f->to;
	const uint8_t *fixed = (const uint8_t *)&spec->match.value + f->to;
	const uint8_t *mask = (const uint8_t *)&spec->match.mask + f->to;
	const uint8_t *value = in(match, f->at);
	struct gdk_eth_match one = { 0 };
	size_t i;

	if (!all_are(vary, f->len, 0)) {
		for (i = 0; i < f->len; i++)
			((uint8_t *)&one.value)[f->to + i] = value[i] & vary[i];
		memcpy((uint8_t *)&one.mask + f->to, vary, f->len);
		return contradiction(gdk_match_add(values, &one));
	}
	if (all_are(value, f->len, 0))
		return DOCA_SUCCESS;
	for (i = 0; i < f->len; i++)
		GDK_CHECK_ARG(!((value[i] ^ fixed[i]) & mask[i]),
			      "match.%s of an entry: the pipe has another value", f->name);
	return DOCA_SUCCESS;
}

doca_error_t gdk_flow_read_values(const struct gdk_flow_spec *spec,
				  const struct doca_flow_match *match, struct gdk_eth_match *values)
{
	struct gdk_eth_match types = spec->match;
	doca_error_t err;
	size_t i;

	*values = spec->match;
	if (!match) {
		GDK_CHECK_ARG(all_are(&spec->per_entry, sizeof(spec->per_entry), 0),
			      "match NULL of an entry: the pipe leaves fields to its entries");
		return DOCA_SUCCESS;
	}
	err = refuse(match, "match");
	if (!err)
		err = read_types(match, NULL, &types);
	for (i = 0; i < GDK_ARRAY_SIZE(fields) && !err; i++)
		if (has(&types, &fields[i]))
			err = read_value(spec, &fields[i], match, values);
	return err ? err : gdk_match_check(values, "an entry");
}
