/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Replaces platform_cpu.h (renamed to real_cpu.h) when the device code runs in the memory of
 * weak.h. Every function for a load, store, atomic operation, fence or for time calls a weak_*
 * function of replay.c.
 */
#ifndef PLATFORM_WEAK_H
#define PLATFORM_WEAK_H

#define GDK_TOKEN_FIRST	     1 /* same order of stores as on a GPU */
#define GDK_RINGS	     weak_rings
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
#define gdk_rmw_max64_rel    cpu_rmw_max64_rel
#define gdk_rmw_min64	     cpu_rmw_min64
#define gdk_rmw_xchg32	     cpu_rmw_xchg32
#define gdk_rmw_cas32	     cpu_rmw_cas32
#define gdk_any_cas64	     cpu_any_cas64
#define gdk_fence_acq	     cpu_fence_acq
#define gdk_fence_rel	     cpu_fence_rel
#define gdk_fence_sc	     cpu_fence_sc
#define gdk_fence_load_store cpu_fence_load_store
#define gdk_mmio_st64	     cpu_mmio_st64
#define gdk_bf_bulk64	     cpu_bf_bulk64
#define gdk_bf_settle	     cpu_bf_settle
#define gdk_bf_st64_warp     cpu_bf_st64_warp
#define gdk_st_wqe16	     cpu_st_wqe16
#define gdk_now_ns	     cpu_now_ns
#define gdk_relax	     cpu_relax
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
#undef gdk_rmw_max64_rel
#undef gdk_rmw_min64
#undef gdk_rmw_xchg32
#undef gdk_rmw_cas32
#undef gdk_any_cas64
#undef gdk_fence_acq
#undef gdk_fence_rel
#undef gdk_fence_sc
#undef gdk_fence_load_store
#undef gdk_mmio_st64
#undef gdk_bf_bulk64
#undef gdk_bf_settle
#undef gdk_bf_st64_warp
#undef gdk_st_wqe16
#undef gdk_now_ns
#undef gdk_relax

enum weak_kind { WEAK_ACQ = 1, WEAK_REL = 2, WEAK_ACQ_REL = 3, WEAK_SC, WEAK_LOAD_STORE };
enum weak_op { WEAK_OR, WEAK_AND, WEAK_ADD, WEAK_MAX, WEAK_MIN, WEAK_XCHG, WEAK_CAS };

extern uint32_t weak_rings;
/* Called before each fence or ordered access, which sites.py numbers. */
void weak_at(int site);
/* order: 0, WEAK_ACQ, WEAK_REL or WEAK_ACQ_REL. scope: GDK_SCOPE_* */
uint64_t weak_load(const void *p, size_t bytes, int order, int scope);
void weak_store(void *p, uint64_t v, size_t bytes, int order, int scope);
uint64_t weak_rmw(void *p, uint64_t v, size_t bytes, enum weak_op op, int order, int scope);
uint64_t weak_cas(void *p, uint64_t expect, uint64_t v, size_t bytes, int order, int scope);
void weak_fence(enum weak_kind kind, int scope);
void weak_copy(const void *wqe, int bulk);
/* One segment of a WQE. */
void weak_wqe16(void *p, uint64_t lo, uint64_t hi);
void weak_settle(void);
uint64_t weak_now(void);
void weak_idle(void);

#define WEAK_DEF_LOAD(name, T, order) \
	GDK_FN T name(const T *p, int scope) \
	{ \
		return (T)weak_load(p, sizeof(T), order, scope); \
	}
#define WEAK_DEF_STORE(name, T, order) \
	GDK_FN void name(T *p, T v, int scope) \
	{ \
		weak_store(p, v, sizeof(T), order, scope); \
	}
#define WEAK_DEF_RMW(name, T, op, order) \
	GDK_FN T name(T *p, T v, int scope) \
	{ \
		return (T)weak_rmw(p, v, sizeof(T), op, order, scope); \
	}
#define WEAK_DEF_FENCE(name, kind) \
	GDK_FN void name(int scope) \
	{ \
		weak_fence(kind, scope); \
	}
WEAK_DEF_LOAD(gdk_ld32, uint32_t, 0)
WEAK_DEF_LOAD(gdk_ld64, uint64_t, 0)
WEAK_DEF_LOAD(gdk_ld32_acq, uint32_t, WEAK_ACQ)
WEAK_DEF_LOAD(gdk_ld64_acq, uint64_t, WEAK_ACQ)
WEAK_DEF_STORE(gdk_st32, uint32_t, 0)
WEAK_DEF_STORE(gdk_st64, uint64_t, 0)
WEAK_DEF_STORE(gdk_st32_rel, uint32_t, WEAK_REL)
WEAK_DEF_STORE(gdk_st64_rel, uint64_t, WEAK_REL)
WEAK_DEF_RMW(gdk_rmw_or64, uint64_t, WEAK_OR, 0)
WEAK_DEF_RMW(gdk_rmw_and64, uint64_t, WEAK_AND, 0)
WEAK_DEF_RMW(gdk_rmw_add64, uint64_t, WEAK_ADD, 0)
WEAK_DEF_RMW(gdk_rmw_max64, uint64_t, WEAK_MAX, 0)
WEAK_DEF_RMW(gdk_rmw_max64_rel, uint64_t, WEAK_MAX, WEAK_REL)
WEAK_DEF_RMW(gdk_rmw_min64, uint64_t, WEAK_MIN, 0)
WEAK_DEF_RMW(gdk_rmw_xchg32, uint32_t, WEAK_XCHG, WEAK_ACQ_REL)
WEAK_DEF_FENCE(gdk_fence_acq, WEAK_ACQ)
WEAK_DEF_FENCE(gdk_fence_rel, WEAK_REL)
WEAK_DEF_FENCE(gdk_fence_sc, WEAK_SC)
WEAK_DEF_FENCE(gdk_fence_load_store, WEAK_LOAD_STORE)

GDK_FN uint32_t gdk_rmw_cas32(uint32_t *p, uint32_t expect, uint32_t v, int scope)
{
	return (uint32_t)weak_cas(p, expect, v, sizeof(v), WEAK_ACQ_REL, scope);
}

/* Its order is not used. */
GDK_FN uint64_t gdk_any_cas64(uint64_t *p, uint64_t expect, uint64_t v, int scope)
{
	return weak_cas(p, expect, v, sizeof(v), 0, scope);
}

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
	weak_store(p, v, sizeof(v), 0, GDK_SCOPE_SYS);
}

GDK_FN void gdk_bf_bulk64(uint64_t *dst, const void *src)
{
	(void)dst;
	weak_copy(src, 1);
}

GDK_FN void gdk_bf_st64_warp(uint64_t *dst, const uint64_t *w)
{
	(void)dst;
	weak_copy(w, 0);
}

GDK_FN void gdk_bf_settle(void)
{
	weak_settle();
}

GDK_FN void gdk_st_wqe16(void *p, uint64_t lo, uint64_t hi)
{
	weak_wqe16(p, lo, hi);
}

GDK_FN uint64_t gdk_now_ns(void)
{
	return weak_now();
}

GDK_FN void gdk_relax(uint32_t spins)
{
	(void)spins;
	weak_idle();
}

#endif
