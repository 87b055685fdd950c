/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* A table of valid calls of the verbs ioctl, one or more per method, and the
 * structures that they pass; see uverbs_calls.h. The calls of raw Ethernet are in
 * uverbs_eth.c. */
#include "uverbs_table.h"

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "../softnic/prm_nic.h"

/* ---- input structures ---- */

static uint16_t fill_qp_state(struct uv_program *p, struct ib_uverbs_modify_qp *m)
{
	static const uint32_t masks[3] = {
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	uint8_t to = fuzz_u8(p->in);
	struct sn_gid gid;

	m->qp_handle = (uint32_t)uv_handle(p, UV_QP);
	m->qp_state = to % 8 + (to < 0x80); /* also beyond the last valid state */
	m->attr_mask = to & 0x40 ? fuzz_u32(p->in) : IBV_QP_STATE;
	if (!(to & 0x40) && m->qp_state >= 1 && m->qp_state <= 3)
		m->attr_mask = masks[m->qp_state - 1];
	m->port_num = m->dest.port_num = 1;
	m->dest.sgid_index = sn_dev->cfg.infiniband ? 0 : 3;
	sn_gid_at(&sn_dev->cfg, m->dest.sgid_index, &gid);
	memcpy(m->dest.dgid, gid.raw, 16);
	m->dest.is_global = 1;
	m->dest.dlid = sn_lid_of_ip(&sn_dev->cfg.ip);
	m->path_mtu = 3;
	m->max_rd_atomic = m->max_dest_rd_atomic = 4;
	m->timeout = 14;
	return sizeof(*m);
}

static uint16_t fill_ah(struct uv_program *p, void *data)
{
	struct {
		uint64_t response, user_handle;
		uint32_t pd_handle, reserved;
		struct ib_uverbs_ah_attr attr;
	} in = { .pd_handle = (uint32_t)uv_handle(p, UV_PD) };
	struct sn_gid gid;

	in.attr.port_num = 1;
	in.attr.is_global = 1;
	in.attr.dlid = sn_lid_of_ip(&sn_dev->cfg.ip);
	in.attr.grh.sgid_index = sn_dev->cfg.infiniband ? 0 : 3;
	sn_gid_at(&sn_dev->cfg, in.attr.grh.sgid_index, &gid);
	memcpy(in.attr.grh.dgid, gid.raw, 16);
	memcpy(data, &in, sizeof(in));
	return sizeof(in);
}

/* Fills in the structure of a write command; returns its length. */
static uint16_t fill_write(struct uv_program *p, uint32_t cmd, void *data)
{
	switch (cmd) {
	case IB_USER_VERBS_CMD_REG_MR:
		FILL(ib_uverbs_reg_mr, .start = FUZZ_ARENA, .hca_va = FUZZ_ARENA, .length = 8192,
		     .access_flags = IBV_ACCESS_LOCAL_WRITE,
		     .pd_handle = (uint32_t)uv_handle(p, UV_PD));
	case IB_USER_VERBS_CMD_REREG_MR:
		FILL(ib_uverbs_rereg_mr, .flags = fuzz_u8(p->in), .start = FUZZ_ARENA + 4096,
		     .length = 4096, .hca_va = FUZZ_ARENA, .access_flags = IBV_ACCESS_REMOTE_READ,
		     .mr_handle = (uint32_t)uv_handle(p, UV_MR),
		     .pd_handle = (uint32_t)uv_handle(p, UV_PD));
	case IB_USER_VERBS_CMD_CREATE_AH:
		return fill_ah(p, data);
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		FILL(ib_uverbs_resize_cq, .cqe = 15, .cq_handle = (uint32_t)uv_handle(p, UV_CQ));
	case EX(IB_USER_VERBS_EX_CMD_MODIFY_CQ):
		FILL(ib_uverbs_ex_modify_cq, .attr_mask = IBV_CQ_ATTR_MODERATE,
		     .cq_handle = (uint32_t)uv_handle(p, UV_CQ),
		     .attr = { .cq_count = 2, .cq_period = 9 });
	case IB_USER_VERBS_CMD_MODIFY_SRQ:
		FILL(ib_uverbs_modify_srq, .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 2,
		     .srq_handle = (uint32_t)uv_handle(p, UV_SRQ));
	case IB_USER_VERBS_CMD_QUERY_SRQ:
		FILL(ib_uverbs_query_srq, .srq_handle = (uint32_t)uv_handle(p, UV_SRQ));
	case IB_USER_VERBS_CMD_QUERY_QP:
		FILL(ib_uverbs_query_qp, .attr_mask = IBV_QP_STATE,
		     .qp_handle = (uint32_t)uv_handle(p, UV_QP));
	case IB_USER_VERBS_CMD_MODIFY_QP:
		return fill_qp_state(p, data);
	case EX(IB_USER_VERBS_EX_CMD_MODIFY_QP):
		fill_qp_state(p, data);
		return sizeof(struct ib_uverbs_ex_modify_qp);
	case EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE):
	case IB_USER_VERBS_CMD_ALLOC_PD:
	case IB_USER_VERBS_CMD_QUERY_DEVICE:
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		break;
	}
	return sizeof(uint64_t);
}

