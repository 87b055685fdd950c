/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Replaces tests/gpu/device_gpu.cu when the kernels run on CPU threads: one stream,
 * one grid at a time, and memory that both sides address. */
#include "../../examples/common/cuda_shim.h"
#include "../gpu/device.h"
#include "host_gpu.h"

#include <unistd.h>

#define FIRST_MS 50

static struct CUstream_st stream;
static std::atomic<int> begun, overlap;

static void first_kernel(int ms)
{
	for (; ms && !begun; ms--)
		usleep(1000);
	overlap = begun.load();
}

static void second_kernel(int)
{
	begun = 1;
}

int host_gpu_overlaps(void)
{
	GDK_LAUNCH(first_kernel, 1, 1, &stream, FIRST_MS);
	GDK_LAUNCH(second_kernel, 1, 1, &stream, 0);
	stream.grid->wait();
	return overlap;
}

int gt_gpu_open(const char *)
{
	return 0;
}

int gt_gpu_launch(const struct gt_job *job)
{
	/* These kernels use __shared__ memory, of which the process has only one copy. */
	gdk_grid::blocks_in_turn = job->op == GT_LOW_BF || job->op == GT_LOW_BF_WARP ||
				   job->op == GT_RING;
	if (job->debug)
		return gt_launch_DEBUG(job, &stream);
	if (job->mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		return gt_launch_EXCLUSIVE(job, &stream);
	if (job->mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA)
		return gt_launch_CTA(job, &stream);
	return gt_launch_GPU(job, &stream);
}

int gt_gpu_done(void)
{
	if (!stream.grid->done())
		return 0;
	stream.grid->wait();
	return 1;
}

int gt_gpu_copy(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return 0;
}
