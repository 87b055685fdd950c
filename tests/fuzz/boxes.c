/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Valid firmware commands ("boxes") for the NIC of nic.h. The fuzzers change some of
 * their bytes, so that most of a command is accepted and its deeper checks are
 * reached. */
#include "nic.h"

#include "../softnic/prm_nic.h"

/* Offsets in the umem. */
#define QUEUES_AT 0x0000u
#define CQ_AT	  0x4000u
#define RMP_AT	  0x6000u
#define DBR_AT	  0x8000u

static size_t cq_box(const struct fuzz_nic *n, uint8_t *b)
{
	uint8_t *cqc = b + CMD_CQC;

	nic_set(cqc, CQC_DBR_UMEM_ID, n->umem_id);
	nic_set(cqc, CQC_LOG_CQ_SIZE, 4);
	nic_set(cqc, CQC_UAR_PAGE, n->uar_id);
	nic_set(cqc, CQC_C_EQN, SN_EQN_BASE);
	nic_set64(cqc, CQC_DBR_ADDR, DBR_AT);
	nic_set64(b, CREATE_CQ_UMEM_OFFSET, CQ_AT);
	nic_set(b, CREATE_CQ_UMEM_ID, n->umem_id);
	nic_set(b, NIC_F(0x5c, 31, 31), 1);
	return 0x110;
}

static size_t qp_box(const struct fuzz_nic *n, uint8_t *b)
{
	uint8_t *q = b + CMD_QPC;

	nic_set(q, QPC_PM_STATE, 3);
	nic_set(q, QPC_PD, n->pdn);
	nic_set(q, QPC_LOG_RQ_SIZE, 2);
	nic_set(q, QPC_LOG_SQ_SIZE, 4);
	nic_set(q, QPC_UAR_PAGE, n->uar_id);
	nic_set(q, QPC_USER_INDEX, 0x1234);
	nic_set(q, QPC_CQN_SND, n->cqn);
	nic_set(q, QPC_CQN_RCV, n->cqn);
	nic_set64(q, QPC_DBR_ADDR, DBR_AT + 64);
	nic_set(q, QPC_DBR_UMEM_VALID, 1);
	nic_set(q, QPC_DBR_UMEM_ID, n->umem_id);
	nic_set64(b, CREATE_QP_UMEM_OFFSET, QUEUES_AT);
	nic_set(b, CREATE_QP_UMEM_ID, n->umem_id);
	nic_set(b, NIC_F(0x10c, 31, 31), 1);
	return 0x110;
}

static size_t rmp_box(const struct fuzz_nic *n, uint8_t *b)
{
	uint8_t *wq = b + CMD_RMPC_WQ;

	nic_set(b + CMD_RMPC, RMPC_STATE, 1);
	nic_set(wq, WQ_TYPE, 1);
	nic_set(wq, WQ_PD, n->pdn);
	nic_set64(wq, WQ_DBR_ADDR, DBR_AT + 128);
	nic_set(wq, WQ_LOG_STRIDE, 5);
	nic_set(wq, WQ_LOG_SZ, 3);
	nic_set(wq, WQ_DBR_UMEM_ID, n->umem_id);
	nic_set(wq, WQ_UMEM_ID, n->umem_id);
	nic_set64(wq, WQ_UMEM_OFFSET, RMP_AT);
	return CMD_RMPC_WQ + 0xc0;
}

static size_t mkey_box(const struct fuzz_nic *n, uint8_t *b)
{
	uint8_t *mkc = b + CMD_MKC;

	nic_set(mkc, MKC_LW, 1);
	nic_set(mkc, MKC_LR, 1);
	nic_set(mkc, MKC_RR, 1);
	nic_set(mkc, MKC_MODE, 3);
	nic_set(mkc, MKC_QPN, 0xffffff);
	nic_set(mkc, MKC_TAG, 0x42);
	nic_set(mkc, MKC_PD, n->pdn);
	nic_set64(mkc, MKC_START, FUZZ_ARENA);
	nic_set64(mkc, MKC_LEN, 8192);
	nic_set(mkc, MKC_OCTWORDS, 2);
	nic_set(mkc, MKC_LOG_ENTITY, 12);
	nic_set(b, CREATE_MKEY_ACTUAL, 2);
	nic_set(b + CMD_KLM, KLM_KEY, n->lkey);
	nic_set64(b + CMD_KLM, KLM_ADDR, FUZZ_ARENA + 4096);
	nic_set(b + CMD_KLM + 16, KLM_KEY, n->lkey);
	nic_set64(b + CMD_KLM + 16, KLM_ADDR, FUZZ_ARENA);
	if (sn_dev->front->cmds & 1) { /* one piece: access mode KLM */
		memset(b + CMD_KLM + 16, 0, 16);
		nic_set(b + CMD_KLM, KLM_BYTES, 8192);
		nic_set(mkc, MKC_MODE, 2);
		nic_set(mkc, MKC_LOG_ENTITY, 0);
	}
	return CMD_KLM + 32;
}

