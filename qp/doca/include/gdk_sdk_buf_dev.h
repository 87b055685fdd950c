/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Buffer arrays on the device. Programs include doca_gpunetio_dev_buf.cuh; code on CPU threads may
 * include this file.
 */
#ifndef GDK_SDK_BUF_DEV_H
#define GDK_SDK_BUF_DEV_H

#include "device/gdk/platform.h"
#include "doca_error.h"

/** A buffer. */
struct doca_gpu_buf {
	uint64_t addr;	   /**< its address, as WQEs name it */
	uint32_t mkey;	   /**< key of its memory, big-endian */
	uint32_t reserved; /**< 0 */
	uint64_t size;	   /**< bytes */
};

/** A buffer array. */
struct doca_gpu_buf_arr {
	struct doca_gpu_buf *bufs; /**< GPU address of the buffers */
	uint64_t num;		   /**< number of buffers */
};

/** Returns buffer buf_idx of an array. INVALID_VALUE: the array has no such buffer. */
GDK_FN doca_error_t doca_gpu_dev_buf_get_buf(const struct doca_gpu_buf_arr *buf_arr,
					     uint64_t buf_idx, struct doca_gpu_buf **buf)
{
	if (buf_idx >= buf_arr->num)
		return DOCA_ERROR_INVALID_VALUE;
	*buf = &buf_arr->bufs[buf_idx];
	return DOCA_SUCCESS;
}

/** Returns the address of a buffer. */
GDK_FN doca_error_t doca_gpu_dev_buf_get_addr(const struct doca_gpu_buf *buf, uintptr_t *addr)
{
	*addr = (uintptr_t)buf->addr;
	return DOCA_SUCCESS;
}

/** Returns the memory key of a buffer, big-endian as in WQEs. */
GDK_FN doca_error_t doca_gpu_dev_buf_get_mkey(const struct doca_gpu_buf *buf, uint32_t *mkey)
{
	*mkey = buf->mkey;
	return DOCA_SUCCESS;
}

#endif
