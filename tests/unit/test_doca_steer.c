/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * gdk_eth_steer(): each field of a match with its mask, priorities, one queue, several, or none,
 * counters, the end of rules, and bad arguments.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>

#include "../../qp/flow/steer.h"
#include "../lib/flowcall.h"
#include "steer_rig.h"

static struct gdk_eth_match m;

static void setup(void)
{
	steer_open();
	memset(&m, 0, sizeof(m));
}

TestSuite(doca_steer, .init = setup, .fini = steer_close);

#define FIELD(name, v_, m_) (m.value.name = (v_), m.mask.name = (m_))

static void ipv4(void)
{
	FIELD(ether_type, htons(ETH_P_IP), 0xffff);
}

static void protocol(uint8_t p)
{
	ipv4();
	FIELD(ip_protocol, p, 0xff);
}

static struct gdk_eth_rule *steer(uint32_t queue, uint32_t priority)
{
	struct gdk_eth_rule *rule;

	OK(gdk_eth_steer(dev, &m, &rxq[queue], 1, 0, priority, &rule));
	return rule;
}

/* A rule with m takes the frame; after a change of the frame it does not. */
static void takes(bool now)
{
	struct gdk_eth_rule *rule = steer(1, 3);

	if (now)
		QUEUE(1);
	else
		NOWHERE;
	OK(gdk_eth_steer_destroy(rule));
	NOWHERE;
}

Test(doca_steer, no_field_matches_all_frames)
{
	udp4();
	takes(true);
	build(6, IPPROTO_TCP, true);
	takes(true);
}

Test(doca_steer, addresses_of_ethernet)
{
	udp4();
	memcpy(m.value.dst_mac, dmac, 6);
	memset(m.mask.dst_mac, 0xff, 6);
	takes(true);
	m.value.dst_mac[5] ^= 1;
	takes(false);
	m.mask.dst_mac[5] = 0xfe;
	m.value.dst_mac[5] &= 0xfe;
	takes(true);
	m.value.dst_mac[2] ^= 4;
	takes(false);
	memset(&m, 0, sizeof(m));
	memcpy(m.value.src_mac, smac, 6);
	memset(m.mask.src_mac, 0xff, 6);
	takes(true);
	m.value.src_mac[4] ^= 1;
	takes(false);
	m.value.src_mac[4] ^= 1;
	m.value.src_mac[1] ^= 0x80;
	takes(false);
}

Test(doca_steer, types_and_vlan)
{
	udp4();
	ipv4();
	takes(true);
	build(6, IPPROTO_UDP, false);
	takes(false);
	FIELD(ether_type, htons(ETH_P_IPV6), 0xffff);
	takes(true);
	FIELD(ether_type, htons(0x8000), htons(0x8000)); /* of 0x86dd, not of 0x0800 */
	takes(true);
	udp4();
	takes(false);
	memset(&m, 0, sizeof(m));
	FIELD(vlan_id, htons(0x123), htons(0xfff));
	takes(false);
	build(4, IPPROTO_UDP, true);
	takes(true);
	FIELD(vlan_id, htons(0x124), htons(0xfff));
	takes(false);
	FIELD(vlan_id, htons(0x120), htons(0xff0));
	takes(true);
	/* VLAN 0: only with a tag */
	FIELD(vlan_id, 0, htons(0xfff));
	build(4, IPPROTO_UDP, false);
	takes(false);
}

Test(doca_steer, addresses_and_protocol_of_ipv4)
{
	udp4();
	ipv4();
	FIELD(src_ip, htonl(SRC_IP), ~0u);
	takes(true);
	FIELD(src_ip, htonl(SRC_IP + 1), ~0u);
	takes(false);
	FIELD(src_ip, htonl(SRC_IP & ~0xffu), htonl(~0xffu));
	takes(true);
	FIELD(dst_ip, htonl(DST_IP), ~0u);
	takes(true);
	FIELD(dst_ip, htonl(SRC_IP), ~0u);
	takes(false);
	memset(&m, 0, sizeof(m));
	protocol(IPPROTO_UDP);
	takes(true);
	protocol(IPPROTO_TCP);
	takes(false);
	FIELD(ip_protocol, 0x11 & 0xf0, 0xf0);
	takes(true);
	protocol(IPPROTO_UDP);
	FIELD(ether_type, htons(ETH_P_IPV6), 0xffff);
	takes(false);
	build(6, IPPROTO_UDP, false);
	takes(true);
}

