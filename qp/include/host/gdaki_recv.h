/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Receive queues that GPU threads use (device/gdk/recv_dev.h). Included by gdaki.h.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h.
 */
#ifndef GDK_GDAKI_RECV_H
#define GDK_GDAKI_RECV_H

#include <stdbool.h>

#include "host/doca_gpunetio.h"
#include "host/doca_gpunetio_high_level.h"
#include "host/doca_verbs_qp.h"
#include "host/doca_verbs_srq.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Exports a QP as doca_gpu_verbs_export_qp() does, and its receive queue too: GPU threads post
 * receives and wait for them. Release it with doca_gpu_verbs_unexport_qp().
 *
 * @param cq_rq the receive CQ of the QP, used by this QP only, with at least as many entries as the
 *         receive queue has WQEs
 * @retval DOCA_ERROR_IN_USE also if another QP was created with cq_rq
 * @retval DOCA_ERROR_INVALID_VALUE also if the QP has no receive queue, or cq_rq is not its receive
 *         CQ or is too small
 * @retval DOCA_ERROR_NOT_SUPPORTED also if cq_rq is the send CQ or is collapsed, or if the QP uses
 *         an SRQ or belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_export_qp_rq(doca_gpu_t *gpu_dev, doca_verbs_qp_t *qp,
				    enum doca_gpu_dev_verbs_nic_handler nic_handler,
				    doca_verbs_cq_t *cq_sq, doca_verbs_cq_t *cq_rq,
				    enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext,
				    struct doca_gpu_verbs_qp **qp_out);

/** Receive queue of a high-level QP. 0 is valid for all members but rq_nwqe. */
struct gdk_qp_rq_attr_hl {
	uint32_t rq_nwqe;	   /**< receive WQEs, 1 to 32768, rounded up to a power of two */
	uint32_t receive_max_sges; /**< data segments of a receive WQE, at most 32, rounded up to a
				    * power of two; 0: 1 */
	bool cqe_inline;	   /**< as doca_verbs_qp_init_attr_set_cqe_inline() */
};

/**
 * Creates a high-level QP as gdk_verbs_create_qp_hl() does, with a receive queue, and exports both
 * queues. The receive CQ has as many entries as the receive queue has WQEs, and overrun is enabled.
 * In the result, qp_umem_gpu_ptr is the address of receive WQE 0; the send ring is behind the
 * receive ring. Destroy it with doca_gpu_verbs_destroy_qp_hl().
 *
 * @param flags 0 or GDK_QP_HL_QUEUES_ON_HOST
 * @retval DOCA_ERROR_INVALID_VALUE also if a member of rq_attr is out of range
 * @retval DOCA_ERROR_NOT_SUPPORTED also if the GPU belongs to the DOCA SDK, or if cqe_inline is set
 *         and the device lacks it
 */
doca_error_t gdk_verbs_create_qp_rq_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
				       const struct gdk_qp_rq_attr_hl *rq_attr, uint32_t flags,
				       struct doca_gpu_verbs_qp_hl **qp);

/**
 * Creates a group as gdk_verbs_create_qp_group_hl() does, whose main QP has a receive queue as that
 * of gdk_verbs_create_qp_rq_hl(). The companion has none. Destroy it with
 * doca_gpu_verbs_destroy_qp_group_hl().
 *
 * @param flags 0 or GDK_QP_HL_QUEUES_ON_HOST
 * @retval DOCA_ERROR_INVALID_VALUE also if a member of rq_attr is out of range
 * @retval DOCA_ERROR_NOT_SUPPORTED also if the GPU belongs to the DOCA SDK, or if cqe_inline is set
 *         and the device lacks it
 */
doca_error_t
gdk_verbs_create_qp_group_rq_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
				const struct gdk_qp_rq_attr_hl *rq_attr, uint32_t flags,
				struct doca_gpu_verbs_qp_group_hl **qpg);

/**
 * Creates a high-level QP as gdk_verbs_create_qp_hl() does, which takes its receives from a shared
 * receive queue. Destroy it with doca_gpu_verbs_destroy_qp_hl(), before the SRQ and the CQ.
 *
 * @param srq the SRQ; the QP exports only its send queue (gdk_verbs_export_srq())
 * @param cq_rq the receive CQ, which other QPs of the SRQ may use too
 * @param flags 0 or GDK_QP_HL_QUEUES_ON_HOST; they do not concern SRQ and receive CQ
 * @retval DOCA_ERROR_NOT_SUPPORTED also if the GPU belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_create_qp_srq_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					struct doca_verbs_srq *srq, doca_verbs_cq_t *cq_rq,
					uint32_t flags, struct doca_gpu_verbs_qp_hl **qp);

/**
 * Returns the receive CQ of a high-level QP. It is destroyed with the QP.
 *
 * @retval DOCA_ERROR_INVALID_VALUE the QP has no receive queue
 */
