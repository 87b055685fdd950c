/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Valid calls of raw Ethernet for fuzz_uverbs.c: raw packet and RSS QPs, work queues,
 * indirection tables, flow rules, matchers and counters. */
#include "uverbs_table.h"

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

/* As in the kernel's interface, the specs are behind the head. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
#endif

enum what {
	RAW_QP,
	RSS_QP,
	WQ,
	CAP,
	NO_CAP,
	QUERY_RAW,
	MODIFY_RAW,
	MODIFY_WQ,
	MAKE_TABLE,
	MAKE_FLOW,
	DROP_FLOW,
	FLOW_DATA,
	MATCH_MASK,
	MATCH_VALUE,
};

/* ---- input structures ---- */
static uint16_t fill_table(struct uv_program *p, uint8_t *data)
{
	struct ib_uverbs_ex_create_rwq_ind_table head = { .log_ind_tbl_size = 2 };
	uint32_t i, handle;

	memcpy(data, &head, sizeof(head));
	for (i = 0; i < 4; i++) {
		handle = (uint32_t)uv_handle(p, UV_WQ);
		memcpy(data + sizeof(head) + 4 * i, &handle, 4);
	}
	return sizeof(head) + 16;
}

/* A rule and its list of specs, which may be longer than its maximum */
struct list {
	struct ib_uverbs_create_flow head;
	uint8_t specs[512];
};

static uint8_t *add_spec(struct list *l, uint32_t type, uint16_t filter)
{
	struct ib_uverbs_flow_spec_hdr h = { .type = type,
					     .size = (uint16_t)(sizeof(h) + 2 * filter) };
	uint8_t *at = l->specs + l->head.flow_attr.size;

	memcpy(at, &h, sizeof(h));
	l->head.flow_attr.size = (uint16_t)(l->head.flow_attr.size + h.size);
	l->head.flow_attr.num_of_specs++;
	return at + sizeof(h);
}

/* Adds the specs that the bits of `which` select; the input gives a byte of value or mask. */
static void add_specs(struct uv_program *p, struct list *l, uint8_t which)
{
	uint32_t counters, tag = which;
	uint8_t *s;

	if (which & 1) {
		s = add_spec(l, IBV_FLOW_SPEC_ETH, 16);
		s[0] = fuzz_u8(p->in);
		s[16] = 0xff;
	}
	if (which & 2)
		add_spec(l, IBV_FLOW_SPEC_IPV4, 12)[12 + 4] = fuzz_u8(p->in);
	else if (which & 4)
		add_spec(l, IBV_FLOW_SPEC_IPV6, 40)[40 + 16] = fuzz_u8(p->in);
	if (which & 8)
		add_spec(l, which & 0x40 ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP, 4);
	if (which & 16)
		memcpy(add_spec(l, IBV_FLOW_SPEC_ACTION_TAG, 4), &tag, 4);
	if (which & 32) {
		counters = (uint32_t)uv_handle(p, UV_COUNTERS);
		memcpy(add_spec(l, IBV_FLOW_SPEC_ACTION_COUNT, 4), &counters, 4);
	}
	if (which & 128)
		add_spec(l, IBV_FLOW_SPEC_ACTION_DROP, 0);
}

static uint16_t fill_flow(struct uv_program *p, uint8_t *data)
{
	struct list l = { .head = { .qp_handle = (uint32_t)uv_handle(p, UV_RAW) } };
	uint8_t how = fuzz_u8(p->in);

	l.head.flow_attr.type = how & 3;
	l.head.flow_attr.flags = how >> 2 & 6;
	l.head.flow_attr.priority = how >> 6;
	l.head.flow_attr.port = 1;
	add_specs(p, &l, fuzz_u8(p->in));
	memcpy(data, &l, sizeof(l));
	return (uint16_t)(sizeof(l.head) + l.head.flow_attr.size);
}

static uint16_t fill_flow_data(uint8_t *data)
{
	struct {
		struct mlx5_ib_create_flow head;
		struct mlx5_ib_flow_counters_data counters;
	} in = { .head = { .ncounters_data = 1 }, .counters = { .ncounters = 2 } };
	const struct mlx5_ib_flow_counters_desc desc[2] = { { 0, 1 }, { 1, 0 } };

	memcpy((void *)(uintptr_t)(FUZZ_ARENA + 0x8000), desc, sizeof(desc));
	in.counters.counters_data = (void *)(uintptr_t)(FUZZ_ARENA + 0x8000);
	memcpy(data, &in, sizeof(in));
	return sizeof(in);
}

