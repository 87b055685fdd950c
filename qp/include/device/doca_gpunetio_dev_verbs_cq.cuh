/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Device API, completion queues. The functions have the names and signatures of DOCA GPUNetIO and
 * call plain functions in gdk/wait_dev.h; most are templates.
 *
 * A completion index counts from the export or the last reset of the QP. In a collapsed CQ it is
 * the index of a WQE. Functions that poll return 0, or the negative errno that ended the QP: -EIO
 * after an error CQE, -ECANCELED after gdk_verbs_qp_abort(), -ETIMEDOUT after the wait limit,
 * -EHOSTDOWN after the wait limit if the CPU has not rung and no service monitors the QP, -ENOTCONN
 * after 1 ms if the QP is not connected. Functions whose names contain poll_one return the last
 * three only if an earlier wait ended the QP with them.
 *
 * Template parameters: resource_sharing_mode names the threads that poll this CQ at the same time;
 * it must be the mode of the functions that post to the queue. qp_type is the queue of the CQ;
 * the CQ has the address of its queue, so any value has the same effect.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_CQ_CUH
#define DOCA_GPUNETIO_DEV_VERBS_CQ_CUH

#include "device/doca_gpunetio_dev_verbs_common.cuh"
#include "device/gdk/wait_dev.h"
#include "device/gdk/cqe_text_dev.h"

/** Returns the CQ of a QP's send queue. */
GDK_FN struct doca_gpu_dev_verbs_cq *
doca_gpu_dev_verbs_qp_get_cq_sq(struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_qp_cq(qp);
}

/** Returns cqe_idx + increment modulo 2^24: a CQ's consumer index has 24 bits. */
GDK_FN uint32_t doca_gpu_dev_verbs_cqe_idx_inc_mask(uint32_t cqe_idx, uint32_t increment)
{
	return (cqe_idx + increment) & DOCA_GPUNETIO_VERBS_CQE_CI_MASK;
}

/** Polls the CQ once for completion cons_index. Returns EBUSY if it has not arrived yet. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index)
{
	return gdk_poll_one_cq_at(cq, cons_index, resource_sharing_mode);
}

/**
 * Waits until completion cons_index has arrived, that is, until all WQEs up to it are complete.
 */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index)
{
	return gdk_poll_cq_at(cq, cons_index, resource_sharing_mode);
}

/**
 * As doca_gpu_dev_verbs_poll_cq_at(), for a QP with a collapsed CQ: cons_index is the index of a
 * WQE.
 */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_cq_collapsed_at(struct doca_gpu_dev_verbs_qp *qp,
						   uint64_t cons_index)
{
	return gdk_poll_collapsed_at(qp, cons_index, resource_sharing_mode);
}

/** Waits for the next count completions after those that were already polled. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_gpu_dev_verbs_poll_cq(struct doca_gpu_dev_verbs_cq *cq, uint32_t count)
{
	return gdk_poll_cq(cq, count, resource_sharing_mode);
}

/* ---- internal functions of DOCA ---- */

/** As doca_gpu_dev_verbs_poll_one_cq_at(). For source compatibility. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_priv_gpu_dev_verbs_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq,
						  uint64_t cons_index)
{
	return gdk_poll_one_cq_at(cq, cons_index, resource_sharing_mode);
}

/** As doca_gpu_dev_verbs_poll_cq_at(). For source compatibility. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ>
GDK_FN int doca_priv_gpu_dev_verbs_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t cons_index)
{
	return gdk_poll_cq_at(cq, cons_index, resource_sharing_mode);
}

/**
 * As doca_gpu_dev_verbs_poll_cq_collapsed_at(). Also stores the index below which all WQEs are
 * known to be complete in *new_cqe_ci. For source compatibility.
 */
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

/* ---- consumer index, errors ---- */

/**
 * Adds cqe_num to the consumer index, for callers that read CQEs themselves. Also updates the
 * completion state of the QP from these CQEs. Unless is_overrun is true, stores the index in the
 * DBREC, where the NIC reads it; a CQ whose overrun is enabled needs no DBREC. Returns the new
 * consumer index, 24 bits.
 */
template <bool is_overrun>
GDK_FN uint32_t doca_gpu_dev_verbs_cq_update_dbrec(struct doca_gpu_dev_verbs_cq *cq,
						   uint32_t cqe_num)
{
	return gdk_cq_consume(cq, cqe_num, is_overrun);
}

#if DOCA_GPUNETIO_VERBS_ENABLE_DEBUG == 1
/** Prints a CQE as text. Exists only if DOCA_GPUNETIO_VERBS_ENABLE_DEBUG is 1. */
GDK_FN void doca_gpu_dev_verbs_cq_print_cqe_err(struct doca_gpunetio_ib_mlx5_cqe64 *cqe64)
{
	gdk_print_cqe64(cqe64);
}
#endif

#endif
