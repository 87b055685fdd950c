/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the rest of the host library may ask of a GPU: memory, copies, and a
 * mapping of the NIC's register page. Two implementations answer: CUDA
 * (gpu_cuda.c, driver found at run time) and "host", a GPU made of CPU
 * threads (gpu_host.c), where all memory is host memory.
 */
#ifndef GDK_GPU_H
#define GDK_GPU_H

#include "host/doca_gpunetio.h"
#include "util.h"

bool gdk_gpu_is_host(const doca_gpu_t *gpu);
/* Readable name, "host" or the PCI address, for messages. */
const char *gdk_gpu_name(const doca_gpu_t *gpu);

/* Synchronous copies between host memory and memory that the GPU addresses.
 * dst/src on the GPU's side are GPU addresses of any memory kind. */
doca_error_t gdk_gpu_write(doca_gpu_t *gpu, void *dst_gpu, const void *src, size_t len);
doca_error_t gdk_gpu_read(doca_gpu_t *gpu, void *dst, const void *src_gpu, size_t len);
doca_error_t gdk_gpu_fill(doca_gpu_t *gpu, void *dst_gpu, int byte, size_t len);

/* The CPU's address of a GPU address that doca_gpu_mem_alloc returned (or that
 * lies inside such a block), NULL where the CPU cannot load and store there. */
void *gdk_gpu_cpu_ptr(doca_gpu_t *gpu, const void *gpu_ptr);

/* The same, but only where the memory itself is the host's. */
void *gdk_gpu_host_mem(doca_gpu_t *gpu, const void *gpu_ptr);

/* Maps len bytes of ordinary host memory for the GPU; host GPU: identity. */
doca_error_t gdk_gpu_map_host(doca_gpu_t *gpu, void *cpu_ptr, size_t len, void **gpu_ptr);
doca_error_t gdk_gpu_unmap_host(doca_gpu_t *gpu, void *cpu_ptr);

/* Maps the register page that holds reg for the GPU: first as device (IO)
 * memory, then as ordinary memory. *reg_gpu is the GPU's address of reg itself.
 * *how (may be NULL) says which way worked, or why none did, as static text.
 * Mappings of one page are counted; each call is undone by one unmap of reg. */
doca_error_t gdk_gpu_map_reg(doca_gpu_t *gpu, void *reg, void **reg_gpu, const char **how);
doca_error_t gdk_gpu_unmap_reg(doca_gpu_t *gpu, void *reg);

/* doca_gpu_get_dmabuf_fd for callers that have another way: logs at level INFO. */
doca_error_t gdk_gpu_dmabuf_fd(doca_gpu_t *gpu, void *gpu_ptr, size_t len, int *fd);

#endif
