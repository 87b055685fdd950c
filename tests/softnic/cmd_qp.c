/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The queue pair commands: creation from a context, query, and the state transitions,
 * with the fields that each requires and the changes that opt_param_mask may select.
 * engine.c acts on a new state; verbs queue pairs are in uverbs_qp.c.
 */
#include "front.h"
#include "prm_nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define W(off) ((off) / 4)
#define PATH_MASK(at) \
	[W(at) + 0] = 0xc000ffff, [W(at) + 1] = 0x00ffffff, [W(at) + 2] = 0xf8ff0fff, \
		 [W(at) + 3] = 0x0fffffff, [W(at) + 4] = 0xffffffff, [W(at) + 5] = 0xffffffff, \
		 [W(at) + 6] = 0xffffffff, [W(at) + 7] = 0xffffffff, [W(at) + 8] = 0x0dffffff, \
		 [W(at) + 9] = 0xffffffff, [W(at) + 10] = 0xffffffff
/* All defined bits of the context. q: offset of the context in the command. */
#define QPC_MASK(q) \
	[W(q + 0x00)] = 0xffff3bfc, [W(q + 0x04)] = 0xf4ffffff, [W(q + 0x08)] = 0xff7ffbff, \
	       [W(q + 0x0c)] = 0xffffffff, [W(q + 0x10)] = 0xc0ffffff, [W(q + 0x14)] = 0x1fffffff, \
	       PATH_MASK(q + 0x18), PATH_MASK(q + 0x44), [W(q + 0x70)] = 0xf0e7efe0, \
	       [W(q + 0x78)] = 0x00ffffff, [W(q + 0x7c)] = 0x1fffffff, [W(q + 0x80)] = 0x1fffffff, \
	       [W(q + 0x88)] = 0x00ffffff, [W(q + 0x8c)] = 0x00ffffff, [W(q + 0x90)] = 0x00efefc7, \
	       [W(q + 0x94)] = 0x1fffffff, [W(q + 0x98)] = 0x00ffffff, [W(q + 0x9c)] = 0x00ffffff, \
	       [W(q + 0xa0)] = 0xffffffff, [W(q + 0xa4)] = 0xffffffff, [W(q + 0xa8)] = 0xffffffff, \
	       [W(q + 0xac)] = 0x07ffffff, [W(q + 0xb0)] = 0x00ffffff, [W(q + 0xb4)] = 0xffffffff, \
	       [W(q + 0xb8)] = 0xffffffff, [W(q + 0xbc)] = 0xffffffff, [W(q + 0xc4)] = 0x0001ffff, \
	       [W(q + 0xc8)] = 0xffffffff, [W(q + 0xcc)] = 0xffffffff, [W(q + 0xd0)] = 0x10000000, \
	       [W(q + 0xe4)] = 0xffffffff

static const uint32_t create_mask[W(0x110)] = {
	[W(0x00)] = 0xffffffff,	 [W(0x04)] = 0x0000ffff,  [W(0x08)] = 1u << 31,
	[W(0x10)] = 0xffffffff,	 [W(0x14)] = 0xffffffff,  QPC_MASK(CMD_QPC),
	[W(0x100)] = 0xffffffff, [W(0x104)] = 0xffffffff, [W(0x108)] = 0xffffffff,
	[W(0x10c)] = 0x80000000,
};
static const uint32_t modify_mask[W(0x110)] = {
	[W(0x00)] = 0xffffffff,
	[W(0x04)] = 0x0000ffff,
	[W(0x08)] = 0x80ffffff,
	[W(0x10)] = 0xffffffff,
	[W(0x14)] = 0xffffffff,
	QPC_MASK(CMD_QPC),
	[W(0x10c)] = OPT_HI_UDP_SPORT | OPT_HI_MMO,
};
static const uint32_t short_mask[4] = { 0xffffffff, 0x0000ffff, 0x00ffffff, 0 };

enum { RQ_OWN = 0, RQ_RMP = 1, RQ_NONE = 3 };

