/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls the other device functions of the SDK's interface as NVIDIA's samples, NIXL and Holoscan
 * do: one-sided operations, and the steps of posting. tests/doca_calls.sh compiles this file as
 * C++17 and as CUDA. It is not executed.
 */
#include <doca_gpunetio_dev_verbs_counter.cuh>
#include <doca_gpunetio_dev_verbs_onesided.cuh>
#include <doca_gpunetio_dev_verbs_twosided.cuh>

#define SHARED	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define ALONE	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define CTA	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define AUTO	DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define THREAD	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define WARP	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define NO_DUMP DOCA_GPUNETIO_VERBS_MCST_DISABLED

typedef struct doca_gpu_dev_verbs_qp qp_t;
typedef doca_gpu_dev_verbs_addr addr_t;

/* ---- operations, as the samples ---- */

GDK_FN int puts_of(qp_t *qp, qp_t *companion, addr_t to, addr_t from, size_t bytes)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	uint64_t start = doca_gpu_dev_verbs_query_globaltimer();

	doca_gpu_dev_verbs_put<SHARED, AUTO, THREAD>(qp, to, from, bytes, &ticket);
	doca_gpu_dev_verbs_put<SHARED, AUTO, WARP>(qp, to, from, bytes, &ticket);
	if (doca_gpu_dev_verbs_get_lane_id() == DOCA_GPUNETIO_VERBS_WARP_SIZE - 1 &&
	    doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket) != 0)
		return -1;
	doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, ALONE, AUTO>(
		qp, to, from, bytes, to, from, (uint64_t)1);
	doca_gpu_dev_verbs_put_counter<SHARED, AUTO, THREAD>(qp, to, from, bytes, companion, to,
							     from, (uint64_t)1);
	doca_gpu_dev_verbs_wait(qp);
	doca_gpu_dev_verbs_wait<ALONE, AUTO>(qp);
	doca_gpu_dev_verbs_wait<SHARED, AUTO>(companion);
	return doca_gpu_dev_verbs_query_globaltimer() > start;
}

GDK_FN int gets_of(qp_t *qp, addr_t to, addr_t from, size_t bytes)
{
	const addr_t none = { 0, 0 };
	doca_gpu_dev_verbs_ticket_t ticket;

	doca_gpu_dev_verbs_get<SHARED, AUTO, THREAD, NO_DUMP,
			       DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED>(qp, to, from, bytes,
									   none, &ticket);
	doca_gpu_dev_verbs_get_wait<SHARED, AUTO, DOCA_GPUNETIO_VERBS_MCST_ENABLED>(qp, to);
	doca_gpu_dev_verbs_get_wait<SHARED, AUTO, NO_DUMP>(qp, none);
	return doca_gpu_dev_verbs_poll_cq_at<SHARED>(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket);
}

GDK_FN int sends_of(qp_t *qp, addr_t from, size_t bytes)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	doca_gpu_dev_verbs_send<SHARED, AUTO, THREAD>(qp, from, bytes, &ticket);
	doca_gpu_dev_verbs_send<SHARED, AUTO, WARP>(qp, from, bytes, &ticket);
	doca_gpu_dev_verbs_send(qp, from, bytes, &ticket);
	return doca_gpu_dev_verbs_wait(qp, &ticket);
}

/* ---- WQEs by hand, as NIXL ---- */

GDK_FN void wqes_of(qp_t *qp, addr_t to, addr_t from, size_t bytes)
{
	const enum doca_gpu_dev_verbs_wqe_ctrl_flags cqe = DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE;
	uint64_t first = doca_gpu_dev_verbs_reserve_wq_slots(qp, 3);

	doca_gpu_dev_verbs_wqe_prepare_write(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, first), first,
					     MLX5_OPCODE_RDMA_WRITE, cqe, 0, to.addr, to.key,
					     from.addr, from.key, bytes);
	doca_gpu_dev_verbs_wqe_prepare_read(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, first + 1),
					    first + 1, cqe, to.addr, to.key, from.addr, from.key,
					    bytes);
	doca_gpu_dev_verbs_wqe_prepare_dump(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, first + 2),
					    first + 2, cqe, from.addr, from.key, 1);
	doca_gpu_dev_verbs_mark_wqes_ready(qp, first, first + 2);
	doca_gpu_dev_verbs_submit(qp, first + 3);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode mode,
	  enum doca_gpu_dev_verbs_qp_type type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int polled(struct doca_gpu_dev_verbs_cq *cq, uint64_t index)
{
	struct mlx5_cqe64 *cqe =
		(struct mlx5_cqe64 *)(cq->cqe_daddr +
				      (index & (cq->cqe_num - 1)) * DOCA_GPUNETIO_VERBS_CQE_SIZE);
	uint8_t own = doca_gpu_dev_verbs_load_relaxed_sys_global((uint8_t *)&cqe->op_own);

