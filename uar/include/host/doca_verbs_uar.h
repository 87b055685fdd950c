/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * UARs: pages of the NIC with doorbell registers.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h.
 */
#ifndef DOCA_VERBS_UAR_H
#define DOCA_VERBS_UAR_H

#include "host/doca_verbs_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a UAR is mapped for the CPU, and whether other users of the device context share it. */
enum doca_verbs_uar_allocation_type {
	DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME =
		0, /**< write-combining; GPU_SM_BF needs this type */
	DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE = 1,	       /**< not cached */
	DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED = 2, /**< not cached and not shared */
};

/** A UAR. Opaque. */
typedef struct doca_verbs_uar doca_verbs_uar_t;

/**
 * Allocates a UAR. Destroy it with doca_verbs_uar_destroy(). Any thread may call this.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED kernel or device has no UAR of this type; few kernels have
 *         NONCACHE_DEDICATED, so callers usually try NONCACHE next
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_uar_create(doca_dev_t *net_dev,
				   enum doca_verbs_uar_allocation_type allocation_type,
				   doca_verbs_uar_t **uar_obj);

/**
 * Frees a UAR. Its addresses become invalid, also those that a GPU has mapped. A UAR that is
 * registered with CUDA is kept for the next one of its type until the device is closed, because
 * CUDA waits for running kernels when it is unregistered.
 *
 * @retval DOCA_ERROR_IN_USE a CQ or QP still uses it
 */
doca_error_t doca_verbs_uar_destroy(doca_verbs_uar_t *uar_obj);

/** Returns the ID of the UAR in firmware commands. */
doca_error_t doca_verbs_uar_id_get(const doca_verbs_uar_t *uar, uint32_t *id);

/** Returns the CPU address of the doorbell register, to which a doorbell stores 8 bytes. */
doca_error_t doca_verbs_uar_reg_addr_get(const doca_verbs_uar_t *uar_obj, void **reg_addr);

/**
 * Returns the CPU address of the doorbell register for QPs without a DBREC.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the device has no QPs without a DBREC
 */
doca_error_t doca_verbs_uar_dbr_less_addr_get(const doca_verbs_uar_t *uar_obj,
					      void **dbr_less_addr);

#ifdef __cplusplus
}
#endif

#endif
