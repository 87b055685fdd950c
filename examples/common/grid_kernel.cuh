/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The start of a grid of threads, for the kernels of the examples. A file NAME_kernel.cu includes
 * kernel.cuh and ends with EX_KERNELS(), which defines the table of grid.h. nvcc compiles the file
 * to libNAME_cuda.so, and the C++ compiler to a part of the program, for which cuda_shim.h
 * replaces CUDA.
 *
 * A hung kernel must not block the process: no function here waits for a kernel, and close()
 * leaves one that still runs alone.
 */
#ifndef EXAMPLES_GRID_KERNEL_CUH
#define EXAMPLES_GRID_KERNEL_CUH

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cuda_shim.h"
#include "grid.h"

typedef void (*ex_kernel_t)(struct ex_job job);

#ifdef __CUDACC__

#define EX_GRID ex_grid_cuda

static struct {
	int device;
	cudaStream_t kernels, copies; /* non-blocking: neither waits for other streams */
	cudaEvent_t begin, end;	      /* before and after the last kernel */
	bool opened;
} ex_grid;

/* Returns 0, or prints the error and returns -EIO. */
static int ex_grid_check(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return 0;
	fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(err));
	return -EIO;
}

static int ex_grid_open(const char *gpu)
{
	int rc = ex_grid_check(cudaDeviceGetByPCIBusId(&ex_grid.device, gpu), gpu);

	if (!rc)
		rc = ex_grid_check(cudaSetDevice(ex_grid.device), gpu);
	if (!rc)
		rc = ex_grid_check(
			cudaStreamCreateWithFlags(&ex_grid.kernels, cudaStreamNonBlocking),
			"CUDA stream");
	if (!rc)
		rc = ex_grid_check(
			cudaStreamCreateWithFlags(&ex_grid.copies, cudaStreamNonBlocking),
			"CUDA stream");
	if (!rc)
		rc = ex_grid_check(cudaEventCreate(&ex_grid.begin), "CUDA event");
	if (!rc)
		rc = ex_grid_check(cudaEventCreate(&ex_grid.end), "CUDA event");
	ex_grid.opened = !rc;
	return rc;
}

static int ex_grid_launch(ex_kernel_t kernel, const struct ex_job *job)
{
	int rc = ex_grid_check(cudaSetDevice(ex_grid.device), "GPU");

	if (!rc)
		rc = ex_grid_check(cudaEventRecord(ex_grid.begin, ex_grid.kernels), "CUDA event");
	if (rc)
		return rc;
	GDK_LAUNCH(kernel, job->num_queues * job->blocks, job->threads / job->blocks,
		   ex_grid.kernels, *job);
	rc = ex_grid_check(cudaGetLastError(), "start of the kernel");
	return rc ? rc : ex_grid_check(cudaEventRecord(ex_grid.end, ex_grid.kernels), "CUDA event");
}

static int ex_grid_done(void)
{
	cudaError_t err = cudaStreamQuery(ex_grid.kernels);

	if (err == cudaErrorNotReady)
		return 0;
	return err == cudaSuccess ? 1 : ex_grid_check(err, "kernel");
}

static double ex_grid_seconds(void)
{
	float ms;

	return cudaEventElapsedTime(&ms, ex_grid.begin, ex_grid.end) == cudaSuccess ? 1e-3 * ms
										    : -1;
}

static int ex_grid_copy(void *dst, const void *src, size_t len)
{
	int rc = ex_grid_check(cudaSetDevice(ex_grid.device), "GPU");

	if (!rc)
		rc = ex_grid_check(
			cudaMemcpyAsync(dst, src, len, cudaMemcpyDefault, ex_grid.copies), "copy");
	return rc ? rc : ex_grid_check(cudaStreamSynchronize(ex_grid.copies), "copy");
}

static void ex_grid_close(void)
{
	if (!ex_grid.opened || cudaStreamQuery(ex_grid.kernels) == cudaErrorNotReady)
		return;
	cudaEventDestroy(ex_grid.begin);
	cudaEventDestroy(ex_grid.end);
	cudaStreamDestroy(ex_grid.kernels);
	cudaStreamDestroy(ex_grid.copies);
	ex_grid.opened = false;
}

#else

#define EX_GRID ex_grid_cpu

static gdk_grid *ex_grid; /* the last one that was launched */
/* Times at which its first thread began and its last one ended, in ns. */
static std::atomic<uint64_t> ex_grid_begin, ex_grid_end;

static int ex_grid_open(const char *)
{
	return 0;
}

/* Waits for the threads of the last grid and frees it. */
static void ex_grid_free(void)
{
	delete ex_grid;
	ex_grid = nullptr;
}

static void ex_grid_thread(ex_kernel_t kernel, const struct ex_job &job)
{
	uint64_t now = gdk_now_ns(), old = ex_grid_begin;

	while (now < old && !ex_grid_begin.compare_exchange_weak(old, now))
		;
	kernel(job);
	now = gdk_now_ns();
	old = ex_grid_end;
	while (now > old && !ex_grid_end.compare_exchange_weak(old, now))
		;
}

static int ex_grid_launch(ex_kernel_t kernel, const struct ex_job *job)
{
	const struct ex_job copy = *job;

	ex_grid_free();
	ex_grid_begin = UINT64_MAX;
	ex_grid_end = 0;
	try {
		ex_grid = new gdk_grid(job->num_queues * job->blocks, job->threads / job->blocks,
				       [kernel, copy] { ex_grid_thread(kernel, copy); });
	} catch (const std::system_error &) {
		fprintf(stderr, "error: cannot create a thread\n");
		return -EAGAIN;
	}
	return 0;
}

static int ex_grid_done(void)
{
	if (!ex_grid)
		return 1;
	if (!ex_grid->done())
		return 0;
	if (!ex_grid->failed())
		return 1;
	fprintf(stderr, "error: cannot create the threads: use fewer (-t, -q), or allow more "
			"(ulimit -u)\n");
	return -EAGAIN;
}

static double ex_grid_seconds(void)
{
	return 1e-9 * (double)(ex_grid_end - ex_grid_begin);
}

static int ex_grid_copy(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return 0;
}

static void ex_grid_close(void)
{
	if (ex_grid && ex_grid->done())
		ex_grid_free();
}

#endif

/* thread_kernel or warp_kernel executes a job, depending on its member warp. A program without
 * warp scope has nullptr for warp_kernel. */
#define EX_KERNELS(thread_kernel, warp_kernel) \
	static int ex_grid_start(const struct ex_job *job) \
	{ \
		const ex_kernel_t kernels[] = { thread_kernel, warp_kernel }; \
\
		return kernels[job->warp] ? ex_grid_launch(kernels[job->warp], job) : -ENOTSUP; \
	} \
	extern "C" { \
	extern const struct ex_grid_ops EX_GRID; \
	const struct ex_grid_ops EX_GRID = { ex_grid_open,    ex_grid_start, ex_grid_done, \
					     ex_grid_seconds, ex_grid_copy,  ex_grid_close }; \
	}

#endif
