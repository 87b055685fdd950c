/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The rows of receives: how many packets per second GPU threads receive by gdk_eth_recv(), without
 * a NIC: all CQEs are there. Beside each row runs a reference: a loop that tests one CQE per thread
 * and does the least that a receive must do (one fence per batch, one DBREC, the bytes of each
 * packet), without limits, errors, time or state. Each receiver reads the bytes of all packets;
 * their sum verifies that it has read each packet's CQE.
 */
#ifndef ETH_RECV_CUH
#define ETH_RECV_CUH

#include "gdk_sdk_eth_rxq_dev.h"

#include "post_time.cuh"

#include <algorithm>

#define CQES   (1u << 17) /* of a queue */
#define QUEUES 32u
#define TURNS  5   /* runs of a row */
#define DBREC  64u /* words from one DBREC to the next */

/* Packet i has 64 + i % 1009 bytes. */
static __host__ __device__ uint32_t bytes_of(uint32_t i)
{
	return 64 + i % 1009;
}

__global__ static void fill(uint32_t *cqes)
{
	const uint32_t stride = gridDim.x * blockDim.x;

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < CQES * QUEUES; i += stride) {
		const uint32_t k = i % CQES;

		cqes[i * 16ull + 15] = 0x20u << 24 | gdk_bswap16((uint16_t)k);
		cqes[i * 16ull + 11] = gdk_bswap32(bytes_of(k));
	}
}

/* Each thread receives 4 packets in a call; a single thread 64, as often as the reference rings. */
template <enum doca_gpu_dev_eth_exec_scope EXEC>
__global__ static void ours(struct doca_gpu_eth_rxq *rxqs, unsigned long long *sum,
			    unsigned long long *packets)
{
	struct doca_gpu_eth_rxq *rxq = rxqs + blockIdx.x;
	const uint32_t rank = gdk_eth_rank(EXEC), size = gdk_eth_size(EXEC);
	const uint32_t most = size == 1 ? 64 : 4 * size;
	unsigned long long s = 0, n = 0;
	struct gdk_eth_batch batch;

	while (n < CQES && gdk_eth_recv(rxq, most, 1000000, 0, EXEC, &batch) == 0 && batch.num) {
		for (uint32_t i = rank; i < batch.num; i += size)
			s += gdk_eth_pkt_bytes(rxq, batch.first + i);
		n += batch.num;
	}
	atomicAdd(sum, s);
	if (rank == 0)
		atomicAdd(packets, n);
}

