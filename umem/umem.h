/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Private layout of a umem: user memory that firmware objects refer to by id. */
#ifndef GDK_UMEM_H
#define GDK_UMEM_H

#include <infiniband/mlx5dv.h>

#include "../core/net_dev.h"

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
};

/* May what lie at offset of umem, in len bytes and aligned to align? same: it is on umem's
 * device. Logs why not. */
doca_error_t gdk_umem_check(const struct doca_verbs_umem *umem, bool same, const char *what,
			    uint64_t offset, size_t len, size_t align);

#endif
