/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Umems: user memory that is registered with the NIC for queues and DBRECs.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h.
 */
#ifndef DOCA_VERBS_UMEM_H
#define DOCA_VERBS_UMEM_H

#include "host/doca_gpunetio.h"
#include "host/doca_verbs_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Value of dmabuf_id: no file descriptor. Cast it to int. */
#define DOCA_VERBS_DMABUF_INVALID_FD 0xFFFFFFFF

/** A registration of user memory. Opaque. */
typedef struct doca_verbs_umem doca_verbs_umem_t;

/**
 * Registers memory with the NIC for queues and DBRECs. The caller owns the memory and must keep it
 * until the umem is destroyed. Any thread may call this.
 *
 * If the caller gives no dmabuf, GPU memory is registered through a dmabuf that the library exports
 * (with CUDA's default mapping type) or, if that fails, by its address through the kernel's peer
 * memory. Host memory that was allocated for a GPU is registered by its CPU address.
 * gdk_verbs_umem_get_registration() reports the way. A ring must start at a multiple of 64 bytes in
 * the umem, and of 1/64 of the umem's page size.
 *
 * @param gpu GPU that the memory belongs to; NULL for host memory
 * @param address start of the memory: a GPU address if gpu is given, otherwise a CPU address
 * @param size bytes, not 0
 * @param access_flags IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE (only together with
 *         LOCAL_WRITE), IBV_ACCESS_REMOTE_READ. A queue that the NIC writes needs LOCAL_WRITE.
 * @param dmabuf_id file descriptor of a dmabuf that contains the memory, or
 *         DOCA_VERBS_DMABUF_INVALID_FD. The caller closes it, at any time after the call.
 * @param dmabuf_offset offset of the memory in that dmabuf, in bytes
 * @retval DOCA_ERROR_NOT_SUPPORTED kernel or driver cannot register this kind of memory
 * @retval DOCA_ERROR_NO_MEMORY no memory, or RLIMIT_MEMLOCK is reached
 * @retval DOCA_ERROR_DRIVER the kernel refused; the log has each attempt and its errno
 */
doca_error_t doca_verbs_umem_create(doca_dev_t *net_dev, doca_gpu_t *gpu, void *address,
				    size_t size, uint32_t access_flags, int dmabuf_id,
				    size_t dmabuf_offset, doca_verbs_umem_t **umem_obj);

/**
 * Ends a registration. The memory stays allocated.
 *
 * @retval DOCA_ERROR_IN_USE a CQ, QP or SRQ still uses the umem
 * @retval DOCA_ERROR_DRIVER the kernel refused; the umem stays valid
 */
doca_error_t doca_verbs_umem_destroy(doca_verbs_umem_t *umem_obj);

/** Returns the ID of the umem in firmware commands. */
doca_error_t doca_verbs_umem_get_id(const doca_verbs_umem_t *umem_obj, uint32_t *umem_id);

/** Returns the size in bytes that the umem was created with. */
doca_error_t doca_verbs_umem_get_size(const doca_verbs_umem_t *umem_obj, size_t *umem_size);

/** Returns the address that the umem was created with: a GPU address if it had a GPU. */
doca_error_t doca_verbs_umem_get_address(const doca_verbs_umem_t *umem_obj, void **umem_address);

#ifdef __cplusplus
}
#endif

#endif
