/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data path of gpunetio_verbs_put_bw on a GPU, written with the DOCA device API. It is a
 * separate shared object, which put_bw_cuda.c loads if -g selects a GPU. The exported
 * functions have C linkage and throw no exceptions.
 */
#include <cuda_runtime.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "doca_gpunetio_device.h"
#include "put_bw.h"

#define BLOCK_THREADS 128
#define FULL_WARP     0xffffffffu
#define ABORT_GRACE_S 10 /* time for aborted threads to end */

/* A warp-scope put needs all lanes, so all lanes of a warp must stop if one of them failed. */
template <enum doca_gpu_dev_verbs_exec_scope scope> __device__ bool any_failed(int rc)
{
	if (scope == DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP)
		return __any_sync(FULL_WARP, rc != 0);
	return rc != 0;
}

template <enum doca_gpu_dev_verbs_exec_scope scope>
__global__ void put_bw(struct put_bw_job job, int *status)
{
	const struct put_bw_shape *s = &job.shape;
	uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
	int rc = 0;

	if (thread >= s->threads)
		return;
	for (uint32_t i = 0; i < s->iters; i++) {
		uint64_t slot = put_bw_slot(s, thread, i);
		doca_gpu_dev_verbs_ticket_t ticket;
		struct doca_gpu_dev_verbs_addr to, from;

		to.addr = job.dst_addr + slot;
		to.key = job.rkey_be;
		from.addr = job.src_addr + slot;
		from.key = job.lkey_be;
		put_bw_stamp(s, job.src + slot, thread, i);
		doca_gpu_dev_verbs_put<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
				       DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, scope>(
			job.qp, to, from, s->size, &ticket);
		if ((i + 1) % job.batch == 0 || i + 1 == s->iters)
			rc = doca_gpu_dev_verbs_poll_cq_at<
				DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(
				doca_gpu_dev_verbs_qp_get_cq_sq(job.qp), ticket);
		if (any_failed<scope>(rc))
			break;
	}
	status[thread] = rc;
}

static int cuda_error(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return 0;
	fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(err));
	return -EIO;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Polls the stream, because a blocking wait would never return if the kernel hangs. */
static cudaError_t wait_stream(cudaStream_t stream, double bound_s)
{
	const struct timespec nap = { 0, 50000 };
	double end = now_s() + bound_s;
	cudaError_t err;

	while ((err = cudaStreamQuery(stream)) == cudaErrorNotReady && now_s() < end)
		nanosleep(&nap, NULL);
	return err;
}

static int wait_or_abort(const struct put_bw_job *job, cudaStream_t stream)
{
	cudaError_t err = wait_stream(stream, job->timeout_s);

	if (err != cudaErrorNotReady)
		return cuda_error(err, "kernel");
	job->abort(job->arg);
	err = wait_stream(stream, ABORT_GRACE_S);
	if (err == cudaErrorNotReady)
		fprintf(stderr, "error: the kernel did not end after the abort\n");
	return -ETIMEDOUT;
}

static void launch(const struct put_bw_job *job, cudaStream_t stream, int *status)
{
	uint32_t block = job->shape.threads < BLOCK_THREADS ? job->shape.threads : BLOCK_THREADS;
	uint32_t grid = (job->shape.threads + block - 1) / block;

	if (job->warp)
		put_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>
			<<<grid, block, 0, stream>>>(*job, status);
	else
		put_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>
			<<<grid, block, 0, stream>>>(*job, status);
}

static int first_failure(const int *status, uint32_t threads)
{
	for (uint32_t t = 0; t < threads; t++)
		if (status[t])
			return status[t];
	return 0;
}

static int run_on(struct put_bw_job *job, cudaStream_t stream, int *status)
{
	double start = now_s();
	int rc;

	launch(job, stream, status);
	rc = cuda_error(cudaGetLastError(), "launch");
	if (!rc)
		rc = wait_or_abort(job, stream);
	job->seconds = now_s() - start;
	return rc ? rc : first_failure(status, job->shape.threads);
}

static int select_gpu(const char *pci)
{
	int device, rc = cuda_error(cudaDeviceGetByPCIBusId(&device, pci), pci);

	return rc ? rc : cuda_error(cudaSetDevice(device), pci);
}

extern "C" int put_bw_gpu_run(struct put_bw_job *job)
{
	cudaStream_t stream;
	int *status, rc = select_gpu(job->gpu);

	if (rc)
		return rc;
	rc = cuda_error(cudaHostAlloc((void **)&status, job->shape.threads * sizeof(int),
				      cudaHostAllocDefault),
			"status memory");
	if (rc)
		return rc;
	memset(status, 0xff, job->shape.threads * sizeof(int)); /* -1: the thread did not run */
	rc = cuda_error(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
	if (rc)
		goto free_status;
	rc = run_on(job, stream, status);
	if (rc != -ETIMEDOUT)
		cudaStreamDestroy(stream);
free_status:
	if (rc != -ETIMEDOUT) /* after a timeout, GPU threads can still write to status */
		cudaFreeHost(status);
	return rc;
}

extern "C" int put_bw_gpu_copy(const char *gpu, void *dst, const void *src, size_t len)
{
	int rc = select_gpu(gpu);

	return rc ? rc : cuda_error(cudaMemcpy(dst, src, len, cudaMemcpyDefault), "copy");
}
