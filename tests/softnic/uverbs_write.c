/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The commands of the older write() interface, which libibverbs sends by the ioctl
 * method INVOKE_WRITE: one attribute is the command's structure, another its response.
 * The commands of QPs are in uverbs_qp.c, of regions in uverbs_mr.c, of CQs in
 * uverbs_objs.c, of SRQs in uverbs_srq.c.
 */
#include "eth_wqe.h"
#include "front.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* IB_DEVICE_CROSS_CHANNEL of the kernel's ib_verbs.h: core direct (WAIT work requests) */
#define DEVICE_CROSS_CHANNEL (1u << 27)
#define ETHERNET_FLAGS	     (IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING)
#define EX(cmd)		     (IB_USER_VERBS_CMD_FLAG_EXTENDED | (cmd))
static void fill_device(struct sn_call *c, struct ib_uverbs_query_device_resp *r)
{
	unsigned int fw[3];
	uint8_t guid[8];

	sn_guid_of_ip(&c->dev->cfg.ip, guid);
	memset(r, 0, sizeof(*r));
	if (sscanf(c->dev->cfg.fw_ver, "%u.%u.%u", &fw[0], &fw[1], &fw[2]) == 3)
		r->fw_ver = (uint64_t)fw[0] << 32 | (uint64_t)fw[1] << 16 | fw[2];
	memcpy(&r->node_guid, guid, 8);
	memcpy(&r->sys_image_guid, guid, 8);
	r->max_mr_size = ~0ull;
	r->page_size_cap = 0xfffffffffffff000ull;
	r->vendor_id = 0x2c9;
	r->vendor_part_id = c->dev->cfg.pci_device;
	r->max_qp = SN_TABLE_SIZE;
	r->max_qp_wr = SN_MAX_QP_SZ;
	r->device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_CHANGE_PHY_PORT |
			      IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
			      IBV_DEVICE_RC_RNR_NAK_GEN |
			      (c->dev->cfg.cd ? DEVICE_CROSS_CHANNEL : 0) |
			      (c->dev->cfg.infiniband ? 0 : ETHERNET_FLAGS);
	r->max_sge = 30;
	r->max_sge_rd = 30;
	r->max_cq = SN_TABLE_SIZE;
	r->max_cqe = (1 << SN_MAX_CQ_LOG) - 1;
	r->max_mr = SN_TABLE_SIZE;
	r->max_pd = SN_TABLE_SIZE;
	r->max_qp_rd_atom = 16;
	r->max_res_rd_atom = 16 * SN_TABLE_SIZE;
	r->max_qp_init_rd_atom = 16;
	r->atomic_cap = IBV_ATOMIC_HCA;
	r->max_ah = INT32_MAX;
	r->max_srq = SN_TABLE_SIZE;
	r->max_srq_wr = SN_MAX_SRQ_WR;
	r->max_srq_sge = SN_MAX_SRQ_SGE;
	r->max_pkeys = 1;
	r->local_ca_ack_delay = 16;
	r->phys_port_cnt = 1;
}

#define RAW_QPS (1u << IBV_QPT_RAW_PACKET)

/* The capabilities of raw Ethernet, which a port of InfiniBand does not have. */
static void fill_ethernet(struct ib_uverbs_ex_query_device_resp *r,
			  struct mlx5_ib_query_device_resp *drv)
{
	r->device_cap_flags_ex |= IBV_DEVICE_RAW_SCATTER_FCS | IBV_DEVICE_PCI_WRITE_END_PADDING;
	r->raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS |
			     IBV_RAW_PACKET_CAP_IP_CSUM;
	r->rss_caps.supported_qpts = RAW_QPS;
	r->rss_caps.max_rwq_indirection_tables = SN_TABLE_SIZE;
	r->rss_caps.max_rwq_indirection_table_size = SN_RQT_MAX;
	r->max_wq_type_rq = SN_TABLE_SIZE;
	drv->tso_caps.max_tso = SN_ETH_LSO_MAX;
	drv->tso_caps.supported_qpts = RAW_QPS;
	drv->rss_caps.rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ;
	drv->rss_caps.rx_hash_fields_mask = SN_RX_HASH_FIELDS;
	drv->mlx5_ib_support_multi_pkt_send_wqes = MLX5_IB_ALLOW_MPW | MLX5_IB_SUPPORT_EMPW;
}

