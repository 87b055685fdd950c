/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * RUN(kernel, blocks, threads, arguments...) runs a kernel and waits for its end. On a
 * GPU, the process exits if this takes longer than LAUNCH_LIMIT_S seconds. The kernel
 * runs on the GPU that the rig opened or, without nvcc, on CPU threads.
 */
#ifndef CONSUMERS_LAUNCH_H
#define CONSUMERS_LAUNCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rig.h"

#define LAUNCH_LIMIT_S 60

#ifdef __CUDACC__

#include <cuda_runtime.h>

#define LAUNCH_BLOCKS 4
#define LAUNCH_BLOCK  64 /* threads per block */
#define LAUNCH_WARP   32

static inline void launch_wait(void)
{
	const struct timespec nap = { 0, 100000 };
	const time_t end = time(NULL) + LAUNCH_LIMIT_S;
	cudaError_t err = cudaGetLastError();

	while (err == cudaSuccess && (err = cudaStreamQuery(0)) == cudaErrorNotReady &&
	       time(NULL) < end) {
		nanosleep(&nap, NULL);
		err = cudaSuccess;
	}
	if (err != cudaSuccess) {
		fprintf(stderr, "kernel: %s\n", cudaGetErrorString(err));
		_Exit(1);
	}
}

static inline void launch_open(const struct rig *r)
{
	int device;

	RIG_MUST(cudaDeviceGetByPCIBusId(&device, r->gpu_name) == cudaSuccess);
	RIG_MUST(cudaSetDevice(device) == cudaSuccess);
}

#define RUN(kernel, blocks, threads, ...) \
	do { \
		kernel<<<blocks, threads>>>(__VA_ARGS__); \
		launch_wait(); \
	} while (0)

#else
#include "cuda_cpu.h"
#endif

#endif
