/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of a umem: memory that is registered with the NIC for queues (DEVX
 * umem). Firmware commands refer to it by id. The memory belongs to the caller. This file also
 * declares checks of the place of a queue in a umem.
 */
#ifndef GDK_UMEM_H
#define GDK_UMEM_H

#include <infiniband/mlx5dv.h>

#include "core/nic/net_dev.h"
#include "host/gdaki_umem.h"

struct doca_verbs_umem {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	struct doca_dev *dev;
	doca_gpu_t *gpu; /* NULL: plain host memory */
	struct mlx5dv_devx_umem *devx;
	void *addr; /* address that the caller passed: a GPU or a CPU address */
	size_t size;
	uint32_t id;
	atomic_int users; /* number of CQs, QPs and SRQs in it; destruction requires 0 */
	void *slab;	  /* the slab that this umem registers (slab.c), or NULL */
	enum gdk_umem_way way;
	size_t page;	/* page size that was requested at registration; 0: unknown */
	uint64_t start; /* registered address, or offset in the dmabuf */
	char reason[GDK_UMEM_REASON_LEN]; /* as in gdk_umem_registration */
};

/* Checks that an object of len bytes can be placed at offset of umem, and that its address is a
 * multiple of align. what names the object in the log. same is true if the object and umem are on
 * the same device. If the check fails, logs the reason and returns INVALID_VALUE. */
doca_error_t gdk_umem_check(const struct doca_verbs_umem *umem, bool same, const char *what,
			    uint64_t offset, size_t len, size_t align);

/* As gdk_umem_check, for a ring. Its alignment depends on the page size of umem. */
doca_error_t gdk_umem_check_ring(const struct doca_verbs_umem *umem, bool same, const char *what,
				 uint64_t offset, size_t len);

/* Clears the 8 bytes of a DBREC in umem, before its queue is created: the NIC reads from them how
 * many WQEs are posted, and allocated memory can have the DBREC of an earlier queue. */
doca_error_t gdk_umem_clear_dbrec(const struct doca_verbs_umem *umem, void *dbrec);

/* Calls mlx5dv_devx_umem_reg_ex with the smallest page size that the kernel supports, and stores
 * this size in *page. Returns NULL and sets errno on failure. */
struct mlx5dv_devx_umem *gdk_umem_register(struct ibv_context *ctx, struct mlx5dv_devx_umem_in *in,
					   size_t *page);

/* As doca_verbs_umem_create, for GPU memory that the NIC writes. ways: set of GDK_UMEM_TRY_*. */
enum { GDK_UMEM_TRY_DMABUF = 1, GDK_UMEM_TRY_PEER = 2 };
doca_error_t gdk_umem_create_gpu(doca_dev_t *dev, doca_gpu_t *gpu, void *addr, size_t size,
				 unsigned int ways, doca_verbs_umem_t **umem_obj);

/* umem_sdk.c: creates the SDK's umem for this one. dmabuf_fd -1: no dmabuf. */
doca_error_t gdk_sdk_umem_create(doca_verbs_umem_t *umem, uint32_t access_flags, int dmabuf_fd);

#endif
