/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Strategy "gpu_sm": a GPU thread stores 8 bytes to the doorbell register, after it has
 * stored the DBREC (GPU_SM_DB) or without a DBREC (GPU_SM_NO_DBR: the device does not need
 * one, or a CPU thread writes it later). This is the host half, which maps the register page
 * for the GPU. The device half is ring_dev.h.
 */
#include <string.h>

#include "core/log/log.h"
#include "doorbell/doorbell.h"
#include "device/gdk/state.h"

static doca_error_t probe_no_dbr(const struct gdk_doorbell_ask *ask, const char **reason)
{
	switch (ask->dbr_mode) {
	case DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW:
		if (!ask->dev->caps.send_dbr_mode_no_dbr_ext) {
			*reason = "the device does not support DBREC-less QPs (ConnectX-8 or newer "
				  "does)";
			return DOCA_ERROR_NOT_SUPPORTED;
		}
		return DOCA_SUCCESS;
	case DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED:
		return DOCA_SUCCESS;
	default:
		*reason = "the requested DBREC mode is VALID_DBR";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
}

static void *ask_register(const struct gdk_doorbell_ask *ask)
{
	if (ask->qp)
		return gdk_to_db_qp(ask->qp)->reg;
	return ask->dbr_mode == DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW
		       ? ask->uar->dbr_less_addr
		       : ask->uar->reg_addr;
}

static doca_error_t probe(const struct gdk_doorbell_ask *ask, enum doca_gpu_dev_verbs_nic_handler h,
			  const char **reason)
{
	void *reg = ask_register(ask), *reg_gpu;
	doca_error_t err;

	if (h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR) {
		err = probe_no_dbr(ask, reason);
		if (err != DOCA_SUCCESS)
			return err;
	} else if (ask->dbr_mode != DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR) {
		*reason = "the requested DBREC mode is not VALID_DBR";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (!reg) {
		*reason = "the UAR has no register for QPs without DBREC";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*reason = "the GPU cannot map the register page";
	err = gdk_gpu_map_reg(ask->gpu, reg, &reg_gpu, reason);
	if (err != DOCA_SUCCESS)
		return err;
	return gdk_gpu_unmap_reg(ask->gpu, reg);
}

static doca_error_t attach(struct doca_gpu_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *dev)
{
	struct gdk_db_qp *x = gdk_to_db_qp(qp);
	void *reg_gpu;
	bool emulated = qp->send_dbr_mode_ext ==
			DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED;
	struct gdk_qp_state *state;
	const char *how = NULL;
	doca_error_t err;

	if (emulated && !x->dbrec_cpu) {
		gdk_err("QP 0x%x: cannot use NO_DBR_SW_EMULATED: the CPU cannot write the DBREC",
			x->qpn);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	err = gdk_gpu_map_reg(qp->gpu_dev, x->reg, &reg_gpu, &how);
	if (err != DOCA_SUCCESS) {
		gdk_err("QP 0x%x: cannot map the register page for the GPU: %s", x->qpn, how);
		return err;
	}
	x->reg_on_host = !how || !strstr(how, "mapped as device memory");
	if (emulated) {
		state = gdk_gpu_cpu_ptr(qp->gpu_dev, x->state);
		qp->cpu_db = &state->rung;
		qp->cpu_proxy = true;
	}
	dev->sq_db = reg_gpu;
	return DOCA_SUCCESS;
}

static void detach(struct doca_gpu_verbs_qp *qp)
{
	(void)gdk_gpu_unmap_reg(qp->gpu_dev, qp->sq_db);
}

static const struct gdk_doorbell ops = {
	.name = "gpu_sm",
	.handlers = 1u << DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB |
		    1u << DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR,
	.probe = probe,
	.attach = attach,
	.detach = detach,
};

GDK_DOORBELL(gpu_sm, &ops);
