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
	CAP_ETHERNET = 1,
	CAP_ATOMIC = 3,
	CAP_ROCE = 4,
	CAP_FLOW_TABLE = 7,
	CAP_QOS = 0xc,
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
	{ NIC_F(0x40, 10, 10), 1 },	       /* sctr_data_cqe */
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

/* Raw Ethernet, which an InfiniBand port lacks. */
static const struct cap_value general_ethernet[] = {
	{ NIC_F(0x2c, 31, 31), 1 },   /* end_pad */
	{ NIC_F(0x30, 27, 27), 1 },   /* modify_rq_counter_set_id */
	{ NIC_F(0x30, 25, 16), 255 }, /* max_qp_cnt: sets of queue counters */
	{ NIC_F(0x34, 25, 25), 1 },   /* nic_flow_table */
	{ NIC_F(0x40, 4, 4), 1 },     /* qos: the table of its capabilities exists */
	{ NIC_F(0x40, 3, 3), 1 },     /* eth_net_offloads */
	/* flow_counter_bulk_alloc: 128, 256, ... 16384 counters */
	{ NIC_F(0x60, 15, 8), 0xff },
	{ NIC_F(0x64, 28, 24), 16 },	/* log_max_transport_domain */
	{ NIC_F(0x68, 15, 0), 0xffff }, /* max_flow_counter_15_0 */
	{ NIC_F(0x6c, 31, 31), 1 },	/* modify_tis (DPDK mlx5_prm.h) */
	{ NIC_F(0x6c, 30, 30), 1 },	/* flow_counters_dump (DPDK mlx5_prm.h) */
	{ NIC_F(0x6c, 28, 24), 16 },	/* log_max_rq */
	{ NIC_F(0x6c, 20, 16), 16 },	/* log_max_sq */
	{ NIC_F(0x6c, 12, 8), 16 },	/* log_max_tir */
	{ NIC_F(0x6c, 4, 0), 16 },	/* log_max_tis */
	{ NIC_F(0x70, 29, 29), 1 },	/* mem_rq_rmp (DPDK mlx5_prm.h) */
	{ NIC_F(0x70, 20, 16), 16 },	/* log_max_rqt */
	{ NIC_F(0x70, 12, 8), 9 },	/* log_max_rqt_size: SN_RQT_MAX */
	{ NIC_F(0x74, 28, 24), 9 },	/* log_max_stride_sz_rq */
	{ NIC_F(0x74, 20, 16), 4 },	/* log_min_stride_sz_rq */
	{ NIC_F(0x74, 12, 8), 6 },	/* log_max_stride_sz_sq */
	{ NIC_F(0x74, 4, 0), 6 },	/* log_min_stride_sz_sq */
	{ NIC_F(0x78, 4, 0), 15 },	/* log_max_wq_sz */
};

/* per_protocol_networking_offload_caps */
static const struct cap_value ethernet[] = {
	{ NIC_F(0x00, 31, 31), 1 },  /* csum_cap */
	{ NIC_F(0x00, 30, 30), 1 },  /* vlan_cap */
	{ NIC_F(0x00, 24, 24), 1 },  /* wqe_vlan_insert */
	{ NIC_F(0x00, 23, 23), 1 },  /* self_lb_en_modifiable */
	{ NIC_F(0x00, 22, 22), 1 },  /* self_lb_mc (DPDK mlx5_prm.h) */
	{ NIC_F(0x00, 21, 21), 1 },  /* self_lb_uc (DPDK mlx5_prm.h) */
	{ NIC_F(0x00, 20, 16), 18 }, /* max_lso_cap */
	{ NIC_F(0x00, 13, 12), 2 },  /* wqe_inline_mode: not required */
	{ NIC_F(0x00, 11, 8), 9 },   /* rss_ind_tbl_cap */
	{ NIC_F(0x00, 6, 6), 1 },    /* scatter_fcs */
	{ NIC_F(0x00, 5, 5), 1 },    /* enhanced_multi_pkt_send_wqe */
};

#define FT_RECEIVE  0x40u /* flow_table_properties_nic_receive in flow_table_nic_cap */
#define FT_TRANSMIT 0x100u
#define FT_FIELDS   0x20u /* ft_field_support in flow_table_prop_layout */
#define FT_MASKS    0x30u /* ft_field_bitmask_support */
/* Match fields of outer headers that eth_parse.c fills: flow_table_fields_supported */
static const struct cap_value match_fields[] = {
	{ NIC_F(0x00, 31, 31), 1 }, /* outer_dmac */
	{ NIC_F(0x00, 30, 30), 1 }, /* outer_smac */
	{ NIC_F(0x00, 29, 29), 1 }, /* outer_ether_type */
	{ NIC_F(0x00, 28, 28), 1 }, /* outer_ip_version */
	{ NIC_F(0x00, 27, 27), 1 }, /* outer_first_prio */
	{ NIC_F(0x00, 26, 26), 1 }, /* outer_first_cfi */
	{ NIC_F(0x00, 25, 25), 1 }, /* outer_first_vid */
	{ NIC_F(0x00, 24, 24), 1 }, /* outer_ipv4_ttl */
	{ NIC_F(0x00, 19, 19), 1 }, /* outer_sip */
	{ NIC_F(0x00, 18, 18), 1 }, /* outer_dip */
	{ NIC_F(0x00, 17, 17), 1 }, /* outer_frag */
	{ NIC_F(0x00, 16, 16), 1 }, /* outer_ip_protocol */
	{ NIC_F(0x00, 15, 15), 1 }, /* outer_ip_ecn */
	{ NIC_F(0x00, 14, 14), 1 }, /* outer_ip_dscp */
	{ NIC_F(0x00, 13, 13), 1 }, /* outer_udp_sport */
	{ NIC_F(0x00, 12, 12), 1 }, /* outer_udp_dport */
	{ NIC_F(0x00, 11, 11), 1 }, /* outer_tcp_sport */
	{ NIC_F(0x00, 10, 10), 1 }, /* outer_tcp_dport */
	{ NIC_F(0x00, 9, 9), 1 },   /* outer_tcp_flags */
};

