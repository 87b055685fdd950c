/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls for raw packet QPs, work queues and indirection tables that no library makes: each
 * wrong value is refused with the kernel's errno and leaves no object.
 */
#include "../lib/raw.h"

#include "../lib/flowcall.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>

#define EX(cmd) (IB_USER_VERBS_CMD_FLAG_EXTENDED | (cmd))

static struct vb v;
static struct ibv_cq *cq;
static uint32_t uar, before;

/* libmlx5 keeps the register page of its first QP. The NIC numbers pages from 1 on. */
static void open_all(void)
{
	raw_need();
	v = vb_open(4 * 4096);
	cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	cr_assert(cq);
	cr_assert_eq(ibv_destroy_qp(raw_qp(&v, cq, 4, 4, 0)), 0);
	uar = 1;
	before = raw_live();
}

static void close_all(void)
{
	cr_assert_eq(raw_live(), before, "%u objects, %u before", raw_live(), before);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

TestSuite(verbs_raw_ioctl, .init = open_all, .fini = close_all);

/* ---- raw packet QPs ---- */
static struct mlx5_ib_create_qp drv;
static struct ib_uverbs_qp_cap cap;
static uint32_t qpn;
static uint64_t answer[8];

static void qp_call(struct raw *r)
{
	drv = (struct mlx5_ib_create_qp){
		.buf_addr = (uintptr_t)v.mem,
		.sq_buf_addr = (uintptr_t)v.mem + 4096,
		.db_addr = (uintptr_t)v.mem + 8192,
		.sq_wqe_count = 4,
		.rq_wqe_count = 4,
		.rq_wqe_shift = 4,
		.flags = MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_BFREG_INDEX,
		.bfreg_index = uar,
	};
	raw_start(r, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, v.pd->handle);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, cq->handle);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, cq->handle);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_CAP, sizeof(cap), (uintptr_t)&cap);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_TYPE, 4, IB_UVERBS_QPT_RAW_PACKET);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap), (uintptr_t)&cap);
	raw_attr(r, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, sizeof(qpn), (uintptr_t)&qpn);
	raw_attr(r, UVERBS_ATTR_UHW_IN, sizeof(drv), (uintptr_t)&drv);
	raw_attr(r, UVERBS_ATTR_UHW_OUT, sizeof(answer), (uintptr_t)answer);
}

