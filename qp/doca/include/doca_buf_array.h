/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Buffer arrays: parts of equal size of a mmap, for kernels of a GPU
 * (doca_gpunetio_dev_buf.cuh). Return values and threads: see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_BUF_ARRAY_H
#define GDK_SDK_DOCA_BUF_ARRAY_H

#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_gpu;
struct doca_buf_arr;	 /* a buffer array */
struct doca_gpu_buf_arr; /* a buffer array, in GPU memory */

/**
 * Creates a buffer array. Destroy it with doca_buf_arr_destroy().
 *
 * @param num_elem number of buffers
 * @param buf_arr gets the array
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **buf_arr);

/** Stops a buffer array if it is started, and destroys it. No kernel may use it any more. */
doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *buf_arr);

/**
 * Sets the memory of the buffers. Buffer i is at start_offset + i * elem_size of the mmap.
 *
 * @param mmap also a mmap of remote memory. Its key for the NIC that was added first is used.
 * @param elem_size bytes of a buffer
 * @param start_offset bytes in front of the first buffer
 * @retval DOCA_ERROR_BAD_STATE the array is started
 */
doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *buf_arr, struct doca_mmap *mmap,
				     size_t elem_size, uint64_t start_offset);

/**
 * Sets the GPU whose kernels use the array. It cannot be closed while the array is started.
 *
 * @retval DOCA_ERROR_BAD_STATE the array is started
 */
doca_error_t doca_buf_arr_set_target_gpu(struct doca_buf_arr *buf_arr, struct doca_gpu *gpu_dev);

/**
 * Writes the array to GPU memory.
 *
 * @retval DOCA_ERROR_BAD_STATE the array is started, lacks parameters or GPU, or the mmap is not
 *         started
 * @retval DOCA_ERROR_INVALID_VALUE the mmap is too small
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER a CUDA call failed
 */
doca_error_t doca_buf_arr_start(struct doca_buf_arr *buf_arr);

/**
 * Frees the GPU memory of the array. No kernel may use it any more.
 *
 * @retval DOCA_ERROR_BAD_STATE the array is not started
 */
doca_error_t doca_buf_arr_stop(struct doca_buf_arr *buf_arr);

/**
 * Returns the array for kernels, which exists until the array is stopped.
 *
 * @param gpu_buf_arr gets a GPU address
 * @retval DOCA_ERROR_BAD_STATE the array is not started
 */
doca_error_t doca_buf_arr_get_gpu_handle(const struct doca_buf_arr *buf_arr,
					 struct doca_gpu_buf_arr **gpu_buf_arr);

#ifdef __cplusplus
}
#endif

#endif
