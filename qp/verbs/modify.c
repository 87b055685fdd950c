/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * State transitions of a queue pair (doca_verbs_qp_modify). One table lists the transitions
 * with their required and optional attributes. The same functions write the attributes of all
 * transitions to the QP context. path.c fills the address path.
 */
#include <stdio.h>
#include <string.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "core/sdk/sdk.h"
#include "host/gdaki.h"
#include "qp/verbs/qp.h"

#define A(name) DOCA_VERBS_QP_ATTR_##name
#define S(name) DOCA_VERBS_QP_STATE_##name
#define ANY	(-1)

#define LAG_PORT GDK_VERBS_QP_ATTR_LAG_PORT
#define ACK_FREQ GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ
/* bits of opt_param_mask that the kernel does not define; DOCA GPUNetIO 3.0 uses them */
#define OPT_DSCP       (1u << 17)
#define OPT_SGID_INDEX (1u << 23)
#define REMOTE_RIGHTS  (A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ) | A(ATOMIC_MODE))

/* flagged: attributes that the firmware ignores unless their bit in opt_param_mask is set. */
static const struct transition {
	int from, to;
	uint32_t opcode;
	int required, optional, flagged;
} transitions[] = {
	{ S(RST), S(INIT), GDK_CMD_RST2INIT_QP,
	  A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ),
	  A(ATOMIC_MODE) | LAG_PORT, 0 },
	{ S(INIT), S(INIT), GDK_CMD_INIT2INIT_QP, 0, A(PKEY_INDEX) | A(PORT_NUM) | REMOTE_RIGHTS,
	  A(PKEY_INDEX) | A(PORT_NUM) | REMOTE_RIGHTS },
	{ S(INIT), S(RTR), GDK_CMD_INIT2RTR_QP,
	  A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) | A(MIN_RNR_TIMER),
	  A(PKEY_INDEX) | A(MAX_DEST_RD_ATOMIC) | REMOTE_RIGHTS, A(PKEY_INDEX) | REMOTE_RIGHTS },
	{ S(RTR), S(RTS), GDK_CMD_RTR2RTS_QP,
	  A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY),
	  A(MIN_RNR_TIMER) | A(MAX_QP_RD_ATOMIC) | REMOTE_RIGHTS | ACK_FREQ,
	  A(MIN_RNR_TIMER) | REMOTE_RIGHTS },
	{ S(RTS), S(RTS), GDK_CMD_RTS2RTS_QP, 0,
	  A(MIN_RNR_TIMER) | A(AH_ATTR) | LAG_PORT | REMOTE_RIGHTS,
	  A(MIN_RNR_TIMER) | A(AH_ATTR) | LAG_PORT | REMOTE_RIGHTS },
	{ ANY, S(ERR), GDK_CMD_2ERR_QP, 0, 0, 0 },
	{ ANY, S(RST), GDK_CMD_2RST_QP, 0, 0, 0 },
};

static const struct {
	int bit;
	const char *name;
	uint32_t opt; /* bit of opt_param_mask; 0: none */
} attrs[] = {
	{ A(ALLOW_REMOTE_WRITE), "ALLOW_REMOTE_WRITE", 1u << 3 },
	{ A(ALLOW_REMOTE_READ), "ALLOW_REMOTE_READ", 1u << 1 },
	{ A(PKEY_INDEX), "PKEY_INDEX", 1u << 4 },
	{ A(MIN_RNR_TIMER), "MIN_RNR_TIMER", 1u << 6 },
	{ A(PORT_NUM), "PORT_NUM", 1u << 16 },
	{ A(NEXT_STATE), "NEXT_STATE", 0 },
	{ A(CURRENT_STATE), "CURRENT_STATE", 0 },
	{ A(PATH_MTU), "PATH_MTU", 0 },
	{ A(RQ_PSN), "RQ_PSN", 0 },
	{ A(SQ_PSN), "SQ_PSN", 0 },
	{ A(DEST_QP_NUM), "DEST_QP_NUM", 0 },
	{ A(ACK_TIMEOUT), "ACK_TIMEOUT", 0 },
	{ A(RETRY_CNT), "RETRY_CNT", 0 },
	{ A(RNR_RETRY), "RNR_RETRY", 0 },
	{ A(AH_ATTR), "AH_ATTR", OPT_SGID_INDEX },
	{ A(ATOMIC_MODE), "ATOMIC_MODE", 1u << 2 },
	{ A(MAX_QP_RD_ATOMIC), "MAX_QP_RD_ATOMIC", 0 },
	{ A(MAX_DEST_RD_ATOMIC), "MAX_DEST_RD_ATOMIC", 0 },
	{ LAG_PORT, "LAG_PORT", GDK_OPTPAR_LAG_TX_AFF },
	{ ACK_FREQ, "LOG_ACK_REQ_FREQ", 0 },
};

