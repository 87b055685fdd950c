/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode (sdk.h) of GPUs and devices: functions that create and destroy the SDK's objects for
 * them. The other layers have files of their own for their objects (*_sdk.c). If a function
 * that creates or opens fails, the caller frees its own object.
 */
#ifndef GDK_SDK_DEV_H
#define GDK_SDK_DEV_H

#include "core/sdk/sdk.h"
#include "host/doca_gpunetio.h"
#include "host/doca_verbs_dev.h"

struct gdk_block;

/* In SDK mode, create the SDK's object for a GPU or device; otherwise do nothing. The GPU "host"
 * gets no such object, because the SDK does not know it. */
doca_error_t gdk_sdk_gpu_create(doca_gpu_t *gpu, const char *gpu_bus_id);
doca_error_t gdk_sdk_dev_open(doca_dev_t *dev);
/* Destroys the views and closes the SDK's device. dev->sdk must not be NULL. */
doca_error_t gdk_sdk_dev_close(doca_dev_t *dev);
/* Gets the SDK's attributes of a device. *sdk is left unchanged if SDK mode is off or the SDK lacks
 * the query. */
doca_error_t gdk_sdk_query_device(struct ibv_context *ctx, void **sdk);

/* Allocates memory with the SDK. block->size and block->type are input; the function sets the
 * addresses in block. */
doca_error_t gdk_sdk_mem_alloc(doca_gpu_t *gpu, struct gdk_block *block, size_t alignment);

/* Create and destroy the SDK's views of a context or of a protection domain. Destroying sets
 * *view to NULL. */
doca_error_t gdk_sdk_import_context(struct ibv_context *ctx, void **view);
doca_error_t gdk_sdk_import_pd(struct ibv_pd *pd, void **view);
void gdk_sdk_drop_context(void **view);
void gdk_sdk_drop_pd(void **view);

#endif
