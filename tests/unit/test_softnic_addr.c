/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * How the software NIC derives MAC, GUID and GIDs from its port's address, finds a
 * peer's address from a GID or LID, and computes the ICRC over both IP versions.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../softnic/eng.h"
#include "../softnic/front.h"

static struct in6_addr addr(const char *text)
{
	struct in6_addr ip;

	cr_assert(sn_addr_parse(text, &ip), "not an address: %s", text);
	return ip;
}

static void gid_text(const struct in6_addr *ip, uint32_t index, char text[INET6_ADDRSTRLEN])
{
	struct sn_cfg cfg = { .ip = *ip };
	struct sn_gid gid;

	cr_assert(sn_gid_at(&cfg, index, &gid));
	cr_assert_eq(gid.v2, index % 2 == 1);
	cr_assert(inet_ntop(AF_INET6, gid.raw, text, INET6_ADDRSTRLEN));
}

Test(softnic_addr, gids_of_an_ipv4_address)
{
	struct in6_addr ip = addr("192.168.17.5");
	struct sn_cfg cfg = { .ip = ip };
	char text[INET6_ADDRSTRLEN];
	struct sn_gid gid;

	gid_text(&ip, 0, text);
	cr_assert_str_eq(text, "fe80::c0ff:fea8:1105");
	gid_text(&ip, 3, text);
	cr_assert_str_eq(text, "::ffff:192.168.17.5");
	cr_assert_not(sn_gid_at(&cfg, 4, &gid));
}

Test(softnic_addr, gids_of_an_ipv6_address)
{
	struct in6_addr ip = addr("2001:db8::1:2:3");
	char text[INET6_ADDRSTRLEN];

	gid_text(&ip, 1, text);
	cr_assert_str_eq(text, "fe80::ff:fe02:3");
	gid_text(&ip, 2, text);
	cr_assert_str_eq(text, "2001:db8::1:2:3");
}

Test(softnic_addr, every_gid_gives_its_address)
{
	static const char *const pairs[][2] = {
		{ "127.16.0.1", "127.239.254.254" },
		{ "10.0.0.1", "10.255.254.253" },
		{ "2001:db8::1", "2001:db8::ff:fe" },
	};
	struct in6_addr own, peer, got;
	struct sn_cfg cfg = { 0 };
	struct sn_gid gid;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		own = addr(pairs[i][0]);
		cfg.ip = peer = addr(pairs[i][1]);
		for (uint32_t n = 0; sn_gid_at(&cfg, n, &gid); n++) {
			cr_assert(sn_addr_of_gid(&own, gid.raw, &got), "%s: no address for GID %u",
				  pairs[i][1], n);
			cr_assert(sn_addr_same(&got, &peer), "%s: wrong address for GID %u",
				  pairs[i][1], n);
		}
	}
}

Test(softnic_addr, foreign_gids_give_no_address)
{
	static const char *const nowhere[] = {
		"::",
		"ff0e::1",
		"2001:db8::1",
		"::1",
		"::ffff:0:0:1",
		"fe80::1", /* not derived from a MAC address */
		/* derived from a MAC address that does not begin with 02:00 */
		"fe80::100:c0ff:fea8:1105",
		"fe80::1:0:c0ff:fea8:1105",
	};
	struct in6_addr own = addr("192.168.17.6"), got;
	uint8_t gid[16];

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		cr_assert_eq(inet_pton(AF_INET6, nowhere[i], gid), 1);
		cr_expect_not(sn_addr_of_gid(&own, gid, &got), "%s must have no address",
			      nowhere[i]);
	}
	own = addr("2001:db8::1");
	cr_assert_eq(inet_pton(AF_INET6, "::ffff:10.0.0.1", gid), 1);
	cr_assert_not(sn_addr_of_gid(&own, gid, &got),
		      "an IPv4 GID must be unreachable from an IPv6 port");
}

