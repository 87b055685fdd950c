/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Holds a kernel that occupies the whole GPU and does not end. First measures which calls of CUDA
 * wait for it, for information. Then passes queue pairs through their life (spin_life.h): no call
 * may wait. If a call takes longer than its limit, a thread ends the kernel, the call is reported,
 * and the next call starts with a new kernel. So one run finds all calls that wait.
 * usage: spin GPU	(PCI address). Exit status 1: a call waited.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern "C" {
#include "spin_c.h"
}

#define PROBE_S 1.0 /* limit of a call of CUDA */
#define LIFE_S	3.0 /* limit of a call of the library */
#define TOTAL_S 90  /* limit of the program */

static volatile int *ended;	/* host memory that the kernel polls */
static volatile int *ended_gpu; /* its address on the GPU */
static cudaStream_t stream;
static int blocks;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all of the following */
static const char *call;				 /* NULL: no call runs */
static unsigned int call_qp;
static double since, limit, slowest;
static char slowest_call[160];
static int late, failures;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return;
	printf("FAIL  spin: %s: %s\n", what, cudaGetErrorString(err));
	_exit(1);
}

/* One thread of each block polls, with pauses: if all polled, they would fill the bus to the host,
 * and copies would take milliseconds. */
__global__ void spin(volatile int *flag)
{
	if (threadIdx.x == 0)
		while (!*flag)
			__nanosleep(1000);
	__syncthreads();
}

static void start_kernel(void)
{
	*ended = 0;
	spin<<<blocks, 1024, 0, stream>>>(ended_gpu);
	must(cudaGetLastError(), "kernel");
	usleep(2000);
	if (cudaStreamQuery(stream) != cudaErrorNotReady) {
		printf("FAIL  spin: the kernel does not run\n");
		_exit(1);
	}
}

static void end_kernel(void)
{
	*ended = 1;
	must(cudaStreamSynchronize(stream), "end of the kernel");
}

