/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Valid firmware commands ("boxes") of raw Ethernet, as in boxes.c. */
#include "nic.h"

#include "../softnic/prm_nic.h"

/* Offsets in the umem, behind those of boxes.c. */
#define SQ_AT  0x9000u
#define RQ_AT  0xa000u
#define DBR_AT 0xb000u

enum { STATE_RST = 0, STATE_RDY = 1, STATE_ERR = 3 };

static void wq_box(const struct fuzz_nic *n, uint8_t *wq, uint32_t log_stride, uint32_t at)
{
	nic_set(wq, WQ_TYPE, 1);
	nic_set(wq, WQ_PD, n->pdn);
	nic_set64(wq, WQ_DBR_ADDR, DBR_AT + at / 0x1000 * 64);
	nic_set(wq, WQ_LOG_STRIDE, log_stride);
	nic_set(wq, WQ_LOG_SZ, 3);
	nic_set(wq, WQ_DBR_VALID, 1);
	nic_set(wq, WQ_UMEM_VALID, 1);
	nic_set(wq, WQ_DBR_UMEM_ID, n->umem_id);
	nic_set(wq, WQ_UMEM_ID, n->umem_id);
	nic_set64(wq, WQ_UMEM_OFFSET, at);
}

static size_t sq_box(const struct fuzz_nic *n, uint8_t *b)
{
	nic_set(b + CMD_ETHC, SQC_FLUSH, 1);
	nic_set(b + CMD_ETHC, SQC_CQN, n->cqn);
	nic_set(b + CMD_ETHC, SQC_TIS_NUM, 1);
	nic_set(b + CMD_ETHC, SQC_TIS, n->eth[FUZZ_TIS].number);
	wq_box(n, b + CMD_ETH_WQ, 6, SQ_AT);
	nic_set(b + CMD_ETH_WQ, WQ_UAR_PAGE, n->uar_id);
	return 0x110;
}

static size_t rq_box(const struct fuzz_nic *n, uint8_t *b)
{
	nic_set(b + CMD_ETHC, RQC_FLUSH, 1);
	nic_set(b + CMD_ETHC, RQC_CQN, n->cqn);
	nic_set(b + CMD_ETHC, RQC_COUNTER_SET, n->eth[FUZZ_COUNTERS].number);
	wq_box(n, b + CMD_ETH_WQ, 4, RQ_AT);
	return 0x110;
}

static size_t tis_box(const struct fuzz_nic *n, uint8_t *b)
{
	nic_set(b + CMD_ETHC, TISC_TD, n->eth[FUZZ_TD].number);
	return 0xc0;
}

static size_t rqt_box(const struct fuzz_nic *n, uint8_t *b)
{
	uint8_t *list = b + CMD_ETHC + RQTC_LIST;

	nic_set(b + CMD_ETHC, RQTC_MAX, 8);
	nic_set(b + CMD_ETHC, RQTC_ACTUAL, 2);
	nic_set(list, RQTC_RQN, n->eth[FUZZ_RQ].number);
	nic_set(list + 4, RQTC_RQN, n->eth[FUZZ_RQ].number);
	return CMD_ETHC + RQTC_LIST + 8;
}

static size_t tir_box(const struct fuzz_nic *n, uint8_t *b)
{
	nic_set(b + CMD_ETHC, TIRC_DISP_TYPE, 1);
	nic_set(b + CMD_ETHC, TIRC_RQTN, n->eth[FUZZ_RQT].number);
	nic_set(b + CMD_ETHC, TIRC_HASH_FN, 2);
	nic_set(b + CMD_ETHC, TIRC_TD, n->eth[FUZZ_TD].number);
	nic_set(b + CMD_ETHC, TIRC_FIELDS, 3);
	return 0x110;
}

/* A change to the state that follows the queue's current one. */
static size_t state_box(uint32_t number, uint8_t *b)
{
	const struct sn_qp *qp = sn_find_qp(sn_dev, number);
	enum sn_qp_state now = qp ? qp->state : SN_QPS_RST;
	uint32_t from = now == SN_QPS_RST ? STATE_RST : now == SN_QPS_ERR ? STATE_ERR : STATE_RDY;

	memset(b + 4, 0, 0x10c);
	nic_set(b, IN_OBJ, number);
	nic_set(b, MODIFY_ETH_STATE, from);
	nic_set(b + CMD_ETHC, SQC_STATE,
		from == STATE_RST   ? STATE_RDY
		: from == STATE_RDY ? STATE_ERR
				    : STATE_RST);
	return 0x110;
}

static size_t modified(uint8_t *b, uint32_t number, uint32_t bits, size_t len)
{
	nic_set(b, IN_OBJ, number);
	nic_set(b, MODIFY_ETH_MASK, bits);
	return len;
}

/* Every other command writes to memory. */
static size_t flow_query_box(const struct fuzz_nic *n, uint32_t number, uint8_t *b)
{
	nic_set(b, QUERY_FLOW_COUNTER, number);
	nic_set(b, QUERY_FLOW_NUM, 4);
	if (sn_dev->front->cmds & 1) {
		nic_set(b, QUERY_FLOW_DUMP, 1);
		nic_set(b, QUERY_FLOW_KEY, n->lkey);
		nic_set64(b, QUERY_FLOW_ADDR, FUZZ_ARENA + 64);
	}
	return 32;
}

size_t box_eth(const struct fuzz_nic *n, uint16_t opcode, uint32_t number, uint8_t *b)
{
	switch (opcode) {
	case OP_ALLOC_TD:
	case OP_ALLOC_Q_COUNTER:
		return 16;
	case OP_ALLOC_FLOW_COUNTER:
		nic_set(b, ALLOC_FLOW_BULK, 1);
		return 16;
	case OP_CREATE_TIS:
		return tis_box(n, b);
	case OP_CREATE_SQ:
		return sq_box(n, b);
	case OP_CREATE_RQ:
		return rq_box(n, b);
	case OP_CREATE_RQT:
		return rqt_box(n, b);
	case OP_CREATE_TIR:
		return tir_box(n, b);
	case OP_MODIFY_SQ:
	case OP_MODIFY_RQ:
		return state_box(number, b);
	case OP_MODIFY_TIS:
		return modified(b, number, TIS_MODIFY_PRIO, tis_box(n, b));
	case OP_MODIFY_RQT:
		return modified(b, number, RQT_MODIFY_LIST, rqt_box(n, b));
	case OP_MODIFY_TIR:
		return modified(b, number, TIR_MODIFY_TABLE | TIR_MODIFY_HASH, tir_box(n, b));
	case OP_QUERY_Q_COUNTER:
		nic_set(b, QUERY_COUNTER_SET, number);
		return 32;
	case OP_QUERY_FLOW_COUNTER:
		return flow_query_box(n, number, b);
	case OP_QUERY_TIS:
	case OP_QUERY_SQ:
	case OP_QUERY_RQ:
	case OP_QUERY_RQT:
	case OP_QUERY_TIR:
		return 16;
	}
	return 0;
}
