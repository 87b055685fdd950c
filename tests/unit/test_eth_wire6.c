/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw Ethernet between IPv6 addresses, in a network namespace of the test, where the
 * loopback interface has several addresses and any MTU. Skipped where namespaces are refused.
 */
#include <sched.h>

#include "eth_wire_rig.h"

static int host; /* fd77::2 */

static struct in6_addr addr(unsigned last)
{
	struct in6_addr ip = { .s6_addr = { 0xfd, 0x77, [15] = (uint8_t)last } };

	return ip;
}

/* The kernel adds the routes of an address some time after the address. */
static bool make_net(void)
{
	return (!unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET)) &&
	       !system("{ ip link set lo up && ip -6 addr add fd77::1/128 dev lo nodad &&"
		       " ip -6 addr add fd77::2/128 dev lo nodad &&"
		       " for a in fd77::1 fd77::2; do"
		       " until ip -6 route show table local | grep -q \"local $a \";"
		       " do sleep 0.01; done;"
		       " done; } >/dev/null 2>&1");
}

static void init(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6,
				   .sin6_port = htons(4789),
				   .sin6_addr = addr(2) };

	if (!make_net())
		cr_skip_test("cannot add IPv6 addresses in a network namespace");
	rig_open();
	sn_dev->cfg.ip = addr(1);
	rig_start();
	host = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(host, (struct sockaddr *)&at, sizeof(at)), 0);
}

static void fini(void)
{
	if (!rig_got)
		return;
	close(host);
	rig_close();
}

TestSuite(eth_wire6, .init = init, .fini = fini, .timeout = 60);

static void exchange(uint32_t len)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 2 };
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = htons(4789),
				   .sin6_addr = addr(1) };
	uint8_t packet[8 + SN_ETH_FRAME_MAX];
	unsigned got = rig_ngot;

	cr_assert(rig_send(mac, len, 1));
	rig_pass(1000);
	rig_settle();
	cr_assert_eq(recv(host, packet, sizeof(packet), 0), (ssize_t)(8 + len));
	cr_assert_arr_eq(packet + 8, mac, 6);
	cr_assert_eq(sendto(host, packet, 8 + len, 0, (struct sockaddr *)&to, sizeof(to)),
		     (ssize_t)(8 + len));
	rig_pass(1000);
	cr_assert_eq(rig_ngot, got + 1);
	cr_assert_eq(rig_got[got].len, len);
	cr_assert_arr_eq(rig_got[got].data, packet + 8, len);
}

Test(eth_wire6, sends_and_receives)
{
	exchange(60);
	exchange(1514);
	exchange(SN_ETH_FRAME_MAX);
}

/* The kernel fragments what the interface cannot carry. */
Test(eth_wire6, fragments)
{
	cr_assert_eq(system("ip link set lo mtu 1500"), 0);
	exchange(1514);
	exchange(9014);
}

Test(eth_wire6, fragments_ipv4)
{
	uint8_t mac[6];

	cr_assert_eq(system("ip link set lo mtu 1500"), 0);
	sn_eth_close(e);
	sn_dev->cfg.ip = rig_addr(0);
	rig_start();
	mac_of(1, mac);
	cr_assert(rig_send(mac, 9014, 1));
	rig_pass(1000);
	cr_assert_eq(rig_take(1), 9014);
}

Test(eth_wire6, captures)
{
	uint8_t file[1024];
	FILE *f = tmpfile();

	e->pcap = f;
	exchange(60);
	rewind(f);
	cr_assert_eq(fread(file, 1, sizeof(file), f), 2 * (16 + 56 + 60));
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *p = file + i * (16 + 56 + 60) + 16;

		cr_assert_eq(sn_get32(p), 6u << 28);
		cr_assert_eq(sn_get32(p + 4), (16u + 60) << 16 | 17 << 8 | 64);
		cr_assert_eq(p[8 + 15], 1 + i);
		cr_assert_eq(p[24 + 15], 2 - i);
		cr_assert_eq(sn_get32(p + 40), 4789u << 16 | 4789);
		cr_assert_eq(p[48], 0x08);
	}
}
