/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Capabilities of a NIC. ibv_query_device returns the limits, and the QUERY_HCA_CAP command
 * returns the capabilities that verbs do not report. This file also implements the public
 * object doca_verbs_device_attr, which holds a copy of both. Other files decide how to use a
 * capability.
 */
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/log/trace.h"
#include "core/nic/devx.h"
#include "core/nic/net_dev.h"
#include "core/sdk/sdk_dev.h"

struct doca_verbs_device_attr {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	struct gdk_caps caps;
};

/* Queries one group of capabilities. out has PRM_QUERY_HCA_CAP_OUT_LEN bytes. */
static doca_error_t query_group(struct ibv_context *ctx, uint32_t group, void *out)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 };

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_HCA_CAP);
	prm_set(in, PRM_CMD_OP_MOD, group << 1 | GDK_CAP_CURRENT);
	return gdk_devx_cmd(ctx, ibv_get_device_name(ctx->device), in, sizeof(in), out,
			    PRM_QUERY_HCA_CAP_OUT_LEN);
}

static uint32_t count(int value)
{
	return value > 0 ? (uint32_t)value : 0;
}

static uint8_t count8(int value)
{
	return value > UINT8_MAX ? UINT8_MAX : (uint8_t)count(value);
}

static doca_error_t query_verbs(struct ibv_context *ctx, struct gdk_caps *caps)
{
	struct ibv_device_attr attr;
	int ret = ibv_query_device(ctx, &attr);

	if (ret) {
		gdk_err("%s: ibv_query_device failed: %s", ibv_get_device_name(ctx->device),
			strerror(ret));
		return DOCA_ERROR_DRIVER;
	}
	gdk_trace_device(ctx, &attr);
	caps->max_qp = count(attr.max_qp);
	caps->max_qp_wr = count(attr.max_qp_wr);
	caps->max_sge = count(attr.max_sge);
	caps->max_cq = count(attr.max_cq);
	caps->max_cqe = count(attr.max_cqe);
	caps->max_mr = count(attr.max_mr);
	caps->max_pd = count(attr.max_pd);
	caps->max_ah = count(attr.max_ah);
	caps->max_srq = count(attr.max_srq);
	caps->max_srq_wr = count(attr.max_srq_wr);
	caps->max_srq_sge = count(attr.max_srq_sge);
	caps->max_pkeys = attr.max_pkeys;
	caps->num_ports = attr.phys_port_cnt;
	caps->max_qp_rd_atom = count8(attr.max_qp_rd_atom);
	caps->max_qp_init_rd_atom = count8(attr.max_qp_init_rd_atom);
	return DOCA_SUCCESS;
}

/* As libmlx5 sets dma_max_size (providers/mlx5/verbs.c of rdma-core 44): a maximum of 0 stands for
 * 2^31 bytes. */
static void fill_copy_engine(struct gdk_caps *caps, const uint8_t *cap)
{
	uint8_t max = (uint8_t)prm_get(cap, PRM_HCA_LOG_DMA_MMO_MAX);

	if (prm_get(cap, PRM_HCA_DMA_MMO_QP))
		caps->copy_engine = GDK_COPY_PERMITTED;
	else if (prm_get(cap, PRM_HCA_DMA_MMO_SQ))
		caps->copy_engine = GDK_COPY_ALL;
	if (caps->copy_engine)
		caps->log_copy_max = max ? max : 31;
}

