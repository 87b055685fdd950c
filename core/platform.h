/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What differs between CUDA and a CPU, for the device data path: memory access
 * by scope, fences, atomics, byte order, warp, register stores, time. Nothing
 * else of the data path tests for a compiler or holds inline assembly.
 *
 * Contract: "rlx" orders nothing, "acq" and "rel" as in C11, at a scope. The
 * data path uses fence + relaxed access. ThreadSanitizer does not understand
 * fences, so under it every relaxed access acquires or releases by itself.
 * Scope THREAD is for memory that one thread owns: plain access.
 */
#ifndef GDK_PLATFORM_H
#define GDK_PLATFORM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "../../common/doca_gpunetio_verbs_dev.h"
#include "state.h"

/* By rising width, so that a mode's scope compares. */
#define GDK_SCOPE_THREAD 0
#define GDK_SCOPE_CTA 1
#define GDK_SCOPE_GPU 2
#define GDK_SCOPE_SYS 3

#ifdef __CUDACC__

#define GDK_FN __device__ static __forceinline__
#define GDK_SLOW_FN __device__ static __noinline__ __attribute__((unused))
/* What users of the DOCA names test for. */
#if __CUDA_ARCH__ >= 900
#define DOCA_GPUNETIO_VERBS_HAS_TMA_COPY 1
#endif
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1202
#define DOCA_GPUNETIO_VERBS_HAS_STORE_RELAXED_MMIO 1
#endif
#ifndef GDK_WARP
#define GDK_WARP 32
#endif

/* One definition per width and meaning; scope is a constant after inlining. */
#define GDK_DEF_LOAD(name, sem, T, ty, con)                                                     \
	GDK_FN T name(const T *p, int scope)                                                    \
	{                                                                                       \
		T v;                                                                            \
		if (scope == GDK_SCOPE_CTA)                                                     \
			asm volatile("ld." sem ".cta." ty " %0, [%1];"        \
				     : con(v) : "l"(p) : "memory");             \
		else if (scope == GDK_SCOPE_GPU)                                                \
			asm volatile("ld." sem ".gpu." ty " %0, [%1];"        \
				     : con(v) : "l"(p) : "memory");             \
		else if (scope == GDK_SCOPE_SYS)                                                \
			asm volatile("ld." sem ".sys." ty " %0, [%1];"        \
				     : con(v) : "l"(p) : "memory");             \
		else                                                                            \
			v = *(const volatile T *)p;                                             \
		return v;                                                                       \
	}
GDK_DEF_LOAD(gdk_ld32, "relaxed", uint32_t, "b32", "=r")
GDK_DEF_LOAD(gdk_ld64, "relaxed", uint64_t, "b64", "=l")
GDK_DEF_LOAD(gdk_ld32_acq, "acquire", uint32_t, "b32", "=r")
GDK_DEF_LOAD(gdk_ld64_acq, "acquire", uint64_t, "b64", "=l")

#define GDK_DEF_STORE(name, sem, T, ty, con)                                                    \
	GDK_FN void name(T *p, T v, int scope)                                                  \
	{                                                                                       \
		if (scope == GDK_SCOPE_CTA)                                                     \
			asm volatile("st." sem ".cta." ty " [%0], %1;"        \
				     ::"l"(p), con(v) : "memory");              \
		else if (scope == GDK_SCOPE_GPU)                                                \
			asm volatile("st." sem ".gpu." ty " [%0], %1;"        \
				     ::"l"(p), con(v) : "memory");              \
		else if (scope == GDK_SCOPE_SYS)                                                \
			asm volatile("st." sem ".sys." ty " [%0], %1;"        \
				     ::"l"(p), con(v) : "memory");              \
		else                                                                            \
			*(volatile T *)p = v;                                                   \
	}
GDK_DEF_STORE(gdk_st32, "relaxed", uint32_t, "b32", "r")
GDK_DEF_STORE(gdk_st64, "relaxed", uint64_t, "b64", "l")
GDK_DEF_STORE(gdk_st32_rel, "release", uint32_t, "b32", "r")
GDK_DEF_STORE(gdk_st64_rel, "release", uint64_t, "b64", "l")

