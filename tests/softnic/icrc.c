/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The invariant CRC of RoCE v2: the Ethernet CRC-32 over eight bytes of ones
 * (where InfiniBand has its LRH), the IPv4 and UDP headers with the fields that
 * routers change set to ones, and the packet from the BTH on with the BTH's
 * fifth byte set to ones. It is sent least significant byte first.
 */
#include "eng.h"

#define CRC_POLY 0xedb88320u

static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_init(void)
{
	uint32_t c;
	int i, k;

	for (i = 0; i < 256; i++) {
		for (c = i, k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? CRC_POLY : 0);
		crc_table[0][i] = c;
	}
	for (i = 0; i < 256; i++)
		for (k = 1; k < 8; k++)
			crc_table[k][i] = crc_table[k - 1][i] >> 8 ^
					  crc_table[0][crc_table[k - 1][i] & 0xff];
}

static uint32_t crc_step8(uint32_t c, const uint8_t *p)
{
	uint32_t lo, hi;

	memcpy(&lo, p, 4);
	memcpy(&hi, p + 4, 4);
	lo = le32toh(lo) ^ c;
	hi = le32toh(hi);
	return crc_table[7][lo & 0xff] ^ crc_table[6][lo >> 8 & 0xff] ^
	       crc_table[5][lo >> 16 & 0xff] ^ crc_table[4][lo >> 24] ^
	       crc_table[3][hi & 0xff] ^ crc_table[2][hi >> 8 & 0xff] ^
	       crc_table[1][hi >> 16 & 0xff] ^ crc_table[0][hi >> 24];
}

/* Same convention as zlib's crc32: start with 0, chain the result. */
uint32_t sn_crc32(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	pthread_once(&crc_once, crc_init);
	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8)
		crc = crc_step8(crc, p);
	while (len--)
		crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

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
	crc = sn_crc32(0, head, sizeof(head));
	return sn_crc32(crc, bth + 12, len - 12);
}