static int ex_query_device(struct sn_call *c)
{
	struct ib_uverbs_ex_query_device_resp resp;
	struct mlx5_ib_query_device_resp drv = {
		.response_length = sizeof(drv),
		.flags = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD,
	};
	struct ib_uverbs_attr *a = sn_attr(c, UVERBS_ATTR_CORE_OUT);

	memset(&resp, 0, sizeof(resp));
	fill_device(c, &resp.base);
	resp.response_length = a->len < sizeof(resp) ? a->len : (uint32_t)sizeof(resp);
	resp.device_cap_flags_ex = resp.base.device_cap_flags;
	if (!c->dev->cfg.infiniband)
		fill_ethernet(&resp, &drv);
	resp.timestamp_mask = SN_TIMESTAMP_MASK;
	resp.hca_core_clock = 1000000; /* kHz: time stamps count nanoseconds */
	resp.cq_moderation_caps.max_cq_moderation_count = SN_MAX_CQ_COUNT;
	resp.cq_moderation_caps.max_cq_moderation_period = SN_MAX_CQ_PERIOD;
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &drv, sizeof(drv));
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

static int query_device(struct sn_call *c)
{
	struct ib_uverbs_query_device_resp resp;

	fill_device(c, &resp);
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

static int alloc_pd(struct sn_call *c)
{
	struct sn_pd *pd = sn_pd_create(c->dev, c->ctx);
	struct ib_uverbs_alloc_pd_resp resp;
	struct mlx5_ib_alloc_pd_resp drv;

	if (!pd)
		return -ENOMEM;
	resp.pd_handle = pd->handle;
	drv.pdn = pd->pdn;
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &drv, sizeof(drv));
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

static int create_comp_channel(struct sn_call *c)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	int fd;

	if (!sn_events_create(c->dev, c->ctx, SN_COMP_CHANNEL, &fd))
		return -EMFILE;
	resp.fd = (uint32_t)fd;
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

static int create_ah(struct sn_call *c)
{
	struct {
		uint64_t response, user_handle;
		uint32_t pd_handle, reserved;
		struct ib_uverbs_ah_attr attr;
	} in;
	struct mlx5_ib_create_ah_resp drv = { .response_length = sizeof(drv) };
	struct sn_dest dest;
	struct in6_addr ip;
	int rc;
	struct sn_pd *pd;
	struct sn_ah *ah;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	pd = sn_handle_get(c->dev, c->ctx, in.pd_handle, SN_PD);
	if (!pd || in.attr.port_num != 1)
		return -EINVAL;
	dest = (struct sn_dest){ .grh = in.attr.is_global,
				 .dlid = in.attr.dlid,
				 .sgid_index = in.attr.grh.sgid_index };
	memcpy(dest.dgid, in.attr.grh.dgid, 16);
	rc = sn_dest_find(&c->dev->cfg, &dest, &ip);
	if (rc)
		return rc;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->handle = sn_handle_add(c->dev, c->ctx, SN_AH, ah);
	if (!ah->handle) {
		free(ah);
		return -ENOMEM;
	}
	ah->pd = pd->pdn;
	pd->users++;
	memcpy(ah->dgid, in.attr.grh.dgid, 16);
	sn_mac_of_ip(&ip, drv.dmac);
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &drv, sizeof(drv));
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &ah->handle, sizeof(ah->handle));
}

static int modify_qp(struct sn_call *c)
{
	return sn_write_modify_qp(c, false);
}

static int modify_qp_ex(struct sn_call *c)
{
	return sn_write_modify_qp(c, true);
}

#define END(type, field) (offsetof(struct type, field) + sizeof(((struct type *)0)->field))

