/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The threads of a block receive together. Each makes replies of its packets, in the slots where
 * they are, and sends them from there. A receive releases the slots of the packets before it, so
 * the threads first wait until their sends are complete.
 */
#ifndef __CUDACC__
#define GDK_WARP 32 /* CPU threads are in warps, too */
#endif
#include "echo.h"
#include "grid_kernel.cuh"

#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"

#define WAIT_NS 1000000ull /* of a receive, before the kernel tests stop */
#define CTA	DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA /* the threads of the block */

typedef unsigned long long count_t; /* the type of CUDA's atomic functions */

static __device__ __forceinline__ void swap(uint8_t *a, uint8_t *b, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++) {
		const uint8_t old = a[i];

		a[i] = b[i];
		b[i] = old;
	}
}

/* Makes a reply of a request. Returns its kind, or EC_KINDS if the packet is no request. Sums of
 * swapped words do not change, so only that of ICMP does, by its type (RFC 1624). */
static __device__ uint32_t answer(uint8_t *frame, uint32_t len)
{
	uint8_t *ip = frame + ET_ETH, *l4 = ip + ET_IP;
	uint32_t kind = EC_KINDS;

	if (len < ET_HEAD || et_get16(frame + 12) != 0x0800 || ip[0] != 0x45 ||
	    (et_get16(ip + 6) & 0x3fff)) /* a fragment */
		return EC_KINDS;
	if (ip[9] == ET_PROTO_ICMP && et_get16(l4) == EC_REQUEST << 8)
		kind = EC_ICMP;
	else if (ip[9] == ET_PROTO_UDP && et_get16(l4 + 2) == EC_PORT)
		kind = EC_UDP;
	else
		return EC_KINDS;
	swap(frame, frame + 6, 6);
	swap(ip + 12, ip + 16, 4);
	if (kind == EC_UDP) {
		swap(l4, l4 + 2, 2);
		return kind;
	}
	l4[0] = EC_REPLY;
	et_put16(l4 + 2, et_checksum((~et_get16(l4 + 2) & 0xffff) + (0xffff - (EC_REQUEST << 8))));
	return kind;
}

/* Answers packets first, first + blockDim.x, ... of a batch. */
static __device__ doca_error_t answer_all(struct ec_job *ec, uint64_t first, uint32_t num)
{
	const uint32_t key = doca_gpu_dev_eth_rxq_get_pkt_mkey(ec->rxq);
	doca_gpu_dev_eth_ticket_t ticket = 0;
	doca_error_t err = DOCA_SUCCESS;
	bool sent = false;

	for (uint32_t i = threadIdx.x; !err && i < num; i += blockDim.x) {
		const uint64_t at = doca_gpu_dev_eth_rxq_get_pkt_addr(ec->rxq, first + i);
		const uint32_t len = gdk_eth_pkt_bytes(ec->rxq, first + i);
		const uint32_t kind = answer((uint8_t *)at, len);

		atomicAdd((count_t *)(kind < EC_KINDS ? &ec->answered[kind] : &ec->others),
			  (count_t)1);
		if (kind == EC_KINDS)
			continue;
		sent = true;
		err = doca_gpu_dev_eth_txq_send<CTA, DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA>(
			ec->txq, at, key, len, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, &ticket);
	}
	if (err || !sent)
		return err;
	return gdk_eth_error(gdk_eth_wait_for(ec->txq, ticket, (gdk_mode_t)CTA));
}

static __device__ doca_error_t run(struct ec_job *ec)
{
	__shared__ uint64_t first;
	__shared__ uint32_t num, end;
	doca_error_t err;

	do {
		err = doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>(
			ec->rxq, 0, WAIT_NS, &first, &num, nullptr);
		if (!err)
			err = answer_all(ec, first, num);
		if (threadIdx.x == 0)
			end = DOCA_GPUNETIO_VOLATILE(ec->stop);
		if (__syncthreads_or(err != DOCA_SUCCESS))
			return err;
	} while (!end);
	return DOCA_SUCCESS;
}

__global__ void __launch_bounds__(ET_THREADS_MAX) echo(struct ex_job job)
{
	job.status[threadIdx.x] = (int)run((struct ec_job *)job.arg);
}

EX_KERNELS(echo, nullptr)
