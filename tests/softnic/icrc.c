/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The invariant CRC of RoCE v2: the Ethernet CRC-32 over eight bytes of ones (where
 * InfiniBand has its LRH), the IP and UDP headers with the fields that routers change
 * set to ones, and the packet from the BTH on with the BTH's fifth byte set to ones.
 * It is sent least significant byte first.
 *
 * On processors with carry-less multiplication, 16 bytes are folded at a time and
 * only the rest goes through zlib. A block multiplied by x^n mod P and added n bits
 * further on leaves the remainder unchanged. (V. Gopal et al., "Fast CRC Computation
 * for Generic Polynomials Using PCLMULQDQ", Intel, 2009.)
 */
#include <zlib.h>

#include "eng.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define FOLDS __attribute__((target("pclmul,sse4.1")))
/* x^(n + 32) and x^(n - 32) mod P, bits reversed, for n = 512 and n = 128 */
#define BY_64 _mm_set_epi64x(0x1c6e41596, 0x154442bd4)
#define BY_16 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)

FOLDS static inline __m128i fold(__m128i x, __m128i by, const uint8_t *next)
{
	__m128i lo = _mm_clmulepi64_si128(x, by, 0x00), hi = _mm_clmulepi64_si128(x, by, 0x11);

	return _mm_xor_si128(_mm_xor_si128(lo, hi),
			     _mm_loadu_si128((const __m128i *)(const void *)next));
}

/* As zlib's crc32(), for len >= 32 bytes. Folds until fewer than 32 bytes are left. */
FOLDS static uint32_t crc_folded(uint32_t crc, const uint8_t *p, size_t len)
{
	__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p), y, z, w;
	uint8_t rest[16];

	x = _mm_xor_si128(x, _mm_cvtsi32_si128((int)~crc));
	p += 16, len -= 16;
	if (len >= 128) {
		x = fold(x, BY_16, p);
		y = _mm_loadu_si128((const __m128i *)(const void *)(p + 16));
		z = _mm_loadu_si128((const __m128i *)(const void *)(p + 32));
		w = _mm_loadu_si128((const __m128i *)(const void *)(p + 48));
		for (p += 64, len -= 64; len >= 64; p += 64, len -= 64) {
			x = fold(x, BY_64, p);
			y = fold(y, BY_64, p + 16);
			z = fold(z, BY_64, p + 32);
			w = fold(w, BY_64, p + 48);
		}
		memset(rest, 0, sizeof(rest));
		y = _mm_xor_si128(y, fold(x, BY_16, rest));
		z = _mm_xor_si128(z, fold(y, BY_16, rest));
		x = _mm_xor_si128(w, fold(z, BY_16, rest));
	}
	for (; len >= 16; p += 16, len -= 16)
		x = fold(x, BY_16, p);
	_mm_storeu_si128((__m128i *)(void *)rest, x);
	crc = crc32(~0u, rest, sizeof(rest)); /* zlib begins with a CRC register of 0 */
	return crc32(crc, p, len);
}

static uint32_t crc(uint32_t from, const uint8_t *p, size_t len)
{
	static int folds = -1;

	if (folds < 0)
		folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
	return folds && len >= 32 ? crc_folded(from, p, len) : crc32(from, p, len);
}
#else
static uint32_t crc(uint32_t from, const uint8_t *p, size_t len)
{
	return crc32(from, p, len);
}
#endif

#define IP6_HEAD (40 + 8)

/* Sets traffic class, flow label and hop limit of IPv6, or TOS, TTL and checksum of IPv4, to
 * ones. */
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
	return crc(crc(0, buf, head + 20), bth + 12, len - 12);
}
