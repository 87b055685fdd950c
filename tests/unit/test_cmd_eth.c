/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The firmware commands of raw Ethernet: life cycles, states, modifications and queries of
 * transport domains, TISes, SQs, RQs, tables of RQs, TIRs and counters. What the commands
 * refuse is in test_cmd_eth_refuse.c.
 */
#include "../lib/leaks.h"
#include "../lib/rawnic_eth.h"

static void expect_busy(struct mlx5dv_devx_obj *o, const char *what)
{
	cr_expect_eq(mlx5dv_devx_obj_destroy(o), EBUSY, "%s in use was destroyed", what);
}

Test(cmd_eth, objects_in_use_are_busy)
{
	struct eth e;

	eth_open(&e);
	cr_expect(e.sqn && e.rqn && e.rqtn && e.tirn && e.tisn && e.tdn);
	expect_busy(e.td, "transport domain");
	expect_busy(e.tis, "TIS");
	expect_busy(e.rq, "RQ");
	expect_busy(e.rqt, "table of RQs");
	expect_busy(e.cq, "CQ");
	expect_busy(e.counters, "set of queue counters");
	cr_expect_neq(mlx5dv_devx_umem_dereg(e.n.umem), 0);
	cr_expect_neq(ibv_dealloc_pd(e.n.pd), 0);
	eth_close(&e);
}

/* A table keeps its RQs in use without a TIR; without the table, a direct TIR does. */
Test(cmd_eth, table_and_direct_tir_keep_an_rq)
{
	uint32_t in[0x120 / 4], tirn;
	struct mlx5dv_devx_obj *tir;
	struct eth e;

	eth_open(&e);
	cr_assert_eq(mlx5dv_devx_obj_destroy(e.tir), 0);
	expect_busy(e.rq, "RQ of a table");
	cr_assert_eq(mlx5dv_devx_obj_destroy(e.rqt), 0);
	tir_box(&e, in);
	set(in, 0x24, 0xf0000000, 0);	  /* direct */
	set(in, 0x44, 0xf0000000, 0);	  /* no hash function */
	set(in, 0x40, 0x80ffffff, 0);	  /* no table */
	set(in, 0x3c, 0x00ffffff, e.rqn); /* inline_rqn */
	tir = make(&e.n, in, 0x110, &tirn);
	expect_busy(e.rq, "RQ of a direct TIR");
	expect_busy(e.td, "transport domain of a TIR");
	cr_assert_eq(mlx5dv_devx_obj_destroy(tir), 0);
	e.tir = e.rqt = NULL;
	eth_close(&e);
}

Test(cmd_eth, close_of_the_device_destroys_everything)
{
	uint32_t in[4] = { 0 };
	struct eth e;

	leaks_ignore();
	eth_open(&e);
	put(in, 0, 0x939u << 16);
	put(in, 0xc, 4);
	make(&e.n, in, 16, NULL);
	eth_state(e.sq, 0x905, e.sqn, RST, RDY, 0);
	eth_state(e.rq, 0x909, e.rqn, RST, RDY, 0);
	cr_assert_gt(eth_objects_live(), 10);
	cr_assert_eq(ibv_close_device(e.n.ctx), 0);
	cr_assert_eq(eth_objects_live(), 0);
}

/* ---- states ---- */

static void all_transitions(struct mlx5dv_devx_obj *q, uint32_t opcode, uint32_t number)
{
	/* a row for each current state, a column for each new one: RST, RDY, ERR */
	static const uint32_t states[3] = { RST, RDY, ERR };
	static const bool allowed[3][3] = { { 1, 1, 0 }, { 1, 1, 1 }, { 1, 0, 1 } };
	int from, to;

	for (from = 0; from < 3; from++)
		for (to = 0; to < 3; to++) {
			if (from)
				eth_state(q, opcode, number, RST, RDY, 0);
			if (from == 2)
				eth_state(q, opcode, number, RDY, ERR, 0);
			eth_state(q, opcode, number, states[from], states[to],
				  allowed[from][to] ? 0 : BAD_QP_STATE);
			cr_expect_eq(eth_query_state(q, opcode, number),
				     allowed[from][to] ? states[to] : states[from]);
			eth_reset(q, opcode, number);
		}
}

