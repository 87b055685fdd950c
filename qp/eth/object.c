/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Firmware objects of Ethernet queues. The fields are those that DPDK 22.11 sets
 * (drivers/common/mlx5/mlx5_devx_cmds.c), with the same values.
 */
#include <stdio.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "qp/eth/eth.h"

#define CQE_BYTES 64u

static const char *dev_name(const struct doca_dev *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

doca_error_t gdk_eth_create_obj(const struct doca_dev *dev, const char *kind, const void *in,
				size_t len, uint32_t destroy, struct gdk_eth_obj *o)
{
	uint8_t out[PRM_CMD_OUT_LEN] = { 0 };
	struct mlx5dv_devx_obj *obj;
	char name[96];
	doca_error_t err;

	snprintf(name, sizeof(name), "%s: %s", dev_name(dev), kind);
	err = gdk_devx_create(dev->ctx, name, in, len, out, sizeof(out), &obj);
	if (err)
		return err;
	*o = (struct gdk_eth_obj){ .obj = obj, .destroy = destroy, .kind = kind };
	o->number = (uint32_t)prm_get(out, PRM_CMD_OUT_OBJECT);
	return DOCA_SUCCESS;
}

doca_error_t gdk_eth_destroy_obj(const struct doca_dev *dev, struct gdk_eth_obj *o)
{
	doca_error_t err;

	if (!o->obj)
		return DOCA_SUCCESS;
	err = gdk_devx_destroy(dev->ctx, o->obj, o->destroy, o->kind, o->number);
	if (!err)
		o->obj = NULL;
	return err;
}

doca_error_t gdk_eth_create_td(const struct doca_dev *dev, struct gdk_eth_obj *td)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 };

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_ALLOC_TRANSPORT_DOMAIN);
	return gdk_eth_create_obj(dev, "transport domain", in, sizeof(in),
				  GDK_CMD_DEALLOC_TRANSPORT_DOMAIN, td);
}

doca_error_t gdk_eth_create_tis(const struct doca_dev *dev, uint32_t tdn, struct gdk_eth_obj *tis)
{
	uint8_t in[PRM_CREATE_TIS_IN_LEN] = { 0 };

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_TIS);
	prm_set(in + PRM_CREATE_TIS_TISC_AT, PRM_TISC_TD, tdn);
	return gdk_eth_create_obj(dev, "TIS", in, sizeof(in), GDK_CMD_DESTROY_TIS, tis);
}

/* ---- counters ---- */

doca_error_t gdk_eth_create_counters(const struct doca_dev *dev, struct gdk_eth_obj *set)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 };
	doca_error_t err;

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_ALLOC_Q_COUNTER);
	err = gdk_eth_create_obj(dev, "set of queue counters", in, sizeof(in),
				 GDK_CMD_DEALLOC_Q_COUNTER, set);
	if (!err)
		set->number &= 0xff; /* counter_set_id has 8 bits */
	return err;
}

doca_error_t gdk_eth_query_counters(const struct doca_dev *dev, const struct gdk_eth_obj *set,
				    uint32_t *out_of_buffer)
{
	uint8_t in[PRM_QUERY_Q_COUNTER_IN_LEN] = { 0 }, out[PRM_QUERY_Q_COUNTER_OUT_LEN] = { 0 };
	doca_error_t err;
	char name[40];

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_Q_COUNTER);
	prm_set(in, PRM_QUERY_Q_COUNTER_ID, set->number);
	snprintf(name, sizeof(name), "queue counters 0x%x", set->number);
	err = gdk_devx_query(dev->ctx, set->obj, name, in, sizeof(in), out, sizeof(out));
	if (!err)
		*out_of_buffer = (uint32_t)prm_get(out, PRM_Q_COUNTER_NO_WQE);
	return err;
}

/* ---- queues ---- */

static uint64_t offset_of(const void *ptr, const struct doca_verbs_umem *umem)
{
	return (uint64_t)((const uint8_t *)ptr - (const uint8_t *)umem->addr);
}

static void fill_wq(uint8_t *box, const struct gdk_eth_wq *wq)
{
	prm_set(box, PRM_WQ_TYPE, GDK_WQ_CYCLIC);
	prm_set(box, PRM_WQ_PD, wq->dev->pdn);
	prm_set(box, PRM_WQ_LOG_STRIDE, gdk_ilog2(wq->stride));
	prm_set(box, PRM_WQ_LOG_SZ, gdk_ilog2(wq->num));
	prm_set(box, PRM_WQ_UMEM_VALID, 1);
	prm_set(box, PRM_WQ_UMEM_ID, wq->umem->id);
	prm_set(box, PRM_WQ_UMEM_OFFSET, offset_of(wq->ring, wq->umem));
	prm_set(box, PRM_WQ_DBR_UMEM_VALID, 1);
	prm_set(box, PRM_WQ_DBR_UMEM_ID, wq->umem_dbr->id);
	prm_set(box, PRM_WQ_DBR_ADDR, offset_of(wq->dbrec, wq->umem_dbr));
}

