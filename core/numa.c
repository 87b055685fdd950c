/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Implements numa.h with mmap, mbind and libnuma. Placement is best effort: without NUMA
 * support, or if the node is full, everything works with memory and CPUs of other nodes.
 */
#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/log/log.h"
#include "core/numa.h"
#include "core/util.h"

/* Uses MPOL_PREFERRED instead of MPOL_BIND, so that a full node does not fail the allocation. */
static void prefer_node(void *addr, size_t len, int node)
{
	struct bitmask *mask;

	if (node < 0 || numa_available() < 0 || node > numa_max_node())
		return;
	mask = numa_allocate_nodemask();
	if (!mask)
		return;
	numa_bitmask_setbit(mask, (unsigned int)node);
	if (mbind(addr, len, MPOL_PREFERRED, mask->maskp, mask->size + 1, 0))
		gdk_dbg("cannot place %zu bytes on NUMA node %d", len, node);
	numa_bitmask_free(mask);
}

int gdk_host_alloc(struct gdk_host_block *block, size_t size, size_t align, int node)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t extra = align > page ? align : 0;
	size_t len;
	void *map;

	if (size > SIZE_MAX - extra - page)
		return ENOMEM;
	len = gdk_align_up(size, page) + extra;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return errno;
	prefer_node(map, len, node);
	block->map = map;
	block->map_len = len;
	block->addr = extra ? (void *)gdk_align_up((size_t)map, align) : map;
	return 0;
}

void gdk_host_free(struct gdk_host_block *block)
{
	munmap(block->map, block->map_len);
	block->map = NULL;
}

int gdk_read_numa_node(const char *path)
{
	int node = -1;
	FILE *file;

	file = fopen(path, "re");
	if (!file)
		return -1;
	if (fscanf(file, "%d", &node) != 1)
		node = -1;
	fclose(file);
	return node;
}

int gdk_pci_numa_node(const char *bdf)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", bdf);
	return gdk_read_numa_node(path);
}

/* ---- CPUs ---- */

struct bitmask *gdk_cpus_of(const char *whose, const char *list)
{
	struct bitmask *cpus;

	if (list) {
		cpus = *list ? numa_parse_cpustring(list) : NULL;
	} else {
		cpus = numa_allocate_cpumask();
		if (cpus)
			copy_bitmask_to_bitmask(numa_all_cpus_ptr, cpus);
	}
	if (!cpus || !numa_bitmask_weight(cpus)) {
		gdk_err("%s: cannot use CPU list \"%s\" (expected e.g. \"0,2-3\", CPUs of this "
			"process)",
			whose, list ? list : "all");
		gdk_cpus_free(cpus);
		return NULL;
	}
	return cpus;
}

struct bitmask *gdk_cpus_nth(const struct bitmask *cpus, unsigned int n)
{
	struct bitmask *one = numa_allocate_cpumask();
	unsigned int i = 0;

	if (!one)
		return NULL;
	for (n %= numa_bitmask_weight(cpus);; i++)
		if (numa_bitmask_isbitset(cpus, i) && n-- == 0)
			break;
	return numa_bitmask_setbit(one, i);
}

/* Stores the CPUs of a node in cpus. Returns false if the node is unknown. The lock is needed
 * because numa_node_to_cpus caches its results without locking. */
static bool node_has_cpus(int node, struct bitmask *cpus)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool has;

	pthread_mutex_lock(&lock);
	has = node >= 0 && node <= numa_max_node() && !numa_node_to_cpus(node, cpus);
	pthread_mutex_unlock(&lock);
	return has;
}

struct bitmask *gdk_cpus_near(const struct bitmask *cpus, int node)
{
	struct bitmask *near = numa_allocate_cpumask();
	unsigned int i;

	if (!near)
		return NULL;
	if (node_has_cpus(node, near))
		for (i = 0; i < near->size; i++)
			if (!numa_bitmask_isbitset(cpus, i))
				numa_bitmask_clearbit(near, i);
	if (!numa_bitmask_weight(near))
		copy_bitmask_to_bitmask((struct bitmask *)(uintptr_t)cpus, near);
	return near;
}

void gdk_run_on(struct bitmask *cpus)
{
	if (numa_sched_setaffinity(0, cpus) < 0)
		gdk_dbg("cannot set the CPU affinity of a thread: %s", strerror(errno));
}

void gdk_cpus_free(struct bitmask *cpus)
{
	if (cpus)
		numa_bitmask_free(cpus);
}
