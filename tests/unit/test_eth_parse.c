/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The parser of Ethernet frames: match fields, compared with bit offsets of mlx5_ifc.h,
 * checksums, extension headers, and frames that are too short or contradict themselves.
 */
#include <sys/mman.h>

#include "eth_rq_rig.h"

static struct sn_parsed p;

static void parse(const struct build *b)
{
	build_frame(b);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
}

/* Stores n bits at a bit offset, one by one, as the PRM numbers them. */
static void set_bits(uint8_t *to, unsigned off, unsigned n, uint64_t value)
{
	while (n--) {
		if (value >> n & 1)
			to[off / 8] |= (uint8_t)(0x80 >> off % 8);
		off++;
	}
}

static void expect_tags(const struct build *b, uint8_t *m)
{
	if (!b->tag_type[0])
		return;
	set_bits(m, 0x70, 3, b->tci[0] >> 13);
	set_bits(m, 0x73, 1, b->tci[0] >> 12 & 1);
	set_bits(m, 0x74, 12, b->tci[0] & 0xfff);
	set_bits(m, b->tag_type[0] == 0x8100 ? 0x90 : 0x91, 1, 1);
}

static void expect_l4(const struct build *b, uint8_t *m)
{
	uint8_t proto = b->l4 ? b->l4 : 17;

	set_bits(m, 0x80, 8, proto);
	if (b->fragment & 0x3fff) {
		set_bits(m, 0x92, 1, 1);
	} else if (proto == 6) {
		set_bits(m, 0x97, 9, b->tcp_flags);
		set_bits(m, 0xa0, 16, b->sport);
		set_bits(m, 0xb0, 16, b->dport);
		set_bits(m, 0xc0, 2, 1);
	} else if (proto == 17) {
		set_bits(m, 0xe0, 16, b->sport);
		set_bits(m, 0xf0, 16, b->dport);
		set_bits(m, 0xc0, 2, 2);
	}
}

/* The match fields of a frame that was built from b. */
static void expect(const struct build *b, uint8_t m[SN_MATCH_LEN])
{
	memset(m, 0, SN_MATCH_LEN);
	set_bits(m, 0x00, 48, 0x02000b040506);
	set_bits(m, 0x30, 16, b->ip == 1 ? 0x88b5 : b->ip == 6 ? 0x86dd : 0x0800);
	set_bits(m, 0x40, 48, 0x02000a010203);
	expect_tags(b, m);
	if (b->ip == 1)
		return;
	expect_l4(b, m);
	set_bits(m, 0x88, 6, b->tos >> 2);
	set_bits(m, 0x8e, 2, b->tos & 3);
	set_bits(m, 0x93, 4, b->ip == 6 ? 6 : 4);
	set_bits(m, 0xd8, 8, b->ttl);
	if (b->ip == 6) {
		for (unsigned i = 0; i < 32; i++)
			set_bits(m, 0x100 + 8 * i, 8, 0x20 + i);
		return;
	}
	set_bits(m, 0xd0, 4, 5 + b->options / 4);
	set_bits(m, 0x160, 32, 0xc0000211);
	set_bits(m, 0x1e0, 32, 0xc6336421);
}

static struct build random_build(void)
{
	static const uint8_t protos[] = { 6, 17, 1 }, ips[] = { 4, 6, 4, 6, 1 };
	struct build b = { .ip = ips[rand() % 5], .l4 = protos[rand() % 3] };
	int tags = rand() % 3;

	for (int i = 0; i < tags; i++) {
		b.tag_type[i] = rand() % 2 ? 0x8100 : 0x88a8;
		b.tci[i] = (uint16_t)rand();
	}
	b.options = b.ip == 4 ? (uint32_t)(rand() % 11) * 4 : 0;
	b.fragment = b.ip == 4 && rand() % 4 == 0 ? (uint16_t)rand() & 0x7fff : 0;
	b.tos = (uint8_t)rand();
	b.ttl = (uint8_t)rand();
	b.tcp_flags = (uint8_t)rand();
	b.sport = (uint16_t)rand();
	b.dport = (uint16_t)rand();
	b.payload = (uint32_t)(rand() % 1500);
	b.pad = (uint32_t)(rand() % 20);
	return b;
}

