/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The fields cs_res and cs_req of CREATE_QP, which permit received data in CQEs: the values of
 * Linux's mlx5_ib.h (1 and 2, 0x11 and 0x22), what a query returns, and what is refused; and the
 * capability sctr_data_cqe.
 */
#include <dlfcn.h>

#include "../lib/rawnic.h"
#include "../softnic/softnic.h"

#define CS_AT (0x18 + 0xc4)

enum { RC, UC };

static struct nic n;
static struct mlx5dv_devx_obj *cq;
static uint32_t cqn;

static void open_cq(bool large)
{
	uint32_t in[0x110 / 4];

	nic_open(&n);
	cq_box(&n, in);
	/* 32 entries of 128 bytes, or 64 of 64 bytes */
	put(in, 0x10, large ? 1u << 21 : 0);
	in[0x1c / 4] = htobe32((large ? 5u : 6u) << 24 | n.uar->page_id);
	cq = create(&n, in, &cqn);
	cr_assert(cq);
}

static void close_cq(void)
{
	cr_assert_eq(mlx5dv_devx_obj_destroy(cq), 0);
	nic_close(&n);
}

/* Creates a QP with these fields. Returns the queried fields, or UINT32_MAX if it is refused. */
static uint32_t created_as(uint32_t st, uint32_t cs_req, uint32_t cs_res)
{
	uint32_t in[0x110 / 4], out[0x110 / 4], qpn, fields;
	struct mlx5dv_devx_obj *qp;

	qp_box(&n, in, cqn);
	put(in, 0x18, st << 16);
	put(in, CS_AT, cs_req << 8 | cs_res);
	qp = create(&n, in, &qpn);
	if (!qp)
		return UINT32_MAX;
	qp_state(qp, qpn, out);
	fields = get(out, CS_AT) & 0xffff;
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
	return fields;
}

static uint32_t created(uint32_t cs_req, uint32_t cs_res)
{
	return created_as(RC, cs_req, cs_res);
}

/* Counters that make softnic-run --strict fail. */
static struct sn_stats counted(void)
{
	const struct sn_stats *(*stats)(void);

	*(void **)&stats = dlsym(RTLD_DEFAULT, "sn_stats_get");
	cr_assert(stats);
	return *stats();
}

Test(cmd_inline, capability)
{
	uint32_t in[4] = { 0 }, out[0x1010 / 4] = { 0 };
	struct ibv_context *ctx = open_nic();

	put(in, 0, 0x100u << 16);
	put(in, 4, 1);
	cr_assert_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_expect_eq(get(out, 0x10 + 0x40) >> 10 & 1, 1);
	ibv_close_device(ctx);
}

Test(cmd_inline, values_of_32_bytes)
{
	open_cq(false);
	cr_expect_eq(created(0, 0), 0);
	cr_expect_eq(created(0, 1), 0x0001);
	cr_expect_eq(created(0x11, 0), 0x1100);
	cr_expect_eq(created(0x11, 1), 0x1101);
	cr_expect_eq(counted().bad_reserved + counted().bad_command, 0);
	close_cq();
}

Test(cmd_inline, values_of_64_bytes_need_large_cqes)
{
	open_cq(false);
	cr_expect_eq(created(0, 2), UINT32_MAX);
	cr_expect_eq(last_status, 0x3);
	cr_expect_eq(last_syndrome, 0x500013);
	cr_expect_eq(created(0x22, 0), UINT32_MAX);
	cr_expect_eq(last_syndrome, 0x500013);
	cr_expect_eq(counted().bad_command, 2);
	close_cq();
	open_cq(true);
	cr_expect_eq(created(0x22, 2), 0x2202);
	cr_expect_eq(created(0x11, 1), 0x1101);
	close_cq();
}

Test(cmd_inline, other_values_are_refused)
{
	static const uint32_t bad_res[] = { 3, 4, 0x11, 0xff }, bad_req[] = { 1, 2, 0x12, 0x33 };
	size_t i;

	open_cq(false);
	for (i = 0; i < 4; i++) {
		cr_expect_eq(created(0, bad_res[i]), UINT32_MAX, "cs_res %#x", bad_res[i]);
		cr_expect_eq(last_status, 0x3);
		cr_expect_eq(last_syndrome, 0x500012);
		cr_expect_eq(created(bad_req[i], 0), UINT32_MAX, "cs_req %#x", bad_req[i]);
		cr_expect_eq(last_syndrome, 0x500012);
	}
	cr_expect_eq(counted().bad_reserved, 8);
	close_cq();
}

Test(cmd_inline, unreliable_queue_pairs_have_no_responses)
{
	open_cq(false);
	cr_expect_eq(created_as(UC, 0, 1), 0x0001);
	cr_expect_eq(created_as(UC, 0x11, 1), UINT32_MAX);
	cr_expect_eq(last_syndrome, 0x500014);
	cr_expect_eq(counted().bad_command, 1);
	close_cq();
}
