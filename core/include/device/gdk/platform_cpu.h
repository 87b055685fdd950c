/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The functions of platform.h for a CPU: C11 atomics through compiler builtins. With
 * GDK_WARP=1 (the default) each thread is a whole warp and a block of its own. With 32 the warps of
 * platform_warp.h are used; only then can a test see an operation by a part of a warp.
 * platform_cuda.h has the same functions for CUDA.
 */
#ifndef GDK_PLATFORM_CPU_H
#define GDK_PLATFORM_CPU_H

#include "device/gdk/platform_fn.h"
#include "device/gdk/platform_yield.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "WQE words are composed for little-endian CPUs"
#endif

/* Initializes a variable that only some lanes set. Avoids a compiler warning. */
#define GDK_UNSET(v) memset(&(v), 0, sizeof(v))
/* 0: the holder writes the doorbell register before it hands the token over. A CPU thread may be
 * suspended for long between the two. If other threads posted meanwhile, the 16-bit index of a
 * late doorbell could look like a newer one to the NIC. */
#ifndef GDK_TOKEN_FIRST
#define GDK_TOKEN_FIRST 0
#endif
#define GDK_UNROLL
#define GDK_LOOP
#define GDK_RARE(c)	  __builtin_expect(!!(c), 0)
#define GDK_COMPUTED(v)	  ((void)(v))
#define GDK_COMPUTED32(v) ((void)(v))
#ifndef GDK_WARP
#define GDK_WARP 1
#endif
#if GDK_WARP != 1 && GDK_WARP != 32
#error "on a CPU a warp is 1 or 32 threads wide"
#endif

#if defined(__SANITIZE_THREAD__)
#define GDK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GDK_TSAN 1
#endif
#endif

#ifdef GDK_TSAN
#define GDK_MO_LOAD  __ATOMIC_ACQUIRE
#define GDK_MO_STORE __ATOMIC_RELEASE
#define GDK_MO_RMW   __ATOMIC_ACQ_REL
#else
#define GDK_MO_LOAD  __ATOMIC_RELAXED
#define GDK_MO_STORE __ATOMIC_RELAXED
#define GDK_MO_RMW   __ATOMIC_RELAXED
#endif

/* A fence of C11 with this order; none at scope THREAD. On AArch64, C11's fences order accesses for
 * the inner shareable domain, which contains the CPUs. The NIC is in the outer one, so system
 * scope uses that domain's barriers: oshld orders loads before later accesses, osh all accesses.
 * x86-64 needs nothing more than C11. */
GDK_FN void gdk_cpu_fence(int order, int scope)
{
#ifndef GDK_TSAN
	if (scope == GDK_SCOPE_THREAD)
		return;
#if defined(__aarch64__)
	if (scope == GDK_SCOPE_SYS) {
		if (order == __ATOMIC_ACQUIRE)
			__asm__ volatile("dmb oshld" ::: "memory");
		else
			__asm__ volatile("dmb osh" ::: "memory");
		return;
	}
#endif
	__atomic_thread_fence(order);
#endif
	(void)order, (void)scope;
}

/* All scopes are the same cache-coherent memory. Scope THREAD uses relaxed atomics, too. */
#define GDK_DEF_LOAD(name, T, order) \
	GDK_FN T name(const T *p, int scope) \
	{ \
		(void)scope; \
		return __atomic_load_n(p, order); \
	}
GDK_DEF_LOAD(gdk_ld32, uint32_t, GDK_MO_LOAD)
GDK_DEF_LOAD(gdk_ld64, uint64_t, GDK_MO_LOAD)
GDK_DEF_LOAD(gdk_ld32_acq, uint32_t, __ATOMIC_ACQUIRE)
GDK_DEF_LOAD(gdk_ld64_acq, uint64_t, __ATOMIC_ACQUIRE)

#define GDK_DEF_STORE(name, T, order) \
	GDK_FN void name(T *p, T v, int scope) \
	{ \
		(void)scope; \
		__atomic_store_n(p, v, order); \
	}
GDK_DEF_STORE(gdk_st32, uint32_t, GDK_MO_STORE)
GDK_DEF_STORE(gdk_st64, uint64_t, GDK_MO_STORE)

/* At system scope the NIC may read the word, so C11's release is not enough (gdk_cpu_fence). */
#define GDK_DEF_STORE_REL(name, T) \
	GDK_FN void name(T *p, T v, int scope) \
	{ \
		if (scope == GDK_SCOPE_SYS) \
			gdk_cpu_fence(__ATOMIC_RELEASE, scope); \
		__atomic_store_n(p, v, __ATOMIC_RELEASE); \
	}
