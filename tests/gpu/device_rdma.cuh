/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Operations of the RDMA library in the GPU test: GT_RDMA_STRONG, GT_RDMA_WEAK. The connections of
 * the object are the QPs of the job, which are connected to themselves. Writes, writes that carry
 * their data, and reads take turns, so the lanes of a warp post different ones. The scope of a job
 * is the group that posts before one of its threads commits and waits for all commits.
 */
#ifndef GT_DEVICE_RDMA_CUH
#define GT_DEVICE_RDMA_CUH

#include "device_recv.cuh"
#include "gdk_rdma_send_dev.h"

namespace
{

typedef struct doca_gpu_dev_rdma rdma_type;

__device__ static rdma_type *rdma_of(const struct gt_job &j)
{
	return (rdma_type *)(j.gpu + j.counters + GT_RDMA);
}

__device__ static struct gt_rdma *rdma_words(const struct gt_job &j)
{
	return (struct gt_rdma *)(j.gpu + j.counters + GT_RDMA_WORDS);
}

/* ---- groups ---- */

template <scope_type scope> __device__ uint32_t group_size(void)
{
	return scope == THREAD ? 1 : scope == WARP ? (uint32_t)warpSize : (uint32_t)blockDim.x;
}

template <scope_type scope> __device__ uint32_t group_rank(void)
{
	return (uint32_t)threadIdx.x % group_size<scope>();
}

/* Returns the value of rank 0. All threads of the group meet. */
template <scope_type scope> __device__ uint64_t from_first(const struct gt_job &j, uint64_t v)
{
	volatile uint64_t *passed = &rdma_words(j)->passed[blockIdx.x];

	if constexpr (scope == WARP)
		return __shfl_sync(0xffffffffu, v, 0);
	if constexpr (scope == BLOCK) {
		if (threadIdx.x == 0)
			*passed = v;
		__syncthreads();
		v = *passed;
		__syncthreads();
	}
	return v;
}

template <scope_type scope> __device__ void group_sync(void)
{
	if constexpr (scope == WARP)
		__syncwarp();
	if constexpr (scope == BLOCK)
		__syncthreads();
}

/* ---- operations ---- */

__device__ static int rdma_post(const struct gt_job &j, uint32_t conn, const struct op_at &o,
				struct gdk_rdma_at at)
{
	const struct chunk<24> data = chunk_of<24>(j, o.k);
	struct gdk_op_move m;

