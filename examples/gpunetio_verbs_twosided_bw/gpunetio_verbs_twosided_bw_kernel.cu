/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Sends and receives. The threads of a block share a queue pair: one reserves slots for all, each
 * writes the WQE in its slot, and one rings the doorbell for all. The NIC sends in the order of the
 * send queue and fills receives in the order of the receive queue, so message i of a thread arrives
 * in receive i of the same thread of the server. Only this block posts to the queue pair, so the
 * sharing mode is CTA.
 *
 * A message that finds no receive fails, or is delayed until a retry. So the server writes to the
 * client's flag how many receives of each thread it has posted, and the client waits for its next
 * batch to be among them. */
#define KERNEL_DEBUG_TIMES 0 /* 1: print the times of posting and of waiting */

#include "kernel.cuh"

#define MODE	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define HANDLER DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define SYNC	DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU
#define RQ	DOCA_GPUNETIO_VERBS_QP_RQ

/* ---- client ---- */

/* The number of receives that the batch which begins with iteration i needs. */
EX_DEV uint64_t receives_needed(const struct ex_job &job, uint32_t i)
{
	return job.first + (job.iters - i < job.batch ? job.iters : i + job.batch);
}

/* Thread 0: reserves send WQEs for the block, when the server has receives for them. */
EX_DEV int reserve_sends(const struct ex_job &job, const struct ex_dev_queue &q, uint32_t i)
{
	int rc = 0;

	if (i % job.batch == 0)
		rc = ex_wait_word(q, q.flags, receives_needed(job, i), true);
	if (rc)
		return rc;
	doca_gpu_dev_verbs_reserve_wq_slots<MODE>(q.qp, blockDim.x);
	return gdk_qp_status(q.qp);
}

EX_DEV void write_send(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t wqe_idx,
		       uint64_t slot)
{
	doca_gpu_dev_verbs_wqe_prepare_send(
		q.qp, doca_gpu_dev_verbs_get_wqe_ptr(q.qp, (uint16_t)wqe_idx), (uint16_t)wqe_idx,
		DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND, DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE, 0,
		q.data_addr + slot, q.key, job.size);
	doca_gpu_dev_verbs_mark_wqes_ready<MODE>(q.qp, wqe_idx, wqe_idx);
}

EX_DEV int send_all(const struct ex_job &job, const struct ex_dev_queue &q)
{
	uint64_t end = doca_gpu_dev_verbs_atomic_read<uint64_t, MODE>(&q.qp->sq_rsvd_index);
	struct ex_debug times = {};
	int rc = 0;

	__syncthreads(); /* all threads have read the index before it changes */
	for (uint32_t i = 0; i < job.iters; i++) {
		if (!rc && threadIdx.x == 0)
			rc = reserve_sends(job, q, i);
		if (__syncthreads_or(rc != 0))
			break;
		ex_debug_begin(&times);
		ex_stamp(&job, ex_queue_index(job), threadIdx.x, job.first + i);
		write_send(job, q, end + threadIdx.x, ex_slot(&job, threadIdx.x, job.first + i));
		end += blockDim.x;
		__syncthreads(); /* all WQEs are ready */
		if (threadIdx.x)
			continue;
		doca_gpu_dev_verbs_submit<MODE>(q.qp, end);
		ex_debug_posted(&times);
		if (ex_batch_ends(job, i))
			rc = doca_gpu_dev_verbs_poll_cq_at<MODE>(
				doca_gpu_dev_verbs_qp_get_cq_sq(q.qp), end - 1);
		ex_debug_print(&times, "send", job.first + i);
	}
	return rc;
}

/* ---- server ---- */

EX_DEV void write_recv(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t wqe_idx,
		       uint64_t slot)
{
	doca_gpu_dev_verbs_wqe_prepare_recv(q.qp, doca_gpu_dev_verbs_get_rwqe_ptr(q.qp, wqe_idx),
					    q.data_addr + slot, q.key, job.size);
	doca_gpu_dev_verbs_mark_wqes_ready<MODE, RQ>(q.qp, wqe_idx, wqe_idx);
}

/* Waits for all receives below index end. Their data is then visible; on a GPU before Hopper, a
 * DUMP WQE, which reads a byte of registered memory, ensures it. */
EX_DEV int wait_received(const struct ex_dev_queue &q, uint64_t end)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	return doca_gpu_dev_verbs_recv_wait<MODE, HANDLER, GDK_MCST_AUTO>(q.qp, ex_old_flag(q, 0),
									  end - 1, &cqe);
}

/* Receives are posted one batch ahead: a batch is waited for when the next one is posted. */
EX_DEV int receive_all(const struct ex_job &job, const struct ex_dev_queue &q)
{
	uint64_t end = q.qp->rq_wqe_pi;
	uint64_t batch_before = 0; /* index after its last receive; 0: there was none */
	struct ex_debug times = {};
	int rc = 0;

	__syncthreads(); /* all threads have read the index before it changes */
	for (uint32_t i = 0; i < job.iters; i++) {
		if (!rc && threadIdx.x == 0) {
			doca_gpu_dev_verbs_reserve_wq_slots<MODE, RQ>(q.qp, blockDim.x);
			rc = gdk_qp_status(q.qp);
		}
		if (__syncthreads_or(rc != 0))
			break;
		ex_debug_begin(&times);
		write_recv(job, q, end + threadIdx.x, ex_slot(&job, threadIdx.x, job.first + i));
		end += blockDim.x;
		__syncthreads(); /* all WQEs are ready */
		if (threadIdx.x)
			continue;
		doca_gpu_dev_verbs_submit<MODE, SYNC, HANDLER, RQ>(q.qp, end);
		ex_debug_posted(&times);
		if (!ex_batch_ends(job, i))
			continue;
		rc = doca_gpu_dev_verbs_p<uint64_t, MODE, HANDLER>(q.qp, ex_peer_flag(q, 0),
								   job.first + i + 1);
		if (!rc && batch_before)
			rc = wait_received(q, batch_before);
		batch_before = end;
		ex_debug_print(&times, "recv", job.first + i);
	}
	if (!rc && threadIdx.x == 0)
		rc = wait_received(q, end);
	return rc;
}

__global__ void __launch_bounds__(EX_BLOCK_MAX) twosided_bw(struct ex_job job)
{
	const struct ex_dev_queue q = ex_queue(job);
	const int rc = job.client ? send_all(job, q) : receive_all(job, q);

	__syncthreads(); /* thread 0 has waited */
	ex_finish(job, rc ? rc : gdk_qp_status(q.qp));
}

EX_KERNELS(twosided_bw, nullptr)