/* ---- create ---- */
static uint8_t qp_queues(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *q = cmd->in + CMD_QPC;
	uint32_t rq_type = nic_get(q, QPC_RQ_TYPE), id = nic_get(cmd->in, CREATE_QP_UMEM_ID);
	struct sn_ring ring = { .umem = id,
				.offset = nic_get64(cmd->in, CREATE_QP_UMEM_OFFSET),
				.page_offset = nic_get(q, QPC_PAGE_OFFSET) };
	uint8_t st;

	if (rq_type != RQ_OWN && rq_type != RQ_RMP && rq_type != RQ_NONE)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500001,
				   "unsupported type of receive queue");
	if (rq_type == RQ_RMP) {
		qp->srq = sn_find_srq(cmd->dev, nic_get(q, QPC_RMPN));
		if (!qp->srq)
			return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x50000f, "no such RMP");
	}
	if (rq_type == RQ_OWN) {
		qp->rq_wqes = 1u << nic_get(q, QPC_LOG_RQ_SIZE);
		qp->rq_stride = 16u << nic_get(q, QPC_LOG_RQ_STRIDE);
	}
	if (!nic_get(q, QPC_NO_SQ))
		qp->sq_wqebbs = 1u << nic_get(q, QPC_LOG_SQ_SIZE);
	ring.len = (uint64_t)qp->rq_wqes * qp->rq_stride + (uint64_t)qp->sq_wqebbs * 64;
	if (qp->sq_wqebbs > SN_MAX_QP_SZ || !ring.len)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500002, "unsupported queue sizes");
	st = sn_cmd_ring(cmd, &ring, 0x500003, &qp->rq_buf);
	if (st)
		return st;
	qp->sq_buf = qp->rq_buf + (uint64_t)qp->rq_wqes * qp->rq_stride;
	qp->umems[0] = sn_find_umem(cmd->dev, id);
	return SN_OK;
}

static uint8_t qp_dbrec(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *q = cmd->in + CMD_QPC;
	uint32_t mode = nic_get(q, QPC_SEND_DBR_MODE), id = nic_get(q, QPC_DBR_UMEM_ID);
	const struct sn_cfg *cfg = &cmd->dev->cfg;

	if (mode > 1 || (mode == 1 && !cfg->no_dbr_cap))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500004, "unsupported send_dbr_mode");
	qp->no_dbr = mode == 1;
	if (qp->no_dbr && cfg->no_dbr_max && cmd->dev->front->no_dbr_qps >= cfg->no_dbr_max)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, SN_SYND_NO_QP,
				   "limit of QPs without DBREC reached");
	if (qp->no_dbr && !qp->rq_wqes && !id)
		return SN_OK;
	qp->dbr = sn_cmd_umem(cmd, id, nic_get64(q, QPC_DBR_ADDR), 8);
	if (!qp->dbr || qp->dbr & 7)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x500006,
				   "DBREC outside its umem or misaligned");
	qp->umems[1] = sn_find_umem(cmd->dev, id);
	return SN_OK;
}

static uint8_t qp_links(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *q = cmd->in + CMD_QPC;

	qp->pdn = nic_get(q, QPC_PD);
	qp->uar = nic_get(q, QPC_UAR_PAGE);
	qp->scq = sn_find_cq(cmd->dev, nic_get(q, QPC_CQN_SND));
	qp->rcq = sn_find_cq(cmd->dev, nic_get(q, QPC_CQN_RCV));
	if (!sn_find_pd(cmd->dev, qp->pdn))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x500007, "no such PD");
	if (!sn_find_uar(cmd->dev, qp->uar))
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x500008, "no such UAR");
	/* a queue pair without send queue, or without own receive queue, may lack that queue's
	 * CQ; use the CQ of the other queue */
	if (!qp->scq && !qp->sq_wqebbs)
		qp->scq = qp->rcq;
	if (!qp->rcq && !qp->rq_wqes && !nic_get(q, QPC_CQN_RCV))
		qp->rcq = qp->scq;
	if (!qp->scq || !qp->rcq)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, 0x500009, "no such CQ");
	return SN_OK;
}

/*
 * Whether a device with capability cap supports a QP's time stamp format: 0 free running,
 * 1 default, 2 real time (mlx5_ifc.h). The default is the device's format; UCX requests it on
 * every device.
 */
bool sn_ts_format_ok(uint8_t cap, uint32_t format)
{
	switch (format) {
	case 0:
		return cap != SN_TS_REAL;
	case 1:
		return true;
	case 2:
		return cap != SN_TS_FREE;
	}
	return false;
}

