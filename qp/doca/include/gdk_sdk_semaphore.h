/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Semaphores between CPU and GPU, or between kernels. A part of doca_gpunetio.h, which programs
 * include. Return values and threads: see doca_error.h.
 *
 * A semaphore has items. Each has a status, a description of received packets, and memory for
 * information of the program. A side writes the information, then sets the status; the side that
 * reads the status then also sees the information.
 */
#ifndef GDK_SDK_SEMAPHORE_H
#define GDK_SDK_SEMAPHORE_H

#include "doca_types.h"
#include "host/gdk_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_gpu_semaphore;     /* a semaphore */
struct doca_gpu_semaphore_gpu; /* a semaphore, in memory of the GPU */

/** Status of an item. Each side decides what the values mean; new items are FREE. */
enum doca_gpu_semaphore_status {
	DOCA_GPU_SEMAPHORE_STATUS_FREE = 0,  /**< may be filled */
	DOCA_GPU_SEMAPHORE_STATUS_READY = 1, /**< filled */
	DOCA_GPU_SEMAPHORE_STATUS_DONE = 2,  /**< read */
	DOCA_GPU_SEMAPHORE_STATUS_ERROR = 3, /**< failed */
};

/**
 * Creates a semaphore. Destroy it with doca_gpu_semaphore_destroy().
 *
 * @param gpu_dev GPU whose kernels use the semaphore. It cannot be closed while it is started.
 * @param semaphore gets the semaphore
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_gpu_semaphore_create(struct doca_gpu *gpu_dev,
				       struct doca_gpu_semaphore **semaphore);

/** Stops a semaphore if it is started, and destroys it. No kernel may use it any more. */
doca_error_t doca_gpu_semaphore_destroy(struct doca_gpu_semaphore *semaphore);

/**
 * Sets where the items are, at first GPU. The side that polls should be near.
 *
 * @retval DOCA_ERROR_BAD_STATE the semaphore is started
 */
doca_error_t doca_gpu_semaphore_set_memory_type(struct doca_gpu_semaphore *semaphore,
						enum doca_gpu_mem_type mtype);

/**
 * Sets the number of items.
 *
 * @retval DOCA_ERROR_BAD_STATE the semaphore is started
 */
doca_error_t doca_gpu_semaphore_set_items_num(struct doca_gpu_semaphore *semaphore,
					      uint32_t num_items);

/**
 * Sets how much information each item has, at first none. It is aligned to 16 bytes, and cleared
 * when the semaphore is started.
 *
 * @param nbytes bytes of one item
 * @param mtype where the information is
 * @retval DOCA_ERROR_BAD_STATE the semaphore is started
 */
doca_error_t doca_gpu_semaphore_set_custom_info(struct doca_gpu_semaphore *semaphore,
						uint32_t nbytes, enum doca_gpu_mem_type mtype);

/**
 * Allocates the items, which are FREE.
 *
 * @retval DOCA_ERROR_BAD_STATE the semaphore is started, or has no number of items
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_NOT_SUPPORTED kind GPU_CPU, and GDRCopy is not available
 * @retval DOCA_ERROR_DRIVER a CUDA call failed
 */
doca_error_t doca_gpu_semaphore_start(struct doca_gpu_semaphore *semaphore);

/**
 * Frees the items. No kernel may use the semaphore any more.
 *
 * @retval DOCA_ERROR_BAD_STATE the semaphore is not started
 */
doca_error_t doca_gpu_semaphore_stop(struct doca_gpu_semaphore *semaphore);

/**
 * Returns the semaphore for kernels (doca_gpunetio_dev_sem.cuh), which exists until it is stopped.
 *
 * @param semaphore_gpu gets a GPU address
 * @retval DOCA_ERROR_BAD_STATE the semaphore is not started
 */
doca_error_t doca_gpu_semaphore_get_gpu_handle(struct doca_gpu_semaphore *semaphore,
					       struct doca_gpu_semaphore_gpu **semaphore_gpu);

/**
 * Reads the status of an item. For items in memory of kind GPU this is a copy by the CUDA driver,
 * which takes microseconds.
 *
 * @param idx index of the item
 * @param status gets the status
 * @retval DOCA_ERROR_BAD_STATE the semaphore is not started
 * @retval DOCA_ERROR_DRIVER a CUDA call failed
 */
doca_error_t doca_gpu_semaphore_get_status(struct doca_gpu_semaphore *semaphore, uint32_t idx,
					   enum doca_gpu_semaphore_status *status);

/**
 * Sets the status of an item; see doca_gpu_semaphore_get_status().
 *
 * @param idx index of the item
 * @param status the new status
 * @retval DOCA_ERROR_BAD_STATE the semaphore is not started
 * @retval DOCA_ERROR_DRIVER a CUDA call failed
 */
doca_error_t doca_gpu_semaphore_set_status(struct doca_gpu_semaphore *semaphore, uint32_t idx,
					   enum doca_gpu_semaphore_status status);

/**
 * Returns the CPU address of the information of an item.
 *
 * @param idx index of the item
 * @param custom_info gets the address
 * @retval DOCA_ERROR_BAD_STATE the semaphore is not started
 * @retval DOCA_ERROR_NOT_SUPPORTED the items have no information, or the CPU cannot access it
 */
doca_error_t doca_gpu_semaphore_get_custom_info_addr(struct doca_gpu_semaphore *semaphore,
						     uint32_t idx, void **custom_info);

#ifdef __cplusplus
}
#endif

#endif
