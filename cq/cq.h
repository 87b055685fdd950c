/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of a completion queue, and functions of the host for its memory. GPU
 * threads poll the CQ with cq_dev.h.
 */
#ifndef GDK_CQ_H
#define GDK_CQ_H

#include <infiniband/mlx5dv.h>

#include "core/nic/net_dev.h"
#include "host/doca_verbs_cq.h"
#include "uar/uar.h"
#include "umem/umem.h"

struct doca_verbs_cq_attr {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	uint32_t size;
	void *context;
	struct doca_verbs_umem *umem;
	uint64_t umem_offset;
	/* Offset of the DBREC in umem. 0: behind the CQEs. If it is not 0, the caller has already
	 * initialized the CQ's memory. */
	uint64_t dbrec_offset;
	struct doca_verbs_uar *uar;
	enum doca_verbs_cq_overrun overrun;
	uint8_t collapsed;
};

struct doca_verbs_cq_t {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	struct doca_dev *dev;
	struct mlx5dv_devx_obj *obj;
	uint32_t cqn;
	uint32_t cqe_num; /* number of CQEs, a power of two */
	bool collapsed;	  /* every CQE is written to entry 0 */
	bool overrun_ignore;
	void *buf;		      /* address of entry 0; a GPU address if gpu is set */
	uint32_t *dbrec;	      /* two words: consumer index, arm */
	doca_gpu_t *gpu;	      /* the umem's GPU; NULL: host memory */
	struct doca_verbs_umem *umem; /* memory of the CQEs and the DBREC */
	bool own_umem;		      /* umem and own_mem were created for this CQ */
	void *own_mem;
	struct doca_verbs_uar *uar;
	bool own_uar;
	void *context;
	atomic_int users;     /* QPs that use this CQ */
	atomic_bool exported; /* one of these QPs is exported: GPU threads consume the CQEs */
};

static inline size_t gdk_cq_ring_bytes(const struct doca_verbs_cq_t *cq)
{
	return (size_t)cq->cqe_num * DOCA_GPUNETIO_VERBS_CQE_SIZE;
}

/* Initializes the memory of a CQ: marks all CQEs invalid, and clears the dbrec_bytes bytes behind
 * them. */
doca_error_t gdk_cq_format(struct doca_verbs_cq_t *cq, size_t dbrec_bytes);
/* Marks every CQE of a ring in host memory invalid. The caller has set the ring to zero. */
void gdk_cq_format_image(uint8_t *ring, uint32_t cqe_num);

/* Queries how many CQEs the NIC has written, modulo 2^24. cq must not belong to the SDK. */
doca_error_t gdk_cq_query_producer(const struct doca_verbs_cq_t *cq, uint32_t *producer);

/* cq_sdk.c: completion queues of the DOCA SDK. */
doca_error_t gdk_sdk_cq_create(doca_dev_t *dev, doca_verbs_cq_attr_t *attr, doca_verbs_cq_t **out);
doca_error_t gdk_sdk_cq_destroy(doca_verbs_cq_t *cq);

#endif
