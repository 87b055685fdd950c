/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * All that differs between CUDA and a CPU in the device data path: loads, stores and
 * atomics by scope, fences, byte order, warps, stores to the doorbell register, time. No
 * other file of the data path tests for a compiler or has inline assembly.
 *
 * Functions whose name ends in _acq, _rel or _acq_rel order memory as in C11, at the given
 * scope. Exchange and compare-and-swap acquire and release, too, and the _async stores release.
 * Callers must not expect an order from the other accesses: the data path orders them with
 * fences. ThreadSanitizer does not understand fences, so under it the relaxed loads acquire and
 * the relaxed stores release. Scope THREAD is for memory that only one thread accesses; the
 * access may then be a plain one.
 */
#ifndef GDK_PLATFORM_H
#define GDK_PLATFORM_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "common/doca_gpunetio_verbs_dev.h"
#include "device/gdk/platform_fn.h"
#include "device/gdk/state.h"

#ifdef __CUDACC__
#include "device/gdk/platform_cuda.h"
#else
#include "device/gdk/platform_cpu.h"
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
GDK_FN void gdk_red_or64(uint64_t *p, uint64_t v, int scope)
{
	(void)gdk_rmw_or64(p, v, scope);
}
GDK_FN void gdk_red_and64(uint64_t *p, uint64_t v, int scope)
{
	(void)gdk_rmw_and64(p, v, scope);
}
#endif

/*
 * A memory key in the byte order of WQEs, big-endian. It is a type of its own, so that the
 * compiler rejects the key of struct ibv_mr, which has the byte order of the CPU.
 */
typedef struct {
	__be32 be;
} gdk_key_t;

/* Converts an lkey or rkey from the byte order of the CPU, as in struct ibv_mr, to big-endian. */
GDK_FN gdk_key_t gdk_key(uint32_t key)
{
	const gdk_key_t k = { gdk_bswap32(key) };

	return k;
}

/* Wraps a key that is big-endian already. */
GDK_FN gdk_key_t gdk_key_be(__be32 key)
{
	const gdk_key_t k = { key };

	return k;
}

/* Converts a key in the byte order that DOCA's functions and structs take. DOCA selects it
 * with DOCA_GPUNETIO_VERBS_MKEY_SWAPPED. */
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

GDK_FN uint64_t gdk_pack(uint32_t lo, uint32_t hi)
{
	return (uint64_t)hi << 32 | lo;
}

/* Copies any number of bytes at any alignment, in the widest steps (8, 4 or 1 bytes) that both
 * addresses allow. */
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

/* Addresses of fields in the packed device structs. GPU threads change only two of the fields:
 * sq_rsvd_index, and cqe_ci of the CQ. */
#define GDK_QP_AT(qp, field) ((const char *)(qp) + offsetof(struct doca_gpu_dev_verbs_qp, field))
#define GDK_CQ_AT(cq, field) ((const char *)(cq) + offsetof(struct doca_gpu_dev_verbs_cq, field))

/* Returns the scope that contains all threads that share a queue in this mode. */
GDK_FN int gdk_mode_scope(enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	if (mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		return GDK_SCOPE_THREAD;
	return mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA ? GDK_SCOPE_CTA
								     : GDK_SCOPE_GPU;
}

/* Read-modify-write at a scope: gdk_add64 adds v, gdk_max64 raises the word to v. Both return the
 * old value. At scope THREAD they are a load and a store. */
GDK_FN uint64_t gdk_add64(uint64_t *p, uint64_t v, int scope)
{
	uint64_t old;

	if (scope != GDK_SCOPE_THREAD)
		return gdk_rmw_add64(p, v, scope);
	old = gdk_any_ld64(p, scope);
	gdk_any_st64(p, old + v, scope);
	return old;
}

GDK_FN uint64_t gdk_max64(uint64_t *p, uint64_t v, int scope)
{
	uint64_t old;

	if (scope != GDK_SCOPE_THREAD)
		return gdk_rmw_max64(p, v, scope);
	old = gdk_any_ld64(p, scope);
	if (v > old)
		gdk_any_st64(p, v, scope);
	return old;
}

/* As gdk_max64, but a release: orders the caller's earlier accesses before the new value. Pairs
 * with the acquire of the thread that loads this value. */
GDK_FN void gdk_max64_rel(uint64_t *p, uint64_t v, int scope)
{
	if (scope != GDK_SCOPE_THREAD)
		gdk_red_max64_rel(p, v, scope);
	else
		(void)gdk_max64(p, v, scope);
}

/* Spin lock for the threads of a sharing mode. Exclusive use needs no lock. The
 * compare-and-swap acquires; it pairs with the release in gdk_unlock(). */
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
		gdk_any_st32_rel((uint32_t *)lock, 0, gdk_mode_scope(mode));
}

#endif
