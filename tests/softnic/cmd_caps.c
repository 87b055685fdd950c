/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Capability queries, QUERY_LAG and the RoCE address table. By default the device
 * resembles an Ethernet port of a ConnectX-7. Only capabilities that the NIC
 * implements are reported; cfg.c and models.c decide about the optional ones.
 */
#include "front.h"
#include "prm_nic.h"

#define CAP_OUT 0x10 /* offset of the capability in query_hca_cap_out */

enum {
	CAP_GENERAL = 0,
	CAP_ATOMIC = 3,
	CAP_ROCE = 4,
	CAP_DEV_EVENT = 0x14,
	CAP_GENERAL_2 = 0x20,
};

struct cap_value {
	uint32_t field, value;
};

static const struct cap_value general[] = {
	{ NIC_F(0x04, 31, 31), 1 },		/* hca_cap_2 */
	{ NIC_F(0x10, 23, 16), 15 },		/* log_max_qp_sz */
	{ NIC_F(0x10, 4, 0), 16 },		/* log_max_qp */
	{ NIC_F(0x14, 28, 28), 1 },		/* ece_support */
	{ NIC_F(0x18, 23, 16), SN_MAX_CQ_LOG }, /* log_max_cq_sz */
	{ NIC_F(0x18, 4, 0), 16 },		/* log_max_cq */
	{ NIC_F(0x1c, 31, 24), 22 },		/* log_max_eq_sz */
	/* relaxed_ordering_write; this NIC writes in order */
	{ NIC_F(0x1c, 23, 23), 1 },
	{ NIC_F(0x1c, 22, 22), 1 },	       /* relaxed_ordering_read_pci_enabled */
	{ NIC_F(0x1c, 21, 16), 16 },	       /* log_max_mkey */
	{ NIC_F(0x1c, 3, 0), 5 },	       /* log_max_eq */
	{ NIC_F(0x20, 31, 24), 1 },	       /* max_indirection */
	{ NIC_F(0x20, 23, 23), 1 },	       /* fixed_buffer_size: keys with access mode KSM */
	{ NIC_F(0x20, 22, 16), 64 },	       /* log_max_mrw_sz */
	{ NIC_F(0x20, 5, 0), SN_MAX_KSM_LOG }, /* log_max_klm_list_size */
	{ NIC_F(0x28, 21, 16), 4 },	       /* log_max_ra_req_qp */
	{ NIC_F(0x28, 14, 14), 1 },	       /* rts2rts_qp_udp_sport */
	{ NIC_F(0x28, 5, 0), 4 },	       /* log_max_ra_res_qp */
	{ NIC_F(0x2c, 15, 0), 0 },	       /* gid_table_size: 8 entries */
	{ NIC_F(0x34, 20, 16), 16 },	       /* local_ca_ack_delay */
	{ NIC_F(0x34, 9, 8), 1 },	       /* port_type: Ethernet */
	{ NIC_F(0x2c, 21, 21), 1 },	       /* rts2rts_qp_dscp */
	{ NIC_F(0x34, 7, 0), 1 },	       /* num_ports */
	{ NIC_F(0x38, 28, 24), 30 },	       /* log_max_msg */
	{ NIC_F(0x3c, 3, 0), 1 },	       /* cqe_version */
	{ NIC_F(0x40, 2, 2), 1 },	       /* roce */
	{ NIC_F(0x40, 1, 1), 1 },	       /* atomic */
	{ NIC_F(0x44, 31, 31), 1 },	       /* cq_oi */
	{ NIC_F(0x44, 30, 30), 1 },	       /* cq_resize */
	{ NIC_F(0x44, 29, 29), 1 },	       /* cq_moderation */
	{ NIC_F(0x44, 2, 2), 1 },	       /* ud */
	{ NIC_F(0x44, 1, 1), 1 },	       /* uc */
	{ NIC_F(0x44, 0, 0), 1 },	       /* rc */
	{ NIC_F(0x48, 31, 31), 1 },	       /* uar_4k */
	{ NIC_F(0x4c, 20, 16), 9 },	       /* log_bf_reg_size */
	{ NIC_F(0x50, 15, 0), 1024 },	       /* max_wqe_sz_sq */
	{ NIC_F(0x54, 15, 0), 512 },	       /* max_wqe_sz_rq */
	{ NIC_F(0x64, 21, 21), 1 },	       /* relaxed_ordering_read */
	{ NIC_F(0x64, 20, 16), 16 },	       /* log_max_pd */
	{ NIC_F(0x70, 31, 31), 1 },	       /* basic_cyclic_rcv_wqe */
	{ NIC_F(0x70, 28, 24), 16 },	       /* log_max_rmp */
	{ NIC_F(0x8c, 20, 16), 16 },	       /* log_max_umem */
	{ NIC_F(0xa4, 31, 0), 1 },	       /* num_of_uars_per_page */
};

