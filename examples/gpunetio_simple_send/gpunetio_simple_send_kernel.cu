/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * All threads send numbered packets through one send queue. In warp and block scope the threads of
 * a group call the functions together, and one doorbell is rung for all of them.
 */
#ifndef __CUDACC__
#define GDK_WARP 32 /* CPU threads are in warps, too */
#endif
#include "simple_send.h"
#include "grid_kernel.cuh"

#include "doca_gpunetio_dev_eth_txq.cuh"

#define SHARED DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU /* all threads may use the queue */
#define MULTI  4u /* packets of a thread in one call of send_multi() */

/* Writes packet i of this thread. */
static __device__ struct gdk_eth_pkt make_packet(const struct ss_job *ss, uint32_t i)
{
	const uint32_t slot = i * blockDim.x + threadIdx.x;
	uint8_t *frame = ss->frames + (size_t)slot * ss->size;

	et_write(frame, &ss->flow, ss->size, ss->first + slot, false);
	return gdk_eth_pkt((uint64_t)frame, ss->key, ss->size);
}

template <enum doca_gpu_dev_eth_exec_scope scope>
static __device__ doca_error_t send(const struct ss_job *ss)
{
	doca_gpu_dev_eth_ticket_t ticket = 0;
	doca_error_t err = DOCA_SUCCESS;
	uint32_t i;

	for (i = 0; !err && i < ss->each; i++) {
		const struct gdk_eth_pkt pkt = make_packet(ss, i);

		/* The last packet of a thread generates a completion, for the wait below. */
		err = doca_gpu_dev_eth_txq_send<SHARED, DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
						DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO, scope>(
			ss->txq, pkt.addr, pkt.mkey, pkt.bytes,
			i + 1 < ss->each ? DOCA_GPUNETIO_ETH_SEND_FLAG_NONE
					 : DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY,
			&ticket);
	}
	return err ? err : gdk_eth_error(gdk_eth_wait_for(ss->txq, ticket, (gdk_mode_t)SHARED));
}

/* A warp sends the packets of all its threads in a few WQEs, each with up to 61 packets. */
static __device__ doca_error_t send_multi(const struct ss_job *ss)
{
	const struct gdk_how how = gdk_how((gdk_mode_t)SHARED, GDK_AUTO,
					   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP, 0);
	doca_gpu_dev_eth_ticket_t ticket = 0;
	struct gdk_eth_pkt pkts[MULTI];
	uint32_t i, k, num;
	int err = 0;

	for (i = 0; !err && i < ss->each; i += num) {
		num = ss->each - i < MULTI ? ss->each - i : MULTI;
		for (k = 0; k < num; k++)
			pkts[k] = make_packet(ss, i + k);
		err = gdk_eth_send_multi(ss->txq, pkts, num,
					 i + num < ss->each ? DOCA_GPUNETIO_ETH_SEND_FLAG_NONE
							    : DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY,
					 how, &ticket);
	}
	return gdk_eth_error(err ? err : gdk_eth_wait_for(ss->txq, ticket, (gdk_mode_t)SHARED));
}

__global__ void __launch_bounds__(ET_THREADS_MAX) simple_send(struct ex_job job)
{
	const struct ss_job *ss = (const struct ss_job *)job.arg;
	doca_error_t err;

	if (ss->multi)
		err = send_multi(ss);
	else if (ss->scope == ET_THREAD)
		err = send<DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>(ss);
	else if (ss->scope == ET_WARP)
		err = send<DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP>(ss);
	else
		err = send<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>(ss);
	job.status[threadIdx.x] = (int)err;
}

EX_KERNELS(simple_send, nullptr)