static uint16_t fill_state(struct uv_program *p, void *data)
{
	uint8_t to = fuzz_u8(p->in);

	FILL(ib_uverbs_ex_modify_qp,
	     .base = { .qp_handle = (uint32_t)uv_handle(p, UV_RAW),
		       .qp_state = to % 8,
		       .attr_mask = (uint32_t)IBV_QP_STATE |
				    (to % 8 == IBV_QPS_INIT ? (uint32_t)IBV_QP_PORT : 0) |
				    (to & 0x40 ? (uint32_t)IBV_QP_RATE_LIMIT : 0),
		       .port_num = 1 });
}

static uint16_t fill_wq_state(struct uv_program *p, void *data)
{
	uint8_t to = fuzz_u8(p->in);

	FILL(ib_uverbs_ex_modify_wq, .wq_handle = (uint32_t)uv_handle(p, UV_WQ),
	     .attr_mask = to & 0x40 ? (uint32_t)IBV_WQ_ATTR_FLAGS : IBV_WQ_ATTR_STATE,
	     .wq_state = to % 4, .flags = to >> 7, .flags_mask = 1);
}

uint16_t eth_fill(struct uv_program *p, uint64_t what, void *data)
{
	switch ((enum what)what) {
	case RAW_QP:
		FILL(mlx5_ib_create_qp, .buf_addr = QP_AT, .db_addr = DBR_AT + 192,
		     .sq_buf_addr = QP_AT + 0x1000, .sq_wqe_count = 16, .rq_wqe_count = 4,
		     .rq_wqe_shift = 5, .uidx = 6,
		     .flags = MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_BFREG_INDEX,
		     .bfreg_index = p->nic->uar_id);
	case RSS_QP:
		FILL(mlx5_ib_create_qp_rss, .rx_hash_fields_mask = 0xc3,
		     .rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ, .rx_key_len = 40);
	case WQ:
		FILL(mlx5_ib_create_wq, .buf_addr = QP_AT, .db_addr = DBR_AT + 256,
		     .rq_wqe_count = 8, .rq_wqe_shift = 4, .user_index = 7);
	case CAP:
		FILL(ib_uverbs_qp_cap, .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 1,
		     .max_recv_sge = 2);
	case NO_CAP:
		return sizeof(struct ib_uverbs_qp_cap);
	case QUERY_RAW:
		FILL(ib_uverbs_query_qp, .qp_handle = (uint32_t)uv_handle(p, UV_RAW));
	case MODIFY_RAW:
		return fill_state(p, data);
	case MODIFY_WQ:
		return fill_wq_state(p, data);
	case MAKE_TABLE:
		return fill_table(p, data);
	case MAKE_FLOW:
		return fill_flow(p, data);
	case DROP_FLOW:
		FILL(ib_uverbs_destroy_flow, .flow_handle = (uint32_t)uv_handle(p, UV_FLOW));
	case FLOW_DATA:
		return fill_flow_data(data);
	case MATCH_MASK:
		memset(data, 0xff, 6);
		return 64;
	case MATCH_VALUE:
		memset(data, 0x02, 6);
		return 64;
	}
	return 0;
}

int eth_handle_at(uint64_t what, enum uv_kind *kind)
{
	switch ((enum what)what) {
	case MAKE_TABLE:
		*kind = UV_TABLE;
		return offsetof(struct ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_handle);
	case MAKE_FLOW:
		*kind = UV_FLOW;
		return offsetof(struct ib_uverbs_create_flow_resp, flow_handle);
	default:
		return -1;
	}
}

/* ---- the calls ---- */
#define INVOKE(cmd, what, out, ...) \
	{ \
		UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, \
		{ \
			{ VALUE, UVERBS_ATTR_WRITE_CMD, 8, (cmd) }, \
				{ ETH, UVERBS_ATTR_CORE_IN, 0, (what) }, \
				{ OUT, UVERBS_ATTR_CORE_OUT, (out), 0 }, ##__VA_ARGS__ \
		} \
	}
#define UHW_OUT(n) \
	{ \
		OUT, UVERBS_ATTR_UHW_OUT, (n), 0 \
	}

