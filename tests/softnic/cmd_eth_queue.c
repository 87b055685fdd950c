/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The commands of Ethernet send queues (SQ) and receive queues (RQ): creation from a
 * context with a work queue, state changes, query. eth_objects.c has their life cycles,
 * engine.c acts on a new state.
 */
#include "eth.h"
#include "front.h"
#include "prm_nic.h"

#include <stdlib.h>

#define W(off) ((off) / 4)
#define WQ_MASK(q) \
	[W(q + 0x00)] = 0xff000000, [W(q + 0x04)] = 0xf01fffff, [W(q + 0x08)] = 0x00ffffff, \
	       [W(q + 0x0c)] = 0x00ffffff, [W(q + 0x10)] = 0xffffffff, [W(q + 0x14)] = 0xffffffff, \
	       [W(q + 0x18)] = 0xffffffff, [W(q + 0x1c)] = 0xffffffff, [W(q + 0x20)] = 0x000f1f1f, \
	       [W(q + 0x24)] = 0xdf1f0f87, [W(q + 0x28)] = 0xffffffff, [W(q + 0x2c)] = 0xffffffff, \
	       [W(q + 0x30)] = 0xffffffff, [W(q + 0x34)] = 0xffffffff
#define SQC_MASK(q) \
	[W(q + 0x00)] = 0xffff0030, [W(q + 0x04)] = 0x00ffffff, [W(q + 0x08)] = 0x00ffffff, \
	       [W(q + 0x0c)] = 0x00ffffff, [W(q + 0x10)] = 0x0000ffff, [W(q + 0x18)] = 0x00ffffff, \
	       [W(q + 0x1c)] = 0x0000ffff, [W(q + 0x20)] = 0xffffffff, [W(q + 0x2c)] = 0x00ffffff, \
	       WQ_MASK(q + 0x30)
#define RQC_MASK(q) \
	[W(q + 0x00)] = 0xfff60030, [W(q + 0x04)] = 0x00ffffff, [W(q + 0x08)] = 0x00ffffff, \
	       [W(q + 0x0c)] = 0xff000000, [W(q + 0x10)] = 0x00ffffff, [W(q + 0x14)] = 0x00ffffff, \
	       [W(q + 0x18)] = 0x0000ffff, WQ_MASK(q + 0x30)
#define CREATE_HEAD [W(0x00)] = 0xffffffff, [W(0x04)] = 0x0000ffff
#define MODIFY_HEAD \
	[W(0x00)] = 0xffffffff, [W(0x04)] = 0x0000ffff, [W(0x08)] = 0xf0ffffff, \
	[W(0x10)] = 0xffffffff, [W(0x14)] = 0xffffffff
#define CMD_LEN 0x110

static const uint32_t create_sq_mask[W(CMD_LEN)] = { CREATE_HEAD, SQC_MASK(CMD_ETHC) };
static const uint32_t modify_sq_mask[W(CMD_LEN)] = { MODIFY_HEAD, SQC_MASK(CMD_ETHC) };
static const uint32_t create_rq_mask[W(CMD_LEN)] = { CREATE_HEAD, RQC_MASK(CMD_ETHC) };
static const uint32_t modify_rq_mask[W(CMD_LEN)] = { MODIFY_HEAD, RQC_MASK(CMD_ETHC) };
static const uint32_t query_mask[4] = { 0xffffffff, 0x0000ffff, 0x00ffffff, 0 };

enum { STATE_RST = 0, STATE_RDY = 1, STATE_ERR = 3 };
enum { WQ_LINKED = 0, WQ_CYCLIC = 1 };
enum { MEM_INLINE = 0, MEM_RMP = 1 };
enum { END_PAD_NONE = 0, END_PAD_ALIGN = 1 };
enum { MIN_INLINE_TCP_UDP = 3 }; /* larger values name inner headers */

static const uint8_t state_of[] = {
	[SN_QPS_RST] = STATE_RST, [SN_QPS_RTS] = STATE_RDY, [SN_QPS_ERR] = STATE_ERR
};

/* ---- the work queue ---- */