Test(doca_steer, ports_of_udp_and_tcp)
{
	const uint8_t protocols[] = { IPPROTO_UDP, IPPROTO_TCP };
	uint32_t i;

	for (i = 0; i < 2; i++) {
		build(4, protocols[i], false);
		protocol(protocols[i]);
		FIELD(src_port, htons(SRC_PORT), 0xffff);
		takes(true);
		FIELD(src_port, htons(SRC_PORT ^ 0x100), 0xffff);
		takes(false);
		FIELD(src_port, 0, 0);
		FIELD(dst_port, htons(DST_PORT), 0xffff);
		takes(true);
		FIELD(dst_port, htons(DST_PORT ^ 1), 0xffff);
		takes(false);
		FIELD(dst_port, htons(DST_PORT & 0xfff0), htons(0xfff0));
		takes(true);
		build(4, protocols[!i], false);
		takes(false);
		memset(&m, 0, sizeof(m));
	}
}

Test(doca_steer, flags_of_tcp)
{
	tcp4(0x12); /* SYN, ACK */
	protocol(IPPROTO_TCP);
	FIELD(tcp_flags, 0x12, 0xff);
	takes(true);
	FIELD(tcp_flags, 0x02, 0xff);
	takes(false);
	FIELD(tcp_flags, 0x02, 0x02);
	takes(true);
	FIELD(tcp_flags, 0x00, 0x04);
	takes(true);
	FIELD(tcp_flags, 0x04, 0x04);
	takes(false);
}

Test(doca_steer, fragments)
{
	udp4();
	ipv4();
	FIELD(fragment, 0, 1);
	takes(true);
	FIELD(fragment, 1, 1);
	takes(false);
	put16(14 + 6, 0x2000); /* more fragments */
	takes(true);
	put16(14 + 6, 0x0010);
	takes(true);
	FIELD(fragment, 0, 1);
	takes(false);
}

Test(doca_steer, the_smaller_priority_applies)
{
	struct gdk_eth_rule *late, *early, *drop;

	udp4();
	ipv4();
	late = steer(0, 7);
	QUEUE(0);
	protocol(IPPROTO_UDP);
	early = steer(2, 6);
	QUEUE(2);
	FIELD(dst_ip, htonl(DST_IP), ~0u);
	OK(gdk_eth_steer(dev, &m, NULL, 0, 0, 5, &drop));
	NOWHERE;
	OK(gdk_eth_steer_destroy(drop));
	QUEUE(2);
	OK(gdk_eth_steer_destroy(early));
	QUEUE(0);
	OK(gdk_eth_steer_destroy(late));
	NOWHERE;
}

Test(doca_steer, two_equal_rules_copy_the_packet)
{
	struct gdk_eth_rule *a, *b;

	udp4();
	ipv4();
	a = steer(0, 4);
	b = steer(3, 4);
	AT(1u << 0 | 1u << 3);
	OK(gdk_eth_steer_destroy(a));
	QUEUE(3);
	OK(gdk_eth_steer_destroy(b));
}

