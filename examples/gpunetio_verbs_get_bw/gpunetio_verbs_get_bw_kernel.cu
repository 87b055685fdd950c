/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Gets from all threads on shared queue pairs: each thread posts a batch of gets, then waits for
 * the last one. */
#define KERNEL_DEBUG_TIMES 0 /* 1: print the time of each get and of the wait after it */

#include "kernel.cuh"

#define MODE	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define HANDLER DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

/* On a GPU before Hopper, the completion of a get does not yet mean that threads see its data in
 * GPU memory. A DUMP WQE after the gets, which reads a byte of registered memory, ensures it. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define MCST DOCA_GPUNETIO_VERBS_MCST_ENABLED
#else
#define MCST DOCA_GPUNETIO_VERBS_MCST_DISABLED
#endif

template <enum doca_gpu_dev_verbs_exec_scope scope>
__global__ void __launch_bounds__(EX_BLOCK_MAX) get_bw(struct ex_job job)
{
	const struct ex_dev_queue q = ex_queue(job);
	const uint32_t thread = ex_thread(job);
	const struct doca_gpu_dev_verbs_addr dump = ex_old_flag(q, thread);
	doca_gpu_dev_verbs_ticket_t ticket = 0;
	struct ex_debug times = {};
	bool complete = true;
	int rc = 0;

	for (uint32_t i = 0; i < job.iters; i++) {
		const uint64_t slot = ex_slot(&job, thread, job.first + i);

		complete &= ex_blank(&job, ex_queue_index(job), thread, job.first + i);
		ex_debug_begin(&times);
		rc = doca_gpu_dev_verbs_get<MODE, HANDLER, scope>(
			q.qp, ex_remote(q, slot), ex_local(q, slot), job.size, dump, &ticket);
		ex_debug_posted(&times);
		if (!rc && ex_batch_ends(job, i))
			rc = doca_gpu_dev_verbs_get_wait<MODE, HANDLER, MCST>(q.qp, dump, ticket);
		ex_debug_print(&times, "get", job.first + i);
		if (ex_any_failed<scope>(rc))
			break;
	}
	ex_finish(job, rc || complete ? rc : -EBADMSG);
}

EX_KERNELS(get_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>,
	   get_bw<DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>)