/* Checks the fields of features that neither SQs nor RQs have here. */
static uint8_t check_wq(struct sn_cmd *cmd, const uint8_t *wq)
{
	uint32_t type = nic_get(wq, WQ_TYPE);

	if (type != WQ_CYCLIC)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904001,
				   type == WQ_LINKED ? "a linked list needs an RMP"
						     : "striding work queues not supported");
	if (nic_get(wq, WQ_SIGNATURE) || nic_get(wq, WQ_CD_SLAVE) || nic_get(wq, WQ_HDS_SKIP) ||
	    nic_get(wq, WQ_HDS_SIZE) || nic_get(wq, WQ_LWM))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904002,
				   "signature, slave queue, header split or limit not supported");
	if (nic_get(wq, WQ_HAIRPIN_NUM) || nic_get(wq, WQ_HAIRPIN_SIZE) ||
	    nic_get(wq, WQ_STRIDES) || nic_get(wq, WQ_TWO_BYTE) || nic_get(wq, WQ_STRIDE_SIZE))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904003,
				   "hairpin and strides not supported");
	if (!nic_get(wq, WQ_UMEM_VALID) || !nic_get(wq, WQ_DBR_VALID))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904004,
				   "ring and DBREC must be in umems");
	return SN_OK;
}

/* Finds ring and DBREC, whose sizes and types were checked. Returns the ring's address in *va. */
static uint8_t find_ring(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *wq, uint64_t *va)
{
	uint32_t id = nic_get(wq, WQ_UMEM_ID), dbr_id = nic_get(wq, WQ_DBR_UMEM_ID);
	struct sn_ring ring = {
		.umem = id,
		.offset = nic_get64(wq, WQ_UMEM_OFFSET),
		.page_offset = nic_get(wq, WQ_PAGE_OFFSET),
		.len = 1ull << (nic_get(wq, WQ_LOG_SZ) + nic_get(wq, WQ_LOG_STRIDE)),
	};
	uint8_t st = sn_cmd_ring(cmd, &ring, 0x904005, va);

	if (st)
		return st;
	qp->dbr = sn_cmd_umem(cmd, dbr_id, nic_get64(wq, WQ_DBR_ADDR), 8);
	if (!qp->dbr || qp->dbr & 7)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x904006,
				   "DBREC outside its umem or misaligned");
	qp->umems[0] = sn_find_umem(cmd->dev, id);
	qp->umems[1] = sn_find_umem(cmd->dev, dbr_id);
	return SN_OK;
}

static uint8_t find_pd(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *wq)
{
	const struct sn_pd *pd = sn_find_pd(cmd->dev, nic_get(wq, WQ_PD));

	qp->pdn = nic_get(wq, WQ_PD);
	if (!pd || !sn_cmd_owns(cmd, pd->handle))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x904007, "no such PD");
	return SN_OK;
}

static uint8_t check_common(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *ctx = cmd->in + CMD_ETHC;

	qp->uidx = nic_get(ctx, SQC_USER_INDEX);
	qp->ts_format = (uint8_t)nic_get(ctx, SQC_TS_FORMAT);
	if (nic_get(ctx, SQC_STATE) != STATE_RST)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904008, "initial state is not reset");
	if (!sn_ts_format_ok(cmd->dev->cfg.ts_format, qp->ts_format))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904009,
				   "ts_format not supported by the device");
	if (nic_get(ctx, SQC_RLKY) || nic_get(ctx, SQC_HAIRPIN))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90400a,
				   "reserved key and hairpin not supported");
	return SN_OK;
}

/* Creates the queue that `read` describes in *qp. */
static uint8_t create(struct sn_cmd *cmd, enum sn_kind kind,
		      uint8_t (*read)(struct sn_cmd *, struct sn_qp *))
{
	struct sn_qp *qp = calloc(1, sizeof(*qp));
	uint8_t st;

	if (qp)
		qp->eth = calloc(1, sizeof(*qp->eth));
	if (!qp || !qp->eth) {
		free(qp);
		return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x90400b, "out of memory");
	}
	qp->devx = true;
	qp->port = 1;
	memcpy(qp->eth->ctx, cmd->in + CMD_ETHC, sizeof(qp->eth->ctx));
	st = check_common(cmd, qp);
	if (!st)
		st = read(cmd, qp);
	if (!st && sn_eth_qp_add(cmd->dev, cmd->ctx, qp, kind))
		st = sn_cmd_fail(cmd, SN_ST_NO_RES, 0x90400c, "no queue number left");
	if (st) {
		free(qp->eth);
		free(qp);
		return st;
	}
	cmd->kind = kind;
	cmd->obj = qp;
	nic_set(cmd->out, OUT_OBJ, qp->qpn);
	return SN_OK;
}