static uint8_t qp_features(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *q = cmd->in + CMD_QPC;
	const struct sn_cfg *cfg = &cmd->dev->cfg;

	qp->ts_format = (uint8_t)nic_get(q, QPC_TS_FORMAT);
	qp->cd_master = nic_get(q, QPC_CD_MASTER);
	if (!sn_ts_format_ok(cfg->ts_format, qp->ts_format))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500010,
				   "ts_format not supported by the device");
	qp->mmo = qp->mmo_created = sn_cmd_qp_mmo(cmd);
	if (qp->mmo && qp->type != SN_QPT_RC)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500018, "MMO permission for a UC QP");
	if (nic_get(q, QPC_CD) && !cfg->cd)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500011,
				   "core direct not supported by the device");
	return SN_OK;
}

static uint8_t qp_read(struct sn_cmd *cmd, struct sn_qp *qp)
{
	const uint8_t *q = cmd->in + CMD_QPC;
	uint32_t st = nic_get(q, QPC_ST);
	uint8_t rc;

	if (st != SN_QPT_RC && st != SN_QPT_UC)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x50000a, "unsupported service type");
	if (nic_get(q, QPC_STATE))
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x50000b, "initial state is not reset");
	qp->type = (enum sn_qp_type)st;
	qp->devx = true;
	qp->uidx = nic_get(q, QPC_USER_INDEX);
	qp->port = 1;
	rc = qp_features(cmd, qp);
	if (!rc)
		rc = qp_queues(cmd, qp);
	if (!rc)
		rc = qp_dbrec(cmd, qp);
	if (!rc)
		rc = qp_links(cmd, qp);
	if (!rc)
		rc = sn_cmd_qp_inline(cmd, qp);
	return rc;
}

uint8_t sn_cmd_create_qp(struct sn_cmd *cmd)
{
	uint8_t st = sn_cmd_qp_reserved(cmd, create_mask);
	struct sn_qp *qp;

	if (st)
		return st;
	if (cmd->out_len < 0x10)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x50000c, "output too short");
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return sn_cmd_fail(cmd, SN_ST_NO_RES, 0x50000d, "out of memory");
	st = qp_read(cmd, qp);
	if (!st && sn_qp_add(cmd->dev, cmd->ctx, qp))
		st = sn_cmd_fail(cmd, SN_ST_BAD_RES, SN_SYND_NO_QP, "no QP left");
	if (st) {
		free(qp);
		return st;
	}
	cmd->kind = SN_QP;
	cmd->obj = qp;
	nic_set(cmd->out, OUT_OBJ, qp->qpn);
	qp->ece = sn_ece_created(nic_get(cmd->in, CMD_ECE));
	nic_set(cmd->out, OUT_ECE, qp->ece);
	return SN_OK;
}

/* ---- transitions ---- */
static void read_access(struct sn_qp *qp, const uint8_t *q, uint32_t which)
{
	if (which & OPT_RRE)
		qp->remote_read = nic_get(q, QPC_RRE);
	if (which & OPT_RWE)
		qp->remote_write = nic_get(q, QPC_RWE);
	if (which & OPT_RAE) {
		qp->atomic_mode = (uint8_t)nic_get(q, QPC_ATOMIC_MODE);
		qp->remote_atomic = nic_get(q, QPC_RAE) && qp->atomic_mode;
	}
}

static uint8_t read_lag_port(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *q)
{
	uint8_t ports = cmd->dev->cfg.lag_ports ? cmd->dev->cfg.lag_ports : 1;

	qp->lag_port = (uint8_t)nic_get(q, QPC_LAG_PORT);
	if (qp->lag_port > ports)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x502002,
				   "lag_tx_port_affinity exceeds the number of ports");
	return SN_OK;
}

static uint8_t read_optional(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *q, uint32_t opt)
{
	const uint8_t *path = q + QPC_PATH;
	uint8_t st = opt & OPT_LAG ? read_lag_port(cmd, qp, q) : SN_OK;

	if (st)
		return st;
	read_access(qp, q, opt);
	if (opt & OPT_PKEY)
		qp->pkey_index = (uint16_t)nic_get(path, ADS_PKEY_INDEX);
	if (opt & OPT_PORT)
		qp->port = (uint8_t)nic_get(path, ADS_PORT);
	if (opt & OPT_RNR_TIMEOUT)
		qp->min_rnr_timer = (uint8_t)nic_get(q, QPC_MIN_RNR_NAK);
	if (qp->pkey_index || qp->port != 1)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x502001, "no such port or P_Key index");
	return SN_OK;
}

