/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The functions of platform.h for CUDA: inline PTX and intrinsics. All PTX of the device data
 * path is in this file. platform_cpu.h has the same functions for a CPU.
 */
#ifndef GDK_PLATFORM_CUDA_H
#define GDK_PLATFORM_CUDA_H
#ifdef __CUDACC__

#include "device/gdk/platform_fn.h"

/* Makes the compiler compute v at this point of the program, not later. */
#define GDK_COMPUTED(v)	  asm volatile("" : "+l"(v))
#define GDK_COMPUTED32(v) asm volatile("" : "+r"(v))
/* Marks a variable that only some lanes set and read. */
#define GDK_UNSET(v) ((void)0)
/* 1: the holder may hand the token over before it writes the doorbell register. GPU threads are
 * not suspended, so the doorbell is late by the duration of a fence, never by a lap of the ring. */
#ifndef GDK_TOKEN_FIRST
#define GDK_TOKEN_FIRST 1
#endif
#define GDK_UNROLL  _Pragma("unroll")
#define GDK_LOOP    _Pragma("unroll 1") /* keeps the code of a rare loop small */
#define GDK_RARE(c) __builtin_expect(!!(c), 0)
/* Feature macros of DOCA, which applications test. */
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 12
#define DOCA_GPUNETIO_VERBS_HAS_TMA_COPY 1
#endif
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1202
#define DOCA_GPUNETIO_VERBS_HAS_STORE_RELAXED_MMIO 1
#endif
#if __CUDA_ARCH__ >= 1000 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
#define DOCA_GPUNETIO_VERBS_HAS_ASYNC_STORE_RELEASE 1
#define GDK_ASYNC_STORE				    1
#else
#define GDK_ASYNC_STORE 0
#endif
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
#define DOCA_GPUNETIO_VERBS_HAS_FENCE_ACQUIRE_RELEASE_PTX 1
#endif
#ifndef GDK_WARP
#define GDK_WARP 32
#endif

/* The following macros define one function per width and memory order. scope is a constant after
 * inlining, so one instruction remains. */
#define GDK_DEF_LOAD(name, sem, space, T, ty, con) \
	GDK_FN T name(const T *p, int scope) \
	{ \
		T v; \
		if (scope == GDK_SCOPE_CTA) \
			asm volatile("ld." sem ".cta" space ty " %0, [%1];" \
				     : con(v) \
				     : "l"(p) \
				     : "memory"); \
		else if (scope == GDK_SCOPE_GPU) \
			asm volatile("ld." sem ".gpu" space ty " %0, [%1];" \
				     : con(v) \
				     : "l"(p) \
				     : "memory"); \
		else if (scope == GDK_SCOPE_SYS) \
			asm volatile("ld." sem ".sys" space ty " %0, [%1];" \
				     : con(v) \
				     : "l"(p) \
				     : "memory"); \
		else \
			asm volatile("ld.weak" space ty " %0, [%1];" \
				     : con(v) \
				     : "l"(p) \
				     : "memory"); \
		return v; \
	}
GDK_DEF_LOAD(gdk_ld32, "relaxed", ".global", uint32_t, ".b32", "=r")
GDK_DEF_LOAD(gdk_ld64, "relaxed", ".global", uint64_t, ".b64", "=l")
GDK_DEF_LOAD(gdk_any_ld32, "relaxed", "", uint32_t, ".b32", "=r")
GDK_DEF_LOAD(gdk_any_ld64, "relaxed", "", uint64_t, ".b64", "=l")
GDK_DEF_LOAD(gdk_ld32_acq, "acquire", ".global", uint32_t, ".b32", "=r")
GDK_DEF_LOAD(gdk_ld64_acq, "acquire", ".global", uint64_t, ".b64", "=l")