/* Ends the kernel if the current call is late. */
static void *watch(void *)
{
	const double start = now();

	for (;;) {
		usleep(20000);
		pthread_mutex_lock(&lock);
		if (call && !late && now() - since > limit) {
			late = 1;
			*ended = 1;
		}
		if (now() - start > TOTAL_S) {
			printf("FAIL  spin: not complete after %d s; in %s, QP %u, for %.1f s\n",
			       TOTAL_S, call ? call : "no call", call_qp, now() - since);
			_exit(1);
		}
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* Ends the measurement of a call. Returns 1 if the kernel had to be ended for it. */
static int call_end(void)
{
	int was_late;

	pthread_mutex_lock(&lock);
	was_late = late;
	if (call && !late && now() - since > slowest) {
		slowest = now() - since;
		snprintf(slowest_call, sizeof(slowest_call), "%s, QP %u", call, call_qp);
	}
	call = NULL;
	late = 0;
	pthread_mutex_unlock(&lock);
	if (was_late) {
		end_kernel();
		start_kernel();
	}
	return was_late;
}

static void call_begin(const char *what, unsigned int qp, double seconds)
{
	pthread_mutex_lock(&lock);
	call = what;
	call_qp = qp;
	limit = seconds;
	since = now();
	pthread_mutex_unlock(&lock);
}

/* ---- calls of CUDA ---- */

static char *mem, *small, *host;
static cudaStream_t other;

#define PROBE(text, expr) \
	do { \
		double begun = now(); \
		cudaError_t err_; \
		int waited; \
		call_begin(text, 0, PROBE_S); \
		err_ = (expr); \
		begun = now() - begun; \
		waited = call_end(); \
		printf("      %-44s %10.1f us  %s%s\n", text, begun * 1e6, \
		       waited ? "waits for the kernel" : "", \
		       err_ == cudaSuccess ? "" : cudaGetErrorString(err_)); \
	} while (0)

/* Calls of the driver that the runtime does not have. The library has loaded the driver. */
static cudaError_t sync_memops(void *ptr)
{
	int (*set)(const void *, int, unsigned long long);
	int on = 1;

	*(void **)&set = dlsym(RTLD_DEFAULT, "cuPointerSetAttribute");
	return set ? (cudaError_t)set(&on, 6, (unsigned long long)(uintptr_t)ptr)
		   : cudaErrorNotSupported;
}

static cudaError_t export_dmabuf(void *ptr, size_t len)
{
	int (*get)(void *, unsigned long long, size_t, int, unsigned long long);
	int fd = -1, err;

	*(void **)&get = dlsym(RTLD_DEFAULT, "cuMemGetHandleForAddressRange");
	err = get ? get(&fd, (unsigned long long)(uintptr_t)ptr, len, 1, 0) : cudaErrorNotSupported;
	if (fd >= 0)
		close(fd);
	return (cudaError_t)err;
}

static void probe(void)
{
	static char pageable[65536];
	void *pages = NULL, *pool = NULL;

	PROBE("cuMemAlloc of 4 KiB", cudaMalloc((void **)&small, 4096));
	PROBE("cuMemAlloc of 64 MiB", cudaMalloc((void **)&mem, 64 << 20));
	PROBE("cuPointerSetAttribute, SYNC_MEMOPS", sync_memops(mem));
	PROBE("cuMemGetHandleForAddressRange", export_dmabuf(mem, 64 << 20));
	PROBE("cuStreamCreate", cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	PROBE("cuMemcpyHtoDAsync, own stream, and sync",
	      (cudaMemcpyAsync(mem, pageable, 65536, cudaMemcpyHostToDevice, other),
	       cudaStreamSynchronize(other)));
	PROBE("cuMemcpyDtoHAsync, own stream, and sync",
	      (cudaMemcpyAsync(pageable, mem, 65536, cudaMemcpyDeviceToHost, other),
	       cudaStreamSynchronize(other)));
	PROBE("cuMemcpyHtoD, legacy stream",
	      cudaMemcpy(mem, pageable, 65536, cudaMemcpyHostToDevice));
	PROBE("cuMemHostAlloc of 1 MiB", cudaHostAlloc((void **)&host, 1 << 20, 0));
	must(posix_memalign(&pages, 4096, 65536) ? cudaErrorMemoryAllocation : cudaSuccess,
	     "memory");
	PROBE("cuMemHostRegister", cudaHostRegister(pages, 65536, cudaHostRegisterMapped));
	PROBE("cuMemAllocAsync and sync",
	      (cudaMallocAsync(&pool, 65536, other), cudaStreamSynchronize(other)));
	PROBE("cuMemFreeAsync", cudaFreeAsync(pool, other));
	PROBE("cuMemsetD8Async, own stream, and sync",
	      (cudaMemsetAsync(mem, 0, 65536, other), cudaStreamSynchronize(other)));
	PROBE("cuMemHostUnregister", cudaHostUnregister(pages));
	PROBE("cuMemFreeHost", cudaFreeHost(host));
	PROBE("cuMemFree of 4 KiB", cudaFree(small));
	PROBE("cuMemFree of 64 MiB", cudaFree(mem));
	PROBE("cuStreamDestroy", cudaStreamDestroy(other));
	free(pages);
}

/* ---- calls of the library ---- */

static void finish_step(void)
{
	char text[160];
	unsigned int qp;
	double took;

	pthread_mutex_lock(&lock);
	snprintf(text, sizeof(text), "%s", call ? call : "");
	qp = call_qp;
	took = now() - since;
	pthread_mutex_unlock(&lock);
	if (!call_end())
		return;
	printf("FAIL  waited for the kernel, which was ended after %.0f s: %s, QP %u (%.3f s)\n",
	       LIFE_S, text, qp, took);
	if (++failures == 8) {
		printf("FAIL  spin: too many failures\n");
		_exit(1);
	}
}

static void step(const char *what, unsigned int qp)
{
	finish_step();
	call_begin(what, qp, LIFE_S);
}

static void open_kernel(const char *pci)
{
	cudaDeviceProp prop;
	pthread_t thread;
	int device;

	must(cudaDeviceGetByPCIBusId(&device, pci), pci);
	must(cudaSetDevice(device), "cudaSetDevice");
	must(cudaGetDeviceProperties(&prop, device), "properties");
	must(cudaHostAlloc((void **)&ended, sizeof(*ended), cudaHostAllocMapped), "flag");
	must(cudaHostGetDevicePointer((void **)&ended_gpu, (void *)ended, 0), "flag");
	must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
	must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, spin, 1024, 0), "occupancy");
	blocks *= prop.multiProcessorCount;
	must(pthread_create(&thread, NULL, watch, NULL) ? cudaErrorUnknown : cudaSuccess, "thread");
}

int main(int argc, char **argv)
{
	double start;

	if (argc != 2) {
		fprintf(stderr, "usage: spin GPU\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_kernel(argv[1]);
	spin_nic_open(argv[1]);
	start_kernel();
	printf("      a kernel of %d blocks of 1024 threads runs; calls of CUDA:\n", blocks);
	probe();
	slowest = 0;
	start = now();
	spin_nic_life(step);
	finish_step();
	start = now() - start;
	if (cudaStreamQuery(stream) != cudaErrorNotReady) {
		printf("FAIL  spin: the kernel has ended\n");
		failures++;
	}
	end_kernel();
	spin_nic_close();
	printf("      slowest call: %s, %.3f ms\n", slowest_call, slowest * 1e3);
	printf("%s  life of %u queue pairs, twice, while a kernel runs: %.2f s, %d calls waited\n",
	       failures ? "FAIL" : "ok  ", spin_num_qps, start, failures);
	return failures ? 1 : 0;
}
