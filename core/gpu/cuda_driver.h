/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The functions and constants of the CUDA driver API that the library uses. They are
 * declared here with the driver's ABI, so that the library builds and loads without CUDA.
 * libcuda.so.1 is loaded at first use, once per process. gpu_cuda.c makes the calls.
 */
#ifndef GDK_CUDA_DRIVER_H
#define GDK_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long gdk_cu_ptr;

enum {
	GDK_CU_SUCCESS = 0,
	GDK_CU_OUT_OF_MEMORY = 2,
	GDK_CU_NO_DEVICE = 100,
	GDK_CU_INVALID_DEVICE = 101,
	GDK_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,

	GDK_CU_STREAM_NON_BLOCKING = 1,
	GDK_CU_HOSTREGISTER_PORTABLE = 1,
	GDK_CU_HOSTREGISTER_DEVICEMAP = 2,
	GDK_CU_HOSTREGISTER_IOMEMORY = 4,
	GDK_CU_ATTR_CAPABILITY_MAJOR = 75,
	GDK_CU_ATTR_DMA_BUF_SUPPORTED = 124,
	GDK_CU_POINTER_ATTR_SYNC_MEMOPS = 6,
	GDK_CU_HANDLE_DMA_BUF_FD = 1,
	GDK_CU_DMA_BUF_MAPPING_PCIE = 1,
};

struct gdk_cuda {
	int (*init)(unsigned int flags);
	int (*error_name)(int error, const char **name);
	int (*device_by_pci)(int *device, const char *bdf);
	int (*device_attribute)(int *value, int attribute, int device);
	int (*primary_retain)(void **context, int device);
	int (*primary_release)(int device);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*current_device)(int *device);
	int (*mem_alloc)(gdk_cu_ptr *ptr, size_t size);
	int (*mem_free)(gdk_cu_ptr ptr);
	int (*host_register)(void *ptr, size_t size, unsigned int flags);
	int (*host_unregister)(void *ptr);
	int (*host_device_ptr)(gdk_cu_ptr *ptr, void *host, unsigned int flags);
	int (*copy_to)(gdk_cu_ptr dst, const void *src, size_t len, void *stream);
	int (*copy_from)(void *dst, gdk_cu_ptr src, size_t len, void *stream);
	int (*stream_create)(void **stream, unsigned int flags);
	int (*stream_sync)(void *stream);
	int (*stream_destroy)(void *stream);
	int (*pointer_set)(const void *value, int attribute, gdk_cu_ptr ptr);
	/* for messages; NULL if the driver lacks them */
	int (*device_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_pci)(char *bdf, int len, int device);
	/* exists since CUDA 11.7; NULL in an older driver */
	int (*handle_for_range)(void *handle, gdk_cu_ptr ptr, size_t size, int type,
				unsigned long long flags);
};

/* Loads and initializes the driver. On failure returns NULL and sets *why to static text. */
const struct gdk_cuda *gdk_cuda_load(const char **why);

/* Name of a CUDA error, e.g. "CUDA_ERROR_INVALID_VALUE"; static text. */
const char *gdk_cuda_error(const struct gdk_cuda *cuda, int error);

#endif
