/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receive side scaling: the Toeplitz hash of a frame's addresses and ports, and the choice of
 * an RQ from a table. Input order is source address, destination address, source port,
 * destination port (Microsoft, "RSS hashing functions"). With rx_hash_symmetric each pair is
 * replaced by its OR and its XOR, as ethtool documents "symmetric-or-xor", which Linux's mlx5
 * driver sets by this bit. Inverted XOR8 is undocumented, so TIRs cannot be created with it.
 */
#include "eng.h"
#include "eth.h"

/* Bits of the CQE's rx_hash_type (Linux, mlx5/device.h): [3:2] IP, [7:6] layer 4. */
enum { TYPE_IPV4 = 1 << 2, TYPE_IPV6 = 2 << 2, TYPE_TCP = 1 << 6, TYPE_UDP = 2 << 6 };

static uint32_t toeplitz(const uint8_t key[SN_HASH_KEY], const uint8_t *in, unsigned len)
{
	uint64_t window = sn_get64(key);
	uint32_t hash = 0;
	unsigned i, bit;

	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++, window <<= 1)
			if (in[i] & 0x80 >> bit)
				hash ^= (uint32_t)(window >> 32);
		/* 8 bits of the window were shifted out */
		window |= i + 8 < SN_HASH_KEY ? key[i + 8] : 0;
	}
	return hash;
}

/* Appends those of the two fields that are selected. Returns the number of bytes. */
static unsigned add_pair(uint8_t *to, const uint8_t *src, const uint8_t *dst, unsigned len,
			 bool use_src, bool use_dst, bool symmetric)
{
	unsigned n = 0, i;

	if (use_src && use_dst && symmetric) {
		for (i = 0; i < len; i++) {
			to[i] = src[i] | dst[i];
			to[len + i] = src[i] ^ dst[i];
		}
		return 2 * len;
	}
	if (use_src) {
		memcpy(to, src, len);
		n = len;
	}
	if (use_dst) {
		memcpy(to + n, dst, len);
		n += len;
	}
	return n;
}

/* A frame of another IP version is not hashed. Of one that has not the selected layer 4, only
 * the addresses are hashed. */
uint32_t sn_eth_hash(const struct sn_tir *tir, const uint8_t *frame, const struct sn_parsed *p,
		     uint8_t *type)
{
	const uint8_t *ip = frame + p->l3_off + (p->ip == 4 ? 12 : 8), *l4 = frame + p->l4_off;
	uint32_t f = tir->fields, len = p->ip == 4 ? 4 : 16;
	uint8_t in[36];
	unsigned n, ports = 0;

	*type = 0;
	if (tir->fn != SN_HASH_TOEPLITZ || p->ip != (tir->ipv6 ? 6 : 4))
		return 0;
	n = add_pair(in, ip, ip + len, len, f & SN_HASH_SRC_IP, f & SN_HASH_DST_IP, tir->symmetric);
	if (n)
		*type = tir->ipv6 ? TYPE_IPV6 : TYPE_IPV4;
	if (p->l4 == (tir->udp ? IPPROTO_UDP : IPPROTO_TCP))
		ports = add_pair(in + n, l4, l4 + 2, 2, f & SN_HASH_L4_SPORT, f & SN_HASH_L4_DPORT,
				 tir->symmetric);
	if (ports)
		*type |= tir->udp ? TYPE_UDP : TYPE_TCP;
	return toeplitz(tir->key, in, n + ports);
}

struct sn_qp *sn_eth_pick(const struct sn_tir *tir, uint32_t hash)
{
	if (!tir->rqt)
		return tir->rq;
	return tir->rqt->n ? tir->rqt->rq[hash % tir->rqt->n] : NULL;
}
