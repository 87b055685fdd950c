/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The Ethernet port with --eth-pause. The test plays the other hosts, and reads and writes requests
 * and grants. */
#ifndef ETH_PAUSE_RIG_H
#define ETH_PAUSE_RIG_H

#include "eth_wire_rig.h"

#define MS   1000000ull
#define COST (2 * (100 + 56) + 1024ull) /* of the frames of 100 bytes that the tests send */

enum { REQUEST = 1, GRANT = 2 };

struct control {
	uint32_t kind;
	uint64_t nonce, stamp, count;
};

static inline void pause_rig(void)
{
	rig_open();
	sn_dev->cfg.eth_pause = true;
	sn_dev->cfg.eth_npeers = 2;
	sn_dev->cfg.eth_peers[0] = rig_addr(1);
	sn_dev->cfg.eth_peers[1] = rig_addr(2);
	rig_start();
}

static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

/* Receives packets until one is a control frame. Returns false if there is none. */
static inline bool take_control(unsigned host, struct control *c)
{
	const uint8_t *d = rig_packet + 8;

	rig_settle();
	while (recv(rig_fd[host], rig_packet, sizeof(rig_packet), 0) > 0) {
		if (d[12] != 0x88 || d[13] != 0xb5)
			continue;
		*c = (struct control){ sn_get32(d + 18), sn_get64(d + 22), sn_get64(d + 30),
				       sn_get64(d + 38) };
		return true;
	}
	return false;
}

static inline void give(unsigned host, struct control c)
{
	static const uint8_t mac[6] = { 0x01, 0x80, 0xc2, 0, 0, 1 };
	uint8_t p[68] = { 0x08 }, src[6];

	mac_of(host, src);
	sn_put32(p + 4, VNI << 8);
	memcpy(p + 8, mac, 6);
	memcpy(p + 14, src, 6);
	p[20] = 0x88;
	p[21] = 0xb5;
	sn_put32(p + 22, 0x67706131);
	sn_put32(p + 26, c.kind);
	sn_put64(p + 30, c.nonce);
	sn_put64(p + 38, c.stamp);
	sn_put64(p + 46, c.count);
	rig_raw(host, p, sizeof(p));
}

static inline bool send_to(unsigned host)
{
	uint8_t mac[6];

	mac_of(host, mac);
	return rig_send(mac, 100, 1);
}

/* Answers the port's request with a limit of n frames from now on. */
static inline void grant(unsigned host, unsigned n)
{
	struct control c = { 0 };

	rig_pass(0);
	cr_assert(take_control(host, &c));
	cr_assert_eq(c.kind, REQUEST);
	cr_assert(c.stamp <= e->now && c.stamp + 2000 >= e->now);
	c.kind = GRANT;
	c.count += n * COST;
	give(host, c);
	rig_pass(1000);
}

#endif
