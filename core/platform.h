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
#define GDK_SCOPE_CTA	 1
#define GDK_SCOPE_GPU	 2
#define GDK_SCOPE_SYS	 3

#ifdef __CUDACC__
#include "platform_cuda.h"
#else
#include "platform_cpu.h"
GDK_FN void gdk_red_add64(uint64_t *p, uint64_t v, int scope)
{
	(void)gdk_rmw_add64(p, v, scope);
}
GDK_FN void gdk_red_inc64(uint64_t *p, int scope)
{
	(void)gdk_rmw_add64(p, 1, scope);
}
GDK_FN void gdk_red_max64(uint64_t *p, uint64_t v, int scope)
{
	(void)gdk_rmw_max64(p, v, scope);
}
GDK_FN void gdk_red_max64_rel(uint64_t *p, uint64_t v, int scope)
{
	(void)gdk_rmw_max64_rel(p, v, scope);
}
GDK_FN void gdk_red_min64(uint64_t *p, uint64_t v, int scope)
{
	(void)gdk_rmw_min64(p, v, scope);
}
GDK_FN void gdk_red_and64(uint64_t *p, uint64_t v, int scope)
{
	(void)gdk_rmw_and64(p, v, scope);
}
#endif

/*
 * A memory key as WQEs have it, big-endian. A type of its own, so that the number
 * that libibverbs gives, which is in the CPU's order, cannot be taken for one.
 */
typedef struct {
	__be32 be;
} gdk_key_t;

/* Of an lkey or rkey as struct ibv_mr has it, or as the peer sent it as a number. */
GDK_FN gdk_key_t gdk_key(uint32_t key)
{
	const gdk_key_t k = { gdk_bswap32(key) };

	return k;
}

/* Of one that is big-endian already. */
GDK_FN gdk_key_t gdk_key_be(__be32 key)
{
	const gdk_key_t k = { key };

	return k;
}

/* Of one in the order that DOCA's functions and struct take: DOCA says which. */
GDK_FN gdk_key_t gdk_key_doca(uint32_t key)
{
	return DOCA_GPUNETIO_VERBS_MKEY_SWAPPED == 1 ? gdk_key_be(key) : gdk_key(key);
}

GDK_FN struct doca_gpu_dev_verbs_addr gdk_addr(uint64_t addr, gdk_key_t key)
{
	const struct doca_gpu_dev_verbs_addr a = {
		addr,
		DOCA_GPUNETIO_VERBS_MKEY_SWAPPED == 1 ? key.be : gdk_bswap32(key.be),
	};

	return a;
}

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
	return mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA ? GDK_SCOPE_CTA
								     : GDK_SCOPE_GPU;
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
GDK_FN void gdk_max64_rel(uint64_t *p, uint64_t v, int scope)
{
	if (scope != GDK_SCOPE_THREAD)
		gdk_red_max64_rel(p, v, scope);
	else
		(void)gdk_max64(p, v, scope);
}

/* Spin lock by sharing mode; exclusive use needs none. */
GDK_FN void gdk_lock(int *lock, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	uint32_t spins = 0;

	if (mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		return;
	while (gdk_any_cas32((uint32_t *)lock, 0, 1, gdk_mode_scope(mode)))
		gdk_relax(spins++);
}

GDK_FN void gdk_unlock(int *lock, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	if (mode != DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		gdk_st32_rel((uint32_t *)lock, 0, gdk_mode_scope(mode));
}

#endif
