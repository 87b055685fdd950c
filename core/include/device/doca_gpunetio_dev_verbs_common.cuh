/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Device API, common part: time, byte order, fences, copies, atomics, locks, loads and stores. The
 * functions have the names and signatures of DOCA GPUNetIO and call plain functions in
 * gdk/platform.h; some are templates.
 *
 * Template parameters: resource_sharing_mode selects the scope of an atomic or load: the calling
 * thread, its block, or the GPU. sync_scope selects the scope of a fence.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_COMMON_CUH
#define DOCA_GPUNETIO_DEV_VERBS_COMMON_CUH

#include <stdio.h>

#include "device/gdk/platform.h"

/** Returns a monotonic time in nanoseconds, the same for all threads of the GPU. */
GDK_FN uint64_t doca_gpu_dev_verbs_query_globaltimer()
{
	return gdk_now_ns();
}

/** Returns the lane of the calling thread in its warp, 0 to 31. */
GDK_FN unsigned int doca_gpu_dev_verbs_get_lane_id()
{
	return gdk_lane();
}

/** Swaps the bytes of 8 bytes: CPU byte order to big-endian and back. */
GDK_FN uint64_t doca_gpu_dev_verbs_bswap64(uint64_t x)
{
	return gdk_bswap64(x);
}

/** Swaps the bytes of 4 bytes: CPU byte order to big-endian and back. */
GDK_FN uint32_t doca_gpu_dev_verbs_bswap32(uint32_t x)
{
	return gdk_bswap32(x);
}

/** Swaps the bytes of 2 bytes: CPU byte order to big-endian and back. */
GDK_FN uint16_t doca_gpu_dev_verbs_bswap16(uint16_t x)
{
	return gdk_bswap16(x);
}

/** Stores 8 bytes to a doorbell register, with one store and no ordering. */
GDK_FN void doca_gpu_dev_verbs_store_relaxed_mmio(uint64_t *ptr, uint64_t val)
{
	gdk_mmio_st64(ptr, val);
}

/**
 * Stores 4 bytes at system scope after the earlier accesses of the thread (release). From sm_100
 * and CUDA 12.8 on, the store is asynchronous: the thread does not wait for those accesses.
 */
GDK_FN void doca_gpu_dev_verbs_async_store_release(uint32_t *ptr, uint32_t val)
{
	gdk_st32_async(ptr, val);
}

/**
 * Stores 8 bytes to a doorbell register after the earlier accesses of the thread (release). From
 * sm_100 and CUDA 12.8 on, the store is asynchronous.
 */
GDK_FN void doca_gpu_dev_verbs_async_store_release(uint64_t *ptr, uint64_t val)
{
	gdk_mmio_st64_async(ptr, val);
}

/** Acquire fence: later accesses of the thread are not executed before its earlier loads. */
template <enum doca_gpu_dev_verbs_sync_scope sync_scope>
GDK_FN void doca_gpu_dev_verbs_fence_acquire()
{
	/* DOCA numbers the scopes from the widest, gdk from the narrowest. */
	gdk_fence_acq(GDK_SCOPE_SYS - (int)sync_scope);
}

/**
 * Release fence: earlier accesses of the thread are visible in the scope before its later stores.
 */
template <enum doca_gpu_dev_verbs_sync_scope sync_scope>
GDK_FN void doca_gpu_dev_verbs_fence_release()
{
	gdk_fence_rel(GDK_SCOPE_SYS - (int)sync_scope);
}

/** Returns whether ptr is a multiple of alignment (bytes, a power of two). */
GDK_FN bool doca_gpu_dev_verbs_isaligned(void *ptr, size_t alignment)
{
	return ((uintptr_t)ptr & (alignment - 1)) == 0;
}

/** Copies bytes; the addresses may have any alignment. */
GDK_FN void doca_gpu_dev_verbs_memcpy_aligned_data(void *dst, void *src, size_t bytes)
{
	gdk_copy(dst, src, bytes);
}

/**
 * Copies bytes; the addresses may have any alignment. As doca_gpu_dev_verbs_memcpy_aligned_data().
 */
GDK_FN void doca_gpu_dev_verbs_memcpy_data(void *dst, void *src, size_t bytes)
{
	gdk_copy(dst, src, bytes);
}

/** Copies bytes between typed pointers; the addresses may have any alignment. */
template <typename T>
GDK_FN void doca_gpu_dev_verbs_memcpy_inl_aligned_data(T *dst, T *src, size_t bytes)
{
	gdk_copy(dst, src, bytes);
}

/* ---- atomics on integers of 4 and 8 bytes, signed or not ---- */

/** Compare-and-swap of 4 or 8 bytes. Returns the old value. */
template <typename T> GDK_FN T gdk_cas(T *ptr, T expect, T val, int scope)
{
	static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
	if (sizeof(T) == 4)
		return (T)gdk_any_cas32((uint32_t *)(void *)ptr, (uint32_t)expect, (uint32_t)val,
					scope);
	return (T)gdk_any_cas64((uint64_t *)(void *)ptr, (uint64_t)expect, (uint64_t)val, scope);
}

