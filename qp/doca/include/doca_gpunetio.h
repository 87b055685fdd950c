/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * GPUs, their memory, and queue pairs exported to them. Return values, out-parameters and threads:
 * see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_H
#define GDK_SDK_DOCA_GPUNETIO_H

#include "doca_gpunetio_verbs_def.h"
#include "doca_types.h"
#include "gdk_sdk_semaphore.h"
#include "host/gdk_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_verbs_cq;
struct doca_verbs_qp;

struct doca_gpu_verbs_qp; /* a queue pair that is exported to a GPU */

/**
 * Exports GPU memory as a dmabuf. Any thread may call this.
 *
 * @param memptr_gpu GPU address, a multiple of the CPU's page size
 * @param size bytes, rounded up to the CPU's page size
 * @param dmabuf_fd gets a file descriptor, which the caller closes
 * @retval DOCA_ERROR_INVALID_VALUE also if memptr_gpu is not on a page boundary
 * @retval DOCA_ERROR_NOT_SUPPORTED the GPU or its driver cannot export this memory as a dmabuf;
 *         always for GPU "host"
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the CUDA context cannot be used
 */
doca_error_t doca_gpu_dmabuf_fd(struct doca_gpu *gpu_dev, void *memptr_gpu, size_t size,
				int *dmabuf_fd);

/**
 * Exports a QP: builds the structures through which GPU threads post to it. The QP may be in any
 * state. End the export with doca_gpu_verbs_unexport_qp() before the QP is destroyed. For a CUDA
 * GPU the queues and the CQs must be in external umems.
 *
 * @param dev a NIC of the verbs context of the QP
 * @param nic_handler the doorbell handler; AUTO: the library chooses one
 * @param gpu_qp_umem_dev_ptr not used: the umem knows its address
 * @param cq_sq the CQ of the send queue; it serves only one exported QP
 * @param cq_rq the CQ of the receive queue, which is then exported, too; it serves only this QP.
 *         NULL: the receive queue is not exported
 * @retval DOCA_ERROR_INVALID_VALUE QP, CQs, NIC, GPU and handler do not fit together
 * @retval DOCA_ERROR_NOT_SUPPORTED the handler does not work on this GPU and NIC, or the queues are
 *         in memory that the GPU cannot address
 * @retval DOCA_ERROR_IN_USE the QP or one of the CQs is exported already
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the UAR cannot be mapped, or a CUDA call failed
 */
doca_error_t
doca_gpu_verbs_export_qp(struct doca_gpu *gpu_dev, struct doca_dev *dev, struct doca_verbs_qp *qp,
			 enum doca_gpu_dev_verbs_nic_handler nic_handler, void *gpu_qp_umem_dev_ptr,
			 struct doca_verbs_cq *cq_sq, struct doca_verbs_cq *cq_rq,
			 struct doca_gpu_verbs_qp **qp_out) GDK_DOCA_NAME(gdk_doca_export_qp);

/**
 * Ends an export and frees qp and its device struct. No GPU thread may use the QP any more.
 *
 * @param gpu_dev the GPU of the export; INVALID_VALUE for another one
 */
doca_error_t doca_gpu_verbs_unexport_qp(struct doca_gpu *gpu_dev, struct doca_gpu_verbs_qp *qp);

/**
 * Returns the device struct of an exported QP, which GPU kernels get as an argument.
 *
 * @param qp_gpu gets a GPU address
 */
doca_error_t doca_gpu_verbs_get_qp_dev(struct doca_gpu_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_qp **qp_gpu);

/**
 * Executes one step of the CPU proxy for one QP: rings every index that GPU threads raised before
 * the call. Any thread may call this.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the handler of the QP needs no CPU thread
 */
doca_error_t doca_gpu_verbs_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp_cpu)
	GDK_DOCA_NAME(gdk_doca_cpu_proxy_progress);

#ifdef __cplusplus
}
#endif

#endif
