/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Host memory near a NUMA node. */
#ifndef GDK_NUMA_H
#define GDK_NUMA_H

#include <stddef.h>

struct gdk_host_block {
	void *addr; /* aligned, zeroed */
	void *map;  /* what munmap gets */
	size_t map_len;
};

/* align is a power of two; node -1 is any. Returns 0 or an errno value. A node
 * that cannot be had is not an error: memory is then placed elsewhere. */
int gdk_host_alloc(struct gdk_host_block *block, size_t size, size_t align, int node);
void gdk_host_free(struct gdk_host_block *block);

/* The node that a sysfs numa_node file names, -1 when unknown. */
int gdk_read_numa_node(const char *path);
/* The NUMA node of a PCI device ("0000:8a:00.0"), -1 when unknown. */
int gdk_pci_numa_node(const char *bdf);

#endif