const struct call eth_calls[] = {
	{ UVERBS_OBJECT_QP,
	  UVERBS_METHOD_QP_CREATE,
	  { { HANDLE_OUT, UVERBS_ATTR_CREATE_QP_HANDLE, 0, UV_RAW },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, UV_PD },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, UV_CQ },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, UV_CQ },
	    { VALUE, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 0x444 },
	    { ETH, UVERBS_ATTR_CREATE_QP_CAP, 0, CAP },
	    { VALUE, UVERBS_ATTR_CREATE_QP_TYPE, 4, IB_UVERBS_QPT_RAW_PACKET },
	    { VALUE, UVERBS_ATTR_CREATE_QP_FLAGS, 4, 0 },
	    { FD, UVERBS_ATTR_CREATE_QP_EVENT_FD, 0, UV_ASYNC },
	    { OUT, UVERBS_ATTR_CREATE_QP_RESP_CAP, 20, 0 },
	    { OUT, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, 0 },
	    { ETH, UVERBS_ATTR_UHW_IN, 0, RAW_QP },
	    UHW_OUT(40) } },
	{ UVERBS_OBJECT_WQ,
	  UVERBS_METHOD_WQ_CREATE,
	  { { HANDLE_OUT, UVERBS_ATTR_CREATE_WQ_HANDLE, 0, UV_WQ },
	    { HANDLE, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, 0, UV_PD },
	    { HANDLE, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, 0, UV_CQ },
	    { VALUE, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, 8, 0x555 },
	    { VALUE, UVERBS_ATTR_CREATE_WQ_TYPE, 4, IB_UVERBS_WQT_RQ },
	    { FD, UVERBS_ATTR_CREATE_WQ_EVENT_FD, 0, UV_ASYNC },
	    { VALUE, UVERBS_ATTR_CREATE_WQ_MAX_WR, 4, 8 },
	    { VALUE, UVERBS_ATTR_CREATE_WQ_MAX_SGE, 4, 1 },
	    { VALUE, UVERBS_ATTR_CREATE_WQ_FLAGS, 4, 0 },
	    { OUT, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4, 0 },
	    { OUT, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, 4, 0 },
	    { OUT, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4, 0 },
	    { ETH, UVERBS_ATTR_UHW_IN, 0, WQ },
	    UHW_OUT(8) } },
	INVOKE(EX(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL), MAKE_TABLE, 16, UHW_OUT(8)),
	{ UVERBS_OBJECT_QP,
	  UVERBS_METHOD_QP_CREATE,
	  { { HANDLE_OUT, UVERBS_ATTR_CREATE_QP_HANDLE, 0, UV_RAW },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, UV_PD },
	    { HANDLE, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, 0, UV_TABLE },
	    { VALUE, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 0x666 },
	    { ETH, UVERBS_ATTR_CREATE_QP_CAP, 0, NO_CAP },
	    { VALUE, UVERBS_ATTR_CREATE_QP_TYPE, 4, IB_UVERBS_QPT_RAW_PACKET },
	    { FD, UVERBS_ATTR_CREATE_QP_EVENT_FD, 0, UV_ASYNC },
	    { OUT, UVERBS_ATTR_CREATE_QP_RESP_CAP, 20, 0 },
	    { OUT, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, 0 },
	    { ETH, UVERBS_ATTR_UHW_IN, 0, RSS_QP },
	    UHW_OUT(40) } },
	INVOKE(EX(IB_USER_VERBS_EX_CMD_MODIFY_QP), MODIFY_RAW, 8, UHW_OUT(16)),
	INVOKE(IB_USER_VERBS_CMD_QUERY_QP, QUERY_RAW, sizeof(struct ib_uverbs_query_qp_resp)),
	INVOKE(EX(IB_USER_VERBS_EX_CMD_MODIFY_WQ), MODIFY_WQ, 8),
	{ UVERBS_OBJECT_QP,
	  UVERBS_METHOD_QP_DESTROY,
	  { { HANDLE, UVERBS_ATTR_DESTROY_QP_HANDLE, 0, UV_RAW },
	    { OUT, UVERBS_ATTR_DESTROY_QP_RESP, 4, 0 } } },
	{ UVERBS_OBJECT_WQ,
	  UVERBS_METHOD_WQ_DESTROY,
	  { { HANDLE, UVERBS_ATTR_DESTROY_WQ_HANDLE, 0, UV_WQ },
	    { OUT, UVERBS_ATTR_DESTROY_WQ_RESP, 4, 0 } } },
	{ UVERBS_OBJECT_RWQ_IND_TBL,
	  UVERBS_METHOD_RWQ_IND_TBL_DESTROY,
	  { { HANDLE, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, 0, UV_TABLE } } },
	INVOKE(EX(IB_USER_VERBS_EX_CMD_CREATE_FLOW), MAKE_FLOW, 8),
	INVOKE(EX(IB_USER_VERBS_EX_CMD_CREATE_FLOW), MAKE_FLOW, 8,
	       { ETH, UVERBS_ATTR_UHW_IN, 0, FLOW_DATA }),
	INVOKE(EX(IB_USER_VERBS_EX_CMD_DESTROY_FLOW), DROP_FLOW, 8),
	{ UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, { { HANDLE, 0, 0, UV_FLOW } } },
	{ MLX5_IB_OBJECT_FLOW_MATCHER,
	  MLX5_IB_METHOD_FLOW_MATCHER_CREATE,
	  { { HANDLE_OUT, MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, 0, UV_MATCHER },
	    { ETH, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, 0, MATCH_MASK },
	    { VALUE, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, 2, 1 },
	    { VALUE, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, 1, 1 },
	    { VALUE, MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, 8, 0 } } },
	{ MLX5_IB_OBJECT_FLOW_MATCHER,
	  MLX5_IB_METHOD_FLOW_MATCHER_DESTROY,
	  { { HANDLE, MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, 0, UV_MATCHER } } },
	{ UVERBS_OBJECT_FLOW,
	  MLX5_IB_METHOD_CREATE_FLOW,
	  { { HANDLE_OUT, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0, UV_FLOW },
	    { ETH, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, 0, MATCH_VALUE },
	    { HANDLE, MLX5_IB_ATTR_CREATE_FLOW_DEST_QP, 0, UV_RAW },
	    { HANDLE, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, 0, UV_MATCHER },
	    { VALUE, MLX5_IB_ATTR_CREATE_FLOW_TAG, 4, 0x123 } } },
	{ UVERBS_OBJECT_FLOW,
	  MLX5_IB_METHOD_CREATE_FLOW,
	  { { HANDLE_OUT, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0, UV_FLOW },
	    { ETH, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, 0, MATCH_VALUE },
	    { HANDLE, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, 0, UV_MATCHER },
	    { VALUE, MLX5_IB_ATTR_CREATE_FLOW_FLAGS, 4, MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP } } },
	{ UVERBS_OBJECT_FLOW,
	  MLX5_IB_METHOD_DESTROY_FLOW,
	  { { HANDLE, MLX5_IB_ATTR_DESTROY_FLOW_HANDLE, 0, UV_FLOW } } },
	{ UVERBS_OBJECT_COUNTERS,
	  UVERBS_METHOD_COUNTERS_CREATE,
	  { { HANDLE_OUT, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, 0, UV_COUNTERS } } },
	{ UVERBS_OBJECT_COUNTERS,
	  UVERBS_METHOD_COUNTERS_READ,
	  { { HANDLE, UVERBS_ATTR_READ_COUNTERS_HANDLE, 0, UV_COUNTERS },
	    { OUT, UVERBS_ATTR_READ_COUNTERS_BUFF, 16, 0 },
	    { VALUE, UVERBS_ATTR_READ_COUNTERS_FLAGS, 4, 0 } } },
	{ UVERBS_OBJECT_COUNTERS,
	  UVERBS_METHOD_COUNTERS_DESTROY,
	  { { HANDLE, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, 0, UV_COUNTERS } } },
	{ MLX5_IB_OBJECT_FLOW_MATCHER,
	  MLX5_IB_METHOD_FLOW_MATCHER_CREATE,
	  { { HANDLE_OUT, MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, 0, UV_MATCHER },
	    { ETH, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, 0, MATCH_MASK },
	    { VALUE, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, 2, 1 },
	    { VALUE, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, 1, 1 },
	    { VALUE, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, 8, IBV_FLOW_ATTR_FLAGS_EGRESS } } },
	{ UVERBS_OBJECT_FLOW,
	  MLX5_IB_METHOD_CREATE_FLOW,
	  { { HANDLE_OUT, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0, UV_FLOW },
	    { ETH, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, 0, MATCH_VALUE },
	    { HANDLE, MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX, 0, UV_TIR },
	    { HANDLE, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, 0, UV_MATCHER },
	    { HANDLE, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, 4, UV_FLOW_COUNTER },
	    { VALUE, MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET, 4, 0 } } },
	{ UVERBS_OBJECT_FLOW,
	  MLX5_IB_METHOD_CREATE_FLOW,
	  { { HANDLE_OUT, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0, UV_FLOW },
	    { ETH, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, 0, MATCH_VALUE },
	    { HANDLE, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, 0, UV_MATCHER },
	    { VALUE, MLX5_IB_ATTR_CREATE_FLOW_FLAGS, 4,
	      MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS } } },
};

const unsigned eth_ncalls = sizeof(eth_calls) / sizeof(eth_calls[0]);