static int qp_destroy(uint32_t handle)
{
	struct ib_uverbs_destroy_qp_resp resp;
	struct raw r;

	raw_start(&r, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
	raw_attr(&r, UVERBS_ATTR_DESTROY_QP_HANDLE, 0, handle);
	raw_attr(&r, UVERBS_ATTR_DESTROY_QP_RESP, sizeof(resp), (uintptr_t)&resp);
	return raw_call(v.ctx, &r);
}

Test(verbs_raw_ioctl, valid_qp)
{
	const struct mlx5_ib_create_qp_resp *resp = (const void *)answer;
	uint32_t handle;
	struct raw r;

	qp_call(&r);
	cr_assert_eq(raw_create(v.ctx, &r, &handle), 0);
	cr_assert_eq(resp->comp_mask,
		     MLX5_IB_CREATE_QP_RESP_MASK_TIRN | MLX5_IB_CREATE_QP_RESP_MASK_TISN |
			     MLX5_IB_CREATE_QP_RESP_MASK_RQN | MLX5_IB_CREATE_QP_RESP_MASK_SQN);
	cr_assert_eq(resp->sqn, qpn);
	cr_assert_neq(resp->rqn, qpn);
	cr_assert_eq(qp_destroy(handle), 0);
	cr_assert_eq(qp_destroy(handle), ENOENT);
}

Test(verbs_raw_ioctl, wrong_queues)
{
	uint32_t handle;
	struct raw r;

#define WRONG(field, value, err) \
	do { \
		qp_call(&r); \
		drv.field = (value); \
		cr_expect_eq(raw_create(v.ctx, &r, &handle), err, #field " = " #value); \
	} while (0)
	WRONG(sq_wqe_count, 3, EINVAL);
	WRONG(sq_wqe_count, 1u << 16, EINVAL);
	WRONG(rq_wqe_count, 5, EINVAL);
	WRONG(rq_wqe_count, 1u << 16, EINVAL);
	WRONG(rq_wqe_shift, 3, EINVAL);
	WRONG(rq_wqe_shift, 13, EINVAL);
	WRONG(rq_wqe_shift, 64, EINVAL);
	WRONG(db_addr, (uintptr_t)v.mem + 2, EINVAL);
	WRONG(db_addr, 4096, EFAULT);
	WRONG(buf_addr, (uintptr_t)v.mem + 16, EINVAL);
	WRONG(buf_addr, 4096, EFAULT);
	WRONG(sq_buf_addr, (uintptr_t)v.mem + 32, EINVAL);
	WRONG(sq_buf_addr, 4096, EFAULT);
	WRONG(bfreg_index, 4095, EINVAL);
	WRONG(flags, MLX5_QP_FLAG_BFREG_INDEX, EINVAL);
	WRONG(flags, drv.flags | MLX5_QP_FLAG_SIGNATURE, EINVAL);
	WRONG(flags, drv.flags | MLX5_QP_FLAG_TUNNEL_OFFLOADS, EINVAL);
	WRONG(flags, drv.flags | 1u << 20, EINVAL);
#undef WRONG
}

Test(verbs_raw_ioctl, wrong_attributes)
{
	uint32_t handle;
	struct raw r;

#define WRONG(id, len, value, err) \
	do { \
		qp_call(&r); \
		raw_attr(&r, id, len, value); \
		cr_expect_eq(raw_create(v.ctx, &r, &handle), err, #id " = " #value); \
	} while (0)
	WRONG(UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, cq->handle, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, v.pd->handle, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, 0x12345, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 0, cq->handle, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, 0, cq->handle, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_QP_FLAGS, 4, 1u << 20, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, 4, 1, EOPNOTSUPP);
	WRONG(UVERBS_ATTR_CREATE_QP_EVENT_FD, 0, 0x7fff, EBADF);
#undef WRONG
	qp_call(&r);
	raw_drop(&r, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
	cr_expect_eq(raw_create(v.ctx, &r, &handle), EINVAL);
	qp_call(&r);
	raw_drop(&r, UVERBS_ATTR_UHW_IN);
	cr_expect_eq(raw_create(v.ctx, &r, &handle), EINVAL);
}

/* ---- write commands ---- */
static int write_cmd(uint32_t cmd, const void *in, uint16_t len)
{
	uint64_t out[32];
	struct raw r;

	raw_start(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_attr(&r, UVERBS_ATTR_CORE_IN, len, (uintptr_t)in);
	raw_attr(&r, UVERBS_ATTR_CORE_OUT, sizeof(out), (uintptr_t)out);
	raw_attr(&r, UVERBS_ATTR_WRITE_CMD, 8, cmd);
	return raw_call(v.ctx, &r);
}

static struct ibv_wq *a_wq(void)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ,
					 .max_wr = 4,
					 .max_sge = 1,
					 .pd = v.pd,
					 .cq = cq };
	struct ibv_wq *wq = ibv_create_wq(v.ctx, &init);

	cr_assert(wq);
	return wq;
}

Test(verbs_raw_ioctl, rss_qp_has_no_state)
{
	struct ibv_wq *wq = a_wq();
	struct ibv_rwq_ind_table_init_attr init = { .ind_tbl = &wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(v.ctx, &init);
	uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex rss = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = v.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, 40, key, IBV_RX_HASH_SRC_IPV4 },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(v.ctx, &rss);
	struct ib_uverbs_query_qp query = { .attr_mask = IBV_QP_STATE };
	struct ib_uverbs_modify_qp modify = { .attr_mask = IBV_QP_STATE | IBV_QP_PORT,
					      .qp_state = IBV_QPS_INIT,
					      .port_num = 1 };

	cr_assert(qp);
	query.qp_handle = modify.qp_handle = qp->handle;
	cr_expect_eq(write_cmd(IB_USER_VERBS_CMD_QUERY_QP, &query, sizeof(query)), EOPNOTSUPP);
	cr_expect_eq(write_cmd(IB_USER_VERBS_CMD_MODIFY_QP, &modify, sizeof(modify)), EOPNOTSUPP);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}

Test(verbs_raw_ioctl, wrong_data_of_the_driver_in_a_transition)
{
	static const struct {
		struct mlx5_ib_modify_qp data;
		int err;
	} cases[] = {
		{ { .comp_mask = 1 }, EOPNOTSUPP },
		{ { .burst_info.reserved = 1 }, EOPNOTSUPP },
		{ { .burst_info.max_burst_sz = 1 }, EINVAL },
		{ { .burst_info.typical_pkt_sz = 1 }, EINVAL },
		{ { .comp_mask = 0 }, 0 },
	};
	struct ibv_qp *qp = raw_qp(&v, cq, 4, 4, 0);
	struct ib_uverbs_modify_qp in = { .qp_handle = qp->handle,
					  .attr_mask = IBV_QP_STATE | IBV_QP_PORT,
					  .qp_state = IBV_QPS_INIT,
					  .port_num = 1 };
	struct raw r;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_start(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		raw_attr(&r, UVERBS_ATTR_CORE_IN, sizeof(in), (uintptr_t)&in);
		raw_attr(&r, UVERBS_ATTR_UHW_IN, sizeof(cases[i].data), (uintptr_t)&cases[i].data);
		raw_attr(&r, UVERBS_ATTR_WRITE_CMD, 8, IB_USER_VERBS_CMD_MODIFY_QP);
		cr_expect_eq(raw_call(v.ctx, &r), cases[i].err, "case %zu", i);
	}
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

Test(verbs_raw_ioctl, wrong_tables)
{
	struct ibv_wq *wq = a_wq();
	uint32_t in[8] = { 0, 1, wq->handle, wq->handle, 0, 0, 0, 0 };
	const uint32_t cmd = EX(IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL);

	in[0] = 1;
	cr_expect_eq(write_cmd(cmd, in, 16), EOPNOTSUPP, "comp_mask");
	in[0] = 0;
	in[1] = 2;
	cr_expect_eq(write_cmd(cmd, in, 16), ENOSPC, "the list is too short");
	cr_expect_eq(write_cmd(cmd, in, 24), EINVAL, "no such queues");
	in[1] = 14;
	cr_expect_eq(write_cmd(cmd, in, 16), EINVAL);
	in[1] = 0xffffffff;
	cr_expect_eq(write_cmd(cmd, in, 16), EINVAL);
	cr_expect_eq(write_cmd(cmd, in, 4), ENOSPC);
	in[1] = 0;
	in[2] = 0x12345;
	cr_expect_eq(write_cmd(cmd, in, 16), EINVAL);
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}

/* ---- work queues ---- */
static struct mlx5_ib_create_wq wq_drv;
static uint32_t max_wr, max_sge, wqn;

static void wq_call(struct raw *r)
{
	wq_drv = (struct mlx5_ib_create_wq){ .buf_addr = (uintptr_t)v.mem,
					     .db_addr = (uintptr_t)v.mem + 8192,
					     .rq_wqe_count = 4,
					     .rq_wqe_shift = 4 };
	raw_start(r, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_HANDLE, 0, 0);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, 0, v.pd->handle);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, 0, cq->handle);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_TYPE, 4, IB_UVERBS_WQT_RQ);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_MAX_WR, 4, 4);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_MAX_SGE, 4, 1);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, 4, (uintptr_t)&max_wr);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, 4, (uintptr_t)&max_sge);
	raw_attr(r, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, 4, (uintptr_t)&wqn);
	raw_attr(r, UVERBS_ATTR_UHW_IN, sizeof(wq_drv), (uintptr_t)&wq_drv);
}

