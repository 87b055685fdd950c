/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The invariant CRC of RoCE v2: the Ethernet CRC-32 over eight bytes of ones
 * (where InfiniBand has its LRH), the IP and UDP headers with the fields that
 * routers change set to ones, and the packet from the BTH on with the BTH's
 * fifth byte set to ones. It is sent least significant byte first.
 */
#include <zlib.h>

#include "eng.h"

#define IP6_HEAD (40 + 8)

/* Traffic class, flow label and hop limit of IPv6; TOS, TTL and checksum of IPv4. */
static void mask_ip(uint8_t *ip, bool v6)
{
	if (v6) {
		ip[0] |= 0x0f;
		ip[1] = ip[2] = ip[3] = 0xff;
		ip[7] = 0xff;
	} else {
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	}
}

uint32_t sn_icrc(const uint8_t *ip_udp, size_t head, const uint8_t *bth, size_t len)
{
	uint8_t buf[8 + IP6_HEAD + 12];
	uint8_t *to = buf + 8 + head;

	memset(buf, 0xff, 8);
	memcpy(buf + 8, ip_udp, head);
	mask_ip(buf + 8, head == IP6_HEAD);
	to[-1] = to[-2] = 0xff; /* UDP checksum */
	memcpy(to, bth, 12);
	to[4] = 0xff; /* resv8a */
	return crc32(crc32(0, buf, head + 20), bth + 12, len - 12);
}