static doca_error_t query_firmware(struct ibv_context *ctx, struct gdk_caps *caps, uint8_t *out)
{
	const uint8_t *cap = out + PRM_QUERY_HCA_CAP_AT;
	bool has_group_2, has_roce;
	doca_error_t err;

	err = query_group(ctx, GDK_CAP_GENERAL, out);
	if (err)
		return err;
	caps->log_max_qp_sz = (uint8_t)prm_get(cap, PRM_HCA_LOG_MAX_QP_SZ);
	caps->log_max_cq_sz = (uint8_t)prm_get(cap, PRM_HCA_LOG_MAX_CQ_SZ);
	caps->cqe_version = (uint8_t)prm_get(cap, PRM_HCA_CQE_VERSION);
	caps->rc_supported = (uint8_t)prm_get(cap, PRM_HCA_RC);
	caps->roce = prm_get(cap, PRM_HCA_PORT_TYPE) == GDK_PORT_ETHERNET;
	caps->num_lag_ports = (uint8_t)prm_get(cap, PRM_HCA_NUM_LAG_PORTS);
	/* same condition as mlx5_lag_is_lacp_owner in the kernel */
	caps->lag_owner = caps->num_lag_ports > 1 && prm_get(cap, PRM_HCA_GROUP_MANAGER) &&
			  prm_get(cap, PRM_HCA_LAG_MASTER);
	caps->cd = (uint8_t)prm_get(cap, PRM_HCA_CD);
	caps->cqe_inline = (uint8_t)prm_get(cap, PRM_HCA_SCTR_DATA_CQE);
	fill_copy_engine(caps, cap);
	caps->ts_format = (uint8_t)prm_get(cap, PRM_HCA_SQ_TS_FORMAT);
	caps->lag_tx_port = (uint8_t)prm_get(cap, PRM_HCA_LAG_TX_PORT);
	caps->rts2rts_lag = (uint8_t)prm_get(cap, PRM_HCA_RTS2RTS_LAG);
	caps->rts2rts_dscp = (uint8_t)prm_get(cap, PRM_HCA_RTS2RTS_QP_DSCP);
	has_roce = prm_get(cap, PRM_HCA_ROCE);
	has_group_2 = prm_get(cap, PRM_HCA_CAP_2);

	if (has_roce) {
		err = query_group(ctx, GDK_CAP_ROCE, out);
		if (err)
			return err;
		caps->ts_format = (uint8_t)prm_get(cap, PRM_ROCE_QP_TS_FORMAT);
		caps->r_roce_min_src_udp_port = (uint32_t)prm_get(cap, PRM_ROCE_MIN_SRC_UDP_PORT);
		caps->r_roce_max_src_udp_port = (uint32_t)prm_get(cap, PRM_ROCE_MAX_SRC_UDP_PORT);
	}
	if (has_group_2) {
		err = query_group(ctx, GDK_CAP_GENERAL_2, out);
		if (err)
			return err;
		caps->send_dbr_mode_no_dbr_ext =
			(uint8_t)prm_get(cap, PRM_HCA2_SEND_DBR_MODE_NO_DBR_EXT);
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_caps_query(struct ibv_context *ctx, struct gdk_caps *caps)
{
	struct gdk_caps found = { 0 };
	doca_error_t err;
	uint8_t *out;

	if (!mlx5dv_is_supported(ctx->device)) {
		gdk_err("%s is not an mlx5 device (expected a ConnectX or BlueField NIC; "
			"ibv_devices lists the RDMA devices)",
			ibv_get_device_name(ctx->device));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	err = query_verbs(ctx, &found);
	if (err)
		return err;
	out = calloc(1, PRM_QUERY_HCA_CAP_OUT_LEN);
	if (!out) {
		gdk_err("%s: no memory for capabilities", ibv_get_device_name(ctx->device));
		return DOCA_ERROR_NO_MEMORY;
	}
	err = query_firmware(ctx, &found, out);
	free(out);
	if (!err)
		*caps = found;
	return err;
}

doca_error_t doca_verbs_query_device(struct ibv_context *context,
				     struct doca_verbs_device_attr **verbs_device_attr)
{
	struct doca_verbs_device_attr *attr;
	doca_error_t err;

	GDK_CHECK_PTR(context);
	GDK_CHECK_PTR(verbs_device_attr);
	attr = calloc(1, sizeof(*attr));
	if (!attr) {
		gdk_err("no memory for device attributes");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = gdk_caps_query(context, &attr->caps);
	if (err) {
		free(attr);
		return err;
	}
	err = gdk_sdk_query_device(context, &attr->sdk);
	if (err) {
		free(attr);
		return err;
	}
	*verbs_device_attr = attr;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_device_attr_free(struct doca_verbs_device_attr *verbs_device_attr)
{
	GDK_CHECK_PTR(verbs_device_attr);
	GDK_SDK_FIRST(verbs_device_attr, doca_verbs_device_attr_free, verbs_device_attr->sdk);
	free(verbs_device_attr);
	return DOCA_SUCCESS;
}

#define GETTER(type, name) \
	type doca_verbs_device_attr_get_##name( \
		const struct doca_verbs_device_attr *verbs_device_attr) \
	{ \
		GDK_CHECK_PTR_OR(0, verbs_device_attr); \
		GDK_SDK_GET(verbs_device_attr, doca_verbs_device_attr_get_##name, \
			    verbs_device_attr->sdk); \
		return (type)verbs_device_attr->caps.name; \
	}

GETTER(uint32_t, max_qp)
GETTER(uint32_t, max_qp_wr)
GETTER(uint32_t, max_sge)
GETTER(uint32_t, max_cq)
GETTER(uint32_t, max_cqe)
GETTER(uint32_t, max_mr)
GETTER(uint32_t, max_pd)
GETTER(uint32_t, max_ah)
GETTER(uint32_t, max_srq)
GETTER(uint32_t, max_srq_wr)
GETTER(uint32_t, max_srq_sge)
GETTER(uint16_t, max_pkeys)
GETTER(uint8_t, max_qp_rd_atom)
GETTER(uint8_t, max_qp_init_rd_atom)
GETTER(uint8_t, send_dbr_mode_no_dbr_ext)

doca_error_t doca_verbs_device_attr_get_is_qp_type_supported(
	const struct doca_verbs_device_attr *verbs_device_attr, uint32_t qp_type)
{
	GDK_CHECK_PTR(verbs_device_attr);
	GDK_SDK(verbs_device_attr, doca_verbs_device_attr_get_is_qp_type_supported,
		verbs_device_attr->sdk, qp_type);
	GDK_CHECK_ARG(qp_type == DOCA_VERBS_QP_TYPE_RC || qp_type == DOCA_VERBS_QP_TYPE_UC,
		      "qp_type %u (expected DOCA_VERBS_QP_TYPE_RC, %u, or _UC, %u)", qp_type,
		      DOCA_VERBS_QP_TYPE_RC, DOCA_VERBS_QP_TYPE_UC);
	/* Linux creates UC QPs without a check of capabilities; it checks one for XRC only
	 * (drivers/infiniband/hw/mlx5/qp.c). */
	if (qp_type == DOCA_VERBS_QP_TYPE_UC)
		return DOCA_SUCCESS;
	return verbs_device_attr->caps.rc_supported ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_verbs_device_attr_get_is_cqe_inline_supported(
	const struct doca_verbs_device_attr *verbs_device_attr)
{
	GDK_CHECK_PTR(verbs_device_attr);
	GDK_SDK(verbs_device_attr, doca_verbs_device_attr_get_is_cqe_inline_supported,
		verbs_device_attr->sdk);
	return verbs_device_attr->caps.cqe_inline ? DOCA_SUCCESS : DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t
gdk_verbs_device_attr_get_copy_engine(const struct doca_verbs_device_attr *verbs_device_attr,
				      uint64_t *max_bytes)
{
	GDK_CHECK_PTR(verbs_device_attr);
	GDK_CHECK_PTR(max_bytes);
	if (verbs_device_attr->sdk || !verbs_device_attr->caps.copy_engine)
		return DOCA_ERROR_NOT_SUPPORTED;
	*max_bytes = 1ull << verbs_device_attr->caps.log_copy_max;
	return DOCA_SUCCESS;
}
