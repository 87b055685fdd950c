/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Matches of flow rules: checks of a mask, intersection of two matches, and the outer headers of
 * fte_match_param.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

#include "core/log/log.h"
#include "core/nic/prm.h"
#include "qp/flow/steer.h"

/* The fields, for messages. */
#define FIELD(name) \
	{ \
#name, offsetof(struct gdk_eth_fields, name), \
			sizeof(((struct gdk_eth_fields *)NULL)->name) \
	}
static const struct {
	const char *name;
	size_t at, len;
} fields[] = {
	FIELD(dst_mac),	    FIELD(src_mac),   FIELD(ether_type), FIELD(vlan_id),
	FIELD(src_ip),	    FIELD(dst_ip),    FIELD(src_port),	 FIELD(dst_port),
	FIELD(ip_protocol), FIELD(tcp_flags), FIELD(fragment),
};

int gdk_match_protocol(const struct gdk_eth_match *match)
{
	return match->mask.ip_protocol == 0xff ? match->value.ip_protocol : -1;
}

static bool has_ether_type(const struct gdk_eth_match *match, uint16_t type)
{
	return match->mask.ether_type == 0xffff && match->value.ether_type == htons(type);
}

bool gdk_match_ipv4(const struct gdk_eth_match *match)
{
	return has_ether_type(match, ETH_P_IP);
}

/* The first field of the value with a bit that the mask does not have, or NULL. */
static const char *beyond_mask(const struct gdk_eth_match *match)
{
	const uint8_t *value = (const uint8_t *)&match->value;
	const uint8_t *mask = (const uint8_t *)&match->mask;
	size_t i, b;

	for (i = 0; i < GDK_ARRAY_SIZE(fields); i++)
		for (b = fields[i].at; b < fields[i].at + fields[i].len; b++)
			if (value[b] & ~mask[b])
				return fields[i].name;
	return NULL;
}

doca_error_t gdk_match_check(const struct gdk_eth_match *match, const char *what)
{
	const struct gdk_eth_fields *m = &match->mask;
	const int protocol = gdk_match_protocol(match);
	const char *field = beyond_mask(match);
	const bool ipv4 = gdk_match_ipv4(match);

	GDK_CHECK_ARG(!field, "match of %s: %s has bits that its mask does not have", what, field);
	GDK_CHECK_ARG(!(ntohs(m->vlan_id) >> 12),
		      "match of %s: mask 0x%x of vlan_id (expected at most 0xfff)", what,
		      ntohs(m->vlan_id));
	GDK_CHECK_ARG(m->fragment <= 1, "match of %s: mask 0x%x of fragment (expected 0 or 1)",
		      what, m->fragment);
	GDK_CHECK_ARG(ipv4 || !(m->src_ip || m->dst_ip),
		      "match of %s: an address without ether_type 0x0800", what);
	GDK_CHECK_ARG(ipv4 || has_ether_type(match, ETH_P_IPV6) || !(m->ip_protocol || m->fragment),
		      "match of %s: ip_protocol or fragment without ether_type 0x0800 or 0x86dd",
		      what);
	GDK_CHECK_ARG(protocol == IPPROTO_UDP || protocol == IPPROTO_TCP ||
			      !(m->src_port || m->dst_port),
		      "match of %s: a port without ip_protocol UDP or TCP", what);
	GDK_CHECK_ARG(protocol == IPPROTO_TCP || !m->tcp_flags,
		      "match of %s: tcp_flags without ip_protocol TCP", what);
	return DOCA_SUCCESS;
}

const char *gdk_match_add(struct gdk_eth_match *match, const struct gdk_eth_match *from)
{
	const uint8_t *mask = (const uint8_t *)&from->mask;
	const uint8_t *value = (const uint8_t *)&from->value;
	uint8_t *to_mask = (uint8_t *)&match->mask, *to_value = (uint8_t *)&match->value;
	size_t i, b;

	for (i = 0; i < GDK_ARRAY_SIZE(fields); i++)
		for (b = fields[i].at; b < fields[i].at + fields[i].len; b++) {
			if ((to_value[b] ^ value[b]) & to_mask[b] & mask[b])
				return fields[i].name;
			to_mask[b] |= mask[b];
			to_value[b] |= value[b];
		}
	return NULL;
}

bool gdk_match_same(const struct gdk_eth_match *a, const struct gdk_eth_match *b)
{
	size_t i, at, len;

	for (i = 0; i < GDK_ARRAY_SIZE(fields); i++) {
		at = fields[i].at;
		len = fields[i].len;
		if (memcmp((const uint8_t *)&a->value + at, (const uint8_t *)&b->value + at, len) ||
		    memcmp((const uint8_t *)&a->mask + at, (const uint8_t *)&b->mask + at, len))
			return false;
	}
	return true;
}

static void set_mac(void *headers, uint32_t high, uint32_t low, const uint8_t mac[6])
{
	prm_set(headers, high, (uint64_t)mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3]);
	prm_set(headers, low, (uint64_t)mac[4] << 8 | mac[5]);
}

void gdk_match_fill(const struct gdk_eth_fields *f, bool udp, void *headers)
{
	uint8_t *h = headers;

	set_mac(h, PRM_FTE_DMAC_47_16, PRM_FTE_DMAC_15_0, f->dst_mac);
	set_mac(h, PRM_FTE_SMAC_47_16, PRM_FTE_SMAC_15_0, f->src_mac);
	prm_set(h, PRM_FTE_ETHERTYPE, ntohs(f->ether_type));
	prm_set(h, PRM_FTE_FIRST_VID, ntohs(f->vlan_id));
	prm_set(h, PRM_FTE_IP_PROTOCOL, f->ip_protocol);
	prm_set(h, PRM_FTE_FRAG, f->fragment);
	prm_set(h, PRM_FTE_TCP_FLAGS, f->tcp_flags);
	prm_set(h, udp ? PRM_FTE_UDP_SPORT : PRM_FTE_TCP_SPORT, ntohs(f->src_port));
	prm_set(h, udp ? PRM_FTE_UDP_DPORT : PRM_FTE_TCP_DPORT, ntohs(f->dst_port));
	prm_set(h + PRM_FTE_SRC_IP_AT, PRM_IPV4, ntohl(f->src_ip));
	prm_set(h + PRM_FTE_DST_IP_AT, PRM_IPV4, ntohl(f->dst_ip));
}

/* raw_fs_is_multicast() of Linux 6.12, drivers/infiniband/hw/mlx5/fs.c. */
bool gdk_match_multicast(const struct gdk_eth_match *match)
{
	const uint32_t top = 0xf0000000, multicast = 0xe0000000;

	return match->value.dst_mac[0] & 1 || ((ntohl(match->value.dst_ip) & top) == multicast &&
					       (ntohl(match->mask.dst_ip) & top) == multicast);
}