#define GDK_DEF_STORE(name, sem, space, T, ty, con) \
	GDK_FN void name(T *p, T v, int scope) \
	{ \
		if (scope == GDK_SCOPE_CTA) \
			asm volatile("st." sem ".cta" space ty " [%0], %1;" ::"l"(p), con(v) \
				     : "memory"); \
		else if (scope == GDK_SCOPE_GPU) \
			asm volatile("st." sem ".gpu" space ty " [%0], %1;" ::"l"(p), con(v) \
				     : "memory"); \
		else if (scope == GDK_SCOPE_SYS) \
			asm volatile("st." sem ".sys" space ty " [%0], %1;" ::"l"(p), con(v) \
				     : "memory"); \
		else \
			asm volatile("st.weak" space ty " [%0], %1;" ::"l"(p), con(v) : "memory"); \
	}
GDK_DEF_STORE(gdk_st32, "relaxed", ".global", uint32_t, ".b32", "r")
GDK_DEF_STORE(gdk_st64, "relaxed", ".global", uint64_t, ".b64", "l")
GDK_DEF_STORE(gdk_any_st64, "relaxed", "", uint64_t, ".b64", "l")
GDK_DEF_STORE(gdk_any_st32_rel, "release", "", uint32_t, ".b32", "r")
GDK_DEF_STORE(gdk_st32_rel, "release", ".global", uint32_t, ".b32", "r")
GDK_DEF_STORE(gdk_st64_rel, "release", ".global", uint64_t, ".b64", "l")

#define GDK_DEF_RMW(name, insn, T, ty, rcon, con) \
	GDK_FN T name(T *p, T v, int scope) \
	{ \
		T old; \
		if (scope <= GDK_SCOPE_CTA) \
			asm volatile("atom." insn(".cta") ty " %0, [%1], %2;" \
				     : rcon(old) \
				     : "l"(p), con(v) \
				     : "memory"); \
		else if (scope == GDK_SCOPE_GPU) \
			asm volatile("atom." insn(".gpu") ty " %0, [%1], %2;" \
				     : rcon(old) \
				     : "l"(p), con(v) \
				     : "memory"); \
		else \
			asm volatile("atom." insn(".sys") ty " %0, [%1], %2;" \
				     : rcon(old) \
				     : "l"(p), con(v) \
				     : "memory"); \
		return old; \
	}

/* Load or store two adjacent words, aligned to 16 bytes, with one instruction. Each word is
 * accessed atomically, but the pair is not guaranteed to be. A scope wider than THREAD is executed
 * as GPU. */
GDK_FN void gdk_ld64x2(const uint64_t *p, uint64_t *a, uint64_t *b, int scope)
{
	if (scope == GDK_SCOPE_THREAD)
		asm volatile("ld.weak.global.v2.b64 {%0, %1}, [%2];"
			     : "=l"(*a), "=l"(*b)
			     : "l"(p)
			     : "memory");
	else
		asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
			     : "=l"(*a), "=l"(*b)
			     : "l"(p)
			     : "memory");
}

GDK_FN void gdk_st64x2(uint64_t *p, uint64_t a, uint64_t b, int scope)
{
	if (scope == GDK_SCOPE_THREAD)
		asm volatile("st.weak.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b)
			     : "memory");
	else
		asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b)
			     : "memory");
}

/* gdk_rmw functions, as those that load and store, accept addresses in global memory only. gdk_any
 * functions also accept addresses in shared memory; with an atomic operation, the thread then waits
 * for the result even if it is unused. */
