/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Each burst has a packet of each thread. The threads post it for a time in the future, then they
 * receive it, and compare the NIC's time of arrival of each packet with the time of the burst.
 */
#ifndef __CUDACC__
#define GDK_WARP 32 /* CPU threads are in warps, too */
#endif
#include "send_wait_time.h"
#include "grid_kernel.cuh"

#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"

#define SUMS_OK (GDK_ETH_L3_OK | GDK_ETH_L4_OK)

typedef unsigned long long count_t; /* the type of CUDA's atomic functions */

static __device__ __forceinline__ void add(uint64_t *counter, uint64_t n)
{
	if (n)
		atomicAdd((count_t *)counter, (count_t)n);
}

static __device__ doca_error_t post(const struct wt_job *wt, uint32_t burst)
{
	uint8_t *frame = wt->frames + (size_t)threadIdx.x * wt->size;
	doca_gpu_dev_eth_ticket_t ticket;

	et_write(frame, &wt->flow, wt->size, burst * blockDim.x + threadIdx.x, true);
	/* The group has one time. The completion of its first packet tells how late it was. */
	return doca_gpu_dev_eth_txq_wait_send<
		DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA, DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA,
		DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO, DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>(
		wt->txq, wt->when[burst], (uint64_t)frame, wt->key, wt->size,
		threadIdx.x ? DOCA_GPUNETIO_ETH_SEND_FLAG_NONE : DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY,
		&ticket);
}

/* Checks packets first, first + blockDim.x, ... of a burst. */
static __device__ void check(struct wt_job *wt, uint32_t burst, uint64_t first, uint32_t num)
{
	const uint64_t at = wt->at[burst];
	uint32_t i, len, number;

	for (i = threadIdx.x; i < num; i += blockDim.x) {
		const uint8_t *frame =
			(const uint8_t *)doca_gpu_dev_eth_rxq_get_pkt_addr(wt->rxq, first + i);
		const uint64_t came = doca_gpu_dev_eth_rxq_get_pkt_ts(wt->rxq, first + i);

		len = gdk_eth_pkt_bytes(wt->rxq, first + i);
		add(&wt->bad_sums, (gdk_eth_pkt_checks(wt->rxq, first + i) & SUMS_OK) != SUMS_OK);
		if (!et_right(frame, &wt->flow, len, wt->size, &number) ||
		    number / blockDim.x != burst)
			add(&wt->changed, 1);
		else if (atomicAdd(&wt->seen[number], 1u))
			add(&wt->repeated, 1);
		else
			add(&wt->received, 1);
		add(&wt->early, came < at);
		add(&wt->late_sum, came < at ? 0 : came - at);
		if (came > at)
			atomicMax((count_t *)&wt->late_max, (count_t)(came - at));
	}
}

static __device__ doca_error_t run(struct wt_job *wt)
{
	__shared__ uint64_t first;
	__shared__ uint32_t num;
	doca_error_t err;

	for (uint32_t burst = 0; burst < wt->bursts; burst++) {
		err = post(wt, burst);
		if (__syncthreads_or(err != DOCA_SUCCESS))
			return err;
		err = doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>(
			wt->rxq, blockDim.x, wt->quiet_ns, &first, &num, nullptr);
		if (err)
			return err;
		check(wt, burst, first, num);
		__syncthreads(); /* all threads have read first and num */
	}
	return DOCA_SUCCESS;
}

__global__ void __launch_bounds__(ET_THREADS_MAX) send_wait_time(struct ex_job job)
{
	job.status[threadIdx.x] = (int)run((struct wt_job *)job.arg);
}

EX_KERNELS(send_wait_time, nullptr)