static int all_attrs(void)
{
	int all = 0;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(attrs); i++)
		all |= attrs[i].bit;
	return all;
}

static const char *attr_names(int mask, char *buf, size_t len)
{
	size_t i, at = 0;

	buf[0] = '\0';
	for (i = 0; i < GDK_ARRAY_SIZE(attrs) && at < len; i++)
		if (mask & attrs[i].bit)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "",
					       attrs[i].name);
	return buf;
}

/* Returns whether RTS2RTS_QP changes the DSCP. Not all devices can, and InfiniBand has no DSCP. */
static bool changes_dscp(const struct doca_verbs_qp_t *qp, int mask)
{
	return mask & A(AH_ATTR) && qp->dev->caps.roce && qp->dev->caps.rts2rts_dscp;
}

static uint32_t opt_param_mask(const struct doca_verbs_qp_t *qp, int mask)
{
	uint32_t opt = changes_dscp(qp, mask) ? OPT_DSCP : 0;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(attrs); i++)
		if (mask & attrs[i].bit)
			opt |= attrs[i].opt;
	return opt;
}

static const struct transition *find_transition(int from, int to)
{
	const struct transition *t;

	for (t = transitions; t < transitions + GDK_ARRAY_SIZE(transitions); t++)
		if ((t->from == from || t->from == ANY) && t->to == to)
			return t;
	return NULL;
}

static doca_error_t check_mask(const struct doca_verbs_qp_t *qp, const struct transition *t,
			       int mask)
{
	int none = qp->init.qp_type == DOCA_VERBS_QP_TYPE_UC ? GDK_QP_RELIABLE_ONLY | ACK_FREQ : 0;
	int missing = t->required & ~none & ~mask;
	int known = (t->required | t->optional) & ~none;
	int extra = mask & ~(known | A(NEXT_STATE) | A(CURRENT_STATE));
	char names[320];

	if (missing)
		gdk_err("QP 0x%x: %s to %s needs %s", qp->qpn, gdk_qp_state_name(qp->state),
			gdk_qp_state_name(t->to), attr_names(missing, names, sizeof(names)));
	if (extra)
		gdk_err("QP 0x%x: %s to %s%s does not allow %s (attr_mask 0x%x)", qp->qpn,
			gdk_qp_state_name(qp->state), gdk_qp_state_name(t->to),
			none ? " of a UC QP" : "", attr_names(extra, names, sizeof(names)),
			(unsigned int)mask);
	return missing || extra ? DOCA_ERROR_INVALID_VALUE : DOCA_SUCCESS;
}