#define GDK_PTX_ADD_ANY(s) "relaxed" s ".add"
#define GDK_PTX_MAX_ANY(s) "relaxed" s ".max"
#define GDK_PTX_ADD(s)	   "relaxed" s ".global.add"
#define GDK_PTX_ADD_AR(s)  "acq_rel" s ".add"
#define GDK_PTX_MAX(s)	   "relaxed" s ".global.max"
#define GDK_PTX_MAX_REL(s) "release" s ".global.max"
#define GDK_PTX_MIN(s)	   "relaxed" s ".global.min"
#define GDK_PTX_OR(s)	   "relaxed" s ".global.or"
#define GDK_PTX_AND(s)	   "relaxed" s ".global.and"
#define GDK_PTX_XCHG(s)	   "acq_rel" s ".global.exch"
GDK_DEF_RMW(gdk_any_add32_acq_rel, GDK_PTX_ADD_AR, uint32_t, ".u32", "=r", "r")
GDK_DEF_RMW(gdk_any_add64, GDK_PTX_ADD_ANY, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_any_max64, GDK_PTX_MAX_ANY, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_add64, GDK_PTX_ADD, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_max64, GDK_PTX_MAX, uint64_t, ".u64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_or64, GDK_PTX_OR, uint64_t, ".b64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_and64, GDK_PTX_AND, uint64_t, ".b64", "=l", "l")
GDK_DEF_RMW(gdk_rmw_xchg32, GDK_PTX_XCHG, uint32_t, ".b32", "=r", "r")

/* Read-modify-write without a result. The thread does not wait for it. */
#define GDK_DEF_RED(name, insn, ty) \
	GDK_FN void name(uint64_t *p, uint64_t v, int scope) \
	{ \
		if (scope <= GDK_SCOPE_CTA) \
			asm volatile("red." insn(".cta") ty " [%0], %1;" ::"l"(p), "l"(v) \
				     : "memory"); \
		else if (scope == GDK_SCOPE_GPU) \
			asm volatile("red." insn(".gpu") ty " [%0], %1;" ::"l"(p), "l"(v) \
				     : "memory"); \
		else \
			asm volatile("red." insn(".sys") ty " [%0], %1;" ::"l"(p), "l"(v) \
				     : "memory"); \
	}
GDK_DEF_RED(gdk_red_add64, GDK_PTX_ADD, ".u64")
GDK_DEF_RED(gdk_red_max64, GDK_PTX_MAX, ".u64")
GDK_DEF_RED(gdk_red_max64_rel, GDK_PTX_MAX_REL, ".u64")
GDK_DEF_RED(gdk_red_min64, GDK_PTX_MIN, ".u64")
GDK_DEF_RED(gdk_red_or64, GDK_PTX_OR, ".b64")
GDK_DEF_RED(gdk_red_and64, GDK_PTX_AND, ".b64")

/* Adds 1. The 1 is computed from the lane number, so that the compiler does not know that it is a
 * constant. With a constant, the compiler would add instructions that first sum the increments of
 * the warp. */
GDK_FN void gdk_red_inc64(uint64_t *p, int scope)
{
	uint32_t lane;

	asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
	gdk_red_add64(p, (uint64_t)__popc(1 << lane), scope);
}

#define GDK_DEF_CAS(name, space, T, ty, rcon, con) \
	GDK_FN T name(T *p, T expect, T v, int scope) \
	{ \
		T old; \
		if (scope <= GDK_SCOPE_CTA) \
			asm volatile("atom.acq_rel.cta" space ".cas" ty " %0, [%1], %2, %3;" \
				     : rcon(old) \
				     : "l"(p), con(expect), con(v) \
				     : "memory"); \
		else if (scope == GDK_SCOPE_GPU) \
			asm volatile("atom.acq_rel.gpu" space ".cas" ty " %0, [%1], %2, %3;" \
				     : rcon(old) \
				     : "l"(p), con(expect), con(v) \
				     : "memory"); \
		else \
			asm volatile("atom.acq_rel.sys" space ".cas" ty " %0, [%1], %2, %3;" \
				     : rcon(old) \
				     : "l"(p), con(expect), con(v) \
				     : "memory"); \
		return old; \
	}
GDK_DEF_CAS(gdk_rmw_cas32, ".global", uint32_t, ".b32", "=r", "r")
GDK_DEF_CAS(gdk_any_cas32, "", uint32_t, ".b32", "=r", "r")
GDK_DEF_CAS(gdk_any_cas64, "", uint64_t, ".b64", "=l", "l")