Test(eth_parse, match_fields_of_random_frames)
{
	uint8_t m[SN_MATCH_LEN];

	for (int i = 0; i < 20000; i++) {
		struct build b = random_build();
		bool l4 = b.ip != 1 && !(b.fragment & 0x3fff) && b.l4 != 1;

		parse(&b);
		expect(&b, m);
		cr_assert_arr_eq(p.match, m, SN_MATCH_LEN, "frame %d", i);
		cr_assert(!p.malformed && !p.l3_bad && !p.l4_bad);
		cr_assert_eq(p.l3_ok, b.ip != 1);
		cr_assert_eq(p.l4_ok, l4);
		cr_assert_eq(p.l4, l4 ? b.l4 : 0);
		cr_assert_eq(p.fragment, (b.fragment & 0x3fff) != 0);
		cr_assert_eq(p.ip, b.ip == 1 ? 0 : b.ip);
		cr_assert_eq(p.l2_len, 14 + 4 * (!!b.tag_type[0] + !!b.tag_type[1]));
		cr_assert_eq(p.vlan, b.tag_type[0] == 0x8100);
		cr_assert_eq(p.tci, p.vlan ? b.tci[0] : 0);
		cr_assert_eq(p.ip_options, b.options != 0);
		if (b.ip != 1)
			cr_assert_eq(p.l3_off + p.l3_len, rig_frame.len - b.pad);
	}
}

Test(eth_parse, nine_tcp_flags)
{
	parse(&(struct build){ .l4 = 6 });
	rig_frame.data[14 + 20 + 12] |= 1;
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert_eq(p.match[0x12] & 1, 1, "the ninth flag is missing");
	cr_assert_eq(p.match[0x13], 0);
	cr_assert(p.tcp_empty);
	parse(&(struct build){ .l4 = 6, .payload = 1 });
	cr_assert(!p.tcp_empty);
}

/* Inverts each bit of a frame. A checksum must notice it, unless the bit is in no sum. */
static void flip_all(const struct build *b, uint32_t l3, uint32_t l4)
{
	uint32_t end = build_frame(b) - b->pad;

	for (uint32_t i = l3; i < end; i++) {
		for (int bit = 0; bit < 8; bit++) {
			rig_frame.data[i] ^= (uint8_t)(1 << bit);
			sn_eth_parse(rig_frame.data, rig_frame.len, &p);
			if (i < l4 && b->ip != 6)
				cr_assert(!p.l3_ok, "byte %u", i);
			if (i >= l4 || b->ip == 6)
				cr_assert(p.l3_ok == (p.ip != 0) &&
						  (!p.l4_ok || p.l4_no_csum || i < l4),
					  "byte %u", i);
			rig_frame.data[i] ^= (uint8_t)(1 << bit);
		}
	}
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(p.l3_ok && p.l4_ok && !p.l4_no_csum);
}

Test(eth_parse, checksums_notice_each_bit)
{
	flip_all(&(struct build){ .payload = 33, .pad = 3 }, 14, 34);
	flip_all(&(struct build){ .l4 = 6, .payload = 32, .options = 8 }, 14, 42);
	flip_all(&(struct build){ .ip = 6, .payload = 33, .tag_type = { 0x8100 } }, 18, 58);
	flip_all(&(struct build){ .ip = 6, .l4 = 6, .payload = 7 }, 14, 54);
}

Test(eth_parse, wrong_checksums_are_bad_not_unknown)
{
	parse(&(struct build){ .payload = 4 });
	rig_frame.data[14 + 8]++;
	rig_frame.data[14 + 20 + 9]++;
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(p.l3_bad && p.l4_bad && !p.l3_ok && !p.l4_ok && p.l4 == 17);
}

Test(eth_parse, udp_without_a_checksum)
{
	parse(&(struct build){ .payload = 4 });
	put16(rig_frame.data + 14 + 20 + 6, 0);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(p.l4_ok && p.l4_no_csum && !p.l4_bad);
	parse(&(struct build){ .ip = 6, .payload = 4 });
	put16(rig_frame.data + 14 + 40 + 6, 0);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(!p.l4_ok && !p.l4_no_csum && p.l4_bad, "UDP over IPv6 needs a checksum");
}

Test(eth_parse, udp_may_be_shorter_than_the_ip_packet)
{
	parse(&(struct build){ .payload = 40 });
	put16(rig_frame.data + 14 + 20 + 4, 8);
	build_csum(&(struct build){ 0 }, rig_frame.data + 34, 8, rig_frame.data + 26, 8);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(p.l4 == 17 && p.l4_ok);
	put16(rig_frame.data + 14 + 20 + 4, 49);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(p.malformed && !p.l4 && !p.l4_ok && p.ip == 4);
	put16(rig_frame.data + 14 + 20 + 4, 7);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(p.malformed && !p.l4);
}

/* ---- IPv6 extension headers ---- */

static void parse_ext(const uint8_t *ext, uint32_t len, uint8_t first)
{
	parse(&(struct build){ .ip = 6,
			       .ext = ext,
			       .ext_len = len,
			       .first_ext = first,
			       .payload = 9 });
}

Test(eth_parse, ipv6_extension_headers_are_skipped)
{
	/* hop-by-hop options, destination options (16 bytes), authentication (12 bytes) */
	static const uint8_t ext[36] = { [0] = 60, [8] = 51, [9] = 1, [24] = 17, [25] = 1 };

	parse_ext(ext, sizeof(ext), 0);
	cr_assert(p.l4 == 17 && p.l4_ok && p.ip_options && !p.fragment && !p.malformed);
	cr_assert_eq(p.l4_off, 14 + 40 + 36);
	cr_assert_eq(p.match[0x10], 17);
}

