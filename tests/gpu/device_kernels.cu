/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The kernels of the GPU test, written with the DOCA device API. The file is compiled
 * once per sharing mode, so that the compilations run in parallel: GT_MODE is
 * EXCLUSIVE, CTA or GPU, and GT_LAUNCH is the name of the launch function. With
 * GT_DEBUG and GDK_DEBUG, some of the kernels are compiled again for the debug build.
 * g++ also compiles this file, for CPU threads (tests/kernels).
 */
#include <stdio.h>

#include "device_debug.cuh"
#include "device_ops.cuh"
#include "device_rdma.cuh"
#include "device_recv.cuh"
#include "device_tools.cuh"

namespace
{

template <mode_type how_shared>
__device__ int poll_one(struct doca_gpu_dev_verbs_cq *cq, uint64_t index)
{
	uint32_t spins = 0;
	int err;

	do {
		err = spins & 1 ? doca_priv_gpu_dev_verbs_poll_one_cq_at<how_shared>(cq, index)
				: doca_gpu_dev_verbs_poll_one_cq_at<how_shared>(cq, index);
		gdk_relax(spins++);
	} while (err == EBUSY);
	return err;
}

/* Polls the CQ directly. The thread is the only user of the QP, and all WQEs up to t have CQEs. */
__device__ static int poll_next(struct doca_gpu_dev_verbs_cq *cq, ticket_type t, uint32_t posted)
{
	const uint32_t ci = (uint32_t)(t + 1 - posted + cq->cqe_rsvd);
	int err = doca_gpu_dev_verbs_poll_cq<mode>(cq, posted);

	if (err)
		return err;
	return doca_gpu_dev_verbs_cq_update_dbrec<true>(cq, posted) ==
			       doca_gpu_dev_verbs_cqe_idx_inc_mask(ci, posted)
		       ? 0
		       : GT_EBADDATA;
}

/* Polls a collapsed CQ with one of two functions. with_index selects the one that also
 * returns the consumer index. */
template <mode_type how_shared>
__device__ int poll_collapsed(qp_type *qp, struct doca_gpu_dev_verbs_cq *cq, ticket_type t,
			      bool with_index)
{
	uint64_t ci;
	int err;

	if (!with_index)
		return doca_gpu_dev_verbs_poll_cq_collapsed_at<how_shared>(qp, t);
	err = doca_priv_gpu_dev_verbs_poll_cq_collapsed_at<how_shared>(qp, cq, t, &ci);
	return err ? err : ci > t ? 0 : GT_EBADDATA;
}

/* Waits until the WQE of ticket t is complete. posted: WQEs posted since the last
 * wait. turn selects the function. */
template <mode_type how_shared>
__device__ int wait_for(const struct gt_job &j, qp_type *qp, qp_type *companion, ticket_type t,
			uint32_t posted, uint64_t turn)
{
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);
	uint32_t how = j.wait;

	if (how == GT_IN_TURN || how == GT_BY_TICKET)
		how = (uint32_t)(turn % (how == GT_IN_TURN ? 4 : 2));
	switch (how) {
	case GT_WAIT:
		return doca_gpu_dev_verbs_wait<how_shared>(qp, t);
	case GT_FLUSH:
		return doca_gpu_dev_verbs_wait<how_shared>(qp);
	case GT_POLL_AT:
		return turn & 4 ? doca_priv_gpu_dev_verbs_poll_cq_at<how_shared>(cq, t)
				: doca_gpu_dev_verbs_poll_cq_at<how_shared>(cq, t);
	case GT_POLL_ONE:
		return poll_one<how_shared>(cq, t);
	case GT_POLL_NEXT:
		return poll_next(cq, t, posted);
	case GT_COUNTED:
		return doca_gpu_dev_verbs_wait<how_shared>(qp) |
		       doca_gpu_dev_verbs_wait<how_shared>(companion);
	default:
		return poll_collapsed<how_shared>(qp, cq, t, turn & 1);
	}
}

template <int op, scope_type scope>
__device__ int run(const struct gt_job &j, qp_type *qp, qp_type *companion, uint64_t thread)
{
	uint32_t posted = 0;
	ticket_type t = 0;
	int err = 0;

	for (uint32_t i = 0; i < j.iters && !gt_idle(&j, thread * j.iters); i++) {
		const struct op_at o = op_at(j, thread * j.iters + i);

		if (gt_flags(op) & GT_STAMP)
			stamp(j, o);
		err = post<op, scope>(j, qp, companion, o, &t);
		posted++;
		if (!err && (posted == j.batch || i + 1 == j.iters)) {
			err = wait_for < scope == THREAD
				      ? mode
				      : shared_mode > (j, qp, companion, t, posted, thread + i);
			posted = 0;
		}
		if (!err && gt_flags(op) & GT_READ && !posted)
			err = compare(j, o);
		if (any_lane_failed<scope>(err != 0))
			return err ? err : -ECONNABORTED;
	}
	return 0;
}

/* Waits for one WQE; the threads use four different functions. */
__device__ static int wait_for_wqe(qp_type *qp, uint64_t index, uint64_t thread)
{
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);
	uint64_t at;
	int err;

	switch (thread % 4) {
	case 0:
		return doca_gpu_dev_verbs_wait<mode>(qp, index);
	case 1:
		return doca_gpu_dev_verbs_poll_cq_at<mode>(cq, index);
	case 2: /* reserves slots until none is free: the next one needs this WQE to complete */
		err = gdk_reserve(qp, 1, mode, 0, &at);
		while (!err)
			err = gdk_reserve(qp, 1, mode, 0, &at);
		return err;
	default:
		return poll_one<mode>(cq, index);
	}
}

/* Waits until thread 0 has reserved its slots, but not longer than 2^24 polls. Requires
 * that all threads run concurrently. */
