/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Parses received and sent Ethernet frames: VLAN tags, IPv4 with options, IPv6 with
 * extension headers, TCP, UDP. Fills the outer headers of fte_match_param (mlx5_ifc.h of
 * Linux 6.12) and verifies checksums (RFC 1071). A frame is untrusted input: a header that
 * does not fit is treated as absent. Packets that are fragments have no layer 4 here.
 */
#include <netinet/in.h>

#include "eng.h"
#include "eth.h"
#include "prm_nic.h"

#define ETH_HEAD  14u
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define TYPE_CTAG 0x8100
#define TYPE_STAG 0x88a8
#define IP6_HEAD  40u

/* Outer headers of fte_match_param */
#define M_SMAC_HI   0x00
#define M_SMAC_LO   NIC_F(0x04, 31, 16)
#define M_ETHERTYPE NIC_F(0x04, 15, 0)
#define M_DMAC_HI   0x08
#define M_DMAC_LO   NIC_F(0x0c, 31, 16)
#define M_TCI	    NIC_F(0x0c, 15, 0) /* priority, CFI and VLAN of the first tag */
#define M_PROTOCOL  NIC_F(0x10, 31, 24)
#define M_TOS	    NIC_F(0x10, 23, 16) /* DSCP and ECN */
#define M_CVLAN	    NIC_F(0x10, 15, 15)
#define M_SVLAN	    NIC_F(0x10, 14, 14)
#define M_FRAG	    NIC_F(0x10, 13, 13)
#define M_VERSION   NIC_F(0x10, 12, 9)
#define M_TCP_FLAGS NIC_F(0x10, 8, 0)
#define M_TCP_PORTS 0x14
#define M_L4_TYPE   NIC_F(0x18, 31, 30)
#define M_IHL	    NIC_F(0x18, 15, 12)
#define M_TTL	    NIC_F(0x18, 7, 0)
#define M_UDP_PORTS 0x1c
#define M_SRC	    0x20
#define M_DST	    0x30
enum { L4_TYPE_TCP = 1, L4_TYPE_UDP = 2 };

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* ---- checksums ---- */

/* Adds words in the byte order of the host and exchanges the bytes of the folded sum: RFC 1071,
 * 2(B). Four words at a time, for speed. */
uint64_t sn_csum_add(uint64_t sum, const uint8_t *p, uint32_t len)
{
	uint32_t w[4] = { 0 };
	uint64_t words = 0;

	for (; len >= sizeof(w); len -= sizeof(w), p += sizeof(w)) {
		memcpy(w, p, sizeof(w));
		words += (uint64_t)w[0] + w[1] + w[2] + w[3];
	}
	memset(w, 0, sizeof(w));
	memcpy(w, p, len);
	words += (uint64_t)w[0] + w[1] + w[2] + w[3];
	return sum + be16toh(sn_csum_fold(words));
}

uint16_t sn_csum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

uint64_t sn_csum_pseudo(const uint8_t *frame, const struct sn_parsed *p, uint32_t len)
{
	uint64_t sum = (uint64_t)len + p->l4;

	if (p->ip == 4)
		return sn_csum_add(sum, frame + p->l3_off + 12, 8);
	return sn_csum_add(sum, frame + p->l3_off + 8, 32);
}

/* ---- layer 4 ---- */

static void verify_l4(const uint8_t *frame, struct sn_parsed *p, uint32_t len)
{
	uint64_t sum = sn_csum_pseudo(frame, p, len);

	p->l4_ok = sn_csum_fold(sn_csum_add(sum, frame + p->l4_off, len)) == 0xffff;
	p->l4_bad = !p->l4_ok;
}

static void parse_tcp(const uint8_t *frame, uint32_t off, uint32_t len, struct sn_parsed *p)
{
	const uint8_t *tcp = frame + off;
	uint32_t head = len < 20 ? 0 : (tcp[12] >> 4) * 4u;

	if (head < 20 || head > len) {
		p->malformed = true;
		return;
	}
	p->l4 = IPPROTO_TCP;
	p->l4_off = off;
	p->tcp_flags = tcp[13];
	p->tcp_empty = head == len;
	memcpy(p->match + M_TCP_PORTS, tcp, 4);
	nic_set(p->match, M_TCP_FLAGS, (tcp[12] & 1u) << 8 | tcp[13]);
	nic_set(p->match, M_L4_TYPE, L4_TYPE_TCP);
}

