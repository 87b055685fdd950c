/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Shared by all fuzzers: the prototypes of libFuzzer's two functions, and functions
 * that read the input as numbers and bytes. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The unread rest of an input. Reading beyond its end returns 0. */
struct fuzz_in {
	const uint8_t *p;
	size_t left;
};

uint8_t fuzz_u8(struct fuzz_in *in);
uint16_t fuzz_u16(struct fuzz_in *in);
uint32_t fuzz_u32(struct fuzz_in *in);
uint64_t fuzz_u64(struct fuzz_in *in);
/* Copies up to len bytes of the input to dst and returns their number. Does not change
 * the other bytes of dst. */
size_t fuzz_bytes(struct fuzz_in *in, void *dst, size_t len);

#endif
