/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* CPU mappings of GPU memory through GDRCopy (libgdrapi, found at run time). */
#ifndef GDK_GDRCOPY_H
#define GDK_GDRCOPY_H

#include <stddef.h>
#include <stdint.h>

#include "host/doca_error.h"

#define GDK_GPU_PAGE 65536 /* what GDRCopy pins and maps */

struct gdk_gdr_map {
	unsigned long handle;
	void *cpu_ptr;
	size_t size;
};

/* gpu_addr and size are multiples of GDK_GPU_PAGE. NOT_SUPPORTED: no GDRCopy. */
doca_error_t gdk_gdr_map(uint64_t gpu_addr, size_t size, struct gdk_gdr_map *map);
void gdk_gdr_unmap(struct gdk_gdr_map *map);

#endif
