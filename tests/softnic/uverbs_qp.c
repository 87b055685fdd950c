/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Modify and query of verbs queue pairs: the state transitions with the attributes that
 * each requires and allows, as the kernel checks them. DEVX queue pairs are in cmd_qp.c.
 */
#include "eth.h"
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

/* ibv_qp_state and sn_qp_state have a different order from SQD on */
static const enum sn_qp_state from_ibv[] = { SN_QPS_RST, SN_QPS_INIT, SN_QPS_RTR, SN_QPS_RTS,
					     SN_QPS_SQD, SN_QPS_SQER, SN_QPS_ERR };
static const uint8_t to_ibv[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
				  IBV_QPS_SQE,	 IBV_QPS_SQD,  IBV_QPS_ERR };

#define LEGACY_MASK ((IBV_QP_DEST_QPN << 1) - 1)
#define EX_MASK	    ((IBV_QP_RATE_LIMIT << 1) - 1)
#define WHERE	    (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PEER	    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RC_RTR	    (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS	    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define DRAIN	    IBV_QP_EN_SQD_ASYNC_NOTIFY
#define MOVED	    (IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define WITH_CUR    (IBV_QP_CUR_STATE | IBV_QP_PATH_MIG_STATE | IBV_QP_ACCESS_FLAGS)

/*
 * The attributes that a transition requires (need) and allows in addition (may), for RC, UC and
 * UD, as the kernel's core checks them. Alternate paths are not supported, so their attributes
 * are refused.
 */
