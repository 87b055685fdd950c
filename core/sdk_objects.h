/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Objects whose other half is the DOCA SDK's: those that take more than one call
 * to make, or that export and the high level look into afterwards.
 */
#ifndef GDK_SDK_OBJECTS_H
#define GDK_SDK_OBJECTS_H

#include <stdlib.h>

#include "host/doca_verbs.h"
#include "sdk.h"

struct doca_verbs_srq_init_attr;
struct gdk_block;

/* For an opened GPU or device: its other half, if the SDK is in use. A GPU of CPU
 * threads is unknown to the SDK. Failing, they leave the object as it was. */
doca_error_t gdk_sdk_gpu_create(doca_gpu_t *gpu, const char *gpu_bus_id);
doca_error_t gdk_sdk_dev_open(doca_dev_t *dev);
doca_error_t gdk_sdk_dev_close(doca_dev_t *dev);
/* The SDK's attributes of a device; *sdk stays NULL where it has none. */
doca_error_t gdk_sdk_query_device(struct ibv_context *ctx, void **sdk);

/* block has size and type. */
doca_error_t gdk_sdk_mem_alloc(doca_gpu_t *gpu, struct gdk_block *block, size_t alignment);

/* Fill an object that is not public yet; dmabuf_fd: -1 is none. */
doca_error_t gdk_sdk_umem_create(doca_verbs_umem_t *umem, uint32_t access_flags, int dmabuf_fd);
doca_error_t gdk_sdk_uar_create(doca_verbs_uar_t *uar);
doca_error_t gdk_sdk_ah_create(doca_verbs_ah_attr_t *ah);

doca_error_t gdk_sdk_cq_create(doca_dev_t *dev, doca_verbs_cq_attr_t *attr, doca_verbs_cq_t **out);
doca_error_t gdk_sdk_cq_destroy(doca_verbs_cq_t *cq);
doca_error_t gdk_sdk_qp_create(doca_dev_t *dev, doca_verbs_qp_init_attr_t *init,
			       doca_verbs_qp_t **out);
doca_error_t gdk_sdk_qp_destroy(doca_verbs_qp_t *qp);
doca_error_t gdk_sdk_qp_query_state(doca_verbs_qp_t *qp, enum doca_verbs_qp_state *state);

doca_error_t gdk_sdk_srq_set_pd(struct doca_verbs_srq_init_attr *attr, struct ibv_pd *pd);
doca_error_t gdk_sdk_srq_attr_destroy(struct doca_verbs_srq_init_attr *attr);
doca_error_t gdk_sdk_srq_create(struct ibv_context *ctx, struct doca_verbs_srq_init_attr *attr,
				struct doca_verbs_srq **out);
doca_error_t gdk_sdk_srq_destroy(struct doca_verbs_srq *srq);

#endif
