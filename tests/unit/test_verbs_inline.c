/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Received data in CQEs: libmlx5 permits it for its queue pairs (MLX5_QP_FLAG_SCATTER_CQE)
 * and copies the data from the CQE to the receive buffer. Messages of up to 32 bytes, or 64
 * with CQEs of 128 bytes, must arrive unchanged and be counted; longer ones go to memory.
 */
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>

#include "../lib/vb.h"
#include "../softnic/softnic.h"

#define SIZE  4096u
#define TO    1024u /* where received data is expected */
#define GUARD 0xa5

struct rig {
	struct vb v;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
	struct ibv_srq *srq;
	const struct sn_stats *(*stats)(void);
};

/* sig_all: each send WQE writes a CQE, so responses may be in CQEs, too. */
static struct rig rig_open(const char *cqe_size, int sig_all, bool srq)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 16, .max_sge = 2 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = sig_all,
					 .cap = { .max_send_wr = 16,
						  .max_recv_wr = 16,
						  .max_send_sge = 2,
						  .max_recv_sge = 2 } };
	struct rig r;

	setenv("MLX5_CQE_SIZE", cqe_size, 1);
	r.v = vb_open(SIZE);
	r.srq = srq ? ibv_create_srq(r.v.pd, &shared) : NULL;
	init.srq = r.srq;
	init.send_cq = init.recv_cq = r.cq = ibv_create_cq(r.v.ctx, 64, NULL, NULL, 0);
	r.a = ibv_create_qp(r.v.pd, &init);
	r.b = ibv_create_qp(r.v.pd, &init);
	cr_assert(r.cq && r.a && r.b && !srq == !r.srq);
	vb_connect(&r.v, r.a, r.b);
	*(void **)&r.stats = dlsym(RTLD_DEFAULT, "sn_stats_get");
	cr_assert(r.stats);
	return r;
}

static void rig_close(struct rig *r)
{
	ibv_destroy_qp(r->a);
	ibv_destroy_qp(r->b);
	if (r->srq)
		ibv_destroy_srq(r->srq);
	ibv_destroy_cq(r->cq);
	vb_close(&r->v);
}

static void fill(struct rig *r, uint32_t len)
{
	uint32_t i;

	memset(r->v.mem, GUARD, SIZE);
	for (i = 0; i < len; i++)
		r->v.mem[i] = (uint8_t)(i * 5 + len);
}

static void expect_data(const struct rig *r, uint32_t len)
{
	cr_expect_arr_eq(r->v.mem + TO, r->v.mem, len, "%u bytes arrived changed", len);
	cr_expect_eq(r->v.mem[TO + len], GUARD, "more than %u bytes were written", len);
	cr_expect_eq(r->v.mem[TO - 1], GUARD);
}

/* Sends len bytes from a to b. Returns how many CQEs held data. */
static uint64_t send_bytes(struct rig *r, uint32_t len)
{
	uint64_t before = r->stats()->inline_cqes;
	struct ibv_wc wc;
	int i;

	fill(r, len);
	cr_assert_eq(r->srq ? vb_srq_recv(&r->v, r->srq, 7, TO, 512)
			    : vb_recv(&r->v, r->b, 7, TO, 512),
		     0);
	cr_assert_eq(vb_send(&r->v, r->a, 8, 0, len), 0);
	for (i = 0; i < 2; i++) {
		wc = vb_wc(r->cq);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode & IBV_WC_RECV)
			cr_expect_eq(wc.byte_len, len);
	}
	expect_data(r, len);
	return r->stats()->inline_cqes - before;
}

static uint64_t request(struct rig *r, enum ibv_wr_opcode op, uint32_t len)
{
	uint64_t before = r->stats()->inline_cqes;
	struct ibv_sge sge = vb_sge(&r->v, TO, len);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)r->v.mem;
	wr.wr.rdma.rkey = r->v.mr->rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)r->v.mem;
		wr.wr.atomic.rkey = r->v.mr->rkey;
		wr.wr.atomic.compare_add = 0;
	}
	fill(r, len);
	cr_assert_eq(ibv_post_send(r->a, &wr, &bad), 0);
	cr_assert_eq(vb_wc(r->cq).status, IBV_WC_SUCCESS);
	return r->stats()->inline_cqes - before;
}

Test(verbs_inline, short_messages_are_in_the_cqe)
{
	struct rig r = rig_open("64", 0, false);
	uint32_t len;

	for (len = 1; len <= 32; len++)
		cr_expect_eq(send_bytes(&r, len), 1, "%u bytes are not in the CQE", len);
	cr_expect_eq(send_bytes(&r, 33), 0);
	cr_expect_eq(send_bytes(&r, 0), 0);
	rig_close(&r);
}

Test(verbs_inline, large_cqes_hold_64_bytes)
{
	struct rig r = rig_open("128", 0, false);
	uint32_t len;

	for (len = 1; len <= 64; len++)
		cr_expect_eq(send_bytes(&r, len), 1, "%u bytes are not in the CQE", len);
	cr_expect_eq(send_bytes(&r, 65), 0);
	rig_close(&r);
}

Test(verbs_inline, shared_receive_queue)
{
	struct rig r = rig_open("64", 0, true);

	cr_expect_eq(send_bytes(&r, 32), 1);
	cr_expect_eq(send_bytes(&r, 100), 0);
	rig_close(&r);
}

Test(verbs_inline, responses_if_each_wqe_is_signalled)
{
	struct rig r = rig_open("64", 1, false);

	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 32), 1);
	expect_data(&r, 32);
	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 33), 0);
	expect_data(&r, 33);
	cr_expect_eq(request(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, 8), 1);
	expect_data(&r, 8);
	rig_close(&r);
}

/* libmlx5 of rdma-core 44 copies such a response from one byte before the entry, so the test reads
 * the CQE itself. */
Test(verbs_inline, large_cqes_hold_responses)
{
	struct rig r = rig_open("128", 1, false);
	struct mlx5dv_cq cq;
	struct mlx5dv_obj obj = { .cq = { .in = r.cq, .out = &cq } };

	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
	cr_assert_eq(cq.cqe_size, 128);
	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 65), 0);
	expect_data(&r, 65);
	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 64), 1);
	cr_expect_arr_eq((uint8_t *)cq.buf + 128, r.v.mem, 64);
	rig_close(&r);
}

Test(verbs_inline, no_responses_without_permission)
{
	struct rig r = rig_open("64", 0, false);

	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 8), 0);
	expect_data(&r, 8);
	cr_expect_eq(request(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, 8), 0);
	expect_data(&r, 8);
	rig_close(&r);
}

Test(verbs_inline, switched_off_by_the_variable)
{
	struct rig r;

	setenv("MLX5_SCATTER_TO_CQE", "0", 1);
	r = rig_open("64", 1, false);
	cr_expect_eq(send_bytes(&r, 8), 0);
	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 8), 0);
	rig_close(&r);
}

/* A message that exceeds its receive WQE is an error, although the CQE has room for it. */
Test(verbs_inline, short_receive_buffer)
{
	struct rig r = rig_open("64", 0, false);
	int i, errors = 0;

	cr_assert_eq(vb_recv(&r.v, r.b, 7, TO, 4), 0);
	cr_assert_eq(vb_send(&r.v, r.a, 8, 0, 8), 0);
	for (i = 0; i < 2; i++)
		errors += vb_wc(r.cq).status != IBV_WC_SUCCESS;
	cr_expect_eq(errors, 2);
	rig_close(&r);
}
