/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Ping-pong of puts with signals: the client puts a message and adds 1 to the server's flag, the
 * server answers in the same way; each polls its own flag. One thread uses the queue pair, so the
 * sharing mode is EXCLUSIVE. */
#define KERNEL_DEBUG_TIMES 0 /* 1: print the times of posting and of waiting for the answer */

#include "kernel.cuh"

#define MODE	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define HANDLER DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

EX_DEV int send(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t iter)
{
	const uint64_t slot = ex_slot(&job, 0, iter);

	ex_stamp(&job, ex_queue_index(job), 0, iter);
	return doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, MODE, HANDLER>(
		q.qp, ex_remote(q, slot), ex_local(q, slot), job.size, ex_peer_flag(q, 0),
		ex_old_flag(q, 0), 1);
}

EX_DEV int receive(const struct ex_job &, const struct ex_dev_queue &q, uint64_t iter)
{
	return ex_wait_word(q, q.flags, iter + 1);
}

__global__ void __launch_bounds__(1) put_signal_lat(struct ex_job job)
{
	const struct ex_dev_queue q = ex_queue(job);
	int rc = ex_pingpong<send, receive>(job, q, "put_signal");

	if (!rc)
		rc = doca_gpu_dev_verbs_wait<MODE, HANDLER>(q.qp);
	if (!rc)
		rc = ex_check_old_flag(job, q, 0);
	ex_finish(job, rc);
}

EX_KERNELS(put_signal_lat, nullptr)