/* flow_table_prop_layout of the root table, the only one */
static const struct cap_value flow_table[] = {
	{ NIC_F(0x00, 31, 31), 1 }, /* ft_support */
	{ NIC_F(0x00, 29, 29), 1 }, /* flow_counter */
	{ NIC_F(0x10, 15, 8), 16 }, /* log_max_flow_counter */
	{ NIC_F(0x14, 7, 0), 16 },  /* log_max_flow */
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
	{ NIC_F(0x14, 15, 0), 8 | 4 }, /* atomic_size_qp: operand sizes in bytes */
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

static void fill_ethernet(const struct sn_cfg *cfg, uint8_t *cap)
{
	CAP_FILL(cap, general_ethernet);
	nic_set(cap, NIC_F(0xd0, 19, 19), cfg->wait_on_time); /* DPDK mlx5_prm.h */
	/*
	 * device_frequency_khz. DPDK takes 1 GHz as a sign of real-time stamps. The clock has
	 * 1 ns ticks in both formats, so report its frequency only with real-time stamps.
	 */
	nic_set(cap, NIC_F(0x9c, 31, 0), cfg->ts_format == SN_TS_FREE ? 0 : 1000000);
}

/* The copy engine: mlx5_ifc.h of rdma-core 44; qpc_extension: that of Linux 6.12. */
static void fill_dma(const struct sn_cfg *cfg, uint8_t *cap)
{
	nic_set(cap, NIC_F(0x0c, 20, 16), cfg->dma ? cfg->dma_max : 0); /* log_dma_mmo_max_size */
	nic_set(cap, NIC_F(0x24, 29, 29), cfg->dma == SN_DMA_QP);	/* qpc_extension */
	nic_set(cap, NIC_F(0x28, 12, 12), cfg->dma == SN_DMA_SQ);	/* dma_mmo_sq */
	nic_set(cap, NIC_F(0xe8, 23, 23), cfg->dma == SN_DMA_QP);	/* dma_mmo_qp */
}

static void fill_general(const struct sn_cfg *cfg, uint8_t *cap)
{
	CAP_FILL(cap, general);
	if (cfg->infiniband)
		CAP_FILL(cap, general_ib);
	else
		fill_ethernet(cfg, cap);
	if (cfg->lag_ports)
		CAP_FILL(cap, general_lag);
	nic_set(cap, NIC_F(0x10, 15, 15), cfg->event_cap);
	nic_set(cap, NIC_F(0x34, 31, 31), !cfg->vf);	 /* vport_group_manager */
	nic_set(cap, NIC_F(0x3c, 7, 7), cfg->lag_init2); /* init2_lag_tx_port_affinity */
	nic_set(cap, NIC_F(0x44, 19, 19), cfg->cd);
	fill_dma(cfg, cap);
	nic_set(cap, NIC_F(0x4c, 4, 4), cfg->lag_ports && !cfg->vf); /* lag_master */
	nic_set(cap, NIC_F(0x4c, 3, 0), cfg->lag_ports);	     /* num_lag_ports */
	nic_set(cap, NIC_F(0x88, 31, 30), cfg->ts_format);	     /* sq_ts_format */
	nic_set(cap, NIC_F(0x88, 29, 28), cfg->ts_format);	     /* rq_ts_format */
}

static void fill_flow_table(uint8_t *layout)
{
	CAP_FILL(layout, flow_table);
	CAP_FILL(layout + FT_FIELDS, match_fields);
	CAP_FILL(layout + FT_MASKS, match_fields);
}

/* Capabilities of raw Ethernet. The QoS table is empty: no packet pacing, rate limits or meters. */
static uint8_t query_ethernet(struct sn_cmd *cmd, uint32_t type, uint8_t *cap)
{
	if (cmd->dev->cfg.infiniband)
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, 0x100005, "the port is not Ethernet");
	if (type == CAP_ETHERNET)
		CAP_FILL(cap, ethernet);
	if (type != CAP_FLOW_TABLE)
		return SN_OK;
	if (cmd->out_len < CAP_OUT + FT_TRANSMIT + 0x40)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x100006,
				   "capability output too short");
	fill_flow_table(cap + FT_RECEIVE);
	fill_flow_table(cap + FT_TRANSMIT);
	return SN_OK;
}

uint8_t sn_cmd_query_hca_cap(struct sn_cmd *cmd)
{
	static const uint32_t mask[] = { 0xffffffff, 0x0000ffff, 0, 0 };
	const struct sn_cfg *cfg = &cmd->dev->cfg;
	uint8_t *cap = cmd->out + CAP_OUT;
	uint8_t st = sn_cmd_reserved(cmd, mask, 4);
	uint32_t type;

	if (st)
		return st;
	if (cmd->out_len < CAP_OUT + 0x100)
		return sn_cmd_fail(cmd, SN_ST_BAD_OUTP_LEN, 0x100001,
				   "capability output too short");
	type = nic_get(cmd->in, IN_OP_MOD) >> 1;
	/* Bit 0 selects current or maximum values; both are the same. */
	switch (type) {
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
	case CAP_ETHERNET:
	case CAP_FLOW_TABLE:
	case CAP_QOS:
		return query_ethernet(cmd, type, cap);
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