/** Relaxed load of 4 or 8 bytes. */
template <typename T> GDK_FN T gdk_load(const T *ptr, int scope)
{
	static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
	if (sizeof(T) == 4)
		return (T)gdk_any_ld32((const uint32_t *)(const void *)ptr, scope);
	return (T)gdk_any_ld64((const uint64_t *)(const void *)ptr, scope);
}

/**
 * Raises a word of 4 or 8 bytes to val if it is lower. Returns the old value. If need_fence_acquire
 * is true, an acquire fence follows.
 */
template <typename T, enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode,
	  bool need_fence_acquire = false>
GDK_FN T doca_gpu_dev_verbs_atomic_max(T *ptr, T val)
{
	const int scope = gdk_mode_scope(resource_sharing_mode);
	T old, seen;

	if (sizeof(T) == 8 && (T)-1 > (T)0) {
		old = scope == GDK_SCOPE_THREAD
			      ? (T)gdk_max64((uint64_t *)(void *)ptr, (uint64_t)val, scope)
			      : (T)gdk_any_max64((uint64_t *)(void *)ptr, (uint64_t)val, scope);
	} else {
		seen = gdk_load(ptr, scope);
		do {
			old = seen;
			if (val <= old)
				break;
			seen = gdk_cas(ptr, old, val, scope);
		} while (seen != old);
	}
	if (need_fence_acquire)
		gdk_fence_acq(scope);
	return old;
}

/** Adds val to a word of 4 or 8 bytes. Returns the old value. */
template <typename T, enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GDK_FN T doca_gpu_dev_verbs_atomic_add(T *ptr, T val)
{
	const int scope = gdk_mode_scope(resource_sharing_mode);

	static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
	if (sizeof(T) == 4)
		return (T)gdk_any_add32_acq_rel((uint32_t *)(void *)ptr, (uint32_t)val, scope);
	if (scope == GDK_SCOPE_THREAD)
		return (T)gdk_add64((uint64_t *)(void *)ptr, (uint64_t)val, scope);
	return (T)gdk_any_add64((uint64_t *)(void *)ptr, (uint64_t)val, scope);
}

/** Loads a word of 4 or 8 bytes with one relaxed load. */
template <typename T, enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GDK_FN T doca_gpu_dev_verbs_atomic_read(T *ptr)
{
	return gdk_load(ptr, gdk_mode_scope(resource_sharing_mode));
}

/* ---- locks, loads, stores ---- */

/**
 * Locks a spin lock, an int that the caller initializes to 0. Acquire: pairs with the release in
 * doca_gpu_dev_verbs_unlock(). In exclusive mode the function does nothing.
 */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GDK_FN void doca_gpu_dev_verbs_lock(int *lock)
{
	gdk_lock(lock, resource_sharing_mode);
}

/**
 * Unlocks a spin lock. Release: pairs with the acquire in doca_gpu_dev_verbs_lock(). In exclusive
 * mode the function does nothing.
 */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GDK_FN void doca_gpu_dev_verbs_unlock(int *lock)
{
	gdk_unlock(lock, resource_sharing_mode);
}

/** Loads 1 byte with one relaxed load at system scope. */
GDK_FN uint8_t doca_gpu_dev_verbs_load_relaxed_sys_global(uint8_t *ptr)
{
	return gdk_ld8_sys(ptr);
}

/** Loads 4 bytes with one relaxed load at system scope. */
GDK_FN uint32_t doca_gpu_dev_verbs_load_relaxed_sys_global(uint32_t *ptr)
{
	return gdk_any_ld32(ptr, GDK_SCOPE_SYS);
}

/** Loads 8 bytes with one relaxed load at system scope. */
GDK_FN uint64_t doca_gpu_dev_verbs_load_relaxed_sys_global(uint64_t *ptr)
{
	return gdk_any_ld64(ptr, GDK_SCOPE_SYS);
}

/** Loads 8 bytes with one relaxed load at the scope of the sharing mode. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GDK_FN uint64_t doca_gpu_dev_verbs_load_relaxed(uint64_t *ptr)
{
	return gdk_any_ld64(ptr, gdk_mode_scope(resource_sharing_mode));
}

/** Returns x / 2^denominator_shift, rounded up. */
GDK_FN uint64_t doca_gpu_dev_verbs_div_ceil_aligned_pow2(uint64_t x, unsigned int denominator_shift)
{
	return (x >> denominator_shift) + !!(x & ((1ull << denominator_shift) - 1));
}

/** Returns x / 2^denominator_shift, rounded up; the result must fit into 32 bits. */
GDK_FN uint32_t doca_gpu_dev_verbs_div_ceil_aligned_pow2_32bits(uint64_t x, int denominator_shift)
{
	return (uint32_t)doca_gpu_dev_verbs_div_ceil_aligned_pow2(x,
								  (unsigned int)denominator_shift);
}

#endif
