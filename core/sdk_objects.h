/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode of objects that need more than the macros of sdk.h: objects that take several
 * calls of the SDK to create, and objects whose members export and high-level queue pairs
 * read. Each function calls the SDK and fills the members of this library's object.
 */
#ifndef GDK_SDK_OBJECTS_H
#define GDK_SDK_OBJECTS_H

#include <stdlib.h>

#include "host/doca_verbs.h"
#include "core/sdk.h"

struct doca_verbs_srq_init_attr;
struct gdk_block;

/* In SDK mode, open the SDK's object for an opened GPU or device. The SDK does not know the GPU
 * "host", so that one gets none. On failure the object is unchanged. */
doca_error_t gdk_sdk_gpu_create(doca_gpu_t *gpu, const char *gpu_bus_id);
doca_error_t gdk_sdk_dev_open(doca_dev_t *dev);
doca_error_t gdk_sdk_dev_close(doca_dev_t *dev);
/* Gets the SDK's attributes of a device. *sdk stays NULL if SDK mode is off or the SDK has none. */
doca_error_t gdk_sdk_query_device(struct ibv_context *ctx, void **sdk);

/* Allocates a block whose size and type are set. */
doca_error_t gdk_sdk_mem_alloc(doca_gpu_t *gpu, struct gdk_block *block, size_t alignment);

/* Create the SDK's object and fill the members of this one. dmabuf_fd -1: no dmabuf. */
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
