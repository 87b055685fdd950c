/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The invariant CRC of RoCE v2: the Ethernet CRC-32 over eight bytes of ones
 * (where InfiniBand has its LRH), the IPv4 and UDP headers with the fields that
 * routers change set to ones, and the packet from the BTH on with the BTH's
 * fifth byte set to ones. It is sent least significant byte first.
 */
#include <zlib.h>

#include "eng.h"

uint32_t sn_icrc(const uint8_t ip_udp[28], const uint8_t *bth, size_t len)
{
	uint8_t head[8 + 28 + 12];
	uint32_t crc;

	memset(head, 0xff, 8);
	memcpy(head + 8, ip_udp, 28);
	memcpy(head + 36, bth, 12);
	head[8 + 1] = 0xff;		   /* TOS */
	head[8 + 8] = 0xff;		   /* TTL */
	head[8 + 10] = head[8 + 11] = 0xff; /* IP checksum */
	head[8 + 26] = head[8 + 27] = 0xff; /* UDP checksum */
	head[36 + 4] = 0xff;		   /* resv8a */
	crc = crc32(0, head, sizeof(head));
	return crc32(crc, bth + 12, len - 12);
}
