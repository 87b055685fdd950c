/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * GPUs and their memory, which DOCA GPUNetIO open and the DOCA SDK declare alike. A part of
 * doca_gpunetio.h, which programs include; the rules for errors and threads are in it.
 */
#ifndef GDK_GPU_MEMORY_H
#define GDK_GPU_MEMORY_H

#include <stddef.h>

#include "host/doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The function of the library that a declaration stands for. In gdaki-doca, closing the GPU also
 * frees memory that the program has not freed. */
#if defined(GDK_DOCA_NAME) && !defined(GDK_BOTH_SHAPES)
#define GDK_GPU_NAME(name) GDK_DOCA_NAME(name)
#else
#define GDK_GPU_NAME(name)
#endif

/** A GPU, opened by doca_gpu_create(). Opaque. */
typedef struct doca_gpu doca_gpu_t;

/** Kinds of memory that both GPU and NIC can access. */
enum doca_gpu_mem_type {
	DOCA_GPU_MEM_TYPE_GPU = 0,     /**< GPU memory, without a CPU address */
	DOCA_GPU_MEM_TYPE_GPU_CPU = 1, /**< GPU memory, with a CPU address (GDRCopy) */
	DOCA_GPU_MEM_TYPE_CPU_GPU = 2, /**< pinned host memory, with a GPU address */
};

/**
 * Opens a GPU. Close it with doca_gpu_destroy().
 *
 * The handle retains the primary CUDA context, which the CUDA runtime of the application also uses.
 * Functions of this library make this context current only while they run.
 *
 * @param gpu_bus_id PCI address, for example "8A:00.0" or "0000:8a:00.0"; or "host", which is a
 *         GPU made of CPU threads and needs no CUDA
 * @retval DOCA_ERROR_NOT_FOUND no such GPU, or the CUDA driver cannot be loaded
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER a CUDA call failed
 */
doca_error_t doca_gpu_create(const char *gpu_bus_id, doca_gpu_t **gpu_dev);

/**
 * Closes a GPU. Returns to CUDA the memory that doca_gpu_mem_free() kept, which waits for running
 * kernels.
 *
 * In gdaki-doca, the function frees memory from doca_gpu_mem_alloc() that is not freed yet, and
 * destroys the umems in it, with a warning: no thread and no NIC may use this memory any more.
 *
 * @retval DOCA_ERROR_IN_USE memory from doca_gpu_mem_alloc() is not freed yet (in gdaki-doca: and a
 *         queue uses it), or a UAR is still mapped for the GPU, or another object uses the GPU
 */
doca_error_t doca_gpu_destroy(doca_gpu_t *gpu_dev) GDK_GPU_NAME(gdk_doca_gpu_destroy);

/**
 * Allocates memory that the GPU can access and that can be registered with a NIC. GPU memory is
 * not cleared. Free it with doca_gpu_mem_free(). Any thread may call this.
 *
 * @param size bytes, not 0
 * @param alignment of the GPU address and the CPU address: bytes, a power of two; 0: 16 bytes. The
 *         CPU address of kind GPU_CPU is aligned to a page of the CPU at most.
 * @param memptr_gpu gets the GPU address
 * @param memptr_cpu gets the CPU address, or NULL for kind GPU; may be NULL for kind GPU
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_NOT_SUPPORTED kind GPU_CPU, and GDRCopy is not available
 * @retval DOCA_ERROR_DRIVER a CUDA call failed
 */
doca_error_t doca_gpu_mem_alloc(doca_gpu_t *gpu_dev, size_t size, size_t alignment,
				enum doca_gpu_mem_type mtype, void **memptr_gpu, void **memptr_cpu)
	GDK_GPU_NAME(gdk_doca_gpu_mem_alloc);

/**
 * Frees memory of doca_gpu_mem_alloc(). Destroy the umems in it first: the function does not check
 * for them. Any thread may call this.
 *
 * CUDA waits for all running kernels when memory is returned to it. So blocks of up to 32 MiB,
 * 1 GiB in all, are kept for later allocations until the GPU is closed. The function returns larger
 * blocks to CUDA and then waits.
 *
 * @param memptr_gpu the GPU address that doca_gpu_mem_alloc() returned
 * @retval DOCA_ERROR_NOT_FOUND the address is not an allocation of this GPU
 */
doca_error_t doca_gpu_mem_free(doca_gpu_t *gpu, void *memptr_gpu);

#ifdef __cplusplus
}
#endif

#endif