Test(doca_steer, counts_packets_and_bytes)
{
	struct gdk_eth_rule *rule, *drop;
	uint64_t packets, bytes;
	int i;

	protocol(IPPROTO_UDP);
	rule = steer(2, 1);
	protocol(IPPROTO_TCP);
	OK(gdk_eth_steer(dev, &m, NULL, 0, 0, 1, &drop));
	OK(gdk_eth_steer_query(rule, &packets, &bytes));
	cr_expect(packets == 0 && bytes == 0);
	udp4();
	for (i = 0; i < 5; i++)
		QUEUE(2);
	tcp4(2);
	NOWHERE;
	OK(gdk_eth_steer_query(rule, &packets, &bytes));
	cr_expect_eq(packets, 5);
	cr_expect_eq(bytes, 5 * len);
	OK(gdk_eth_steer_query(drop, &packets, &bytes));
	cr_expect_eq(packets, 1);
	cr_expect_eq(bytes, len);
	OK(gdk_eth_steer_destroy(rule));
	OK(gdk_eth_steer_destroy(drop));
}

Test(doca_steer, multicast_comes_last)
{
	struct gdk_eth_rule *rule, *all;

	udp4();
	frame[0] = 1; /* multicast */
	all = steer(0, 14);
	memset(m.mask.dst_mac, 0xff, 6);
	memcpy(m.value.dst_mac, frame, 6);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "priority 3 of a rule for multicast",
		gdk_eth_steer(dev, &m, rxq, 1, 0, 3, &rule));
	rule = steer(1, GDK_ETH_PRIORITY_LAST);
	QUEUE(0);
	OK(gdk_eth_steer_destroy(all));
	QUEUE(1);
	OK(gdk_eth_steer_destroy(rule));
	memset(&m, 0, sizeof(m));
	ipv4();
	FIELD(dst_ip, htonl(0xe0000000), htonl(0xe0000000));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "multicast", gdk_eth_steer(dev, &m, rxq, 1, 0, 3, &rule));
}

Test(doca_steer, a_rule_holds_queue_and_nic)
{
	struct gdk_eth_rule *rule;

	ipv4();
	rule = steer(1, 0);
	cr_expect_eq(atomic_load(&rxqs[1].rules), 1);
	REFUSED(DOCA_ERROR_IN_USE, "", doca_dev_close(dev));
	cr_expect_eq(ibv_destroy_wq(wq[1]), EBUSY, "the queue is in a TIR");
	OK(gdk_eth_steer_destroy(rule));
	cr_expect_eq(atomic_load(&rxqs[1].rules), 0);
}

#define BAD(text, ...) REFUSED(DOCA_ERROR_INVALID_VALUE, text, gdk_eth_steer(__VA_ARGS__))

Test(doca_steer, bad_arguments)
{
	struct doca_eth_rxq *none[2] = { rxq[0], NULL };
	struct gdk_eth_rule *rule = (void *)1;
	uint64_t n;

	BAD("dev NULL", NULL, &m, rxq, 1, 0, 0, &rule);
	BAD("match NULL", dev, NULL, rxq, 1, 0, 0, &rule);
	BAD("rule NULL", dev, &m, rxq, 1, 0, 0, NULL);
	BAD("rxqs NULL", dev, &m, NULL, 1, 0, 0, &rule);
	BAD("rxqs[1] NULL", dev, &m, none, 2, GDK_ETH_HASH_IPV4, 0, &rule);
	BAD("n 513", dev, &m, rxq, 513, 1, 0, &rule);
	BAD("hash 0x8", dev, &m, rxq, 1, 8, 0, &rule);
	BAD("hash 0 with 2 queues", dev, &m, rxq, 2, 0, 0, &rule);
	BAD("priority 16", dev, &m, rxq, 1, 0, 16, &rule);
	rxqs[2].ctx.dev = NULL;
	BAD("rxqs[0]: a queue of another NIC", dev, &m, &rxq[2], 1, 0, 0, &rule);
	rxqs[2].ctx.dev = dev;
	rxqs[2].num = 0;
	REFUSED(DOCA_ERROR_BAD_STATE, "does not run",
		gdk_eth_steer(dev, &m, &rxq[2], 1, 0, 0, &rule));
	cr_expect_eq(rule, (void *)1);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "rule NULL", gdk_eth_steer_destroy(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "rule NULL", gdk_eth_steer_query(NULL, &n, &n));
	ipv4();
	rule = steer(0, 0);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "packets NULL", gdk_eth_steer_query(rule, NULL, &n));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "bytes NULL", gdk_eth_steer_query(rule, &n, NULL));
	OK(gdk_eth_steer_destroy(rule));
}

