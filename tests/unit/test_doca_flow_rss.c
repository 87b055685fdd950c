/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Rules to several queues: each frame arrives in the queue that the hash of its headers selects,
 * and in no other. The hash is computed here from Microsoft's description. With GDAKI_RSS_OUT=FILE,
 * the key, the hashed bytes and the queue of each frame are written there, for tests/flow_rss.py,
 * which compares them with DPDK's hash.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <stdio.h>

#include "steer_rig.h"

#define FRAMES 200u

static const uint8_t key[40] = GDK_ETH_HASH_KEY;
static struct gdk_eth_match m;
static FILE *out;

static void setup(void)
{
	const char *name = getenv("GDAKI_RSS_OUT");

	steer_open();
	memset(&m, 0, sizeof(m));
	m.value.ether_type = htons(ETH_P_IP);
	m.mask.ether_type = 0xffff;
	out = name ? fopen(name, "a") : NULL;
}

static void teardown(void)
{
	if (out)
		fclose(out);
	steer_close();
}

TestSuite(doca_flow_rss, .init = setup, .fini = teardown);

/* The hash is the XOR of the 32 bits of the key at the position of each set bit of the input. */
static uint32_t hash_of(const uint8_t *in, uint32_t bytes)
{
	uint32_t hash = 0, bit, k;

	for (bit = 0; bit < bytes * 8; bit++)
		if (in[bit / 8] & 0x80 >> bit % 8)
			for (k = 0; k < 32; k++)
				hash ^= (uint32_t)(key[(bit + k) / 8] >> (7 - (bit + k) % 8) & 1)
					<< (31 - k);
	return hash;
}

Test(doca_flow_rss, examples_of_microsoft)
{
	/* "Verifying the RSS hash calculation": 66.9.149.187:2794 to 161.142.100.80:1766 */
	const uint8_t in[] = { 66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6 };

	cr_expect_eq(hash_of(in, 8), 0x323e8fc2);
	cr_expect_eq(hash_of(in, 12), 0x51ccc178);
}

/* m of gdk_eth_steer.h */
static uint32_t entries(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power == n ? n : power * 16;
}

static void log_frame(const uint8_t *in, uint32_t bytes, uint32_t n, uint32_t queue)
{
	uint32_t i;

	if (!out)
		return;
	for (i = 0; i < sizeof(key); i++)
		fprintf(out, "%02x", key[i]);
	fputc(' ', out);
	for (i = 0; i < bytes; i++)
		fprintf(out, "%02x", in[i]);
	fprintf(out, " %u %u %u\n", entries(n), n, queue);
}

/* Sends frames with other addresses and ports; `hashed` selects the bytes that are hashed. */
static void spread(uint8_t protocol, uint32_t n, bool addresses, bool ports)
{
	uint32_t i, bytes, queue, used[QUEUES] = { 0 };
	uint8_t in[12];

	for (i = 0; i < FRAMES; i++) {
		build(4, protocol, false);
		put16(14 + 14, (uint16_t)(i * 7919));
		put16(14 + 18, (uint16_t)(i * 104729));
		put16(14 + 20, (uint16_t)(i * 31 + 5));
		put16(14 + 22, (uint16_t)(i * 1009));
		bytes = 0;
		if (addresses) {
			memcpy(in, frame + 14 + 12, 8);
			bytes = 8;
		}
		if (ports) {
			memcpy(in + bytes, frame + 14 + 20, 4);
			bytes += 4;
		}
		queue = hash_of(in, bytes) % entries(n) % n;
		QUEUE(queue);
		used[queue]++;
		log_frame(in, bytes, n, queue);
	}
	for (i = 0; i < n; i++)
		cr_expect_geq(used[i], FRAMES / n / 2, "queue %u: %u frames", i, used[i]);
}

static void spread_by(uint8_t protocol, uint32_t n, uint32_t hash, bool ports)
{
	struct gdk_eth_rule *rule;

	m.value.ip_protocol = protocol;
	m.mask.ip_protocol = 0xff;
	OK(gdk_eth_steer(dev, &m, rxq, n, hash, 2, &rule));
	spread(protocol, n, hash & GDK_ETH_HASH_IPV4, ports);
	OK(gdk_eth_steer_destroy(rule));
}

Test(doca_flow_rss, addresses_and_ports, .timeout = 60)
{
	spread_by(IPPROTO_UDP, 4, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_UDP, true);
	spread_by(IPPROTO_TCP, 2, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_TCP | GDK_ETH_HASH_UDP, true);
}

Test(doca_flow_rss, ports_only, .timeout = 60)
{
	spread_by(IPPROTO_UDP, 4, GDK_ETH_HASH_UDP, true);
}

Test(doca_flow_rss, addresses_only, .timeout = 60)
{
	spread_by(IPPROTO_UDP, 4, GDK_ETH_HASH_IPV4, false);
	spread_by(IPPROTO_UDP, 4, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_TCP, false);
}

Test(doca_flow_rss, three_queues, .timeout = 60)
{
	spread_by(IPPROTO_UDP, 3, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_UDP, true);
}

/* One queue with a hash: the NIC also hashes, for the CQE. */
Test(doca_flow_rss, one_queue)
{
	struct gdk_eth_rule *rule;

	OK(gdk_eth_steer(dev, &m, &rxq[3], 1, GDK_ETH_HASH_IPV4, 0, &rule));
	udp4();
	QUEUE(3);
	OK(gdk_eth_steer_destroy(rule));
}