/* fence.acquire and fence.release exist since PTX 8.6 and sm_90. Older targets use acq_rel. */
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208 && \
	(!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
#define GDK_PTX_FENCE_ACQ "fence.acquire"
#define GDK_PTX_FENCE_REL "fence.release"
#else
#define GDK_PTX_FENCE_ACQ "fence.acq_rel"
#define GDK_PTX_FENCE_REL "fence.acq_rel"
#endif
#define GDK_DEF_FENCE(name, insn) \
	GDK_FN void name(int scope) \
	{ \
		if (scope == GDK_SCOPE_CTA) \
			asm volatile(insn ".cta;" ::: "memory"); \
		else if (scope == GDK_SCOPE_GPU) \
			asm volatile(insn ".gpu;" ::: "memory"); \
		else if (scope == GDK_SCOPE_SYS) \
			asm volatile(insn ".sys;" ::: "memory"); \
	}
GDK_DEF_FENCE(gdk_fence_acq, GDK_PTX_FENCE_ACQ)
GDK_DEF_FENCE(gdk_fence_rel, GDK_PTX_FENCE_REL)
GDK_DEF_FENCE(gdk_fence_acq_rel, "fence.acq_rel")
GDK_DEF_FENCE(gdk_fence_sc, "fence.sc")

/* Orders earlier loads, whose values decided a branch, before later stores. The GPU issues a store
 * only after the branch is decided, so a compiler barrier is enough. A real acquire fence would
 * also invalidate the first-level cache. */
GDK_FN void gdk_fence_load_store(int scope)
{
	(void)scope;
	asm volatile("" ::: "memory");
}

GDK_FN uint8_t gdk_ld8_sys(const uint8_t *p)
{
	uint16_t v;

	asm volatile("ld.relaxed.sys.b8 %0, [%1];" : "=h"(v) : "l"(p) : "memory");
	return (uint8_t)v;
}

/* Loads of values in global memory that no kernel changes. volatile keeps the compiler from moving
 * a load before the check that the QP pointer is valid. Read-only loads (ld.global.nc) would be
 * slower: they miss the first-level cache while a store to the same line is in flight
 * (+110 ns). */
#define GDK_DEF_LOAD_CONST(name, T, ty, con) \
	GDK_FN T name(const void *p) \
	{ \
		T v; \
		asm volatile("ld.weak.global." ty " %0, [%1];" : con(v) : "l"(p)); \
		return v; \
	}
GDK_DEF_LOAD_CONST(gdk_ldc16, uint16_t, "u16", "=h")
GDK_DEF_LOAD_CONST(gdk_ldc32, uint32_t, "b32", "=r")
GDK_DEF_LOAD_CONST(gdk_ldc64, uint64_t, "b64", "=l")

/* Loads the address of the state block, which never changes. The compiler may load it once for
 * several operations, rather than again after a wait, whose fence makes loads miss the first-level
 * cache (H200: a put and a wait that finds its CQE take 1.17 us instead of 1.31). It must be a load
 * that the compiler knows as such: it moves inline assembly that is not volatile before the check
 * that the QP pointer is valid. */
GDK_FN uint64_t gdk_ld_state(const void *p)
{
	return __ldg((const unsigned long long *)p);
}

/* Stores 16 aligned bytes of a WQE with a streaming hint, because only the NIC reads them. */
GDK_FN void gdk_st_wqe16(void *p, uint64_t lo, uint64_t hi)
{
	asm volatile("st.weak.cs.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(lo), "l"(hi) : "memory");
}

GDK_FN uint16_t gdk_bswap16(uint16_t x)
{
	return (uint16_t)(x << 8 | x >> 8);
}
GDK_FN uint32_t gdk_bswap32(uint32_t x)
{
	return __byte_perm(x, 0, 0x0123);
}
/* Byte swap of (uint16_t)x, and of (uint16_t)x << 8 | low with low < 256. */
GDK_FN uint32_t gdk_bswap32_16(uint32_t x)
{
	return __byte_perm(x, 0, 0x0144);
}
GDK_FN uint32_t gdk_bswap32_24(uint32_t x, uint32_t low)
{
	return __byte_perm(x, 0, 0x4015) | low << 24;
}
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

/* Release stores at system scope, to memory and to the doorbell register. Where the GPU has
 * asynchronous stores, the thread does not wait for earlier accesses to complete. */
GDK_FN void gdk_st32_async(uint32_t *p, uint32_t v)
{
#ifdef DOCA_GPUNETIO_VERBS_HAS_ASYNC_STORE_RELEASE
	asm volatile("st.async.release.sys.global.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#else
	gdk_st32_rel(p, v, GDK_SCOPE_SYS);
#endif
}

GDK_FN void gdk_mmio_st64_async(uint64_t *p, uint64_t v)
{
#ifdef DOCA_GPUNETIO_VERBS_HAS_ASYNC_STORE_RELEASE
	asm volatile("st.async.mmio.release.sys.global.b64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#else
	gdk_fence_rel(GDK_SCOPE_SYS);
	gdk_mmio_st64(p, v);
#endif
}

/* Returns whether src can be copied to the register in one write of 64 bytes: it must be in shared
 * memory, on a GPU with bulk copies. */
GDK_FN int gdk_bf_in_one(const void *src)
{
#ifdef DOCA_GPUNETIO_VERBS_HAS_TMA_COPY
	return __isShared(src);
#else
	(void)src;
	return 0;
#endif
}

/* Returns the source for gdk_bf_bulk64(). Shared memory is never the ring, so no copy is needed. */
GDK_FN const void *gdk_bf_source(const void *src, uint64_t *w)
{
	(void)w;
	return src;
}

/* Copies 64 bytes from shared memory to the register. On return the source has been read, so the
 * caller may reuse it. Call it only if gdk_bf_in_one() returns 1. */
GDK_FN void gdk_bf_bulk64(uint64_t *dst, const void *src)
{
#ifdef DOCA_GPUNETIO_VERBS_HAS_TMA_COPY
	/* Orders this thread's stores to shared memory before the reads of the bulk copy. */
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" ::"l"(dst),
		     "r"((uint32_t)__cvta_generic_to_shared(src))
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
	asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#else
	(void)dst, (void)src;
#endif
}

/* Waits until the copies of this thread are written, so that a later doorbell cannot overtake
 * them on the same register. */
GDK_FN void gdk_bf_settle(void)
{
#ifdef DOCA_GPUNETIO_VERBS_HAS_TMA_COPY
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

GDK_FN uint32_t gdk_lane(void)
{
	uint32_t lane;

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

/* Load 64 bytes from src, and store them to the register, by a warp: each of eight lanes has one
 * word, and the stores form one burst. */
GDK_FN void gdk_bf_ld64_warp(uint64_t *w, const void *src)
{
	if (gdk_lane() < 8)
		w[0] = gdk_any_ld64((const uint64_t *)src + gdk_lane(), GDK_SCOPE_GPU);
}

GDK_FN void gdk_bf_st64_warp(uint64_t *dst, const uint64_t *w)
{
	__syncwarp();
	if (gdk_lane() < 8)
		gdk_st64(dst + gdk_lane(), w[0], GDK_SCOPE_THREAD);
	__syncwarp();
}

GDK_FN uint32_t gdk_warp_size(void)
{
	return GDK_WARP;
}
GDK_FN uint32_t gdk_warp_mask(void)
{
	return 0xffffffffu;
}
GDK_FN void gdk_syncwarp(void)
{
	__syncwarp();
}
GDK_FN void gdk_syncwarp_mask(uint32_t mask)
{
	__syncwarp(mask);
}
GDK_FN uint32_t gdk_ballot(int pred)
{
	return __ballot_sync(0xffffffffu, pred);
}
GDK_FN uint32_t gdk_ballot_mask(uint32_t mask, int pred)
{
	return __ballot_sync(mask, pred);
}
GDK_FN uint32_t gdk_activemask(void)
{
	return __activemask();
}
/* Returns the lanes of mask that call this with the same v. */
GDK_FN uint32_t gdk_match64(uint32_t mask, uint64_t v)
{
	return __match_any_sync(mask, (unsigned long long)v);
}
GDK_FN uint32_t gdk_popc32(uint32_t v)
{
	return (uint32_t)__popc((int)v);
}
/* Position of the lowest set bit. v must not be 0. */
GDK_FN uint32_t gdk_ctz32(uint32_t v)
{
	return (uint32_t)__ffs((int)v) - 1;
}
GDK_FN uint64_t gdk_shfl64(uint64_t v, uint32_t lane)
{
	return __shfl_sync(0xffffffffu, (unsigned long long)v, (int)lane);
}
GDK_FN uint64_t gdk_shfl64m(uint32_t mask, uint64_t v, uint32_t lane)
{
	return __shfl_sync(mask, (unsigned long long)v, (int)lane);
}

GDK_FN uint32_t gdk_shfl32m(uint32_t mask, uint32_t v, uint32_t lane)
{
	return __shfl_sync(mask, v, (int)lane);
}

/* Thread block: linear rank, size, barriers, and broadcast of the value of rank 0. */
GDK_FN uint32_t gdk_block_rank(void)
{
	return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
GDK_FN uint32_t gdk_block_size(void)
{
	return blockDim.x * blockDim.y * blockDim.z;
}
GDK_FN void gdk_block_sync(void)
{
	__syncthreads();
}
GDK_FN int gdk_block_any(int pred)
{
	return __syncthreads_or(pred);
}
GDK_FN uint64_t gdk_block_bcast64(uint64_t v)
{
	__shared__ uint64_t word;

	__syncthreads(); /* all threads have read the value of the previous broadcast */
	if (gdk_block_rank() == 0)
		word = v;
	__syncthreads();
	return word;
}

/* The least value of the first `lanes` lanes of a warp, all of which call it. GPUs before sm_80
 * have no instruction for it. */
GDK_FN uint32_t gdk_lanes_min32(uint32_t v, uint32_t lanes)
{
	const uint32_t mask = 0xffffffffu >> (GDK_WARP - lanes);
#if __CUDA_ARCH__ >= 800
	return __reduce_min_sync(mask, v);
#else
	uint32_t other, distance;

	/* The value of a lane that does not exist is undefined. */
	for (distance = GDK_WARP / 2; distance; distance /= 2) {
		other = __shfl_down_sync(mask, v, distance);
		if (gdk_lane() + distance < lanes && other < v)
			v = other;
	}
	return __shfl_sync(mask, v, 0);
#endif
}

/* The least value of a whole warp, or of a block. All their threads call it. */
GDK_FN uint32_t gdk_warp_min32(uint32_t v)
{
	return gdk_lanes_min32(v, GDK_WARP);
}
GDK_FN uint32_t gdk_block_min32(uint32_t v)
{
	__shared__ uint32_t least[32];
	const uint32_t rank = gdk_block_rank(), size = gdk_block_size(), lane = rank % GDK_WARP;
	const uint32_t left = size - (rank - lane), lanes = left < GDK_WARP ? left : GDK_WARP;
	uint32_t i;

	v = gdk_lanes_min32(v, lanes);
	__syncthreads(); /* all threads have read the values of the previous call */
	if (lane == 0)
		least[rank / GDK_WARP] = v;
	__syncthreads();
	/* A last warp may have fewer lanes than the block has warps. */
	v = 0xffffffffu;
	GDK_LOOP
	for (i = lane; i < (size + GDK_WARP - 1) / GDK_WARP; i += lanes)
		v = least[i] < v ? least[i] : v;
	return gdk_lanes_min32(v, lanes);
}

GDK_FN uint64_t gdk_now_ns(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}
GDK_FN void gdk_relax(uint32_t spins)
{
	(void)spins;
}
/* Sleeps for at most 2 * ns. Other lanes of the warp can run meanwhile if they diverged. */
GDK_FN void gdk_pause_ns(uint32_t ns)
{
	asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory");
}

#endif
#endif
