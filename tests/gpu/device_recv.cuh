/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receives of the GPU test (GT_RECV, GT_RECV_HOLE). The QP is connected to itself. Which message a
 * receive gets depends on the order of the sends, so the number k of a message is its first word.
 */
#ifndef GT_DEVICE_RECV_CUH
#define GT_DEVICE_RECV_CUH

#include "device_at.cuh"
#include "device/doca_gpunetio_dev_verbs_twosided.cuh"

namespace
{

static constexpr auto RQ = DOCA_GPUNETIO_VERBS_QP_RQ;
static constexpr auto NO_DUMP = DOCA_GPUNETIO_VERBS_MCST_DISABLED;
typedef struct doca_gpunetio_ib_mlx5_cqe64 cqe_type;

/* Sharing mode of the waits. A whole group may post to an exclusive QP, but then its
 * threads wait concurrently, which the exclusive mode does not allow. */
static constexpr auto shared_mode = mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
					    ? DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
					    : mode;

/* Returns whether any thread of the group failed. All threads of the group get the same
 * answer, so that they return together. */
template <scope_type scope> __device__ bool any_lane_failed(bool failed)
{
	if constexpr (scope == WARP)
		return __any_sync(0xffffffffu, failed);
	if constexpr (scope == BLOCK)
		return __syncthreads_or(failed);
	return failed;
}

/* Counts the message in the cell at dst. */
__device__ static int count_message(const struct gt_job &j, const struct op_at &o)
{
	const volatile uint64_t *got = (const volatile uint64_t *)(j.gpu + j.dst + o.k * j.size);
	const uint64_t k = got[0];

	if (k >= (uint64_t)j.blocks * j.threads * j.iters)
		return GT_EBADDATA;
	for (uint32_t i = 1; i < j.size / 8; i++)
		if (got[i] != gt_word(k, i, j.seed))
			return GT_EBADDATA;
	doca_gpu_dev_verbs_atomic_add<uint64_t, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(
		(uint64_t *)(j.gpu + j.counters) + k, 1);
	return 0;
}

/* Waits for the receive of ticket t. The threads use four functions in turn. */
template <mode_type how>
__device__ int wait_for_ticket(qp_type *qp, const struct op_at &o, ticket_type t, uint64_t turn,
			       cqe_type **cqe)
{
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_rq(qp);
	int err;

	switch (turn % 4) {
	case 0:
		return doca_gpu_dev_verbs_recv_wait<how, nic_handler, DUMP>(qp, o.dst_l, t, cqe);
	case 1:
		return doca_gpu_dev_verbs_recv_wait<how, nic_handler, NO_DUMP>(qp, o.dst_l, &t,
									       cqe);
	case 2:
		return doca_gpu_dev_verbs_poll_cq_at<how, RQ>(cq, t, cqe);
	default: /* the last of all receives */
		err = doca_gpu_dev_verbs_recv_wait<how, nic_handler, DUMP>(qp, o.dst_l, cqe);
		*cqe = gdk_cqe_at(cq, t);
		return err;
	}
}

template <scope_type scope>
__device__ int receive_one(const struct gt_job &j, qp_type *qp, const struct op_at &o)
{
	constexpr auto how = scope == THREAD ? mode : shared_mode;
	ticket_type t = 0, sent = 0;
	cqe_type *cqe;
	int err;

	stamp(j, o);
	*(volatile uint64_t *)o.cell = o.k;
	err = doca_gpu_dev_verbs_recv<mode, nic_handler, scope>(qp, o.dst_l, j.size, &t);
	/* Not after a meeting of the group: other threads may wait for the receives of this one. If
	 * the receive failed, the QP has ended, and the send returns the status, too. */
	if (doca_gpu_dev_verbs_send<mode, nic_handler, scope>(qp, o.src, j.size, &sent) != err)
		return err ? err : GT_EBADDATA;
	if (!err)
		err = wait_for_ticket<how>(qp, o, t, o.k, &cqe);
	/* A CQ as deep as the number of operations keeps all CQEs. */
	if (!err && j.depth >= j.blocks * j.threads * j.iters &&
	    (doca_gpu_dev_verbs_cqe_get_bytes(cqe) != j.size ||
	     doca_gpu_dev_verbs_cqe_is_inline(cqe) || gdk_bswap16(cqe->wqe_counter) != (uint16_t)t))
		err = GT_EBADDATA;
	if (!err)
		err = count_message(j, o);
	return err ? err : doca_gpu_dev_verbs_wait<how>(qp, sent);
}

template <scope_type scope>
__device__ int receive(const struct gt_job &j, qp_type *qp, uint64_t thread)
{
	int err;

	for (uint32_t i = 0; i < j.iters; i++) {
		err = receive_one<scope>(j, qp, op_at(j, thread * j.iters + i));
		if (any_lane_failed<scope>(err != 0))
			return err ? err : -ECONNABORTED;
	}
	return 0;
}

/* Waits for a receive that never completes, or for a free slot. A wait of the receive queue alone
 * ends that queue, and the next wait for a receive ends the QP with the same status. */
__device__ static int wait_for_receive(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				       uint64_t thread)
{
	const ticket_type first = 0;
	cqe_type *cqe;
	ticket_type t;
	int err = 0;

	if (thread % 8 >= 4)
		err = wait_for_ticket<mode>(qp, o, first, thread, &cqe);
	else if (thread % 8 == 3)
		err = doca_gpu_dev_verbs_wait<mode>(gdk_rq_of(qp), first);
	while (!err)
		err = doca_gpu_dev_verbs_recv<mode, nic_handler>(qp, o.dst_l, j.size, &t);
	return doca_gpu_dev_verbs_recv_wait<mode, nic_handler, NO_DUMP>(qp, o.dst_l, first, &cqe) ==
			       err
		       ? err
		       : GT_EBADDATA;
}

} // namespace

#endif