__device__ static uint32_t load(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.sys.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

__device__ static uint32_t load_acquire(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.acquire.sys.u32 %0,[%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

__device__ static void store_release(uint32_t *p, uint32_t v)
{
	asm volatile("st.release.sys.u32 [%0],%1;" ::"l"(p), "r"(v) : "memory");
}

template <enum doca_gpu_dev_eth_exec_scope EXEC>
__global__ static void reference(const uint32_t *cqes, uint32_t *dbrecs, unsigned long long *sum)
{
	const uint32_t *c = cqes + (size_t)blockIdx.x * CQES * 16;
	const uint32_t threads = EXEC == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD ? 1 : blockDim.x;
	uint32_t *dbrec = dbrecs + blockIdx.x * DBREC;
	unsigned long long s = 0;

	for (uint32_t i = threadIdx.x; i < CQES; i += threads) {
		const uint32_t *cqe = c + i * 16ull;

		if constexpr (EXEC == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD) {
			while (load_acquire(cqe + 15) >> 28 != 2)
				;
			s += gdk_bswap32(load(cqe + 11));
			if (i % 64 == 63)
				store_release(dbrec, i);
		} else {
			while (load(cqe + 15) >> 28 != 2)
				;
			asm volatile("fence.acq_rel.sys;" ::: "memory");
			s += gdk_bswap32(load(cqe + 11));
			if constexpr (EXEC == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP)
				__syncwarp();
			else
				__syncthreads();
			if (!threadIdx.x)
				store_release(dbrec, i + threads);
		}
	}
	atomicAdd(sum, s);
}

static struct bench {
	uint32_t *cqes, *dbrecs;
	struct doca_gpu_eth_rxq *rxqs;
	unsigned long long *sums; /* of bytes, and of packets */
} bench;

static void reset(uint32_t *dbrecs)
{
	static struct doca_gpu_eth_rxq rxqs[QUEUES];

	memset(rxqs, 0, sizeof(rxqs));
	for (uint32_t q = 0; q < QUEUES; q++) {
		rxqs[q].cqes = (uintptr_t)(bench.cqes + (size_t)q * CQES * 16);
		rxqs[q].dbrec = (uintptr_t)(dbrecs + q * DBREC);
		rxqs[q].num = CQES;
		rxqs[q].stride = 2048;
	}
	CK(cudaMemcpy(bench.rxqs, rxqs, sizeof(rxqs), cudaMemcpyHostToDevice));
	CK(cudaMemset(bench.sums, 0, 2 * sizeof(*bench.sums)));
}

template <enum doca_gpu_dev_eth_exec_scope EXEC>
static void launch(bool our, uint32_t queues, uint32_t threads, uint32_t *dbrecs)
{
	if (our)
		ours<EXEC><<<queues, threads>>>(bench.rxqs, bench.sums, bench.sums + 1);
	else
		reference<EXEC><<<queues, threads>>>(bench.cqes, dbrecs, bench.sums);
}

/* Returns 10^6 packets per second, or 0 if the sum is wrong. */
template <enum doca_gpu_dev_eth_exec_scope EXEC>
static double one(bool our, uint32_t queues, uint32_t threads, uint32_t *dbrecs)
{
	unsigned long long sums[2], want = 0;
	cudaEvent_t from, to;
	float ms;

	reset(dbrecs);
	CK(cudaEventCreate(&from));
	CK(cudaEventCreate(&to));
	CK(cudaEventRecord(from));
	launch<EXEC>(our, queues, threads, dbrecs);
	CK(cudaGetLastError());
	CK(cudaEventRecord(to));
	rig_sync(0, our ? "gdk_eth_recv" : "reference");
	CK(cudaEventElapsedTime(&ms, from, to));
	CK(cudaEventDestroy(from));
	CK(cudaEventDestroy(to));
	CK(cudaMemcpy(sums, bench.sums, sizeof(sums), cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < CQES; i++)
		want += bytes_of(i);
	if (sums[0] != want * queues || (our && sums[1] != (unsigned long long)CQES * queues)) {
		printf("FAILED: sum of bytes %llu instead of %llu, %llu packets\n", sums[0],
		       want * queues, sums[1]);
		return 0;
	}
	return (double)CQES * queues / ms / 1e3;
}

/* One row: our rate (median, minimum, maximum) and the reference's median, run in turn. */
template <enum doca_gpu_dev_eth_exec_scope EXEC>
static void recv_row(const char *scope, uint32_t queues, uint32_t threads, const char *where,
		     uint32_t *dbrecs)
{
	double rate[2][TURNS];
	char what[80];

	for (int r = -1; r < TURNS; r++)
		for (int our = 0; our < 2; our++) {
			const double m = one<EXEC>(our, queues, threads, dbrecs);

			if (r >= 0)
				rate[our][r] = m;
		}
	for (int our = 0; our < 2; our++)
		std::sort(rate[our], rate[our] + TURNS);
	snprintf(what, sizeof(what), "%s, %u queue%s, DBREC in %s memory", scope, queues,
		 queues > 1 ? "s" : "", where);
	printf("recv\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.3f\t%.1f\n", what, rate[1][TURNS / 2],
	       rate[1][0], rate[1][TURNS - 1], rate[0][TURNS / 2],
	       rate[1][TURNS / 2] / rate[0][TURNS / 2],
	       EXEC == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP ? 1.5 : 0.7);
	fflush(stdout);
}

static void recv_rows_of(const char *where, uint32_t *dbrecs)
{
	static const uint32_t queues[] = { 1, 4, QUEUES };

	for (uint32_t q : queues) {
		recv_row<DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>("thread", q, 1, where, dbrecs);
		recv_row<DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP>("warp", q, 32, where, dbrecs);
		recv_row<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>("block of 256", q, 256, where, dbrecs);
		recv_row<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>("block of 1024", q, 1024, where,
							     dbrecs);
	}
}

static void recv_rows(void)
{
	uint32_t *host;

	CK(cudaMalloc(&bench.cqes, (size_t)CQES * QUEUES * 64));
	CK(cudaMalloc(&bench.dbrecs, QUEUES * DBREC * 4));
	CK(cudaMalloc(&bench.rxqs, QUEUES * sizeof(*bench.rxqs)));
	CK(cudaMalloc(&bench.sums, 2 * sizeof(*bench.sums)));
	CK(cudaHostAlloc(&host, QUEUES * DBREC * 4, cudaHostAllocMapped));
	CK(cudaMemset(bench.cqes, 0, (size_t)CQES * QUEUES * 64));
	fill<<<264, 256>>>(bench.cqes);
	CK(cudaGetLastError());
	CK(cudaDeviceSynchronize());
	recv_rows_of("GPU", bench.dbrecs);
	recv_rows_of("host", host);
}

#endif
