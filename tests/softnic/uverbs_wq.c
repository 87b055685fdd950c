/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Work queues of libibverbs, which are receive queues of frames, and their indirection tables
 * (RWQ tables), from which RSS QPs select a queue. Modification of a queue and creation of a
 * table are commands of the write() interface.
 */
#include "eth.h"
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#define QUEUE_ALIGN    64u
#define WQ_EVENT_TYPES IBV_EVENT_WQ_FATAL, IBV_EVENT_WQ_FATAL

/* ---- work queues ---- */
static int wq_check(struct sn_call *c, const struct mlx5_ib_create_wq *drv)
{
	const uint64_t known = IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING | IB_UVERBS_WQ_FLAGS_SCATTER_FCS |
			       IB_UVERBS_WQ_FLAGS_DELAY_DROP |
			       IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING;
	uint64_t flags = sn_attr_num(c, UVERBS_ATTR_CREATE_WQ_FLAGS);

	if (sn_attr_num(c, UVERBS_ATTR_CREATE_WQ_TYPE) != IB_UVERBS_WQT_RQ || flags & ~known)
		return -EINVAL;
	/* neither striding RQs, delay drop, nor signatures */
	if (c->dev->cfg.infiniband || flags & IB_UVERBS_WQ_FLAGS_DELAY_DROP || drv->comp_mask ||
	    drv->flags)
		return -EOPNOTSUPP;
	if (sn_attr_num(c, UVERBS_ATTR_CREATE_WQ_MAX_WR) > SN_MAX_QP_SZ || !drv->rq_wqe_count ||
	    drv->rq_wqe_count > SN_MAX_QP_SZ || drv->rq_wqe_count & (drv->rq_wqe_count - 1) ||
	    drv->rq_wqe_shift < 4 || drv->rq_wqe_shift > 12 || drv->db_addr & 3 || !drv->buf_addr ||
	    drv->buf_addr % QUEUE_ALIGN)
		return -EINVAL;
	return sn_mem_readable(drv->db_addr, 8) &&
			       sn_mem_readable(drv->buf_addr,
					       (uint64_t)drv->rq_wqe_count << drv->rq_wqe_shift)
		       ? 0
		       : -EFAULT;
}

static void wq_fill(struct sn_call *c, struct sn_qp *qp, const struct mlx5_ib_create_wq *drv)
{
	uint64_t flags = sn_attr_num(c, UVERBS_ATTR_CREATE_WQ_FLAGS);

	qp->rq_buf = drv->buf_addr;
	qp->rq_wqes = drv->rq_wqe_count;
	qp->rq_stride = 1u << drv->rq_wqe_shift;
	qp->dbr = drv->db_addr;
	qp->uidx = drv->user_index;
	qp->user_handle = sn_attr_num(c, UVERBS_ATTR_CREATE_WQ_USER_HANDLE);
	qp->eth->keep_vlan = !(flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING);
	qp->eth->scatter_fcs = flags & IB_UVERBS_WQ_FLAGS_SCATTER_FCS;
	qp->eth->end_pad = flags & IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING;
}

static void wq_answer(struct sn_call *c, const struct sn_qp *qp)
{
	struct mlx5_ib_create_wq_resp resp = { .response_length = sizeof(resp) };
	uint32_t max_wr = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_WQ_MAX_WR);
	uint32_t max_sge = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_WQ_MAX_SGE);

	sn_attr_set_handle(c, UVERBS_ATTR_CREATE_WQ_HANDLE, qp->handle);
	sn_attr_out(c, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &max_wr, sizeof(max_wr));
	sn_attr_out(c, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &max_sge, sizeof(max_sge));
	sn_attr_out(c, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &qp->qpn, sizeof(qp->qpn));
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

static int wq_create(struct sn_call *c)
{
	const size_t min = offsetof(struct mlx5_ib_create_wq, single_stride_log_num_of_bytes);
	struct sn_pd *pd = sn_attr_obj(c, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, SN_PD);
	struct sn_cq *cq = sn_attr_obj(c, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, SN_CQ);
	struct sn_event_queue *async;
	struct mlx5_ib_create_wq drv;
	struct sn_qp *qp;
	int rc;

	if (sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv)) < min || !pd || !cq)
		return -EINVAL;
	rc = wq_check(c, &drv);
	if (!rc)
		rc = sn_attr_events(c, UVERBS_ATTR_CREATE_WQ_EVENT_FD, SN_ASYNC, &async);
	if (rc)
		return rc;
	qp = sn_eth_qp_alloc(SN_QPT_RQ);
	if (!qp)
		return -ENOMEM;
	wq_fill(c, qp, &drv);
	qp->pdn = pd->pdn;
	qp->rcq = cq;
	qp->async = async;
	rc = sn_eth_qp_own(c, qp, SN_WQ);
	if (!rc)
		wq_answer(c, qp);
	return rc;
}

static int wq_destroy(struct sn_call *c)
{
	struct sn_qp *qp = sn_attr_obj(c, UVERBS_ATTR_DESTROY_WQ_HANDLE, SN_WQ);
	uint32_t events;

	if (!qp)
		return -ENOENT;
	if (qp->eth->users)
		return -EBUSY;
	events = qp->async_events;
	if (qp->async)
		events -= sn_events_drain(qp->async, qp->user_handle, WQ_EVENT_TYPES);
	sn_attr_out(c, UVERBS_ATTR_DESTROY_WQ_RESP, &events, sizeof(events));
	return sn_eth_qp_destroy(c->dev, qp);
}

