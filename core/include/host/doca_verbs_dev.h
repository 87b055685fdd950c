/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The NIC and its capabilities.
 *
 * Return values, out-parameters, byte order and thread safety of all doca_verbs*.h follow the
 * rules in doca_gpunetio.h.
 */
#ifndef DOCA_VERBS_DEV_H
#define DOCA_VERBS_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/doca_error.h"
#include "host/gdk_open_shape.h"
#include "host/gdk_verbs_def.h"

struct ibv_context;
struct ibv_pd;

#ifdef __cplusplus
extern "C" {
#endif

/** The library that implements an object. */
enum doca_verbs_lib_type {
	DOCA_VERBS_SDK_LIB_TYPE_OPEN = 0, /**< this library */
	DOCA_VERBS_SDK_LIB_TYPE_SDK = 1,  /**< an installed DOCA SDK */
};

/** A NIC and one of its protection domains. Opaque. */
typedef struct doca_dev doca_dev_t;

/** The capabilities of a NIC. Opaque. */
struct doca_verbs_device_attr;

/**
 * Opens a NIC for use by this library. Close it with doca_verbs_dev_close(). Objects that are
 * created from the handle use verbs_pd. Any thread may call this.
 *
 * @param verbs_pd protection domain of an mlx5 device. The caller owns it, and must keep it and its
 *         ibv_context until the handle is closed.
 * @retval DOCA_ERROR_NOT_SUPPORTED the device is not an mlx5 device
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the capabilities of the device cannot be queried
 */
doca_error_t doca_verbs_dev_open(struct ibv_pd *verbs_pd, doca_dev_t **net_dev);

/**
 * Closes a NIC. The protection domain stays open.
 *
 * @retval DOCA_ERROR_IN_USE an object that was created from the handle still exists
 */
doca_error_t doca_verbs_dev_close(doca_dev_t *net_dev);

/**
 * Queries the capabilities of an mlx5 device. Free the result with doca_verbs_device_attr_free().
 * Any thread may call this.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the device is not an mlx5 device
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the capabilities of the device cannot be queried
 */
doca_error_t doca_verbs_query_device(struct ibv_context *context,
				     struct doca_verbs_device_attr **verbs_device_attr);

/** Frees the result of doca_verbs_query_device(). */
doca_error_t doca_verbs_device_attr_free(struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many QPs the device supports; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_qp(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many CQs the device supports; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_cq(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many memory regions the device supports; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_mr(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many protection domains the device supports; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_pd(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many address handles the device supports; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_ah(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many shared receive queues the device supports; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_srq(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many partition keys a port of the device has; 0 for NULL. */
uint16_t
doca_verbs_device_attr_get_max_pkeys(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many WQEs one work queue may have; 0 for NULL. */
uint32_t
doca_verbs_device_attr_get_max_qp_wr(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many data segments one WQE of a QP may have; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_sge(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many entries one CQ may have; 0 for NULL. */
uint32_t doca_verbs_device_attr_get_max_cqe(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many WQEs one shared receive queue may have; 0 for NULL. */
uint32_t
doca_verbs_device_attr_get_max_srq_wr(const struct doca_verbs_device_attr *verbs_device_attr);

/** Returns how many data segments one WQE of a shared receive queue may have; 0 for NULL. */
uint32_t
doca_verbs_device_attr_get_max_srq_sge(const struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Returns how many RDMA reads and atomics of the remote side one QP can process at a time. This is
 * the limit of the attribute max_dest_rd_atomic. At most 255; 0 for NULL.
 */
uint8_t
doca_verbs_device_attr_get_max_qp_rd_atom(const struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Returns how many RDMA reads and atomics one QP can have outstanding. This is the limit of the
 * attribute max_rd_atomic. At most 255; 0 for NULL.
 */
uint8_t doca_verbs_device_attr_get_max_qp_init_rd_atom(
	const struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Tests whether the device supports a transport.
 *
 * @param qp_type DOCA_VERBS_QP_TYPE_RC or _UC; INVALID_VALUE for another one
 * @retval DOCA_SUCCESS supported
 * @retval DOCA_ERROR_NOT_SUPPORTED not supported
 */
doca_error_t doca_verbs_device_attr_get_is_qp_type_supported(
	const struct doca_verbs_device_attr *verbs_device_attr, uint32_t qp_type);

/**
 * Returns 1 if the device supports QPs without a DBREC (DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT),
 * otherwise 0; 0 for NULL.
 */
uint8_t doca_verbs_device_attr_get_send_dbr_mode_no_dbr_ext(
	const struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Tests whether the device can write received data into the CQE
 * (doca_verbs_qp_init_attr_set_cqe_inline()).
 *
 * @retval DOCA_SUCCESS supported
 * @retval DOCA_ERROR_NOT_SUPPORTED not supported
 */
doca_error_t doca_verbs_device_attr_get_is_cqe_inline_supported(
	const struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Returns how many bytes one request to the device's copy engine can copy
 * (gdk_verbs_qp_init_attr_set_copy_engine() in gdaki.h).
 *
 * @param max_bytes gets a power of two, at most 2^31
 * @retval DOCA_ERROR_NOT_SUPPORTED the device has no copy engine, or belongs to the DOCA SDK
 */
doca_error_t
gdk_verbs_device_attr_get_copy_engine(const struct doca_verbs_device_attr *verbs_device_attr,
				      uint64_t *max_bytes);

#ifdef __cplusplus
}
#endif

#endif
