/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * What the functions of receive and send queues share in kernels. Programs include
 * doca_gpunetio_dev_eth_rxq.cuh or doca_gpunetio_dev_eth_txq.cuh.
 */
#ifndef GDK_SDK_ETH_DEV_CUH
#define GDK_SDK_ETH_DEV_CUH

#include "device/gdk/platform.h"
#include "doca_gpunetio_eth_def.h"
#include "host/doca_error.h"
#include "gdk_sdk_shape.h"

/* The doca_error_t of a status. */
GDK_FN doca_error_t gdk_eth_error(int status)
{
	switch (status) {
	case 0:
		return DOCA_SUCCESS;
	case -ECANCELED:
		return DOCA_ERROR_CONNECTION_ABORTED;
	case -ETIMEDOUT:
	case -EHOSTDOWN:
		return DOCA_ERROR_TIME_OUT;
	case -EOPNOTSUPP:
		return DOCA_ERROR_NOT_SUPPORTED;
	case -EINVAL:
		return DOCA_ERROR_INVALID_VALUE;
	case EBUSY:
		return DOCA_ERROR_AGAIN;
	default:
		return DOCA_ERROR_IO_FAILED;
	}
}

/* Store results, which may be in shared memory and the same for all threads of a group. */
GDK_FN void gdk_eth_out64(uint64_t *p, uint64_t v)
{
	gdk_any_st64(p, v, GDK_SCOPE_CTA);
}

GDK_FN void gdk_eth_out32(uint32_t *p, uint32_t v)
{
	gdk_any_st32_rel(p, v, GDK_SCOPE_CTA);
}

/** Returns the number of the calling thread in its warp. */
GDK_FN uint32_t doca_gpu_dev_eth_get_lane_id(void)
{
	return gdk_lane();
}

/* The scope of a sharing mode, or of a fence. */
GDK_FN int gdk_eth_scope(enum doca_gpu_dev_eth_sync_scope scope)
{
	return scope == DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA   ? GDK_SCOPE_CTA
	       : scope == DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU ? GDK_SCOPE_GPU
							   : GDK_SCOPE_SYS;
}

/** Orders the stores of this thread before its later stores, for observers of the scope. */
template <enum doca_gpu_dev_eth_sync_scope scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_SYS>
GDK_FN void doca_gpu_dev_eth_fence_release(void)
{
	gdk_fence_rel(gdk_eth_scope(scope));
}

/** Reads a counter of 64 bits that other threads of the sharing mode change. */
template <typename T, enum doca_gpu_dev_eth_resource_sharing_mode mode>
GDK_FN T doca_gpu_dev_eth_atomic_read(T *ptr)
{
	static_assert(sizeof(T) == 8, "a counter has 64 bits");
	return (T)gdk_any_ld64((const uint64_t *)ptr,
			       gdk_mode_scope((enum doca_gpu_dev_verbs_resource_sharing_mode)mode));
}

/** Adds to a counter of 64 bits, and returns its value before. */
template <typename T, enum doca_gpu_dev_eth_resource_sharing_mode mode>
GDK_FN T doca_gpu_dev_eth_atomic_add(T *ptr, T value)
{
	static_assert(sizeof(T) == 8, "a counter has 64 bits");
	return (T)gdk_any_add64(
		(uint64_t *)ptr, (uint64_t)value,
		gdk_mode_scope((enum doca_gpu_dev_verbs_resource_sharing_mode)mode));
}
#endif