/* Minimum sizes of request and response, as in uverbs_cmd.c of Linux. */
static const struct {
	uint32_t cmd;
	uint16_t in, out;
	int (*fn)(struct sn_call *c);
} commands[] = {
#define IO(in, out) sizeof(struct ib_uverbs_##in), sizeof(struct ib_uverbs_##out)
	{ IB_USER_VERBS_CMD_QUERY_DEVICE, IO(query_device, query_device_resp), query_device },
	{ EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), END(ib_uverbs_ex_query_device, reserved),
	  END(ib_uverbs_ex_query_device_resp, response_length), ex_query_device },
	{ IB_USER_VERBS_CMD_ALLOC_PD, IO(alloc_pd, alloc_pd_resp), alloc_pd },
	{ IB_USER_VERBS_CMD_REG_MR, IO(reg_mr, reg_mr_resp), sn_write_reg_mr },
	{ IB_USER_VERBS_CMD_REREG_MR, IO(rereg_mr, rereg_mr_resp), sn_write_rereg_mr },
	{ IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, IO(create_comp_channel, create_comp_channel_resp),
	  create_comp_channel },
	{ IB_USER_VERBS_CMD_CREATE_AH, IO(create_ah, create_ah_resp), create_ah },
	{ IB_USER_VERBS_CMD_RESIZE_CQ, IO(resize_cq, resize_cq_resp), sn_write_resize_cq },
	{ EX(IB_USER_VERBS_EX_CMD_MODIFY_CQ), sizeof(struct ib_uverbs_ex_modify_cq), 0,
	  sn_write_modify_cq },
	{ IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(struct ib_uverbs_modify_srq), 0,
	  sn_write_modify_srq },
	{ IB_USER_VERBS_CMD_QUERY_SRQ, IO(query_srq, query_srq_resp), sn_write_query_srq },
	{ IB_USER_VERBS_CMD_QUERY_QP, IO(query_qp, query_qp_resp), sn_write_query_qp },
	{ IB_USER_VERBS_CMD_MODIFY_QP, sizeof(struct ib_uverbs_modify_qp), 0, modify_qp },
	{ EX(IB_USER_VERBS_EX_CMD_MODIFY_QP), END(ib_uverbs_ex_modify_qp, base),
	  END(ib_uverbs_ex_modify_qp_resp, response_length), modify_qp_ex },
	{ EX(IB_USER_VERBS_EX_CMD_CREATE_FLOW), sizeof(struct ib_uverbs_create_flow),
	  sizeof(struct ib_uverbs_create_flow_resp), sn_write_create_flow },
	{ EX(IB_USER_VERBS_EX_CMD_DESTROY_FLOW), sizeof(struct ib_uverbs_destroy_flow), 0,
	  sn_write_destroy_flow },
	{ EX(IB_USER_VERBS_EX_CMD_MODIFY_WQ), END(ib_uverbs_ex_modify_wq, curr_wq_state), 0,
	  sn_write_modify_wq },
	{ EX(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL),
	  END(ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size),
	  END(ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num), sn_write_create_rwq_ind_table },
#undef IO
};

int sn_write_call(struct sn_call *c)
{
	uint32_t cmd = (uint32_t)sn_attr_num(c, UVERBS_ATTR_WRITE_CMD);
	struct ib_uverbs_attr *in = sn_attr(c, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_attr *out = sn_attr(c, UVERBS_ATTR_CORE_OUT);
	size_t i;

	sn_trace("write command %u%s", cmd & 0xff,
		 cmd & IB_USER_VERBS_CMD_FLAG_EXTENDED ? " extended" : "");
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].cmd != cmd)
			continue;
		if ((in ? in->len : 0) < commands[i].in || (out ? out->len : 0) < commands[i].out)
			return -ENOSPC;
		return commands[i].fn(c);
	}
	/* libibverbs sends these two without room for a response, to learn if they exist */
	return cmd == IB_USER_VERBS_CMD_GET_CONTEXT || cmd == IB_USER_VERBS_CMD_QUERY_PORT
		       ? -ENOSPC
		       : -EOPNOTSUPP;
}