/* Moves a new queue from RST to RDY. A queue that cannot be moved is destroyed. */
static doca_error_t make_ready(const struct doca_dev *dev, uint32_t opcode, struct gdk_eth_obj *q)
{
	uint8_t in[PRM_SQ_RQ_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN] = { 0 };
	const bool is_sq = opcode == GDK_CMD_MODIFY_SQ;
	doca_error_t err;
	char name[24];

	prm_set(in, PRM_CMD_OPCODE, opcode);
	prm_set(in, PRM_CMD_OBJECT, q->number);
	prm_set(in, is_sq ? PRM_MODIFY_SQ_STATE : PRM_MODIFY_RQ_STATE, GDK_WQ_STATE_RST);
	if (is_sq)
		prm_set(in + PRM_CREATE_SQ_SQC_AT, PRM_SQC_STATE, GDK_WQ_STATE_RDY);
	else
		prm_set(in + PRM_CREATE_RQ_RQC_AT, PRM_RQC_STATE, GDK_WQ_STATE_RDY);
	snprintf(name, sizeof(name), "%s 0x%x", q->kind, q->number);
	err = gdk_devx_modify(dev->ctx, q->obj, name, in, sizeof(in), out, sizeof(out));
	if (err)
		(void)gdk_eth_destroy_obj(dev, q);
	return err;
}

doca_error_t gdk_eth_create_sq(const struct gdk_eth_wq *wq, struct gdk_eth_obj *sq)
{
	uint8_t in[PRM_SQ_RQ_IN_LEN] = { 0 }, *sqc = in + PRM_CREATE_SQ_SQC_AT;
	doca_error_t err;

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_SQ);
	prm_set(sqc, PRM_SQC_FLUSH_IN_ERROR, 1);
	prm_set(sqc, PRM_SQC_MULTI_PKT, wq->empw);
	prm_set(sqc, PRM_SQC_TS_FORMAT, wq->ts_format);
	prm_set(sqc, PRM_SQC_CQN, wq->cqn);
	prm_set(sqc, PRM_SQC_TIS_LST_SZ, 1);
	prm_set(sqc, PRM_SQC_TIS_NUM_0, wq->tisn);
	prm_set(sqc + PRM_SQC_WQ_AT, PRM_WQ_UAR_PAGE, wq->uar);
	fill_wq(sqc + PRM_SQC_WQ_AT, wq);
	err = gdk_eth_create_obj(wq->dev, "SQ", in, sizeof(in), GDK_CMD_DESTROY_SQ, sq);
	return err ? err : make_ready(wq->dev, GDK_CMD_MODIFY_SQ, sq);
}

doca_error_t gdk_eth_create_rq(const struct gdk_eth_wq *wq, struct gdk_eth_obj *rq)
{
	uint8_t in[PRM_SQ_RQ_IN_LEN] = { 0 }, *rqc = in + PRM_CREATE_RQ_RQC_AT;
	doca_error_t err;

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_RQ);
	prm_set(rqc, PRM_RQC_VSD, 1); /* VLAN tags stay in the packets */
	prm_set(rqc, PRM_RQC_FLUSH_IN_ERROR, 1);
	prm_set(rqc, PRM_RQC_TS_FORMAT, wq->ts_format);
	prm_set(rqc, PRM_RQC_CQN, wq->cqn);
	prm_set(rqc, PRM_RQC_COUNTER_SET, wq->counters);
	fill_wq(rqc + PRM_RQC_WQ_AT, wq);
	err = gdk_eth_create_obj(wq->dev, "RQ", in, sizeof(in), GDK_CMD_DESTROY_RQ, rq);
	return err ? err : make_ready(wq->dev, GDK_CMD_MODIFY_RQ, rq);
}

doca_error_t gdk_eth_create_cq(struct doca_dev *dev, const struct gdk_slab_unit *unit, uint32_t num,
			       const void *ring, const void *dbrec, struct doca_verbs_cq_t **cq)
{
	doca_verbs_cq_attr_t *attr;
	doca_error_t err = doca_verbs_cq_attr_create(&attr);

	if (err)
		return err;
	attr->dbrec_offset = offset_of(dbrec, unit->umem);
	err = doca_verbs_cq_attr_set_cq_size(attr, num) ?:
	      doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN) ?:
	      doca_verbs_cq_attr_set_external_umem(attr, unit->umem,
						   offset_of(ring, unit->umem)) ?:
	      doca_verbs_cq_create(dev, attr, cq);
	(void)doca_verbs_cq_attr_destroy(attr);
	return err;
}