	if (own >> DOCA_GPUNETIO_VERBS_MLX5_CQE_OPCODE_SHIFT == MLX5_CQE_INVALID)
		return type == DOCA_GPUNETIO_VERBS_QP_SQ ? 1 : 2;
	doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
	doca_gpu_dev_verbs_atomic_max<uint64_t, mode>(&cq->cqe_ci, index + 1);
	return 0;
}

GDK_FN void send_wqes_of(qp_t *qp, addr_t a, uint32_t bytes)
{
	const enum doca_gpu_dev_verbs_wqe_ctrl_flags cqe = DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE;
	struct doca_gpu_dev_verbs_wqe *wqe = doca_gpu_dev_verbs_get_wqe_ptr(qp, 0);

	doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe, 0, DOCA_GPUNETIO_MLX5_OPCODE_SEND, cqe, 0);
	doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe, 0, DOCA_GPUNETIO_MLX5_OPCODE_SEND, cqe, 0,
					    a.addr, a.key, bytes);
	doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe, 0, DOCA_GPUNETIO_MLX5_OPCODE_SEND, cqe, 0,
					    a.addr, a.key, bytes, a.addr, a.key, bytes);
	doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe, 0, DOCA_GPUNETIO_MLX5_OPCODE_SEND, cqe, 0,
					    a.addr, a.key, bytes, a.addr, a.key, bytes, a.addr,
					    a.key, bytes);
	doca_gpu_dev_verbs_wqe_prepare_send_inl(qp, wqe, 0, DOCA_GPUNETIO_MLX5_OPCODE_SEND, cqe, 0,
						a.addr, bytes);
}

/* ---- WQEs by hand, as Holoscan ---- */

GDK_FN void segments_of(qp_t *qp, uint64_t index, addr_t from, uint32_t bytes)
{
	struct doca_gpu_dev_verbs_wqe *wqe = doca_gpu_dev_verbs_get_wqe_ptr(qp, index);
	struct doca_gpu_dev_verbs_wqe_ctrl_seg ctrl;

	ctrl.opmod_idx_opcode =
		doca_gpu_dev_verbs_bswap32((uint32_t)index << DOCA_GPUNETIO_VERBS_WQE_IDX_SHIFT |
					   DOCA_GPUNETIO_MLX5_OPCODE_SEND);
	ctrl.qpn_ds = doca_gpu_dev_verbs_bswap32(qp->sq_num_shift8 | 2);
	ctrl.fm_ce_se = DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_ERROR_UPDATE;
	doca_gpu_dev_verbs_store_wqe_seg((uint64_t *)(void *)wqe, (uint64_t *)&ctrl);
	wqe->dseg1.byte_count = doca_gpu_dev_verbs_bswap32(bytes);
	wqe->dseg1.addr = doca_gpu_dev_verbs_bswap64(from.addr);
	doca_gpu_dev_verbs_wqe_prepare_nop(qp, wqe, (uint16_t)index,
					   DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_ERROR_UPDATE);
	doca_gpu_dev_verbs_mark_wqes_ready<CTA>(qp, index, index);
	doca_gpu_dev_verbs_submit<CTA, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU, AUTO>(qp, index + 1);
}

GDK_FN uint64_t flags_of(uint64_t *flag)
{
	while (DOCA_GPUNETIO_VOLATILE(*flag) != 0)
		;
	doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU>();
	DOCA_GPUNETIO_VERBS_VOLATILE(*flag) = 1;
	doca_gpu_dev_verbs_fence_release<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU>();
	return doca_gpu_dev_verbs_atomic_read<uint64_t, SHARED>(flag);
}

GDK_FN uint64_t call_all(qp_t *qp, addr_t to, addr_t from, size_t bytes, uint64_t *flag)
{
	segments_of(qp, 0, from, (uint32_t)bytes);
	wqes_of(qp, to, from, bytes);
	send_wqes_of(qp, from, (uint32_t)bytes);
	return flags_of(flag) +
	       (uint64_t)(puts_of(qp, qp, to, from, bytes) + gets_of(qp, to, from, bytes) +
			  sends_of(qp, from, bytes) +
			  polled<SHARED>(doca_gpu_dev_verbs_qp_get_cq_sq(qp), 0));
}

#ifdef __CUDACC__
__global__ void calls(qp_t *qp, addr_t to, addr_t from, size_t bytes, uint64_t *flag)
{
	*flag = call_all(qp, to, from, bytes, flag);
}
#else
uint64_t calls(qp_t *qp, addr_t to, addr_t from, size_t bytes, uint64_t *flag);

uint64_t calls(qp_t *qp, addr_t to, addr_t from, size_t bytes, uint64_t *flag)
{
	return call_all(qp, to, from, bytes, flag);
}
#endif