/* Returns the length of the datagram, which may be less than len. */
static uint32_t parse_udp(const uint8_t *frame, uint32_t off, uint32_t len, struct sn_parsed *p)
{
	const uint8_t *udp = frame + off;
	uint32_t n = len < 8 ? 0 : get16(udp + 4);

	if (n < 8 || n > len) {
		p->malformed = true;
		return 0;
	}
	p->l4 = IPPROTO_UDP;
	p->l4_off = off;
	memcpy(p->match + M_UDP_PORTS, udp, 4);
	nic_set(p->match, M_L4_TYPE, L4_TYPE_UDP);
	return n;
}

/* verify: the addresses of the IP header are those of the pseudo header. */
static void parse_l4(const uint8_t *frame, uint32_t off, uint8_t proto, bool verify,
		     struct sn_parsed *p)
{
	uint32_t len = p->l3_off + p->l3_len - off;

	nic_set(p->match, M_PROTOCOL, proto);
	nic_set(p->match, M_FRAG, p->fragment);
	if (p->fragment)
		return;
	if (proto == IPPROTO_TCP)
		parse_tcp(frame, off, len, p);
	else if (proto == IPPROTO_UDP)
		len = parse_udp(frame, off, len, p);
	if (!p->l4 || !verify)
		return;
	p->l4_no_csum = p->l4 == IPPROTO_UDP && !get16(frame + off + 6);
	if (!p->l4_no_csum) {
		verify_l4(frame, p, len);
		return;
	}
	/* A sender of UDP over IPv4 may omit the checksum; over IPv6 it may not (RFC 8200, 8.1). */
	p->l4_ok = p->ip == 4;
	p->l4_bad = p->ip == 6;
	p->l4_no_csum = p->ip == 4;
}

/* ---- layer 3 ---- */

/*
 * The IP packet exceeds the frame: nothing is known of it but what rules match. rdma-core's
 * test_ipv6_spec_flow_traffic expects of hardware that rules match such a packet.
 */
static void reject_l3(struct sn_parsed *p)
{
	struct sn_parsed only = { .ethertype = p->ethertype,
				  .vlan = p->vlan,
				  .tci = p->tci,
				  .malformed = true };

	memcpy(only.match, p->match, sizeof(only.match));
	*p = only;
}

static void parse_ipv4(const uint8_t *frame, uint32_t off, uint32_t len, struct sn_parsed *p)
{
	const uint8_t *ip = frame + off;
	uint32_t head = len < 20 || ip[0] >> 4 != 4 ? 0 : (ip[0] & 15) * 4u;
	uint32_t total = head < 20 ? 0 : get16(ip + 2);

	if (head < 20 || total < head || head > len) {
		p->malformed = true;
		return;
	}
	p->ip = 4;
	p->l3_off = off;
	p->l3_len = total < len ? total : len;
	p->ip_options = head > 20;
	p->fragment = get16(ip + 6) & 0x3fff; /* offset and "more fragments" */
	p->l3_ok = sn_csum_fold(sn_csum_add(0, ip, head)) == 0xffff;
	p->l3_bad = !p->l3_ok;
	nic_set(p->match, M_VERSION, 4);
	nic_set(p->match, M_TOS, ip[1]);
	nic_set(p->match, M_IHL, ip[0] & 15);
	nic_set(p->match, M_TTL, ip[8]);
	memcpy(p->match + M_SRC + 12, ip + 12, 4);
	memcpy(p->match + M_DST + 12, ip + 16, 4);
	parse_l4(frame, off + head, ip[9], true, p);
	if (total > len)
		reject_l3(p);
}

/* Length of an extension header that begins with {next header, length}; 0: none of these. */
static uint32_t ipv6_ext_len(uint8_t type, const uint8_t *ext)
{
	switch (type) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
		return (ext[1] + 1u) * 8;
	case IPPROTO_FRAGMENT:
		return 8;
	case IPPROTO_AH:
		return (ext[1] + 2u) * 4;
	default:
		return 0;
	}
}

