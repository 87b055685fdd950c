/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Puts with counters from all threads on shared queue pairs: when a put is complete, the
 * companion queue pair adds 1 to the peer's flag of the thread. Each thread posts a batch, then
 * waits until all that was posted to both queue pairs is complete. */
#define KERNEL_DEBUG_TIMES 0 /* 1: print the time of each put and of the wait after it */

#include "kernel.cuh"

#define MODE	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define HANDLER DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

/* The additions are executed after the puts, so the second wait is the shorter one. */
EX_DEV int wait_both(const struct ex_dev_queue &q)
{
	int rc = doca_gpu_dev_verbs_wait<MODE, HANDLER>(q.qp);

	return rc ? rc : doca_gpu_dev_verbs_wait<MODE, HANDLER>(q.companion);
}

template <enum doca_gpu_dev_verbs_exec_scope scope>
__global__ void __launch_bounds__(EX_BLOCK_MAX) put_counter_bw(struct ex_job job)
{
	const struct ex_dev_queue q = ex_queue(job);
	const uint32_t thread = ex_thread(job);
	struct ex_debug times = {};
	int rc = 0;

	for (uint32_t i = 0; i < job.iters; i++) {
		const uint64_t slot = ex_slot(&job, thread, job.first + i);

		ex_stamp(&job, ex_queue_index(job), thread, job.first + i);
		ex_debug_begin(&times);
		rc = doca_gpu_dev_verbs_put_counter<MODE, HANDLER, scope>(
			q.qp, ex_remote(q, slot), ex_local(q, slot), job.size, q.companion,
			ex_peer_flag(q, thread), ex_old_flag(q, thread), 1);
		ex_debug_posted(&times);
		if (!rc && ex_batch_ends(job, i))
			rc = wait_both(q);
		ex_debug_print(&times, "put_counter", job.first + i);
		if (ex_any_failed<scope>(rc))
			break;
	}
	if (!rc)
		rc = ex_check_old_flag(job, q, thread);
	ex_finish(job, rc);
}

EX_KERNELS(put_counter_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>,
	   put_counter_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>)
