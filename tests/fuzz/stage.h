/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The environment of the software NIC in a fuzzer. The NIC's thread is a function that
 * the fuzzer calls, its clock advances only in these calls and in fuzz_sleep(), and its
 * sockets are replaced. An input therefore has the same effect each time.
 */
#ifndef FUZZ_STAGE_H
#define FUZZ_STAGE_H

#include <sys/socket.h>

#include "../softnic/eng.h"
#include "input.h"

/* Memory at a fixed address, so that inputs can contain pointers. */
#define FUZZ_ARENA     0x10000000ull
#define FUZZ_ARENA_LEN (1u << 20)
void fuzz_arena(void);

/* Resets the clock and drops all packets in flight. Call before the NIC starts. */
void fuzz_begin(void);
void fuzz_passes(struct sn_dev *dev, unsigned n); /* runs n passes of the NIC's thread */
void fuzz_sleep(uint64_t ns);

/* Queues a datagram for the NIC: BTH, payload and ICRC. The queue holds 32; more are dropped. */
void fuzz_deliver(const struct in6_addr *from, const void *bytes, size_t len);
/* As fuzz_deliver(), a datagram to the VXLAN port. Returns false if it was dropped. */
bool fuzz_deliver_vxlan(const struct in6_addr *from, const void *bytes, size_t len);
unsigned fuzz_vxlan_left(void); /* number of datagrams that the NIC has not received yet */
/* Called for each datagram that the NIC sends from its VXLAN port; NULL: none. */
extern void (*fuzz_vxlan_sent)(const struct sockaddr *to, const uint8_t *bytes, size_t len);

#endif
