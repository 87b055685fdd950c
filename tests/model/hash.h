/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The hash of a state, for the checker that spin generates; run.sh appends this file to it. With
 * -DHC4 the checker stores K1 and four bytes of K2 in place of the state, so two states with the
 * same 96 bits are one state for it. Spin 6.5.2 selects by default a hash of 32 bits that sets K1
 * only: of 4 million states, it takes 0.1 to 0.8 % for known ones and does not examine what follows
 * them.
 */
__attribute__((optimize("O2"))) void hash_state(unsigned char *s, int len)
{
	typedef unsigned __int128 wide;
	unsigned long a = 0x9e3779b97f4a7c15ul, b = 0xc2b2ae3d27d4eb4ful, w[2];
	wide x, y;

	for (; len > 0; s += 16, len -= 16) {
		w[0] = w[1] = 0;
		memcpy(w, s, len < 16 ? (size_t)len : 16);
		x = (wide)(w[0] ^ a) * (w[1] ^ 0xa0761d6478bd642ful);
		y = (wide)(w[0] ^ 0xe7037ed1a0b428dbul) * (w[1] ^ b);
		a = (a ^ (unsigned long)x) + (unsigned long)(x >> 64);
		b = (b ^ (unsigned long)y) + (unsigned long)(y >> 64);
		a = a << 7 | a >> 57;
	}
	K1 = a ^ b >> 31;
	K2 = b;
}