#define GDK_DEF_RMW(name, insn, T, ty, rcon, con)                                               \
	GDK_FN T name(T *p, T v, int scope)                                                     \
	{                                                                                       \
		T old;                                                                          \
		if (scope <= GDK_SCOPE_CTA)                                                     \
			asm volatile("atom." insn(".cta") ty " %0, [%1], %2;"                   \
				     : rcon(old) : "l"(p), con(v) : "memory");                  \
		else if (scope == GDK_SCOPE_GPU)                                                \
			asm volatile("atom." insn(".gpu") ty " %0, [%1], %2;"                   \
				     : rcon(old) : "l"(p), con(v) : "memory");                  \
		else                                                                            \
			asm volatile("atom." insn(".sys") ty " %0, [%1], %2;"                   \
				     : rcon(old) : "l"(p), con(v) : "memory");                  \
		return old;                                                                     \
	}
#define GDK_PTX_ADD(s) "relaxed" s ".add"
#define GDK_PTX_ADD_AR(s) "acq_rel" s ".add"
#define GDK_PTX_MAX(s) "relaxed" s ".max"
#define GDK_PTX_MAX_REL(s) "release" s ".max"
#define GDK_PTX_MIN(s) "relaxed" s ".min"
#define GDK_PTX_XCHG(s) "acq_rel" s ".exch"
GDK_DEF_RMW(gdk_rmw_add32_acq_rel, GDK_PTX_ADD_AR, uint32_t, ".u32", "=r", "r")
GDK_DEF_RMW(gdk_rmw_add64, GDK_PTX_ADD, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_max64, GDK_PTX_MAX, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_max64_rel, GDK_PTX_MAX_REL, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_min64, GDK_PTX_MIN, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_xchg32, GDK_PTX_XCHG, uint32_t, ".b32", "=r", "r")

GDK_FN uint32_t gdk_rmw_cas32(uint32_t *p, uint32_t expect, uint32_t v, int scope)
{
	uint32_t old;

	if (scope <= GDK_SCOPE_CTA)
		asm volatile("atom.acq_rel.cta.cas.b32 %0, [%1], %2, %3;"
			     : "=r"(old) : "l"(p), "r"(expect), "r"(v) : "memory");
	else if (scope == GDK_SCOPE_GPU)
		asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;"
			     : "=r"(old) : "l"(p), "r"(expect), "r"(v) : "memory");
	else
		asm volatile("atom.acq_rel.sys.cas.b32 %0, [%1], %2, %3;"
			     : "=r"(old) : "l"(p), "r"(expect), "r"(v) : "memory");
	return old;
}

