/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Puts with signals from all threads on shared queue pairs: after the data of each put, the NIC
 * adds 1 to the peer's flag of the thread. Each thread posts a batch, then waits for the last
 * signal. */
#define KERNEL_DEBUG_TIMES 0 /* 1: print the time of each put and of the wait after it */

#include "kernel.cuh"

#define MODE	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define HANDLER DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

template <enum doca_gpu_dev_verbs_exec_scope scope>
__global__ void __launch_bounds__(EX_BLOCK_MAX) put_signal_bw(struct ex_job job)
{
	const struct ex_dev_queue q = ex_queue(job);
	const uint32_t thread = ex_thread(job);
	doca_gpu_dev_verbs_ticket_t ticket = 0;
	struct ex_debug times = {};
	int rc = 0;

	for (uint32_t i = 0; i < job.iters; i++) {
		const uint64_t slot = ex_slot(&job, thread, job.first + i);

		ex_stamp(&job, ex_queue_index(job), thread, job.first + i);
		ex_debug_begin(&times);
		rc = doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, MODE, HANDLER,
						   scope>(
			q.qp, ex_remote(q, slot), ex_local(q, slot), job.size,
			ex_peer_flag(q, thread), ex_old_flag(q, thread), 1, &ticket);
		ex_debug_posted(&times);
		if (!rc && ex_batch_ends(job, i))
			rc = doca_gpu_dev_verbs_poll_cq_at<MODE>(
				doca_gpu_dev_verbs_qp_get_cq_sq(q.qp), ticket);
		ex_debug_print(&times, "put_signal", job.first + i);
		if (ex_any_failed<scope>(rc))
			break;
	}
	if (!rc)
		rc = ex_check_old_flag(job, q, thread);
	ex_finish(job, rc);
}

EX_KERNELS(put_signal_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>,
	   put_signal_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>)
