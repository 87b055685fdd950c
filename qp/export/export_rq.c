/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Export of the receive queue of a queue pair. The receive queue gets a state block and a device
 * struct of its own, behind those of the send queue, so that the device functions for send queues
 * also reserve, publish and complete receive WQEs. Its doorbell is word 0 of the DBREC. A receive
 * queue has no doorbell register: the store of the register goes to a word of that device struct
 * which is not read. So the receive queue has the handler GPU_SM_DB, whatever the handler of the
 * queue pair is.
 */
#include <endian.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "device/gdk/state.h"
#include "qp/export/export.h"

doca_error_t gdk_export_rq_check(const struct gdk_export_ask *what)
{
	const struct doca_verbs_qp_t *qp = what->qp;
	const struct doca_verbs_cq_t *cq = what->cq_rq;
	doca_error_t err = DOCA_ERROR_INVALID_VALUE;
	const char *why = NULL;

	if (qp->sdk) {
		why = "it belongs to the DOCA SDK, which does not tell where the queue is";
		err = DOCA_ERROR_NOT_SUPPORTED;
	} else if (qp->srq) {
		why = "it uses an SRQ: export it without cq_rq";
		err = DOCA_ERROR_NOT_SUPPORTED;
	} else if (!qp->rq_num) {
		why = "it has none: set rq_wr (doca_verbs_qp_init_attr_set_rq_wr)";
	} else if (cq != qp->recv_cq) {
		why = "cq_rq is not the receive CQ with which the QP was created";
	} else if (cq == qp->send_cq) {
		why = "cq_rq is also the send CQ, where the index of a CQE does not tell the WQE: "
		      "create the QP with a receive CQ of its own";
		err = DOCA_ERROR_NOT_SUPPORTED;
	} else if (atomic_load(&cq->users) > 1) {
		why = "another QP was created with cq_rq, too, and the index of a CQE would not "
		      "tell the WQE: create the QP with a receive CQ of its own";
		err = DOCA_ERROR_IN_USE;
	} else if (cq->collapsed) {
		why = "cq_rq is collapsed, so receive CQEs would be lost";
		err = DOCA_ERROR_NOT_SUPPORTED;
	} else if (cq->gpu && cq->gpu != what->gpu) {
		why = "cq_rq is in memory of another GPU than gpu_dev";
	} else if (!gdk_gpu_is_host(what->gpu) && cq->own_umem) {
		why = "cq_rq is in internal host memory, which the GPU cannot access: use an "
		      "external umem";
		err = DOCA_ERROR_NOT_SUPPORTED;
	}
	if (why) {
		gdk_err("QP 0x%x: cannot export its receive queue: %s", qp->qpn, why);
		return err;
	}
	if (cq->cqe_num < qp->rq_num) {
		gdk_err("QP 0x%x: cannot export its receive queue: CQ 0x%x of %u entries is too "
			"small for %u receive WQEs",
			qp->qpn, cq->cqn, cq->cqe_num, qp->rq_num);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return DOCA_SUCCESS;
}

static uint32_t rq_flags(const struct gdk_export *x, const struct doca_verbs_cq_t *cq)
{
	const struct doca_verbs_qp_t *qp = x->q.pub.qp;
	doca_gpu_t *gpu = x->q.pub.gpu_dev;
	uint32_t flags = GDK_QPF_RECV;

	if (gdk_gpu_is_host(gpu))
		return flags | GDK_QPF_HOST_EXEC | GDK_QPF_SYS_SCOPE;
	if (gdk_export_on_host(qp->gpu, gpu, qp->rq_buf) ||
	    gdk_export_on_host(cq->gpu, gpu, cq->buf) ||
	    gdk_export_on_host(qp->umem_dbr->gpu, gpu, qp->dbrec))
		flags |= GDK_QPF_SYS_SCOPE;
	if (!cq->gpu || gdk_gpu_host_mem(gpu, cq->buf) || gdk_gpu_host_mem(gpu, x->q.state))
		flags |= GDK_QPF_HOST_LOOKS;
	return flags;
}

/* The device struct of the receive queue. */
static void fill_rq_dev(struct gdk_export *x)
{
	struct doca_gpu_dev_verbs_qp *d = &x->rq.dev;
	const struct doca_verbs_qp_t *qp = x->q.pub.qp;
	struct doca_gpu_dev_verbs_qp *gpu_dev = (void *)((uint8_t *)x->rq.state + x->rq.dev_at);

	d->sq_num = qp->qpn;
	d->sq_num_shift8 = qp->qpn << 8;
	d->sq_num_shift8_be = htobe32(qp->qpn << 8);
	d->sq_wqe_num = (uint16_t)qp->rq_num; /* at most 32768: fits */
	d->sq_wqe_mask = (uint16_t)(qp->rq_num - 1);
	d->sq_wqe_daddr = qp->rq_buf;
	d->sq_dbrec = &qp->dbrec[0];
	/* Not a register: a word that is not read. */
	d->sq_db = (void *)((uint8_t *)gpu_dev + offsetof(struct doca_gpu_dev_verbs_qp, reserved3));
	d->gdk_state = x->rq.state;
	d->nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB;
	d->mem_type = gdk_export_on_host(qp->gpu, x->q.pub.gpu_dev, qp->rq_buf)
			      ? DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST
			      : DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
	gdk_export_fill_cq(x->rq.cq, x->q.pub.gpu_dev, x->rq.state, &d->cq_sq);
}

void gdk_export_rq_fill(struct gdk_export *x, struct doca_verbs_cq_t *cq)
{
	const struct doca_verbs_qp_t *qp = x->q.pub.qp;
	struct doca_gpu_dev_verbs_qp *d = &x->dev;

	if (!cq)
		return;
	x->rq.cq = cq;
	x->rq.state = (uint8_t *)x->q.state +
		      gdk_align_up(gdk_export_bytes(qp->sq_num, 0), GDK_STATE_LINE);
	x->rq.dev_at = gdk_dev_struct_at(qp->rq_num);
	x->rq.flags = rq_flags(x, cq);
	fill_rq_dev(x);
	d->rq_wqe_daddr = qp->rq_buf;
	d->gdk_rq = (void *)((uint8_t *)x->rq.state + x->rq.dev_at);
	d->rq_wqe_num = qp->rq_num;
	d->rq_wqe_mask = qp->rq_num - 1;
	d->gdk_rq_shift = (uint8_t)gdk_ilog2(qp->rwqe_size);
	d->cq_rq = x->rq.dev.cq_sq;
}