/*
 * Reads the state that a MODIFY command requests. Allowed are RST to RDY, RDY to ERR or RST, ERR to
 * RST, and no change. The command must name the current state.
 */
static uint8_t read_state(struct sn_cmd *cmd, const struct sn_qp *qp, enum sn_qp_state *to)
{
	uint32_t now = nic_get(cmd->in, MODIFY_ETH_STATE);
	uint32_t next = nic_get(cmd->in + CMD_ETHC, SQC_STATE);

	if (now != state_of[qp->state])
		return sn_cmd_fail(cmd, SN_ST_BAD_QP_STATE, 0x905001,
				   "the command names another state than the current one");
	if (next != STATE_RST && next != STATE_RDY && next != STATE_ERR)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x905002, "no such state");
	if ((now == STATE_RST && next == STATE_ERR) || (now == STATE_ERR && next == STATE_RDY))
		return sn_cmd_fail(cmd, SN_ST_BAD_QP_STATE, 0x905003, "no such transition");
	*to = next == STATE_RST ? SN_QPS_RST : next == STATE_RDY ? SN_QPS_RTS : SN_QPS_ERR;
	return SN_OK;
}

/* Writes the fields that SQs and RQs have in common to a query's context. */
static uint8_t query(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, query_mask, 4), *ctx = cmd->out + CMD_ETHC;
	const struct sn_qp *qp = cmd->obj;

	if (st)
		return st;
	if (cmd->out_len < CMD_LEN)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x907001, "output too short");
	memcpy(ctx, qp->eth->ctx, sizeof(qp->eth->ctx));
	nic_set(ctx, SQC_STATE, state_of[qp->state]);
	nic_set(ctx, SQC_TS_FORMAT, qp->ts_format);
	nic_set(ctx, SQC_USER_INDEX, qp->uidx);
	nic_set(cmd->out + CMD_ETH_WQ, WQ_PD, qp->pdn);
	return SN_OK;
}

/* ---- send queues ---- */
static uint8_t check_sqc(struct sn_cmd *cmd, const uint8_t *sqc)
{
	if (nic_get(sqc, SQC_CD_MASTER))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90400d,
				   "master queues, which wait for CQs, not supported");
	if (nic_get(sqc, SQC_REG_UMR) || nic_get(sqc, SQC_SWP) || nic_get(sqc, SQC_NON_WIRE))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90400e,
				   "UMR, SWP and queues without wire not supported");
	if (nic_get(sqc, SQC_PEER_RQ) || nic_get(sqc, SQC_PEER_VHCA) || nic_get(sqc, SQC_TS_CQN) ||
	    nic_get(sqc, SQC_RATE_INDEX) || nic_get(sqc, SQC_QUEUE_GROUP))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90400f,
				   "hairpin, time stamp CQ, rate limit, group not supported");
	if (nic_get(sqc, SQC_MIN_INLINE) > MIN_INLINE_TCP_UDP)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904010,
				   "inner headers in min_wqe_inline_mode not supported");
	return SN_OK;
}

static uint8_t sq_links(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *sqc = cmd->in + CMD_ETHC, *wq = cmd->in + CMD_ETH_WQ;

	qp->uar = nic_get(wq, WQ_UAR_PAGE);
	qp->scq = sn_find_cq(cmd->dev, nic_get(sqc, SQC_CQN));
	qp->eth->tis = sn_find_tis(cmd->dev, nic_get(sqc, SQC_TIS));
	if (!qp->scq || !sn_cmd_owns(cmd, qp->scq->handle))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x904011, "no such CQ");
	if (nic_get(sqc, SQC_TIS_NUM) != 1 || !qp->eth->tis ||
	    !sn_cmd_owns(cmd, qp->eth->tis->handle))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x904012, "an SQ needs exactly one TIS");
	if (!sn_find_uar(cmd->dev, qp->uar))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x904013, "no such UAR");
	return find_pd(cmd, qp, wq);
}

