/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Inside doca_gpu: the operations that a kind of GPU provides, and the table of
 * memory blocks, sorted by GPU address.
 *
 * Invariant: users == blocks in the table + register mappings.
 */
#ifndef GDK_GPU_PRIV_H
#define GDK_GPU_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "gdrcopy.h"
#include "gpu.h"
#include "numa.h"

struct gdk_block {
	uintptr_t gpu_ptr; /* what the user got */
	void *cpu_ptr;	   /* NULL: the CPU cannot reach it */
	size_t size;
	enum doca_gpu_mem_type type;
	bool is_mapping;	    /* of memory that is not ours: not for doca_gpu_mem_free */
	unsigned int maps;	    /* is_mapping: how many times */
	uint64_t base;		    /* what the driver allocated */
	struct gdk_host_block host; /* CPU_GPU */
	struct gdk_gdr_map gdr;	    /* GPU_CPU */
};

/* Each returns what it finds; errors are logged where they are found. */
struct gdk_gpu_ops {
	/* Fills block from size and type; align is a power of two. */
	doca_error_t (*alloc)(struct doca_gpu *gpu, struct gdk_block *block, size_t align);
	void (*free)(struct doca_gpu *gpu, struct gdk_block *block);
	/* What the CPU does not reach. */
	doca_error_t (*write)(struct doca_gpu *gpu, void *dst, const void *src, size_t len);
	doca_error_t (*read)(struct doca_gpu *gpu, void *dst, const void *src, size_t len);
	doca_error_t (*fill)(struct doca_gpu *gpu, void *dst, int byte, size_t len);
	doca_error_t (*map_host)(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr);
	doca_error_t (*unmap_host)(struct doca_gpu *gpu, void *cpu_ptr);
	doca_error_t (*map_reg)(struct doca_gpu *gpu, void *reg, void **reg_gpu, const char **how);
	doca_error_t (*unmap_reg)(struct doca_gpu *gpu, void *reg);
	doca_error_t (*dmabuf_fd)(struct doca_gpu *gpu, void *gpu_ptr, size_t len, bool pcie,
				  int *fd);
	bool (*is_current)(const struct doca_gpu *gpu); /* for the calling thread */
	void (*close)(struct doca_gpu *gpu);
};

struct doca_gpu {
	void *sdk; /* core/sdk.h */
	const struct gdk_gpu_ops *ops;
	char name[16];
	int numa_node;
	atomic_int users;
	pthread_mutex_t lock;	   /* the table */
	struct gdk_block **blocks; /* sorted by gpu_ptr, not overlapping */
	size_t num_blocks, max_blocks;
	struct doca_gpu *next; /* list of opened GPUs */

	/* CUDA */
	int cu_device;
	void *cu_context; /* primary, retained */
	void *cu_stream;  /* non-blocking: does not wait for a spinning kernel */
	bool has_dmabuf;
};

/* Fill ops, numa_node and the kind's own fields. */
void gdk_gpu_host_open(struct doca_gpu *gpu);
doca_error_t gdk_gpu_cuda_open(struct doca_gpu *gpu, const char *bdf);

/* The GPU whose context is current, else the only one open; NULL is logged. */
struct doca_gpu *gdk_gpu_current(void);

/* The block that holds gpu_ptr, NULL: none. The caller holds the lock. */
struct gdk_block *gdk_gpu_find_block(struct doca_gpu *gpu, const void *gpu_ptr);

#endif
