/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Private layout of a completion queue. */
#ifndef GDK_CQ_H
#define GDK_CQ_H

#include <infiniband/mlx5dv.h>

#include "core/net_dev.h"
#include "uar/uar.h"
#include "umem/umem.h"

struct doca_verbs_cq_attr {
	void *sdk; /* core/sdk.h */
	uint32_t size;
	void *context;
	struct doca_verbs_umem *umem;
	uint64_t umem_offset;
	/* 0: behind the entries; else elsewhere in umem, which is formatted then. */
	uint64_t dbrec_offset;
	struct doca_verbs_uar *uar;
	enum doca_verbs_cq_overrun overrun;
	uint8_t collapsed;
};

struct doca_verbs_cq_t {
	void *sdk; /* core/sdk.h */
	struct doca_dev *dev;
	struct mlx5dv_devx_obj *obj;
	uint32_t cqn;
	uint32_t cqe_num; /* entries, a power of two */
	bool collapsed;	  /* every CQE lands in entry 0 */
	bool overrun_ignore;
	void *buf;		      /* entry 0: a GPU address for external umem in GPU memory */
	uint32_t *dbrec;	      /* consumer index, then arm word */
	doca_gpu_t *gpu;	      /* the umem's GPU, NULL: host memory */
	struct doca_verbs_umem *umem; /* holds entries (and DBREC) */
	bool own_umem;		      /* internal memory: ours to free */
	void *own_mem;
	struct doca_verbs_uar *uar;
	bool own_uar;
	void *context;
	atomic_int users;     /* QPs that complete here */
	atomic_bool exported; /* one of them is: its GPU threads count the CQEs */
};

/* Marks every entry of an external ring invalid; clears dbrec_bytes behind it. */
doca_error_t gdk_cq_format(struct doca_verbs_cq_t *cq, size_t dbrec_bytes);
/* The same in host memory, to a ring that is zero. */
void gdk_cq_format_image(uint8_t *ring, uint32_t cqe_num);

/* How many CQEs the NIC has written, modulo 2^24. Not for a CQ of the SDK. */
doca_error_t gdk_cq_query_producer(const struct doca_verbs_cq_t *cq, uint32_t *producer);

#endif