Test(cmd_eth, states)
{
	struct eth e;

	eth_open(&e);
	all_transitions(e.sq, 0x905, e.sqn);
	all_transitions(e.rq, 0x909, e.rqn);
	eth_close(&e);
}

Test(cmd_eth, modify_must_name_the_current_state)
{
	struct eth e;

	eth_open(&e);
	eth_state(e.sq, 0x905, e.sqn, RDY, RDY, BAD_QP_STATE);
	eth_state(e.rq, 0x909, e.rqn, ERR, RST, BAD_QP_STATE);
	eth_state(e.sq, 0x905, e.sqn, RST, 2, BAD_PARAM);
	eth_state(e.rq, 0x909, e.rqn, RST, 15, BAD_PARAM);
	eth_state(e.sq, 0x905, e.sqn, RST, RDY, 0);
	eth_state(e.sq, 0x905, e.sqn, RST, RDY, BAD_QP_STATE);
	eth_close(&e);
}

/* The kernel refuses a command for another object than that of the handle. */
Test(cmd_eth, commands_must_name_the_object_of_the_handle)
{
	uint32_t in[0x110 / 4] = { 0 }, out[0x110 / 4] = { 0 };
	struct eth e;

	eth_open(&e);
	put(in, 0, 0x905u << 16);
	put(in, 8, RST << 28 | e.sqn);
	put(in, 0x20, RDY << 20);
	cr_expect_eq(mlx5dv_devx_obj_modify(e.rq, in, sizeof(in), out, 16), EINVAL);
	set(in, 8, 0xffffff, e.rqn);
	cr_expect_eq(mlx5dv_devx_obj_modify(e.sq, in, sizeof(in), out, 16), EINVAL);
	set(in, 0, 0xffff0000, 0x909u << 16);
	cr_expect_eq(mlx5dv_devx_obj_modify(e.sq, in, sizeof(in), out, 16), EINVAL);
	cr_expect_eq(mlx5dv_devx_obj_modify(e.rq, in, sizeof(in), out, 16), 0);
	set(in, 8, 0xffffff, e.sqn);
	cr_expect_eq(mlx5dv_devx_obj_modify(e.sq, in, sizeof(in), out, 16), EINVAL);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x773u << 16);
	put(in, 0x1c, e.counter_set + 1);
	cr_expect_eq(mlx5dv_devx_obj_query(e.counters, in, 32, out, 0x100), EINVAL);
	cr_expect_eq(mlx5dv_devx_obj_query(e.counters, in, 16, out, 0x100), EINVAL);
	eth_close(&e);
}

/* ---- queries ---- */
static void query(struct mlx5dv_devx_obj *o, uint32_t opcode, uint32_t number, uint32_t *out,
		  size_t len)
{
	uint32_t in[4] = { 0 };

	put(in, 0, opcode << 16);
	put(in, 8, number);
	memset(out, 0, len);
	cr_assert_eq(mlx5dv_devx_obj_query(o, in, sizeof(in), out, len), 0);
	cr_assert_eq(mlx5dv_devx_obj_query(o, in, sizeof(in), out, 0x14), EREMOTEIO);
	cr_assert_eq(get(out, 0) >> 24, BAD_OUTP_LEN);
	cr_assert_eq(mlx5dv_devx_obj_query(o, in, sizeof(in), out, len), 0);
}

/* Compares len bytes at offset `at` of an output with those of the input at offset `from`. */
static void expect_same(const uint32_t *out, uint32_t at, const uint32_t *in, uint32_t from,
			uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i += 4)
		cr_expect_eq(get(out, at + i), get(in, from + i), "word %#x: %#x, not %#x", at + i,
			     get(out, at + i), get(in, from + i));
}

