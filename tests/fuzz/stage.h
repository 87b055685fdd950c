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
#include "input.h"

/* Memory at the same address in each process, so that inputs may hold pointers. */
#define FUZZ_ARENA     0x10000000ull
#define FUZZ_ARENA_LEN (1u << 20)
void fuzz_arena(void);

/* Before the NIC starts: the clock is where it always begins, nothing is in flight. */
void fuzz_begin(void);
void fuzz_passes(struct sn_dev *dev, unsigned n); /* passes of the NIC's thread */
void fuzz_sleep(uint64_t ns);

/* A datagram for the NIC: BTH, payload and ICRC. Others wait; more than 32 are lost. */
void fuzz_deliver(const struct in6_addr *from, const void *bytes, size_t len);

#endif
