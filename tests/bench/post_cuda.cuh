/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Shared by the benchmarks on a GPU: checked calls of the CUDA runtime, the time, and waits that
 * end. */
#ifndef POST_CUDA_CUH
#define POST_CUDA_CUH

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CK(x) \
	do { \
		cudaError_t ck_ = (x); \
		if (ck_ != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, \
				cudaGetErrorString(ck_)); \
			exit(1); \
		} \
	} while (0)

#ifndef POST_HANG_S
#define POST_HANG_S 25 /* seconds: a kernel that takes longer is reported as hanging */
#endif

__device__ static __forceinline__ uint64_t post_now(void)
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Waits for a stream. A kernel that hangs cannot be ended, so the process reports it after
 * POST_HANG_S and exits. */
static void rig_sync(cudaStream_t s, const char *what)
{
	const double end = seconds() + POST_HANG_S;
	cudaError_t err;

	while ((err = cudaStreamQuery(s)) == cudaErrorNotReady) {
		if (seconds() > end) {
			printf("HANG\t%s\n", what);
			fflush(stdout);
			_exit(3);
		}
		usleep(50);
	}
	CK(err);
}

#endif