static const enum sn_qp_state from_ibv[] = { SN_QPS_RST, SN_QPS_RTS, SN_QPS_ERR };

/* Returns the new state of the queue, or -errno. A queue in error must be reset first. */
static int wq_next(const struct sn_qp *qp, const struct ib_uverbs_ex_modify_wq *in)
{
	enum sn_qp_state to = qp->state;

	if (in->attr_mask & IBV_WQ_ATTR_CURR_STATE &&
	    (in->curr_wq_state > IBV_WQS_ERR || from_ibv[in->curr_wq_state] != qp->state))
		return -EINVAL;
	if (in->attr_mask & IBV_WQ_ATTR_STATE) {
		if (in->wq_state > IBV_WQS_ERR)
			return -EINVAL;
		to = from_ibv[in->wq_state];
	}
	return qp->state == SN_QPS_ERR && to == SN_QPS_RTS ? -EINVAL : (int)to;
}

int sn_write_modify_wq(struct sn_call *c)
{
	const uint32_t known = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;
	struct ib_uverbs_ex_modify_wq in;
	struct sn_qp *qp;
	int to;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	qp = sn_handle_get(c->dev, c->ctx, in.wq_handle, SN_WQ);
	if (!qp || !in.attr_mask || in.attr_mask & ~known)
		return -EINVAL;
	if (in.attr_mask & IBV_WQ_ATTR_FLAGS &&
	    in.flags_mask & ~(uint32_t)IBV_WQ_FLAGS_CVLAN_STRIPPING)
		return -EOPNOTSUPP;
	to = wq_next(qp, &in);
	if (to < 0)
		return to;
	if (in.attr_mask & IBV_WQ_ATTR_FLAGS && in.flags_mask)
		qp->eth->keep_vlan = !(in.flags & IBV_WQ_FLAGS_CVLAN_STRIPPING);
	sn_trace("RQ %#x: state %d to %d", qp->qpn, qp->state, to);
	if ((int)qp->state != to)
		sn_eth_qp_modify(c->dev, qp, (enum sn_qp_state)to);
	return 0;
}

/* ---- indirection tables ---- */
int sn_ind_table_destroy(struct sn_dev *dev, struct sn_ind_table *table)
{
	if (sn_rqt_destroy(dev, table->rqt))
		return -EBUSY;
	if (table->handle)
		sn_handle_del(dev, table->handle);
	free(table);
	return 0;
}

/* Looks up the queues of a table. The list of their handles follows the command's structure. */
static int table_queues(struct sn_call *c, struct sn_qp **rq, uint32_t n)
{
	size_t len, head = sizeof(struct ib_uverbs_ex_create_rwq_ind_table);
	uint8_t *in = sn_attr_dup(c, UVERBS_ATTR_CORE_IN, &len);
	uint32_t i, handle;
	int rc = in ? 0 : -ENOMEM;

	if (!rc && len < head + n * sizeof(handle))
		rc = -ENOSPC;
	for (i = 0; !rc && i < n; i++) {
		memcpy(&handle, in + head + i * sizeof(handle), sizeof(handle));
		rq[i] = sn_handle_get(c->dev, c->ctx, handle, SN_WQ);
		if (!rq[i])
			rc = -EINVAL;
	}
	free(in);
	return rc;
}

static int table_make(struct sn_call *c, struct sn_qp *const *rq, uint32_t n)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = { .response_length = sizeof(resp) };
	struct sn_ind_table *table = calloc(1, sizeof(*table));
	int rc;

	if (!table)
		return -ENOMEM;
	table->rqt = sn_rqt_create(c->dev, c->ctx, rq, n, n);
	if (!table->rqt) {
		free(table);
		return -ENOMEM;
	}
	sn_handle_hide(c->dev, table->rqt->handle);
	table->handle = sn_handle_add(c->dev, c->ctx, SN_IND_TABLE, table);
	if (!table->handle) {
		sn_ind_table_destroy(c->dev, table);
		return -ENOMEM;
	}
	resp.ind_tbl_handle = table->handle;
	resp.ind_tbl_num = table->rqt->rqtn;
	rc = sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
	if (rc)
		sn_ind_table_destroy(c->dev, table);
	return rc;
}

int sn_write_create_rwq_ind_table(struct sn_call *c)
{
	struct ib_uverbs_ex_create_rwq_ind_table in;
	struct sn_qp *rq[SN_RQT_MAX];
	int rc;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	if (in.comp_mask)
		return -EOPNOTSUPP;
	if (in.log_ind_tbl_size > IB_USER_VERBS_MAX_LOG_IND_TBL_SIZE ||
	    1u << in.log_ind_tbl_size > SN_RQT_MAX)
		return -EINVAL;
	rc = table_queues(c, rq, 1u << in.log_ind_tbl_size);
	return rc ? rc : table_make(c, rq, 1u << in.log_ind_tbl_size);
}

static int table_destroy(struct sn_call *c)
{
	struct sn_ind_table *table = sn_attr_obj(c, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE,
						 SN_IND_TABLE);

	return table ? sn_ind_table_destroy(c->dev, table) : -ENOENT;
}

#define D(id) (1u << ((id)&0xfff))
#define UHW   (D(UVERBS_ATTR_UHW_IN) | D(UVERBS_ATTR_UHW_OUT))

const struct sn_method sn_methods_wq[] = {
	{ UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, 0xfff, UHW, wq_create },
	{ UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, 0x3, 0, wq_destroy },
	{ UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY, 0x1, 0, table_destroy },
	{ .fn = NULL },
};
