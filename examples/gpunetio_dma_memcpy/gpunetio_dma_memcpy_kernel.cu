/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Threads of one block post copies of buffers; one thread commits them, and all wait. */
#include "dma_memcpy.h"
#include "grid_kernel.cuh"

#include "doca_gpunetio_dev_buf.cuh"
#include "doca_gpunetio_dev_dma.cuh"

static __device__ __forceinline__ doca_error_t post(const struct dm_job *dm)
{
	struct doca_gpu_buf *from = NULL, *to = NULL;
	doca_error_t err = DOCA_SUCCESS;

	for (uint32_t i = threadIdx.x; !err && i < dm->copies; i += blockDim.x) {
		doca_gpu_dev_buf_get_buf(dm->from, i % DM_BUFFERS, &from);
		doca_gpu_dev_buf_get_buf(dm->to, i % DM_BUFFERS, &to);
		err = doca_gpu_dev_dma_memcpy(dm->dma, from, 0, to, 0, dm->size);
	}
	return err;
}

__global__ void dma_memcpy(struct ex_job job)
{
	const struct dm_job *dm = (const struct dm_job *)job.arg;
	doca_error_t err = post(dm), committed = DOCA_SUCCESS;

	__syncthreads();
	if (threadIdx.x == 0)
		committed = doca_gpu_dev_dma_commit(dm->dma);
	if (!err)
		err = committed;
	if (!err)
		err = gdk_gpu_dev_dma_wait_all(dm->dma, 0);
	job.status[threadIdx.x] = (int)err;
}

EX_KERNELS(dma_memcpy, dma_memcpy)
