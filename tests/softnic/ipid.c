/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Packets of a peer whose IPv4 identification is not 0. The ICRC covers it, a
 * UDP socket does not show it, so it is solved for: a CRC is linear, what two
 * messages differ in gives what their CRCs differ in, and a register of a CRC
 * can be run backwards. The difference between the CRC that came and the one
 * of identification 0, run back to that place in the header, is the difference
 * of four bytes there. It must be in the identification, and DF may be clear;
 * of wrong packets one in 2^15 looks so. Therefore a peer is believed only if its
 * first packet was so, and others, that once sent 0, must always send 0.
 */
#include <zlib.h>

#include "eng.h"

#define AFTER_ID 8u /* place in the IPv4 header after identification and flags */

/* The register before len zero bytes, from the one after them. */
static uint32_t crc_back(uint32_t crc, size_t len)
{
	const z_crc_t *table = get_crc_table();
	uint8_t by_top[256];
	unsigned i;

	for (i = 0; i < 256; i++)
		by_top[table[i] >> 24] = i; /* all different */
	while (len--) {
		i = by_top[crc >> 24];
		crc = (crc ^ table[i]) << 8 | i;
	}
	return crc;
}

bool sn_icrc_but_id(uint32_t differs, size_t head, size_t len)
{
	/* Bytes of the header in network order, the first in the lowest bits. */
	uint32_t bytes = crc_back(differs, head - AFTER_ID + len + 4);

	return head == 28 && (bytes >> 16 == 0 || bytes >> 16 == 0x40);
}

bool sn_id_check(struct sn_eng *e, const struct sn_pkt *p, uint32_t differs)
{
	struct sn_id_peer *peer = &e->id_peers[p->src.s6_addr[15] % SN_ID_PEERS];

	if (!sn_addr_same(&peer->ip, &p->src))
		*peer = (struct sn_id_peer){ .ip = p->src, .zero = !differs };
	if (!differs)
		return true;
	if (peer->zero || !sn_icrc_but_id(differs, p->head, p->len))
		return false;
	e->dev->stats.icrc_unchecked++;
	return true;
}
