/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Received data in CQEs: the fields cs_res (receives) and cs_req (responses to READs and atomics)
 * of a QP context. 1 and 0x11 permit 32 bytes, 2 and 0x22 permit 64
 * (drivers/infiniband/hw/mlx5/mlx5_ib.h of Linux: MLX5_RES_SCAT_DATA32_CQE and others).
 *
 * 64 bytes need CQEs of 128 bytes. Linux (qp.c) and UCX (uct_ib_mlx5_inl_cqe) request half of the
 * CQE's size. 32 bytes in CQEs of 128 are accepted too: libmlx5 reads them from the second half
 * (rdma-core 45184d2c8, providers/mlx5/cq.c). Linux and UCX set cs_req for RC and DC only. How
 * firmware answers other values is a guess.
 */
#include "front.h"
#include "prm_nic.h"

enum { CS_RES_32 = 0x01, CS_REQ_32 = 0x11 };

/* Reads the field `name`, whose value for 32 bytes is code_32. */
static uint8_t read_bytes(struct sn_cmd *cmd, const char *name, uint32_t value, uint32_t code_32,
			  const struct sn_cq *cq, uint8_t *bytes)
{
	*bytes = value == 2 * code_32 ? 64 : value == code_32 ? 32 : 0;
	if (value && !*bytes) {
		sn_violation(&cmd->dev->stats.bad_reserved,
			     "refusing CREATE_QP: %s %#x (expected 0, %#x or %#x)", name, value,
			     code_32, 2 * code_32);
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500012, "no such cs_res or cs_req");
	}
	if (*bytes > cq->cqe_size / 2) {
		sn_violation(&cmd->dev->stats.bad_command,
			     "refusing CREATE_QP: %s %#x permits 64 bytes, but the CQEs of CQ %#x "
			     "have room for 32 (use %#x, or CQEs of 128 bytes)",
			     name, value, cq->cqn, code_32);
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500013,
				   "64 bytes of data in the CQE need CQEs of 128 bytes");
	}
	return SN_OK;
}

uint8_t sn_cmd_qp_inline(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *q = cmd->in + CMD_QPC;
	uint32_t cs_res = nic_get(q, QPC_CS_RES), cs_req = nic_get(q, QPC_CS_REQ);
	uint8_t st = read_bytes(cmd, "cs_res", cs_res, CS_RES_32, qp->rcq, &qp->inline_recv);

	if (!st)
		st = read_bytes(cmd, "cs_req", cs_req, CS_REQ_32, qp->scq, &qp->inline_send);
	if (st || qp->type == SN_QPT_RC || !cs_req)
		return st;
	sn_violation(&cmd->dev->stats.bad_command,
		     "refusing CREATE_QP: cs_req %#x, but only RC queue pairs receive responses "
		     "(use 0)",
		     cs_req);
	return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500014, "cs_req of a queue pair that is not RC");
}

void sn_cmd_query_inline(uint8_t *q, const struct sn_qp *qp)
{
	nic_set(q, QPC_CS_RES, qp->inline_recv / 32 * CS_RES_32);
	nic_set(q, QPC_CS_REQ, qp->inline_send / 32 * CS_REQ_32);
}
