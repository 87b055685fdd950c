/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Verbs contexts and protection domains, and the objects of libibverbs that belong to them. Return
 * values, out-parameters and threads: see doca_error.h.
 *
 * A program opens a NIC in this order: a verbs context from a device of libibverbs, a protection
 * domain on it, and a NIC (struct doca_dev) with doca_rdma_bridge_open_dev_from_pd(). Umems and
 * UARs belong to the NIC, CQs and paths to the context, QPs to the protection domain.
 */
#ifndef GDK_SDK_DOCA_VERBS_BRIDGE_H
#define GDK_SDK_DOCA_VERBS_BRIDGE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_verbs_context; /* an opened device */
struct doca_verbs_pd;	   /* a protection domain */

/** Options of doca_verbs_bridge_verbs_context_create(). */
enum {
	DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE = 0, /**< none */
};

/**
 * Opens a device. Close it with doca_verbs_context_destroy(). Any thread may call this.
 *
 * @param ibv_device a device of ibv_get_device_list()
 * @param flags DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE
 * @retval DOCA_ERROR_NOT_SUPPORTED the device is not an mlx5 device
 * @retval DOCA_ERROR_NOT_PERMITTED no access to the device file
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the device cannot be opened, or its capabilities cannot be queried
 */
doca_error_t doca_verbs_bridge_verbs_context_create(struct ibv_device *ibv_device, uint32_t flags,
						    struct doca_verbs_context **verbs_context);

/**
 * Closes a device. If a NIC that was opened from one of its protection domains is still open, the
 * device stays open until doca_dev_close() closes that NIC.
 *
 * @retval DOCA_ERROR_IN_USE a protection domain or a CQ of the context still exists
 * @retval DOCA_ERROR_DRIVER the driver refused; the context stays valid
 */
doca_error_t doca_verbs_context_destroy(struct doca_verbs_context *verbs_context);

/**
 * Allocates a protection domain. Free it with doca_verbs_pd_destroy(). Any thread may call this.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the driver refused
 */
doca_error_t doca_verbs_pd_create(struct doca_verbs_context *verbs_context,
				  struct doca_verbs_pd **verbs_pd);

/**
 * Frees a protection domain. If a NIC that was opened from it is still open, the protection domain
 * exists until doca_dev_close() closes that NIC.
 *
 * @retval DOCA_ERROR_IN_USE a QP or a memory region of the protection domain still exists
 * @retval DOCA_ERROR_DRIVER the driver refused; the protection domain stays valid
 */
doca_error_t doca_verbs_pd_destroy(struct doca_verbs_pd *verbs_pd);

/**
 * Returns the protection domain of libibverbs, for example for ibv_reg_mr(). The library owns it.
 * NULL for NULL.
 */
struct ibv_pd *doca_verbs_bridge_verbs_pd_get_ibv_pd(struct doca_verbs_pd *verbs_pd);

#ifdef __cplusplus
}
#endif

#endif
