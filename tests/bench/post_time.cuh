/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Start of the programs of the posting benchmark: device, clock rate, first row. */
#ifndef POST_TIME_CUH
#define POST_TIME_CUH

#include "post_cuda.cuh"

#define TIME_CALIBRATE_NS 2000000

__global__ void time_spin(uint64_t ns)
{
	const uint64_t end = post_now() + ns;

	while (post_now() < end)
		;
}

__global__ void time_cycles(uint64_t ns, uint64_t *elapsed)
{
	const uint64_t start = post_now();
	const long long cycles = clock64();
	uint64_t now;

	while ((now = post_now()) < start + ns)
		;
	elapsed[0] = (uint64_t)(clock64() - cycles);
	elapsed[1] = now - start;
}

/* Returns the rate of clock64() at this time, in cycles per ns. */
static inline double time_rate(void)
{
	uint64_t *dev, elapsed[2];

	CK(cudaMalloc(&dev, sizeof(elapsed)));
	time_cycles<<<1, 1>>>(TIME_CALIBRATE_NS, dev);
	CK(cudaGetLastError());
	CK(cudaMemcpy(elapsed, dev, sizeof(elapsed), cudaMemcpyDeviceToHost));
	CK(cudaFree(dev));
	return (double)elapsed[0] / (double)elapsed[1];
}

/* Returns the first row to run: the argument of --first, or 0. */
static inline int time_first(int argc, char **argv)
{
	return argc == 3 && !strcmp(argv[1], "--first") ? atoi(argv[2]) : 0;
}

/* Opens device 0 and raises the clock of an idle GPU by keeping all multiprocessors busy. */
static void time_open(void)
{
	struct cudaDeviceProp prop;

	/* Load all kernels first: loading one later would wait for the consumer, which does not
	 * end. */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	CK(cudaGetDeviceProperties(&prop, 0));
	CK(cudaSetDeviceFlags(cudaDeviceMapHost));
	if (prop.multiProcessorCount < 132)
		fprintf(stderr, "the GPU has %d multiprocessors; the rows are designed for 132\n",
			prop.multiProcessorCount);
	time_spin<<<264, 1024>>>(300000000);
	CK(cudaGetLastError());
	CK(cudaDeviceSynchronize());
}

#endif