static doca_error_t check_values(struct doca_verbs_qp_t *qp, const doca_verbs_qp_attr_t *a,
				 int mask)
{
	const struct gdk_caps *caps = &qp->dev->caps;

	if ((mask & A(PORT_NUM)) && a->port_num > caps->num_ports) {
		gdk_err("QP 0x%x: port_num %u does not exist (the device has ports 1 to %u)",
			qp->qpn, a->port_num, caps->num_ports);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if ((mask & A(AH_ATTR)) && !a->has_ah) {
		gdk_err("QP 0x%x: attr_mask 0x%x has AH_ATTR, but no ah_attr was set "
			"(doca_verbs_qp_attr_set_ah_attr)",
			qp->qpn, (unsigned int)mask);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if ((mask & A(MAX_QP_RD_ATOMIC)) && caps->max_qp_init_rd_atom &&
	    a->max_rd_atomic > caps->max_qp_init_rd_atom) {
		gdk_err("QP 0x%x: max_rd_atomic %u is too large (the device's maximum is %u)",
			qp->qpn, a->max_rd_atomic, caps->max_qp_init_rd_atom);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if ((mask & A(MAX_DEST_RD_ATOMIC)) && caps->max_qp_rd_atom &&
	    a->max_dest_rd_atomic > caps->max_qp_rd_atom) {
		gdk_err("QP 0x%x: max_dest_rd_atomic %u is too large (the device's maximum is %u)",
			qp->qpn, a->max_dest_rd_atomic, caps->max_qp_rd_atom);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return mask & LAG_PORT ? gdk_lag_check(qp, a->lag_port, qp->state == S(RTS)) : DOCA_SUCCESS;
}

static uint32_t psn24(const struct doca_verbs_qp_t *qp, uint32_t psn)
{
	if (psn >> 24)
		gdk_warn("QP 0x%x: PSN 0x%x has more than 24 bits, using the low 24", qp->qpn, psn);
	return psn & 0xffffff;
}

static unsigned int log2_or_0(unsigned int v)
{
	return v ? gdk_ilog2(v) : 0;
}

static void put_rights(const doca_verbs_qp_attr_t *a, int mask, void *qpc)
{
	if (mask & A(ALLOW_REMOTE_WRITE))
		prm_set(qpc, PRM_QPC_RWE, !!a->allow_remote_write);
	if (mask & A(ALLOW_REMOTE_READ))
		prm_set(qpc, PRM_QPC_RRE, !!a->allow_remote_read);
	if (mask & A(ATOMIC_MODE)) {
		prm_set(qpc, PRM_QPC_RAE, a->atomic_mode != DOCA_VERBS_QP_ATOMIC_MODE_NONE);
		prm_set(qpc, PRM_QPC_ATOMIC_MODE, a->atomic_mode);
	}
}

static void put_numbers(const struct doca_verbs_qp_t *qp, const doca_verbs_qp_attr_t *a, int mask,
			uint8_t *qpc)
{
	uint8_t *path = qpc + PRM_QPC_PATH_AT;

	if (mask & A(PKEY_INDEX))
		prm_set(path, PRM_ADS_PKEY_INDEX, a->pkey_index);
	if (mask & A(PORT_NUM))
		prm_set(path, PRM_ADS_VHCA_PORT_NUM, a->port_num);
	if (mask & A(ACK_TIMEOUT))
		prm_set(path, PRM_ADS_ACK_TIMEOUT, a->ack_timeout);
	if (mask & A(MIN_RNR_TIMER))
		prm_set(qpc, PRM_QPC_MIN_RNR_NAK, a->min_rnr_timer);
	if (mask & A(PATH_MTU))
		prm_set(qpc, PRM_QPC_MTU, (uint32_t)a->path_mtu + 1);
	if (mask & A(RQ_PSN))
		prm_set(qpc, PRM_QPC_NEXT_RCV_PSN, psn24(qp, a->rq_psn));
	if (mask & A(SQ_PSN))
		prm_set(qpc, PRM_QPC_NEXT_SEND_PSN, psn24(qp, a->sq_psn));
	if (mask & A(DEST_QP_NUM))
		prm_set(qpc, PRM_QPC_REMOTE_QPN, a->dest_qp_num);
	if (mask & A(RETRY_CNT))
		prm_set(qpc, PRM_QPC_RETRY_COUNT, a->retry_cnt);
	if (mask & A(RNR_RETRY))
		prm_set(qpc, PRM_QPC_RNR_RETRY, a->rnr_retry);
	if (mask & ACK_FREQ)
		prm_set(qpc, PRM_QPC_LOG_ACK_REQ_FREQ, a->log_ack_req_freq);
	if (mask & A(MAX_QP_RD_ATOMIC))
		prm_set(qpc, PRM_QPC_LOG_SRA_MAX, log2_or_0(a->max_rd_atomic));
	if (mask & A(MAX_DEST_RD_ATOMIC))
		prm_set(qpc, PRM_QPC_LOG_RRA_MAX, log2_or_0(a->max_dest_rd_atomic));
}

static doca_error_t put_init(struct doca_verbs_qp_t *qp, const doca_verbs_qp_attr_t *a, int mask,
			     uint8_t *qpc)
{
	uint8_t port = a->lag_port;
	doca_error_t err = mask & LAG_PORT ? DOCA_SUCCESS : gdk_lag_take_turn(qp, &port);

	prm_set(qpc, PRM_QPC_PM_STATE, GDK_QPC_PM_MIGRATED);
	prm_set(qpc, PRM_QPC_LAG_TX_PORT_AFFINITY, port);
	return err;
}

/* Sets the fields that depend on the transition. */
static doca_error_t put_extras(struct doca_verbs_qp_t *qp, const struct transition *t,
			       const doca_verbs_qp_attr_t *a, int mask, uint8_t *qpc)
{
	uint8_t *path = qpc + PRM_QPC_PATH_AT;

	switch (t->opcode) {
	case GDK_CMD_RST2INIT_QP:
		return put_init(qp, a, mask, qpc);
	case GDK_CMD_INIT2RTR_QP:
		prm_set(qpc, PRM_QPC_LOG_MSG_MAX, GDK_QPC_LOG_MSG_MAX);
		return gdk_path_fill(qp, a, qpc);
	case GDK_CMD_RTS2RTS_QP:
		if (mask & LAG_PORT)
			prm_set(qpc, PRM_QPC_LAG_TX_PORT_AFFINITY, a->lag_port);
		/* of the path of a connected QP only source GID and DSCP can change */
		if (mask & A(AH_ATTR))
			prm_set(path, PRM_ADS_SRC_ADDR_INDEX, a->ah.sgid_index);
		if (changes_dscp(qp, mask))
			prm_set(path, PRM_ADS_DSCP, a->ah.traffic_class >> 2);
		return DOCA_SUCCESS;
	default:
		return DOCA_SUCCESS;
	}
}

static void set_state(struct doca_verbs_qp_t *qp, enum doca_verbs_qp_state state)
{
	qp->state = state;
	if (qp->on_state)
		qp->on_state(qp, state);
}

static void remember(struct doca_verbs_qp_t *qp, const struct transition *t,
		     const doca_verbs_qp_attr_t *a, int mask)
{
	set_state(qp, (enum doca_verbs_qp_state)t->to);
	if (mask & A(PORT_NUM))
		qp->port = (uint8_t)a->port_num;
}

static doca_error_t do_transition(struct doca_verbs_qp_t *qp, const struct transition *t,
				  const doca_verbs_qp_attr_t *a, int mask)
{
	uint8_t in[PRM_MODIFY_QP_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN] = { 0 };
	uint8_t *qpc = in + PRM_MODIFY_QP_QPC_AT;
	bool bare = t->from == ANY; /* to ERR or RST: the command has no QP context */
	char name[48];
	doca_error_t err;

	prm_set(in, PRM_CMD_OPCODE, t->opcode);
	prm_set(in, PRM_MODIFY_QP_QPN, qp->qpn);
	if (!bare) {
		prm_set(in, PRM_MODIFY_QP_OPT_PARAM_MASK, opt_param_mask(qp, mask & t->flagged));
		put_rights(a, mask, qpc);
		put_numbers(qp, a, mask, qpc);
		err = put_extras(qp, t, a, mask, qpc);
		if (err != DOCA_SUCCESS)
			return err;
	}
	snprintf(name, sizeof(name), "QP 0x%x (%s to %s)", qp->qpn, gdk_qp_state_name(qp->state),
		 gdk_qp_state_name(t->to));
	err = gdk_devx_modify(qp->dev->ctx, qp->obj, name, in,
			      bare ? (size_t)PRM_CMD_IN_LEN : sizeof(in), out, sizeof(out));
	if (err == DOCA_SUCCESS)
		remember(qp, t, a, mask);
	return err;
}

/* Checks that the QP is in the state that the caller expects. If the caller expects ERR, queries
 * the firmware, because the NIC may have moved the QP to ERR. */
static doca_error_t check_current(struct doca_verbs_qp_t *qp, enum doca_verbs_qp_state stated)
{
	enum doca_verbs_qp_state now = qp->state;
	uint8_t box[PRM_QUERY_QP_OUT_LEN];
	doca_error_t err = DOCA_SUCCESS;

	if (stated == S(ERR))
		err = gdk_qp_query_state(qp, box, &now);
	if (err != DOCA_SUCCESS)
		return err;
	if (stated == now) {
		if (now != qp->state) /* the NIC has moved the QP to ERR */
			set_state(qp, now);
		return DOCA_SUCCESS;
	}
	gdk_err("QP 0x%x: cannot modify it: current state is %s, not %s", qp->qpn,
		gdk_qp_state_name(now), gdk_qp_state_name(stated));
	return DOCA_ERROR_BAD_STATE;
}

static doca_error_t modify_locked(struct doca_verbs_qp_t *qp, const doca_verbs_qp_attr_t *a,
				  int mask)
{
	doca_error_t err = mask & A(CURRENT_STATE) ? check_current(qp, a->current_state)
						   : DOCA_SUCCESS;
	const struct transition *t;
	enum doca_verbs_qp_state next;

	if (err != DOCA_SUCCESS)
		return err;
	next = mask & A(NEXT_STATE) ? a->next_state : qp->state;
	t = find_transition(qp->state, next);
	if (!t) {
		gdk_err("QP 0x%x: no transition from %s to %s", qp->qpn,
			gdk_qp_state_name(qp->state), gdk_qp_state_name(next));
		return DOCA_ERROR_BAD_STATE;
	}
	err = check_mask(qp, t, mask);
	if (err == DOCA_SUCCESS)
		err = check_values(qp, a, mask);
	return err == DOCA_SUCCESS ? do_transition(qp, t, a, mask) : err;
}

/* Modifies a QP of the SDK and records its new state. After a query only the SDK's attributes have
 * the next state: doca_verbs_qp_query() has set a->next_state to RST. */
static doca_error_t modify_sdk(struct doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *a, int mask)
{
	doca_error_t err = GDK_SDK_CALL(doca_verbs_qp_modify, qp->sdk, a->sdk, mask);
	enum doca_verbs_qp_state next = a->next_state;

	if (err != DOCA_SUCCESS || !(mask & A(NEXT_STATE)))
		return err;
	if (next == S(RST))
		next = doca_verbs_qp_attr_get_next_state(a);
	set_state(qp, next);
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_modify(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *qp_attr, int attr_mask)
{
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(qp_attr);
	GDK_CHECK_MIX(qp, qp_attr);
	GDK_CHECK_ARG(GDK_IS_SDK(qp) || !(attr_mask & ~all_attrs()),
		      "attr_mask 0x%x (bits 0x%x are no DOCA_VERBS_QP_ATTR_* and no "
		      "GDK_VERBS_QP_ATTR_*)",
		      (unsigned int)attr_mask, (unsigned int)(attr_mask & ~all_attrs()));
	pthread_mutex_lock(&qp->lock);
	err = GDK_IS_SDK(qp) ? modify_sdk(qp, qp_attr, attr_mask)
			     : modify_locked(qp, qp_attr, attr_mask);
	pthread_mutex_unlock(&qp->lock);
	return err;
}