static const struct cap_value general_ib[] = {
	{ NIC_F(0x2c, 21, 21), 0 }, /* rts2rts_qp_dscp */
	{ NIC_F(0x34, 9, 8), 0 },   /* port_type: InfiniBand */
	{ NIC_F(0x40, 2, 2), 0 },   /* roce */
};

static const struct cap_value general_lag[] = {
	{ NIC_F(0x28, 13, 13), 1 }, /* rts2rts_lag_tx_port_affinity */
	{ NIC_F(0x4c, 7, 7), 1 },   /* lag_tx_port_affinity */
};

static const struct cap_value roce[] = {
	{ NIC_F(0x10, 19, 16), 3 }, /* l3_type: IPv4 and IPv6 */
	{ NIC_F(0x10, 7, 0), 5 },   /* roce_version: 1 and 2 */
	{ NIC_F(0x14, 15, 0), 4791 },
	{ NIC_F(0x18, 31, 16), 0xffff }, /* UDP source ports */
	{ NIC_F(0x18, 15, 0), 0xc000 },
	{ NIC_F(0x1c, 15, 0), SN_GIDS }, /* roce_address_table_size */
};

static const struct cap_value atomic[] = {
	{ NIC_F(0x08, 31, 30), 1 }, /* 8-byte results are in the CPU's byte order */
	/* operations: compare and swap, fetch and add, and both masked */
	{ NIC_F(0x10, 15, 0), 0xf },
	{ NIC_F(0x14, 15, 0), 8 | 4 }, /* size_qp: operand sizes in bytes */
};

static const struct cap_value general_2[] = {
	{ NIC_F(0x5c, 30, 30), 1 }, /* send_dbr_mode_no_dbr_ext */
};

static void cap_fill(uint8_t *cap, const struct cap_value *v, size_t n)
{
	while (n--) {
		nic_set(cap, v->field, v->value);
		v++;
	}
}

#define CAP_FILL(cap, table) cap_fill(cap, table, sizeof(table) / sizeof((table)[0]))

static void fill_general(const struct sn_cfg *cfg, uint8_t *cap)
{
	CAP_FILL(cap, general);
	if (cfg->infiniband)
		CAP_FILL(cap, general_ib);
	if (cfg->lag_ports)
		CAP_FILL(cap, general_lag);
	nic_set(cap, NIC_F(0x10, 15, 15), cfg->event_cap);
	nic_set(cap, NIC_F(0x34, 31, 31), !cfg->vf);	 /* vport_group_manager */
	nic_set(cap, NIC_F(0x3c, 7, 7), cfg->lag_init2); /* init2_lag_tx_port_affinity */
	nic_set(cap, NIC_F(0x44, 19, 19), cfg->cd);
	nic_set(cap, NIC_F(0x4c, 4, 4), cfg->lag_ports && !cfg->vf); /* lag_master */
	nic_set(cap, NIC_F(0x4c, 3, 0), cfg->lag_ports);	     /* num_lag_ports */
	nic_set(cap, NIC_F(0x88, 31, 30), cfg->ts_format);	     /* sq_ts_format */
	nic_set(cap, NIC_F(0x88, 29, 28), cfg->ts_format);	     /* rq_ts_format */
}

