/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For a machine without GDRCopy: a program that is linked with --wrap=gdk_doca_gpu_mem_alloc gets
 * pinned host memory where it asks for GPU memory that the CPU can access. Both are accessible for
 * the CPU, the GPU and the NIC.
 */
#include "doca_gpunetio.h"

doca_error_t __real_gdk_doca_gpu_mem_alloc(struct doca_gpu *gpu, size_t size, size_t alignment,
					   enum doca_gpu_mem_type type, void **on_gpu,
					   void **on_cpu);
doca_error_t __wrap_gdk_doca_gpu_mem_alloc(struct doca_gpu *gpu, size_t size, size_t alignment,
					   enum doca_gpu_mem_type type, void **on_gpu,
					   void **on_cpu);

doca_error_t __wrap_gdk_doca_gpu_mem_alloc(struct doca_gpu *gpu, size_t size, size_t alignment,
					   enum doca_gpu_mem_type type, void **on_gpu,
					   void **on_cpu)
{
	if (type == DOCA_GPU_MEM_TYPE_GPU_CPU)
		type = DOCA_GPU_MEM_TYPE_CPU_GPU;
	return __real_gdk_doca_gpu_mem_alloc(gpu, size, alignment, type, on_gpu, on_cpu);
}
