/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Firmware commands for objects of raw Ethernet that libibverbs created: the parts of a raw
 * packet QP, and a work queue. DPDK reads the transport domain of a QP in this way.
 */
#include "../lib/leaks.h"
#include "../lib/rawnic_eth.h"

struct rig {
	struct nic n;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct mlx5dv_qp dv;
};

static struct ibv_qp *raw_qp(struct rig *r)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(r->n.pd, &init);
	struct mlx5dv_obj obj;

	cr_assert(qp);
	r->dv = (struct mlx5dv_qp){ .comp_mask = MLX5DV_QP_MASK_RAW_QP_HANDLES };
	obj.qp.in = qp;
	obj.qp.out = &r->dv;
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	cr_assert(r->dv.comp_mask & MLX5DV_QP_MASK_RAW_QP_HANDLES);
	return qp;
}

static void rig_open(struct rig *r)
{
	nic_open(&r->n);
	r->cq = ibv_create_cq(r->n.ctx, 16, NULL, NULL, 0);
	cr_assert(r->cq);
	r->qp = raw_qp(r);
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(ibv_destroy_qp(r->qp), 0);
	cr_expect_eq(ibv_destroy_cq(r->cq), 0);
	nic_close(&r->n);
}

static int query(const struct rig *r, uint32_t opcode, uint32_t number, uint32_t *out)
{
	uint32_t in[4] = { 0 };

	put(in, 0, opcode << 16);
	put(in, 8, number);
	memset(out, 0, 0x110);
	return mlx5dv_devx_qp_query(r->qp, in, sizeof(in), out, 0x110);
}

Test(cmd_eth_verbs, parts_of_a_raw_packet_qp)
{
	uint32_t out[0x110 / 4];
	struct rig r;

	rig_open(&r);
	cr_expect(r.dv.tisn && r.dv.tirn && r.dv.rqn && r.dv.sqn);
	cr_assert_eq(query(&r, 0x915, r.dv.tisn, out), 0);
	cr_expect_neq(get(out, 0x34) & 0xffffff, 0, "no transport domain");
	cr_assert_eq(query(&r, 0x907, r.dv.sqn, out), 0);
	cr_expect_eq(get(out, 0x20) >> 20 & 15, RST);
	cr_assert_eq(query(&r, 0x90b, r.dv.rqn, out), 0);
	cr_expect_eq(get(out, 0x70) & 0x1f, 4, "log_wq_sz");
	cr_assert_eq(query(&r, 0x903, r.dv.tirn, out), 0);
	cr_expect_eq(get(out, 0x3c) & 0xffffff, r.dv.rqn);
	cr_expect_eq(query(&r, 0x915, r.dv.tisn + 1, out), EINVAL);
	cr_expect_eq(query(&r, 0x907, r.dv.rqn, out), EINVAL);
	cr_expect_eq(query(&r, 0x50b, r.dv.sqn, out), EINVAL);
	rig_close(&r);
}

static struct ibv_wq *make_wq(const struct rig *r)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ,
					 .max_wr = 8,
					 .max_sge = 1,
					 .pd = r->n.pd,
					 .cq = r->cq };
	struct ibv_wq *wq = ibv_create_wq(r->n.ctx, &init);

	cr_assert(wq);
	return wq;
}

Test(cmd_eth_verbs, work_queue_and_table)
{
	uint32_t in[4] = { 0 }, out[0x120 / 4] = { 0 };
	struct ibv_rwq_ind_table *table;
	struct ibv_wq *wq;
	struct rig r;

	rig_open(&r);
	wq = make_wq(&r);
	table = ibv_create_rwq_ind_table(r.n.ctx,
					 &(struct ibv_rwq_ind_table_init_attr){ .ind_tbl = &wq });
	cr_assert(table);
	put(in, 0, 0x90bu << 16);
	put(in, 8, wq->wq_num);
	cr_assert_eq(mlx5dv_devx_wq_query(wq, in, sizeof(in), out, 0x110), 0);
	cr_expect_eq(get(out, 0x70) & 0x1f, 3, "log_wq_sz");
	cr_expect_eq(get(out, 0x2c) >> 24, 0, "counter_set_id");
	in[0] = htobe32(0x919u << 16);
	in[2] = htobe32((uint32_t)table->ind_tbl_num);
	cr_assert_eq(mlx5dv_devx_ind_tbl_query(table, in, sizeof(in), out, 0x120), 0);
	cr_expect_eq(get(out, 0x38) & 0xffff, 1, "rqt_actual_size");
	cr_expect_eq(get(out, 0x110), wq->wq_num);
	cr_expect_eq(mlx5dv_devx_wq_query(wq, in, sizeof(in), out, 0x110), EINVAL);
	cr_expect_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_expect_eq(ibv_destroy_wq(wq), 0);
	rig_close(&r);
}

/* Destroys an object of verbs by the DEVX method. libmlx5 reads only context and handle, and
 * frees the structure if the call succeeds. */
static int devx_destroy(const struct rig *r, uint32_t handle)
{
	struct {
		struct ibv_context *ctx;
		uint32_t handle;
		uint8_t rest[112];
	} *o = calloc(1, sizeof(*o));
	int rc;

	cr_assert(o);
	o->ctx = r->n.ctx;
	o->handle = handle;
	rc = mlx5dv_devx_obj_destroy((struct mlx5dv_devx_obj *)o);
	if (rc)
		free(o);
	return rc;
}

