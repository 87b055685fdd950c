/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Export of a shared receive queue: a device struct and a state block like those of a receive queue
 * (export_rq.c), without a CQ. GPU threads post receives to it (srq_dev.h).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "device/gdk/state.h"
#include "qp/export/export.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* `exported` of all SRQs */

struct gdk_srq_export {
	doca_gpu_t *gpu;
	void *state; /* state block, and behind it the device struct; GPU address */
};

static doca_error_t check_srq(doca_gpu_t *gpu, const struct doca_verbs_srq *srq)
{
	doca_error_t err = DOCA_ERROR_NOT_SUPPORTED;
	const char *why = NULL;

	if (srq->sdk) {
		why = "it belongs to the DOCA SDK, which does not tell where the queue is";
	} else if (!srq->cyclic) {
		why = "it is a linked list: create it with type CONTIGUOUS";
	} else if (srq->own_mem && !gdk_gpu_is_host(gpu)) {
		why = "it is in internal host memory, which the GPU cannot access: use an external "
		      "umem";
	} else if (srq->umem && srq->umem->gpu && srq->umem->gpu != gpu) {
		why = "it is in memory of another GPU than gpu_dev";
		err = DOCA_ERROR_INVALID_VALUE;
	} else if (srq->exported) {
		why = "it is exported already";
		err = DOCA_ERROR_IN_USE;
	} else if (srq->was_exported) {
		why = "it was exported before, and the NIC continues its indices: create it anew";
		err = DOCA_ERROR_BAD_STATE;
	}
	if (!why)
		return DOCA_SUCCESS;
	gdk_err("SRQ 0x%x: cannot export it: %s", srq->srqn, why);
	return err;
}

static void fill_dev(const struct gdk_srq_export *x, const struct doca_verbs_srq *srq, bool on_host,
		     struct doca_gpu_dev_verbs_qp *d)
{
	struct doca_gpu_dev_verbs_qp *gpu_dev =
		(void *)((uint8_t *)x->state + gdk_dev_struct_at(srq->num));

	d->sq_wqe_num = (uint16_t)srq->num; /* at most 32768: fits */
	d->sq_wqe_mask = (uint16_t)(srq->num - 1);
	d->sq_wqe_daddr = srq->buf;
	d->sq_dbrec = srq->dbrec;
	/* Not a register: a word that is not read. */
	d->sq_db = (void *)((uint8_t *)gpu_dev + offsetof(struct doca_gpu_dev_verbs_qp, reserved3));
	d->gdk_state = x->state;
	d->nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB;
	d->mem_type = on_host ? DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST
			      : DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
	d->rq_wqe_daddr = srq->buf;
	d->rq_wqe_num = srq->num;
	d->rq_wqe_mask = srq->num - 1;
	d->gdk_rq_shift = (uint8_t)gdk_ilog2(srq->wqe_size);
}

static doca_error_t write_state(const struct gdk_srq_export *x, const struct doca_verbs_srq *srq)
{
	const bool on_host = gdk_export_on_host(srq->umem ? srq->umem->gpu : NULL, x->gpu,
						srq->buf);
	const size_t at = gdk_dev_struct_at(srq->num);
	uint32_t flags = GDK_QPF_RECV | (on_host ? GDK_QPF_SYS_SCOPE : 0);
	struct doca_gpu_dev_verbs_qp dev = { 0 };
	struct gdk_qp_state *image = calloc(1, gdk_export_bytes(srq->num, 0));
	doca_error_t err;

	if (!image) {
		gdk_err("no memory for an export of SRQ 0x%x", srq->srqn);
		return DOCA_ERROR_NO_MEMORY;
	}
	if (gdk_gpu_is_host(x->gpu))
		flags |= GDK_QPF_HOST_EXEC | GDK_QPF_SYS_SCOPE;
	fill_dev(x, srq, on_host, &dev);
	gdk_qp_state_format(image, srq->num, flags);
	gdk_qp_state_bind(image, &dev);
	memcpy((uint8_t *)image + at, &dev, sizeof(dev));
	err = gdk_gpu_write(x->gpu, x->state, image, gdk_export_bytes(srq->num, 0));
	free(image);
	return err;
}

/* The caller holds the lock. */
static doca_error_t export_locked(doca_gpu_t *gpu_dev, struct doca_verbs_srq *srq,
				  struct doca_gpu_dev_verbs_qp **srq_dev)
{
	doca_error_t err = check_srq(gpu_dev, srq);
	struct gdk_srq_export *x;
	void *cpu = NULL;

