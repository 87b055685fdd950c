/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * UARs: pages of the NIC with doorbell registers. Return values, out-parameters and threads: see
 * doca_error.h.
 */
#ifndef GDK_SDK_DOCA_UAR_H
#define GDK_SDK_DOCA_UAR_H

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_uar; /* a UAR */

/** How a UAR is mapped for the CPU, and whether other users of the device context share it. */
enum gdk_uar_allocation_type {
	DOCA_UAR_ALLOCATION_TYPE_BLUEFLAME = 0, /**< write-combining; GPU_SM_BF needs this type */
	DOCA_UAR_ALLOCATION_TYPE_NONCACHE = 1,	/**< not cached */
	DOCA_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED = 2, /**< not cached and not shared */
};

/**
 * Allocates a UAR. Destroy it with doca_uar_destroy(). Any thread may call this.
 *
 * Without support of libmlx5 or of the kernel for NONCACHE_DEDICATED, the UAR is a BLUEFLAME one,
 * which is not shared either.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED kernel or device has no UAR of this type
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_uar_create(struct doca_dev *dev, enum gdk_uar_allocation_type allocation_type,
			     struct doca_uar **uar);

/**
 * Frees a UAR.
 *
 * @retval DOCA_ERROR_INVALID_VALUE it does not exist; doca_dev_close() destroys it, too
 * @retval DOCA_ERROR_IN_USE a CQ or QP still uses it
 */
doca_error_t doca_uar_destroy(struct doca_uar *uar);

#ifdef __cplusplus
}
#endif

#endif
