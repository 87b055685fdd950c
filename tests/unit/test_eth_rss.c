/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The RSS hash: Microsoft's published vectors ("Verifying the RSS hash calculation"), the
 * selected fields, symmetric hashes, types, and the choice of an RQ from a table.
 */
#include <arpa/inet.h>

#include "eth_rq_rig.h"

static const uint8_t ms_key[SN_HASH_KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};
#define ADDRS (SN_HASH_SRC_IP | SN_HASH_DST_IP)
#define PORTS (SN_HASH_L4_SPORT | SN_HASH_L4_DPORT)

static struct sn_tir tir;
static struct sn_parsed p;
static uint8_t type;

static void setup(void)
{
	tir = (struct sn_tir){ .fn = SN_HASH_TOEPLITZ, .fields = ADDRS | PORTS };
	memcpy(tir.key, ms_key, SN_HASH_KEY);
}

TestSuite(eth_rss, .init = setup);

static uint32_t hash(void)
{
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	return sn_eth_hash(&tir, rig_frame.data, &p, &type);
}

/* A bit-by-bit model: bit i of the input selects 32 key bits from bit i on. */
static uint32_t slow_toeplitz(const uint8_t *in, unsigned len)
{
	uint32_t h = 0;

	for (unsigned i = 0; i < len * 8; i++) {
		if (!(in[i / 8] >> (7 - i % 8) & 1))
			continue;
		for (unsigned j = 0; j < 32; j++)
			h ^= (uint32_t)(tir.key[(i + j) / 8] >> (7 - (i + j) % 8) & 1) << (31 - j);
	}
	return h;
}

struct v4 {
	uint8_t dst[4], src[4];
	uint16_t dport, sport;
	uint32_t l3, l4;
};

Test(eth_rss, published_vectors_of_ipv4)
{
	static const struct v4 v[] = {
		{ { 161, 142, 100, 80 }, { 66, 9, 149, 187 }, 1766, 2794, 0x323e8fc2, 0x51ccc178 },
		{ { 65, 69, 140, 83 }, { 199, 92, 111, 2 }, 4739, 14230, 0xd718262a, 0xc626b0ea },
		{ { 12, 22, 207, 184 }, { 24, 19, 198, 95 }, 38024, 12898, 0xd2d0a5de, 0x5c2b394a },
		{ { 209, 142, 163, 6 }, { 38, 27, 205, 30 }, 2217, 48228, 0x82989176, 0xafc7327f },
		{ { 202, 188, 127, 2 },
		  { 153, 39, 163, 191 },
		  1303,
		  44251,
		  0x5d1809c5,
		  0x10e828a2 },
	};

	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		build_frame(&(struct build){ .l4 = 6, .sport = v[i].sport, .dport = v[i].dport });
		memcpy(rig_frame.data + 26, v[i].src, 4);
		memcpy(rig_frame.data + 30, v[i].dst, 4);
		tir.fields = ADDRS | PORTS;
		cr_assert_eq(hash(), v[i].l4, "vector %u", i);
		cr_assert_eq(type, 0x44, "IPv4 and TCP");
		tir.fields = ADDRS;
		cr_assert_eq(hash(), v[i].l3, "vector %u", i);
		cr_assert_eq(type, 0x04);
	}
}

struct v6 {
	const char *dst, *src;
	uint16_t dport, sport;
	uint32_t l3, l4;
};

Test(eth_rss, published_vectors_of_ipv6)
{
	static const struct v6 v[] = {
		{ "3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5,
		  0x40207d3d },
		{ "ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c,
		  0xdde51bbf },
		{ "fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
		  0x4b61e985, 0x02d1feef },
	};

	tir.ipv6 = true;
	for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		build_frame(&(struct build){ .ip = 6,
					     .l4 = 6,
					     .sport = v[i].sport,
					     .dport = v[i].dport });
		inet_pton(AF_INET6, v[i].src, rig_frame.data + 22);
		inet_pton(AF_INET6, v[i].dst, rig_frame.data + 38);
		tir.fields = ADDRS | PORTS;
		cr_assert_eq(hash(), v[i].l4, "vector %u", i);
		cr_assert_eq(type, 0x48, "IPv6 and TCP");
		tir.fields = ADDRS;
		cr_assert_eq(hash(), v[i].l3, "vector %u", i);
		cr_assert_eq(type, 0x08);
	}
}

