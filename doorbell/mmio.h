/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Stores of the CPU to doorbell registers, and the barriers around them. x86-64 keeps
 * ordinary stores in order, but not stores to a write-combining page (BlueFlame). So there
 * is an sfence before and after such a store. On AArch64 the fences of C11 order accesses for the
 * CPUs only (inner shareable domain), so the barriers here apply to the whole system, or to the
 * outer domain, which contains the NIC. GPU stores are in the platform headers.
 */
#ifndef GDK_MMIO_H
#define GDK_MMIO_H

#include <stdint.h>

/* Stores a DBREC after all earlier accesses (release). The NIC can read the DBREC at any time, and
 * then reads the WQEs below it. */
static inline void gdk_mmio_write_dbrec(uint32_t *dbrec, uint32_t val)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb osh" ::: "memory");
#endif
	__atomic_store_n(dbrec, val, __ATOMIC_RELEASE);
}

/* Orders earlier stores (WQEs, DBREC) before the store to the register. The NIC can read WQEs and
 * DBREC as soon as it sees the register store. */
static inline void gdk_mmio_before_register(void)
{
#if defined(__x86_64__)
	__builtin_ia32_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Flushes the register store out of a write-combining buffer, so that it reaches the NIC now and
 * before the next store to the same page. */
static inline void gdk_mmio_flush(void)
{
	gdk_mmio_before_register();
}

static inline void gdk_mmio_write8(uint64_t *reg, uint64_t val)
{
	__atomic_store_n(reg, val, __ATOMIC_RELAXED);
}

#endif
