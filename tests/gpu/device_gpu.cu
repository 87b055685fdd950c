/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The CUDA runtime part of the GPU test: opens the GPU, launches one kernel at a time
 * on one stream, and copies memory. tests/kernels/host_gpu.cpp replaces it for CPU
 * threads. */
#include <cuda_runtime.h>
#include <stdio.h>

#include "common/doca_gpunetio_verbs_def.h"
#include "device.h"

static cudaStream_t stream, copies;
static cudaEvent_t ended;

static int check_cuda(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return 0;
	fprintf(stderr, "device: %s: %s\n", what, cudaGetErrorString(err));
	return -1;
}

int gt_gpu_open(const char *pci)
{
	int device;

	return check_cuda(cudaDeviceGetByPCIBusId(&device, pci), pci) ||
			       check_cuda(cudaSetDevice(device), pci) ||
			       check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
					  "stream") ||
			       check_cuda(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking),
					  "stream") ||
			       check_cuda(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming),
					  "event")
		       ? -1
		       : 0;
}

int gt_gpu_launch(const struct gt_job *job)
{
	int rc = -1;

	if (job->debug)
		rc = gt_launch_DEBUG(job, stream);
	else if (job->mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		rc = gt_launch_EXCLUSIVE(job, stream);
	else if (job->mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA)
		rc = gt_launch_CTA(job, stream);
	else if (job->mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU)
		rc = gt_launch_GPU(job, stream);
	if (rc)
		return rc;
	return check_cuda(cudaGetLastError(), "launch") ||
	       check_cuda(cudaEventRecord(ended, stream), "event");
}

int gt_gpu_done(void)
{
	cudaError_t err = cudaEventQuery(ended);

	if (err == cudaErrorNotReady)
		return 0;
	return check_cuda(err, "kernel") ? -1 : 1;
}

int gt_gpu_copy(void *dst, const void *src, size_t len)
{
	return check_cuda(cudaMemcpyAsync(dst, src, len, cudaMemcpyDefault, copies), "copy") ||
			       check_cuda(cudaStreamSynchronize(copies), "copy")
		       ? -1
		       : 0;
}
