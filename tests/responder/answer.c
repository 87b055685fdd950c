/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Answers to ARP (RFC 826), ICMP echo (RFC 792), UDP (every datagram returns to its sender)
 * and TCP: a passive open, in-order data, and a close after that of the peer. A TCP segment
 * that is not the next one is answered by an acknowledgement of what has arrived, so that
 * the peer sends again.
 */
#include <string.h>
#include <zlib.h>

#include "responder.h"

#define ETHER	14u
#define IP	20u
#define TCP	20u
#define UDP	8u
#define ARP_LEN 28u

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };
enum { ICMP_ECHO = 8, ICMP_REPLY = 0, PROTO_ICMP = 1, PROTO_TCP = 6, PROTO_UDP = 17 };

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

static uint32_t sum_of(const uint8_t *p, uint32_t len, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += get16(p + i);
	return len & 1 ? sum + ((uint32_t)p[len - 1] << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum of the pseudo header and of a layer 4 of len bytes that follows an IPv4 header. */
static uint16_t l4_sum(const uint8_t *ip, uint32_t len)
{
	return fold(sum_of(ip + IP, len, sum_of(ip + 12, 8, ip[9] + len)));
}

/* ---- headers of answers ---- */

static void ether_answer(const struct answerer *a, const uint8_t *in, uint8_t *out, uint16_t type)
{
	memcpy(out, in + 6, 6);
	memcpy(out + 6, a->host.mac, 6);
	put16(out + 12, type);
}

/* Builds Ethernet and IPv4 headers for len bytes of layer 4. The header checksum is 0. */
static void ip_answer(const struct answerer *a, const uint8_t *in, uint8_t *out, uint32_t len)
{
	uint8_t *ip = out + ETHER;

	ether_answer(a, in, out, 0x0800);
	memset(ip, 0, IP);
	ip[0] = 0x45;
	put16(ip + 2, IP + len);
	put16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = in[ETHER + 9];
	memcpy(ip + 12, a->host.ip, 4);
	memcpy(ip + 16, in + ETHER + 12, 4);
}

/* ---- protocols ---- */

static uint32_t answer_arp(struct answerer *a, const uint8_t *in, uint32_t len, uint8_t *out)
{
	const uint8_t *q = in + ETHER;
	uint8_t *r = out + ETHER;

	if (len < ETHER + ARP_LEN || get16(q + 6) != 1 || memcmp(q + 24, a->host.ip, 4))
		return 0;
	a->counts.arp++;
	ether_answer(a, in, out, 0x0806);
	memcpy(r, q, 6); /* types and lengths of the addresses */
	put16(r + 6, 2);
	memcpy(r + 8, a->host.mac, 6);
	memcpy(r + 14, a->host.ip, 4);
	memcpy(r + 18, q + 8, 10);
	return ETHER + ARP_LEN;
}

static uint32_t answer_icmp(struct answerer *a, const uint8_t *in, uint32_t len, uint8_t *out)
{
	uint8_t *icmp = out + ETHER + IP;

	if (len < 8 || in[ETHER + IP] != ICMP_ECHO)
		return 0;
	if (fold(sum_of(in + ETHER + IP, len, 0)) != 0xffff) {
		a->counts.bad_sums++;
		return 0;
	}
	a->counts.pings++;
	ip_answer(a, in, out, len);
	memcpy(icmp, in + ETHER + IP, len);
	icmp[0] = ICMP_REPLY;
	put16(icmp + 2, 0);
	put16(icmp + 2, (uint16_t)~fold(sum_of(icmp, len, 0)));
	return ETHER + IP + len;
}

static uint32_t answer_udp(struct answerer *a, const uint8_t *in, uint32_t len, uint8_t *out)
{
	uint8_t *udp = out + ETHER + IP;

	if (len < UDP || get16(in + ETHER + IP + 4) > len)
		return 0;
	len = get16(in + ETHER + IP + 4);
	if (get16(in + ETHER + IP + 6) && l4_sum(in + ETHER, len) != 0xffff) {
		a->counts.bad_sums++;
		return 0;
	}
	a->counts.datagrams++;
	ip_answer(a, in, out, len);
	memcpy(udp, in + ETHER + IP, len);
	memcpy(udp, in + ETHER + IP + 2, 2);
	memcpy(udp + 2, in + ETHER + IP, 2);
	return ETHER + IP + len;
}

/* ---- TCP ---- */

static uint32_t segment(struct answerer *a, const uint8_t *in, uint8_t *out, uint8_t flags)
{
	uint32_t options = flags & SYN ? 4 : 0;
	struct tcp *t = &a->tcp;
	uint8_t *h = out + ETHER + IP;

	ip_answer(a, in, out, TCP + options);
	memset(h, 0, TCP + options);
	put16(h, t->port);
	put16(h + 2, t->peer_port);
	put32(h + 4, t->seq);
	put32(h + 8, t->next);
	h[12] = (uint8_t)((TCP + options) / 4 << 4);
	h[13] = flags;
	put16(h + 14, 0xffff);
	if (options) { /* maximum segment size */
		put16(h + TCP, 0x0204);
		put16(h + TCP + 2, 1400);
	}
	t->seq += !!(flags & (SYN | FIN));
	return ETHER + IP + TCP + options;
}

static bool is_of_connection(const struct tcp *t, const uint8_t *in)
{
	const uint8_t *h = in + ETHER + IP;

	return t->open && !memcmp(t->peer_ip, in + ETHER + 12, 4) && get16(h) == t->peer_port &&
	       get16(h + 2) == t->port;
}

static uint32_t accept_connection(struct answerer *a, const uint8_t *in, uint8_t *out)
{
	const uint8_t *h = in + ETHER + IP;

	a->tcp = (struct tcp){ .open = true,
			       .peer_port = get16(h),
			       .port = get16(h + 2),
			       .next = get32(h + 4) + 1,
			       .seq = 1000 };
	memcpy(a->tcp.peer_ip, in + ETHER + 12, 4);
	return segment(a, in, out, SYN | ACK);
}

static uint32_t take_data(struct answerer *a, const uint8_t *in, const uint8_t *data, uint32_t len,
			  uint8_t *out)
{
	bool fin = in[ETHER + IP + 13] & FIN;
	struct tcp *t = &a->tcp;

	if (get32(in + ETHER + IP + 4) != t->next)
		return len || fin ? segment(a, in, out, ACK) : 0;
	t->crc = (uint32_t)crc32(t->crc, data, len);
	t->bytes += len;
	t->next += len + fin;
	if (fin && !t->finished) {
		t->finished = true;
		return segment(a, in, out, FIN | ACK);
	}
	return len || fin ? segment(a, in, out, ACK) : 0;
}

static uint32_t answer_tcp(struct answerer *a, const uint8_t *in, uint32_t len, uint8_t *out)
{
	const uint8_t *h = in + ETHER + IP;
	uint32_t head;

	if (len < TCP)
		return 0;
	head = (h[12] >> 4) * 4u;
	if (head < TCP || head > len)
		return 0;
	if (l4_sum(in + ETHER, len) != 0xffff) {
		a->counts.bad_sums++;
		return 0;
	}
	a->counts.segments++;
	if (h[13] & RST) {
		a->tcp.open &= !is_of_connection(&a->tcp, in);
		return 0;
	}
	if (h[13] & SYN)
		return accept_connection(a, in, out);
	if (!is_of_connection(&a->tcp, in))
		return 0;
	return take_data(a, in, h + head, len - head, out);
}

static uint32_t answer_ip(struct answerer *a, const uint8_t *in, uint32_t len, uint8_t *out,
			  bool *hw)
{
	uint32_t total = len >= ETHER + IP ? get16(in + ETHER + 2) : 0;

	if (total < IP || total > len - ETHER || total > FRAME_MAX - ETHER || in[ETHER] != 0x45 ||
	    memcmp(in + ETHER + 16, a->host.ip, 4))
		return 0;
	if (fold(sum_of(in + ETHER, IP, 0)) != 0xffff) {
		a->counts.bad_sums++;
		return 0;
	}
	*hw = true;
	switch (in[ETHER + 9]) {
	case PROTO_ICMP:
		return answer_icmp(a, in, total - IP, out);
	case PROTO_UDP:
		return answer_udp(a, in, total - IP, out);
	case PROTO_TCP:
		return answer_tcp(a, in, total - IP, out);
	}
	return 0;
}

uint32_t answer(struct answerer *a, const uint8_t *in, uint32_t len, uint8_t *out, bool *hw)
{
	uint32_t n = 0;

	*hw = false;
	a->counts.frames++;
	if (len >= ETHER && get16(in + 12) == 0x0806)
		n = answer_arp(a, in, len, out);
	else if (len >= ETHER && get16(in + 12) == 0x0800)
		n = answer_ip(a, in, len, out, hw);
	a->counts.ignored += !n;
	return n;
}