#define BAD_MATCH(text) BAD(text, dev, &m, rxq, 1, 0, 0, &rule)

Test(doca_steer, matches_that_the_nic_cannot_compare)
{
	struct gdk_eth_rule *rule;

	m.value.src_mac[3] = 1;
	BAD_MATCH("src_mac has bits that its mask does not have");
	memset(&m, 0, sizeof(m));
	FIELD(vlan_id, htons(0x1001), 0xffff);
	BAD_MATCH("vlan_id");
	memset(&m, 0, sizeof(m));
	ipv4();
	m.mask.fragment = 2;
	BAD_MATCH("mask 0x2 of fragment");
	memset(&m, 0, sizeof(m));
	m.mask.dst_ip = ~0u;
	BAD_MATCH("an address without ether_type 0x0800");
	FIELD(ether_type, htons(ETH_P_IPV6), 0xffff);
	BAD_MATCH("an address without ether_type 0x0800");
	memset(&m, 0, sizeof(m));
	m.mask.ip_protocol = 0xff;
	BAD_MATCH("ip_protocol or fragment without ether_type");
	memset(&m, 0, sizeof(m));
	ipv4();
	m.mask.src_port = 0xffff;
	BAD_MATCH("a port without ip_protocol UDP or TCP");
	protocol(IPPROTO_ICMP);
	BAD_MATCH("a port without ip_protocol UDP or TCP");
	protocol(IPPROTO_UDP);
	m.mask.tcp_flags = 1;
	BAD_MATCH("tcp_flags without ip_protocol TCP");
}

#define HASH(text, n, hash) \
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, text, gdk_eth_steer(dev, &m, rxq, n, hash, 0, &rule))

Test(doca_steer, hashes_of_headers_that_the_rule_does_not_match)
{
	struct gdk_eth_rule *rule;

	HASH("a hash of IPv4 addresses", 2, GDK_ETH_HASH_IPV4);
	ipv4();
	HASH("a hash of ports (0x2)", 2, GDK_ETH_HASH_UDP);
	HASH("a hash of ports (0x3)", 2, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_UDP);
	protocol(IPPROTO_TCP);
	HASH("a hash of ports (0x2)", 2, GDK_ETH_HASH_UDP);
	OK(gdk_eth_steer(dev, &m, rxq, 2, GDK_ETH_HASH_UDP | GDK_ETH_HASH_IPV4, 0, &rule));
	OK(gdk_eth_steer_destroy(rule));
	OK(gdk_eth_steer(dev, &m, rxq, 2, GDK_ETH_HASH_TCP, 0, &rule));
	OK(gdk_eth_steer_destroy(rule));
}

Test(doca_steer, rules_need_a_capability)
{
	struct gdk_eth_rule *rule;

	ipv4();
	net_raw(false);
	REFUSED(DOCA_ERROR_NOT_PERMITTED, "flow rules need CAP_NET_RAW",
		gdk_eth_steer(dev, &m, rxq, 1, 0, 0, &rule));
	net_raw(true);
	cr_expect_eq(atomic_load(&rxqs[0].rules), 0);
}

/* A rule that differs from another in one bit of value or mask is not the same. */
Test(doca_steer, same_matches_are_equal_in_every_field)
{
	const size_t last = offsetof(struct gdk_eth_fields, fragment);
	struct gdk_eth_match a, b;
	size_t at;

	memset(&a, 0x55, sizeof(a));
	b = a;
	for (at = 0; at <= last; at++) {
		cr_assert(gdk_match_same(&a, &b));
		((uint8_t *)&b.value)[at] ^= 1;
		cr_expect(!gdk_match_same(&a, &b), "byte %zu of the value", at);
		b = a;
		((uint8_t *)&b.mask)[at] ^= 1;
		cr_expect(!gdk_match_same(&a, &b), "byte %zu of the mask", at);
		b = a;
	}
}