static uint8_t to_init(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *q, uint32_t opt)
{
	(void)opt;
	return read_optional(cmd, qp, q, OPT_ACCESS | OPT_PKEY | OPT_PORT | OPT_LAG);
}

/*
 * Counts a wrong destination MAC as a violation and refuses it: a real wire would lose every
 * packet. An all-zero MAC is counted but accepted if the peer has a loopback address: programs
 * read this MAC from the loopback interface.
 */
static uint8_t check_mac(struct sn_cmd *cmd, const struct sn_qp *qp)
{
	static const uint8_t zero[6];
	uint8_t want[6];

	sn_mac_of_ip(&qp->way.ip, want);
	if (!memcmp(qp->dmac, want, 6))
		return SN_OK;
	sn_violation(&cmd->dev->stats.bad_command, "QP %#x: destination MAC does not match the GID",
		     qp->qpn);
	if (!memcmp(qp->dmac, zero, 6) && sn_addr_is_local(&qp->way.ip))
		return SN_OK;
	return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x503002, "wrong destination MAC");
}

/*
 * RoCE v2 packets carry DSCP and ECN of the path, other packets its traffic class. For RoCE v2
 * the kernel, UCX, NVSHMEM and GPUNetIO set the DSCP; NVSHMEM and GPUNetIO set neither ECN nor
 * the traffic class.
 */
static void read_tclass(const struct sn_cfg *cfg, struct sn_qp *qp, const uint8_t *path)
{
	struct sn_gid gid = { .v2 = false };

	qp->tclass = (uint8_t)nic_get(path, ADS_TCLASS);
	qp->way.tclass = qp->tclass;
	sn_gid_at(cfg, qp->dest.sgid_index, &gid);
	if (gid.v2 && !cfg->infiniband)
		qp->way.tclass = (uint8_t)(nic_get(path, ADS_DSCP) << 2 | nic_get(path, ADS_ECN));
}

static uint8_t read_path(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *path)
{
	const struct sn_cfg *cfg = &cmd->dev->cfg;
	int rc;

	qp->dest.sgid_index = (uint8_t)nic_get(path, ADS_SRC_ADDR_INDEX);
	qp->dest.dlid = (uint16_t)nic_get(path, ADS_RLID);
	/* Ethernet always has a GRH; the bit is for InfiniBand */
	qp->dest.grh = !cfg->infiniband || nic_get(path, ADS_GRH);
	qp->way.hop_limit = (uint8_t)nic_get(path, ADS_HOP_LIMIT);
	read_tclass(cfg, qp, path);
	qp->stat_rate = (uint8_t)nic_get(path, ADS_STAT_RATE);
	qp->sl = (uint8_t)nic_get(path, cfg->infiniband ? ADS_SL : ADS_ETH_PRIO);
	qp->way.sport = (uint16_t)nic_get(path, ADS_UDP_SPORT);
	qp->way.tci = sn_vlan_tci(cfg, qp->dest.sgid_index, qp->sl);
	memcpy(qp->dest.dgid, path + ADS_RGID, 16);
	memcpy(qp->dmac, path + 0x26, 6);
	rc = sn_dest_find(cfg, &qp->dest, &qp->way.ip);
	if (rc == -EINVAL)
		return sn_cmd_fail(cmd, SN_ST_INDEX, 0x503001, "invalid source GID, LID or GRH");
	if (rc)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x503006, "remote port unreachable");
	return cfg->infiniband ? SN_OK : check_mac(cmd, qp);
}

static uint8_t to_rtr(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *q, uint32_t opt)
{
	uint32_t mtu = nic_get(q, QPC_MTU), msg = nic_get(q, QPC_LOG_MSG_MAX);
	uint8_t st = read_optional(cmd, qp, q, opt & (OPT_ACCESS | OPT_PKEY | OPT_LAG));

	if (st)
		return st;
	if (mtu < 1 || mtu > 5 || (128u << mtu) > cmd->dev->cfg.mtu)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x503003, "unsupported path MTU");
	if (msg < 1 || msg > 30)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x503004, "unsupported log_msg_max");
	qp->path_mtu = (uint8_t)mtu;
	qp->dest_qpn = nic_get(q, QPC_REMOTE_QPN);
	qp->rq_psn = nic_get(q, QPC_NEXT_RCV_PSN);
	qp->min_rnr_timer = (uint8_t)nic_get(q, QPC_MIN_RNR_NAK);
	qp->max_dest_rd_atomic = (uint8_t)(1u << nic_get(q, QPC_LOG_RRA_MAX));
	if (qp->max_dest_rd_atomic > 16)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x503005, "unsupported log_rra_max");
	return read_path(cmd, qp, q + QPC_PATH);
}

