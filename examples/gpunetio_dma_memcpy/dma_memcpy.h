/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the parts of gpunetio_dma_memcpy share. Only copies.c uses the interface of the DOCA SDK,
 * whose headers exclude those of DOCA GPUNetIO open in the same file.
 */
#ifndef DMA_MEMCPY_H
#define DMA_MEMCPY_H

#include <stdbool.h>
#include <stdint.h>

#define DM_BUFFERS 64u /* of the source and of the destination */

struct dm_options {
	const char *gpu;    /* "host" or a PCI address */
	const char *device; /* NULL: the first NIC */
	uint32_t size, copies, threads;
	bool by_write; /* RDMA writes copy, also if the NIC has a copy engine */
};

struct dm_result {
	const char *engine;
	uint64_t max_bytes; /* of one request to the NIC */
	double seconds;	    /* negative: unknown */
	uint32_t wrong;	    /* buffers with wrong data */
};

struct doca_gpu_dma;
struct doca_gpu_buf_arr;

/* What the kernel gets, in memory that its threads can access. */
struct dm_job {
	struct doca_gpu_dma *dma;
	struct doca_gpu_buf_arr *from, *to;
	uint32_t size, copies;
};

/* copies.c: opens everything, copies, compares, closes. Returns 0 or, after a message, -1. */
int dm_run(const struct dm_options *opt, struct dm_result *result);

#endif
