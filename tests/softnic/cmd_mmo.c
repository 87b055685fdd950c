/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The permission of a queue pair to use the copy engine, a bit in the extension of its context.
 * dma.c executes the copies.
 */
#include "front.h"
#include "prm_nic.h"

/*
 * Checks reserved bits of a command with a context. An extension of the context may follow it:
 * mlx5_ifc.h of rdma-core 44 (INIT2INIT), mlx5_prm.h of DPDK 22.11 (CREATE_QP). Its only field that
 * is not reserved is QPC_EXT_MMO.
 */
uint8_t sn_cmd_qp_reserved(struct sn_cmd *cmd, const uint32_t *mask)
{
	static const uint32_t ext_mask[QPC_EXT_LEN / 4] = { 1u << 29 };
	uint8_t st = sn_cmd_reserved_head(cmd, mask, QPC_EXT / 4);

	if (st)
		return st;
	if (!nic_get(cmd->in, CMD_QPC_EXT))
		return sn_cmd_reserved_rest(cmd, QPC_EXT);
	if (cmd->dev->cfg.dma != SN_DMA_QP)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500017,
				   "context extension not supported by the device");
	return sn_cmd_reserved_at(cmd, QPC_EXT, ext_mask, QPC_EXT_LEN / 4);
}

bool sn_cmd_qp_mmo(const struct sn_cmd *cmd)
{
	return nic_get(cmd->in, CMD_QPC_EXT) && nic_get(cmd->in, QPC_EXT_MMO);
}

/* Takes the permission to use the copy engine, as libmlx5 gives it (qp_enable_mmo() in
 * providers/mlx5/verbs.c of rdma-core 44). */
uint8_t sn_cmd_init2init_mmo(struct sn_cmd *cmd, struct sn_qp *qp)
{
	bool ext = nic_get(cmd->in, CMD_QPC_EXT);
	bool opt = nic_get(cmd->in, MODIFY_QP_OPT_MASK_HI) & OPT_HI_MMO;

	if (!ext && !opt)
		return SN_OK;
	if (cmd->opcode != OP_INIT2INIT || !ext || !opt || qp->type != SN_QPT_RC)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x505003,
				   "MMO permission not allowed in this command");
	qp->mmo = sn_cmd_qp_mmo(cmd);
	return SN_OK;
}
