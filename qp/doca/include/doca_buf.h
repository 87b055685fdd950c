/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Buffers: parts of a mmap with a position of data, from an inventory or a pool. Return values and
 * threads: see doca_error.h. Calls on buffers of one inventory or pool must run one after another.
 *
 * Buffers can be chained to a list. A call with the first buffer of a list that frees it frees the
 * whole list.
 */
#ifndef GDK_SDK_DOCA_BUF_H
#define GDK_SDK_DOCA_BUF_H

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf; /* a buffer */

/**
 * Removes a reference. Without references, the buffer, and the list that begins with it, returns to
 * its inventory or pool.
 *
 * @param refcount gets the number of references before the call; may be NULL
 * @retval DOCA_ERROR_BAD_STATE the buffer is not the first of its list, or was freed already
 */
doca_error_t doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount);

/** Returns the address of the data. */
doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data);

/** Sets address and length of the data, which must be in the buffer. */
doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t data_len);

/** Sets the length of the data, which must be in the buffer. */
doca_error_t doca_buf_set_data_len(struct doca_buf *buf, size_t data_len);

/**
 * Appends a list of buffers to another one.
 *
 * @param list1 first buffer of a list
 * @param list2 first buffer of another list
 * @retval DOCA_ERROR_BAD_STATE list1 or list2 is not the first of its list, or they are the same
 */
doca_error_t doca_buf_chain_list(struct doca_buf *list1, struct doca_buf *list2);

#ifdef __cplusplus
}
#endif

#endif
