/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Ping-pong of RDMA writes, by the functions that put() is made of. The client writes a message,
 * the server answers with one; each polls the last byte of the message that it expects. One
 * thread uses the queue pair, so the sharing mode is EXCLUSIVE. */
#define KERNEL_DEBUG_TIMES 0 /* 1: print the times of posting and of waiting for the answer */

#include "kernel.cuh"

#define MODE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE

EX_DEV void prepare(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t wqe_idx,
		    uint64_t slot, struct doca_gpu_dev_verbs_wqe *wqe)
{
	doca_gpu_dev_verbs_wqe_prepare_write(
		q.qp, wqe, (uint16_t)wqe_idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
		DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE, 0, q.peer_addr + slot, q.peer_key,
		q.data_addr + slot, q.key, job.size);
}

/* Posts the message of iteration iter. */
EX_DEV int send(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t iter)
{
	/* The NIC gets this copy by BlueFlame. It reads the WQE in the ring if the copy is lost. */
	EX_SHARED struct doca_gpu_dev_verbs_wqe copy;
	const uint64_t slot = ex_slot(&job, 0, iter);
	const uint64_t wqe_idx = doca_gpu_dev_verbs_reserve_wq_slots<MODE>(q.qp, 1);

	if (gdk_qp_status(q.qp))
		return gdk_qp_status(q.qp);
	ex_stamp(&job, ex_queue_index(job), 0, iter);
	prepare(job, q, wqe_idx, slot, doca_gpu_dev_verbs_get_wqe_ptr(q.qp, (uint16_t)wqe_idx));
	if (job.handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF)
		prepare(job, q, wqe_idx, slot, &copy);
	doca_gpu_dev_verbs_mark_wqes_ready<MODE>(q.qp, wqe_idx, wqe_idx);
	if (job.handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF)
		doca_gpu_dev_verbs_submit_bf<MODE>(q.qp, wqe_idx + 1, &copy);
	else
		doca_gpu_dev_verbs_submit<MODE>(q.qp, wqe_idx + 1);
	return 0;
}

EX_DEV int receive(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t iter)
{
	return ex_wait_word(q, q.recv + ex_turn_offset(&job, 0, iter), ex_turn_of(&job, iter));
}

__global__ void __launch_bounds__(1) write_lat(struct ex_job job)
{
	const struct ex_dev_queue q = ex_queue(job);
	int rc = ex_pingpong<send, receive>(job, q, "write");

	if (!rc)
		rc = doca_gpu_dev_verbs_wait<MODE>(q.qp);
	ex_finish(job, rc);
}

EX_KERNELS(write_lat, nullptr)