__device__ static void wait_for_first(qp_type *qp, uint64_t slots)
{
	for (uint32_t i = 0; i < 1u << 24; i++) {
		if (gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU) >= slots)
			return;
		gdk_relax(i);
	}
}

/* On a failed QP, a put must return the error to every thread of the group. Warp scope
 * requires whole warps. */
template <scope_type scope>
__device__ int put_too_late(const struct gt_job &j, qp_type *qp, const struct op_at &o, int err)
{
	ticket_type t;

	if (scope == WARP && blockDim.x % (unsigned int)warpSize)
		return err;
	return doca_gpu_dev_verbs_put<mode, nic_handler, scope>(qp, o.dst, o.src, j.size, &t) == err
		       ? err
		       : GT_EBADDATA;
}

template <int op>
__device__ int wait_until_error(const struct gt_job &j, qp_type *qp, uint64_t thread)
{
	struct op_at o = op_at(j, thread);
	uint64_t at = 0;
	ticket_type t;
	int err;

	if (thread == 0 && op == GT_HOLE)
		(void)gdk_reserve(qp, 1, mode, 0, &at);
	if (thread == 0 && op == GT_RECV_HOLE)
		doca_gpu_dev_verbs_recv<mode, nic_handler>(qp, o.dst_l, j.size, &t);
	if (thread == 0 && op == GT_DENIED) {
		stamp(j, o);
		doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, j.size, &t);
		o.dst.key ^= 0xffffffffu;
		doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, j.size, &t);
	}
	wait_for_first(op == GT_RECV_HOLE ? gdk_rq_of(qp) : qp, op == GT_DENIED ? 2 : 1);
	if constexpr (op == GT_RECV_HOLE)
		err = wait_for_receive(j, qp, o, thread);
	else
		err = wait_for_wqe(qp, op == GT_DENIED ? 1 : 0, thread);
	/* Publish the status before the following puts: the host measures the time from an abort
	 * to this store, and the puts are slow if the queue is in host memory. */
	*(volatile int *)&j.status[thread] = err;
	gdk_block_sync();
	err = put_too_late<THREAD>(j, qp, o, err);
	err = put_too_late<WARP>(j, qp, o, err);
	return put_too_late<BLOCK>(j, qp, o, err);
}

#ifdef GT_DEBUG
constexpr bool compiled(int op)
{
	return op == GT_PUT || op == GT_BUILD || op == GT_MIX || op >= GT_WRONG;
}
#else
constexpr bool compiled(int op)
{
	/* The RDMA library uses mode GPU. */
	return op < GT_WRONG &&
	       (!gt_rdma(op) || mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU);
}
#endif

/* Operations of the debug build only. The wrong WQE ends the waits of all threads. */
template <int op> __device__ int debug(const struct gt_job &j, qp_type *qp, uint64_t thread)
{
	if (op == GT_SHOW)
		return show(j, qp);
	if (op == GT_UNRUNG)
		return leave_unrung(j, qp);
	if (thread == 0) {
		const int err = post_wrong(j, qp);

		if (err)
			return err;
	}
	wait_for_first(qp, 2);
	return wait_for_wqe(qp, 1, thread);
}

template <int op, scope_type scope> __global__ void kernel(const struct gt_job j)
{
	const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t i = (uint32_t)(j.by_thread ? thread : blockIdx.x) % j.nqps;
	qp_type *qp = j.qp[i];

	log_open(j);
	if constexpr (op >= GT_WRONG)
		*(volatile int *)&j.status[thread] = debug<op>(j, qp, thread);
	else if constexpr (op == GT_RECV)
		*(volatile int *)&j.status[thread] = receive<scope>(j, qp, thread);
	else if constexpr (op == GT_RDMA_STRONG)
		*(volatile int *)&j.status[thread] = rdma_strong<scope>(j, i, thread);
	else if constexpr (op == GT_RDMA_WEAK)
		*(volatile int *)&j.status[thread] = rdma_weak<scope>(j, i, thread);
	else if constexpr (op == GT_TOOLS)
		*(volatile int *)&j.status[thread] = tools(j, thread);
	else if constexpr (op == GT_HOLE || op == GT_RECV_HOLE || op == GT_DENIED)
		*(volatile int *)&j.status[thread] = wait_until_error<op>(j, qp, thread);
	else
		*(volatile int *)&j.status[thread] = run<op, scope>(j, qp, j.companion[i], thread);
}

template <int op> static int launch_op(const struct gt_job *job, cudaStream_t stream)
{
	if constexpr (op != GT_LOW_BF_WARP)
		if (job->scope == THREAD)
			GDK_LAUNCH((kernel<op, THREAD>), job->blocks, job->threads, stream, *job);
	if constexpr (op <= GT_LAST_SCOPED || op == GT_FORMS || op == GT_LOW_BF_WARP ||
		      op == GT_RECV || gt_rdma(op))
		if (job->scope == WARP)
			GDK_LAUNCH((kernel<op, WARP>), job->blocks, job->threads, stream, *job);
	if constexpr (op <= GT_LAST_SCOPED || op == GT_RECV || gt_rdma(op))
		if (job->scope == BLOCK)
			GDK_LAUNCH((kernel<op, BLOCK>), job->blocks, job->threads, stream, *job);
	return 0;
}

template <int op> static int launch_from(const struct gt_job *job, cudaStream_t stream)
{
	if constexpr (op < GT_OPS) {
		if constexpr (compiled(op))
			if (job->op == op)
				return launch_op<op>(job, stream);
		return launch_from<op + 1>(job, stream);
	}
	return -1;
}

} // namespace

extern "C" int GT_LAUNCH(const struct gt_job *job, void *stream)
{
	return launch_from<0>(job, (cudaStream_t)stream);
}