doca_error_t gdk_verbs_qp_hl_get_cq_rq(const struct doca_gpu_verbs_qp_hl *qp,
				       doca_verbs_cq_t **cq_rq);

/**
 * Exports an SRQ: GPU threads post its receives (device/gdk/srq_dev.h). Release it with
 * gdk_verbs_unexport_srq(). The completions are in the receive CQs of the queue pairs that use the
 * SRQ (gdk_verbs_srq_get_cq_dev()).
 *
 * @param srq an SRQ of type DOCA_VERBS_SRQ_TYPE_CONTIGUOUS. Before the first submit, the CPU must
 *         not have posted any receive.
 * @param srq_dev gets the address that device code uses; valid until the un-export
 * @retval DOCA_ERROR_INVALID_VALUE the SRQ is in memory of another GPU
 * @retval DOCA_ERROR_NOT_SUPPORTED the SRQ is a linked list, is in internal host memory and gpu_dev
 *         is a GPU, or belongs to the DOCA SDK
 * @retval DOCA_ERROR_IN_USE the SRQ is exported already
 * @retval DOCA_ERROR_BAD_STATE the SRQ was exported before
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_verbs_export_srq(doca_gpu_t *gpu_dev, struct doca_verbs_srq *srq,
				  struct doca_gpu_dev_verbs_qp **srq_dev);

/**
 * Ends the export of an SRQ. No GPU thread may use it any more. It cannot be exported again.
 *
 * @retval DOCA_ERROR_NOT_FOUND the SRQ is not exported
 */
doca_error_t gdk_verbs_unexport_srq(struct doca_verbs_srq *srq);

/**
 * Describes the receive CQ of queue pairs that use an exported SRQ, for gdk_srq_poll() of device
 * code. The struct can be an argument of a kernel. The CQ needs no export; if GPU threads read it,
 * it must be in memory that the GPU can access.
 *
 * @param cq_rq a CQ with at least as many entries as the SRQ has receives, and with
 *        DOCA_VERBS_CQ_ENABLE_OVERRUN, because gdk_srq_poll() does not report to the NIC which
 *        entries are consumed
 * @retval DOCA_ERROR_INVALID_VALUE the CQ is too small, or in memory of another GPU than the SRQ's
 *         export
 * @retval DOCA_ERROR_IN_USE the CQ belongs to an exported QP, as its send CQ or as that of an
 *         exported receive queue
 * @retval DOCA_ERROR_NOT_FOUND the SRQ is not exported
 * @retval DOCA_ERROR_NOT_SUPPORTED the CQ is collapsed, does not ignore overruns, belongs to the
 *         DOCA SDK, or is in internal host memory and the SRQ is exported to a GPU
 */
doca_error_t gdk_verbs_srq_get_cq_dev(const struct doca_verbs_srq *srq,
				      const doca_verbs_cq_t *cq_rq,
				      struct doca_gpu_dev_verbs_cq *cq_dev);

/** Counters of an exported receive queue, since the export or the last reset. */
struct gdk_qp_recv_counters {
	uint64_t reserved;    /**< receives that GPU threads reserved */
	uint64_t posted;      /**< receives offered to the NIC */
	uint64_t completions; /**< receives that GPU threads know to be complete */
	int status;	      /**< 0, or the negative errno that ended the receive queue */
	uint64_t error_wqe;   /**< index of a receive whose CQE was an error; 0 if there was none */
};

/**
 * Reads the counters of the receive queue of an exported QP. GPU threads may use the QP meanwhile.
 *
 * @retval DOCA_ERROR_INVALID_VALUE the receive queue is not exported
 * @retval DOCA_ERROR_NO_MEMORY no memory for a copy of the state
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_get_recv_counters(struct doca_gpu_verbs_qp *qp,
					    struct gdk_qp_recv_counters *counters);

/**
 * Writes a receive WQE of an exported QP as readable text: its data segments, up to the one that
 * ends the list (byte_count 0, lkey 0x100).
 *
 * @param index index of the receive, counted from the export or the last reset
 * @param size bytes at buf, at least 1; longer text is cut
 * @retval DOCA_ERROR_INVALID_VALUE the receive queue is not exported
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_dump_recv_wqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
					size_t size);

/**
 * Writes a CQE of an exported receive queue as readable text, in the format of gdk_dump_cqe().
 *
 * @param index index of the receive, counted from the export or the last reset
 * @param size bytes at buf, at least 1; longer text is cut
 * @retval DOCA_ERROR_INVALID_VALUE the receive queue is not exported
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_dump_recv_cqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
					size_t size);

#ifdef __cplusplus
}
#endif

#endif
