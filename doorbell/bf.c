/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Strategy "bf": a GPU thread or warp stores a whole 64-byte WQE to the BlueFlame register.
 * This is the host half, which requires a BlueFlame UAR and maps its page, with both halves
 * of the BlueFlame buffer, for the GPU. The device half is bf_dev.h.
 * Each QP needs a UAR of its own: the halves of the buffer are used alternately, and the state
 * block of one QP stores which half is next.
 */
#include <string.h>

#include "core/log/log.h"
#include "doorbell/doorbell.h"

static doca_error_t probe(const struct gdk_doorbell_ask *ask, enum doca_gpu_dev_verbs_nic_handler h,
			  const char **reason)
{
	void *reg_gpu;
	doca_error_t err;

	(void)h;
	if (ask->uar->type != DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME) {
		*reason = "the UAR is not a BlueFlame page";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (ask->dbr_mode != DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR) {
		*reason = "the requested DBREC mode is not VALID_DBR, which BlueFlame needs";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*reason = "the GPU cannot map the register page";
	err = gdk_gpu_map_reg(ask->gpu, ask->uar->reg_addr, &reg_gpu, reason);
	if (err != DOCA_SUCCESS)
		return err;
	return gdk_gpu_unmap_reg(ask->gpu, ask->uar->reg_addr);
}

static doca_error_t attach(struct doca_gpu_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *dev)
{
	struct gdk_db_qp *x = gdk_to_db_qp(qp);
	const char *how = NULL;
	void *reg_gpu;
	doca_error_t err;

	if (atomic_exchange(&x->uar->bf_used, true)) {
		gdk_err("QP 0x%x: cannot use GPU_SM_BF: another QP uses the BlueFlame buffer of "
			"UAR 0x%x; create a UAR for each QP",
			x->qpn, x->uar->id);
		return DOCA_ERROR_IN_USE;
	}
	err = gdk_gpu_map_reg(qp->gpu_dev, x->uar->reg_addr, &reg_gpu, &how);
	if (err != DOCA_SUCCESS) {
		gdk_err("QP 0x%x: cannot map the register page for the GPU: %s", x->qpn, how);
		atomic_store(&x->uar->bf_used, false);
		return err;
	}
	x->reg_on_host = !how || !strstr(how, "mapped as device memory");
	dev->sq_db = reg_gpu;
	qp->sq_db = x->uar->reg_addr;
	return DOCA_SUCCESS;
}

static void detach(struct doca_gpu_verbs_qp *qp)
{
	(void)gdk_gpu_unmap_reg(qp->gpu_dev, qp->sq_db);
	atomic_store(&gdk_to_db_qp(qp)->uar->bf_used, false);
}

static const struct gdk_doorbell ops = {
	.name = "bf",
	.handlers = 1u << DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF,
	.probe = probe,
	.attach = attach,
	.detach = detach,
};

GDK_DOORBELL(bf, &ops);