Test(softnic_addr, addresses_are_parsed_and_printed)
{
	static const char *const bad[] = { "", "0.0.0.0", "1.2.3", "::", "fe80::1", "ff02::1" };
	static const char *const good[] = { "10.1.2.3", "2001:db8::7" };
	char text[INET6_ADDRSTRLEN];
	struct in6_addr ip;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(sn_addr_parse(bad[i], &ip), "%s must be refused", bad[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ip = addr(good[i]);
		sn_addr_text(&ip, text);
		cr_expect_str_eq(text, good[i]);
	}
}

Test(softnic_addr, picked_addresses_are_loopback)
{
	struct in6_addr ip;

	for (int lid = 0; lid < 2; lid++) {
		cr_assert_eq(sn_addr_pick(&ip, lid), 0);
		cr_assert(IN6_IS_ADDR_V4MAPPED(&ip));
		cr_assert_eq(ip.s6_addr[12], 127);
		cr_assert_eq(ip.s6_addr[13] == 15, lid);
		cr_assert(!lid || sn_lid_of_ip(&ip));
	}
}

Test(softnic_addr, every_lid_gives_its_address)
{
	struct in6_addr own = addr("127.15.0.1"), peer = addr("127.15.191.254"), got;

	cr_assert_eq(sn_lid_of_ip(&own), 1);
	cr_assert_eq(sn_lid_of_ip(&peer), 0xbffe);
	cr_assert(sn_addr_of_lid(&own, 0xbffe, &got) && sn_addr_same(&got, &peer));
	cr_assert_not(sn_addr_of_lid(&own, 0, &got));
	cr_assert_not(sn_addr_of_lid(&own, 0xc000, &got), "a multicast LID must be refused");
	peer = addr("127.15.192.1");
	cr_assert_eq(sn_lid_of_ip(&peer), 0);
}

Test(softnic_addr, destination_of_an_address_vector)
{
	struct sn_cfg roce = { .ip = addr("127.15.0.1") }, ib = roce, peer = roce;
	struct sn_dest d = { .dlid = 0x203 };
	struct in6_addr got;
	struct sn_gid gid;

	ib.infiniband = true;
	peer.ip = addr("127.15.2.3");
	cr_assert_eq(sn_dest_find(&roce, &d, &got), -EINVAL, "RoCE needs a GRH");
	cr_assert_eq(sn_dest_find(&ib, &d, &got), 0);
	cr_assert(sn_addr_same(&got, &peer.ip));
	ib.grh_required = true;
	cr_assert_eq(sn_dest_find(&ib, &d, &got), -EINVAL, "the port requires a GRH");
	d.grh = true;
	cr_assert(sn_gid_at(&peer, 0, &gid));
	memcpy(d.dgid, gid.raw, 16);
	cr_assert_eq(sn_dest_find(&ib, &d, &got), 0);
	d.dlid++;
	cr_assert_eq(sn_dest_find(&ib, &d, &got), -EHOSTUNREACH,
		     "LID and GID of different ports must be refused");
	cr_assert_eq(sn_dest_find(&roce, &d, &got), 0);
	d.sgid_index = 1;
	cr_assert_eq(sn_dest_find(&ib, &d, &got), -EINVAL, "an InfiniBand port has only one GID");
	d.sgid_index = 4;
	cr_assert_eq(sn_dest_find(&roce, &d, &got), -EINVAL, "an empty GID index must be refused");
}

/* The ICRC covers all header bits but traffic class, flow label, hop limit and UDP checksum. */
Test(softnic_addr, icrc_of_ipv6)
{
	static const uint8_t bth[16] = { 4, 0, 0xff, 0xff, 0, 0, 1, 2 };
	static const uint8_t mask[48] = {
		0x0f, 0xff, 0xff, 0xff, [7] = 0xff, [46] = 0xff, [47] = 0xff
	};
	uint8_t head[48] = { 0x60, 0, 0, 0, 0, 28, 17, 64, 0xfe, 0x80 };
	uint32_t want = sn_icrc(head, sizeof(head), bth, sizeof(bth));

	for (unsigned int bit = 0; bit < 48 * 8; bit++) {
		uint8_t flip = (uint8_t)(1u << bit % 8);
		bool same;

		head[bit / 8] ^= flip;
		same = sn_icrc(head, sizeof(head), bth, sizeof(bth)) == want;
		cr_expect_eq(same, (mask[bit / 8] & flip) != 0, "bit %u is covered wrongly", bit);
		head[bit / 8] ^= flip;
	}
}
