/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Writes with immediate of all threads of a block, on all connections, in strong or in weak mode.
 * The server's threads post a receive for each write, because an immediate value takes one.
 */
#include "rdma_write.h"
#include "grid_kernel.cuh"

#include "doca_gpunetio_dev_buf.cuh"
#include "doca_gpunetio_dev_rdma.cuh"

#define WITH_IMM DOCA_GPU_RDMA_WRITE_FLAG_IMM

/* ---- client ---- */

/* Strong mode: each thread posts at the next position, and commits when it likes. If the send queue
 * is full, the thread waits. */
static __device__ doca_error_t write_strong(const struct rw_job *rw, uint32_t conn)
{
	struct doca_gpu_buf *from = NULL, *to = NULL;
	doca_error_t err = DOCA_SUCCESS;

	for (uint32_t i = threadIdx.x; !err && i < rw->writes; i += blockDim.x) {
		const uint32_t buf = conn * rw->writes + i;

		doca_gpu_dev_buf_get_buf(rw->local, buf, &from);
		doca_gpu_dev_buf_get_buf(rw->remote, buf, &to);
		err = doca_gpu_dev_rdma_write_strong(rw->rdma, conn, to, 0, from, 0, rw->size,
						     rw_imm(buf), WITH_IMM);
	}
	return err ? err : doca_gpu_dev_rdma_commit_strong(rw->rdma, conn);
}

/* Weak mode: each thread has a position of its own, and one thread commits those of the whole block
 * when all are posted. */
static __device__ doca_error_t write_weak(const struct rw_job *rw, uint32_t conn)
{
	struct doca_gpu_buf *from = NULL, *to = NULL;
	uint32_t position = 0, mask = 0;
	doca_error_t err = doca_gpu_rdma_get_info(rw->rdma, conn, &position, &mask);

	__syncthreads(); /* all threads know the position before a commit changes it */
	for (uint32_t first = 0; first < rw->writes; first += blockDim.x) {
		const uint32_t left = rw->writes - first, i = first + threadIdx.x;
		const uint32_t buf = conn * rw->writes + i;

		if (!err && i < rw->writes) {
			doca_gpu_dev_buf_get_buf(rw->local, buf, &from);
			doca_gpu_dev_buf_get_buf(rw->remote, buf, &to);
			err = doca_gpu_dev_rdma_write_weak(rw->rdma, conn, to, 0, from, 0, rw->size,
							   rw_imm(buf), WITH_IMM,
							   (position + i) & mask);
		}
		if (__syncthreads_or(err != DOCA_SUCCESS)) /* all are posted */
			break;
		if (threadIdx.x == 0)
			err = doca_gpu_dev_rdma_commit_weak(rw->rdma, conn,
							    left < blockDim.x ? left : blockDim.x);
		__syncthreads(); /* a position may be used again after the commit */
	}
	return err;
}

static __device__ doca_error_t write_all(const struct rw_job *rw)
{
	doca_error_t err = DOCA_SUCCESS;
	uint32_t commits = 0;

	for (uint32_t conn = 0; conn < rw->connections; conn++) {
		if (!err)
			err = rw->mode == RW_WEAK ? write_weak(rw, conn) : write_strong(rw, conn);
		if (__syncthreads_or(err != DOCA_SUCCESS))
			return err;
	}
	return threadIdx.x ? DOCA_SUCCESS : doca_gpu_dev_rdma_wait_all(rw->rdma, &commits);
}

/* ---- server ---- */

static __device__ doca_error_t receive_all(struct rw_job *rw)
{
	const uint32_t num = rw->connections * rw->writes;
	struct doca_gpu_dev_rdma_r *recv = NULL;
	doca_error_t err = doca_gpu_dev_rdma_get_recv(rw->rdma, &recv);

	/* A write has its destination, so the receive needs no buffer. */
	for (uint32_t i = threadIdx.x; !err && i < num; i += blockDim.x)
		err = doca_gpu_dev_rdma_recv_strong(recv, NULL, 0, 0, 0);
	if (__syncthreads_or(err != DOCA_SUCCESS) || threadIdx.x)
		return err;
	err = doca_gpu_dev_rdma_recv_commit_strong(recv);
	if (err)
		return err;
	return doca_gpu_dev_rdma_recv_wait_all(recv, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &rw->received,
					       rw->imm, rw->conn);
}

__global__ void __launch_bounds__(RW_THREADS_MAX) rdma_write(struct ex_job job)
{
	struct rw_job *rw = (struct rw_job *)job.arg;

	job.status[threadIdx.x] = (int)(job.client ? write_all(rw) : receive_all(rw));
}

EX_KERNELS(rdma_write, nullptr)
