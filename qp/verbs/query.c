/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Queries a queue pair with the QUERY_QP command and converts the QP context to attribute
 * objects. modify.c converts in the other direction.
 */
#include <stdio.h>
#include <string.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "core/sdk/sdk.h"
#include "qp/verbs/qp.h"

static doca_error_t state_from_prm(uint32_t prm, enum doca_verbs_qp_state *state)
{
	switch (prm) {
	case GDK_QPS_RST:
		*state = DOCA_VERBS_QP_STATE_RST;
		return DOCA_SUCCESS;
	case GDK_QPS_INIT:
		*state = DOCA_VERBS_QP_STATE_INIT;
		return DOCA_SUCCESS;
	case GDK_QPS_RTR:
		*state = DOCA_VERBS_QP_STATE_RTR;
		return DOCA_SUCCESS;
	case GDK_QPS_RTS:
		*state = DOCA_VERBS_QP_STATE_RTS;
		return DOCA_SUCCESS;
	case GDK_QPS_SQER: /* send queue error: DOCA has no separate state for it */
	case GDK_QPS_ERR:
		*state = DOCA_VERBS_QP_STATE_ERR;
		return DOCA_SUCCESS;
	default:
		gdk_err("unknown QP state %u in the result of QUERY_QP", prm);
		return DOCA_ERROR_UNEXPECTED;
	}
}

static void get_path(const uint8_t *path, doca_verbs_qp_attr_t *a)
{
	a->pkey_index = (uint16_t)prm_get(path, PRM_ADS_PKEY_INDEX);
	a->port_num = (uint16_t)prm_get(path, PRM_ADS_VHCA_PORT_NUM);
	a->ack_timeout = (uint16_t)prm_get(path, PRM_ADS_ACK_TIMEOUT);
	a->ah.dlid = (uint32_t)prm_get(path, PRM_ADS_RLID);
	a->ah.sgid_index = (uint8_t)prm_get(path, PRM_ADS_SRC_ADDR_INDEX);
	a->ah.static_rate = (uint8_t)prm_get(path, PRM_ADS_STAT_RATE);
	a->ah.hop_limit = (uint8_t)prm_get(path, PRM_ADS_HOP_LIMIT);
	a->ah.traffic_class = (uint8_t)prm_get(path, PRM_ADS_TCLASS);
	memcpy(a->ah.gid.raw, path + PRM_ADS_RGID_AT, sizeof(a->ah.gid.raw));
}

/* Gets service level, traffic class and address type. With RoCE the service level is the priority
 * field. The packets of a RoCE v2 path (UDP port not 0) carry the DSCP field, and RTS2RTS_QP
 * changes only this field; so the upper bits of the traffic class come from it. */
static void get_link(const uint8_t *path, bool roce, struct doca_verbs_ah_attr_t *ah)
{
	ah->sl = (uint8_t)prm_get(path, roce ? PRM_ADS_ETH_PRIO : PRM_ADS_SL);
	if (roce && prm_get(path, PRM_ADS_UDP_SPORT))
		ah->traffic_class = (uint8_t)(prm_get(path, PRM_ADS_DSCP) << 2 |
					      (ah->traffic_class & 3));
	if (roce)
		ah->addr_type = gdk_gid_is_v4(ah->gid.raw) ? DOCA_VERBS_ADDR_TYPE_IPv4
							   : DOCA_VERBS_ADDR_TYPE_IPv6;
	else
		ah->addr_type = prm_get(path, PRM_ADS_GRH) ? DOCA_VERBS_ADDR_TYPE_IB_GRH
							   : DOCA_VERBS_ADDR_TYPE_IB_NO_GRH;
}