Test(cmd_eth, queries_return_what_was_set)
{
	uint32_t in[0x120 / 4], out[0x120 / 4], number;
	struct mlx5dv_devx_obj *o;
	struct eth e;

	eth_open(&e);
	sq_box(&e, in);
	set(in, 0x20, 0x0f000000, 0xa << 24); /* eMPW, min_wqe_inline_mode 2 */
	o = make(&e.n, in, 0x110, &number);
	query(o, 0x907, number, out, 0x110);
	expect_same(out, 0x20, in, 0x20, 0x68);
	cr_expect_eq(mlx5dv_devx_obj_destroy(o), 0);
	rq_box(&e, in);
	set(in, 0x20, 0x30000000, 0x30000000); /* scatter_fcs, vsd */
	set(in, 0x50, 0x06000000, 0x02000000); /* end_padding_mode */
	o = make(&e.n, in, 0x110, &number);
	query(o, 0x90b, number, out, 0x110);
	expect_same(out, 0x20, in, 0x20, 0x68);
	cr_expect_eq(mlx5dv_devx_obj_destroy(o), 0);
	tis_box(&e, in);
	put(in, 0x20, 0x810e0000);
	o = make(&e.n, in, 0xc0, &number);
	query(o, 0x915, number, out, 0xb0);
	expect_same(out, 0x10, in, 0x20, 0x30);
	cr_expect_eq(mlx5dv_devx_obj_destroy(o), 0);
	tir_box(&e, in);
	query(e.tir, 0x903, e.tirn, out, 0x110);
	expect_same(out, 0x20, in, 0x20, 0x58);
	rqt_box(&e, in, 1);
	query(e.rqt, 0x919, e.rqtn, out, 0x120);
	expect_same(out, 0x20, in, 0x20, 0xf4);
	eth_close(&e);
}

/* ---- modifications ---- */
Test(cmd_eth, modify_rq_changes_the_selected_fields)
{
	uint32_t in[0x110 / 4], out[0x110 / 4], set2;
	struct mlx5dv_devx_obj *counters;
	struct eth e;

	eth_open(&e);
	counters = counter_set(&e.n, &set2);
	cr_assert_neq(set2, e.counter_set);
	modify_box(in, 0x909, e.rqn);
	put(in, 0x20, 0x20000000 | RDY << 20);
	put(in, 0x2c, set2 << 24);
	modify(e.rq, in, 0x110, 0); /* nothing is selected */
	query(e.rq, 0x90b, e.rqn, out, 0x110);
	cr_expect_eq(get(out, 0x20) >> 28, 1, "vsd changed");
	cr_expect_eq(get(out, 0x2c) >> 24, e.counter_set);
	set(in, 0x08, 0xf0000000, RDY << 28);
	put(in, 0x14, 2 | 4 | 8);
	modify(e.rq, in, 0x110, 0);
	query(e.rq, 0x90b, e.rqn, out, 0x110);
	cr_expect_eq(get(out, 0x20) >> 28, 2, "scatter_fcs is set, vsd is not");
	cr_expect_eq(get(out, 0x2c) >> 24, set2);
	expect_busy(counters, "new set of queue counters");
	cr_expect_eq(mlx5dv_devx_obj_destroy(e.counters), 0);
	set(in, 0x2c, 0xff000000, 0);
	modify(e.rq, in, 0x110, 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(counters), 0);
	e.counters = NULL;
	eth_close(&e);
}

Test(cmd_eth, modify_tis)
{
	uint32_t in[0x110 / 4], out[0xb0 / 4];
	struct eth e;

	eth_open(&e);
	modify_box(in, 0x913, e.tisn);
	put(in, 0x20, 0x81060000);
	put(in, 0x14, 1);
	modify(e.tis, in, 0xc0, 0);
	query(e.tis, 0x915, e.tisn, out, 0xb0);
	cr_expect_eq(get(out, 0x10), 0x00060000);
	set(in, 0x14, 7, 6);
	set(in, 0x20, 0xf0000, 0);
	modify(e.tis, in, 0xc0, 0);
	query(e.tis, 0x915, e.tisn, out, 0xb0);
	cr_expect_eq(get(out, 0x10), 0x81060000);
	set(in, 0x14, 15, 8);
	modify(e.tis, in, 0xc0, BAD_PARAM);
	set(in, 0x14, 15, 4);
	set(in, 0x20, 0x0f000000, 2 << 24);
	modify(e.tis, in, 0xc0, BAD_PARAM); /* the port has no bond */
	eth_close(&e);
}

