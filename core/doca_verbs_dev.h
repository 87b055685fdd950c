/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC, and what it can do. As in all of doca_verbs*.h, functions return
 * DOCA_SUCCESS, INVALID_VALUE for a bad argument, or what is stated; an
 * out-parameter is written on success only; numbers are in CPU byte order.
 */
#ifndef DOCA_VERBS_DEV_H
#define DOCA_VERBS_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"

struct ibv_context;
struct ibv_pd;

#ifdef __cplusplus
extern "C" {
#endif

/* Which library serves an object: this one, or an installed DOCA SDK. */
enum doca_verbs_lib_type {
	DOCA_VERBS_SDK_LIB_TYPE_OPEN = 0,
	DOCA_VERBS_SDK_LIB_TYPE_SDK = 1,
};

/* A NIC and one of its protection domains. Opaque. */
typedef struct doca_dev doca_dev_t;

/* What the NIC said it can do. Opaque. */
struct doca_verbs_device_attr;

/* The one transport: reliable connected. */
#define DOCA_VERBS_QP_TYPE_RC 0x0

#define DOCA_VERBS_GID_BYTE_LENGTH 16

/* In network order, as ibv_gid. */
struct doca_verbs_gid {
	uint8_t raw[DOCA_VERBS_GID_BYTE_LENGTH];
};

/* verbs_pd stays the caller's and must outlive the handle. NOT_SUPPORTED: not an
 * mlx5 device; DRIVER: it did not answer. */
doca_error_t doca_verbs_dev_open(struct ibv_pd *verbs_pd, doca_dev_t **net_dev);

/* IN_USE while an object created from it exists. */
doca_error_t doca_verbs_dev_close(doca_dev_t *net_dev);

/* Free the result with doca_verbs_device_attr_free. */
doca_error_t doca_verbs_query_device(struct ibv_context *context,
				     struct doca_verbs_device_attr **verbs_device_attr);
doca_error_t doca_verbs_device_attr_free(struct doca_verbs_device_attr *verbs_device_attr);

/* Counts of objects; 0 for a NULL argument. */
uint32_t doca_verbs_device_attr_get_max_qp(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_cq(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_mr(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_pd(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_ah(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_srq(const struct doca_verbs_device_attr *verbs_device_attr);
uint16_t
doca_verbs_device_attr_get_max_pkeys(const struct doca_verbs_device_attr *verbs_device_attr);

/* Sizes of one object, in entries. */
uint32_t
doca_verbs_device_attr_get_max_qp_wr(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_sge(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t doca_verbs_device_attr_get_max_cqe(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t
doca_verbs_device_attr_get_max_srq_wr(const struct doca_verbs_device_attr *verbs_device_attr);
uint32_t
doca_verbs_device_attr_get_max_srq_sge(const struct doca_verbs_device_attr *verbs_device_attr);

/* RDMA reads and atomics that a QP serves, and that it may have under way. */
uint8_t
doca_verbs_device_attr_get_max_qp_rd_atom(const struct doca_verbs_device_attr *verbs_device_attr);
uint8_t doca_verbs_device_attr_get_max_qp_init_rd_atom(
	const struct doca_verbs_device_attr *verbs_device_attr);

/* SUCCESS or NOT_SUPPORTED; qp_type is DOCA_VERBS_QP_TYPE_RC. */
doca_error_t doca_verbs_device_attr_get_is_qp_type_supported(
	const struct doca_verbs_device_attr *verbs_device_attr, uint32_t qp_type);

/* 1: QPs without doorbell record can be created (DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT). */
uint8_t doca_verbs_device_attr_get_send_dbr_mode_no_dbr_ext(
	const struct doca_verbs_device_attr *verbs_device_attr);

#ifdef __cplusplus
}
#endif

#endif
