/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the files about CUDA GPUs share: calls of the driver, blocks of memory that are kept for
 * reuse (kept.c), and register pages (reg_page.c).
 *
 * cuMemFree() and cuMemHostUnregister() wait until all kernels of the context have ended. A
 * program may run a kernel that ends only after the program has created and destroyed queue
 * pairs, so the library calls them only when a GPU or a NIC is closed, and for large blocks.
 */
#ifndef GDK_GPU_CUDA_H
#define GDK_GPU_CUDA_H

#include "core/gpu/cuda_driver.h"
#include "core/gpu/gpu_priv.h"

extern const struct gdk_cuda *gdk_cu; /* set by gdk_gpu_cuda_open */

/* Converts the result of a CUDA call to a DOCA error, and logs a failure. */
doca_error_t gdk_cuda_judge(const struct doca_gpu *gpu, const char *call, int ret);
/* Makes the GPU's context current; gdk_cuda_leave() makes the previous one current again. */
doca_error_t gdk_cuda_enter(const struct doca_gpu *gpu);
void gdk_cuda_leave(void);

/* ---- kept.c ---- */

/* Takes a kept block of at least len bytes, of which need bytes can be aligned. Returns false if
 * there is none. Host memory is zero. */
bool gdk_kept_take(struct doca_gpu *gpu, bool on_host, size_t len, size_t align,
		   struct gdk_cuda_mem *mem);
/* Keeps a block for reuse, or returns it to CUDA if it is large or too much is kept. The GPU's
 * context is current. */
void gdk_kept_put(struct doca_gpu *gpu, const struct gdk_cuda_mem *mem);
/* Returns all kept blocks to CUDA. The GPU's context is current. */
void gdk_kept_close(struct doca_gpu *gpu);

/* ---- reg_page.c; the functions have the parameters of the operations in gpu_priv.h ---- */

doca_error_t gdk_cuda_map_reg(struct doca_gpu *gpu, void *reg, void **reg_gpu, const char **how);
doca_error_t gdk_cuda_unmap_reg(struct doca_gpu *gpu, void *reg);
/* Unregisters the pages that no GPU maps and that were registered in the context of gpu. */
void gdk_cuda_close_regs(const struct doca_gpu *gpu);

#endif
