/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The kernels that send in the GPU test of Ethernet queues. The file is compiled once for each
 * sharing mode (ET_MODE, the last word of the enumerator), so that the compilations run in
 * parallel. g++ also compiles it, for CPU threads.
 */
#include "../../examples/common/cuda_shim.h"

#include <doca_gpunetio_dev_eth_txq.cuh>

#include "eth.h"

#define ET_JOIN2(a, b) a##b
#define ET_JOIN(a, b)  ET_JOIN2(a, b)

namespace
{

constexpr auto mode = ET_JOIN(DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_, ET_MODE);
constexpr auto verbs_mode = (gdk_mode_t)mode;
/* A group may post to an exclusive queue, but then its threads wait at the same time. */
constexpr gdk_mode_t wait_mode = mode == DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE
					 ? DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
					 : verbs_mode;
constexpr auto SYNC = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU;
constexpr auto AUTO = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO;
constexpr auto THREAD = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD;
constexpr auto WARP = DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP;
constexpr auto BLOCK = DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK;
typedef enum doca_gpu_dev_eth_exec_scope scope_type;

/* Returns whether any thread of the group failed, so that all return together. */
template <scope_type scope> __device__ bool group_failed(bool failed)
{
	if constexpr (scope == WARP)
		return __any_sync(0xffffffffu, failed);
	if constexpr (scope == BLOCK)
		return __syncthreads_or(failed);
	return failed;
}

/* Waits until the receiver has taken enough packets that this one fits in its ring. */
__device__ static int wait_for_window(const struct et_job &j, uint32_t number)
{
	const uint64_t start = gdk_now_ns();

	for (uint32_t i = 0; number >= gdk_ld64(&j.result->received, GDK_SCOPE_GPU) + j.window;
	     i++) {
		if (gdk_now_ns() - start > j.limit_ns)
			return -ETIMEDOUT;
		gdk_relax(i);
#ifndef __CUDACC__ /* leaves the processor to the NIC and to the program on the other side */
		std::this_thread::sleep_for(std::chrono::microseconds(200));
#endif
	}
	return 0;
}

__device__ static struct gdk_eth_pkt packet(const struct et_job &j, uint32_t number)
{
	uint32_t *p = (uint32_t *)(j.buf + (size_t)number * ET_SLOT);
	const uint32_t words = et_words(number);

	for (uint32_t i = 0; i < words; i++)
		p[i] = et_word(number, i, 0);
	return gdk_eth_pkt((uintptr_t)p, j.key, words * 4);
}

template <int how, scope_type scope>
__device__ int post(const struct et_job &j, uint32_t k, uint32_t thread, uint64_t *ticket)
{
	const uint32_t threads = j.blocks * j.threads;
	const auto flags = k + 1 == j.rounds || (j.notify && (thread + k) % j.notify == 0)
				   ? DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY
				   : DOCA_GPUNETIO_ETH_SEND_FLAG_NONE;
	struct gdk_eth_pkt pkts[ET_EACH_MAX];

	for (uint32_t i = 0; i < j.each; i++)
		pkts[i] = packet(j, (k * j.each + i) * threads + thread);
	if constexpr (how == ET_MULTI) { /* all lanes have the same flags */
		return gdk_eth_send_multi(j.txq, pkts, j.each, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY,
					  gdk_how(verbs_mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
						  DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP, 0),
					  ticket);
	} else if constexpr (how == ET_BY_HAND) {
		*ticket = doca_gpu_dev_eth_txq_reserve_wq_slots<mode>(j.txq, 1);
		if (doca_gpu_dev_eth_txq_wqe_prepare_send(
			    j.txq, doca_gpu_dev_eth_txq_get_wqe_ptr(j.txq, *ticket), *ticket,
			    pkts[0].addr, pkts[0].mkey, pkts[0].bytes, flags))
			return ET_EBADDATA;
		doca_gpu_dev_eth_txq_submit<mode, SYNC, AUTO>(j.txq, *ticket + 1);
		return gdk_state_status(gdk_state_of_qp(&j.txq->qp));
	} else {
		return doca_gpu_dev_eth_txq_send<mode, SYNC, AUTO, scope>(
			       j.txq, pkts[0].addr, pkts[0].mkey, pkts[0].bytes, flags, ticket)
			       ? gdk_state_status(gdk_state_of_qp(&j.txq->qp))
			       : 0;
	}
}

template <int how, scope_type scope>
__device__ int send_packets(const struct et_job &j, uint32_t thread)
{
	const uint32_t threads = j.blocks * j.threads;
	uint64_t ticket = 0;
	int err = 0;

	for (uint32_t k = 0; k < j.rounds; k++) {
		err = wait_for_window(j, ((k + 1) * j.each - 1) * threads + thread);
		if (group_failed<scope>(err != 0))
			return err ? err : -ECONNABORTED;
		err = post<how, scope>(j, k, thread, &ticket);
		if (group_failed<scope>(err != 0))
			return err ? err : -ECONNABORTED;
	}
	if (ticket < j.first_tx)
		return ET_EBADDATA;
	return gdk_eth_wait_for(j.txq, ticket, wait_mode);
}

/* Thread 0 reserves slot 0 and never writes it. The threads wait for it, or for a free slot, until
 * the host aborts the queue. */
__device__ static int wait_for_hole(const struct et_job &j, uint32_t thread)
{
	uint64_t at;
	int err = 0;

	if (thread == 0)
		err = gdk_eth_reserve(j.txq, 1, verbs_mode, &at);
	for (uint32_t i = 0; !gdk_ld64(&j.txq->wqe_pi, GDK_SCOPE_GPU) && i < 1u << 24; i++)
		gdk_relax(i);
	while (!err)
		err = thread % 2 ? gdk_eth_reserve(j.txq, 1, verbs_mode, &at)
				 : gdk_eth_wait_for(j.txq, 0, wait_mode);
	return err;
}

/* Each thread in turn has the least value. */
__device__ static int least_values(const struct et_job &j)
{
	const uint32_t rank = gdk_block_rank(), size = gdk_block_size();
	int err = 0;

	for (uint32_t k = 0; k < size; k++) {
		const uint32_t all = gdk_block_min32((rank + size - k) % size + 7 * k);

		err = all == 7 * k ? err : ET_EBADDATA;
		if (size % gdk_warp_size() == 0) {
			const uint32_t lane = gdk_lane(), lanes = gdk_warp_size();
			const uint32_t warp = gdk_warp_min32((lane + k) % lanes + k);

			err = warp == k ? err : ET_EBADDATA;
		}
	}
	(void)j;
	return err;
}

template <int how, scope_type scope> __global__ void kernel(const struct et_job j)
{
	const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
	int err;

	if constexpr (how == ET_LEAST)
		err = least_values(j);
	else if constexpr (how == ET_HOLE)
		err = wait_for_hole(j, thread);
	else
		err = send_packets<how, scope>(j, thread);
	gdk_any_st32_rel((uint32_t *)&j.sent[thread], (uint32_t)err, GDK_SCOPE_SYS);
}

} // namespace

#define ET_LAUNCH_IF(h, scope) \
	do { \
		if (job->how == (h) && job->exec == (scope)) { \
			GDK_LAUNCH((kernel<h, scope>), job->blocks, job->threads, \
				   (cudaStream_t)stream, *job); \
			return 0; \
		} \
	} while (0)

extern "C" int ET_JOIN(et_send_, ET_MODE)(const struct et_job *job, void *stream)
{
	ET_LAUNCH_IF(ET_SEND, THREAD);
	ET_LAUNCH_IF(ET_SEND, WARP);
	ET_LAUNCH_IF(ET_SEND, BLOCK);
	ET_LAUNCH_IF(ET_BY_HAND, THREAD);
	ET_LAUNCH_IF(ET_MULTI, WARP);
	ET_LAUNCH_IF(ET_HOLE, THREAD);
	ET_LAUNCH_IF(ET_LEAST, THREAD);
	return -1;
}