static uint8_t read_sq(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *sqc = cmd->in + CMD_ETHC, *wq = cmd->in + CMD_ETH_WQ;
	uint32_t log_sz = nic_get(wq, WQ_LOG_SZ);
	uint8_t st = check_sqc(cmd, sqc);

	if (!st)
		st = check_wq(cmd, wq);
	if (!st)
		st = sq_links(cmd, qp);
	if (st)
		return st;
	if (nic_get(wq, WQ_LOG_STRIDE) != 6 || 1u << log_sz > SN_MAX_QP_SZ)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904014, "unsupported queue or WQE size");
	if (nic_get(wq, WQ_END_PADDING))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904015, "end_padding_mode of an SQ");
	qp->type = SN_QPT_SQ;
	qp->sq_wqebbs = 1u << log_sz;
	qp->eth->flush_in_error = nic_get(sqc, SQC_FLUSH);
	qp->eth->empw = nic_get(sqc, SQC_MULTI_PKT);
	qp->eth->min_inline = (uint8_t)nic_get(sqc, SQC_MIN_INLINE);
	return find_ring(cmd, qp, wq, &qp->sq_buf);
}

uint8_t sn_cmd_create_sq(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, create_sq_mask, W(CMD_LEN));

	if (!st && cmd->out_len < 0x10)
		st = sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x904016, "output too short");
	if (!st && cmd->dev->cfg.infiniband)
		st = sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x904017, "the port is not Ethernet");
	return st ? st : create(cmd, SN_SQ, read_sq);
}

/* Changes the state. The only field that modify_bitmask can name is the rate limit, which this NIC
 * lacks. */
uint8_t sn_cmd_modify_sq(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, modify_sq_mask, W(CMD_LEN));
	enum sn_qp_state to = SN_QPS_RST;
	struct sn_qp *qp = cmd->obj;

	if (!st && nic_get64(cmd->in, MODIFY_ETH_MASK_AT))
		st = sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x905004,
				 "modify_bitmask names a field that cannot change");
	if (!st)
		st = read_state(cmd, qp, &to);
	if (!st && to != qp->state)
		sn_eth_qp_modify(cmd->dev, qp, to);
	return st;
}

uint8_t sn_cmd_query_sq(struct sn_cmd *cmd)
{
	const struct sn_qp *qp = cmd->obj;
	uint8_t *sqc = cmd->out + CMD_ETHC, st = query(cmd);

	if (st)
		return st;
	nic_set(sqc, SQC_CQN, qp->scq->cqn);
	nic_set(cmd->out + CMD_ETH_WQ, WQ_UAR_PAGE, qp->uar);
	return SN_OK;
}

/* ---- receive queues ---- */
static uint8_t rq_ring(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *wq = cmd->in + CMD_ETH_WQ;
	uint32_t log_stride = nic_get(wq, WQ_LOG_STRIDE), log_sz = nic_get(wq, WQ_LOG_SZ);
	uint8_t st = check_wq(cmd, wq);

	if (!st)
		st = find_pd(cmd, qp, wq);
	if (st)
		return st;
	if (log_stride < 4 || log_stride > 9 || 1u << log_sz > SN_MAX_QP_SZ)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x908001, "unsupported queue or WQE size");
	qp->rq_wqes = 1u << log_sz;
	qp->rq_stride = 1u << log_stride;
	return find_ring(cmd, qp, wq, &qp->rq_buf);
}

static uint8_t rq_pool(struct sn_cmd *cmd, struct sn_qp *qp)
{
	qp->srq = sn_find_srq(cmd->dev, nic_get(cmd->in + CMD_ETHC, RQC_RMPN));
	if (!qp->srq || !qp->srq->devx || !sn_cmd_owns(cmd, qp->srq->handle))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x908002, "no such RMP");
	qp->pdn = qp->srq->pdn;
	return SN_OK;
}

static uint8_t find_counters(struct sn_cmd *cmd, struct sn_counter_set **set)
{
	uint32_t id = nic_get(cmd->in + CMD_ETHC, RQC_COUNTER_SET);

	*set = id ? sn_find_counter_set(cmd->dev, id) : NULL;
	if (id && (!*set || !sn_cmd_owns(cmd, (*set)->handle)))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x908003, "no such set of queue counters");
	return SN_OK;
}

static uint8_t rq_links(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *rqc = cmd->in + CMD_ETHC;

	if (nic_get(rqc, RQC_DELAY_DROP) || nic_get(rqc, RQC_PEER_SQ) ||
	    nic_get(rqc, RQC_PEER_VHCA))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x908004,
				   "delayed drop and hairpin not supported");
	qp->rcq = sn_find_cq(cmd->dev, nic_get(rqc, RQC_CQN));
	if (!qp->rcq || !sn_cmd_owns(cmd, qp->rcq->handle))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x908005, "no such CQ");
	return find_counters(cmd, &qp->eth->counters);
}

