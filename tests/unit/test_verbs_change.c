/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Changes of objects in use, through libibverbs: resizing a CQ, and changing the
 * memory, rights and PD of a region.
 */
#include <rdma/mlx5-abi.h>

#include "../lib/flowcall.h"
#include "../lib/vb.h"

#define AT 4096u

static struct vb v;
static struct ibv_cq *cq;
static struct ibv_qp *qp, *peer;

static void open_all(void)
{
	v = vb_open(4 * AT);
	cq = ibv_create_cq(v.ctx, 15, NULL, NULL, 0);
	cr_assert(cq);
	qp = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	peer = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	vb_connect(&v, qp, peer);
}

static void close_all(void)
{
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_qp(peer), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

TestSuite(verbs_change, .init = open_all, .fini = close_all);

static int post_write(uint64_t id, uint32_t rkey, uint8_t *to)
{
	struct ibv_sge sge = vb_sge(&v, 0, 8);
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)to, rkey } },
			   *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* Posts n writes, one after another, and waits for the data of each. */
static void write_some(uint64_t first, unsigned n)
{
	volatile uint8_t *there = v.mem + AT;
	time_t end = time(NULL) + VB_WAIT_S;
	unsigned i;

	for (i = 0; i < n; i++) {
		v.mem[0] = (uint8_t)(first + i);
		cr_assert_eq(post_write(first + i, v.mr->rkey, v.mem + AT), 0);
		while (*there != (uint8_t)(first + i) && time(NULL) < end)
			;
		cr_assert_eq(*there, (uint8_t)(first + i));
	}
}

static void read_some(uint64_t first, unsigned n)
{
	struct ibv_wc wc;
	unsigned i;

	for (i = 0; i < n; i++) {
		wc = vb_wc(cq);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(wc.wr_id, first + i);
	}
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

/* Unread completions must be kept, also if the old ring was about to wrap. */
Test(verbs_change, cq_resize_keeps_completions)
{
	unsigned n;

	for (n = 0; n < 20; n++) {
		write_some(10 * n, 7);
		cr_assert_eq(ibv_resize_cq(cq, n % 2 ? 15 : 60), 0, "resize failed in round %u", n);
		cr_assert_geq(cq->cqe, n % 2 ? 15 : 60);
		write_some(10 * n + 7, 3);
		read_some(10 * n, 10);
	}
}

Test(verbs_change, cq_resize_below_its_content_is_refused)
{
	write_some(0, 9);
	cr_assert_neq(ibv_resize_cq(cq, 7), 0, "a CQ with 9 completions must not shrink to 8");
	read_some(0, 9);
	cr_assert_eq(ibv_resize_cq(cq, 7), 0);
	write_some(9, 5);
	read_some(9, 5);
}

/* Resizes without libmlx5, which always keeps the size of a CQE. Returns 0 or the errno. */
static int resize_raw(void *ring, uint16_t cqe_size)
{
	struct ib_uverbs_resize_cq in = { .cq_handle = cq->handle, .cqe = 15 };
	struct mlx5_ib_resize_cq drv = { .buf_addr = (uintptr_t)ring, .cqe_size = cqe_size };
	uint64_t out[4];
	struct raw r;

	raw_start(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_attr(&r, UVERBS_ATTR_WRITE_CMD, 8, IB_USER_VERBS_CMD_RESIZE_CQ);
	raw_attr(&r, UVERBS_ATTR_CORE_IN, sizeof(in), (uintptr_t)&in);
	raw_attr(&r, UVERBS_ATTR_CORE_OUT, sizeof(out), (uintptr_t)out);
	raw_attr(&r, UVERBS_ATTR_UHW_IN, sizeof(drv), (uintptr_t)&drv);
	return raw_call(v.ctx, &r);
}

Test(verbs_change, cq_resize_keeps_the_size_of_a_cqe)
{
	void *ring = aligned_alloc(4096, 4096);

	cr_assert(ring);
	memset(ring, 0, 4096);
	cr_expect_eq(resize_raw(ring, 128), EINVAL);
	cr_expect_eq(resize_raw(ring, 0), EINVAL);
	cr_expect_eq(resize_raw(ring, 64), 0);
	close_all();
	free(ring);
	open_all();
}

static enum ibv_wc_status write_to(struct ibv_mr *mr, void *to)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	enum ibv_wc_status status;

	cr_assert_eq(post_write(1, mr->rkey, to), 0);
	status = vb_wc(cq).status;
	if (status != IBV_WC_SUCCESS) {
		cr_assert_eq(ibv_modify_qp(qp, &reset, IBV_QP_STATE), 0);
		cr_assert_eq(ibv_modify_qp(peer, &reset, IBV_QP_STATE), 0);
		vb_connect(&v, qp, peer);
	}
	return status;
}

Test(verbs_change, rereg_mr_changes_memory_rights_and_pd)
{
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	uint8_t *other = aligned_alloc(4096, 4096);
	struct ibv_pd *pd = ibv_alloc_pd(v.ctx);
	struct ibv_mr *mr = ibv_reg_mr(v.pd, v.mem + AT, AT, all);

	cr_assert(mr && pd && other);
	cr_assert_eq(write_to(mr, v.mem + AT), IBV_WC_SUCCESS);
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 4096, 0), 0);
	cr_assert_eq(write_to(mr, other), IBV_WC_SUCCESS);
	cr_assert_eq(write_to(mr, v.mem + AT), IBV_WC_REM_ACCESS_ERR,
		     "the old memory must not be accessible");

	cr_assert_eq(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		0);
	cr_assert_eq(write_to(mr, other), IBV_WC_REM_ACCESS_ERR,
		     "a write without the right must be refused");
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_REMOTE_WRITE),
		     IBV_REREG_MR_ERR_CMD, "remote without local write must be refused");
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, all), 0);
	cr_assert_eq(write_to(mr, other), IBV_WC_SUCCESS);

	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	cr_assert_eq(write_to(mr, other), IBV_WC_REM_ACCESS_ERR,
		     "a region of another PD must not be accessible");
	cr_assert_eq(ibv_dealloc_pd(pd), EBUSY, "the PD is in use");
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	free(other);
}
