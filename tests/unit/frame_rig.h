/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of flow rules: a NIC, the frame to send, which build() writes, and the raw packet QP
 * that sends it.
 */
#ifndef FRAME_RIG_H
#define FRAME_RIG_H

#include <netinet/in.h>

#include "../lib/raw.h"

#define SLOT	 256u
#define WIRE_LEN (14u + 86) /* bytes of a frame, without VLAN tag */

static struct vb v;
static struct ibv_cq *send_cq;
static struct ibv_qp *sender;
static uint8_t *frame;
static uint32_t len;

static const uint8_t dmac[6] = { 2, 0, 0, 0, 0, 0xaa }, smac[6] = { 2, 0, 0, 0, 0, 0xbb };

static inline void put16(uint32_t off, uint16_t value)
{
	frame[off] = (uint8_t)(value >> 8);
	frame[off + 1] = (uint8_t)value;
}

/* Ports of layer 4 are 0x1111 and 0x2222. The checksum is not right: rules ignore it. */
static inline void build(uint8_t ip, uint8_t proto, bool vlan)
{
	uint32_t at = vlan ? 18 : 14, l4 = at + (ip == 4 ? 20 : 40);

	memset(frame, 0, SLOT);
	memcpy(frame, dmac, 6);
	memcpy(frame + 6, smac, 6);
	if (vlan) {
		put16(12, 0x8100);
		put16(14, 5 << 13 | 1 << 12 | 0x123);
	}
	put16(at - 2, ip == 4 ? 0x0800 : 0x86dd);
	len = vlan ? WIRE_LEN + 4 : WIRE_LEN;
	if (ip == 4) {
		frame[at] = 0x45;
		frame[at + 1] = 0xa6; /* DSCP and ECN */
		put16(at + 2, (uint16_t)(len - at));
		frame[at + 8] = 64;
		frame[at + 9] = proto;
		memcpy(frame + at + 12, "\x0a\1\2\3\x0a\4\5\6", 8);
	} else {
		frame[at] = 0x6a; /* traffic class 0xa6 */
		frame[at + 1] = 0x60;
		put16(at + 4, (uint16_t)(len - at - 40));
		frame[at + 6] = proto;
		frame[at + 7] = 64;
		memset(frame + at + 8, 0x21, 16);
		memset(frame + at + 24, 0x43, 16);
	}
	put16(l4, 0x1111);
	put16(l4 + 2, 0x2222);
	if (proto == IPPROTO_UDP)
		put16(l4 + 4, (uint16_t)(len - l4));
	else
		frame[l4 + 12] = 0x50;
}

#endif