static void get_context(const uint8_t *qpc, doca_verbs_qp_attr_t *a)
{
	uint32_t mtu = (uint32_t)prm_get(qpc, PRM_QPC_MTU);

	a->path_mtu = (enum doca_verbs_mtu_size)(mtu ? mtu - 1 : 0);
	a->rq_psn = (uint32_t)prm_get(qpc, PRM_QPC_NEXT_RCV_PSN);
	a->sq_psn = (uint32_t)prm_get(qpc, PRM_QPC_NEXT_SEND_PSN);
	a->dest_qp_num = (uint32_t)prm_get(qpc, PRM_QPC_REMOTE_QPN);
	a->retry_cnt = (uint16_t)prm_get(qpc, PRM_QPC_RETRY_COUNT);
	a->log_ack_req_freq = (uint8_t)prm_get(qpc, PRM_QPC_LOG_ACK_REQ_FREQ);
	a->rnr_retry = (uint16_t)prm_get(qpc, PRM_QPC_RNR_RETRY);
	a->min_rnr_timer = (uint16_t)prm_get(qpc, PRM_QPC_MIN_RNR_NAK);
	a->allow_remote_write = (int)prm_get(qpc, PRM_QPC_RWE);
	a->allow_remote_read = (int)prm_get(qpc, PRM_QPC_RRE);
	a->atomic_mode = DOCA_VERBS_QP_ATOMIC_MODE_NONE;
	if (prm_get(qpc, PRM_QPC_RAE))
		a->atomic_mode = (enum doca_verbs_qp_atomic_mode)prm_get(qpc, PRM_QPC_ATOMIC_MODE);
	a->max_rd_atomic = (uint8_t)(1u << prm_get(qpc, PRM_QPC_LOG_SRA_MAX));
	a->max_dest_rd_atomic = (uint8_t)(1u << prm_get(qpc, PRM_QPC_LOG_RRA_MAX));
}

/* Gets the attributes of creation. Numbers come from the firmware. Objects, and values that the
 * firmware does not store, come from the QP. */
static void get_init(const struct doca_verbs_qp_t *qp, const uint8_t *qpc,
		     doca_verbs_qp_init_attr_t *init)
{
	uint32_t per_wqe = qp->init.sq_wr ? qp->sq_num / qp->init.sq_wr : 1;

	*init = qp->init;
	init->pd = qp->dev;
	init->sq_wr = prm_get(qpc, PRM_QPC_NO_SQ)
			      ? 0
			      : (1u << prm_get(qpc, PRM_QPC_LOG_SQ_SIZE)) / per_wqe;
	init->rq_wr = prm_get(qpc, PRM_QPC_RQ_TYPE) == GDK_QPC_RQ_REGULAR
			      ? 1u << prm_get(qpc, PRM_QPC_LOG_RQ_SIZE)
			      : 0;
	init->qp_type = (uint32_t)prm_get(qpc, PRM_QPC_ST);
	init->user_index = (uint32_t)prm_get(qpc, PRM_QPC_USER_INDEX);
	init->core_direct_master = (uint8_t)prm_get(qpc, PRM_QPC_CD_MASTER);
	init->cqe_inline = prm_get(qpc, PRM_QPC_CS_RES) != 0;
	init->send_dbr_mode = (enum doca_verbs_qp_send_dbr_mode)prm_get(qpc, PRM_QPC_SEND_DBR_MODE);
	if (qp->own_umem) {
		init->external_umem_offset = 0;
		init->external_umem_dbr_offset = 0;
	}
}

/* The attributes that are valid in a state of a reliable QP. */
static int reliable_mask(enum doca_verbs_qp_state state)
{
	static const int init = DOCA_VERBS_QP_ATTR_PKEY_INDEX | DOCA_VERBS_QP_ATTR_PORT_NUM |
				DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE |
				DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
				DOCA_VERBS_QP_ATTR_ATOMIC_MODE;
	static const int rtr = DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
			       DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
			       DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER |
			       DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC;
	static const int rts = DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
			       DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY |
			       DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC;
	int mask = DOCA_VERBS_QP_ATTR_CURRENT_STATE | DOCA_VERBS_QP_ATTR_NEXT_STATE;

	if (state == DOCA_VERBS_QP_STATE_RST || state == DOCA_VERBS_QP_STATE_ERR)
		return mask;
	mask |= init;
	if (state >= DOCA_VERBS_QP_STATE_RTR)
		mask |= rtr;
	if (state >= DOCA_VERBS_QP_STATE_RTS)
		mask |= rts;
	return mask;
}

