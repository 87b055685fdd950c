/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Host memory, and CPUs, near a NUMA node. */
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

struct bitmask;

/* CPUs of this process: all of them, or those of a list ("2,4-7"). NULL: no
 * memory, or the list names none or one that cannot be used; the log says whose. */
struct bitmask *gdk_cpus_of(const char *whose, const char *list);
/* The n-th of them, counted around. */
struct bitmask *gdk_cpus_nth(const struct bitmask *cpus, unsigned int n);
/* Of cpus, those of a NUMA node, or all of them where it has none. */
struct bitmask *gdk_cpus_near(const struct bitmask *cpus, int node);
/* Where the calling thread may run from now on; best effort. */
void gdk_run_on(struct bitmask *cpus);
void gdk_cpus_free(struct bitmask *cpus);

#endif
