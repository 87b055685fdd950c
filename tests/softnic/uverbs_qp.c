/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Modify and query of ordinary verbs queue pairs: the transitions of the IB
 * specification with the attributes that each requires.
 */
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

/* ibv_qp_state and sn_qp_state differ in order from SQD on. */
static const enum sn_qp_state from_ibv[] = { SN_QPS_RST, SN_QPS_INIT, SN_QPS_RTR, SN_QPS_RTS,
					     SN_QPS_SQD, SN_QPS_SQER, SN_QPS_ERR };
static const uint8_t to_ibv[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
				  IBV_QPS_SQE,	 IBV_QPS_SQD,  IBV_QPS_ERR };

#define NEED_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define NEED_RTR (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define NEED_RTR_RC (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define NEED_RTS_RC                                                                          \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

/* Attributes that a transition must bring; -1: no such transition. */
static int64_t required(const struct sn_qp *qp, enum sn_qp_state to)
{
	bool ud = qp->type == SN_QPT_UD, rc = qp->type == SN_QPT_RC;

	if (to == SN_QPS_RST || to == SN_QPS_ERR)
		return 0;
	switch ((int)qp->state << 4 | (int)to) {
	case SN_QPS_RST << 4 | SN_QPS_INIT:
		return NEED_INIT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case SN_QPS_INIT << 4 | SN_QPS_INIT: return 0;
	case SN_QPS_INIT << 4 | SN_QPS_RTR:
		return ud ? 0 : NEED_RTR | (rc ? NEED_RTR_RC : 0);
	case SN_QPS_RTR << 4 | SN_QPS_RTS: return IBV_QP_SQ_PSN | (rc ? NEED_RTS_RC : 0);
	case SN_QPS_RTS << 4 | SN_QPS_RTS: return 0;
	default: return -1;
	}
}

static int set_path(struct sn_call *c, struct sn_qp *qp, const struct ib_uverbs_qp_dest *d)
{
	if (!d->is_global || d->sgid_index >= SN_GIDS_USED)
		return -EINVAL;
	if (!sn_addr_of_gid(&c->dev->cfg.ip, d->dgid, &qp->peer))
		return -EHOSTUNREACH;
	memcpy(qp->dgid, d->dgid, 16);
	sn_mac_of_ip(&qp->peer, qp->dmac);
	qp->sgid_index = d->sgid_index;
	qp->hop_limit = d->hop_limit;
	qp->tclass = d->traffic_class;
	qp->sl = d->sl;
	return 0;
}

static int set_attrs(struct sn_call *c, struct sn_qp *qp, const struct ib_uverbs_modify_qp *in)
{
	uint32_t mask = in->attr_mask;

	if ((mask & IBV_QP_PORT && in->port_num != 1) ||
	    (mask & IBV_QP_PKEY_INDEX && in->pkey_index) ||
	    (mask & IBV_QP_PATH_MTU &&
	     (in->path_mtu < 1 || in->path_mtu > 5 ||
	      (128u << in->path_mtu) > c->dev->cfg.mtu)) ||
	    (mask & IBV_QP_MAX_QP_RD_ATOMIC && in->max_rd_atomic > 16) ||
	    (mask & IBV_QP_MAX_DEST_RD_ATOMIC && in->max_dest_rd_atomic > 16))
		return -EINVAL;
	if (mask & IBV_QP_ACCESS_FLAGS) {
		qp->remote_write = in->qp_access_flags & IBV_ACCESS_REMOTE_WRITE;
		qp->remote_read = in->qp_access_flags & IBV_ACCESS_REMOTE_READ;
		qp->remote_atomic = in->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC;
	}
#define SET(bit, dst, src) do { if (mask & (bit)) qp->dst = in->src; } while (0)
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

int sn_write_modify_qp(struct sn_call *c, bool ex)
{
	struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = sizeof(resp) };
	struct ib_uverbs_ex_modify_qp in;
	struct sn_qp *qp, next;
	enum sn_qp_state from;
	int64_t need;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, ex ? sizeof(in) : sizeof(in.base));
	qp = sn_handle_get(c->dev, c->ctx, in.base.qp_handle, SN_QP);
	if (!qp || qp->devx)
		return -EINVAL;
	next = *qp;
	from = qp->state;
	if (in.base.attr_mask & IBV_QP_STATE) {
		if (in.base.qp_state > IBV_QPS_ERR)
			return -EINVAL;
		next.state = from_ibv[in.base.qp_state];
	}
	if (in.base.attr_mask & IBV_QP_CUR_STATE &&
	    (in.base.cur_qp_state > IBV_QPS_ERR || from_ibv[in.base.cur_qp_state] != from))
		return -EINVAL;
	need = required(qp, next.state);
	if (need < 0 || (in.base.attr_mask & need) != need)
		return -EINVAL;
	rc = set_attrs(c, &next, &in.base);
	if (rc)
		return rc;
	*qp = next;
	sn_trace("QP %#x: state %d to %d", qp->qpn, from, qp->state);
	sn_eng_qp_state(c->dev, qp, from);
	if (ex)
		sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
	return 0;
}

static void answer_path(struct ib_uverbs_qp_dest *d, const struct sn_qp *qp)
{
	memcpy(d->dgid, qp->dgid, 16);
	d->sgid_index = qp->sgid_index;
	d->hop_limit = qp->hop_limit;
	d->traffic_class = qp->tclass;
	d->sl = qp->sl;
	d->is_global = 1;
	d->port_num = qp->port;
}

int sn_write_query_qp(struct sn_call *c)
{
	struct ib_uverbs_query_qp_resp r = { .path_mig_state = 0 };
	struct ib_uverbs_query_qp in;
	uint32_t sq_psn, rq_psn;
	struct sn_qp *qp;
	uint16_t ci;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
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