Test(verbs_raw_ioctl, wrong_work_queues)
{
	uint32_t handle;
	struct raw r;

#define WRONG(field, value, err) \
	do { \
		wq_call(&r); \
		wq_drv.field = (value); \
		cr_expect_eq(raw_create(v.ctx, &r, &handle), err, #field " = " #value); \
	} while (0)
	WRONG(rq_wqe_count, 0, EINVAL);
	WRONG(rq_wqe_count, 3, EINVAL);
	WRONG(rq_wqe_count, 1u << 16, EINVAL);
	WRONG(rq_wqe_shift, 3, EINVAL);
	WRONG(rq_wqe_shift, 13, EINVAL);
	WRONG(buf_addr, 0, EINVAL);
	WRONG(buf_addr, (uintptr_t)v.mem + 16, EINVAL);
	WRONG(buf_addr, 4096, EFAULT);
	WRONG(db_addr, (uintptr_t)v.mem + 2, EINVAL);
	WRONG(db_addr, 4096, EFAULT);
	WRONG(comp_mask, MLX5_IB_CREATE_WQ_STRIDING_RQ, EOPNOTSUPP);
	WRONG(flags, MLX5_WQ_FLAG_SIGNATURE, EOPNOTSUPP);
#undef WRONG
#define WRONG(id, len, value, err) \
	do { \
		wq_call(&r); \
		raw_attr(&r, id, len, value); \
		cr_expect_eq(raw_create(v.ctx, &r, &handle), err, #id " = " #value); \
	} while (0)
	WRONG(UVERBS_ATTR_CREATE_WQ_PD_HANDLE, 0, cq->handle, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, 0, v.pd->handle, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_WQ_TYPE, 4, 1, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_WQ_FLAGS, 4, 16, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_WQ_MAX_WR, 4, 1u << 16, EINVAL);
	WRONG(UVERBS_ATTR_CREATE_WQ_EVENT_FD, 0, 0x7fff, EBADF);
	WRONG(UVERBS_ATTR_UHW_IN, 16, (uintptr_t)&wq_drv, EINVAL);
#undef WRONG
	wq_call(&r);
	cr_assert_eq(raw_create(v.ctx, &r, &handle), 0);
	raw_start(&r, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY);
	raw_attr(&r, UVERBS_ATTR_DESTROY_WQ_HANDLE, 0, handle);
	raw_attr(&r, UVERBS_ATTR_DESTROY_WQ_RESP, 4, (uintptr_t)&wqn);
	cr_assert_eq(raw_call(v.ctx, &r), 0);
	cr_assert_eq(raw_call(v.ctx, &r), ENOENT);
}
