/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Umems: user memory that is registered with the NIC for queues and DBRECs. Return values,
 * out-parameters and threads: see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_UMEM_H
#define GDK_SDK_DOCA_UMEM_H

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_gpu;
struct doca_umem; /* a registration of user memory */

/**
 * Registers host memory, or memory of kind DOCA_GPU_MEM_TYPE_CPU_GPU by its CPU address. The caller
 * owns the memory and must keep it until the umem is destroyed. Any thread may call this.
 *
 * @param size bytes, not 0
 * @param access_flags DOCA_ACCESS_FLAG_* bits. A queue that the NIC writes needs
 *         LOCAL_READ_WRITE, which RDMA_WRITE includes. RDMA_ATOMIC and PCI_RELAXED_ORDERING are
 *         accepted and have no effect on a umem.
 * @retval DOCA_ERROR_NO_MEMORY no memory, or RLIMIT_MEMLOCK is reached
 * @retval DOCA_ERROR_NOT_SUPPORTED kernel or driver cannot register this kind of memory
 * @retval DOCA_ERROR_DRIVER the kernel refused
 */
doca_error_t doca_umem_create(struct doca_dev *dev, void *address, size_t size,
			      uint32_t access_flags, struct doca_umem **umem);

/**
 * As doca_umem_create(), for memory of a GPU: through a dmabuf, or by its address through the
 * kernel's peer memory.
 *
 * @param address GPU address
 */
doca_error_t doca_umem_gpu_create(struct doca_gpu *gpu_dev, struct doca_dev *dev, void *address,
				  size_t size, uint32_t access_flags, struct doca_umem **umem);

/**
 * Ends a registration. The memory stays allocated.
 *
 * @retval DOCA_ERROR_INVALID_VALUE it does not exist; doca_dev_close() and doca_gpu_destroy()
 *         destroy it, too
 * @retval DOCA_ERROR_IN_USE a CQ or QP still uses the umem
 * @retval DOCA_ERROR_DRIVER the kernel refused; the umem stays valid
 */
doca_error_t doca_umem_destroy(struct doca_umem *umem);

#ifdef __cplusplus
}
#endif

#endif
