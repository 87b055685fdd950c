/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks the ICRC of peers that set an IPv4 identification other than 0. The ICRC
 * covers the identification, but a UDP socket does not deliver it, so it is computed
 * back from the ICRC. A CRC is linear: the difference between two messages determines
 * the difference between their CRCs, and a CRC register can be run backwards. So the
 * difference between the received ICRC and the ICRC for identification 0, run back to
 * the identification in the header, gives the difference of four header bytes. Only
 * the two bytes of the identification and the DF bit may differ. A corrupted packet
 * passes this test with probability 2^-15. Therefore the test is used only for peers
 * whose first packet had a non-zero identification; packets of other peers must have
 * identification 0.
 */
#include <zlib.h>

#include "eng.h"

#define AFTER_ID 8u /* offset in the IPv4 header after identification and flags */

/* The CRC register before len zero bytes, computed from the register after them. */
static uint32_t crc_back(uint32_t crc, size_t len)
{
	const z_crc_t *table = get_crc_table();
	uint8_t by_top[256];
	unsigned i;

	for (i = 0; i < 256; i++)
		by_top[table[i] >> 24] = i; /* the upper bytes of all entries are different */
	while (len--) {
		i = by_top[crc >> 24];
		crc = (crc ^ table[i]) << 8 | i;
	}
	return crc;
}

bool sn_icrc_but_id(uint32_t differs, size_t head, size_t len)
{
	/* Header bytes in network order, the first in the lowest bits. */
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
