/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For programs that run gdaki's device functions on CPU threads. On the software NIC, the
 * doorbell of a DBREC-less queue pair then waits until the NIC has taken the doorbell of
 * another queue pair from the same register, as a PCIe device takes every store. Without this
 * file it overwrites it, and the NIC needs 20 ms or more to find the lost one (uar_watch.c).
 *
 * Compile with `-include lossless.h`, or include it before the headers of the device path and
 * after GDK_WARP is defined. On a device it changes nothing.
 */
#ifndef SOFTNIC_LOSSLESS_H
#define SOFTNIC_LOSSLESS_H

#ifndef __CUDACC__
#include <stdlib.h>
#include <time.h>

#include "device/gdk/platform.h"

/* Offset of the register of DBREC-less queue pairs in its page. */
#define SOFTNIC_NO_DBR_REG 0x600u
/* Offset of the number of threads that wait for this register, for the NIC. */
#define SOFTNIC_WAITING 0x640u
/* Offset of the word that tells the NIC that this file writes the register. */
#define SOFTNIC_LOSSLESS 0x650u
/* The word that marks a register page of a software NIC. */
#define SOFTNIC_MARK_AT 0x648u
#define SOFTNIC_MARK	0x696e74666f736764ull
/* A NIC thread that takes no doorbell for so long has ended, or cannot run. */
#define SOFTNIC_LIMIT_S 100

/* softnic-run sets the variable for the program and all programs that it starts. */
static inline int softnic_is_used(void)
{
	static int used = -1;
	int u = __atomic_load_n(&used, __ATOMIC_RELAXED);

	if (u < 0) {
		u = getenv("SOFTNIC_RUN") != NULL;
		__atomic_store_n(&used, u, __ATOMIC_RELAXED);
	}
	return u;
}

/* Whether p is the register of DBREC-less queue pairs of a software NIC, and not another word at
 * this offset of a page. */
static inline int softnic_is_register(const uint64_t *p)
{
	const uint64_t *mark = p + (SOFTNIC_MARK_AT - SOFTNIC_NO_DBR_REG) / sizeof(*p);

	return ((uintptr_t)p & 0xfff) == SOFTNIC_NO_DBR_REG && softnic_is_used() &&
	       __atomic_load_n(mark, __ATOMIC_RELAXED) == SOFTNIC_MARK;
}

static inline time_t softnic_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Returns whether the register holds no doorbell, or one of the queue pair of doorbell v. Bytes 4
 * to 6 are the QP number. */
static inline int softnic_may_store(uint64_t now, uint64_t v)
{
	return !now || !((now ^ v) >> 32 & 0xffffff);
}

/* Waits until the register may take doorbell v, or for SOFTNIC_LIMIT_S. Returns what it holds. */
static inline uint64_t softnic_wait(const uint64_t *p, uint64_t v)
{
	const time_t end = softnic_now_s() + SOFTNIC_LIMIT_S;
	uint64_t now;

	while (!softnic_may_store(now = __atomic_load_n(p, __ATOMIC_RELAXED), v) &&
	       softnic_now_s() < end)
		gdk_host_yield();
	return now;
}

/*
 * As gdk_mmio_st64(), but never overwrites a doorbell of another queue pair.
 * Release on success: orders the WQEs and `rung` before the doorbell. Pairs with the acquiring
 * exchange of the NIC thread in take_word() (uar_watch.c), which then reads the WQEs. A doorbell
 * of the same queue pair that we overwrite was stored by this thread, or by an earlier holder of
 * the token, whose stores are ordered before ours by the token; so the NIC sees the WQEs of both.
 * Relaxed on failure, and when we overwrite the NIC's 0: we read nothing that the NIC wrote
 * before it. The register is ordinary memory, so no barrier for write-combining is needed.
 * While a thread waits, the NIC recovers no doorbell of the page. Release of the count: the NIC,
 * which acquires it in settle() (uar_watch.c), must see our doorbell once it does not see us.
 */
static inline void softnic_mmio_st64(uint64_t *p, uint64_t v)
{
	uint64_t *const waiting = p + (SOFTNIC_WAITING - SOFTNIC_NO_DBR_REG) / sizeof(*p);
	uint64_t *const lossless = p + (SOFTNIC_LOSSLESS - SOFTNIC_NO_DBR_REG) / sizeof(*p);
	uint64_t now = 0;
	int waits = 0;

	if (!softnic_is_register(p)) {
		(gdk_mmio_st64)(p, v);
		return;
	}
	if (!__atomic_load_n(lossless, __ATOMIC_RELAXED))
		__atomic_store_n(lossless, 1, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(p, &now, v, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
		if (softnic_may_store(now, v))
			continue;
		if (!waits++)
			__atomic_add_fetch(waiting, 1, __ATOMIC_RELAXED);
		now = softnic_wait(p, v); /* after the limit this overwrites it */
	}
	if (waits)
		__atomic_sub_fetch(waiting, 1, __ATOMIC_RELEASE);
}

#ifndef gdk_mmio_st64
#define gdk_mmio_st64(p, v)	  softnic_mmio_st64(p, v)
#define gdk_mmio_st64_async(p, v) softnic_mmio_st64(p, v)
#endif
#endif
#endif
