/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * CPU mappings of GPU memory with GDRCopy (libgdrapi, loaded at run time). gpu_cuda.c
 * allocates and frees the GPU memory.
 */
#ifndef GDK_GDRCOPY_H
#define GDK_GDRCOPY_H

#include <stddef.h>
#include <stdint.h>

#include "host/doca_error.h"

#define GDK_GPU_PAGE 65536 /* GDRCopy pins and maps multiples of this */

struct gdk_gdr_map {
	unsigned long handle;
	void *cpu_ptr;
	size_t size;
};

/* Maps GPU memory for the CPU. gpu_addr and size must be multiples of GDK_GPU_PAGE. Returns
 * NOT_SUPPORTED if GDRCopy is not available. */
doca_error_t gdk_gdr_map(uint64_t gpu_addr, size_t size, struct gdk_gdr_map *map);
void gdk_gdr_unmap(struct gdk_gdr_map *map);

#endif
