/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * RSS hash by DPDK's own code, for tests/ethernet.py. Reads lines "KEY TUPLE" in
 * hexadecimal from standard input (TUPLE: addresses and ports as in the packet) and
 * prints rte_softrss() of each line.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_thash.h>

#define KEY_LEN	  40
#define TUPLE_MAX 36

static unsigned int bytes_of(const char *hex, uint8_t *out, unsigned int max)
{
	unsigned int n;

	for (n = 0; n < max && sscanf(hex + 2 * (size_t)n, "%2hhx", &out[n]) == 1; n++)
		;
	return n;
}

int main(void)
{
	char key_text[2 * KEY_LEN + 1], text[2 * TUPLE_MAX + 1];
	uint8_t key[KEY_LEN], tuple[TUPLE_MAX];
	uint32_t words[TUPLE_MAX / 4];
	unsigned int n, i;

	while (scanf("%80s %72s", key_text, text) == 2) {
		n = bytes_of(text, tuple, TUPLE_MAX);
		if (bytes_of(key_text, key, KEY_LEN) != KEY_LEN || n % 4)
			return 1;
		memcpy(words, tuple, n);
		for (i = 0; i < n / 4; i++)
			words[i] = rte_be_to_cpu_32(words[i]);
		printf("%08x\n", rte_softrss(words, n / 4, key));
	}
	return 0;
}