static const struct edge {
	enum sn_qp_state from, to;
	uint32_t need[3], may[3];
} edges[] = {
	{ SN_QPS_RST,
	  SN_QPS_INIT,
	  { WHERE | IBV_QP_ACCESS_FLAGS, WHERE | IBV_QP_ACCESS_FLAGS, WHERE | IBV_QP_QKEY },
	  { 0 } },
	{ SN_QPS_INIT,
	  SN_QPS_INIT,
	  { 0 },
	  { WHERE | IBV_QP_ACCESS_FLAGS, WHERE | IBV_QP_ACCESS_FLAGS, WHERE | IBV_QP_QKEY } },
	{ SN_QPS_INIT,
	  SN_QPS_RTR,
	  { PEER | RC_RTR, PEER, 0 },
	  { IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	    IBV_QP_QKEY | IBV_QP_PKEY_INDEX } },
	{ SN_QPS_RTR,
	  SN_QPS_RTS,
	  { IBV_QP_SQ_PSN | RC_RTS, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
	  { WITH_CUR | IBV_QP_MIN_RNR_TIMER, WITH_CUR, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ SN_QPS_RTS,
	  SN_QPS_RTS,
	  { 0 },
	  { WITH_CUR | IBV_QP_MIN_RNR_TIMER, WITH_CUR, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ SN_QPS_RTS, SN_QPS_SQD, { 0 }, { DRAIN, DRAIN, DRAIN } },
	{ SN_QPS_SQD,
	  SN_QPS_RTS,
	  { 0 },
	  { WITH_CUR | IBV_QP_MIN_RNR_TIMER, WITH_CUR, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ SN_QPS_SQD,
	  SN_QPS_SQD,
	  { 0 },
	  { WHERE | IBV_QP_AV | MOVED | RC_RTR | RC_RTS, IBV_QP_AV | MOVED,
	    IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
	{ SN_QPS_SQER,
	  SN_QPS_RTS,
	  { 0 },
	  { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
};

static bool transition_ok(const struct sn_qp *qp, enum sn_qp_state to, uint32_t mask)
{
	const struct edge *t;
	size_t i;

	mask &= ~(uint32_t)IBV_QP_STATE;
	if (to == SN_QPS_RST || to == SN_QPS_ERR)
		return !mask;
	for (i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		t = &edges[i];
		if (t->from == qp->state && t->to == to)
			return (mask & t->need[qp->type]) == t->need[qp->type] &&
			       !(mask & ~(t->need[qp->type] | t->may[qp->type]));
	}
	return false;
}

/* Returns the UDP source port, derived as in the kernel: from the flow label, or from both QP
 * numbers if the label is 0. */
static uint16_t udp_sport(const struct sn_qp *qp)
{
	uint64_t v = (uint64_t)qp->qpn * qp->dest_qpn;
	uint32_t label = qp->flow_label;

	if (!label) {
		v ^= v >> 20;
		v ^= v >> 40;
		label = v & 0xfffff;
	}
	return (uint16_t)(0xc000 | ((label ^ label >> 14) & 0x3fff));
}

static int set_path(struct sn_call *c, struct sn_qp *qp, const struct ib_uverbs_qp_dest *d)
{
	struct sn_gid gid = { .v2 = false };
	int rc;

	if (d->port_num != 1)
		return -EINVAL;
	qp->dest = (struct sn_dest){ .grh = d->is_global,
				     .sgid_index = d->sgid_index,
				     .dlid = d->dlid };
	memcpy(qp->dest.dgid, d->dgid, 16);
	rc = sn_dest_find(&c->dev->cfg, &qp->dest, &qp->way.ip);
	if (rc)
		return rc;
	sn_mac_of_ip(&qp->way.ip, qp->dmac);
	qp->way.hop_limit = d->hop_limit;
	qp->tclass = d->traffic_class;
	qp->sl = d->sl;
	qp->way.tci = sn_vlan_tci(&c->dev->cfg, d->sgid_index, d->sl);
	sn_gid_at(&c->dev->cfg, d->sgid_index, &gid);
	/* with RoCE v2 the kernel uses the upper six bits as DSCP and drops the lower two */
	qp->way.tclass = gid.v2 && !c->dev->cfg.infiniband ? d->traffic_class & 0xfc
							   : d->traffic_class;
	qp->flow_label = d->flow_label & 0xfffff;
	qp->way.sport = gid.v2 ? udp_sport(qp) : 0;
	return 0;
}

static bool values_ok(struct sn_call *c, const struct ib_uverbs_modify_qp *in)
{
	uint32_t mask = in->attr_mask;

#define OUT(bit, cond) ((mask & (bit)) && (cond))
	return !OUT(IBV_QP_PORT, in->port_num != 1) && !OUT(IBV_QP_PKEY_INDEX, in->pkey_index) &&
	       !OUT(IBV_QP_PATH_MTU, in->path_mtu < 1 || in->path_mtu > 5 ||
					     (128u << in->path_mtu) > c->dev->cfg.mtu) &&
	       !OUT(IBV_QP_MAX_QP_RD_ATOMIC, in->max_rd_atomic > 16) &&
	       !OUT(IBV_QP_MAX_DEST_RD_ATOMIC, in->max_dest_rd_atomic > 16) &&
	       !OUT(IBV_QP_MIN_RNR_TIMER, in->min_rnr_timer > 31) &&
	       !OUT(IBV_QP_TIMEOUT, in->timeout > 31) &&
	       !OUT(IBV_QP_RETRY_CNT, in->retry_cnt > 7) &&
	       !OUT(IBV_QP_RNR_RETRY, in->rnr_retry > 7) &&
	       !OUT(IBV_QP_PATH_MIG_STATE, in->path_mig_state != IBV_MIG_MIGRATED);
#undef OUT
}

static int set_attrs(struct sn_call *c, struct sn_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	uint32_t mask = in->attr_mask;

	if (mask & IBV_QP_ACCESS_FLAGS) {
		qp->remote_write = in->qp_access_flags & IBV_ACCESS_REMOTE_WRITE;
		qp->remote_read = in->qp_access_flags & IBV_ACCESS_REMOTE_READ;
		qp->remote_atomic = in->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC;
		qp->atomic_mode = qp->remote_atomic;
	}
#define SET(bit, dst, src) \
	do { \
		if (mask & (bit)) \
			qp->dst = in->src; \
	} while (0)
	SET(DRAIN, sqd_event, en_sqd_async_notify);
	SET(IBV_QP_QKEY, qkey, qkey);
	SET(IBV_QP_PATH_MTU, path_mtu, path_mtu);
	SET(IBV_QP_DEST_QPN, dest_qpn, dest_qp_num & 0xffffff);
	SET(IBV_QP_RQ_PSN, rq_psn, rq_psn & 0xffffff);
	SET(IBV_QP_SQ_PSN, sq_psn, sq_psn & 0xffffff);
	SET(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, max_rd_atomic);
	SET(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, max_dest_rd_atomic);
	SET(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, min_rnr_timer);
	SET(IBV_QP_TIMEOUT, ack_timeout, timeout);
	SET(IBV_QP_RETRY_CNT, retry_cnt, retry_cnt);
	SET(IBV_QP_RNR_RETRY, rnr_retry, rnr_retry);
#undef SET
	return mask & IBV_QP_AV ? set_path(c, qp, &in->dest) : 0;
}

/* True if the kernel's driver assigns ports of a bond to QPs in rotation: the bond does not
 * distribute by hash, and is active or the device is a VF. */
static bool assigns_ports(const struct sn_cfg *cfg)
{
	return cfg->lag_ports && !cfg->lag_hash && (!cfg->lag_inactive || cfg->vf);
}

/* Returns the state that the call requests, or -errno. */
static int next_state(enum sn_qp_state now, const struct ib_uverbs_modify_qp *in, bool ex)
{
	uint32_t mask = in->attr_mask;

	if (mask & ~(ex ? (uint32_t)EX_MASK : (uint32_t)LEGACY_MASK))
		return -EOPNOTSUPP;
	if ((mask & IBV_QP_STATE && in->qp_state > IBV_QPS_ERR) ||
	    (mask & IBV_QP_CUR_STATE &&
	     (in->cur_qp_state > IBV_QPS_ERR || from_ibv[in->cur_qp_state] != now)))
		return -EINVAL;
	return (int)(mask & IBV_QP_STATE ? from_ibv[in->qp_state] : now);
}

/* Handles the driver data of an extended call: takes the peer's ECE options, if there are any, and
 * returns those that this NIC also supports. */
static void answer_ece(struct sn_call *c, struct sn_qp *qp)
{
	struct mlx5_ib_modify_qp_resp resp = { .response_length = sizeof(resp) };
	struct mlx5_ib_modify_qp drv;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	if (drv.ece_options)
		qp->ece = drv.ece_options & SN_ECE_OPTIONS;
	resp.ece_options = qp->ece;
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

static int modify_raw(struct sn_call *c, struct sn_raw *raw,
		      const struct ib_uverbs_ex_modify_qp *in, bool ex)
{
	struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = sizeof(resp) };
	struct mlx5_ib_modify_qp_resp drv = { .response_length = sizeof(drv) };
	int rc = next_state(raw->state, &in->base, ex);

	if (rc >= 0)
		rc = sn_raw_modify(c, raw, in, (enum sn_qp_state)rc);
	if (!rc && ex) {
		sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &drv, sizeof(drv));
		sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
	}
	return rc;
}

int sn_write_modify_qp(struct sn_call *c, bool ex)
{
	struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = sizeof(resp) };
	struct ib_uverbs_ex_modify_qp in = { .rate_limit = 0 };
	struct sn_qp *qp, next;
	struct sn_raw *raw;
	enum sn_qp_state from;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, ex ? sizeof(in) : sizeof(in.base));
	raw = sn_handle_get(c->dev, c->ctx, in.base.qp_handle, SN_RAW);
	if (raw)
		return modify_raw(c, raw, &in, ex);
	qp = sn_handle_get(c->dev, c->ctx, in.base.qp_handle, SN_QP);
	if (!qp || qp->devx)
		return -EINVAL;
	rc = next_state(qp->state, &in.base, ex);
	if (rc < 0)
		return rc;
	next = *qp;
	next.state = (enum sn_qp_state)rc;
	if (!transition_ok(qp, next.state, in.base.attr_mask) || !values_ok(c, &in.base))
		return -EINVAL;
	rc = set_attrs(c, &next, &in.base);
	if (rc)
		return rc;
	from = qp->state;
	if (from == SN_QPS_RST && next.state == SN_QPS_INIT && assigns_ports(&c->dev->cfg))
		next.lag_port = (uint8_t)(1 + c->dev->front->lag_turn++ % c->dev->cfg.lag_ports);
	*qp = next;
	sn_trace("QP %#x: state %d to %d", qp->qpn, from, qp->state);
	if (from != SN_QPS_RST || qp->state != SN_QPS_RST)
		sn_eng_qp_state(c->dev, qp, from);
	if (ex) {
		answer_ece(c, qp);
		sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
	}
	return 0;
}

static void answer_path(struct ib_uverbs_qp_dest *d, const struct sn_qp *qp)
{
	memcpy(d->dgid, qp->dest.dgid, 16);
	d->sgid_index = qp->dest.sgid_index;
	d->dlid = qp->dest.dlid;
	d->hop_limit = qp->way.hop_limit;
	d->traffic_class = qp->tclass;
	d->sl = qp->sl;
	d->flow_label = qp->flow_label;
	d->is_global = qp->dest.grh;
	d->port_num = qp->port;
}

int sn_write_query_qp(struct sn_call *c)
{
	struct ib_uverbs_query_qp_resp r = { .path_mig_state = 0 };
	struct ib_uverbs_query_qp in;
	uint32_t sq_psn, rq_psn;
	struct sn_raw *raw;
	struct sn_qp *qp;
	int rc;
	uint16_t ci;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	raw = sn_handle_get(c->dev, c->ctx, in.qp_handle, SN_RAW);
	if (raw) {
		rc = sn_raw_query(raw, &r);
		return rc ? rc : sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &r, sizeof(r));
	}
	qp = sn_handle_get(c->dev, c->ctx, in.qp_handle, SN_QP);
	if (!qp)
		return -EINVAL;
	sn_eng_qp_query(qp, &sq_psn, &rq_psn, &ci);
	answer_path(&r.dest, qp);
	r.max_recv_wr = qp->rq_wqes;
	r.max_recv_sge = qp->rq_stride / 16;
	r.max_send_wr = qp->sq_wqebbs;
	r.qkey = qp->qkey;
	r.rq_psn = rq_psn;
	r.sq_psn = sq_psn;
	r.dest_qp_num = qp->dest_qpn;
	r.qp_access_flags = (qp->remote_write ? (uint32_t)IBV_ACCESS_REMOTE_WRITE : 0) |
			    (qp->remote_read ? (uint32_t)IBV_ACCESS_REMOTE_READ : 0) |
			    (qp->remote_atomic ? (uint32_t)IBV_ACCESS_REMOTE_ATOMIC : 0);
	r.qp_state = to_ibv[qp->state];
	r.cur_qp_state = r.qp_state;
	r.sq_draining = sn_eng_qp_draining(qp);
	r.path_mtu = qp->path_mtu;
	r.max_rd_atomic = qp->max_rd_atomic;
	r.max_dest_rd_atomic = qp->max_dest_rd_atomic;
	r.min_rnr_timer = qp->min_rnr_timer;
	r.port_num = qp->port;
	r.timeout = qp->ack_timeout;
	r.retry_cnt = qp->retry_cnt;
	r.rnr_retry = qp->rnr_retry;
	r.sq_sig_all = qp->sig_all;
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &r, sizeof(r));
}