static uint8_t to_rts(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *q, uint32_t opt)
{
	qp->sq_psn = nic_get(q, QPC_NEXT_SEND_PSN);
	qp->log_ack_req_freq = (uint8_t)nic_get(q, QPC_LOG_ACK_REQ_FREQ);
	qp->retry_cnt = (uint8_t)nic_get(q, QPC_RETRY_COUNT);
	qp->rnr_retry = (uint8_t)nic_get(q, QPC_RNR_RETRY);
	qp->ack_timeout = (uint8_t)nic_get(q + QPC_PATH, ADS_ACK_TIMEOUT);
	qp->max_rd_atomic = (uint8_t)(1u << nic_get(q, QPC_LOG_SRA_MAX));
	if (qp->max_rd_atomic > 16)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x504001, "unsupported log_sra_max");
	return read_optional(cmd, qp, q, opt & (OPT_ACCESS | OPT_RNR_TIMEOUT));
}

static uint8_t read_udp_sport(struct sn_cmd *cmd, struct sn_qp *qp)
{
	if (!(nic_get(cmd->in, MODIFY_QP_OPT_MASK_HI) & OPT_HI_UDP_SPORT))
		return SN_OK;
	if (cmd->opcode != OP_RTS2RTS)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x505001,
				   "opt_param_mask not allowed in this transition");
	qp->way.sport = (uint16_t)nic_get(cmd->in + CMD_QPC + QPC_PATH, ADS_UDP_SPORT);
	return SN_OK;
}

/* Changes a connection in RTS: DSCP, source GID, and the attributes of read_optional(). */
static uint8_t rts_to_rts(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *q, uint32_t opt)
{
	const struct sn_cfg *cfg = &cmd->dev->cfg;
	const uint8_t *path = q + QPC_PATH;

	if (opt & OPT_DSCP && cfg->infiniband)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x505005, "DSCP on InfiniBand");
	if (opt & OPT_DSCP)
		qp->way.tclass = (uint8_t)(nic_get(path, ADS_DSCP) << 2 | (qp->way.tclass & 3));
	if (opt & OPT_SGID) {
		qp->dest.sgid_index = (uint8_t)nic_get(path, ADS_SRC_ADDR_INDEX);
		qp->way.tci = sn_vlan_tci(cfg, qp->dest.sgid_index, qp->sl);
		if (sn_dest_find(cfg, &qp->dest, &qp->way.ip))
			return sn_cmd_fail(cmd, SN_ST_INDEX, 0x505002, "invalid source GID");
	}
	return read_optional(cmd, qp, q, opt & ~(OPT_DSCP | OPT_SGID));
}

#define FROM(s)	 (1u << SN_QPS_##s)
#define FROM_ANY 0x7fu

static const struct transition {
	uint16_t opcode;
	uint32_t from;
	enum sn_qp_state to;
	uint32_t opt; /* bits of opt_param_mask that this transition accepts */
	uint8_t (*read)(struct sn_cmd *cmd, struct sn_qp *qp, const uint8_t *q, uint32_t opt);
} transitions[] = {
	{ OP_RST2INIT, FROM(RST), SN_QPS_INIT, OPT_ACCESS | OPT_PKEY | OPT_PORT, to_init },
	{ OP_INIT2INIT, FROM(INIT), SN_QPS_INIT, OPT_ACCESS | OPT_PKEY | OPT_PORT | OPT_LAG,
	  read_optional },
	{ OP_INIT2RTR, FROM(INIT), SN_QPS_RTR, OPT_ACCESS | OPT_PKEY | OPT_LAG, to_rtr },
	{ OP_RTR2RTS, FROM(RTR), SN_QPS_RTS, OPT_ACCESS | OPT_RNR_TIMEOUT | OPT_PM_STATE, to_rts },
	{ OP_RTS2RTS, FROM(RTS), SN_QPS_RTS,
	  OPT_ACCESS | OPT_RNR_TIMEOUT | OPT_PM_STATE | OPT_LAG | OPT_DSCP | OPT_SGID, rts_to_rts },
	{ OP_SQERR2RTS, FROM(SQER), SN_QPS_RTS, OPT_ACCESS | OPT_RNR_TIMEOUT, read_optional },
	{ OP_2ERR, FROM_ANY, SN_QPS_ERR, 0, NULL },
	{ OP_2RST, FROM_ANY, SN_QPS_RST, 0, NULL },
};

