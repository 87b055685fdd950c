/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Stores of the CPU that the NIC sees, named by use. x86-64 keeps ordinary
 * stores in order towards the device, but a write-combining page (BlueFlame)
 * is outside of that order, hence sfence on both sides of it.
 */
#ifndef GDK_MMIO_H
#define GDK_MMIO_H

#include <stdint.h>

/* NIC may read the DBREC and the WQEs at any time after it sees the register
 * write: what was stored before becomes visible to it first. */
static inline void gdk_mmio_before_register(void)
{
#if defined(__x86_64__)
	__builtin_ia32_sfence();
#elif defined(__aarch64__)
	__asm__ volatile("dsb oshst" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Pushes a register write out of a write-combining buffer, so that the NIC
 * sees it now and before the next write to the same page. */
static inline void gdk_mmio_flush(void)
{
	gdk_mmio_before_register();
}

static inline void gdk_mmio_write8(uint64_t *reg, uint64_t val)
{
	__atomic_store_n(reg, val, __ATOMIC_RELAXED);
}

#endif