uint8_t sn_cmd_query_hca_cap(struct sn_cmd *cmd)
{
	static const uint32_t mask[] = { 0xffffffff, 0x0000ffff, 0, 0 };
	const struct sn_cfg *cfg = &cmd->dev->cfg;
	uint8_t *cap = cmd->out + CAP_OUT;
	uint8_t st = sn_cmd_reserved(cmd, mask, 4);

	if (st)
		return st;
	if (cmd->out_len < CAP_OUT + 0x100)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x100001,
				   "capability output too short");
	/* Bit 0 selects current or maximum values; both are the same. */
	switch (nic_get(cmd->in, IN_OP_MOD) >> 1) {
	case CAP_GENERAL:
		fill_general(cfg, cap);
		break;
	case CAP_ATOMIC:
		CAP_FILL(cap, atomic);
		break;
	case CAP_ROCE:
		if (cfg->infiniband)
			return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x100003, "RoCE on InfiniBand");
		CAP_FILL(cap, roce);
		nic_set(cap, NIC_F(0x00, 1, 0), cfg->ts_format); /* qp_ts_format */
		break;
	case CAP_DEV_EVENT: /* user_affiliated_events, types 0 to 63; no unaffiliated events */
		if (!cfg->event_cap)
			return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x100004, "no event_cap");
		nic_set64(cap, 0x00, cfg->events);
		break;
	case CAP_GENERAL_2:
		if (cfg->no_dbr_cap)
			CAP_FILL(cap, general_2);
		break;
	default:
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x100002, "no such capability type");
	}
	return SN_OK;
}

/*
 * Returns the LAG context, all zeros for a port without an active bond. If cfg.query_lag is
 * false, refuses the command, as the firmware does on some virtual functions and subfunctions.
 * The firmware's status of that refusal is unknown.
 */
uint8_t sn_cmd_query_lag(struct sn_cmd *cmd)
{
	static const uint32_t mask[] = { 0xffffffff, 0x0000ffff, 0, 0 };
	uint8_t *lagc = cmd->out + 0x08, st = sn_cmd_reserved(cmd, mask, 4);

	if (st)
		return st;
	if (cmd->out_len < 0x10)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x842001, "output too short");
	if (!cmd->dev->cfg.query_lag)
		return sn_cmd_fail(cmd, SN_ST_BAD_OP, 0x842002, "not supported by this function");
	if (!cmd->dev->cfg.lag_ports || cmd->dev->cfg.lag_inactive)
		return SN_OK;
	nic_set(lagc, NIC_F(0x00, 10, 8), cmd->dev->cfg.lag_hash); /* port_select_mode */
	nic_set(lagc, NIC_F(0x00, 2, 0), 1);			   /* lag_state: active */
	nic_set(lagc, NIC_F(0x04, 11, 8), 2);			   /* tx_remap_affinity_2 */
	nic_set(lagc, NIC_F(0x04, 3, 0), 1);			   /* tx_remap_affinity_1 */
	return SN_OK;
}

/* Returns an entry of the RoCE address table: address, MAC, VLAN, version (0: RoCE v1, 2: RoCE
 * v2) and layer 3 type (0: IPv4, 1: IPv6). */
uint8_t sn_cmd_query_roce_address(struct sn_cmd *cmd)
{
	static const uint32_t mask[] = { 0xffffffff, 0x0000ffff, 0xffff000f, 0 };
	uint8_t *entry = cmd->out + 0x10, m[6], st = sn_cmd_reserved(cmd, mask, 4);
	struct sn_gid gid;
	uint32_t index;

	if (st)
		return st;
	index = nic_get(cmd->in, NIC_F(0x08, 31, 16));
	if (cmd->out_len < 0x30)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x760001, "output too short");
	if (index >= SN_GIDS || cmd->dev->cfg.infiniband)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x760002, "no such RoCE address");
	if (!sn_gid_at(&cmd->dev->cfg, index, &gid))
		return SN_OK; /* an empty entry reads as zeros */
	memcpy(entry, gid.raw, 16);
	nic_set(entry, NIC_F(0x10, 28, 28), sn_vlan_tci(&cmd->dev->cfg, index, 0) != 0);
	nic_set(entry, NIC_F(0x10, 27, 16), sn_vlan_tci(&cmd->dev->cfg, index, 0));
	sn_mac_of_ip(&cmd->dev->cfg.ip, m);
	nic_set(entry, NIC_F(0x10, 15, 0), (uint32_t)m[0] << 8 | m[1]);
	nic_set(entry, NIC_F(0x14, 31, 0),
		(uint32_t)m[2] << 24 | (uint32_t)m[3] << 16 | (uint32_t)m[4] << 8 | m[5]);
	nic_set(entry, NIC_F(0x18, 11, 8), !IN6_IS_ADDR_V4MAPPED((struct in6_addr *)gid.raw));
	nic_set(entry, NIC_F(0x18, 7, 0), gid.v2 ? 2 : 0);
	return SN_OK;
}