enum uhw { UHW_NONE, UHW_CQ, UHW_QP, UHW_SRQ, UHW_RESIZE, UHW_CONTEXT };

static uint16_t fill_uhw(struct uv_program *p, enum uhw what, void *data)
{
	switch (what) {
	case UHW_CQ:
		FILL(mlx5_ib_create_cq, .buf_addr = CQ_AT, .db_addr = DBR_AT, .cqe_size = 64,
		     .flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX,
		     .uar_page_index = (uint16_t)p->nic->uar_id);
	case UHW_QP:
		FILL(mlx5_ib_create_qp, .buf_addr = QP_AT, .db_addr = DBR_AT + 64,
		     .sq_wqe_count = 16, .rq_wqe_count = 4, .rq_wqe_shift = 6, .uidx = 5,
		     .flags = MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_BFREG_INDEX,
		     .bfreg_index = p->nic->uar_id);
	case UHW_SRQ:
		FILL(mlx5_ib_create_srq, .buf_addr = SRQ_AT, .db_addr = DBR_AT + 128);
	case UHW_RESIZE:
		FILL(mlx5_ib_resize_cq, .buf_addr = CQ_AT + 2048, .cqe_size = 64);
	case UHW_CONTEXT:
		FILL(mlx5_ib_alloc_ucontext_req_v2, .lib_caps = MLX5_LIB_CAP_DYN_UAR);
	case UHW_NONE:
		break;
	}
	return 0;
}

/* ---- the calls ---- */

