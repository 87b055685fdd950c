/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Makes Ethernet frames as an input describes: with VLAN tags, IPv4 with options, IPv6 with
 * extension headers, TCP or UDP, and with mistakes in any of them. */
#include <stdlib.h>

#include "eth_rig.h"

#define TAG_C 0x8100
#define TAG_S 0x88a8

struct maker {
	uint8_t *frame;
	uint32_t len;
	struct fuzz_in *in;
	uint32_t l3, l4; /* offsets; 0: absent */
	uint8_t ip, proto;
};

/* Bits of the first byte of a description: tags, network layer, and what follows. */
enum {
	HOW_TAGS = 0x03,
	HOW_IP = 0x0c, /* 0 IPv4, 1 IPv6, 2 IPv4 with options, 3 other */
	HOW_UDP = 0x10,
	HOW_LONG = 0x20,    /* payload of 16 bits, otherwise 8 */
	HOW_SUMS = 0x40,    /* correct checksums */
	HOW_DAMAGED = 0x80, /* bytes are changed, or the frame is cut */
};

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put_mac(uint8_t mac[6], uint8_t which)
{
	struct in6_addr ip = sn_dev->cfg.ip;

	ip.s6_addr[15] ^= which & 3;
	sn_mac_of_ip(&ip, mac);
	if (which & 4)
		memset(mac, 0xff, 6);
	else if (which & 8)
		mac[0] |= 1;
}

static void put_eth(struct maker *m, uint8_t how)
{
	uint8_t macs = fuzz_u8(m->in), i;

	put_mac(m->frame, macs & 15);
	put_mac(m->frame + 6, macs >> 4 & 3);
	m->len = 12;
	for (i = 0; i < (how & HOW_TAGS); i++) {
		put16(m->frame + m->len, macs & 0x80 ? TAG_S : TAG_C);
		put16(m->frame + m->len + 2, fuzz_u8(m->in) * 0x101u);
		m->len += 4;
	}
}

static void put_ipv4(struct maker *m, uint32_t options, uint8_t proto)
{
	uint8_t *p = m->frame + m->l3;

	memset(p, 0, 20 + options);
	p[0] = (uint8_t)(0x45 + options / 4);
	p[6] = 0x40;
	p[8] = 64;
	p[9] = proto;
	sn_put32(p + 12, 0x0a000001 + fuzz_u8(m->in) % 4);
	sn_put32(p + 16, 0x0a000002);
	m->len += 20 + options;
}

/* An extension header of 8 bytes, which names the next one, or the fragment header. */
static void put_ext(struct maker *m, uint8_t *next, uint8_t how)
{
	static const uint8_t types[4] = { 0, 43, 44, 60 };

	*next = types[how & 3];
	memset(m->frame + m->len, 0, 8);
	m->frame[m->len] = m->proto;
	if (how & 4)
		m->frame[m->len + 1] = how >> 3;
	m->len += 8;
}

static void put_ipv6(struct maker *m)
{
	uint8_t *p = m->frame + m->l3, how = fuzz_u8(m->in);

	memset(p, 0, 40);
	p[0] = 0x60;
	p[6] = m->proto;
	p[7] = 64;
	p[8] = p[24] = 0xfd;
	p[23] = how & 3;
	p[39] = 9;
	m->len += 40;
	if (how & 0x80)
		put_ext(m, p + 6, how >> 2);
}

static void put_l3(struct maker *m, uint8_t how)
{
	static const uint16_t types[4] = { 0x0800, 0x86dd, 0x0800, 0x0806 };
	unsigned kind = (how & HOW_IP) >> 2;

	m->proto = how & HOW_UDP ? IPPROTO_UDP : IPPROTO_TCP;
	put16(m->frame + m->len, types[kind]);
	m->len += 2;
	if (kind == 3)
		return;
	m->l3 = m->len;
	m->ip = kind == 1 ? 6 : 4;
	if (kind == 1)
		put_ipv6(m);
	else
		put_ipv4(m, kind == 2 ? 4 + fuzz_u8(m->in) % 10 * 4 : 0, m->proto);
	m->l4 = m->len;
}

static void put_l4(struct maker *m)
{
	uint32_t head = m->proto == IPPROTO_UDP ? 8 : 20;
	uint8_t *p = m->frame + m->l4;

	if (!m->l4)
		return;
	memset(p, 0, head);
	put16(p, 1000 + fuzz_u8(m->in) % 8);
	put16(p + 2, 2000);
	if (head == 20) {
		p[12] = 0x50;
		p[13] = fuzz_u8(m->in);
	}
	m->len += head;
}

static void put_lengths(struct maker *m)
{
	uint8_t *ip = m->frame + m->l3;

	if (m->ip == 4)
		put16(ip + 2, m->len - m->l3);
	else if (m->ip == 6)
		put16(ip + 4, m->len - m->l3 - 40);
	if (m->ip && m->proto == IPPROTO_UDP)
		put16(m->frame + m->l4 + 4, m->len - m->l4);
}

static void put_sums(struct maker *m)
{
	uint32_t field = m->proto == IPPROTO_UDP ? 6 : 16;
	struct sn_parsed p;
	uint64_t sum;

	if (m->ip == 4) {
		uint8_t *ip = m->frame + m->l3;

		put16(ip + 10, 0xffffu & ~sn_csum_fold(sn_csum_add(0, ip, m->l4 - m->l3)));
	}
	sn_eth_parse(m->frame, m->len, &p);
	if (!p.l4)
		return;
	sum = sn_csum_pseudo(m->frame, &p, m->len - m->l4);
	sum = sn_csum_add(sum, m->frame + m->l4, m->len - m->l4);
	put16(m->frame + m->l4 + field, 0xffffu & ~sn_csum_fold(sum));
}

static void damage(struct maker *m)
{
	uint8_t how = fuzz_u8(m->in), n = how & 7;

	while (n--)
		m->frame[fuzz_u8(m->in) % 128] = fuzz_u8(m->in);
	if (how & 0x80)
		m->len = fuzz_u16(m->in) % (m->len + 1);
	else if (how & 0x40)
		m->len += fuzz_u8(m->in);
}

uint32_t eth_frame(struct fuzz_in *in, uint8_t frame[ETH_ROOM])
{
	uint8_t how = fuzz_u8(in);
	struct maker m = { .frame = frame, .in = in };
	uint32_t n;

	memset(frame, 0xa5, ETH_ROOM);
	put_eth(&m, how);
	put_l3(&m, how);
	put_l4(&m);
	n = how & HOW_LONG ? fuzz_u16(in) % 9300 : fuzz_u8(in);
	m.len += n;
	put_lengths(&m);
	if (how & HOW_SUMS)
		put_sums(&m);
	if (how & HOW_DAMAGED)
		damage(&m);
	return m.len;
}
