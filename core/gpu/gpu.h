/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Functions of a GPU for the rest of the host library: memory, copies, and mappings of the
 * NIC's register page. There are two kinds of GPU: CUDA (gpu_cuda.c, which loads the driver
 * at run time) and "host", a GPU made of CPU threads whose memory is host memory
 * (gpu_host.c). Registration with the NIC is in umem/.
 */
#ifndef GDK_GPU_H
#define GDK_GPU_H

#include "host/doca_gpunetio.h"
#include "core/util.h"

bool gdk_gpu_is_host(const doca_gpu_t *gpu);
/* Returns whether GPU threads need a DUMP WQE to see data that the NIC wrote: on GPUs before
 * Hopper. */
bool gdk_gpu_needs_dump(const doca_gpu_t *gpu);
/* Name for messages: "host" or the PCI address. */
const char *gdk_gpu_name(const doca_gpu_t *gpu);

/* Synchronous copies between host memory and memory of the GPU, and a synchronous fill. dst_gpu and
 * src_gpu are GPU addresses of any kind of memory that the GPU can access. */
doca_error_t gdk_gpu_write(doca_gpu_t *gpu, void *dst_gpu, const void *src, size_t len);
doca_error_t gdk_gpu_read(doca_gpu_t *gpu, void *dst, const void *src_gpu, size_t len);
doca_error_t gdk_gpu_fill(doca_gpu_t *gpu, void *dst_gpu, int byte, size_t len);

/* Converts a GPU address in a block of doca_gpu_mem_alloc, or in a mapping, to a CPU address.
 * Returns NULL if the CPU cannot access that memory. For the host GPU, returns gpu_ptr. */
void *gdk_gpu_cpu_ptr(doca_gpu_t *gpu, const void *gpu_ptr);

/* As gdk_gpu_cpu_ptr, but returns NULL unless the memory is host memory. */
void *gdk_gpu_host_mem(doca_gpu_t *gpu, const void *gpu_ptr);

/* Maps len bytes of host memory for the GPU. For the host GPU, *gpu_ptr is cpu_ptr. Mappings that
 * begin at one CPU address are counted: each successful call needs one gdk_gpu_unmap_host. */
doca_error_t gdk_gpu_map_host(doca_gpu_t *gpu, void *cpu_ptr, size_t len, void **gpu_ptr);
doca_error_t gdk_gpu_unmap_host(doca_gpu_t *gpu, void *cpu_ptr);

/* Maps the register page that contains reg for the GPU: as device (IO) memory or, if that fails, as
 * ordinary memory. *reg_gpu is the GPU's address of reg. *how is static text that names the way
 * that worked, or the reason of the failure; how may be NULL. Mappings of one page are counted:
 * each successful call needs one gdk_gpu_unmap_reg. */
doca_error_t gdk_gpu_map_reg(doca_gpu_t *gpu, void *reg, void **reg_gpu, const char **how);
doca_error_t gdk_gpu_unmap_reg(doca_gpu_t *gpu, void *reg);

/* Registering a page with CUDA does not wait for running kernels, but unregistering it does. While
 * a page is held, it stays registered after its last gdk_gpu_unmap_reg, until that GPU is closed.
 * The owner of the page calls gdk_reg_release before the page is unmapped from the process. */
struct gdk_reg_hold {
	struct gdk_reg_hold *next;
	uintptr_t page;
};
void gdk_reg_hold(struct gdk_reg_hold *hold, const void *reg);
/* Returns whether gdk_reg_release would unregister the page. */
bool gdk_reg_is_registered(const struct gdk_reg_hold *hold);
void gdk_reg_release(struct gdk_reg_hold *hold);

/* As doca_gpu_get_dmabuf_fd, but a failed export is logged at level INFO only, for callers that
 * can register the memory by its address next (nvidia-peermem). */
doca_error_t gdk_gpu_dmabuf_fd(doca_gpu_t *gpu, void *gpu_ptr, size_t len, int *fd);

#endif
