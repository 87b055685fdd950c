/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Methods of the device itself: context, port, GID table and asynchronous event file.
 * uverbs_write.c has the device queries.
 */
#include "front.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>

static int context_out(struct sn_call *c, uint16_t vectors_id, uint16_t support_id,
		       uint16_t resp_id)
{
	const struct mlx5_ib_alloc_ucontext_resp resp = {
		.qp_tab_size = 1 << 18,
		.bf_reg_size = 512,
		.tot_bfregs = 0,
		.cache_line_size = 64,
		.max_sq_desc_sz = 1024,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = SN_MAX_QP_SZ,
		.max_recv_wr = SN_MAX_QP_SZ,
		.max_srq_recv_wr = SN_MAX_QP_SZ - 1,
		.num_ports = 1,
		.response_length = sizeof(resp),
		.cqe_version = 1,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
				 MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
		.eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
		.log_uar_size = 12,
		.num_uars_per_page = (uint16_t)(c->dev->cfg.page_size / SN_UAR_SIZE),
		.num_dyn_bfregs = 1024,
		.clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1,
		.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_ECE |
			     MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET |
			     (c->dev->cfg.ts_format == SN_TS_FREE
				      ? 0
				      : MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_REAL_TIME_TS),
	};
	const uint32_t vectors = SN_COMP_VECTORS;
	const uint64_t support = 1; /* optional MR access flags are supported */

	sn_attr_out(c, vectors_id, &vectors, sizeof(vectors));
	sn_attr_out(c, support_id, &support, sizeof(support));
	sn_attr_out(c, resp_id, &resp, sizeof(resp));
	return 0;
}

static int get_context(struct sn_call *c)
{
	struct mlx5_ib_alloc_ucontext_req_v2 req;

	if (c->ctx->ready)
		return -EINVAL;
	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	if (!(req.lib_caps & MLX5_LIB_CAP_DYN_UAR))
		return -EOPNOTSUPP;
	c->ctx->ready = true;
	return context_out(c, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS,
			   UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, UVERBS_ATTR_UHW_OUT);
}