/* Writes the path from the queue pair to itself into the QP context q. */
static void path(uint8_t *q)
{
	const struct sn_cfg *cfg = &sn_dev->cfg;
	uint8_t *p = q + QPC_PATH, mac[6];
	struct sn_gid gid;
	uint32_t i = cfg->infiniband ? 0 : 3;

	sn_gid_at(cfg, i, &gid);
	memcpy(p + ADS_RGID, gid.raw, 16);
	sn_mac_of_ip(&cfg->ip, mac);
	memcpy(p + 0x26, mac, 6);
	if (cfg->infiniband)
		memset(p + 0x26, 0, 6);
	nic_set(p, ADS_SRC_ADDR_INDEX, i);
	nic_set(p, ADS_RLID, cfg->infiniband ? sn_lid_of_ip(&cfg->ip) : 0);
	nic_set(p, ADS_HOP_LIMIT, 64);
	nic_set(p, ADS_PORT, 1);
}

static size_t transition_box(const struct fuzz_nic *n, uint16_t opcode, uint8_t *b)
{
	uint8_t *q = b + CMD_QPC;

	switch (opcode) {
	case OP_2ERR:
	case OP_2RST:
		return 16;
	case OP_RST2INIT:
	case OP_INIT2INIT:
		if (opcode == OP_INIT2INIT && sn_dev->front->cmds & 1) { /* as libmlx5 */
			nic_set(b, CMD_QPC_EXT, 1);
			nic_set(b, MODIFY_QP_OPT_MASK_HI, OPT_HI_MMO);
			nic_set(b, QPC_EXT_MMO, 1);
			return QPC_EXT + QPC_EXT_LEN;
		}
		nic_set(q, QPC_PM_STATE, 3);
		nic_set(q + QPC_PATH, ADS_PORT, 1);
		nic_set(q, QPC_RRE, 1);
		nic_set(q, QPC_RWE, 1);
		break;
	case OP_INIT2RTR:
		nic_set(q, QPC_MTU, 3);
		nic_set(q, QPC_LOG_MSG_MAX, 30);
		nic_set(q, QPC_REMOTE_QPN, n->qpn);
		nic_set(q, QPC_LOG_RRA_MAX, 4);
		nic_set(q, QPC_MIN_RNR_NAK, 12);
		path(q);
		break;
	case OP_RTR2RTS:
		nic_set(q, QPC_LOG_SRA_MAX, 4);
		nic_set(q, QPC_RETRY_COUNT, 7);
		nic_set(q, QPC_RNR_RETRY, 7);
		nic_set(q + QPC_PATH, ADS_ACK_TIMEOUT, 14);
		break;
	}
	return 0x110;
}

static size_t modify_rmp_box(const struct fuzz_nic *n, uint8_t *b)
{
	(void)n;
	nic_set(b, MODIFY_RMP_STATE, 1);
	nic_set(b, MODIFY_RMP_LWM, 1);
	nic_set(b + CMD_RMPC, RMPC_STATE, 1);
	nic_set(b + CMD_RMPC_WQ, WQ_LWM, 2);
	return CMD_RMPC_WQ + 0xc0;
}

size_t box_fill(const struct fuzz_nic *n, uint16_t opcode, uint32_t number, uint8_t *b)
{
	size_t len;

	nic_set(b, IN_OPCODE, opcode);
	switch (opcode) {
	case OP_CREATE_CQ:
		return cq_box(n, b);
	case OP_CREATE_QP:
		return qp_box(n, b);
	case OP_CREATE_RMP:
		return rmp_box(n, b);
	case OP_CREATE_MKEY:
		return mkey_box(n, b);
	case OP_QUERY_HCA_CAP:
	case OP_QUERY_LAG:
	case OP_QUERY_ROCE_ADDRESS:
		return 16;
	}
	len = box_eth(n, opcode, number, b);
	if (opcode >> 8 == OP_CREATE_TIR >> 8 && len == 16)
		nic_set(b, IN_OBJ, number);
	if (len)
		return len;
	nic_set(b, IN_OBJ, number);
	switch (opcode) {
	case OP_MODIFY_RMP:
		return modify_rmp_box(n, b);
	case OP_MODIFY_CQ:
		return 0x110;
	case OP_QUERY_CQ:
	case OP_QUERY_QP:
	case OP_QUERY_RMP:
	case OP_QUERY_MKEY:
		return 16;
	}
	return transition_box(n, opcode, b);
}