	stamp(j, o);
	if (o.k % 3 == 0)
		m = gdk_move_of(GDK_MOVE_WRITE, o.dst, o.src, j.size);
	else if (o.k % 3 == 1)
		m = gdk_move_inline(o.dst, data.b, j.size);
	else
		m = gdk_move_of(GDK_MOVE_READ, o.src_r, o.dst_l, j.size);
	return gdk_rdma_post(rdma_of(j), conn, &m, 0, at);
}

/* One thread has committed. Waits for all commits, and adds up the numbers that waits return. */
__device__ static int rdma_wait(const struct gt_job &j)
{
	struct gt_rdma *w = rdma_words(j);
	uint32_t num;
	int err;

	gdk_red_add64(&w->made, 1, GDK_SCOPE_GPU);
	err = gdk_rdma_wait_all(rdma_of(j), &num);
	gdk_red_add64(&w->counted, num, GDK_SCOPE_GPU);
	return err;
}

/* ---- strong ---- */

template <scope_type scope> __device__ int commit_strong(const struct gt_job &j, uint32_t conn)
{
	int err = 0;

	group_sync<scope>();
	if (group_rank<scope>() == 0) {
		err = gdk_rdma_commit_strong(rdma_of(j), conn);
		err = err ? err : rdma_wait(j);
	}
	return (int)(int64_t)from_first<scope>(j, (uint64_t)(int64_t)err);
}

template <scope_type scope>
__device__ int rdma_strong(const struct gt_job &j, uint32_t conn, uint64_t thread)
{
	uint32_t posted = 0;
	int err;

	for (uint32_t i = 0; i < j.iters; i++) {
		const uint64_t k = thread * j.iters + i;

		err = rdma_post(j, conn, op_at(j, k), gdk_rdma_next());
		if (any_lane_failed<scope>(err != 0))
			return err ? err : -ECONNABORTED;
		if (++posted < j.batch && i + 1 < j.iters)
			continue;
		err = commit_strong<scope>(j, conn);
		for (; !err && posted; posted--)
			err = compare(j, op_at(j, k + 1 - posted));
		if (any_lane_failed<scope>(err != 0))
			return err ? err : -ECONNABORTED;
	}
	return 0;
}

/* ---- weak ---- */

#define RDMA_FAILED UINT64_MAX

__device__ static int rdma_failed(struct gt_rdma *w)
{
	return gdk_ld32(&w->failed, GDK_SCOPE_GPU) != 0;
}

/* Returns n positions that are free once the positions `depth` before them are committed. */
__device__ static uint64_t reserve_weak(const struct gt_job &j, uint32_t conn, uint32_t n)
{
	struct gt_rdma *w = rdma_words(j);
	const uint64_t from = gdk_rmw_add64(&w->reserved[conn], n, GDK_SCOPE_GPU);

	for (uint32_t spins = 0;
	     from + n - gdk_ld64_acq(&w->turn[conn], GDK_SCOPE_GPU) > j.depth;) {
		if (rdma_failed(w))
			return RDMA_FAILED;
		gdk_relax(spins++);
	}
	return from;
}

/* Commits in the order of the positions, as NIXL does. */
__device__ static int commit_in_turn(const struct gt_job &j, uint32_t conn, uint64_t from,
				     uint32_t n)
{
	struct gt_rdma *w = rdma_words(j);
	int err;

	for (uint32_t spins = 0; gdk_ld64_acq(&w->turn[conn], GDK_SCOPE_GPU) != from;) {
		if (rdma_failed(w))
			return -ECONNABORTED;
		gdk_relax(spins++);
	}
	err = gdk_rdma_commit_weak(rdma_of(j), conn, n);
	gdk_fence_rel(GDK_SCOPE_GPU); /* the commit, then the next one's turn */
	gdk_st64(&w->turn[conn], from + n, GDK_SCOPE_GPU);
	return err ? err : rdma_wait(j);
}

/* A position as callers pass it: a counter, or the low bits of one. */
__device__ static uint32_t masked(const struct gt_job &j, uint64_t position, uint64_t turn)
{
	return (uint32_t)position & (turn % 3 == 0   ? UINT32_MAX
				     : turn % 3 == 1 ? 0xffffu
						     : j.depth - 1);
}

/* One operation of each thread of the group. */
template <scope_type scope>
__device__ int rdma_weak_turn(const struct gt_job &j, uint32_t conn, uint64_t k)
{
	const uint32_t rank = group_rank<scope>(), n = group_size<scope>();
	uint64_t from = 0;
	int err;

	if (rank == 0)
		from = reserve_weak(j, conn, n);
	from = from_first<scope>(j, from);
	if (from == RDMA_FAILED)
		return -ECONNABORTED;
	err = rdma_post(j, conn, op_at(j, k), gdk_rdma_at(masked(j, from + rank, from / n)));
	if (any_lane_failed<scope>(err != 0))
		return err ? err : -ECONNABORTED;
	group_sync<scope>();
	if (rank == 0)
		err = commit_in_turn(j, conn, from, n);
	err = (int)(int64_t)from_first<scope>(j, (uint64_t)(int64_t)err);
	err = err ? err : compare(j, op_at(j, k));
	return any_lane_failed<scope>(err != 0) ? err ? err : -ECONNABORTED : 0;
}

template <scope_type scope>
__device__ int rdma_weak(const struct gt_job &j, uint32_t conn, uint64_t thread)
{
	int err;

	for (uint32_t i = 0; i < j.iters; i++) {
		err = rdma_weak_turn<scope>(j, conn, thread * j.iters + i);
		if (err) {
			gdk_st32(&rdma_words(j)->failed, 1, GDK_SCOPE_GPU);
			return err;
		}
	}
	return 0;
}

} // namespace

#endif
