/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The CUDA runtime part of the GPU test: one stream, one kernel at a time. */
#include <cuda_runtime.h>
#include <stdio.h>

#include "common/doca_gpunetio_verbs_def.h"
#include "device.h"

static cudaStream_t stream, copies;
static cudaEvent_t ended;

static int judge(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return 0;
	fprintf(stderr, "device: %s: %s\n", what, cudaGetErrorString(err));
	return -1;
}

int gt_gpu_open(const char *pci)
{
	int device;

	return judge(cudaDeviceGetByPCIBusId(&device, pci), pci) ||
			       judge(cudaSetDevice(device), pci) ||
			       judge(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
				     "stream") ||
			       judge(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking),
				     "stream") ||
			       judge(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming),
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
	return judge(cudaGetLastError(), "launch") ||
	       judge(cudaEventRecord(ended, stream), "event");
}

int gt_gpu_done(void)
{
	cudaError_t err = cudaEventQuery(ended);

	if (err == cudaErrorNotReady)
		return 0;
	return judge(err, "kernel") ? -1 : 1;
}

int gt_gpu_copy(void *dst, const void *src, size_t len)
{
	return judge(cudaMemcpyAsync(dst, src, len, cudaMemcpyDefault, copies), "copy") ||
			       judge(cudaStreamSynchronize(copies), "copy")
		       ? -1
		       : 0;
}