/* One-sided fences exist from PTX 8.6 and sm_90 on; before, the two-sided one. */
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208 && \
	(!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
#define GDK_PTX_FENCE_ACQ "fence.acquire"
#define GDK_PTX_FENCE_REL "fence.release"
#else
#define GDK_PTX_FENCE_ACQ "fence.acq_rel"
#define GDK_PTX_FENCE_REL "fence.acq_rel"
#endif
#define GDK_DEF_FENCE(name, insn)                                    \
	GDK_FN void name(int scope)                                  \
	{                                                            \
		if (scope == GDK_SCOPE_CTA)                          \
			asm volatile(insn ".cta;" ::: "memory");     \
		else if (scope == GDK_SCOPE_GPU)                     \
			asm volatile(insn ".gpu;" ::: "memory");     \
		else if (scope == GDK_SCOPE_SYS)                     \
			asm volatile(insn ".sys;" ::: "memory");     \
	}
GDK_DEF_FENCE(gdk_fence_acq, GDK_PTX_FENCE_ACQ)
GDK_DEF_FENCE(gdk_fence_rel, GDK_PTX_FENCE_REL)

/* Values that no kernel changes. */
GDK_FN uint16_t gdk_ldc16(const void *p) { return __ldg((const unsigned short *)p); }
GDK_FN uint32_t gdk_ldc32(const void *p) { return __ldg((const unsigned int *)p); }
GDK_FN uint64_t gdk_ldc64(const void *p) { return __ldg((const unsigned long long *)p); }

/* 16 aligned bytes of a WQE, streaming: the NIC is the next reader. */
GDK_FN void gdk_st_wqe16(void *p, uint64_t lo, uint64_t hi)
{
	asm volatile("st.weak.cs.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(lo), "l"(hi) : "memory");
}

GDK_FN uint16_t gdk_bswap16(uint16_t x) { return (uint16_t)(x << 8 | x >> 8); }
GDK_FN uint32_t gdk_bswap32(uint32_t x) { return __byte_perm(x, 0, 0x0123); }
GDK_FN uint64_t gdk_bswap64(uint64_t x)
{
	return (uint64_t)gdk_bswap32((uint32_t)x) << 32 | gdk_bswap32((uint32_t)(x >> 32));
}

GDK_FN void gdk_mmio_st64(uint64_t *p, uint64_t v)
{
#ifdef DOCA_GPUNETIO_VERBS_HAS_STORE_RELAXED_MMIO
	asm volatile("st.mmio.relaxed.sys.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#else
	asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#endif
}

/* 64 bytes to a BlueFlame register, done when it returns; src in shared memory
 * goes as one bulk copy, elsewhere (and before sm_90) as four stores. */
GDK_FN void gdk_bf_copy64(uint64_t *dst, const uint64_t *src)
{
#ifdef DOCA_GPUNETIO_VERBS_HAS_TMA_COPY
	if (__isShared(src)) {
		/* The thread's own stores to shared memory -> the async copy's reads. */
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
		asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;"
			     ::"l"(dst),
			     "r"((uint32_t)__cvta_generic_to_shared(src)) : "memory");
		asm volatile("cp.async.bulk.commit_group;" ::: "memory");
		asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
		return;
	}
#endif
	for (int i = 0; i < 8; i += 2)
		asm volatile("st.volatile.global.v2.b64 [%0], {%1, %2};" ::"l"(dst + i),
			     "l"(gdk_ld64(src + i, GDK_SCOPE_GPU)),
			     "l"(gdk_ld64(src + i + 1, GDK_SCOPE_GPU)) : "memory");
}

GDK_FN uint32_t gdk_lane(void)
{
	uint32_t lane;

	asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}
GDK_FN void gdk_syncwarp(void) { __syncwarp(); }
GDK_FN uint32_t gdk_ballot(int pred) { return __ballot_sync(0xffffffffu, pred); }
GDK_FN uint64_t gdk_shfl64(uint64_t v, uint32_t lane)
{
	return __shfl_sync(0xffffffffu, (unsigned long long)v, (int)lane);
}

GDK_FN uint64_t gdk_now_ns(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}
GDK_FN void gdk_relax(uint32_t spins) { (void)spins; }

#else /* a CPU */

#include <sched.h>
#include <time.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "WQE words are composed for little-endian CPUs"
#endif

#define GDK_FN static inline __attribute__((__always_inline__, __unused__))
#define GDK_SLOW_FN static __attribute__((__noinline__, __unused__))
#ifndef GDK_WARP
#define GDK_WARP 1
#endif
#if GDK_WARP != 1
#error "on a CPU a warp is one thread wide"
#endif

#if defined(__SANITIZE_THREAD__)
#define GDK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GDK_TSAN 1
#endif
#endif

#ifdef GDK_TSAN
#define GDK_MO_LOAD __ATOMIC_ACQUIRE
#define GDK_MO_STORE __ATOMIC_RELEASE
#define GDK_MO_RMW __ATOMIC_ACQ_REL
#else
#define GDK_MO_LOAD __ATOMIC_RELAXED
#define GDK_MO_STORE __ATOMIC_RELAXED
#define GDK_MO_RMW __ATOMIC_RELAXED
#endif

/* Every scope is the same cache-coherent memory; plain access would tear in
 * theory only, so THREAD is a relaxed access as well. */
#define GDK_DEF_LOAD(name, T, order)                                              \
	GDK_FN T name(const T *p, int scope)                                      \
	{                                                                         \
		(void)scope;                                                      \
		return __atomic_load_n(p, order);                                 \
	}
GDK_DEF_LOAD(gdk_ld32, uint32_t, GDK_MO_LOAD)
GDK_DEF_LOAD(gdk_ld64, uint64_t, GDK_MO_LOAD)
GDK_DEF_LOAD(gdk_ld32_acq, uint32_t, __ATOMIC_ACQUIRE)
GDK_DEF_LOAD(gdk_ld64_acq, uint64_t, __ATOMIC_ACQUIRE)

#define GDK_DEF_STORE(name, T, order)                                             \
	GDK_FN void name(T *p, T v, int scope)                                    \
	{                                                                         \
		(void)scope;                                                      \
		__atomic_store_n(p, v, order);                                    \
	}
GDK_DEF_STORE(gdk_st32, uint32_t, GDK_MO_STORE)
GDK_DEF_STORE(gdk_st64, uint64_t, GDK_MO_STORE)
GDK_DEF_STORE(gdk_st32_rel, uint32_t, __ATOMIC_RELEASE)
GDK_DEF_STORE(gdk_st64_rel, uint64_t, __ATOMIC_RELEASE)

#define GDK_DEF_RMW(name, T, op, order)                                           \
	GDK_FN T name(T *p, T v, int scope)                                       \
	{                                                                         \
		(void)scope;                                                      \
		return op(p, v, order);                                           \
	}
GDK_DEF_RMW(gdk_rmw_add32_acq_rel, uint32_t, __atomic_fetch_add, __ATOMIC_ACQ_REL)
GDK_DEF_RMW(gdk_rmw_add64, uint64_t, __atomic_fetch_add, GDK_MO_RMW)
GDK_DEF_RMW(gdk_rmw_xchg32, uint32_t, __atomic_exchange_n, __ATOMIC_ACQ_REL)

#define GDK_DEF_EXTREME(name, cmp, order)                                         \
	GDK_FN uint64_t name(uint64_t *p, uint64_t v, int scope)                  \
	{                                                                         \
		uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);              \
		(void)scope;                                                      \
		while (v cmp old && !__atomic_compare_exchange_n(p, &old, v, 1, order, \
								 __ATOMIC_RELAXED)) \
			;                                                         \
		return old;                                                       \
	}
GDK_DEF_EXTREME(gdk_rmw_max64, >, GDK_MO_RMW)
GDK_DEF_EXTREME(gdk_rmw_max64_rel, >, __ATOMIC_ACQ_REL)
GDK_DEF_EXTREME(gdk_rmw_min64, <, GDK_MO_RMW)

GDK_FN uint32_t gdk_rmw_cas32(uint32_t *p, uint32_t expect, uint32_t v, int scope)
{
	(void)scope;
	__atomic_compare_exchange_n(p, &expect, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return expect;
}

GDK_FN void gdk_fence_acq(int scope)
{
#ifndef GDK_TSAN
	if (scope != GDK_SCOPE_THREAD)
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
	(void)scope;
}

/* At system scope the observer may be a real NIC that reads over PCIe: what
 * C11's fence orders among CPUs is ordered for it too (x86: stores stay in
 * order; AArch64: the fence is widened to the outer domain). */
GDK_FN void gdk_fence_rel(int scope)
{
#ifndef GDK_TSAN
	if (scope != GDK_SCOPE_THREAD)
		__atomic_thread_fence(__ATOMIC_RELEASE);
#if defined(__aarch64__)
	if (scope == GDK_SCOPE_SYS)
		__asm__ volatile("dmb oshst" ::: "memory");
#endif
#endif
	(void)scope;
}

GDK_FN uint16_t gdk_ldc16(const void *p) { return *(const uint16_t *)p; }
GDK_FN uint32_t gdk_ldc32(const void *p) { return *(const uint32_t *)p; }
GDK_FN uint64_t gdk_ldc64(const void *p) { return *(const uint64_t *)p; }

GDK_FN void gdk_st_wqe16(void *p, uint64_t lo, uint64_t hi)
{
	__atomic_store_n((uint64_t *)p, lo, GDK_MO_STORE);
	__atomic_store_n((uint64_t *)p + 1, hi, GDK_MO_STORE);
}

GDK_FN uint16_t gdk_bswap16(uint16_t x) { return __builtin_bswap16(x); }
GDK_FN uint32_t gdk_bswap32(uint32_t x) { return __builtin_bswap32(x); }
GDK_FN uint64_t gdk_bswap64(uint64_t x) { return __builtin_bswap64(x); }

/* The register page may be write-combining: stores before it leave first, and
 * the buffer does not keep the doorbell back. */
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

/* In rising order, as write-combining buffers like it. */
GDK_FN void gdk_bf_copy64(uint64_t *dst, const uint64_t *src)
{
	int i;

	gdk_mmio_barrier();
	for (i = 0; i < 8; i++)
		__atomic_store_n(dst + i, __atomic_load_n(src + i, GDK_MO_LOAD), GDK_MO_STORE);
	gdk_mmio_barrier();
}

GDK_FN uint32_t gdk_lane(void) { return 0; }
GDK_FN void gdk_syncwarp(void) {}
GDK_FN uint32_t gdk_ballot(int pred) { return pred ? 1u : 0u; }
GDK_FN uint64_t gdk_shfl64(uint64_t v, uint32_t lane)
{
	(void)lane;
	return v;
}

GDK_FN uint64_t gdk_now_ns(void)
{
	struct timespec ts;

#ifdef CLOCK_MONOTONIC
	clock_gettime(CLOCK_MONOTONIC, &ts);
#else /* strict ISO C has no other */
	timespec_get(&ts, TIME_UTC);
#endif
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* One turn of a wait: a short pause at first, then the processor is given away. */
GDK_FN void gdk_relax(uint32_t spins)
{
	if (spins % 64 == 63) {
		sched_yield();
		return;
	}
#if defined(__x86_64__)
	__asm__ volatile("pause");
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif /* a CPU */

/* Any alignment, any length; the widest steps that both addresses allow. */
GDK_FN void gdk_copy(void *dst, const void *src, size_t bytes)
{
	uint8_t *d = (uint8_t *)dst;
	const uint8_t *s = (const uint8_t *)src;
	const uintptr_t skew = (uintptr_t)d ^ (uintptr_t)s;

	while (bytes) {
		if (bytes >= 8 && !((skew | (uintptr_t)d) & 7)) {
			*(uint64_t *)(void *)d = *(const uint64_t *)(const void *)s;
			d += 8, s += 8, bytes -= 8;
		} else if (bytes >= 4 && !((skew | (uintptr_t)d) & 3)) {
			*(uint32_t *)(void *)d = *(const uint32_t *)(const void *)s;
			d += 4, s += 4, bytes -= 4;
		} else {
			*d++ = *s++;
			bytes--;
		}
	}
}

/* Fields of the packed device structs, which never change while a kernel runs. */
#define GDK_QP_AT(qp, field) ((const char *)(qp) + offsetof(struct doca_gpu_dev_verbs_qp, field))
#define GDK_CQ_AT(cq, field) ((const char *)(cq) + offsetof(struct doca_gpu_dev_verbs_cq, field))

/* The scope that makes threads which share a queue see each other. */
GDK_FN int gdk_mode_scope(enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	if (mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		return GDK_SCOPE_THREAD;
	return mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA ? GDK_SCOPE_CTA :
								       GDK_SCOPE_GPU;
}

/* Read-modify-write by scope: plain where one thread owns the word. */
GDK_FN uint64_t gdk_add64(uint64_t *p, uint64_t v, int scope)
{
	uint64_t old;

	if (scope != GDK_SCOPE_THREAD)
		return gdk_rmw_add64(p, v, scope);
	old = gdk_ld64(p, scope);
	gdk_st64(p, old + v, scope);
	return old;
}

GDK_FN uint64_t gdk_max64(uint64_t *p, uint64_t v, int scope)
{
	uint64_t old;

	if (scope != GDK_SCOPE_THREAD)
		return gdk_rmw_max64(p, v, scope);
	old = gdk_ld64(p, scope);
	if (v > old)
		gdk_st64(p, v, scope);
	return old;
}

/* As gdk_max64; what the thread did before is seen by who reads the result. */
GDK_FN uint64_t gdk_max64_rel(uint64_t *p, uint64_t v, int scope)
{
	if (scope != GDK_SCOPE_THREAD)
		return gdk_rmw_max64_rel(p, v, scope);
	return gdk_max64(p, v, scope);
}

/* Spin lock by sharing mode; exclusive use needs none. */
GDK_FN void gdk_lock(int *lock, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	uint32_t spins = 0;

	if (mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		return;
	while (gdk_rmw_cas32((uint32_t *)lock, 0, 1, gdk_mode_scope(mode)))
		gdk_relax(spins++);
}

GDK_FN void gdk_unlock(int *lock, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	if (mode != DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		gdk_st32_rel((uint32_t *)lock, 0, gdk_mode_scope(mode));
}

#endif