/* Each subset of the fields, of both IP versions and layers 4, against the model. */
Test(eth_rss, selected_fields)
{
	for (unsigned i = 0; i < 16 * 4; i++) {
		bool v6 = i & 16, udp = i & 32;
		uint32_t at = v6 ? 22 : 26, len = v6 ? 16 : 4, l4 = v6 ? 54 : 34;
		uint8_t in[36];
		unsigned n = 0;

		tir.ipv6 = v6;
		tir.udp = udp;
		tir.fields = i & 15;
		build_frame(&(struct build){ .ip = v6 ? 6 : 4,
					     .l4 = udp ? 17 : 6,
					     .sport = 0x1234,
					     .dport = 0xfedc });
		for (unsigned f = 0; f < 4; f++) {
			unsigned size = f < 2 ? len : 2;

			if (tir.fields & 1u << f)
				memcpy(in + n, rig_frame.data + (f < 2 ? at : l4) + f % 2 * size,
				       size);
			n += tir.fields & 1u << f ? size : 0;
		}
		cr_assert_eq(hash(), slow_toeplitz(in, n), "case %u", i);
		cr_assert_eq(type, (i & 3 ? v6 ? 8 : 4 : 0) | (i & 12 ? udp ? 0x80 : 0x40 : 0));
	}
}

Test(eth_rss, other_types_of_frames)
{
	static const uint8_t addrs[8] = { 192, 0, 2, 17, 198, 51, 100, 33 };
	const uint32_t l3 = slow_toeplitz(addrs, 8);

	build_frame(&(struct build){ .l4 = 17, .sport = 1, .dport = 2 });
	cr_assert_eq(hash(), l3, "UDP, where ports of TCP are selected");
	cr_assert_eq(type, 0x04);
	build_frame(&(struct build){ .l4 = 6, .sport = 1, .dport = 2, .fragment = 0x2000 });
	cr_assert_eq(hash(), l3, "ports of fragments are not hashed");
	cr_assert_eq(type, 0x04);
	build_frame(&(struct build){ .ip = 6, .l4 = 6 });
	cr_assert_eq(hash(), 0);
	cr_assert_eq(type, 0);
	build_frame(&(struct build){ .ip = 1 });
	cr_assert_eq(hash(), 0);
	cr_assert_eq(type, 0);
	build_frame(&(struct build){ .l4 = 6 });
	tir.fn = SN_HASH_NONE;
	cr_assert_eq(hash(), 0);
	cr_assert_eq(type, 0);
}

/* Exchanges addresses and ports. */
static void turn(bool v6)
{
	uint8_t *ip = rig_frame.data + (v6 ? 22 : 26), *l4 = rig_frame.data + (v6 ? 54 : 34), t[16];
	uint32_t len = v6 ? 16 : 4;

	memcpy(t, ip, len);
	memcpy(ip, ip + len, len);
	memcpy(ip + len, t, len);
	memcpy(t, l4, 2);
	memcpy(l4, l4 + 2, 2);
	memcpy(l4 + 2, t, 2);
}

Test(eth_rss, symmetric_hashes)
{
	static const uint8_t in[12] = { 192 | 198, 0 | 51,  2 | 100, 17 | 33, 192 ^ 198, 0 ^ 51,
					2 ^ 100,   17 ^ 33, 0x32,    0x35,    0x32,	 0x35 };
	uint32_t one;

	for (int v6 = 0; v6 < 2; v6++) {
		tir.ipv6 = v6;
		build_frame(&(struct build){ .ip = v6 ? 6 : 4,
					     .l4 = 6,
					     .sport = 0x1234,
					     .dport = 0x2001 });
		tir.symmetric = false;
		one = hash();
		turn(v6);
		cr_assert_neq(hash(), one);
		tir.symmetric = true;
		one = hash();
		turn(v6);
		cr_assert_eq(hash(), one);
		cr_assert_eq(type, v6 ? 0x48 : 0x44);
	}
	tir.ipv6 = false;
	build_frame(&(struct build){ .l4 = 6, .sport = 0x3234, .dport = 0x0001 });
	cr_assert_eq(hash(), slow_toeplitz(in, 12));
	/* a single field has no partner */
	tir.fields = SN_HASH_SRC_IP;
	cr_assert_eq(hash(), slow_toeplitz(rig_frame.data + 26, 4));
}

Test(eth_rss, picks_the_entry_of_the_hash)
{
	struct sn_qp q[3];
	struct sn_qp *entries[4] = { &q[0], &q[1], &q[2], &q[1] };
	struct sn_rqt rqt = { .rq = entries, .n = 4, .max = 8 };

	tir.rqt = &rqt;
	for (uint32_t h = 0; h < 16; h++)
		cr_assert_eq(sn_eth_pick(&tir, h * 0x11110001), entries[h % 4]);
	rqt.n = 0;
	cr_assert_null(sn_eth_pick(&tir, 5));
	tir.rqt = NULL;
	tir.rq = &q[2];
	cr_assert_eq(sn_eth_pick(&tir, 5), &q[2]);
}