static const struct transition *find_transition(uint16_t opcode)
{
	const struct transition *t = transitions;

	while (t->opcode != opcode)
		t++;
	return t;
}

/*
 * One bit of opt_param_mask (OPT_LAG) changes the QP's port of the bond. It requires the
 * capability init2_lag_tx_port_affinity in INIT2INIT and INIT2RTR, and
 * rts2rts_lag_tx_port_affinity in RTS2RTS. If the device has the first one, UCX always sets
 * port 1, which firmware ignores without a bond (Linux commit 617f5db1a626).
 */
static bool lag_bit_ok(const struct sn_cfg *cfg, uint16_t opcode)
{
	return opcode == OP_RTS2RTS ? cfg->lag_ports > 0 : cfg->lag_init2;
}

/* Takes the peer's ECE options and returns the common ones. All transitions with a context have
 * this field, except SQERR2RTS (mlx5_ifc.h). */
static uint8_t read_ece(struct sn_cmd *cmd, struct sn_qp *qp)
{
	uint32_t options = nic_get(cmd->in, CMD_ECE);

	if (!options)
		return SN_OK;
	if (cmd->opcode == OP_SQERR2RTS)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x505006,
				   "ECE options not allowed in this transition");
	qp->ece = options & SN_ECE_OPTIONS;
	if (cmd->out_len >= 0x10)
		nic_set(cmd->out, OUT_ECE, qp->ece);
	return SN_OK;
}

uint8_t sn_cmd_modify_qp(struct sn_cmd *cmd)
{
	const struct transition *t = find_transition(cmd->opcode);
	struct sn_qp *qp = cmd->obj, next = *qp;
	enum sn_qp_state from = qp->state;
	uint32_t opt = 0;
	uint8_t st;

	st = t->read ? sn_cmd_qp_reserved(cmd, modify_mask) : sn_cmd_reserved(cmd, short_mask, 4);
	if (st)
		return st;
	if (!(t->from >> from & 1))
		return sn_cmd_fail(cmd, SN_ST_BAD_QP_STATE, 0x500100 | from,
				   "transition not allowed from this state");
	if (t->read) {
		opt = nic_get(cmd->in, CMD_OPT_MASK);
		if (opt & ~t->opt || (opt & OPT_LAG && !lag_bit_ok(&cmd->dev->cfg, cmd->opcode)))
			return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x500110,
					   "opt_param_mask not allowed in this transition");
		st = t->read(cmd, &next, cmd->in + CMD_QPC, opt);
		if (!st)
			st = read_udp_sport(cmd, &next);
		if (!st)
			st = sn_cmd_init2init_mmo(cmd, &next);
		if (!st)
			st = read_ece(cmd, &next);
		if (st)
			return st;
	}
	*qp = next;
	qp->state = t->to;
	sn_eng_qp_state(cmd->dev, qp, from);
	return SN_OK;
}

/* ---- query ---- */
static uint32_t log2_of(uint32_t n)
{
	uint32_t l = 0;

	while ((2u << l) <= n)
		l++;
	return l;
}

static void query_path(uint8_t *path, const struct sn_qp *qp, bool infiniband)
{
	nic_set(path, ADS_PKEY_INDEX, qp->pkey_index);
	nic_set(path, ADS_GRH, infiniband && qp->dest.grh);
	nic_set(path, ADS_RLID, qp->dest.dlid);
	nic_set(path, ADS_ACK_TIMEOUT, qp->ack_timeout);
	nic_set(path, ADS_SRC_ADDR_INDEX, qp->dest.sgid_index);
	nic_set(path, ADS_HOP_LIMIT, qp->way.hop_limit);
	nic_set(path, ADS_TCLASS, qp->tclass);
	nic_set(path, ADS_DSCP, infiniband ? 0 : qp->way.tclass >> 2);
	nic_set(path, ADS_UDP_SPORT, qp->way.sport);
	nic_set(path, ADS_STAT_RATE, qp->stat_rate);
	nic_set(path, infiniband ? ADS_SL : ADS_ETH_PRIO, qp->sl);
	nic_set(path, ADS_PORT, qp->port);
	memcpy(path + ADS_RGID, qp->dest.dgid, 16);
	memcpy(path + 0x26, qp->dmac, 6);
}

