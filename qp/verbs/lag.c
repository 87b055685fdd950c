/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Bonds (LAG): assigns QPs to the ports of the bond, and queries the bond.
 *
 * If the bond spreads traffic by queue, a QP without an assigned port always sends from the
 * first port. So QPs are assigned to the ports in turn, as the kernel's driver does. If the
 * bond spreads by packet headers, the UDP source port (path.c) spreads the QPs.
 *
 * On the PCI function that controls the bond (caps.lag_owner), ports are assigned only if the
 * bond is active: in ECMP mode a QP with an assigned port would send from a port of other PCI
 * functions (kernel commit 617f5db1a626). The query of a VF or SF does not show
 * whether the bond is active, so these assign ports if they have the capability
 * (caps.lag_tx_port); their firmware ignores the ports if there is no bond.
 */
#include <string.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "host/gdaki.h"
#include "qp/verbs/qp.h"

/* Queries the state of the bond. If the firmware refuses the query, the bond counts as inactive;
 * that of a VF or SF can refuse it although there is a bond. remap gets the ports that send for the
 * ports 1 and 2; it is written only if the query succeeds. */
static doca_error_t query_lag(const struct doca_dev *dev, struct gdk_qp_lag *lag, uint8_t remap[2])
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 }, out[PRM_QUERY_LAG_OUT_LEN];
	const struct gdk_caps *caps = &dev->caps;
	const uint8_t *lagc = out + PRM_QUERY_LAG_AT;
	doca_error_t err;

	memset(lag, 0, sizeof(*lag));
	lag->ports = caps->num_lag_ports;
	if (lag->ports < 2)
		return DOCA_SUCCESS;
	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_LAG);
	err = gdk_devx_try_cmd(dev->ctx, ibv_get_device_name(dev->ctx->device), in, sizeof(in), out,
			       sizeof(out));
	if (err != DOCA_SUCCESS)
		return err == DOCA_ERROR_NOT_SUPPORTED ? DOCA_SUCCESS : err;
	lag->active = prm_get(lagc, PRM_LAGC_STATE);
	lag->by_queue = lag->active || (caps->lag_tx_port && !caps->lag_owner);
	if (prm_get(lagc, PRM_LAGC_PORT_SELECT_MODE) != GDK_LAG_BY_QUEUE)
		lag->by_queue = false;
	remap[0] = (uint8_t)prm_get(lagc, PRM_LAGC_TX_REMAP_AFFINITY_1);
	remap[1] = (uint8_t)prm_get(lagc, PRM_LAGC_TX_REMAP_AFFINITY_2);
	return DOCA_SUCCESS;
}

/*
 * Returns in *assigns whether QPs are assigned to ports. The result is stored for the device,
 * because the kernel creates a new RDMA device when its port joins or leaves a bond. An error is
 * not stored: the next QP queries again.
 */
static doca_error_t assigns_ports(struct doca_dev *dev, bool *assigns)
{
	int known = atomic_load_explicit(&dev->lag_by_queue, memory_order_relaxed);
	struct gdk_qp_lag lag;
	uint8_t remap[2];
	doca_error_t err;

	if (known == GDK_LAG_UNKNOWN) {
		err = query_lag(dev, &lag, remap);
		if (err != DOCA_SUCCESS)
			return err;
		known = lag.by_queue ? GDK_LAG_PORTS : GDK_LAG_NO_PORTS;
		atomic_store_explicit(&dev->lag_by_queue, known, memory_order_relaxed);
	}
	*assigns = known == GDK_LAG_PORTS;
	return DOCA_SUCCESS;
}

doca_error_t gdk_lag_check(const struct doca_verbs_qp_t *qp, uint8_t port, bool connected)
{
	const struct gdk_caps *caps = &qp->dev->caps;

	if (port > caps->num_lag_ports) {
		gdk_err("QP 0x%x: port %u of the bond does not exist (the device has %u)", qp->qpn,
			port, caps->num_lag_ports);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (connected && !caps->rts2rts_lag) {
		gdk_err("QP 0x%x: the device cannot change the port of the bond of a connected QP",
			qp->qpn);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_lag_take_turn(struct doca_verbs_qp_t *qp, uint8_t *port)
{
	struct doca_dev *dev = qp->dev;
	bool assigns = false;
	doca_error_t err = assigns_ports(dev, &assigns);

	*port = 0;
	if (err == DOCA_SUCCESS && assigns)
		*port = (uint8_t)(1 +
				  atomic_fetch_add(&dev->lag_turn, 1) % dev->caps.num_lag_ports);
	return err;
}

doca_error_t gdk_verbs_qp_attr_set_lag_port(doca_verbs_qp_attr_t *attr, uint8_t port)
{
	GDK_CHECK_PTR(attr);
	GDK_CHECK_RANGE(port, 0, 15);
	attr->lag_port = port;
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_qp_get_lag(doca_verbs_qp_t *qp, struct gdk_qp_lag *lag)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN], remap[2] = { 0 };
	enum doca_verbs_qp_state state;
	struct gdk_qp_lag found;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(lag);
	if (qp->sdk) {
		gdk_err("QP: cannot query the port of the bond: the QP belongs to the DOCA SDK");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	err = query_lag(qp->dev, &found, remap);
	if (err == DOCA_SUCCESS)
		err = gdk_qp_query_state(qp, out, &state);
	if (err != DOCA_SUCCESS)
		return err;
	found.port = (uint8_t)prm_get(out + PRM_QUERY_QP_QPC_AT, PRM_QPC_LAG_TX_PORT_AFFINITY);
	if (found.active && (found.port == 1 || found.port == 2))
		found.active_port = remap[found.port - 1];
	*lag = found;
	return DOCA_SUCCESS;
}
