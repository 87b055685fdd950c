/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Host memory and CPU sets near a NUMA node: page-aligned allocation with a preferred node,
 * the node of a PCI device, and sets of CPUs for threads. The callers decide which node or
 * CPUs to use. Memory for a GPU is registered with CUDA by the caller (gpu_cuda.c).
 */
#ifndef GDK_NUMA_H
#define GDK_NUMA_H

#include <stddef.h>

struct gdk_host_block {
	void *addr; /* aligned, zeroed */
	void *map;  /* address for munmap */
	size_t map_len;
};

/* align must be a power of two; node -1 means any node. Returns 0 or an errno value. If the
 * node is full or unknown, the memory comes from another node without an error. */
int gdk_host_alloc(struct gdk_host_block *block, size_t size, size_t align, int node);
void gdk_host_free(struct gdk_host_block *block);

/* Reads the node from a numa_node file of sysfs. Returns -1 if it is unknown. */
int gdk_read_numa_node(const char *path);
/* Returns the NUMA node of a PCI device ("0000:8a:00.0"), or -1 if it is unknown. */
int gdk_pci_numa_node(const char *bdf);

struct bitmask;

/* Returns the CPUs of a list ("2,4-7"), or all CPUs of this process if list is NULL. Returns NULL
 * if memory is exhausted, or if the list is empty or names a CPU that the process is not allowed
 * to use. The log message about this begins with the text whose. */
struct bitmask *gdk_cpus_of(const char *whose, const char *list);
/* Returns a set with one CPU of cpus: the one at position n modulo the number of CPUs. NULL: no
 * memory. */
struct bitmask *gdk_cpus_nth(const struct bitmask *cpus, unsigned int n);
/* Returns the CPUs of cpus that belong to a NUMA node, or all of cpus if none of them does. NULL:
 * no memory. */
struct bitmask *gdk_cpus_near(const struct bitmask *cpus, int node);
/* Binds the calling thread to cpus. A failure is only logged, at level DEBUG. */
void gdk_run_on(struct bitmask *cpus);
void gdk_cpus_free(struct bitmask *cpus);

#endif