GDK_DEF_STORE_REL(gdk_st32_rel, uint32_t)
GDK_DEF_STORE_REL(gdk_st64_rel, uint64_t)

/* Load or store two adjacent words. Each word is accessed atomically, the pair is not. */
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

#define GDK_DEF_RMW(name, T, op, order) \
	GDK_FN T name(T *p, T v, int scope) \
	{ \
		(void)scope; \
		return op(p, v, order); \
	}
GDK_DEF_RMW(gdk_any_add32_acq_rel, uint32_t, __atomic_fetch_add, __ATOMIC_ACQ_REL)
GDK_DEF_RMW(gdk_rmw_add64, uint64_t, __atomic_fetch_add, GDK_MO_RMW)
GDK_DEF_RMW(gdk_rmw_or64, uint64_t, __atomic_fetch_or, GDK_MO_RMW)
GDK_DEF_RMW(gdk_rmw_and64, uint64_t, __atomic_fetch_and, GDK_MO_RMW)
GDK_DEF_RMW(gdk_rmw_xchg32, uint32_t, __atomic_exchange_n, __ATOMIC_ACQ_REL)

#define GDK_DEF_EXTREME(name, cmp, order) \
	GDK_FN uint64_t name(uint64_t *p, uint64_t v, int scope) \
	{ \
		uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED); \
		(void)scope; \
		while (v cmp old && \
		       !__atomic_compare_exchange_n(p, &old, v, 1, order, __ATOMIC_RELAXED)) \
			; \
		return old; \
	}
GDK_DEF_EXTREME(gdk_rmw_max64, >, GDK_MO_RMW)
GDK_DEF_EXTREME(gdk_rmw_max64_rel, >, __ATOMIC_ACQ_REL)
GDK_DEF_EXTREME(gdk_rmw_min64, <, GDK_MO_RMW)

