/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA GPUNetIO device API, completion queues: DOCA's template spellings of
 * gdk/cq_dev.h. Polls return 0, EBUSY (not yet; poll_one only) or the negative
 * errno that ended the QP.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_CQ_CUH
#define DOCA_GPUNETIO_DEV_VERBS_CQ_CUH

#include "../device/doca_gpunetio_dev_verbs_common.cuh"
#include "../device/gdk/cq_dev.h"
#include "../device/gdk/dump_dev.h"

GDK_FN struct doca_gpu_dev_verbs_cq *
doca_gpu_dev_verbs_qp_get_cq_sq(struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_qp_cq(qp);
}

GDK_FN uint32_t doca_gpu_dev_verbs_cqe_idx_inc_mask(uint32_t cqe_idx, uint32_t increment)
{
	return (cqe_idx + increment) & DOCA_GPUNETIO_VERBS_CQE_CI_MASK;
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index)
{
	return gdk_poll_one_cq_at(cq, cons_index, resource_sharing_mode);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index)
{
	return gdk_poll_cq_at(cq, cons_index, resource_sharing_mode);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_cq_collapsed_at(struct doca_gpu_dev_verbs_qp *qp,
						   uint64_t cons_index)
{
	return gdk_poll_collapsed_at(qp, cons_index, resource_sharing_mode);
}

/* The next count completions after those already seen. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_cq(struct doca_gpu_dev_verbs_cq *cq, uint32_t count)
{
	return gdk_poll_cq(cq, count, resource_sharing_mode);
}

/* ---- names that DOCA's own functions use: they poll in order, too ---- */

template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_priv_gpu_dev_verbs_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq,
						  uint64_t cons_index)
{
	return gdk_poll_one_cq_at(cq, cons_index, resource_sharing_mode);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_priv_gpu_dev_verbs_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index)
{
	return gdk_poll_cq_at(cq, cons_index, resource_sharing_mode);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_priv_gpu_dev_verbs_poll_cq_collapsed_at(struct doca_gpu_dev_verbs_qp *qp,
							struct doca_gpu_dev_verbs_cq *cq,
							uint64_t cons_index, uint64_t *new_cqe_ci)
{
	int err = gdk_poll_collapsed_at(qp, cons_index, resource_sharing_mode);

	*new_cqe_ci = gdk_ld64(&gdk_state_of_cq(cq)->completed,
			       gdk_mode_scope(resource_sharing_mode));
	return err;
}

/* ---- consumer record, errors ---- */

template <bool is_overrun>
GDK_FN uint32_t doca_gpu_dev_verbs_cq_update_dbrec(struct doca_gpu_dev_verbs_cq *cq,
						   uint32_t cqe_num)
{
	return gdk_cq_consume(cq, cqe_num, is_overrun);
}

#if DOCA_GPUNETIO_VERBS_ENABLE_DEBUG == 1
GDK_FN void doca_gpu_dev_verbs_cq_print_cqe_err(struct doca_gpunetio_ib_mlx5_cqe64 *cqe64)
{
	gdk_print_cqe64(cqe64);
}
#endif

#endif
