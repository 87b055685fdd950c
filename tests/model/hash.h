/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The hash of a state, for the checker that spin generates; run.sh appends this file to it. With
 * -DHC4 the checker stores K1 and four bytes of K2 in place of the state, so two states with the
 * same 96 bits are one state for it. Spin 6.5.2 selects by default a hash of 32 bits that sets K1
 * only: of 4 million states, it takes 0.1 to 0.8 % for known ones and does not examine what follows
 * them.
 */
#define HASH_FN __attribute__((optimize("O2")))

struct hash {
	unsigned long a, b;
};

/* Adds 16 bytes. */
HASH_FN static inline __attribute__((always_inline)) void hash_add(struct hash *h, unsigned long v,
								   unsigned long w)
{
	typedef unsigned __int128 wide;
	const wide x = (wide)(v ^ h->a) * (w ^ 0xa0761d6478bd642ful);
	const wide y = (wide)(v ^ 0xe7037ed1a0b428dbul) * (w ^ h->b);

	h->a = (h->a ^ (unsigned long)x) + (unsigned long)(x >> 64);
	h->b = (h->b ^ (unsigned long)y) + (unsigned long)(y >> 64);
	h->a = h->a << 7 | h->a >> 57;
}

/* Adds the hash of a value to that of the histories. Histories only grow, so the checker need not
 * hash them again in each state. The first values of all locations are the same in all states. */
HASH_FN void hash_cell(unsigned long *sum, unsigned cell, unsigned val, unsigned long with)
{
	struct hash h = { 0x9e3779b97f4a7c15ul, 0xc2b2ae3d27d4eb4ful };

	hash_add(&h, with, cell << 8 | val);
	hash_add(&h, h.b, h.a);
	sum[0] += h.a;
	sum[1] += h.b;
}

/* Two hashes of alternate pieces, which the processor computes at the same time. */
HASH_FN static inline __attribute__((always_inline)) void hash_piece(struct hash *h, struct hash *i,
								     const char *s, int len)
{
	unsigned long w[4];

	for (; len >= 32; s += 32, len -= 32) {
		memcpy(w, s, 32);
		hash_add(h, w[0], w[1]);
		hash_add(i, w[2], w[3]);
	}
	memset(w, 0, 32);
	memcpy(w, s, (size_t)len);
	hash_add(h, w[0], w[1]);
	hash_add(i, w[2], w[3]);
}

/* Of the state without its histories. */
HASH_FN void hash_state(unsigned char *s, int len)
{
	const int histories = offsetof(State, m), end = offsetof(State, m.sum);
	struct hash h = { 0x9e3779b97f4a7c15ul, 0xc2b2ae3d27d4eb4ful };
	struct hash i = { 0xd6e8feb86659fd93ul, 0x8ebc6af09c88c6e3ul };

	hash_piece(&h, &i, (char *)s, histories);
	hash_piece(&h, &i, (char *)s + end, len - end);
	hash_add(&h, i.a, i.b);
	K1 = h.a ^ h.b >> 31;
	K2 = h.b;
}
