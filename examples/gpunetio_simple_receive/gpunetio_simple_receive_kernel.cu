/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The threads of a block receive together, and divide the packets among them to check each byte.
 * The block is one group of the scope: a thread, a warp, or all threads.
 */
#ifndef __CUDACC__
#define GDK_WARP 32 /* CPU threads are in warps, too */
#endif
#include "simple_receive.h"
#include "grid_kernel.cuh"

#include "doca_gpunetio_dev_eth_rxq.cuh"

#define WAIT_NS 1000000ull /* of a receive, before the kernel tests stop */
#define QUIET	20u	   /* receives without a packet after the last one that is expected */
#define SUMS_OK (GDK_ETH_L3_OK | GDK_ETH_L4_OK)

typedef unsigned long long count_t; /* the type of CUDA's atomic functions */

static __device__ __forceinline__ void add(uint64_t *counter, uint64_t n)
{
	if (n)
		atomicAdd((count_t *)counter, (count_t)n);
}

/* Checks packets first, first + blockDim.x, ... of a batch. */
static __device__ void check(struct sr_job *sr, uint64_t first, uint32_t num)
{
	uint64_t received = 0, bytes = 0, repeated = 0, changed = 0, bad_sums = 0;
	uint32_t i, len, number;

	for (i = threadIdx.x; i < num; i += blockDim.x) {
		const uint8_t *frame =
			(const uint8_t *)doca_gpu_dev_eth_rxq_get_pkt_addr(sr->rxq, first + i);

		len = gdk_eth_pkt_bytes(sr->rxq, first + i);
		bytes += len;
		bad_sums += (gdk_eth_pkt_checks(sr->rxq, first + i) & SUMS_OK) != SUMS_OK;
		if (!et_right(frame, &sr->flow, len, sr->size, &number) || number >= sr->packets)
			changed++;
		else if (atomicAdd(&sr->seen[number], 1u))
			repeated++;
		else
			received++;
	}
	add(&sr->received, received);
	add(&sr->bytes, bytes);
	add(&sr->repeated, repeated);
	add(&sr->changed, changed);
	add(&sr->bad_sums, bad_sums);
}

/* Thread 0, after a receive of num packets. Returns whether the kernel ends. */
static __device__ bool count(struct sr_job *sr, uint32_t num, uint64_t *all, uint32_t *quiet)
{
	*all += num;
	*quiet = num ? 0 : *quiet + 1;
	if (num) {
		sr->last_ns = gdk_now_ns();
		if (!sr->batches++)
			sr->first_ns = sr->last_ns;
	}
	return (*all >= sr->packets && *quiet >= QUIET) || DOCA_GPUNETIO_VOLATILE(sr->stop);
}

template <enum doca_gpu_dev_eth_exec_scope scope>
static __device__ doca_error_t receive(struct sr_job *sr)
{
	__shared__ uint64_t first;
	__shared__ uint32_t num, end;
	uint32_t quiet = 0;
	uint64_t all = 0;
	doca_error_t err;

	do {
		err = doca_gpu_dev_eth_rxq_recv<scope>(sr->rxq, 0, WAIT_NS, &first, &num, nullptr);
		if (err)
			return err;
		check(sr, first, num);
		if (threadIdx.x == 0)
			end = count(sr, num, &all, &quiet);
		__syncthreads(); /* all threads have checked their packets */
	} while (!end);
	return DOCA_SUCCESS;
}

__global__ void __launch_bounds__(ET_THREADS_MAX) simple_receive(struct ex_job job)
{
	struct sr_job *sr = (struct sr_job *)job.arg;
	doca_error_t err;

	if (sr->scope == ET_THREAD)
		err = receive<DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>(sr);
	else if (sr->scope == ET_WARP)
		err = receive<DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP>(sr);
	else
		err = receive<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>(sr);
	job.status[threadIdx.x] = (int)err;
}

EX_KERNELS(simple_receive, nullptr)
