/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Semaphores on the device. Programs include doca_gpunetio_dev_sem.cuh; code on CPU threads may
 * include this file.
 *
 * All functions return INVALID_VALUE if the semaphore has no item of that index.
 */
#ifndef GDK_SDK_SEMAPHORE_DEV_H
#define GDK_SDK_SEMAPHORE_DEV_H

#include "device/gdk/platform.h"
#include "gdk_sdk_semaphore.h"

/** An item. */
struct gdk_sdk_semaphore_item {
	uint32_t status;      /**< of enum doca_gpu_semaphore_status */
	uint32_t num_packets; /**< number of packets */
	uint64_t buf_idx;     /**< index of the buffer of the first packet */
};

/** A semaphore, as kernels use it. The struct does not change while it is started. */
struct doca_gpu_semaphore_gpu {
	struct gdk_sdk_semaphore_item *items; /**< GPU address of the items */
	uint8_t *info;			      /**< GPU address of the information, or NULL */
	uint32_t num;			      /**< number of items */
	uint32_t info_stride;		      /**< bytes from one item's information to the next */
};

/** Reads the status of an item. */
GDK_FN doca_error_t
doca_gpu_dev_semaphore_get_status(const struct doca_gpu_semaphore_gpu *semaphore_gpu, uint32_t idx,
				  enum doca_gpu_semaphore_status *status)
{
	if (idx >= semaphore_gpu->num)
		return DOCA_ERROR_INVALID_VALUE;
	/* Acquire: pairs with the release of the thread that set the status. What it wrote before
	 * is then visible. */
	*status = (enum doca_gpu_semaphore_status)gdk_ld32_acq(&semaphore_gpu->items[idx].status,
							       GDK_SCOPE_SYS);
	return DOCA_SUCCESS;
}

/** Sets the status of an item. What the thread wrote before is visible to those who read it. */
GDK_FN doca_error_t
doca_gpu_dev_semaphore_set_status(const struct doca_gpu_semaphore_gpu *semaphore_gpu, uint32_t idx,
				  enum doca_gpu_semaphore_status status)
{
	if (idx >= semaphore_gpu->num)
		return DOCA_ERROR_INVALID_VALUE;
	/* Release: pairs with the acquire in doca_gpu_dev_semaphore_get_status(). */
	gdk_st32_rel(&semaphore_gpu->items[idx].status, (uint32_t)status, GDK_SCOPE_SYS);
	return DOCA_SUCCESS;
}

/** Stores a description of packets in an item, then sets its status. */
GDK_FN doca_error_t doca_gpu_dev_semaphore_set_packet_info(
	const struct doca_gpu_semaphore_gpu *semaphore_gpu, uint32_t idx,
	enum doca_gpu_semaphore_status status, uint32_t num_packets, uint64_t buf_idx)
{
	if (idx >= semaphore_gpu->num)
		return DOCA_ERROR_INVALID_VALUE;
	gdk_st32(&semaphore_gpu->items[idx].num_packets, num_packets, GDK_SCOPE_SYS);
	gdk_st64(&semaphore_gpu->items[idx].buf_idx, buf_idx, GDK_SCOPE_SYS);
	return doca_gpu_dev_semaphore_set_status(semaphore_gpu, idx, status);
}

/** Reads the description of packets if the item has this status; NOT_FOUND if it has another. */
GDK_FN doca_error_t doca_gpu_dev_semaphore_get_packet_info_status(
	const struct doca_gpu_semaphore_gpu *semaphore_gpu, uint32_t idx,
	enum doca_gpu_semaphore_status status, uint32_t *num_packets, uint64_t *buf_idx)
{
	enum doca_gpu_semaphore_status now;

	if (doca_gpu_dev_semaphore_get_status(semaphore_gpu, idx, &now))
		return DOCA_ERROR_INVALID_VALUE;
	if (now != status)
		return DOCA_ERROR_NOT_FOUND;
	*num_packets = gdk_ld32(&semaphore_gpu->items[idx].num_packets, GDK_SCOPE_SYS);
	*buf_idx = gdk_ld64(&semaphore_gpu->items[idx].buf_idx, GDK_SCOPE_SYS);
	return DOCA_SUCCESS;
}

/** Returns the address of the information of an item. NOT_SUPPORTED: the items have none. */
GDK_FN doca_error_t doca_gpu_dev_semaphore_get_custom_info_addr(
	const struct doca_gpu_semaphore_gpu *semaphore_gpu, uint32_t idx, void **custom_info)
{
	if (idx >= semaphore_gpu->num)
		return DOCA_ERROR_INVALID_VALUE;
	if (!semaphore_gpu->info)
		return DOCA_ERROR_NOT_SUPPORTED;
	*custom_info = semaphore_gpu->info + (uint64_t)idx * semaphore_gpu->info_stride;
	return DOCA_SUCCESS;
}

#endif
