/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Capabilities of a NIC that Ethernet queues depend on. They are queried when a queue is created,
 * not when the NIC is opened, because most programs have none.
 */
#include <stdlib.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "qp/eth/eth.h"

static doca_error_t query_group(struct ibv_context *ctx, uint32_t group, void *out)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 };

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_HCA_CAP);
	prm_set(in, PRM_CMD_OP_MOD, group << 1 | GDK_CAP_CURRENT);
	return gdk_devx_cmd(ctx, ibv_get_device_name(ctx->device), in, sizeof(in), out,
			    PRM_QUERY_HCA_CAP_OUT_LEN);
}

static doca_error_t query(struct ibv_context *ctx, struct gdk_eth_caps *caps, uint8_t *out)
{
	const uint8_t *cap = out + PRM_QUERY_HCA_CAP_AT;
	doca_error_t err = query_group(ctx, GDK_CAP_GENERAL, out);

	if (err)
		return err;
	caps->ethernet = prm_get(cap, PRM_HCA_PORT_TYPE) == GDK_PORT_ETHERNET &&
			 prm_get(cap, PRM_HCA_ETH_OFFLOADS) && prm_get(cap, PRM_HCA_NIC_FLOW_TABLE);
	caps->wait_on_time = prm_get(cap, PRM_HCA_WAIT_ON_TIME);
	caps->sq_ts = (uint8_t)prm_get(cap, PRM_HCA_SQ_TS_FORMAT);
	caps->rq_ts = (uint8_t)prm_get(cap, PRM_HCA_RQ_TS_FORMAT);
	if (!caps->ethernet)
		return DOCA_SUCCESS;
	err = query_group(ctx, GDK_CAP_ETHERNET, out);
	if (err)
		return err;
	caps->empw = prm_get(cap, PRM_ETH_EMPW);
	caps->csum = prm_get(cap, PRM_ETH_CSUM);
	caps->inline_l2 = prm_get(cap, PRM_ETH_INLINE_MODE) == GDK_INLINE_MODE_L2;
	return DOCA_SUCCESS;
}

doca_error_t gdk_eth_query_caps(struct ibv_context *ctx, struct gdk_eth_caps *caps)
{
	uint8_t *out = calloc(1, PRM_QUERY_HCA_CAP_OUT_LEN);
	doca_error_t err;

	*caps = (struct gdk_eth_caps){ 0 };
	if (!out) {
		gdk_err("%s: no memory for Ethernet capabilities",
			ibv_get_device_name(ctx->device));
		return DOCA_ERROR_NO_MEMORY;
	}
	err = query(ctx, caps, out);
	free(out);
	return err;
}

doca_error_t gdk_eth_need_caps(const struct doca_dev *dev, struct gdk_eth_caps *caps)
{
	const char *name = ibv_get_device_name(dev->ctx->device);
	doca_error_t err = gdk_eth_query_caps(dev->ctx, caps);

	if (err)
		return err;
	if (!caps->ethernet) {
		gdk_err("%s: the NIC has no Ethernet queues: its port is InfiniBand, or its "
			"firmware lacks eth_net_offloads or nic_flow_table",
			name);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (caps->inline_l2) {
		gdk_err("%s: the NIC needs Ethernet headers in send WQEs (wqe_inline_mode L2), "
			"which kernels do not write; use a ConnectX-5 or newer",
			name);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	return DOCA_SUCCESS;
}

uint32_t gdk_eth_ts_format(uint8_t cap)
{
	return cap == GDK_TS_CAP_FREE_RUNNING ? GDK_TS_FORMAT_FREE_RUNNING
					      : GDK_TS_FORMAT_REAL_TIME;
}

bool gdk_eth_can_wait(const struct gdk_eth_caps *caps)
{
	return caps->wait_on_time && caps->sq_ts != GDK_TS_CAP_FREE_RUNNING;
}

doca_error_t gdk_eth_check_wait(const struct doca_dev *dev, const struct gdk_eth_caps *caps)
{
	if (gdk_eth_can_wait(caps))
		return DOCA_SUCCESS;
	gdk_err("%s: the NIC cannot send at a given time: %s",
		ibv_get_device_name(dev->ctx->device),
		!caps->wait_on_time
			? "it has no WAIT WQEs for a time (a ConnectX-7 has; ACCURATE_TX_SCHEDULER)"
			: "its send queues have no real-time clock; enable REAL_TIME_CLOCK_ENABLE "
			  "with mlxconfig");
	return DOCA_ERROR_NOT_SUPPORTED;
}