/* Skips the extension headers from off on, and parses what follows. */
static void parse_ipv6_rest(const uint8_t *frame, uint32_t off, uint8_t next, struct sn_parsed *p)
{
	static const uint8_t none[8];
	uint32_t end = p->l3_off + p->l3_len, len;
	bool routed = false;

	while (!p->fragment && ipv6_ext_len(next, none)) {
		p->ip_options = true;
		len = end - off < 8 ? 0 : ipv6_ext_len(next, frame + off);
		if (!len || len > end - off) {
			p->malformed = true;
			nic_set(p->match, M_PROTOCOL, next);
			return;
		}
		/* While segments are left, the final destination is in this header. */
		routed |= next == IPPROTO_ROUTING && frame[off + 3];
		p->fragment |= next == IPPROTO_FRAGMENT;
		next = frame[off];
		off += len;
	}
	parse_l4(frame, off, next, !routed, p);
}

static void parse_ipv6(const uint8_t *frame, uint32_t off, uint32_t len, struct sn_parsed *p)
{
	const uint8_t *ip = frame + off;
	uint32_t total = len < IP6_HEAD || ip[0] >> 4 != 6 ? 0 : IP6_HEAD + get16(ip + 4);

	if (!total) {
		p->malformed = true;
		return;
	}
	p->ip = 6;
	p->l3_off = off;
	p->l3_len = total < len ? total : len;
	p->l3_ok = true;
	nic_set(p->match, M_VERSION, 6);
	nic_set(p->match, M_TOS, (uint32_t)(ip[0] & 15) << 4 | ip[1] >> 4);
	nic_set(p->match, M_TTL, ip[7]);
	memcpy(p->match + M_SRC, ip + 8, 16);
	memcpy(p->match + M_DST, ip + 24, 16);
	parse_ipv6_rest(frame, off + IP6_HEAD, ip[6], p);
	if (total > len)
		reject_l3(p);
}

/* ---- layer 2 ---- */

static bool is_tag(uint16_t type)
{
	return type == TYPE_CTAG || type == TYPE_STAG;
}

/* Skips up to two VLAN tags. The match fields describe the first one. Returns the offset after
 * the last Ethernet type. */
static uint32_t parse_tags(const uint8_t *frame, uint32_t len, struct sn_parsed *p)
{
	uint16_t type = get16(frame + 12);
	uint32_t off = ETH_HEAD;

	if (is_tag(type) && len >= off + 4) {
		p->vlan = type == TYPE_CTAG;
		p->tci = p->vlan ? get16(frame + off) : 0;
		nic_set(p->match, M_TCI, get16(frame + off));
		nic_set(p->match, type == TYPE_CTAG ? M_CVLAN : M_SVLAN, 1);
		type = get16(frame + off + 2);
		off += 4;
		if (is_tag(type) && len >= off + 4) {
			type = get16(frame + off + 2);
			off += 4;
		}
	}
	p->ethertype = type;
	nic_set(p->match, M_ETHERTYPE, type);
	return off;
}

void sn_eth_parse(const uint8_t *frame, uint32_t len, struct sn_parsed *p)
{
	uint32_t off;

	memset(p, 0, sizeof(*p));
	if (len < ETH_HEAD) {
		p->malformed = true;
		return;
	}
	memcpy(p->match + M_SMAC_HI, frame + 6, 4);
	nic_set(p->match, M_SMAC_LO, get16(frame + 10));
	memcpy(p->match + M_DMAC_HI, frame, 4);
	nic_set(p->match, M_DMAC_LO, get16(frame + 4));
	off = p->l2_len = parse_tags(frame, len, p);
	if (p->ethertype == TYPE_IPV4)
		parse_ipv4(frame, off, len - off, p);
	else if (p->ethertype == TYPE_IPV6)
		parse_ipv6(frame, off, len - off, p);
	else
		p->malformed = is_tag(p->ethertype) && off + 4 > len;
}
