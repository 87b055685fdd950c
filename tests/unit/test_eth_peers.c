/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Where frames of raw Ethernet go: to the host that the address names, to the host that
 * the address was learned from, or to all hosts. The tables are bounded, and entries
 * that were used least recently are replaced.
 */
#include "eth_wire_rig.h"

static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
static const uint8_t multicast[6] = { 0x01, 0x00, 0x5e, 0, 0, 1 };
static const uint8_t guest[6] = { 0x52, 0x54, 0, 1, 2, 3 };

/* Hosts 1 and 2 are given by --eth-peers, host 3 is not. */
static void init(void)
{
	rig_open();
	sn_dev->cfg.eth_peers[0] = rig_addr(1);
	sn_dev->cfg.eth_peers[1] = rig_addr(2);
	sn_dev->cfg.eth_peers[2] = rig_addr(0); /* the own address is ignored */
	sn_dev->cfg.eth_npeers = 3;
	rig_start();
}

TestSuite(eth_peers, .init = init, .fini = rig_close, .timeout = 60);

/* Sends a frame and checks which hosts receive it: bit i for host i. */
static void goes_to(const uint8_t mac[6], unsigned hosts)
{
	unsigned got = 0, i;

	cr_assert(rig_send(mac, 60, 1));
	rig_pass(1000);
	for (i = 1; i < RIG_HOSTS; i++)
		while (rig_take(i) >= 0)
			got |= 1u << i;
	cr_assert_eq(got, hosts, "received by 0x%x, not by 0x%x", got, hosts);
}

Test(eth_peers, address_names_host)
{
	uint8_t mac[6];

	for (unsigned i = 1; i < RIG_HOSTS; i++) {
		mac_of(i, mac);
		goes_to(mac, 1u << i);
	}
	mac_of(0, mac);
	goes_to(mac, 0);
	STAT(eth_no_peer, 1);
	STAT(eth_tx_copies, 3);
}

Test(eth_peers, floods)
{
	uint8_t mac[6];

	goes_to(everyone, 6);
	goes_to(multicast, 6);
	goes_to(guest, 6);
	STAT(eth_tx_frames, 3);
	STAT(eth_tx_copies, 6);
	mac_of(3, mac);
	goes_to(mac, 8); /* sending to a host does not add it to the broadcasts */
	goes_to(everyone, 6);
	rig_from(3, mac, 60, 1);
	rig_pass(1000);
	goes_to(everyone, 14);
}

Test(eth_peers, learns)
{
	rig_from(3, guest, 60, 1);
	rig_pass(1000);
	goes_to(guest, 8);
	rig_from(1, guest, 60, 1); /* the guest moved */
	rig_pass(1000);
	goes_to(guest, 2);
	rig_pass(301000000000ull);
	goes_to(guest, 14); /* forgotten */
}

/* The buffer of a frame without a header has the bytes of an earlier frame. */
Test(eth_peers, learns_nothing_from_a_short_frame)
{
	uint8_t packet[8] = { 0x08 };
	unsigned i;

	sn_put32(packet + 4, sn_dev->cfg.eth_vni << 8);
	rig_from(3, guest, 60, 1);
	rig_pass(1000);
	for (i = 0; i < 4; i++) {
		rig_raw(1, packet, sizeof(packet));
		rig_pass(1000);
	}
	goes_to(guest, 8);
}

/* A source address that names another host, and a multicast one, are not learned. */
Test(eth_peers, does_not_learn)
{
	uint8_t mac[6];

	mac_of(1, mac);
	rig_from(3, mac, 60, 1);
	rig_from(3, multicast, 60, 1);
	rig_pass(1000);
	goes_to(mac, 2);
	goes_to(multicast, 14);
}

Test(eth_peers, replaces_addresses)
{
	uint8_t mac[6] = { 0x52, 0x54 };
	unsigned i, known = 0;
	uint64_t copies;

	for (i = 0; i < 10 * SN_ETH_MACS; i++) {
		mac[4] = i >> 8;
		mac[5] = i;
		rig_from(3, mac, 60, 1);
		rig_pass(1000);
	}
	goes_to(mac, 8); /* the newest */
	for (i = 0; i < 10 * SN_ETH_MACS; i++) {
		mac[4] = i >> 8;
		mac[5] = i;
		copies = sn_dev->stats.eth_tx_copies;
		cr_assert(rig_send(mac, 60, 1));
		known += sn_dev->stats.eth_tx_copies == copies + 1;
	}
	cr_assert(known > SN_ETH_MACS / 2 && known <= SN_ETH_MACS, "%u known", known);
}

/* Many hosts appear. Those of --eth-peers stay. */
Test(eth_peers, replaces_hosts)
{
	struct sn_frame f = { .len = 60 };
	struct in6_addr ip = rig_addr(3);
	uint64_t copies;

	memcpy(f.data + 6, guest, 6);
	for (unsigned i = 0; i < 1000; i++) {
		f.peer = ip;
		f.peer.s6_addr[13] = 201 + i / 250;
		f.peer.s6_addr[15] = i % 250;
		e->now++;
		sn_eth_learn(e, &f);
	}
	copies = sn_dev->stats.eth_tx_copies;
	sn_dev->cfg.loss_ppm = 1000000; /* send nothing to them */
	cr_assert(rig_send(everyone, 60, 1));
	cr_assert_eq(sn_dev->stats.eth_tx_copies - copies, SN_ETH_HOSTS);
	sn_dev->cfg.loss_ppm = 0;
	while (rig_take(1) >= 0 || rig_take(2) >= 0)
		;
	goes_to(everyone, 6);
}