static const struct call calls[] = {
#define INVOKE(cmd, out, ...) \
	{ \
		UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, \
		{ \
			{ VALUE, UVERBS_ATTR_WRITE_CMD, 8, (cmd) }, \
				{ WRITE, UVERBS_ATTR_CORE_IN, 0, (cmd) }, \
				{ OUT, UVERBS_ATTR_CORE_OUT, (out), 0 }, ##__VA_ARGS__ \
		} \
	}
#define UHW_O(n) \
	{ \
		OUT, UVERBS_ATTR_UHW_OUT, (n), 0 \
	}
#define UHW_I(what) \
	{ \
		UHW, UVERBS_ATTR_UHW_IN, 0, (what) \
	}
	INVOKE(IB_USER_VERBS_CMD_ALLOC_PD, 4, UHW_O(4)),
	INVOKE(IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof(struct ib_uverbs_query_device_resp)),
	INVOKE(EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), sizeof(struct ib_uverbs_ex_query_device_resp),
	       UHW_O(200)),
	INVOKE(IB_USER_VERBS_CMD_REG_MR, 12),
	INVOKE(IB_USER_VERBS_CMD_REREG_MR, 8),
	INVOKE(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 4),
	INVOKE(IB_USER_VERBS_CMD_CREATE_AH, 4, UHW_O(16)),
	INVOKE(IB_USER_VERBS_CMD_RESIZE_CQ, 8, UHW_I(UHW_RESIZE)),
	INVOKE(EX(IB_USER_VERBS_EX_CMD_MODIFY_CQ), 8),
	INVOKE(IB_USER_VERBS_CMD_MODIFY_SRQ, 8),
	INVOKE(IB_USER_VERBS_CMD_QUERY_SRQ, 16),
	INVOKE(IB_USER_VERBS_CMD_QUERY_QP, sizeof(struct ib_uverbs_query_qp_resp)),
	INVOKE(IB_USER_VERBS_CMD_MODIFY_QP, 8),
	INVOKE(IB_USER_VERBS_CMD_MODIFY_QP, 8),
	INVOKE(EX(IB_USER_VERBS_EX_CMD_MODIFY_QP), 8),
	INVOKE(IB_USER_VERBS_CMD_GET_CONTEXT, 8),
	{ UVERBS_OBJECT_DEVICE,
	  UVERBS_METHOD_GET_CONTEXT,
	  { { OUT, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4, 0 },
	    { OUT, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8, 0 },
	    UHW_I(UHW_CONTEXT),
	    UHW_O(200) } },
	{ UVERBS_OBJECT_DEVICE,
	  UVERBS_METHOD_QUERY_CONTEXT,
	  { { OUT, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, 0 },
	    { OUT, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, 0 },
	    { OUT, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, 200, 0 } } },
	{ UVERBS_OBJECT_DEVICE,
	  MLX5_IB_METHOD_QUERY_PORT,
	  { { VALUE, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 4, 1 },
	    { OUT, MLX5_IB_ATTR_QUERY_PORT, 64, 0 } } },
	{ UVERBS_OBJECT_DEVICE,
	  UVERBS_METHOD_QUERY_PORT,
	  { { VALUE, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1, 1 },
	    { OUT, UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp_ex),
	      0 } } },
	{ UVERBS_OBJECT_DEVICE,
	  UVERBS_METHOD_QUERY_GID_ENTRY + 1,
	  { { VALUE, 0, 4, 1 }, { OUT, 1, 8, 0 } } },
	{ UVERBS_OBJECT_DEVICE,
	  UVERBS_METHOD_QUERY_GID_TABLE,
	  { { VALUE, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, 32 },
	    { VALUE, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, 0 },
	    { OUT, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 256, 0 },
	    { OUT, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8, 0 } } },
	{ UVERBS_OBJECT_DEVICE,
	  UVERBS_METHOD_QUERY_GID_ENTRY,
	  { { VALUE, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 4, 1 },
	    { VALUE, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 4, 3 },
	    { VALUE, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 0 },
	    { OUT, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 32, 0 } } },
	{ UVERBS_OBJECT_ASYNC_EVENT,
	  UVERBS_METHOD_ASYNC_EVENT_ALLOC,
	  { { FD_OUT, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, UV_ASYNC } } },
	{ UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, { { HANDLE, 0, 0, UV_PD } } },
	{ UVERBS_OBJECT_PD,
	  MLX5_IB_METHOD_PD_QUERY,
	  { { HANDLE, MLX5_IB_ATTR_QUERY_PD_HANDLE, 0, UV_PD },
	    { OUT, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4, 0 } } },
	{ UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, { { HANDLE, 0, 0, UV_AH } } },
	{ UVERBS_OBJECT_CQ,
	  UVERBS_METHOD_CQ_CREATE,
	  { { HANDLE_OUT, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, UV_CQ },
	    { VALUE, UVERBS_ATTR_CREATE_CQ_CQE, 4, 15 },
	    { VALUE, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 0x111 },
	    { FD, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0, UV_CHANNEL },
	    { VALUE, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0 },
	    { VALUE, UVERBS_ATTR_CREATE_CQ_FLAGS, 4, 0 },
	    { OUT, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, 0 },
	    { FD, UVERBS_ATTR_CREATE_CQ_EVENT_FD, 0, UV_ASYNC },
	    UHW_I(UHW_CQ),
	    UHW_O(8) } },
	{ UVERBS_OBJECT_CQ,
	  UVERBS_METHOD_CQ_DESTROY,
	  { { HANDLE, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, UV_CQ },
	    { OUT, UVERBS_ATTR_DESTROY_CQ_RESP, 8, 0 } } },
	{ UVERBS_OBJECT_QP,
	  UVERBS_METHOD_QP_CREATE,
	  { { HANDLE_OUT, UVERBS_ATTR_CREATE_QP_HANDLE, 0, UV_QP },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, UV_PD },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, UV_CQ },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, UV_CQ },
	    { VALUE, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 0x222 },
	    { OUT, UVERBS_ATTR_CREATE_QP_CAP, 20, 0 },
	    { VALUE, UVERBS_ATTR_CREATE_QP_TYPE, 4, IB_UVERBS_QPT_RC },
	    { VALUE, UVERBS_ATTR_CREATE_QP_FLAGS, 4, 0 },
	    { FD, UVERBS_ATTR_CREATE_QP_EVENT_FD, 0, UV_ASYNC },
	    { OUT, UVERBS_ATTR_CREATE_QP_RESP_CAP, 20, 0 },
	    { OUT, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, 0 },
	    UHW_I(UHW_QP),
	    UHW_O(24) } },
	{ UVERBS_OBJECT_QP,
	  UVERBS_METHOD_QP_DESTROY,
	  { { HANDLE, UVERBS_ATTR_DESTROY_QP_HANDLE, 0, UV_QP },
	    { OUT, UVERBS_ATTR_DESTROY_QP_RESP, 4, 0 } } },
	{ UVERBS_OBJECT_SRQ,
	  UVERBS_METHOD_SRQ_CREATE,
	  { { HANDLE_OUT, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0, UV_SRQ },
	    { HANDLE, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, 0, UV_PD },
	    { VALUE, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, 0x333 },
	    { VALUE, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, 7 },
	    { VALUE, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, 2 },
	    { VALUE, UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, 0 },
	    { VALUE, UVERBS_ATTR_CREATE_SRQ_TYPE, 4, IB_UVERBS_SRQT_BASIC },
	    { FD, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, 0, UV_ASYNC },
	    { OUT, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4, 0 },
	    { OUT, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4, 0 },
	    UHW_I(UHW_SRQ),
	    UHW_O(8) } },
	{ UVERBS_OBJECT_SRQ,
	  UVERBS_METHOD_SRQ_DESTROY,
	  { { HANDLE, UVERBS_ATTR_DESTROY_SRQ_HANDLE, 0, UV_SRQ },
	    { OUT, UVERBS_ATTR_DESTROY_SRQ_RESP, 4, 0 } } },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, { { HANDLE, 0, 0, UV_MR } } },
	{ UVERBS_OBJECT_MR,
	  UVERBS_METHOD_QUERY_MR,
	  { { HANDLE, UVERBS_ATTR_QUERY_MR_HANDLE, 0, UV_MR },
	    { OUT, UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, 0 },
	    { OUT, UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, 0 },
	    { OUT, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, 0 },
	    { OUT, UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, 0 } } },
	{ UVERBS_OBJECT_MR,
	  UVERBS_METHOD_REG_DMABUF_MR,
	  { { HANDLE_OUT, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, UV_MR },
	    { HANDLE, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, UV_PD },
	    { VALUE, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, 0 },
	    { VALUE, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, 4096 },
	    { VALUE, UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, 0x5000 },
	    { FD, UVERBS_ATTR_REG_DMABUF_MR_FD, 0, UV_MEMORY },
	    { VALUE, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, IBV_ACCESS_LOCAL_WRITE },
	    { OUT, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, 0 },
	    { OUT, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, 0 } } },
	{ UVERBS_OBJECT_MR,
	  5, /* UVERBS_METHOD_REG_MR of Linux 6.17 */
	  { { HANDLE_OUT, 0, 0, UV_MR },
	    { HANDLE, 1, 0, UV_PD },
	    { VALUE, 3, 8, FUZZ_ARENA },
	    { VALUE, 4, 8, FUZZ_ARENA },
	    { VALUE, 5, 8, 4096 },
	    { VALUE, 6, 4, 1 },
	    { OUT, 9, 4, 0 },
	    { OUT, 10, 4, 0 } } },
	{ UVERBS_OBJECT_MR,
	  5,
	  { { HANDLE_OUT, 0, 0, UV_MR },
	    { HANDLE, 1, 0, UV_PD },
	    { VALUE, 3, 8, 0x5000 },
	    { VALUE, 5, 8, 4096 },
	    { VALUE, 6, 4, 1 },
	    { FD, 7, 0, UV_MEMORY },
	    { VALUE, 8, 8, 0 },
	    { OUT, 9, 4, 0 },
	    { OUT, 10, 4, 0 } } },
	{ MLX5_IB_OBJECT_DEVX,
	  MLX5_IB_METHOD_DEVX_QUERY_UAR,
	  { { VALUE, MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, 4, 1 },
	    { OUT, MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4, 0 } } },
	{ MLX5_IB_OBJECT_DEVX,
	  MLX5_IB_METHOD_DEVX_QUERY_EQN,
	  { { VALUE, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 4, 0 },
	    { OUT, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4, 0 } } },
	{ MLX5_IB_OBJECT_DEVX,
	  MLX5_IB_METHOD_DEVX_OTHER,
	  { { CMD, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, 0, OP_QUERY_HCA_CAP },
	    { OUT, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 0x1010, 0 } } },
	{ MLX5_IB_OBJECT_DEVX_OBJ,
	  MLX5_IB_METHOD_DEVX_OBJ_CREATE,
	  { { HANDLE_OUT, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, UV_DEVX },
	    { CMD, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, 0, OP_CREATE_QP },
	    { OUT, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 16, 0 } } },
	{ MLX5_IB_OBJECT_DEVX_OBJ,
	  MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
	  { { HANDLE, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, 0, UV_DEVX } } },
	{ MLX5_IB_OBJECT_DEVX_UMEM,
	  MLX5_IB_METHOD_DEVX_UMEM_REG,
	  { { HANDLE_OUT, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0, UV_UMEM },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, FUZZ_ARENA + 4096 },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, 8192 },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, IBV_ACCESS_LOCAL_WRITE },
	    { OUT, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4, 0 },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, 8, ~0xfffull } } },
	{ MLX5_IB_OBJECT_DEVX_UMEM,
	  MLX5_IB_METHOD_DEVX_UMEM_REG,
	  { { HANDLE_OUT, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0, UV_UMEM },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, 0 },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, 4096 },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, IBV_ACCESS_LOCAL_WRITE },
	    { OUT, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4, 0 },
	    { VALUE, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, 8, ~0xfffull },
	    { FD, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, 0, UV_MEMORY } } },
	{ MLX5_IB_OBJECT_DEVX_UMEM,
	  MLX5_IB_METHOD_DEVX_UMEM_DEREG,
	  { { HANDLE, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, 0, UV_UMEM } } },
	{ MLX5_IB_OBJECT_UAR,
	  MLX5_IB_METHOD_UAR_OBJ_ALLOC,
	  { { HANDLE_OUT, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, UV_UAR },
	    { VALUE, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC },
	    { OUT, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8, 0 },
	    { OUT, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4, 0 },
	    { OUT, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4, 0 } } },
	{ MLX5_IB_OBJECT_UAR,
	  MLX5_IB_METHOD_UAR_OBJ_DESTROY,
	  { { HANDLE, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, 0, UV_UAR } } },
	{ MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD,
	  MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC,
	  { { FD_OUT, MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, 0, UV_OUTPUTS } } },
	{ MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
	  MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC,
	  { { FD_OUT, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0, UV_EVENTS },
	    { VALUE, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, 8, 0 } } },
	{ MLX5_IB_OBJECT_DEVX,
	  MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT,
	  { { FD, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, 0, UV_EVENTS },
	    { HANDLE, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, 0, UV_DEVX },
	    { TYPES, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, 4, 0 },
	    { VALUE, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, 0x77 },
	    { FD, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, 0, UV_EVENTFD } } },
	{ MLX5_IB_OBJECT_DEVX_OBJ,
	  MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY,
	  { { HANDLE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, 0, UV_DEVX },
	    { CMD, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, 0, OP_QUERY_QP },
	    { FD, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, 0, UV_OUTPUTS },
	    { VALUE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, 8, 9 },
	    { VALUE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, 2, 0x110 } } },
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