Test(cmd_eth_verbs, devx_does_not_destroy_objects_of_verbs)
{
	struct rig r;

	rig_open(&r);
	cr_expect_eq(devx_destroy(&r, r.qp->handle), ENOENT);
	cr_expect_eq(devx_destroy(&r, r.cq->handle), ENOENT);
	cr_expect_eq(devx_destroy(&r, 0xffff), ENOENT);
	rig_close(&r);
}

static uint32_t domain(const struct rig *r)
{
	uint32_t out[0x110 / 4];

	cr_assert_eq(query(r, 0x915, r->dv.tisn, out), 0);
	return get(out, 0x34) & 0xffffff;
}

/* The QPs of a context share its transport domain, in which DEVX objects can be created. */
Test(cmd_eth_verbs, transport_domain_of_a_context)
{
	uint32_t in[0x110 / 4] = { 0 }, td, tisn;
	struct mlx5dv_devx_obj *tis;
	struct ibv_qp *first;
	struct eth e;
	struct rig r;

	rig_open(&r);
	td = domain(&r);
	tisn = r.dv.tisn;
	first = r.qp;
	r.qp = raw_qp(&r);
	cr_expect_eq(domain(&r), td);
	cr_expect_neq(r.dv.tisn, tisn);
	e.tdn = td;
	tis_box(&e, in);
	tis = make(&r.n, in, 0xc0, NULL);
	cr_expect_eq(ibv_destroy_qp(first), 0);
	cr_expect_eq(ibv_destroy_qp(r.qp), 0);
	r.qp = raw_qp(&r);
	cr_expect_eq(domain(&r), td, "the DEVX TIS uses it");
	cr_expect_eq(mlx5dv_devx_obj_destroy(tis), 0);
	rig_close(&r);
}

/* Closing the device destroys the domain although a DEVX object was the last one to use it. */
Test(cmd_eth_verbs, close_with_a_devx_object)
{
	uint32_t in[0x110 / 4] = { 0 };
	struct eth e;
	struct rig r;

	leaks_ignore();
	rig_open(&r);
	e.tdn = domain(&r);
	tis_box(&e, in);
	make(&r.n, in, 0xc0, NULL);
	cr_expect_eq(ibv_destroy_qp(r.qp), 0);
	cr_assert_eq(ibv_close_device(r.n.ctx), 0);
	cr_assert_eq(eth_objects_live(), 0);
}

static struct mlx5dv_devx_obj *direct_tir(struct nic *n, uint32_t rqn)
{
	uint32_t in[0x110 / 4] = { 0 };

	put(in, 0x00, 0x900u << 16);
	put(in, 0x3c, rqn);
	return make(n, in, 0x110, NULL);
}

/* Creates an SQ of 16 WQEs that uses the TIS. */
static void sq_with_tis(struct rig *r, uint32_t tisn)
{
	struct eth e = { .n = r->n, .tisn = tisn };
	uint32_t in[0x110 / 4];

	cq_box(&r->n, in);
	make(&r->n, in, 0x110, &e.cqn);
	sq_box(&e, in);
	make(&r->n, in, 0x110, NULL);
}

Test(cmd_eth_verbs, qp_is_busy_while_devx_objects_use_its_parts)
{
	struct mlx5dv_devx_obj *tir;
	struct rig r;

	leaks_ignore();
	rig_open(&r);
	tir = direct_tir(&r.n, r.dv.rqn);
	cr_expect_eq(ibv_destroy_qp(r.qp), EBUSY, "a TIR uses its RQ");
	cr_expect_eq(mlx5dv_devx_obj_destroy(tir), 0);
	sq_with_tis(&r, r.dv.tisn);
	cr_expect_eq(ibv_destroy_qp(r.qp), EBUSY, "an SQ uses its TIS");
	direct_tir(&r.n, r.dv.rqn);
	cr_assert_eq(ibv_close_device(r.n.ctx), 0);
	cr_assert_eq(eth_objects_live(), 0);
}

/* Numbers of another context's objects do not exist. */
Test(cmd_eth_verbs, objects_of_another_context)
{
	uint32_t in[0x114 / 4];
	struct eth e, own;
	struct rig r;

	rig_open(&r);
	eth_open(&e);
	own = e;
	e.rqn = r.dv.rqn;
	rqt_box(&e, in, 1);
	refuse(&e.n, in, 0x114, BAD_RES);
	e.tdn = domain(&r);
	tis_box(&e, in);
	refuse(&e.n, in, 0xc0, BAD_RES);
	tir_box(&e, in);
	refuse(&e.n, in, 0x110, BAD_RES);
	e.tisn = r.dv.tisn;
	sq_box(&e, in);
	refuse(&e.n, in, 0x110, BAD_RES);
	own.n.ctx = r.n.ctx;
	rq_box(&own, in);
	refuse(&own.n, in, 0x110, BAD_RES);
	sq_box(&own, in);
	refuse(&own.n, in, 0x110, BAD_RES);
	tir_box(&own, in);
	refuse(&own.n, in, 0x110, BAD_RES);
	own.n.ctx = e.n.ctx;
	eth_close(&own);
	rig_close(&r);
}
