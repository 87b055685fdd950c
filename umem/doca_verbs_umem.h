/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* User memory given to the NIC for queues and doorbell records. */
#ifndef DOCA_VERBS_UMEM_H
#define DOCA_VERBS_UMEM_H

#include "doca_gpunetio.h"
#include "doca_verbs_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As dmabuf_id: no file descriptor is given. Compare after a cast to int. */
#define DOCA_VERBS_DMABUF_INVALID_FD 0xFFFFFFFF

typedef struct doca_verbs_umem doca_verbs_umem_t;

/* Registers size bytes at address. gpu: NULL for host memory, else whose memory
 * it is. access_flags: IBV_ACCESS_LOCAL_WRITE, _REMOTE_WRITE (with it), _REMOTE_READ.
 * dmabuf_id: a descriptor that covers the memory from dmabuf_offset on (it stays
 * the caller's), or DOCA_VERBS_DMABUF_INVALID_FD: GPU memory is then registered
 * through a dmabuf of the default mapping type, or through the kernel's peer
 * memory where that is refused. DRIVER, NOT_SUPPORTED: refused, the log says
 * what was tried. */
doca_error_t doca_verbs_umem_create(doca_dev_t *net_dev, doca_gpu_t *gpu, void *address,
				    size_t size, uint32_t access_flags, int dmabuf_id,
				    size_t dmabuf_offset, doca_verbs_umem_t **umem_obj);

/* IN_USE while a CQ or QP lies in it. */
doca_error_t doca_verbs_umem_destroy(doca_verbs_umem_t *umem_obj);

/* The number by which firmware commands name it; its size in bytes; its address
 * as given at creation. */
doca_error_t doca_verbs_umem_get_id(const doca_verbs_umem_t *umem_obj, uint32_t *umem_id);
doca_error_t doca_verbs_umem_get_size(const doca_verbs_umem_t *umem_obj, size_t *umem_size);
doca_error_t doca_verbs_umem_get_address(const doca_verbs_umem_t *umem_obj, void **umem_address);

#ifdef __cplusplus
}
#endif

#endif
