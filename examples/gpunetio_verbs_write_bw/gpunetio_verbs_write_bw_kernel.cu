/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* RDMA writes by the functions that put() is made of. The threads of a block share a queue pair:
 * one reserves slots for all, each writes the WQE in its slot, and one rings the doorbell for
 * all. Only this block posts to the queue pair, so the sharing mode is CTA. */
#define KERNEL_DEBUG_TIMES 0 /* 1: print the times of posting and of waiting */

#include "kernel.cuh"

#define MODE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA

/* Writes the WQE of a message to slot wqe_idx of the send queue. */
EX_DEV void write_wqe(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t wqe_idx,
		      uint64_t slot)
{
	doca_gpu_dev_verbs_wqe_prepare_write(
		q.qp, doca_gpu_dev_verbs_get_wqe_ptr(q.qp, (uint16_t)wqe_idx), (uint16_t)wqe_idx,
		DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE,
		0, q.peer_addr + slot, q.peer_key, q.data_addr + slot, q.key, job.size);
	doca_gpu_dev_verbs_mark_wqes_ready<MODE>(q.qp, wqe_idx, wqe_idx);
}

__global__ void __launch_bounds__(EX_BLOCK_MAX) write_bw(struct ex_job job)
{
	const struct ex_dev_queue q = ex_queue(job);
	const uint64_t begin = doca_gpu_dev_verbs_atomic_read<uint64_t, MODE>(&q.qp->sq_rsvd_index);
	struct ex_debug times = {};
	uint64_t end = begin;
	int rc = 0;

	__syncthreads(); /* all threads have read the index before it changes */
	for (uint32_t i = 0; i < job.iters; i++) {
		ex_debug_begin(&times);
		if (threadIdx.x == 0) {
			doca_gpu_dev_verbs_reserve_wq_slots<MODE>(q.qp, blockDim.x);
			rc = gdk_qp_status(q.qp);
		}
		if (__syncthreads_or(rc != 0))
			break;
		ex_stamp(&job, ex_queue_index(job), threadIdx.x, job.first + i);
		write_wqe(job, q, end + threadIdx.x, ex_slot(&job, threadIdx.x, job.first + i));
		end += blockDim.x;
		__syncthreads(); /* all WQEs are ready */
		if (threadIdx.x == 0) {
			doca_gpu_dev_verbs_submit<MODE>(q.qp, end);
			ex_debug_posted(&times);
			if (ex_batch_ends(job, i))
				rc = doca_gpu_dev_verbs_poll_cq_at<MODE>(
					doca_gpu_dev_verbs_qp_get_cq_sq(q.qp), end - 1);
			ex_debug_print(&times, "write", job.first + i);
		}
	}
	__syncthreads(); /* thread 0 has waited */
	ex_finish(job, gdk_qp_status(q.qp));
}

EX_KERNELS(write_bw, nullptr)