/* The attributes that are valid in a state. */
static int valid_mask(const struct doca_verbs_qp_t *qp, enum doca_verbs_qp_state state)
{
	bool uc = qp->init.qp_type == DOCA_VERBS_QP_TYPE_UC;

	return reliable_mask(state) & ~(uc ? GDK_QP_RELIABLE_ONLY : 0);
}

doca_error_t gdk_qp_query_state(struct doca_verbs_qp_t *qp, uint8_t out[PRM_QUERY_QP_OUT_LEN],
				enum doca_verbs_qp_state *state)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 };
	doca_error_t err;
	char name[24];

	if (qp->sdk)
		return gdk_sdk_qp_query_state(qp, state);
	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_QP);
	prm_set(in, PRM_CMD_OBJECT, qp->qpn);
	snprintf(name, sizeof(name), "QP 0x%x", qp->qpn);
	memset(out, 0, PRM_QUERY_QP_OUT_LEN);
	err = gdk_devx_query(qp->dev->ctx, qp->obj, name, in, sizeof(in), out,
			     PRM_QUERY_QP_OUT_LEN);
	if (err != DOCA_SUCCESS)
		return err;
	return state_from_prm((uint32_t)prm_get(out + PRM_QUERY_QP_QPC_AT, PRM_QPC_STATE), state);
}

doca_error_t doca_verbs_qp_query(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *qp_attr,
				 doca_verbs_qp_init_attr_t *qp_init_attr, int *attr_mask)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state state;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(qp_attr);
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_MIX(qp, qp_attr);
	GDK_CHECK_MIX(qp, qp_init_attr);
	if (GDK_IS_SDK(qp))
		qp_attr->next_state = DOCA_VERBS_QP_STATE_RST; /* see modify_sdk() */
	GDK_SDK(qp, doca_verbs_qp_query, qp->sdk, qp_attr->sdk, qp_init_attr->sdk, attr_mask);
	err = gdk_qp_query_state(qp, out, &state);
	if (err != DOCA_SUCCESS)
		return err;
	memset(qp_attr, 0, sizeof(*qp_attr));
	qp_attr->current_state = state;
	qp_attr->next_state = state;
	get_context(out + PRM_QUERY_QP_QPC_AT, qp_attr);
	get_path(out + PRM_QUERY_QP_QPC_AT + PRM_QPC_PATH_AT, qp_attr);
	get_link(out + PRM_QUERY_QP_QPC_AT + PRM_QPC_PATH_AT, qp->dev->caps.roce, &qp_attr->ah);
	qp_attr->ah.dev = qp->dev;
	qp_attr->has_ah = valid_mask(qp, state) & DOCA_VERBS_QP_ATTR_AH_ATTR;
	get_init(qp, out + PRM_QUERY_QP_QPC_AT, qp_init_attr);
	if (attr_mask)
		*attr_mask = valid_mask(qp, state);
	return DOCA_SUCCESS;
}

doca_error_t gdk_sdk_qp_query_state(doca_verbs_qp_t *qp, enum doca_verbs_qp_state *state)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	doca_error_t err = doca_verbs_qp_attr_create(&attr);
	int mask;

	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_qp_init_attr_create(&init);
	if (err != DOCA_SUCCESS)
		goto destroy_attr;
	err = doca_verbs_qp_query(qp, attr, init, &mask);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_qp_attr_get_current_state(attr, state);
	(void)doca_verbs_qp_init_attr_destroy(init);
destroy_attr:
	(void)doca_verbs_qp_attr_destroy(attr);
	return err;
}
