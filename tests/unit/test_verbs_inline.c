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
#define IMM   0x11223344u

/* sizes around those that change where data is stored */
static const uint32_t sizes[] = { 0, 1, 2, 31, 32, 33, 63, 64, 65 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

struct kind {
	const char *cqe_size;
	enum ibv_qp_type type; /* 0: RC */
	bool sig_all;	       /* each send WQE writes a CQE, so responses may be in CQEs, too */
	bool srq;
	uint64_t flags; /* of mlx5dv_create_qp() */
};

struct rig {
	struct vb v;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
	struct ibv_srq *srq;
	const struct sn_stats *(*stats)(void);
};

static struct ibv_qp *make_qp(struct rig *r, const struct kind *k)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = k->type ? k->type : IBV_QPT_RC,
					    .sq_sig_all = k->sig_all,
					    .send_cq = r->cq,
					    .recv_cq = r->cq,
					    .srq = r->srq,
					    .cap = { .max_send_wr = 16,
						     .max_recv_wr = 16,
						     .max_send_sge = 2,
						     .max_recv_sge = 2 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = r->v.pd };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
					  .create_flags = (uint32_t)k->flags };

	return mlx5dv_create_qp(r->v.ctx, &init, &dv);
}

static struct rig rig_open(struct kind k)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 16, .max_sge = 2 } };
	struct rig r;

	setenv("MLX5_CQE_SIZE", k.cqe_size, 1);
	r.v = vb_open(SIZE);
	r.srq = k.srq ? ibv_create_srq(r.v.pd, &shared) : NULL;
	r.cq = ibv_create_cq(r.v.ctx, 64, NULL, NULL, 0);
	r.a = make_qp(&r, &k);
	r.b = make_qp(&r, &k);
	cr_assert(r.cq && r.a && r.b && !k.srq == !r.srq);
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

/* Returns how many CQEs held data. A query returns after the NIC has counted all that it wrote. */
static uint64_t counted(const struct rig *r)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(r->a, &attr, IBV_QP_STATE, &init), 0);
	return r->stats()->inline_cqes;
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

/* Posts a receive WQE of 512 bytes in two pieces: the first one ends within 32 bytes. */
static void post_recv(struct rig *r)
{
	struct ibv_sge sge[2] = { vb_sge(&r->v, TO, 11), vb_sge(&r->v, TO + 11, 501) };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = sge, .num_sge = 2 }, *bad;

	cr_assert_eq(r->srq ? ibv_post_srq_recv(r->srq, &wr, &bad) : ibv_post_recv(r->b, &wr, &bad),
		     0);
}

/* Sends len bytes from a to b. Returns how many CQEs held data. */
static uint64_t send_as(struct rig *r, enum ibv_wr_opcode op, uint32_t len)
{
	uint64_t before = counted(r);
	struct ibv_sge sge = vb_sge(&r->v, 0, len);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htobe32(IMM) },
			   *bad;
	struct ibv_wc wc;
	int i;

	wr.wr.rdma.remote_addr = (uintptr_t)r->v.mem + TO;
	wr.wr.rdma.rkey = r->v.mr->rkey;
	fill(r, len);
	post_recv(r);
	cr_assert_eq(ibv_post_send(r->a, &wr, &bad), 0);
	for (i = 0; i < 2; i++) {
		wc = vb_wc(r->cq);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		if (!(wc.opcode & IBV_WC_RECV))
			continue;
		cr_expect_eq(wc.byte_len, len);
		if (op != IBV_WR_SEND)
			cr_expect_eq(be32toh(wc.imm_data), IMM);
	}
	expect_data(r, len);
	return counted(r) - before;
}

static uint64_t send_bytes(struct rig *r, uint32_t len)
{
	return send_as(r, IBV_WR_SEND, len);
}

/* Sends each size between queue pairs of this kind. Up to limit bytes must be in the CQE. */
static void send_sizes(struct kind k, uint32_t limit)
{
	struct rig r = rig_open(k);
	size_t i;

	for (i = 0; i < NSIZES; i++)
		cr_expect_eq(send_bytes(&r, sizes[i]), sizes[i] && sizes[i] <= limit,
			     "%u bytes, limit %u", sizes[i], limit);
	rig_close(&r);
}

static uint64_t request(struct rig *r, enum ibv_wr_opcode op, uint32_t len)
{
	uint64_t before = counted(r);
	struct ibv_sge sge[2] = { vb_sge(&r->v, TO, 3), vb_sge(&r->v, TO + 3, len - 3) };
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = 2,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)r->v.mem;
	wr.wr.rdma.rkey = r->v.mr->rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge[0].length = len;
		wr.num_sge = 1; /* a result is not split */
		wr.wr.atomic.remote_addr = (uintptr_t)r->v.mem;
		wr.wr.atomic.rkey = r->v.mr->rkey;
		wr.wr.atomic.compare_add = 0;
	}
	fill(r, len);
	cr_assert_eq(ibv_post_send(r->a, &wr, &bad), 0);
	cr_assert_eq(vb_wc(r->cq).status, IBV_WC_SUCCESS);
	return counted(r) - before;
}

/* ---- receives ---- */
Test(verbs_inline, short_messages_are_in_the_cqe)
{
	send_sizes((struct kind){ .cqe_size = "64" }, 32);
}

Test(verbs_inline, large_cqes_hold_64_bytes)
{
	send_sizes((struct kind){ .cqe_size = "128" }, 64);
}

Test(verbs_inline, unreliable_connections)
{
	send_sizes((struct kind){ .cqe_size = "64", .type = IBV_QPT_UC }, 32);
	send_sizes((struct kind){ .cqe_size = "128", .type = IBV_QPT_UC }, 64);
}

