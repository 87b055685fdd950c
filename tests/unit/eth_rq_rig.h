/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receive queues, TIRs and flow rules in the engine fake, and frames for them. A test
 * calls rig_open() first. Each RQ has one buffer of RIG_BUF bytes for each WQE.
 */
#ifndef ETH_RQ_RIG_H
#define ETH_RQ_RIG_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../softnic/eth.h"
#include "../softnic/prm_nic.h"
#include "engine_fake.h"

#define RIG_BUF	  10240u
#define RIG_FILL  0xa5 /* content of buffers before a frame is written */
#define RIG_CLOCK 0x1122334455667788ull

struct rig_rq {
	struct fake_qp q;
	struct sn_eth eth;
	struct sn_tir tir; /* direct */
	uint8_t *buf;
	uint32_t key;
};

static struct sn_frame rig_frame;

static inline uint64_t rig_clock(void)
{
	return RIG_CLOCK;
}

static inline struct sn_stats *rig_stats(void)
{
	return &sn_dev->stats;
}

static inline void rig_open(void)
{
	char ip[32];

	fake_ip(ip, 1);
	sn_clock = rig_clock;
	fake_open_still(ip);
	sn_dev->eng->now = RIG_CLOCK;
}

/* An RQ in state ready, without WQEs. */
static inline void rig_rq_init(struct rig_rq *r, uint32_t rqn)
{
	memset(r, 0, sizeof(*r));
	fake_qp_init_as(&r->q, SN_QPT_RQ, rqn, 1);
	r->q.qp.eth = &r->eth;
	r->q.qp.sq_wqebbs = 0;
	r->q.qp.scq = NULL;
	r->eth.keep_vlan = true;
	r->eth.flush_in_error = true;
	r->tir = (struct sn_tir){ .rq = &r->q.qp };
	r->buf = malloc((size_t)RIG_BUF * FAKE_DEPTH);
	memset(r->buf, RIG_FILL, (size_t)RIG_BUF * FAKE_DEPTH);
	r->key = fake_mr(r->buf, (uint64_t)RIG_BUF * FAKE_DEPTH, 1);
	sn_eth_qp_modify(sn_dev, &r->q.qp, SN_QPS_RTS);
}

static inline void rig_rq_fini(struct rig_rq *r)
{
	fake_mr_drop(r->key);
	fake_qp_fini(&r->q);
	free(r->buf);
}

static inline uint8_t *rig_buf(struct rig_rq *r, uint32_t i)
{
	return r->buf + (size_t)(i % FAKE_DEPTH) * RIG_BUF;
}

/* Posts n WQEs of len bytes each. */
static inline void rig_post(struct rig_rq *r, uint32_t n, uint32_t len)
{
	while (n--)
		fake_recv(&r->q, rig_buf(r, r->q.rpi), len, r->key);
}

static inline bool rig_cqe(struct rig_rq *r, uint8_t cqe[64])
{
	return fake_poll(&r->q, true, cqe, 0);
}

/* A rule for all frames; the test changes it and then calls sn_flow_insert(). */
static inline struct sn_rule rig_rule(uint64_t order, struct sn_tir *tir)
{
	return (struct sn_rule){ .order = order, .tir = tir };
}

/* ---- frames ---- */