Test(cmd_eth, modify_rqt_replaces_the_list)
{
	uint32_t in[0x130 / 4], out[0x130 / 4], rqn2;
	struct mlx5dv_devx_obj *rq2;
	struct eth e;

	eth_open(&e);
	rq_box(&e, in);
	rq2 = make(&e.n, in, 0x110, &rqn2);
	rqt_box(&e, in, 4);
	set(in, 0x00, 0xffff0000, 0x917u << 16);
	put(in, 0x08, e.rqtn);
	set(in, 0x34, 0xffff, 0);
	modify(e.rqt, in, 0x120, 0); /* nothing is selected */
	query(e.rqt, 0x919, e.rqtn, out, 0x130);
	cr_expect_eq(get(out, 0x38), 1);
	put(in, 0x14, 1);
	set(in, 0x114, 0xffffff, rqn2);
	set(in, 0x11c, 0xffffff, rqn2);
	modify(e.rqt, in, 0x120, 0);
	query(e.rqt, 0x919, e.rqtn, out, 0x130);
	cr_expect_eq(get(out, 0x34), 512);
	cr_expect_eq(get(out, 0x38), 4);
	expect_same(out, 0x110, in, 0x110, 16);
	expect_busy(rq2, "RQ of a table");
	set(in, 0x38, 0xffff, 1);
	modify(e.rqt, in, 0x120, BAD_PARAM); /* the other entries are not 0 */
	modify(e.rqt, in, 0x114, 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(rq2), 0);
	eth_close(&e);
}

Test(cmd_eth, modify_tir_changes_hash_and_table)
{
	uint32_t in[0x120 / 4], out[0x110 / 4], rqtn2;
	struct mlx5dv_devx_obj *rqt2;
	struct eth e;

	eth_open(&e);
	rqt_box(&e, in, 1);
	rqt2 = make(&e.n, in, 0x114, &rqtn2);
	tir_box(&e, in);
	set(in, 0x00, 0xffff0000, 0x901u << 16);
	put(in, 0x08, e.tirn);
	set(in, 0x40, 0x80ffffff, rqtn2);
	set(in, 0x44, 0x03000000, 0x02000000);
	set(in, 0x48, 0xffffffff, 0x01020304);
	set(in, 0x70, 0xffffffff, 0xc000000f);
	put(in, 0x14, 4);
	modify(e.tir, in, 0x110, 0);
	query(e.tir, 0x903, e.tirn, out, 0x110);
	cr_expect_eq(get(out, 0x40), e.rqtn, "the table is not selected");
	cr_expect_eq(get(out, 0x44), 0x20000000 | e.tdn);
	cr_expect_eq(get(out, 0x48), 0x01020304);
	cr_expect_eq(get(out, 0x70), 0xc000000f);
	set(in, 0x14, 0xff, 2 | 16);
	set(in, 0x48, 0xffffffff, 0);
	modify(e.tir, in, 0x110, 0);
	query(e.tir, 0x903, e.tirn, out, 0x110);
	cr_expect_eq(get(out, 0x48), 0x01020304, "the hash is not selected");
	cr_expect_eq(get(out, 0x40), rqtn2);
	cr_expect_eq(get(out, 0x44), 0x22000000 | e.tdn);
	expect_busy(rqt2, "table of a TIR");
	cr_expect_eq(mlx5dv_devx_obj_destroy(e.rqt), 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(e.tir), 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(rqt2), 0);
	e.rqt = e.tir = NULL;
	eth_close(&e);
}

