/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Each field of the specs of ibv_create_flow, with frames: a rule for the field's value
 * matches the frame, and does not if a bit of the field differs.
 */
#include "flow_rig.h"

TestSuite(verbs_flow_fields, .init = rig_open, .fini = rig_close);

struct field {
	uint32_t type;
	uint16_t size, val, mask; /* of the spec, and offsets of value and mask in it */
	uint16_t at, bytes;	  /* place in the spec's value */
	uint16_t off;		  /* place in the frame */
};

#define FIELD(spec_type, s, field, n, frame_off) \
	{ \
		spec_type, sizeof(struct s), offsetof(struct s, val), offsetof(struct s, mask), \
			(uint16_t)(offsetof(struct s, val.field) - offsetof(struct s, val)), n, \
			frame_off \
	}

/* A rule for the field's value in the frame receives it, and does not if a bit differs. */
static void check_field(const struct field *f)
{
	uint32_t bit, bits = 8u * f->bytes, step = bits > 16 ? 11 : 1;
	uint8_t *s;

	rule_start(IBV_FLOW_ATTR_NORMAL, 0, 0);
	s = rule_spec(f->type, f->size);
	memcpy(s + f->val + f->at, frame + f->off, f->bytes);
	memset(s + f->mask + f->at, 0xff, f->bytes);
	rule_add(0);
	cr_assert_eq(received(1), 1u, "spec %#x, field at %u", f->type, f->at);
	for (bit = 0; bit < bits; bit += step) {
		frame[f->off + bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(received(0), 0u, "spec %#x, field at %u, bit %u", f->type, f->at, bit);
		frame[f->off + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	no_rules();
}

static void check_fields(const struct field *f, size_t n)
{
	while (n--)
		check_field(f++);
}

Test(verbs_flow_fields, fields_of_ethernet)
{
	static const struct field fields[] = {
		FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth, dst_mac, 6, 0),
		FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth, src_mac, 6, 6),
		FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth, ether_type, 2, 12),
	};

	build(4, IPPROTO_UDP, false);
	check_fields(fields, 3);
}

Test(verbs_flow_fields, fields_of_a_vlan_tag)
{
	static const struct field tag = FIELD(IBV_FLOW_SPEC_ETH, ibv_flow_spec_eth, vlan_tag, 2,
					      14);
	struct ibv_flow_spec_eth *s;

	build(4, IPPROTO_UDP, true);
	check_field(&tag);
	rule_start(IBV_FLOW_ATTR_NORMAL, 0, 0);
	s = rule_spec(IBV_FLOW_SPEC_ETH, sizeof(*s));
	s->mask.vlan_tag = htons(0x100);
	rule_add(1);
	EXPECT(0);
	put16(14, 0x023);
	EXPECT(1 << 1);
	build(4, IPPROTO_UDP, false);
	EXPECT(0);
}

Test(verbs_flow_fields, fields_of_ipv4)
{
	static const struct field fields[] = {
		FIELD(IBV_FLOW_SPEC_IPV4, ibv_flow_spec_ipv4, src_ip, 4, 26),
		FIELD(IBV_FLOW_SPEC_IPV4, ibv_flow_spec_ipv4, dst_ip, 4, 30),
		FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext, src_ip, 4, 26),
		FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext, dst_ip, 4, 30),
		FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext, proto, 1, 23),
		FIELD(IBV_FLOW_SPEC_IPV4_EXT, ibv_flow_spec_ipv4_ext, tos, 1, 15),
	};

	build(4, IPPROTO_UDP, false);
	check_fields(fields, 6);
	rule_start(IBV_FLOW_ATTR_NORMAL, 0, 0);
	rule_spec(IBV_FLOW_SPEC_IPV4, sizeof(struct ibv_flow_spec_ipv4));
	rule_add(0);
	EXPECT(1);
	build(6, IPPROTO_UDP, false);
	EXPECT(0);
}

Test(verbs_flow_fields, fields_of_ipv6)
{
	static const struct field fields[] = {
		FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6, src_ip, 16, 22),
		FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6, dst_ip, 16, 38),
		FIELD(IBV_FLOW_SPEC_IPV6, ibv_flow_spec_ipv6, next_hdr, 1, 20),
	};
	struct ibv_flow_spec_ipv6 *s;

	build(6, IPPROTO_TCP, false);
	check_fields(fields, 3);
	rule_start(IBV_FLOW_ATTR_NORMAL, 0, 0);
	s = rule_spec(IBV_FLOW_SPEC_IPV6, sizeof(*s));
	s->val.traffic_class = 0xa6;
	s->mask.traffic_class = 0xff;
	rule_add(0);
	EXPECT(1);
	frame[15] ^= 0x20; /* a bit of ECN */
	EXPECT(0);
	build(4, IPPROTO_TCP, false);
	EXPECT(0);
}

Test(verbs_flow_fields, fields_of_layer_4)
{
	static const struct field udp[] = {
		FIELD(IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp, src_port, 2, 34),
		FIELD(IBV_FLOW_SPEC_UDP, ibv_flow_spec_tcp_udp, dst_port, 2, 36),
	}, tcp[] = {
		FIELD(IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp, src_port, 2, 54),
		FIELD(IBV_FLOW_SPEC_TCP, ibv_flow_spec_tcp_udp, dst_port, 2, 56),
	};

	build(4, IPPROTO_UDP, false);
	check_fields(udp, 2);
	build(6, IPPROTO_TCP, false);
	check_fields(tcp, 2);
	rule_start(IBV_FLOW_ATTR_NORMAL, 0, 0);
	rule_spec(IBV_FLOW_SPEC_UDP, sizeof(struct ibv_flow_spec_tcp_udp));
	rule_add(0);
	EXPECT(0);
	build(6, IPPROTO_UDP, false);
	EXPECT(1);
}