static inline void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* One's complement checksum, by a loop over 16-bit words. Independent of sn_csum_add(). */
static inline uint16_t slow_sum(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/*
 * What a frame consists of. Defaults: IPv4 without options, UDP. build_frame() returns the
 * length of the frame in rig_frame; checksums are right.
 */
struct build {
	uint16_t tag_type[2], tci[2]; /* VLAN tags; type 0: none */
	uint8_t ip;		      /* 0 or 4, 6; 1: no IP, Ethernet type 0x88b5 */
	uint8_t l4;		      /* protocol, 0: UDP */
	uint32_t options;	      /* bytes of IPv4 options */
	const uint8_t *ext;	      /* IPv6 extension headers */
	uint32_t ext_len;
	uint8_t first_ext; /* type of the first extension header */
	uint16_t fragment; /* IPv4: flags and offset */
	uint8_t tos, ttl, tcp_flags;
	uint16_t sport, dport;
	uint32_t payload, pad; /* bytes of layer 4 payload; bytes after the IP packet */
};

static inline uint32_t build_l2(const struct build *b, uint8_t *f)
{
	static const uint8_t macs[12] = { 2, 0, 10, 1, 2, 3, 2, 0, 11, 4, 5, 6 };
	uint32_t off = 12;

	memcpy(f, macs, 12);
	for (int i = 0; i < 2 && b->tag_type[i]; i++, off += 4) {
		put16(f + off, b->tag_type[i]);
		put16(f + off + 2, b->tci[i]);
	}
	put16(f + off, b->ip == 1 ? 0x88b5 : b->ip == 6 ? 0x86dd : 0x0800);
	return off + 2;
}

static inline uint32_t build_l4(const struct build *b, uint8_t *l4)
{
	uint8_t proto = b->l4 ? b->l4 : 17;
	uint32_t head = proto == 6 ? 20 : proto == 17 ? 8 : 0;

	put16(l4, b->sport);
	put16(l4 + 2, b->dport);
	if (proto == 6) {
		l4[12] = 5 << 4;
		l4[13] = b->tcp_flags;
	} else if (proto == 17) {
		put16(l4 + 4, 8 + b->payload);
	}
	for (uint32_t i = 0; i < b->payload; i++)
		l4[head + i] = (uint8_t)(i * 7 + 3);
	return head + b->payload;
}

static inline void build_csum(const struct build *b, uint8_t *l4, uint32_t len,
			      const uint8_t *addrs, uint32_t addr_len)
{
	uint8_t proto = b->l4 ? b->l4 : 17;
	uint32_t at = proto == 6 ? 16 : 6;
	uint16_t sum;

	if (proto != 6 && proto != 17)
		return;
	put16(l4 + at, 0);
	sum = slow_sum(slow_sum(len + proto, addrs, addr_len), l4, len);
	put16(l4 + at, sum == 0xffff && proto == 17 ? 0xffff : (uint16_t)~sum);
}

static inline uint32_t build_ipv4(const struct build *b, uint8_t *ip)
{
	static const uint8_t addrs[8] = { 192, 0, 2, 17, 198, 51, 100, 33 };
	uint32_t head = 20 + b->options, len = build_l4(b, ip + head);

	ip[0] = (uint8_t)(0x40 | head / 4);
	ip[1] = b->tos;
	put16(ip + 2, head + len);
	put16(ip + 6, b->fragment);
	ip[8] = b->ttl;
	ip[9] = b->l4 ? b->l4 : 17;
	memcpy(ip + 12, addrs, 8);
	memset(ip + 20, 1, b->options); /* "no operation" */
	put16(ip + 10, (uint16_t)~slow_sum(0, ip, head));
	build_csum(b, ip + head, len, addrs, 8);
	return head + len;
}

static inline uint32_t build_ipv6(const struct build *b, uint8_t *ip)
{
	uint32_t len;

	ip[0] = (uint8_t)(0x60 | b->tos >> 4);
	ip[1] = (uint8_t)(b->tos << 4);
	ip[6] = b->ext_len ? b->first_ext : b->l4 ? b->l4 : 17;
	ip[7] = b->ttl;
	for (int i = 0; i < 32; i++)
		ip[8 + i] = (uint8_t)(0x20 + i);
	if (b->ext_len)
		memcpy(ip + 40, b->ext, b->ext_len);
	len = build_l4(b, ip + 40 + b->ext_len);
	put16(ip + 4, b->ext_len + len);
	build_csum(b, ip + 40 + b->ext_len, len, ip + 8, 32);
	return 40 + b->ext_len + len;
}

static inline uint32_t build_frame(const struct build *b)
{
	uint8_t *f = rig_frame.data;
	uint32_t off;

	memset(&rig_frame, 0, sizeof(rig_frame));
	off = build_l2(b, f);
	if (b->ip == 6)
		off += build_ipv6(b, f + off);
	else if (b->ip == 1)
		off += build_l4(b, f + off);
	else
		off += build_ipv4(b, f + off);
	memset(f + off, 0xcc, b->pad);
	rig_frame.len = off + b->pad;
	return rig_frame.len;
}

static inline enum sn_eth_result rig_receive(void)
{
	return sn_eth_receive(sn_dev->eng, &rig_frame, false);
}

/* The sum of all outcomes; it must be equal to the number of frames that arrived. */
static inline uint64_t rig_outcomes(void)
{
	const struct sn_stats *s = rig_stats();

	return s->eth_delivered + s->eth_no_rule + s->eth_rule_dropped + s->eth_out_of_buffer +
	       s->eth_not_ready + s->eth_too_long + s->eth_malformed + s->eth_fcs_errors +
	       s->eth_rx_faults;
}

#endif