/* ---- events ---- */
static int subscribe(const struct eth *e, struct mlx5dv_devx_obj *o, uint16_t type)
{
	struct mlx5dv_devx_event_channel *ch = mlx5dv_devx_create_event_channel(e->n.ctx, 0);
	int rc;

	cr_assert(ch);
	rc = mlx5dv_devx_subscribe_devx_event(ch, o, sizeof(type), &type, 1);
	mlx5dv_devx_destroy_event_channel(ch);
	return rc;
}

/* An RQ reports a catastrophic error; the other objects of raw Ethernet report nothing. */
Test(cmd_eth, events)
{
	struct eth e;

	eth_open(&e);
	cr_expect_eq(subscribe(&e, e.rq, 0x05), 0);
	cr_expect_eq(subscribe(&e, e.rq, 0x14), EINVAL);
	cr_expect_eq(subscribe(&e, e.sq, 0x05), EINVAL);
	cr_expect_eq(subscribe(&e, e.tir, 0x05), EINVAL);
	cr_expect_eq(subscribe(&e, e.counters, 0x12), EINVAL);
	eth_close(&e);
}

/* ---- an RQ with the WQEs of an RMP ---- */
Test(cmd_eth, rq_of_a_pool)
{
	struct mlx5dv_devx_obj *rmp, *rq;
	uint32_t in[0x120 / 4], rmpn, rqn;
	struct eth e;

	eth_open(&e);
	rmp_box(&e, in);
	rmp = make(&e.n, in, 0x110, &rmpn);
	rq_box(&e, in);
	memset((uint8_t *)in + 0x50, 0, 0xc0); /* no ring of its own */
	set(in, 0x20, 0x0f000000, 1 << 24);
	put(in, 0x30, rmpn);
	rq = make(&e.n, in, 0x110, &rqn);
	expect_busy(rmp, "RMP of an RQ");
	eth_state(rq, 0x909, rqn, RST, RDY, 0);
	eth_reset(rq, 0x909, rqn);
	cr_expect_eq(mlx5dv_devx_obj_destroy(rq), 0);
	set(in, 0x30, 0xffffff, rmpn + 1);
	refuse(&e.n, in, 0x110, BAD_RES);
	cr_expect_eq(mlx5dv_devx_obj_destroy(rmp), 0);
	eth_close(&e);
}

/* ---- counters ---- */
Test(cmd_eth, queue_counters)
{
	static struct mlx5dv_devx_obj *all[255];
	uint32_t in[8] = { 0 }, out[0x40], seen[256] = { 0 }, id, n;
	struct eth e;

	eth_open(&e);
	put(in, 0, 0x773u << 16);
	put(in, 0x1c, e.counter_set);
	cr_assert_eq(mlx5dv_devx_obj_query(e.counters, in, 32, out, 0x100), 0);
	cr_expect_eq(get(out, 0x30), 0);
	put(in, 0x18, 1u << 31);
	cr_assert_eq(mlx5dv_devx_obj_query(e.counters, in, 32, out, 0x100), 0);
	cr_assert_eq(mlx5dv_devx_obj_query(e.counters, in, 32, out, 0x34), EREMOTEIO);
	put(in, 0x18, 1u << 30);
	cr_assert_eq(mlx5dv_devx_obj_query(e.counters, in, 32, out, 0x100), EREMOTEIO);
	for (n = 0; n < 254; n++) {
		all[n] = counter_set(&e.n, &id);
		cr_assert(id && id < 256 && !seen[id]++);
	}
	memset(in, 0, sizeof(in));
	put(in, 0, 0x771u << 16);
	refuse(&e.n, in, 16, NO_RES);
	cr_expect_eq(mlx5dv_devx_obj_destroy(all[100]), 0);
	all[100] = counter_set(&e.n, &id);
	cr_expect(id && id < 256);
	cr_expect_eq(mlx5dv_devx_obj_destroy(all[50]), 0);
	all[50] = counter_set(&e.n, &id);
	cr_expect(id && id < 256, "identifier %u, lower than the last one that became free", id);
	while (n--)
		cr_expect_eq(mlx5dv_devx_obj_destroy(all[n]), 0);
	eth_close(&e);
}