Test(verbs_inline, shared_receive_queue)
{
	send_sizes((struct kind){ .cqe_size = "64", .srq = true }, 32);
	send_sizes((struct kind){ .cqe_size = "128", .srq = true }, 64);
}

Test(verbs_inline, immediate_values)
{
	struct rig r = rig_open((struct kind){ .cqe_size = "64" });

	cr_expect_eq(send_as(&r, IBV_WR_SEND_WITH_IMM, 0), 0);
	cr_expect_eq(send_as(&r, IBV_WR_SEND_WITH_IMM, 32), 1);
	cr_expect_eq(send_as(&r, IBV_WR_SEND_WITH_IMM, 33), 0);
	cr_expect_eq(send_as(&r, IBV_WR_RDMA_WRITE_WITH_IMM, 8), 0);
	rig_close(&r);
}

/* A message that exceeds its receive WQE is an error, although the CQE has room for it. */
static void expect_short_receive(const char *cqe_size, uint32_t room)
{
	struct rig r = rig_open((struct kind){ .cqe_size = cqe_size });
	struct ibv_wc wc;
	int i;

	fill(&r, room + 1);
	cr_assert_eq(vb_recv(&r.v, r.b, 7, TO, room), 0);
	cr_assert_eq(vb_send(&r.v, r.a, 8, 0, room + 1), 0);
	for (i = 0; i < 2; i++) {
		wc = vb_wc(r.cq);
		cr_expect_eq(wc.status,
			     wc.wr_id == 7 ? IBV_WC_LOC_LEN_ERR : IBV_WC_REM_INV_REQ_ERR);
	}
	cr_expect_eq(r.v.mem[TO], GUARD, "memory was written");
	cr_expect_eq(counted(&r), 0);
	rig_close(&r);
}

Test(verbs_inline, short_receive_buffer)
{
	expect_short_receive("64", 4);
}

Test(verbs_inline, short_receive_buffer_and_large_cqes)
{
	expect_short_receive("128", 63);
}

/* ---- responses ---- */
static void expect_responses(struct kind k)
{
	struct rig r = rig_open(k);

	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 32), 1);
	expect_data(&r, 32);
	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 33), 0);
	expect_data(&r, 33);
	cr_expect_eq(request(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, 8), 1);
	expect_data(&r, 8);
	rig_close(&r);
}

Test(verbs_inline, responses_if_each_wqe_is_signalled)
{
	expect_responses((struct kind){ .cqe_size = "64", .sig_all = true });
}

Test(verbs_inline, responses_if_the_program_permits_them)
{
	expect_responses(
		(struct kind){ .cqe_size = "64", .flags = MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE });
}

/* libmlx5 before rdma-core 45184d2c8 (2026) copies such a response from one byte before the entry,
 * so the test reads the CQE itself. */
Test(verbs_inline, large_cqes_hold_responses)
{
	struct rig r = rig_open((struct kind){ .cqe_size = "128", .sig_all = true });
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
	struct rig r = rig_open((struct kind){ .cqe_size = "64" });

	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 8), 0);
	expect_data(&r, 8);
	cr_expect_eq(request(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, 8), 0);
	expect_data(&r, 8);
	rig_close(&r);
}

/* ---- the fields that the kernel's driver sets (qp.c of mlx5) ---- */

/* Returns cs_req << 8 | cs_res of a queue pair of this kind. */
static uint32_t fields(struct kind k)
{
	struct rig r = rig_open(k);
	uint32_t in[4] = { htobe32(0x50bu << 16), 0, htobe32(r.a->qp_num) }, out[0x110 / 4];
	uint32_t word;

	cr_assert_eq(mlx5dv_devx_qp_query(r.a, in, sizeof(in), out, sizeof(out)), 0);
	word = be32toh(out[(0x18 + 0xc4) / 4]);
	rig_close(&r);
	return word & 0xffff;
}

Test(verbs_inline, fields_depend_on_type_flags_and_cqe_size)
{
	const uint64_t allow = MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE;

	cr_expect_eq(fields((struct kind){ "64", .sig_all = false }), 0x0001);
	cr_expect_eq(fields((struct kind){ "64", .sig_all = true }), 0x1101);
	cr_expect_eq(fields((struct kind){ "128", .flags = allow }), 0x2202);
	cr_expect_eq(fields((struct kind){ "128", IBV_QPT_UC, .sig_all = true }), 0x0002);
	cr_expect_eq(fields((struct kind){ "64", IBV_QPT_UC, .flags = allow }), 0x0001);
	cr_expect_eq(fields((struct kind){ "128", IBV_QPT_UD, .sig_all = true }), 0);
	setenv("MLX5_SCATTER_TO_CQE", "0", 1);
	cr_expect_eq(fields((struct kind){ "64", .sig_all = true }), 0);
}

/* ---- switched off ---- */
static void expect_none(struct kind k)
{
	struct rig r = rig_open(k);

	cr_expect_eq(send_bytes(&r, 8), 0);
	cr_expect_eq(request(&r, IBV_WR_RDMA_READ, 8), 0);
	expect_data(&r, 8);
	rig_close(&r);
}

Test(verbs_inline, switched_off_by_the_variable)
{
	setenv("MLX5_SCATTER_TO_CQE", "0", 1);
	expect_none((struct kind){ .cqe_size = "64", .sig_all = true });
}

Test(verbs_inline, switched_off_for_a_queue_pair)
{
	expect_none((struct kind){ .cqe_size = "64",
				   .sig_all = true,
				   .flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE });
}

Test(verbs_inline, queue_pair_overrides_the_variable)
{
	setenv("MLX5_SCATTER_TO_CQE", "0", 1);
	expect_responses(
		(struct kind){ .cqe_size = "64", .flags = MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE });
}
