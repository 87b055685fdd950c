/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Pools: buffers of equal size in one mmap. Return values and threads: see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_BUF_POOL_H
#define GDK_SDK_DOCA_BUF_POOL_H

#include "doca_buf.h"
#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf_pool; /* a pool */

/**
 * Creates a pool. Destroy it with doca_buf_pool_destroy().
 *
 * @param num_elements buffers of the pool
 * @param element_size bytes of a buffer
 * @param mmap memory of the buffers, from its start on. It cannot be destroyed before the pool.
 * @param buf_pool gets the pool
 * @retval DOCA_ERROR_TOO_BIG the mmap is too small
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_buf_pool_create(size_t num_elements, size_t element_size, struct doca_mmap *mmap,
				  struct doca_buf_pool **buf_pool);

/**
 * Destroys a pool.
 *
 * @retval DOCA_ERROR_IN_USE a buffer is not freed
 */
doca_error_t doca_buf_pool_destroy(struct doca_buf_pool *buf_pool);

/**
 * Starts a pool.
 *
 * @retval DOCA_ERROR_BAD_STATE the pool is started already, or its mmap is not started
 */
doca_error_t doca_buf_pool_start(struct doca_buf_pool *buf_pool);

/**
 * Stops a pool.
 *
 * @retval DOCA_ERROR_BAD_STATE the pool is not started
 * @retval DOCA_ERROR_IN_USE a buffer is not freed
 */
doca_error_t doca_buf_pool_stop(struct doca_buf_pool *buf_pool);

/**
 * Returns a buffer without data. It has one reference; free it with doca_buf_dec_refcount().
 *
 * @param buf gets the buffer
 * @retval DOCA_ERROR_BAD_STATE the pool is not started
 * @retval DOCA_ERROR_NO_MEMORY all buffers of the pool are in use
 */
doca_error_t doca_buf_pool_buf_alloc(struct doca_buf_pool *buf_pool, struct doca_buf **buf);

#ifdef __cplusplus
}
#endif

#endif
