/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The commands of receive memory pools (RMP): a ring or a linked list of receive WQEs
 * that several queue pairs share. rq.c consumes the WQEs; SRQs of libibverbs are in
 * uverbs_srq.c.
 */
#include "front.h"
#include "prm_nic.h"

#include <stdlib.h>

#define W(off) ((off) / 4)
#define WQ_MASK(q) \
	[W(q + 0x00)] = 0xff000000, [W(q + 0x04)] = 0x001fffff, [W(q + 0x08)] = 0x00ffffff, \
	       [W(q + 0x0c)] = 0x00ffffff, [W(q + 0x10)] = 0xffffffff, [W(q + 0x14)] = 0xffffffff, \
	       [W(q + 0x20)] = 0x000f1f1f, [W(q + 0x24)] = 0xc0000000, [W(q + 0x28)] = 0xffffffff, \
	       [W(q + 0x2c)] = 0xffffffff, [W(q + 0x30)] = 0xffffffff, [W(q + 0x34)] = 0xffffffff

static const uint32_t create_mask[W(CMD_RMPC_WQ + 0xc0)] = {
	[W(0x00)] = 0xffffffff,
	[W(0x04)] = 0x0000ffff,
	[W(CMD_RMPC + 0x00)] = 0x00f00000,
	[W(CMD_RMPC + 0x04)] = 0x80000000,
	WQ_MASK(CMD_RMPC_WQ),
};
static const uint32_t modify_mask[W(CMD_RMPC_WQ + 0xc0)] = {
	[W(0x00)] = 0xffffffff,
	[W(0x08)] = 0xf0ffffff,
	[W(0x14)] = 0x00000001,
	[W(CMD_RMPC + 0x00)] = 0x00f00000,
	[W(CMD_RMPC + 0x04)] = 0x80000000,
	WQ_MASK(CMD_RMPC_WQ),
};
static const uint32_t query_mask[4] = { 0xffffffff, 0x0000ffff, 0x00ffffff, 0 };

enum { STATE_RDY = 1, WQ_LINKED = 0, WQ_CYCLIC = 1 };

static uint8_t read_ring(struct sn_cmd *cmd, struct sn_srq *srq, const uint8_t *wq)
{
	uint32_t log_stride = nic_get(wq, WQ_LOG_STRIDE), log_sz = nic_get(wq, WQ_LOG_SZ);
	uint32_t id = nic_get(wq, WQ_UMEM_ID), dbr_id = nic_get(wq, WQ_DBR_UMEM_ID);
	struct sn_ring ring = { .umem = id,
				.offset = nic_get64(wq, WQ_UMEM_OFFSET),
				.page_offset = nic_get(wq, WQ_PAGE_OFFSET) };
	uint8_t st;

	if (log_stride < (srq->basic ? 4u : 5u) || log_stride > 12 || log_sz > 15)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90c002, "unsupported queue or WQE size");
	srq->wqe_shift = log_stride;
	srq->wqe_cnt = 1u << log_sz;
	ring.len = (uint64_t)srq->wqe_cnt << log_stride;
	st = sn_cmd_ring(cmd, &ring, 0x90c003, &srq->buf);
	if (st)
		return st;
	srq->dbr = sn_cmd_umem(cmd, dbr_id, nic_get64(wq, WQ_DBR_ADDR), 8);
	if (!srq->dbr || srq->dbr & 7)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x90c004,
				   "DBREC outside its umem or misaligned");
	srq->umems[0] = sn_find_umem(cmd->dev, id);
	srq->umems[1] = sn_find_umem(cmd->dev, dbr_id);
	return SN_OK;
}

static uint8_t read_rmp(struct sn_cmd *cmd, struct sn_srq *srq)
{
	const uint8_t *rmpc = cmd->in + CMD_RMPC, *wq = cmd->in + CMD_RMPC_WQ;
	uint32_t type = nic_get(wq, WQ_TYPE);

	srq->devx = true;
	srq->cyclic = type == WQ_CYCLIC;
	srq->basic = nic_get(rmpc, RMPC_BASIC);
	srq->pdn = nic_get(wq, WQ_PD);
	srq->limit = nic_get(wq, WQ_LWM);
	if (nic_get(rmpc, RMPC_STATE) != STATE_RDY || type > WQ_CYCLIC ||
	    (srq->basic && !srq->cyclic))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90c001,
				   "unsupported state or queue type");
	if (!sn_find_pd(cmd->dev, srq->pdn))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x90c005, "no such PD");
	return read_ring(cmd, srq, wq);
}

uint8_t sn_cmd_create_rmp(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, create_mask, W(CMD_RMPC_WQ + 0xc0));
	struct sn_srq *srq;

	if (st)
		return st;
	if (cmd->out_len < 0x10)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x90c006, "output too short");
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x90c007, "out of memory");
	st = read_rmp(cmd, srq);
	if (!st && sn_srq_add(cmd->dev, cmd->ctx, srq))
		st = sn_cmd_fail(cmd, SN_ST_NO_RES, 0x90c008, "no RMP number left");
	if (st) {
		free(srq);
		return st;
	}
	cmd->kind = SN_SRQ;
	cmd->obj = srq;
	nic_set(cmd->out, OUT_OBJ, srq->srqn);
	return SN_OK;
}

/* Changes the limit if the modify bitmask selects it. The state must stay ready. mlx5 supports no
 * other change. */
uint8_t sn_cmd_modify_rmp(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_reserved(cmd, modify_mask, W(CMD_RMPC_WQ + 0xc0));
	struct sn_srq *srq = cmd->obj;
	uint32_t lwm;

	if (st)
		return st;
	lwm = nic_get(cmd->in + CMD_RMPC_WQ, WQ_LWM);
	if (nic_get(cmd->in, MODIFY_RMP_STATE) != STATE_RDY || lwm >= srq->wqe_cnt)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x90d001, "unsupported state or limit");
	if (nic_get(cmd->in, MODIFY_RMP_LWM))
		srq->limit = lwm;
	return SN_OK;
}

uint8_t sn_cmd_query_rmp(struct sn_cmd *cmd)
{
	const struct sn_srq *srq = cmd->obj;
	uint8_t st = sn_cmd_reserved(cmd, query_mask, 4), *wq = cmd->out + CMD_RMPC_WQ;

	if (st)
		return st;
	if (cmd->out_len < CMD_RMPC_WQ + 0x38)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x90f001, "output too short");
	nic_set(cmd->out + CMD_RMPC, RMPC_STATE, STATE_RDY);
	nic_set(cmd->out + CMD_RMPC, RMPC_BASIC, srq->basic);
	nic_set(wq, WQ_TYPE, srq->cyclic ? WQ_CYCLIC : WQ_LINKED);
	nic_set(wq, WQ_LWM, srq->limit);
	nic_set(wq, WQ_PD, srq->pdn);
	nic_set(wq, WQ_HW_COUNTER, srq->consumed);
	nic_set(wq, WQ_LOG_STRIDE, srq->wqe_shift);
	nic_set(wq, WQ_LOG_SZ, (uint32_t)__builtin_ctz(srq->wqe_cnt));
	return SN_OK;
}