	if (err != DOCA_SUCCESS)
		return err;
	x = calloc(1, sizeof(*x));
	if (!x) {
		gdk_err("no memory for an export of SRQ 0x%x", srq->srqn);
		return DOCA_ERROR_NO_MEMORY;
	}
	x->gpu = gpu_dev;
	err = doca_gpu_mem_alloc(gpu_dev, gdk_export_bytes(srq->num, 0), GDK_STATE_LINE,
				 DOCA_GPU_MEM_TYPE_GPU, &x->state, &cpu);
	if (err != DOCA_SUCCESS)
		goto err_free;
	err = write_state(x, srq);
	if (err != DOCA_SUCCESS)
		goto err_state;
	srq->exported = x;
	srq->was_exported = true;
	*srq_dev = (void *)((uint8_t *)x->state + gdk_dev_struct_at(srq->num));
	return DOCA_SUCCESS;

err_state:
	(void)doca_gpu_mem_free(gpu_dev, x->state);
err_free:
	free(x);
	return err;
}

doca_error_t gdk_verbs_export_srq(doca_gpu_t *gpu_dev, struct doca_verbs_srq *srq,
				  struct doca_gpu_dev_verbs_qp **srq_dev)
{
	doca_error_t err;

	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(srq);
	GDK_CHECK_PTR(srq_dev);
	GDK_CHECK_MIX(gpu_dev, srq);
	pthread_mutex_lock(&lock);
	err = export_locked(gpu_dev, srq, srq_dev);
	pthread_mutex_unlock(&lock);
	return err;
}

static doca_error_t unexport_locked(struct doca_verbs_srq *srq)
{
	doca_error_t err;

	if (!srq->exported) {
		gdk_err("SRQ 0x%x: cannot un-export it: it is not exported", srq->srqn);
		return DOCA_ERROR_NOT_FOUND;
	}
	err = doca_gpu_mem_free(srq->exported->gpu, srq->exported->state);
	if (err != DOCA_SUCCESS)
		return err;
	free(srq->exported);
	srq->exported = NULL;
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_unexport_srq(struct doca_verbs_srq *srq)
{
	doca_error_t err;

	GDK_CHECK_PTR(srq);
	pthread_mutex_lock(&lock);
	err = unexport_locked(srq);
	pthread_mutex_unlock(&lock);
	return err;
}

static doca_error_t check_cq(const struct doca_verbs_srq *srq, const doca_verbs_cq_t *cq)
{
	const doca_gpu_t *gpu = srq->exported->gpu;
	doca_error_t err = DOCA_ERROR_NOT_SUPPORTED;
	const char *why = NULL;

	if (cq->sdk) {
		why = "it belongs to the DOCA SDK, which does not tell where its entries are";
	} else if (cq->collapsed) {
		why = "it is collapsed, so receive CQEs would be lost";
	} else if (cq->own_umem && !gdk_gpu_is_host(gpu)) {
		why = "it is in internal host memory, which the GPU cannot access: use an external "
		      "umem";
	} else if (cq->gpu && cq->gpu != gpu) {
		why = "it is in memory of another GPU than the one of the SRQ's export";
		err = DOCA_ERROR_INVALID_VALUE;
	} else if (cq->cqe_num < srq->num) {
		gdk_err("SRQ 0x%x: cannot use CQ 0x%x: it has %u entries, fewer than the SRQ's %u "
			"receives",
			srq->srqn, cq->cqn, cq->cqe_num, srq->num);
		return DOCA_ERROR_INVALID_VALUE;
	} else if (atomic_load(&cq->exported)) {
		why = "an exported QP uses it, and finds its WQEs by the index of a CQE: give the "
		      "QPs of the SRQ a receive CQ of their own";
		err = DOCA_ERROR_IN_USE;
	} else if (!cq->overrun_ignore) {
		why = "it does not ignore overruns, and gdk_srq_poll() does not tell the NIC which "
		      "entries are consumed";
	}
	if (!why)
		return DOCA_SUCCESS;
	gdk_err("SRQ 0x%x: cannot use CQ 0x%x: %s", srq->srqn, cq->cqn, why);
	return err;
}

doca_error_t gdk_verbs_srq_get_cq_dev(const struct doca_verbs_srq *srq,
				      const doca_verbs_cq_t *cq_rq,
				      struct doca_gpu_dev_verbs_cq *cq_dev)
{
	doca_error_t err;

	GDK_CHECK_PTR(srq);
	GDK_CHECK_PTR(cq_rq);
	GDK_CHECK_PTR(cq_dev);
	if (!srq->exported) {
		gdk_err("SRQ 0x%x: cannot use a CQ: the SRQ is not exported", srq->srqn);
		return DOCA_ERROR_NOT_FOUND;
	}
	err = check_cq(srq, cq_rq);
	if (err != DOCA_SUCCESS)
		return err;
	memset(cq_dev, 0, sizeof(*cq_dev));
	gdk_export_fill_cq(cq_rq, srq->exported->gpu, NULL, cq_dev);
	return DOCA_SUCCESS;
}
