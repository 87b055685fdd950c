/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Replaces platform_cpu.h (renamed to real_cpu.h) when the device code runs in the
 * memory of views.h. Every function for a load, store, atomic operation or fence calls a
 * weak_* function of replay.c.
 */
#ifndef PLATFORM_WEAK_H
#define PLATFORM_WEAK_H

#define GDK_TOKEN_FIRST	     1 /* same order of stores as on a GPU */
#define gdk_ld32	     cpu_ld32
#define gdk_ld64	     cpu_ld64
#define gdk_ld32_acq	     cpu_ld32_acq
#define gdk_ld64_acq	     cpu_ld64_acq
#define gdk_st32	     cpu_st32
#define gdk_st64	     cpu_st64
#define gdk_st32_rel	     cpu_st32_rel
#define gdk_st64_rel	     cpu_st64_rel
#define gdk_ld64x2	     cpu_ld64x2
#define gdk_st64x2	     cpu_st64x2
#define gdk_rmw_or64	     cpu_rmw_or64
#define gdk_rmw_and64	     cpu_rmw_and64
#define gdk_rmw_add64	     cpu_rmw_add64
#define gdk_rmw_max64	     cpu_rmw_max64
#define gdk_rmw_xchg32	     cpu_rmw_xchg32
#define gdk_fence_acq	     cpu_fence_acq
#define gdk_fence_rel	     cpu_fence_rel
#define gdk_fence_sc	     cpu_fence_sc
#define gdk_fence_load_store cpu_fence_load_store
#define gdk_mmio_st64	     cpu_mmio_st64
#include "real_cpu.h"
#undef gdk_ld32
#undef gdk_ld64
#undef gdk_ld32_acq
#undef gdk_ld64_acq
#undef gdk_st32
#undef gdk_st64
#undef gdk_st32_rel
#undef gdk_st64_rel
#undef gdk_ld64x2
#undef gdk_st64x2
#undef gdk_rmw_or64
#undef gdk_rmw_and64
#undef gdk_rmw_add64
#undef gdk_rmw_max64
#undef gdk_rmw_xchg32
#undef gdk_fence_acq
#undef gdk_fence_rel
#undef gdk_fence_sc
#undef gdk_fence_load_store
#undef gdk_mmio_st64

enum weak_kind { WEAK_LOAD, WEAK_STORE, WEAK_RMW, WEAK_ACQ, WEAK_REL, WEAK_SC };
enum weak_op { WEAK_OR, WEAK_AND, WEAK_ADD, WEAK_MAX, WEAK_XCHG };
enum weak_order { WEAK_RELAXED, WEAK_ACQUIRES = 1, WEAK_RELEASES = 2 };

uint64_t weak_load(const void *p, size_t bytes, int order);
void weak_store(void *p, uint64_t v, size_t bytes, int order);
uint64_t weak_rmw(void *p, uint64_t v, size_t bytes, enum weak_op op, int order);
void weak_fence(enum weak_kind kind);

#define WEAK_DEF_LOAD(name, T, order) \
	GDK_FN T name(const T *p, int scope) \
	{ \
		(void)scope; \
		return (T)weak_load(p, sizeof(T), order); \
	}
#define WEAK_DEF_STORE(name, T, order) \
	GDK_FN void name(T *p, T v, int scope) \
	{ \
		(void)scope; \
		weak_store(p, v, sizeof(T), order); \
	}
#define WEAK_DEF_RMW(name, T, op, order) \
	GDK_FN T name(T *p, T v, int scope) \
	{ \
		(void)scope; \
		return (T)weak_rmw(p, v, sizeof(T), op, order); \
	}
#define WEAK_DEF_FENCE(name, kind) \
	GDK_FN void name(int scope) \
	{ \
		(void)scope; \
		weak_fence(kind); \
	}
WEAK_DEF_LOAD(gdk_ld32, uint32_t, WEAK_RELAXED)
WEAK_DEF_LOAD(gdk_ld64, uint64_t, WEAK_RELAXED)
WEAK_DEF_LOAD(gdk_ld32_acq, uint32_t, WEAK_ACQUIRES)
WEAK_DEF_LOAD(gdk_ld64_acq, uint64_t, WEAK_ACQUIRES)
WEAK_DEF_STORE(gdk_st32, uint32_t, WEAK_RELAXED)
WEAK_DEF_STORE(gdk_st64, uint64_t, WEAK_RELAXED)
WEAK_DEF_STORE(gdk_st32_rel, uint32_t, WEAK_RELEASES)
WEAK_DEF_STORE(gdk_st64_rel, uint64_t, WEAK_RELEASES)
WEAK_DEF_RMW(gdk_rmw_or64, uint64_t, WEAK_OR, WEAK_RELAXED)
WEAK_DEF_RMW(gdk_rmw_and64, uint64_t, WEAK_AND, WEAK_RELAXED)
WEAK_DEF_RMW(gdk_rmw_add64, uint64_t, WEAK_ADD, WEAK_RELAXED)
WEAK_DEF_RMW(gdk_rmw_max64, uint64_t, WEAK_MAX, WEAK_RELAXED)
WEAK_DEF_RMW(gdk_rmw_xchg32, uint32_t, WEAK_XCHG, WEAK_ACQUIRES | WEAK_RELEASES)
WEAK_DEF_RMW(gdk_rmw_relaxed_xchg32, uint32_t, WEAK_XCHG, WEAK_RELAXED)
WEAK_DEF_FENCE(gdk_fence_acq, WEAK_ACQ)
WEAK_DEF_FENCE(gdk_fence_rel, WEAK_REL)
WEAK_DEF_FENCE(gdk_fence_sc, WEAK_SC)
/* in this memory model, a store never moves ahead of an earlier load */
WEAK_DEF_FENCE(gdk_fence_load_store, WEAK_ACQ)

GDK_FN void gdk_ld64x2(const uint64_t *p, uint64_t *a, uint64_t *b, int scope)
{
	*a = gdk_ld64(p, scope);
	*b = gdk_ld64(p + 1, scope);
}

GDK_FN void gdk_st64x2(uint64_t *p, uint64_t a, uint64_t b, int scope)
{
	gdk_st64(p, a, scope);
	gdk_st64(p + 1, b, scope);
}

GDK_FN void gdk_mmio_st64(uint64_t *p, uint64_t v)
{
	weak_store(p, v, sizeof(v), WEAK_RELAXED);
}

#endif