static const struct call *call_at(unsigned which)
{
	which %= CALLS + eth_ncalls;
	return which < CALLS ? &calls[which] : &eth_calls[which - CALLS];
}

static void put(struct uv_program *p, struct fuzz_call *c, const struct attr *a)
{
	const uint16_t types[2] = { 0x05, 0x11 };
	uint8_t data[NIC_DATA] = { 0 };
	uint16_t len;

	switch (a->kind) {
	case END:
		break;
	case VALUE:
		call_value(c, a->id, a->len, a->arg);
		break;
	case OUT:
		call_out(c, a->id, a->len);
		break;
	case FD:
		call_value(c, a->id, 0, uv_fd(p, (enum uv_fd)a->arg));
		break;
	case FD_OUT:
		call_value(c, a->id, 0, 0)->kind = FUZZ_FD_OUT;
		break;
	case HANDLE:
		call_value(c, a->id, a->len, uv_handle(p, (enum uv_kind)a->arg));
		break;
	case HANDLE_OUT:
		call_value(c, a->id, 0, 0);
		break;
	case WRITE:
		len = fill_write(p, (uint32_t)a->arg, data);
		call_in(c, a->id, data, len);
		break;
	case UHW:
		len = fill_uhw(p, (enum uhw)a->arg, data);
		call_in(c, a->id, data, len);
		break;
	case CMD:
		len = (uint16_t)box_fill(p->nic, (uint16_t)a->arg, p->nic->qpn, data);
		call_in(c, a->id, data, len);
		break;
	case TYPES:
		call_in(c, a->id, types, sizeof(types));
		break;
	case ETH:
		len = eth_fill(p, a->arg, data);
		call_in(c, a->id, data, len);
		break;
	}
}

