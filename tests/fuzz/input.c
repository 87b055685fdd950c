/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Reads the input of a fuzzer as numbers and bytes; see input.h. Also sets
 * AddressSanitizer's options for all fuzzers. */
#include "input.h"

#include <string.h>

#ifdef GDK_SAN
const char *__asan_default_options(void);

/*
 * Keeps less freed memory than by default, because most blocks are large. An allocation
 * that is too large returns NULL.
 */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=16:allocator_may_return_null=1";
}
#endif

size_t fuzz_bytes(struct fuzz_in *in, void *dst, size_t len)
{
	size_t n = len < in->left ? len : in->left;

	if (n)
		memcpy(dst, in->p, n);
	in->p += n;
	in->left -= n;
	return n;
}

#define FUZZ_NUM(name, type) \
	type name(struct fuzz_in *in) \
	{ \
		type v = 0; \
		fuzz_bytes(in, &v, sizeof(v)); \
		return v; \
	}
FUZZ_NUM(fuzz_u8, uint8_t)
FUZZ_NUM(fuzz_u16, uint16_t)
FUZZ_NUM(fuzz_u32, uint32_t)
FUZZ_NUM(fuzz_u64, uint64_t)
