/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of doca_gpu: the operations that a kind of GPU (CUDA or host)
 * implements, and the table of its memory blocks, sorted by GPU address. Other parts of the
 * library use gpu.h.
 *
 * Invariant: users == blocks in the table + register mappings.
 */
#ifndef GDK_GPU_PRIV_H
#define GDK_GPU_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/gpu/gdrcopy.h"
#include "core/gpu/gpu.h"
#include "core/numa.h"

/* Memory as CUDA provides it: len bytes of GPU memory, or host memory that is registered. */
struct gdk_cuda_mem {
	bool on_host;
	uint64_t base; /* GPU address */
	size_t len;
	struct gdk_host_block host; /* if on_host */
};

struct gdk_block {
	uintptr_t gpu_ptr; /* address returned to the user */
	void *cpu_ptr;	   /* NULL: the CPU cannot access it */
	size_t size;
	enum doca_gpu_mem_type type;
	bool is_mapping;	    /* made by gdk_gpu_map_host, not by doca_gpu_mem_alloc */
	unsigned int maps;	    /* is_mapping: number of calls of gdk_gpu_map_host */
	bool of_program;	    /* doca_gpu_destroy() of the SDK's interface frees it */
	struct gdk_host_block host; /* host memory that a host GPU allocated for the block */
	struct gdk_cuda_mem mem;    /* memory of a CUDA GPU that contains the block */
	struct gdk_gdr_map gdr;	    /* used if type is GPU_CPU */
};

/* Operations of a kind of GPU. They log the causes of their errors. */
struct gdk_gpu_ops {
	/* Allocates memory. block->size and block->type are input; the function sets the addresses
	 * in block. align must be a power of two. */
	doca_error_t (*alloc)(struct doca_gpu *gpu, struct gdk_block *block, size_t align);
	void (*free)(struct doca_gpu *gpu, struct gdk_block *block);
	/* Copy to and from memory that the CPU cannot access, and fill it. NULL for a host GPU. */
	doca_error_t (*write)(struct doca_gpu *gpu, void *dst, const void *src, size_t len);
	doca_error_t (*read)(struct doca_gpu *gpu, void *dst, const void *src, size_t len);
	doca_error_t (*fill)(struct doca_gpu *gpu, void *dst, int byte, size_t len);
	doca_error_t (*map_host)(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr);
	doca_error_t (*unmap_host)(struct doca_gpu *gpu, void *cpu_ptr);
	doca_error_t (*map_reg)(struct doca_gpu *gpu, void *reg, void **reg_gpu, const char **how);
	doca_error_t (*unmap_reg)(struct doca_gpu *gpu, void *reg);
	doca_error_t (*dmabuf_fd)(struct doca_gpu *gpu, void *gpu_ptr, size_t len, bool pcie,
				  int *fd);
	/* Returns whether the GPU's context is current in the calling thread. */
	bool (*is_current)(const struct doca_gpu *gpu);
	/* Releases what is kept for reuse; NULL: nothing is. */
	void (*trim)(struct doca_gpu *gpu);
	void (*close)(struct doca_gpu *gpu);
};

struct doca_gpu {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	const struct gdk_gpu_ops *ops;
	char name[16];
	int numa_node;
	atomic_int users;
	pthread_mutex_t lock;	   /* protects the table of blocks */
	struct gdk_block **blocks; /* sorted by gpu_ptr; a mapping can lie within a block */
	size_t num_blocks, max_blocks;
	struct doca_gpu *next; /* next GPU in the list of open GPUs */

	/* CUDA */
	int cu_device;
	void *cu_context; /* primary, retained */
	void *cu_stream;  /* non-blocking, so that copies do not wait for a kernel that polls */
	struct gdk_kept *kept; /* freed memory (kept.c), protected by kept_lock */
	size_t kept_bytes;
	pthread_mutex_t kept_lock;
	bool has_dmabuf;
	bool needs_dump; /* compute capability below 9.0 */
};

/* Open a GPU: set ops and the members for that kind of GPU. gdk_gpu_host_open also sets
 * numa_node. */
void gdk_gpu_host_open(struct doca_gpu *gpu);
/* Writes a list of the GPUs present for a message: PCI addresses and "host". */
void gdk_gpu_cuda_list(char *text, size_t len);
doca_error_t gdk_gpu_cuda_open(struct doca_gpu *gpu, const char *bdf);

/* Returns the GPU whose CUDA context is current, otherwise the only open GPU. Several open host
 * GPUs count as one. If no GPU is open, or several are, logs an error and returns NULL. */
struct doca_gpu *gdk_gpu_current(void);

/* Returns what the GPU keeps for reuse to CUDA, which waits for kernels. For tests: the GPU does so
 * itself when it is closed. */
void gdk_gpu_trim(struct doca_gpu *gpu);

/* Returns the block that contains gpu_ptr, or NULL. The caller holds the lock. */
struct gdk_block *gdk_gpu_find_block(struct doca_gpu *gpu, const void *gpu_ptr);

#endif