#define GDK_DEF_CAS(name, T) \
	GDK_FN T name(T *p, T expect, T v, int scope) \
	{ \
		(void)scope; \
		__atomic_compare_exchange_n(p, &expect, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
		return expect; \
	}
GDK_DEF_CAS(gdk_rmw_cas32, uint32_t)
GDK_DEF_CAS(gdk_any_cas64, uint64_t)
/* On a GPU, the gdk_any functions also work on shared memory. A CPU has one kind of memory. */
#define gdk_any_cas32	 gdk_rmw_cas32
#define gdk_any_add64	 gdk_rmw_add64
#define gdk_any_max64	 gdk_rmw_max64
#define gdk_any_ld32	 gdk_ld32
#define gdk_any_ld64	 gdk_ld64
#define gdk_any_st64	 gdk_st64
#define gdk_any_st32_rel gdk_st32_rel

GDK_FN void gdk_fence_acq(int scope)
{
	gdk_cpu_fence(__ATOMIC_ACQUIRE, scope);
}

GDK_FN void gdk_fence_rel(int scope)
{
	gdk_cpu_fence(__ATOMIC_RELEASE, scope);
}

/* Both, by one fence on a GPU. */
GDK_FN void gdk_fence_acq_rel(int scope)
{
	gdk_fence_acq(scope);
	gdk_fence_rel(scope);
}

/* Orders earlier loads before later stores. */
GDK_FN void gdk_fence_load_store(int scope)
{
	gdk_fence_acq(scope);
	gdk_fence_rel(scope);
}

/* Sequentially consistent: also orders earlier stores before later loads. ThreadSanitizer does
 * not understand fences, so it gets a locked read-modify-write, which has this effect on a CPU. */
GDK_FN void gdk_fence_sc(int scope)
{
#ifdef GDK_TSAN
	uint32_t here = 0;

	if (scope != GDK_SCOPE_THREAD)
		__atomic_fetch_add(&here, 1, __ATOMIC_SEQ_CST);
#else
	gdk_cpu_fence(__ATOMIC_SEQ_CST, scope);
#endif
}

GDK_FN uint8_t gdk_ld8_sys(const uint8_t *p)
{
	return __atomic_load_n(p, GDK_MO_LOAD);
}
GDK_FN uint16_t gdk_ldc16(const void *p)
{
	return *(const uint16_t *)p;
}
GDK_FN uint32_t gdk_ldc32(const void *p)
{
	return *(const uint32_t *)p;
}
GDK_FN uint64_t gdk_ldc64(const void *p)
{
	return *(const uint64_t *)p;
}
GDK_FN uint64_t gdk_ld_state(const void *p)
{
	return *(const uint64_t *)p;
}

GDK_FN void gdk_st_wqe16(void *p, uint64_t lo, uint64_t hi)
{
	__atomic_store_n((uint64_t *)p, lo, GDK_MO_STORE);
	__atomic_store_n((uint64_t *)p + 1, hi, GDK_MO_STORE);
}

GDK_FN uint16_t gdk_bswap16(uint16_t x)
{
	return __builtin_bswap16(x);
}
GDK_FN uint32_t gdk_bswap32(uint32_t x)
{
	return __builtin_bswap32(x);
}
GDK_FN uint32_t gdk_bswap32_16(uint32_t x)
{
	return gdk_bswap32(x & 0xffff);
}
GDK_FN uint32_t gdk_bswap32_24(uint32_t x, uint32_t low)
{
	return gdk_bswap32((x & 0xffff) << 8 | low);
}
GDK_FN uint64_t gdk_bswap64(uint64_t x)
{
	return __builtin_bswap64(x);
}

/* Flushes write-combining buffers, because the register page may be write-combining. Before a
 * register store, this makes earlier stores leave the CPU first. After a register store, it makes
 * that store leave the CPU at once. */
GDK_FN void gdk_mmio_barrier(void)
{
#if defined(__x86_64__)
	__asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

GDK_FN void gdk_mmio_st64(uint64_t *p, uint64_t v)
{
	gdk_mmio_barrier();
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
	gdk_mmio_barrier();
}

/* Asynchronous stores exist on some GPUs only. On a CPU they are plain release stores. */
#define GDK_ASYNC_STORE 0
GDK_FN void gdk_st32_async(uint32_t *p, uint32_t v)
{
	gdk_st32_rel(p, v, GDK_SCOPE_SYS);
}
GDK_FN void gdk_mmio_st64_async(uint64_t *p, uint64_t v)
{
	gdk_mmio_st64(p, v);
}

/* A CPU can copy from any memory to the register. */
GDK_FN int gdk_bf_in_one(const void *src)
{
	(void)src;
	return 1;
}

/* Stores 64 bytes in ascending order, so that a write-combining buffer sends them as one burst. */
GDK_FN void gdk_bf_st64(uint64_t *dst, const uint64_t *w)
{
	int i;

	gdk_mmio_barrier();
	for (i = 0; i < 8; i++)
		__atomic_store_n(dst + i, w[i], GDK_MO_STORE);
	gdk_mmio_barrier();
}

/* Returns the source for gdk_bf_bulk64(): a copy in w, because src may be the slot, which another
 * thread can reuse once the DBREC is stored. */
GDK_FN const void *gdk_bf_source(const void *src, uint64_t *w)
{
	int i;

	for (i = 0; i < 8; i++)
		w[i] = gdk_ld64((const uint64_t *)src + i, GDK_SCOPE_SYS);
	return w;
}

GDK_FN void gdk_bf_bulk64(uint64_t *dst, const void *src)
{
	uint64_t w[8];

	(void)gdk_bf_source(src, w);
	gdk_bf_st64(dst, w);
}

GDK_FN void gdk_bf_settle(void)
{
}

GDK_FN uint32_t gdk_popc32(uint32_t v)
{
	return (uint32_t)__builtin_popcount(v);
}
/* Position of the lowest set bit. v must not be 0. */
GDK_FN uint32_t gdk_ctz32(uint32_t v)
{
	return (uint32_t)__builtin_ctz(v);
}

#if GDK_WARP == 1
/* A warp and a block are one thread. */
GDK_FN uint32_t gdk_lane(void)
{
	return 0;
}
GDK_FN uint32_t gdk_warp_size(void)
{
	return 1;
}
GDK_FN uint32_t gdk_warp_mask(void)
{
	return 1;
}
GDK_FN void gdk_syncwarp(void)
{
}
GDK_FN void gdk_syncwarp_mask(uint32_t mask)
{
	(void)mask;
}
GDK_FN uint32_t gdk_ballot(int pred)
{
	return pred ? 1u : 0u;
}
GDK_FN uint32_t gdk_ballot_mask(uint32_t mask, int pred)
{
	return pred ? mask : 0u;
}
GDK_FN uint32_t gdk_activemask(void)
{
	return 1;
}
GDK_FN uint32_t gdk_match64(uint32_t mask, uint64_t v)
{
	(void)v;
	return mask;
}
GDK_FN uint64_t gdk_shfl64(uint64_t v, uint32_t lane)
{
	(void)lane;
	return v;
}
GDK_FN uint64_t gdk_shfl64m(uint32_t mask, uint64_t v, uint32_t lane)
{
	(void)mask;
	(void)lane;
	return v;
}

GDK_FN uint32_t gdk_shfl32m(uint32_t mask, uint32_t v, uint32_t lane)
{
	return (uint32_t)gdk_shfl64m(mask, v, lane);
}

GDK_FN uint32_t gdk_block_rank(void)
{
	return 0;
}
GDK_FN uint32_t gdk_block_size(void)
{
	return 1;
}
GDK_FN void gdk_block_sync(void)
{
}
GDK_FN int gdk_block_any(int pred)
{
	return pred;
}
GDK_FN uint64_t gdk_block_bcast64(uint64_t v)
{
	return v;
}
GDK_FN uint32_t gdk_warp_min32(uint32_t v)
{
	return v;
}
GDK_FN uint32_t gdk_block_min32(uint32_t v)
{
	return v;
}
#else
#include "device/gdk/platform_warp.h"

/* A thread that has not called gdk_host_enter is a warp and a block of its own. */
GDK_FN uint32_t gdk_lane(void)
{
	return gdk_host_self.lane;
}
GDK_FN uint32_t gdk_warp_size(void)
{
	return gdk_host_warp_size();
}
GDK_FN void gdk_syncwarp_mask(uint32_t mask)
{
	gdk_host_meet(GDK_HOST_SYNC, mask, 0, 0);
}
GDK_FN uint32_t gdk_warp_mask(void)
{
	return gdk_host_warp_mask();
}
GDK_FN void gdk_syncwarp(void)
{
	gdk_syncwarp_mask(gdk_host_warp_mask());
}
GDK_FN uint32_t gdk_ballot_mask(uint32_t mask, int pred)
{
	return (uint32_t)gdk_host_meet(GDK_HOST_BALLOT, mask, !!pred, 0);
}
GDK_FN uint32_t gdk_ballot(int pred)
{
	return gdk_ballot_mask(gdk_host_warp_mask(), pred);
}
/* Groups the lanes that call this at about the same time. A random generator chooses whether
 * all, one or some lanes form the group, because a GPU may also split a warp anywhere. */
GDK_FN uint32_t gdk_activemask(void)
{
	return (uint32_t)gdk_host_meet(GDK_HOST_GATHER, 0, 0, 0);
}
GDK_FN uint32_t gdk_match64(uint32_t mask, uint64_t v)
{
	return (uint32_t)gdk_host_meet(GDK_HOST_MATCH, mask, v, 0);
}
GDK_FN uint64_t gdk_shfl64m(uint32_t mask, uint64_t v, uint32_t lane)
{
	return gdk_host_meet(GDK_HOST_SHUFFLE, mask, v, lane);
}
GDK_FN uint64_t gdk_shfl64(uint64_t v, uint32_t lane)
{
	return gdk_shfl64m(gdk_host_warp_mask(), v, lane);
}

GDK_FN uint32_t gdk_shfl32m(uint32_t mask, uint32_t v, uint32_t lane)
{
	return (uint32_t)gdk_shfl64m(mask, v, lane);
}

GDK_FN uint32_t gdk_block_rank(void)
{
	return gdk_host_self.rank;
}
GDK_FN uint32_t gdk_block_size(void)
{
	return gdk_host_block_size();
}
GDK_FN void gdk_block_sync(void)
{
	gdk_host_block_sync();
}
GDK_FN int gdk_block_any(int pred)
{
	return gdk_host_block_any(pred);
}
GDK_FN uint64_t gdk_block_bcast64(uint64_t v)
{
	return gdk_host_block_bcast64(v);
}
GDK_FN uint32_t gdk_warp_min32(uint32_t v)
{
	return (uint32_t)gdk_host_meet(GDK_HOST_LEAST, gdk_host_warp_mask(), v, 0);
}
GDK_FN uint32_t gdk_block_min32(uint32_t v)
{
	return gdk_host_block_min32(v);
}
#endif

GDK_FN void gdk_bf_ld64_warp(uint64_t *w, const void *src)
{
	int i;

	for (i = 0; i < 8; i++)
		w[i] = __atomic_load_n((const uint64_t *)src + i, GDK_MO_LOAD);
}

GDK_FN void gdk_bf_st64_warp(uint64_t *dst, const uint64_t *w)
{
	gdk_syncwarp();
	if (gdk_lane() == 0)
		gdk_bf_st64(dst, w);
	gdk_syncwarp();
}

/* One iteration of a polling loop: a pause instruction, and each 64th time a yield. */
GDK_FN void gdk_relax(uint32_t spins)
{
	if (spins % 64 == 63) {
		gdk_host_yield();
		return;
	}
#if defined(__x86_64__)
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Does nothing: only threads of a CUDA GPU back off by sleeping. CPU threads yield in gdk_relax. */
GDK_FN void gdk_pause_ns(uint32_t ns)
{
	(void)ns;
}

#endif
