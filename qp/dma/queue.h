/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The queue of a running DMA object: a queue pair that is connected to itself, the memory of the
 * copy engine's results, and the struct that threads use.
 */
#ifndef GDK_DMA_QUEUE_H
#define GDK_DMA_QUEUE_H

#ifndef GDK_BOTH_SHAPES
#define GDK_BOTH_SHAPES /* the library itself uses both interfaces */
#endif

#include "core/nic/net_dev.h"
#include "host/gdaki.h"

#include "doca_dma.h"

struct gdk_dma_queue {
	struct doca_dev *dev;
	doca_gpu_t *gpu;
	enum gdk_dma_engine engine; /* COPY or RDMA_WRITE */
	uint64_t max;		    /* bytes of one request */
	struct doca_gpu_verbs_qp_hl *qp;
	doca_gpu_verbs_service_t service; /* rings for handler CPU_PROXY, otherwise NULL */
	void *result;			  /* memory of results; NULL: RDMA writes copy */
	struct ibv_mr *result_mr;
	struct doca_gpu_dma *on_gpu; /* GPU address */
};

/* Opens a queue of `requests` slots. want: AUTO, COPY or RDMA_WRITE. */
doca_error_t gdk_dma_queue_open(struct gdk_dma_queue *q, struct doca_dev *dev, doca_gpu_t *gpu,
				enum gdk_dma_engine want, uint32_t requests);

/* If an object cannot be destroyed, it and those below it remain, and the call may be repeated. */
doca_error_t gdk_dma_queue_close(struct gdk_dma_queue *q);

/* connect.c: connects a queue pair to itself, from RST to RTS. */
doca_error_t gdk_dma_connect(struct doca_dev *dev, doca_verbs_qp_t *qp);

#endif