static uint8_t read_rq(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *rqc = cmd->in + CMD_ETHC, *wq = cmd->in + CMD_ETH_WQ;
	uint32_t mem = nic_get(rqc, RQC_MEM_TYPE), pad = nic_get(wq, WQ_END_PADDING);
	uint8_t st = rq_links(cmd, qp);

	if (st)
		return st;
	if (mem != MEM_INLINE && mem != MEM_RMP)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x908006, "unsupported mem_rq_type");
	if (pad != END_PAD_NONE && pad != END_PAD_ALIGN)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x908007, "no such end_padding_mode");
	qp->type = SN_QPT_RQ;
	qp->eth->flush_in_error = nic_get(rqc, RQC_FLUSH);
	qp->eth->keep_vlan = nic_get(rqc, RQC_VSD);
	qp->eth->scatter_fcs = nic_get(rqc, RQC_SCATTER_FCS);
	qp->eth->end_pad = pad == END_PAD_ALIGN;
	return mem == MEM_RMP ? rq_pool(cmd, qp) : rq_ring(cmd, qp);
}

uint8_t sn_cmd_create_rq(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, create_rq_mask, W(CMD_LEN));

	if (!st && cmd->out_len < 0x10)
		st = sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x908008, "output too short");
	if (!st && cmd->dev->cfg.infiniband)
		st = sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x908009, "the port is not Ethernet");
	return st ? st : create(cmd, SN_RQ, read_rq);
}

/* Stores the fields that modify_bitmask names. */
static void change_rq(struct sn_eth *eth, const uint8_t *rqc, uint32_t which,
		      struct sn_counter_set *set)
{
	if (which & RQ_MODIFY_VSD)
		eth->keep_vlan = nic_get(rqc, RQC_VSD);
	if (which & RQ_MODIFY_SCATTER_FCS)
		eth->scatter_fcs = nic_get(rqc, RQC_SCATTER_FCS);
	if (which & RQ_MODIFY_COUNTER_SET)
		sn_eth_set_counters(eth, set);
}

uint8_t sn_cmd_modify_rq(struct sn_cmd *cmd)
{
	const uint32_t known = RQ_MODIFY_VSD | RQ_MODIFY_SCATTER_FCS | RQ_MODIFY_COUNTER_SET;
	uint8_t st = sn_cmd_reserved(cmd, modify_rq_mask, W(CMD_LEN));
	struct sn_counter_set *set = NULL;
	enum sn_qp_state to = SN_QPS_RST;
	struct sn_qp *qp = cmd->obj;
	uint32_t which;

	if (st)
		return st;
	which = nic_get(cmd->in, MODIFY_ETH_MASK);
	if (which & ~known || nic_get(cmd->in, MODIFY_ETH_MASK_HI))
		st = sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x909001,
				 "modify_bitmask names a field that cannot change");
	if (!st)
		st = read_state(cmd, qp, &to);
	if (!st && which & RQ_MODIFY_COUNTER_SET)
		st = find_counters(cmd, &set);
	if (st)
		return st;
	change_rq(qp->eth, cmd->in + CMD_ETHC, which, set);
	if (to != qp->state)
		sn_eth_qp_modify(cmd->dev, qp, to);
	return SN_OK;
}

uint8_t sn_cmd_query_rq(struct sn_cmd *cmd)
{
	const struct sn_qp *qp = cmd->obj;
	uint8_t *rqc = cmd->out + CMD_ETHC, *wq = cmd->out + CMD_ETH_WQ, st = query(cmd);

	if (st)
		return st;
	nic_set(rqc, RQC_CQN, qp->rcq->cqn);
	nic_set(rqc, RQC_VSD, qp->eth->keep_vlan);
	nic_set(rqc, RQC_SCATTER_FCS, qp->eth->scatter_fcs);
	nic_set(rqc, RQC_COUNTER_SET, qp->eth->counters ? qp->eth->counters->id : 0);
	if (qp->srq)
		return SN_OK;
	nic_set(wq, WQ_TYPE, WQ_CYCLIC);
	nic_set(wq, WQ_END_PADDING, qp->eth->end_pad);
	nic_set(wq, WQ_LOG_STRIDE, (uint32_t)__builtin_ctz(qp->rq_stride));
	nic_set(wq, WQ_LOG_SZ, (uint32_t)__builtin_ctz(qp->rq_wqes));
	return SN_OK;
}
