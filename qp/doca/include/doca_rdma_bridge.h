/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * A NIC from a protection domain of libibverbs. Return values and threads: see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_RDMA_BRIDGE_H
#define GDK_SDK_DOCA_RDMA_BRIDGE_H

#include <infiniband/verbs.h>

#include "doca_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens the NIC of a protection domain. Close it with doca_dev_close(). A protection domain of
 * doca_verbs_pd_create() and its context exist until then, also if they are destroyed before. One
 * of ibv_alloc_pd() must be kept by the caller.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the device is not an mlx5 device
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the capabilities of the device cannot be queried
 */
doca_error_t doca_rdma_bridge_open_dev_from_pd(struct ibv_pd *pd, struct doca_dev **dev);

#ifdef __cplusplus
}
#endif

#endif