static void query_queues(uint8_t *q, const struct sn_qp *qp)
{
	nic_set(q, QPC_ST, qp->type);
	nic_set(q, QPC_PD, qp->pdn);
	nic_set(q, QPC_NO_SQ, !qp->sq_wqebbs);
	nic_set(q, QPC_LOG_SQ_SIZE, log2_of(qp->sq_wqebbs));
	nic_set(q, QPC_RQ_TYPE, qp->srq ? RQ_RMP : qp->rq_wqes ? RQ_OWN : RQ_NONE);
	nic_set(q, QPC_RMPN, qp->srq ? qp->srq->srqn : 0);
	nic_set(q, QPC_LOG_RQ_SIZE, log2_of(qp->rq_wqes));
	nic_set(q, QPC_LOG_RQ_STRIDE, log2_of(qp->rq_stride / 16));
	nic_set(q, QPC_UAR_PAGE, qp->uar);
	nic_set(q, QPC_USER_INDEX, qp->uidx);
	nic_set(q, QPC_SEND_DBR_MODE, qp->no_dbr);
	nic_set(q, QPC_CQN_SND, qp->scq->cqn);
	nic_set(q, QPC_CQN_RCV, qp->rcq->cqn);
	nic_set(q, QPC_CD_MASTER, qp->cd_master);
	nic_set(q, QPC_TS_FORMAT, qp->ts_format);
	sn_cmd_query_inline(q, qp);
}

uint8_t sn_cmd_query_qp(struct sn_cmd *cmd)
{
	struct sn_qp *qp = cmd->obj;
	uint8_t *q = cmd->out + CMD_QPC, st = sn_cmd_reserved(cmd, short_mask, 4);
	uint32_t sq_psn, rq_psn;
	uint16_t ci;

	if (st)
		return st;
	if (cmd->out_len < CMD_QPC + 0xe8)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x50b001, "output too short");
	sn_eng_qp_query(qp, &sq_psn, &rq_psn, &ci);
	query_queues(q, qp);
	query_path(q + QPC_PATH, qp, cmd->dev->cfg.infiniband);
	nic_set(cmd->out, CMD_ECE, qp->ece);
	nic_set(q, QPC_STATE, qp->state);
	nic_set(q, QPC_LAG_PORT, qp->lag_port);
	nic_set(q, QPC_PM_STATE, 3);
	/* never 0: NVIDIA's library queries the MTU before it sets one */
	nic_set(q, QPC_MTU, qp->path_mtu ? qp->path_mtu : 1);
	nic_set(q, QPC_LOG_MSG_MAX, 30);
	nic_set(q, QPC_REMOTE_QPN, qp->dest_qpn);
	nic_set(q, QPC_LOG_SRA_MAX, log2_of(qp->max_rd_atomic));
	nic_set(q, QPC_LOG_RRA_MAX, log2_of(qp->max_dest_rd_atomic));
	nic_set(q, QPC_LOG_ACK_REQ_FREQ, qp->log_ack_req_freq);
	nic_set(q, QPC_RETRY_COUNT, qp->retry_cnt);
	nic_set(q, QPC_RNR_RETRY, qp->rnr_retry);
	nic_set(q, QPC_MIN_RNR_NAK, qp->min_rnr_timer);
	nic_set(q, QPC_RRE, qp->remote_read);
	nic_set(q, QPC_RWE, qp->remote_write);
	nic_set(q, QPC_RAE, qp->remote_atomic);
	nic_set(q, QPC_ATOMIC_MODE, qp->atomic_mode);
	nic_set(q, QPC_NEXT_SEND_PSN, sq_psn);
	nic_set(q, QPC_NEXT_RCV_PSN, rq_psn);
	nic_set(q, QPC_HW_SQ_COUNTER, ci);
	return SN_OK;
}
