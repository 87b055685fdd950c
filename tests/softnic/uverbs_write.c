/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The older commands, which arrive through the INVOKE_WRITE method: their
 * structure in one attribute, the answer in another.
 */
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

/* IB_DEVICE_CROSS_CHANNEL of the kernel's ib_verbs.h: core direct */
#define DEVICE_CROSS_CHANNEL (1u << 27)
#define EX(cmd) (IB_USER_VERBS_CMD_FLAG_EXTENDED | (cmd))
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
			      (c->dev->cfg.cd ? DEVICE_CROSS_CHANNEL : 0);
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

static int ex_query_device(struct sn_call *c)
{
	struct ib_uverbs_ex_query_device_resp resp;
	struct mlx5_ib_query_device_resp drv = {
		.response_length = sizeof(drv), .flags = MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD,
	};
	struct ib_uverbs_attr *a = sn_attr(c, UVERBS_ATTR_CORE_OUT);

	memset(&resp, 0, sizeof(resp));
	fill_device(c, &resp.base);
	resp.response_length = a->len < sizeof(resp) ? a->len : (uint32_t)sizeof(resp);
	resp.device_cap_flags_ex = resp.base.device_cap_flags;
	resp.timestamp_mask = SN_TIMESTAMP_MASK;
	resp.hca_core_clock = 1000000; /* kHz: a time stamp counts nanoseconds */
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
	dest = (struct sn_dest){ .grh = in.attr.is_global, .dlid = in.attr.dlid,
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

int sn_write_call(struct sn_call *c)
{
	uint32_t cmd = (uint32_t)sn_attr_num(c, UVERBS_ATTR_WRITE_CMD);
	bool out = sn_attr(c, UVERBS_ATTR_CORE_OUT);

	sn_trace("write command %u%s", cmd & 0xff,
		 cmd & IB_USER_VERBS_CMD_FLAG_EXTENDED ? " extended" : "");
	switch (cmd) {
	case IB_USER_VERBS_CMD_QUERY_DEVICE: return out ? query_device(c) : -ENOSPC;
	case EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE): return out ? ex_query_device(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_ALLOC_PD: return out ? alloc_pd(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_REG_MR: return out ? sn_write_reg_mr(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_REREG_MR: return out ? sn_write_rereg_mr(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		return out ? create_comp_channel(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_CREATE_AH: return out ? create_ah(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_RESIZE_CQ: return out ? sn_write_resize_cq(c) : -ENOSPC;
	case EX(IB_USER_VERBS_EX_CMD_MODIFY_CQ): return sn_write_modify_cq(c);
	case IB_USER_VERBS_CMD_MODIFY_SRQ: return sn_write_modify_srq(c);
	case IB_USER_VERBS_CMD_QUERY_SRQ: return out ? sn_write_query_srq(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_QUERY_QP: return out ? sn_write_query_qp(c) : -ENOSPC;
	case IB_USER_VERBS_CMD_MODIFY_QP: return sn_write_modify_qp(c, false);
	case EX(IB_USER_VERBS_EX_CMD_MODIFY_QP): return sn_write_modify_qp(c, true);
	/* The probe of libibverbs: known, but without room for an answer. */
	case IB_USER_VERBS_CMD_GET_CONTEXT:
	case IB_USER_VERBS_CMD_QUERY_PORT: return -ENOSPC;
	default: return -EOPNOTSUPP;
	}
}
