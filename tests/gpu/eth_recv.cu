/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The kernel that receives in the GPU test of Ethernet queues, and launches on two streams: the
 * sender and the receiver run at the same time. g++ also compiles this file, for CPU threads.
 */
#include "../../examples/common/cuda_shim.h"

#include <doca_gpunetio_dev_eth_rxq.cuh>

#include "eth.h"

namespace
{

constexpr auto THREAD = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD;
constexpr auto WARP = DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP;
constexpr auto BLOCK = DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK;
constexpr uint64_t ROUND_NS = 100000000; /* of a receive that has a limit */

/* Counts packet idx of the queue, and compares it with what was sent. */
__device__ static void take(const struct et_job &j, uint64_t idx)
{
	const volatile uint32_t *p =
		(const volatile uint32_t *)doca_gpu_dev_eth_rxq_get_pkt_addr(j.rxq, idx);
	const uint32_t number = p[ET_HEAD_WORD - 1];
	uint32_t wrong = number >= et_packets(&j);

	if (!wrong) {
		wrong = gdk_eth_pkt_bytes(j.rxq, idx) != et_words(number) * 4;
		for (uint32_t i = 0; i < et_words(number); i++)
			wrong |= p[i] != et_word(number, i, j.swapped);
		atomicAdd(&j.seen[number], 1u);
	}
	if (wrong) {
		atomicAdd(&j.result->wrong, 1u);
		j.result->first_wrong = number;
	}
}

template <enum doca_gpu_dev_eth_exec_scope exec> __device__ int receive(const struct et_job &j)
{
	const uint32_t size = gdk_eth_size(exec), rank = gdk_eth_rank(exec);
	const uint64_t limit = j.limit_ns == UINT64_MAX ? UINT64_MAX : ROUND_NS;
	uint64_t last = gdk_now_ns(), first = 0;
	uint32_t total = 0, num = 0;

	while (total < et_packets(&j)) {
		const auto err = doca_gpu_dev_eth_rxq_recv<exec, DOCA_GPUNETIO_ETH_MCST_DISABLED>(
			j.rxq, j.max_pkts, limit, &first, &num, NULL);

		if (err)
			return err == DOCA_ERROR_CONNECTION_ABORTED ? -ECANCELED : -EIO;
		if (first != j.first_rx + total)
			return ET_EBADDATA;
		for (uint32_t i = rank; i < num; i += size)
			take(j, first + i);
		total += num;
		if (rank == 0)
			gdk_st64(&j.result->received, total, GDK_SCOPE_GPU);
		/* The result is that of the group: the threads' clocks differ. */
		last = num ? gdk_now_ns() : last;
		if (gdk_eth_least(gdk_now_ns() - last > j.limit_ns ? 0 : 1, exec) == 0)
			return -ETIMEDOUT;
	}
	return 0;
}

/* A queue has one receiver: the first thread, warp or block. */
template <enum doca_gpu_dev_eth_exec_scope exec> __global__ void kernel(const struct et_job j)
{
	int err = 0;

	if (threadIdx.x < gdk_eth_size(exec))
		err = receive<exec>(j);
	gdk_any_st32_rel((uint32_t *)&j.got[threadIdx.x], (uint32_t)err, GDK_SCOPE_SYS);
}

} // namespace

#ifdef __CUDACC__

static cudaStream_t streams[2], copies;
static cudaEvent_t ended[2];
static bool launched[2];

static int check_cuda(cudaError_t err, const char *what)
{
	if (err == cudaSuccess)
		return 0;
	fprintf(stderr, "eth: %s: %s\n", what, cudaGetErrorString(err));
	return -1;
}

static int open_stream(cudaStream_t *stream)
{
	return check_cuda(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "stream");
}

int et_gpu_open(const char *pci)
{
	int device;

	if (check_cuda(cudaDeviceGetByPCIBusId(&device, pci), pci) ||
	    check_cuda(cudaSetDevice(device), pci) || open_stream(&copies))
		return -1;
	for (int i = 0; i < 2; i++)
		if (open_stream(&streams[i]) ||
		    check_cuda(cudaEventCreateWithFlags(&ended[i], cudaEventDisableTiming),
			       "event"))
			return -1;
	return 0;
}

static int after_launch(int i)
{
	launched[i] = true;
	return check_cuda(cudaGetLastError(), "launch") ||
	       check_cuda(cudaEventRecord(ended[i], streams[i]), "event");
}

int et_gpu_done(void)
{
	for (int i = 0; i < 2; i++) {
		if (!launched[i])
			continue;
		const cudaError_t err = cudaEventQuery(ended[i]);

		if (err == cudaErrorNotReady)
			return 0;
		if (check_cuda(err, "kernel"))
			return -1;
		launched[i] = false;
	}
	return 1;
}

int et_gpu_copy(void *dst, const void *src, size_t len)
{
	return check_cuda(cudaMemcpyAsync(dst, src, len, cudaMemcpyDefault, copies), "copy") ||
	       check_cuda(cudaStreamSynchronize(copies), "copy");
}

#else

static CUstream_st grids[2];
static cudaStream_t const streams[2] = { &grids[0], &grids[1] };

int et_gpu_open(const char *)
{
	return 0;
}

static int after_launch(int)
{
	return 0;
}

int et_gpu_done(void)
{
	for (auto &s : grids) {
		if (!s.grid)
			continue;
		if (!s.grid->done())
			return 0;
		if (s.grid->failed())
			return -1;
		s.grid.reset();
	}
	return 1;
}

int et_gpu_copy(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return 0;
}

#endif

int et_gpu_send(const struct et_job *job)
{
	int rc;

	if (job->mode == DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE)
		rc = et_send_EXCLUSIVE(job, streams[0]);
	else if (job->mode == DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA)
		rc = et_send_CTA(job, streams[0]);
	else
		rc = et_send_GPU(job, streams[0]);
	return rc ? rc : after_launch(0);
}

int et_gpu_recv(const struct et_job *job)
{
	if (job->rx_exec == THREAD)
		GDK_LAUNCH((kernel<THREAD>), 1, job->rx_threads, streams[1], *job);
	else if (job->rx_exec == WARP)
		GDK_LAUNCH((kernel<WARP>), 1, job->rx_threads, streams[1], *job);
	else
		GDK_LAUNCH((kernel<BLOCK>), 1, job->rx_threads, streams[1], *job);
	return after_launch(1);
}
