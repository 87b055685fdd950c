/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls the two-sided device functions of the SDK's interface as NIXL and Holoscan do, with types
 * of libmlx5. tests/doca_calls.sh compiles this file as C++17 and as CUDA. It is not executed.
 */
#include <doca_gpunetio_dev_verbs_twosided.cuh>

#define CTA	  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define RQ	  DOCA_GPUNETIO_VERBS_QP_RQ
#define GPU_SCOPE DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU

GDK_FN uint32_t fill_receives(struct doca_gpu_dev_verbs_qp *qp, uint64_t addr, uint32_t lkey)
{
	struct mlx5_wqe_data_seg *seg = doca_gpu_dev_verbs_get_rwqe_ptr(qp, 0);

	doca_gpu_dev_verbs_wqe_prepare_recv(qp, seg, addr, lkey, 64);
	doca_gpu_dev_verbs_submit<CTA, GPU_SCOPE, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB, RQ>(qp,
												 1);
	return seg->lkey;
}

GDK_FN uint32_t immediate(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket)
{
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_rq(qp);
	struct mlx5_err_cqe_ex *failed;
	struct mlx5_cqe64 *cqe;

	if (doca_gpu_dev_verbs_poll_one_cq_at<CTA, RQ>(cq, ticket) != 0)
		return 0;
	cqe = (struct mlx5_cqe64 *)(cq->cqe_daddr +
				    (ticket & cq->cqe_mask) * DOCA_GPUNETIO_VERBS_CQE_SIZE);
	failed = (struct mlx5_err_cqe_ex *)cqe;
	if (cqe->op_own >> 4 == MLX5_CQE_RESP_ERR)
		return failed->syndrome + failed->hw_err_synd + failed->hw_synd_type;
	return doca_gpu_dev_verbs_bswap32(cqe->imm_inval_pkey);
}

GDK_FN uint32_t received_bytes(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr addr,
			       doca_gpu_dev_verbs_ticket_t *ticket)
{
	struct mlx5_cqe64 *cqe;

	if (doca_gpu_dev_verbs_recv<CTA>(qp, addr, 64, ticket) ||
	    doca_gpu_dev_verbs_recv_wait<CTA>(qp, addr, ticket, &cqe) ||
	    doca_gpu_dev_verbs_recv_wait<CTA>(qp, addr, *ticket, &cqe))
		return 0;
	return doca_gpu_dev_verbs_cqe_is_inline(cqe) ? *doca_gpu_dev_verbs_cqe_get_inl_data(cqe)
						     : doca_gpu_dev_verbs_cqe_get_bytes(cqe);
}

GDK_FN void submit_blueflame(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe)
{
	doca_gpu_dev_verbs_submit_bf<CTA, GPU_SCOPE,
				     DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_BF_UNRELIABLE>(qp, 1, wqe);
	doca_gpu_dev_verbs_submit_bf<CTA, GPU_SCOPE>(qp, 2, wqe);
}

GDK_FN uint32_t call_all(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe,
			 doca_gpu_dev_verbs_addr addr)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	submit_blueflame(qp, wqe);
	return fill_receives(qp, addr.addr, addr.key) + received_bytes(qp, addr, &ticket) +
	       immediate(qp, ticket);
}

#ifdef __CUDACC__
__global__ void calls(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr addr, uint32_t *out)
{
	__shared__ struct doca_gpu_dev_verbs_wqe wqe;

	*out = call_all(qp, &wqe, addr);
}
#else
uint32_t calls(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe,
	       doca_gpu_dev_verbs_addr addr);

uint32_t calls(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *wqe,
	       doca_gpu_dev_verbs_addr addr)
{
	return call_all(qp, wqe, addr);
}
#endif