void uv_prepare(struct uv_program *p, struct fuzz_call *c, unsigned which)
{
	const struct call *call = call_at(which);
	const struct attr *a = call->a;

	call_start(c, call->object, call->method);
	for (; a->kind != END; a++)
		put(p, c, a);
}

/* Reads a word of the output of a write command. False: the call has no output. */
static bool output_word(const struct fuzz_call *c, int at, uint32_t *word)
{
	const struct fuzz_attr *out = c->a, *end = c->a + c->n;

	while (out < end && (out->id != UVERBS_ATTR_CORE_OUT || out->kind != FUZZ_OUT))
		out++;
	if (out < end)
		memcpy(word, out->data + at, 4);
	return out < end;
}

static void keep_eth(struct uv_program *p, const struct fuzz_call *c, uint64_t what)
{
	enum uv_kind kind;
	uint32_t handle;
	int at = eth_handle_at(what, &kind);

	if (at >= 0 && output_word(c, at, &handle))
		p->handle[kind] = handle;
}

/* Stores the handle that a write command created: the first word of its output. */
static void keep_write(struct uv_program *p, const struct fuzz_call *c, uint32_t cmd)
{
	uint32_t first;

	if (!output_word(c, 0, &first))
		return;
	switch (cmd) {
	case IB_USER_VERBS_CMD_ALLOC_PD:
		p->handle[UV_PD] = first;
		break;
	case IB_USER_VERBS_CMD_REG_MR:
		p->handle[UV_MR] = first;
		break;
	case IB_USER_VERBS_CMD_CREATE_AH:
		p->handle[UV_AH] = first;
		break;
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		p->fd[UV_CHANNEL] = (int)first;
		if (p->nic->nfds < NIC_FDS)
			p->nic->fds[p->nic->nfds++] = (int)first;
		break;
	}
}

void uv_keep(struct uv_program *p, const struct fuzz_call *c, unsigned which)
{
	const struct attr *a = call_at(which)->a;
	unsigned i;

	for (i = 0; a[i].kind != END && i < c->n; i++) {
		if (a[i].kind == HANDLE_OUT)
			p->handle[a[i].arg] = c->a[i].value;
		else if (a[i].kind == FD_OUT)
			p->fd[a[i].arg] = (int)c->a[i].value;
		else if (a[i].kind == WRITE)
			keep_write(p, c, (uint32_t)a[i].arg);
		else if (a[i].kind == ETH)
			keep_eth(p, c, a[i].arg);
	}
}