/* Returns the context's properties to a program that received the file of an open context. */
static int query_context(struct sn_call *c)
{
	if (!c->ctx->ready)
		return -EINVAL;
	return context_out(c, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS,
			   UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT,
			   (uint16_t)MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
}

static void port_infiniband(struct sn_call *c, struct ib_uverbs_query_port_resp *p)
{
	p->link_layer = IBV_LINK_LAYER_INFINIBAND;
	p->lid = sn_lid_of_ip(&c->dev->cfg.ip);
	p->sm_lid = SN_SM_LID;
	p->max_vl_num = 4; /* code for 8 virtual lanes */
	p->subnet_timeout = 18;
	p->flags = c->dev->cfg.grh_required ? IBV_QPF_GRH_REQUIRED : 0;
}

static int query_port(struct sn_call *c)
{
	static const uint8_t mtu_code[] = { 1, 2, 3, 4, 5 };
	struct ib_uverbs_query_port_resp_ex resp = { .port_cap_flags2 = 0 };
	struct ib_uverbs_query_port_resp *p = &resp.legacy_resp;
	uint32_t code = 0;

	if (sn_attr_num(c, UVERBS_ATTR_QUERY_PORT_PORT_NUM) != 1)
		return -EINVAL;
	while (code < 4 && (256u << code) < c->dev->cfg.mtu)
		code++;
	p->port_cap_flags = SN_PORT_CAP(&c->dev->cfg);
	p->max_msg_sz = 1u << 30;
	p->gid_tbl_len = SN_GIDS;
	p->pkey_tbl_len = 1;
	p->state = IBV_PORT_ACTIVE;
	p->max_mtu = 5;
	p->active_mtu = mtu_code[code];
	p->max_vl_num = 0;
	p->active_width = 2;  /* code for 4 lanes */
	p->active_speed = 32; /* code for 25 Gb/s per lane */
	p->phys_state = 5;
	p->link_layer = IBV_LINK_LAYER_ETHERNET;
	p->flags = IBV_QPF_GRH_REQUIRED;
	if (c->dev->cfg.infiniband)
		port_infiniband(c, p);
	return sn_attr_out(c, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
}

/* Missing in the distribution's headers. */
#define METHOD_QUERY_PORT_SPEED (UVERBS_METHOD_QUERY_GID_ENTRY + 1)
enum { QUERY_PORT_SPEED_PORT_NUM, QUERY_PORT_SPEED_RESP };

static int query_port_speed(struct sn_call *c)
{
	const uint64_t speed = 1000; /* unit 100 Mb/s; the same rate as in query_port() */

	if (sn_attr_num(c, QUERY_PORT_SPEED_PORT_NUM) != 1)
		return -EINVAL;
	return sn_attr_out(c, QUERY_PORT_SPEED_RESP, &speed, sizeof(speed));
}

/* Reports the properties of a port of an embedded switch: flags 0, because there are none. */
static int query_port_mlx5(struct sn_call *c)
{
	const struct mlx5_ib_uapi_query_port resp = { .flags = 0 };

	if (sn_attr_num(c, (uint16_t)MLX5_IB_ATTR_QUERY_PORT_PORT_NUM) != 1)
		return -EINVAL;
	return sn_attr_out(c, (uint16_t)MLX5_IB_ATTR_QUERY_PORT, &resp, sizeof(resp));
}

static bool gid_entry(struct sn_call *c, uint32_t index, struct ib_uverbs_gid_entry *e)
{
	struct sn_gid gid;

	if (!sn_gid_at(&c->dev->cfg, index, &gid))
		return false;
	memset(e, 0, sizeof(*e));
	memcpy(e->gid, gid.raw, 16);
	e->gid_index = index;
	e->port_num = 1;
	if (c->dev->cfg.infiniband) {
		e->gid_type = IB_UVERBS_GID_TYPE_IB;
		return true;
	}
	e->gid_type = gid.v2 ? IB_UVERBS_GID_TYPE_ROCE_V2 : IB_UVERBS_GID_TYPE_ROCE_V1;
	e->netdev_ifindex = if_nametoindex(c->dev->cfg.ndev);
	return true;
}

/* Returns the used entries only. Fails if the array is too small for them. */
static int query_gid_table(struct sn_call *c)
{
	struct ib_uverbs_attr *a = sn_attr(c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	uint64_t to = a ? a->data : 0;
	uint64_t size = sn_attr_num(c, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	struct ib_uverbs_gid_entry e;
	uint64_t n = 0;
	uint32_t i;

	if (!a || size < sizeof(e))
		return -EINVAL;
	for (i = 0; i < SN_GIDS; i++) {
		if (!gid_entry(c, i, &e))
			continue;
		if (a->len / size <= n)
			return -EINVAL;
		if (sn_mem_write(false, to + n++ * size, &e, sizeof(e)))
			return -EFAULT;
	}
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return sn_attr_out(c, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &n, sizeof(n));
}

static int query_gid_entry(struct sn_call *c)
{
	uint64_t index = sn_attr_num(c, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
	struct ib_uverbs_gid_entry e;

	if (sn_attr_num(c, UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != 1 || index >= SN_GIDS)
		return -EINVAL;
	if (!gid_entry(c, (uint32_t)index, &e))
		return -ENODATA;
	return sn_attr_out(c, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &e, sizeof(e));
}

static int async_event_alloc(struct sn_call *c)
{
	struct sn_event_queue *q;
	int fd;

	q = sn_events_create(c->dev, c->ctx, SN_ASYNC, &fd);
	if (!q)
		return -EMFILE;
	if (!c->ctx->async)
		c->ctx->async = q;
	sn_attr_set_handle(c, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
	return 0;
}

#define A(id) (1u << (id))
#define D(id) (1u << ((id)&0xfff))
#define UHW   (D(UVERBS_ATTR_UHW_IN) | D(UVERBS_ATTR_UHW_OUT))

const struct sn_method sn_methods_dev[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE,
	  A(UVERBS_ATTR_CORE_IN) | A(UVERBS_ATTR_CORE_OUT) | A(UVERBS_ATTR_WRITE_CMD), UHW,
	  sn_write_call },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT,
	  A(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS) | A(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT),
	  UHW, get_context },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
	  A(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS) | A(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT),
	  D(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX), query_context },
	{ UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, 0,
	  D(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM) | D(MLX5_IB_ATTR_QUERY_PORT), query_port_mlx5 },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT,
	  A(UVERBS_ATTR_QUERY_PORT_PORT_NUM) | A(UVERBS_ATTR_QUERY_PORT_RESP), 0, query_port },
	{ UVERBS_OBJECT_DEVICE, METHOD_QUERY_PORT_SPEED, 0x3, 0, query_port_speed },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, 0xf, 0, query_gid_table },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, 0xf, 0, query_gid_entry },
	{ UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC,
	  A(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE), 0, async_event_alloc },
	{ .fn = NULL },
};