Test(eth_parse, ipv6_fragments_have_no_layer_4)
{
	static const uint8_t ext[8] = { 17, 0, 0, 1 };

	parse_ext(ext, sizeof(ext), 44);
	cr_assert(p.fragment && !p.l4 && !p.l4_ok && !p.l4_bad && p.l3_ok);
	cr_assert_eq(p.match[0x10], 17);
	cr_assert_eq(p.match[0x12] >> 5 & 1, 1);
}

Test(eth_parse, a_pending_routing_header_forbids_verification)
{
	static const uint8_t left[8] = { 17, 0, 0, 1 }, none[8] = { 17, 0, 0, 0 };

	parse_ext(left, sizeof(left), 43);
	cr_assert(p.l4 == 17 && !p.l4_ok && !p.l4_bad);
	parse_ext(none, sizeof(none), 43);
	cr_assert(p.l4 == 17 && p.l4_ok);
}

Test(eth_parse, extension_headers_beyond_the_packet)
{
	static const uint8_t ext[8] = { 17, 200 };

	parse_ext(ext, sizeof(ext), 0);
	cr_assert(p.malformed && !p.l4 && p.ip == 6);
}

/* ---- hostile frames ---- */

Test(eth_parse, headers_that_contradict_the_length)
{
	struct {
		uint32_t at;
		uint8_t value;
	} bad[] = { { 14, 0x44 }, { 14, 0x55 }, { 14, 0x4f }, { 17, 19 }, { 17, 0xff }, { 16, 1 } };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		build_frame(&(struct build){ .payload = 4 });
		rig_frame.data[bad[i].at] = bad[i].value;
		sn_eth_parse(rig_frame.data, rig_frame.len, &p);
		cr_assert(p.malformed && !p.ip && !p.l4 && !p.l3_ok && !p.l4_ok, "case %u", i);
		/* Rules match a packet that only exceeds the frame. */
		cr_assert_eq(p.match[0x12] & 0x1e, i < 4 ? 0 : 4 << 1, "IP version, case %u", i);
	}
	build_frame(&(struct build){ .l4 = 6 });
	for (unsigned i = 0; i < 16; i++) {
		rig_frame.data[14 + 20 + 12] = (uint8_t)(i << 4);
		sn_eth_parse(rig_frame.data, rig_frame.len, &p);
		cr_assert_eq(p.l4, i == 5 ? 6 : 0, "TCP header of %u words", i);
	}
	build_frame(&(struct build){ .ip = 6 });
	put16(rig_frame.data + 18, 9);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert(p.malformed && !p.ip);
	cr_assert_eq(p.match[0x12] & 0x1e, 6 << 1);
}

/* Copies of frames and random bytes end at an inaccessible page, so that a read beyond them
 * faults. */
Test(eth_parse, never_reads_beyond_the_frame)
{
	static const uint8_t ext[24] = { [0] = 43, [8] = 44, [16] = 6 };
	uint8_t *page = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	uint8_t *end = page + 8192;
	uint32_t len;

	cr_assert_neq(page, MAP_FAILED);
	cr_assert_eq(mprotect(end, 4096, PROT_NONE), 0);
	for (int i = 0; i < 60000; i++) {
		struct build b = random_build();

		if (b.ip == 6 && rand() % 2) {
			b.ext = ext;
			b.ext_len = sizeof(ext);
		}
		len = build_frame(&b);
		for (int n = rand() % 4; n > 0; n--)
			rig_frame.data[12 + rand() % 60] = (uint8_t)rand();
		len = (uint32_t)rand() % (rand() % 2 ? 80 : len + 1);
		memcpy(end - len, rig_frame.data, len);
		sn_eth_parse(end - len, len, &p);
		cr_assert_leq(p.l3_off + p.l3_len, len);
		cr_assert_leq(p.l4_off, len);
	}
	munmap(page, 12288);
}

Test(eth_parse, sums)
{
	uint8_t data[40];
	uint64_t sum;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(0xff - i * 5);
	for (uint32_t len = 0; len <= sizeof(data); len++)
		cr_assert_eq(sn_csum_fold(sn_csum_add(7, data, len)), slow_sum(7, data, len));
	sum = sn_csum_add(sn_csum_add(0, data, 6), data + 6, 9);
	cr_assert_eq(sn_csum_fold(sum), slow_sum(0, data, 15));
	cr_assert_eq(sn_csum_fold(UINT64_MAX), 0xffff);
	cr_assert_eq(sn_csum_fold(0x1fffeffff), 1 + 0xfffe + 0);
}
