/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Inventories: buffers for any part of any mmap. Return values and threads: see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_BUF_INVENTORY_H
#define GDK_SDK_DOCA_BUF_INVENTORY_H

#include "doca_buf.h"
#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf_inventory; /* an inventory */

/**
 * Creates an inventory. Destroy it with doca_buf_inventory_destroy().
 *
 * @param num_elements most buffers at a time
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_buf_inventory_create(size_t num_elements,
				       struct doca_buf_inventory **buf_inventory);

/**
 * Destroys an inventory.
 *
 * @retval DOCA_ERROR_IN_USE a buffer is not freed
 */
doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *buf_inventory);

/**
 * Starts an inventory.
 *
 * @retval DOCA_ERROR_BAD_STATE it is started already
 */
doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *buf_inventory);

/**
 * Returns a buffer without data. It has one reference; free it with doca_buf_dec_refcount().
 *
 * @param mmap started mmap that contains the buffer
 * @param addr start of the buffer and of its data
 * @param len bytes of the buffer
 * @param buf gets the buffer
 * @retval DOCA_ERROR_BAD_STATE inventory or mmap is not started
 * @retval DOCA_ERROR_NO_MEMORY all buffers of the inventory are in use
 */
doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *buf_inventory,
						struct doca_mmap *mmap, void *addr, size_t len,
						struct doca_buf **buf);

/**
 * Returns a buffer that is full of data. Otherwise as doca_buf_inventory_buf_get_by_addr().
 *
 * @param mmap started mmap that contains the data
 * @param data start of the data and of the buffer
 * @param data_len bytes of the data
 * @param buf gets the buffer
 */
doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *buf_inventory,
						struct doca_mmap *mmap, void *data, size_t data_len,
						struct doca_buf **buf);

#ifdef __cplusplus
}
#endif

#endif
