/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What surrounds the software NIC in a fuzzer: its thread is a function that the
 * fuzzer calls, its clock stands still between calls, and its sockets lead to the
 * fuzzer. So an input has the same effect each time.
 */
#ifndef FUZZ_STAGE_H
#define FUZZ_STAGE_H

#include "../softnic/eng.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of an input. What is read beyond its end is 0. */
struct fuzz_in {
	const uint8_t *p;
	size_t left;
};

uint8_t fuzz_u8(struct fuzz_in *in);
uint16_t fuzz_u16(struct fuzz_in *in);
uint32_t fuzz_u32(struct fuzz_in *in);
uint64_t fuzz_u64(struct fuzz_in *in);
/* Up to len bytes of the input to dst, the others are left as they are; how many. */
size_t fuzz_bytes(struct fuzz_in *in, void *dst, size_t len);

/* Memory at the same address in each process, so that inputs may hold pointers. */
#define FUZZ_ARENA 0x10000000ull
#define FUZZ_ARENA_LEN (1u << 20)
void fuzz_arena(void);

/* Before the NIC starts: the clock is where it always begins, nothing is in flight. */
void fuzz_begin(void);
void fuzz_passes(struct sn_dev *dev, unsigned n); /* passes of the NIC's thread */
void fuzz_sleep(uint64_t ns);

/* A datagram for the NIC: BTH, payload and ICRC. Others wait; more than 32 are lost. */
void fuzz_deliver(const struct in6_addr *from, const void *bytes, size_t len);

#endif
