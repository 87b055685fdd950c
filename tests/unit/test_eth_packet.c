/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw Ethernet on an interface (--eth-if): a veth pair in a network namespace of the
 * test. The kernel's stack at the other end sends UDP packets with unfinished checksums
 * and VLAN tags in its own way. Skipped where namespaces are refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>

#include "eth_wire_rig.h"

static int other; /* packet socket at the other end */

static bool make_veth(void)
{
	return !unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

static bool make_links(void)
{
	return !system("{ ip link set lo up && ip link add v0 type veth peer name v1 &&"
		       " ip link set v0 addrgenmode none && ip link set v1 addrgenmode none &&"
		       " ip link set v0 mtu 9216 up && ip link set v1 mtu 9216 up &&"
		       " ip addr add 10.9.9.1/24 dev v1 &&"
		       " ip neigh add 10.9.9.2 lladdr 02:00:0a:09:09:02 dev v1; } >/dev/null 2>&1");
}

static int open_other(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)if_nametoindex("v1") };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0), on = 1;

	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	return fd;
}

static void init(void)
{
	if (!make_veth() || !make_links())
		cr_skip_test("cannot create a veth pair in a network namespace");
	rig_open();
	strcpy(sn_dev->cfg.eth_if, "v0");
	rig_start();
	other = open_other();
}

static void fini(void)
{
	if (!rig_got)
		return;
	close(other);
	rig_close();
}

TestSuite(eth_packet, .init = init, .fini = fini, .timeout = 60);

static const uint8_t guest[6] = { 0x52, 0x54, 0, 1, 2, 3 };

static void passes(void)
{
	for (int i = 0; i < 20; i++) {
		usleep(1000);
		rig_pass(1000);
	}
}

/* Passes until n packets have arrived in all: the kernel may deliver them late. */
static void await(unsigned int n)
{
	while (rig_ngot < n)
		passes();
}

static ssize_t recv_other(void *got, size_t size)
{
	ssize_t len;

	while ((len = recv(other, got, size, 0)) < 0 && errno == EAGAIN)
		passes();
	return len;
}

Test(eth_packet, sends)
{
	static const uint32_t lens[] = { 60, 1514, 9230 };
	uint8_t want[SN_ETH_FRAME_MAX], got[SN_ETH_FRAME_MAX], own[6];

	mac_of(0, own);
	for (int i = 0; i < 3; i++) {
		cr_assert(rig_send(guest, lens[i], 1));
		cr_assert_eq(recv_other(got, sizeof(got)), (ssize_t)lens[i]);
		rig_fill(want, lens[i], guest, own, 1);
		cr_assert_arr_eq(got, want, lens[i]);
	}
	cr_assert_eq(rig_ngot, 0, "the port received its own frames");
	STAT(eth_tx_copies, 3);
	cr_assert(rig_send(guest, SN_ETH_FRAME_MAX, 1)); /* the interface carries less */
	passes();
	STAT(eth_tx_failed, 1);
}

/* Frames to any address arrive. */
Test(eth_packet, receives)
{
	static const uint32_t lens[] = { 60, 1514, 9230 };
	uint8_t want[SN_ETH_FRAME_MAX], dst[6] = { 0x52, 0x54, 9, 9, 9, 9 };

	for (unsigned i = 0; i < 3; i++) {
		rig_fill(want, lens[i], dst, guest, 1);
		cr_assert_eq(send(other, want, lens[i], 0), (ssize_t)lens[i]);
		await(i + 1);
		cr_assert_eq(rig_got[i].len, lens[i]);
		cr_assert_arr_eq(rig_got[i].data, want, lens[i]);
	}
}

Test(eth_packet, keeps_vlan_tags)
{
	uint8_t want[100];

	rig_fill(want, 100, guest, guest, 1);
	sn_put32(want + 12, 0x81006123);
	cr_assert_eq(send(other, want, 100, 0), 100);
	sn_put32(want + 12, 0x88a80007);
	cr_assert_eq(send(other, want, 100, 0), 100);
	await(2);
	cr_assert_eq(rig_got[1].len, 100);
	cr_assert_arr_eq(rig_got[1].data, want, 100);
	sn_put32(want + 12, 0x81006123);
	cr_assert_arr_eq(rig_got[0].data, want, 100);
}

static void kernel_sends_udp(const void *data, unsigned len)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7) };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7777) };
	const unsigned int before = rig_ngot;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	inet_aton("10.9.9.2", &to.sin_addr);
	cr_assert_eq(sendto(fd, data, len, 0, (struct sockaddr *)&to, sizeof(to)), len);
	close(fd);
	await(before + 1);
}

static void checksum_is_right(const struct rig_frame *g)
{
	struct sn_parsed p;

	sn_eth_parse(g->data, g->len, &p);
	cr_assert_eq(p.l4, IPPROTO_UDP);
	cr_assert(p.l3_ok);
	cr_assert(p.l4_ok && !p.l4_no_csum);
}

Test(eth_packet, completes_checksums)
{
	uint8_t data[1400];

	memset(data, 0x5a, sizeof(data));
	for (unsigned len = 0; len < sizeof(data); len += 199)
		kernel_sends_udp(data, len);
	cr_assert_eq(rig_ngot, 8);
	for (unsigned i = 0; i < rig_ngot; i++)
		checksum_is_right(&rig_got[i]);
}

/* A checksum of 0 is sent as 0xffff. */
Test(eth_packet, completes_zero_checksum)
{
	uint8_t data[2] = { 0 };

	kernel_sends_udp(data, 2);
	memcpy(data, rig_got[0].data + 14 + 20 + 6, 2); /* this checksum as data makes the sum 0 */
	kernel_sends_udp(data, 2);
	cr_assert_eq(rig_ngot, 2);
	cr_assert_eq(sn_get32(rig_got[1].data + 14 + 20 + 4), 10u << 16 | 0xffff);
}

Test(eth_packet, is_promiscuous)
{
	cr_assert_eq(system("ip -d link show v0 | grep -q 'promiscuity 1'"), 0);
}

Test(eth_packet, completes_checksums_with_tag)
{
	if (system("{ ip link add link v1 name v1.5 type vlan id 5 && ip link set v1.5 up &&"
		   " ip addr flush dev v1 && ip addr add 10.9.9.1/24 dev v1.5 &&"
		   " ip neigh add 10.9.9.2 lladdr 02:00:0a:09:09:02 dev v1.5; } >/dev/null 2>&1"))
		cr_skip_test("cannot create a VLAN device");
	kernel_sends_udp(guest, 6);
	cr_assert_eq(rig_ngot, 1);
	cr_assert_eq(sn_get32(rig_got[0].data + 12), 0x81000005);
	checksum_is_right(&rig_got[0]);
}

/* An injected bit error would arrive as a good frame, because the kernel adds the FCS. */
Test(eth_packet, loses_instead_of_corrupting)
{
	uint8_t got[200];

	sn_dev->cfg.corrupt_ppm = 1000000;
	cr_assert(rig_send(guest, 100, 1));
	passes();
	STAT(eth_tx_lost, 1);
	sn_dev->cfg.corrupt_ppm = 0;
	cr_assert(rig_send(guest, 101, 1));
	cr_assert_eq(recv_other(got, sizeof(got)), 101, "the first frame was sent");
}

Test(eth_packet, refuses_unknown_interface)
{
	sn_eth_close(e);
	strcpy(sn_dev->cfg.eth_if, "nosuchif");
	cr_assert_eq(sn_eth_open(e), -ENODEV);
	cr_assert_eq(sn_eth_fd(e), -1);
}
