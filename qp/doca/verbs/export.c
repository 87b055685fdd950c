/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Export of queue pairs to a GPU in the SDK's interface. The DBREC mode of the export follows from
 * the mode with which the queue pair was created. The receive queue is exported if its CQ is given.
 * qp/export/export.c does the work.
 */
#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "qp/doca/verbs/context.h"
#include "qp/doca/verbs/shape.h"
#include "qp/export/export.h"

static doca_error_t check_dev(const doca_dev_t *dev, const doca_verbs_qp_t *qp)
{
	const char *why = "it was created in another verbs context than that of dev";

	if (gdk_dev_share_objects(dev, qp->dev))
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: cannot export it: %s", qp->qpn, why);
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t gdk_doca_export_qp(doca_gpu_t *gpu_dev, doca_dev_t *dev, doca_verbs_qp_t *qp,
				enum doca_gpu_dev_verbs_nic_handler nic_handler,
				void *gpu_qp_umem_dev_ptr, doca_verbs_cq_t *cq_sq,
				doca_verbs_cq_t *cq_rq, struct doca_gpu_verbs_qp **qp_out)
{
	struct gdk_export_ask what = {
		.gpu = gpu_dev,
		.qp = qp,
		.cq = cq_sq,
		.cq_rq = cq_rq,
		.handler = nic_handler,
	};
	doca_error_t err;

	(void)gpu_qp_umem_dev_ptr; /* the QP's umem contains the address */
	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(qp);
	GDK_CHECK_HANDLER(nic_handler);
	GDK_CHECK_PTR(cq_sq);
	GDK_CHECK_PTR(qp_out);
	GDK_CHECK_MIX(gpu_dev, qp);
	GDK_CHECK_MIX(qp, cq_sq);
	GDK_CHECK_MIX(qp, cq_rq);
	err = check_dev(dev, qp);
	if (err != DOCA_SUCCESS)
		return err;
	what.mode = qp->no_dbr ? DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW
			       : DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR;
	return gdk_qp_export(&what, qp_out);
}

doca_error_t gdk_doca_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp_cpu)
{
	return doca_gpu_verbs_cpu_proxy_progress(qp_cpu, NULL);
}

doca_error_t doca_gpu_dmabuf_fd(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size, int *dmabuf_fd)
{
	return doca_gpu_get_dmabuf_fd(gpu_dev, memptr_gpu, size, dmabuf_fd);
}
