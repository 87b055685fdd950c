/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls the functions of DMA as NVIDIA's sample gpunetio_dma_memcpy does: a copy that the CPU
 * submits, and copies of a kernel. tests/doca_calls.sh compiles this file as C, C++ and CUDA.
 * Without arguments the program only ends.
 */
#include <stdio.h>
#include <string.h>

#include <doca_buf_array.h>
#include <doca_dma.h>
#include <doca_error.h>
#include <doca_gpunetio_dev_dma.cuh>
#include <doca_pe.h>

static uint8_t is_task_done;

static void on_end(struct doca_dma_task_memcpy *task, union doca_data task_user_data,
		   union doca_data ctx_user_data)
{
	(void)task;
	(void)task_user_data;
	(void)ctx_user_data;
	is_task_done = 1;
}

/* What kernels call; with nvcc on the device. */
GDK_FN doca_error_t copy(struct doca_gpu_dma *dma, struct doca_gpu_buf_arr *from,
			 struct doca_gpu_buf_arr *to, uint32_t idx)
{
	struct doca_gpu_buf *src = NULL, *dst = NULL;
	uint64_t ticket = 0;
	doca_error_t ret;

	doca_gpu_dev_buf_get_buf(from, idx, &src);
	doca_gpu_dev_buf_get_buf(to, idx, &dst);
	doca_gpu_dev_dma_memcpy(dma, src, 0, dst, 0, 1024);
	ret = gdk_gpu_dev_dma_memcpy(dma, src, 0, dst, 0, 1024, &ticket);
	if (ret == DOCA_SUCCESS)
		ret = doca_gpu_dev_dma_commit(dma);
	if (ret == DOCA_SUCCESS)
		ret = gdk_gpu_dev_dma_wait(dma, ticket, 0);
	return ret == DOCA_SUCCESS ? gdk_gpu_dev_dma_wait_all(dma, 0) : ret;
}

#ifdef __CUDACC__
__global__ void kernel(struct doca_gpu_dma *dma, struct doca_gpu_buf_arr *from,
		       struct doca_gpu_buf_arr *to)
{
	if (copy(dma, from, to, threadIdx.x) != DOCA_SUCCESS)
		printf("thread %u failed\n", threadIdx.x);
}
#endif

static doca_error_t submit(struct doca_dma *dma, struct doca_pe *pe, struct doca_buf *src,
			   struct doca_buf *dst)
{
	struct doca_dma_task_memcpy *memcpy_task;
	union doca_data user_data;
	struct doca_task *task;
	doca_error_t ret;

	user_data.u64 = 0;
	ret = doca_dma_task_memcpy_alloc_init(dma, src, dst, user_data, &memcpy_task);
	if (ret != DOCA_SUCCESS)
		return ret;
	task = doca_dma_task_memcpy_as_task(memcpy_task);
	ret = doca_task_submit(task);
	while (ret == DOCA_SUCCESS && !is_task_done)
		(void)doca_pe_progress(pe);
	if (ret == DOCA_SUCCESS)
		ret = doca_task_get_status(task);
	doca_task_free(task);
	return ret;
}

static int use(struct doca_dev *dev, struct doca_gpu *gpu, struct doca_buf *src,
	       struct doca_buf *dst)
{
	enum gdk_dma_engine engine;
	struct doca_gpu_dma *on_gpu;
	struct doca_pe *pe = NULL;
	struct doca_dma *dma;
	struct doca_ctx *ctx;

	if (doca_dma_create(dev, &dma) != DOCA_SUCCESS)
		return 1;
	ctx = doca_dma_as_ctx(dma);
	doca_ctx_set_datapath_on_gpu(ctx, gpu);
	doca_dma_task_memcpy_set_conf(dma, on_end, on_end, 1);
	gdk_dma_set_engine(dma, GDK_DMA_ENGINE_AUTO);
	gdk_dma_set_queue_size(dma, 64);
	doca_ctx_start(ctx);
	doca_dma_get_gpu_handle(dma, &on_gpu);
	gdk_dma_set_wait_limit(dma, 1000000000);
	if (gdk_dma_get_engine(dma, &engine, NULL) == DOCA_SUCCESS)
		puts(gdk_dma_engine_text(engine));
#ifdef __CUDACC__
	kernel<<<1, 32>>>(on_gpu, NULL, NULL);
#else
	copy(on_gpu, NULL, NULL, 0);
#endif
	submit(dma, pe, src, dst);
	gdk_dma_abort(dma);
	doca_ctx_stop(ctx);
	return doca_dma_destroy(dma) != DOCA_SUCCESS;
}

int main(int argc, char **argv)
{
	(void)argv;
	return argc > 1 && use(NULL, NULL, NULL, NULL);
}
