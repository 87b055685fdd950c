/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Private layout of a umem: user memory that firmware objects refer to by id. */
#ifndef GDK_UMEM_H
#define GDK_UMEM_H

#include <infiniband/mlx5dv.h>

#include "core/net_dev.h"
#include "host/gdaki.h"

struct doca_verbs_umem {
	void *sdk; /* core/sdk.h */
	struct doca_dev *dev;
	doca_gpu_t *gpu; /* NULL: plain host memory */
	struct mlx5dv_devx_umem *devx;
	void *addr; /* as given at creation: a GPU or a CPU address */
	size_t size;
	uint32_t id;
	atomic_int users; /* CQs and QPs on it; destroy with users is IN_USE */
	void *slab;	  /* that registered it (core/slab.c) */
	enum gdk_umem_way way;
	size_t page;	/* the largest page it may have at the NIC; 0: not known */
	uint64_t start; /* what was registered: an address, or an offset in a dmabuf */
	char reason[GDK_UMEM_REASON_LEN]; /* of gdk_umem_registration */
};

/* May what lie at offset of umem, in len bytes and aligned to align? same: it is on umem's
 * device. Logs why not. */
doca_error_t gdk_umem_check(const struct doca_verbs_umem *umem, bool same, const char *what,
			    uint64_t offset, size_t len, size_t align);

/* The same of a ring, whose alignment follows from umem's pages. */
doca_error_t gdk_umem_check_ring(const struct doca_verbs_umem *umem, bool same, const char *what,
				 uint64_t offset, size_t len);

/* mlx5dv_devx_umem_reg_ex in the smallest pages that the kernel has; *page is their size. */
struct mlx5dv_devx_umem *gdk_umem_register(struct ibv_context *ctx, struct mlx5dv_devx_umem_in *in,
					   size_t *page);

/* doca_verbs_umem_create for GPU memory that the NIC writes, by some of the ways. */
enum { GDK_UMEM_TRY_DMABUF = 1, GDK_UMEM_TRY_PEER = 2 };
doca_error_t gdk_umem_create_gpu(doca_dev_t *dev, doca_gpu_t *gpu, void *addr, size_t size,
				 unsigned int ways, doca_verbs_umem_t **umem_obj);

#endif
