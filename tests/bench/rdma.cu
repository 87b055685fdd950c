/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures how many operations per second the threads of a block post through the RDMA library: on
 * one connection, strong or weak, with a commit by one thread after each round of the block, or
 * with a commit by each thread. As in post.cu, a consumer verifies every WQE (post_nic.cuh), and
 * the time runs until the last one is verified. tests/bench/rdma.sh builds and runs it.
 */
#define GDK_BOTH_SHAPES /* the RDMA library has the SDK's interface */
#include "post_doca.cuh"

#include "post_run.cuh"

#include "gdk_rdma_send_dev.h"

__device__ static struct gdk_rdma_conn bench_conn;
__device__ static struct doca_gpu_dev_rdma bench_rdma;

/* Makes the queue pair connection 0 of the object. */
__device__ static __forceinline__ void bench_connect(uint8_t *qps)
{
	if (threadIdx.x == 0) {
		bench_conn.qp = (uint64_t)(uintptr_t)qps;
		bench_conn.committed = 0;
		bench_conn.commits = 0;
		bench_conn.waited = 0;
		bench_rdma.conns = (uint64_t)(uintptr_t)&bench_conn;
		bench_rdma.num = 1;
		__threadfence();
	}
	__syncthreads();
}

/* WEAK: position k. EACH: each thread commits its own operation, otherwise thread 0 those of the
 * block. */
template <bool WEAK, bool EACH>
__global__ void bench_writes(uint8_t *qps, uint32_t, uint32_t iters, uint32_t,
			     struct post_clock *clock)
{
	uint64_t k = threadIdx.x;
	uint32_t commits;

	bench_connect(qps);
	if (threadIdx.x == 0)
		clock->start_ns = post_now();
	for (uint32_t i = 0; i < iters; i++, k += blockDim.x) {
		const struct doca_gpu_dev_verbs_addr r = { POST_RADDR + k * POST_STEP, POST_RKEY };
		const struct doca_gpu_dev_verbs_addr l = { POST_LADDR + k * POST_STEP, POST_LKEY };
		const struct gdk_op_move m = gdk_move_of(GDK_MOVE_WRITE, r, l, 4096);

		gdk_rdma_post(&bench_rdma, 0, &m, 0,
			      WEAK ? gdk_rdma_at((uint32_t)k) : gdk_rdma_next());
		if (EACH) {
			gdk_rdma_commit_strong(&bench_rdma, 0);
			continue;
		}
		__syncthreads();
		if (threadIdx.x == 0)
			(void)(WEAK ? gdk_rdma_commit_weak(&bench_rdma, 0, blockDim.x)
				    : gdk_rdma_commit_strong(&bench_rdma, 0));
		/* Weak writers need the commit to know the next free positions. */
		__syncthreads();
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		gdk_rdma_wait_all(&bench_rdma, &commits);
		clock->end_ns = post_now();
	}
}

static struct post_row row(const char *name, post_kernel kernel, uint32_t threads)
{
	struct post_row r = {};

	r.name = name;
	r.checked = kernel;
	r.handler = POST_DB;
	r.granule = 1;
	r.shape = { 1, threads, 1, 4096 };
	r.bytes = 4096;
	r.every = 1;
	return r;
}

static std::vector<struct post_row> table(void)
{
	return {
		row("strong, 1 thread, a commit each", bench_writes<false, false>, 1),
		row("strong, 32 threads, a commit per block", bench_writes<false, false>, 32),
		row("strong, 256 threads, a commit per block", bench_writes<false, false>, 256),
		row("strong, 32 threads, a commit each", bench_writes<false, true>, 32),
		row("strong, 256 threads, a commit each", bench_writes<false, true>, 256),
		row("weak, 1 thread, a commit each", bench_writes<true, false>, 1),
		row("weak, 32 threads, a commit per block", bench_writes<true, false>, 32),
		row("weak, 256 threads, a commit per block", bench_writes<true, false>, 256),
	};
}

static std::vector<struct post_row> matrix(void)
{
	return {};
}

int main(int argc, char **argv)
{
	return run_main(argc, argv, table, matrix);
}
