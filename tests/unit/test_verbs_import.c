/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Imported objects: a second context on the command file of the first must find the
 * first one's PD and memory region by their handles.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <unistd.h>

#include "../lib/nic.h"

struct rig {
	char bytes[4096];
	struct ibv_context *ctx, *other;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
};

static void rig_open(struct rig *r)
{
	r->ctx = nic_open_context();
	r->pd = ibv_alloc_pd(r->ctx);
	cr_assert(r->pd);
	r->mr = ibv_reg_mr(r->pd, r->bytes, sizeof(r->bytes), IBV_ACCESS_LOCAL_WRITE);
	cr_assert(r->mr);
	r->other = ibv_import_device(dup(r->ctx->cmd_fd));
	cr_assert(r->other);
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(ibv_close_device(r->other), 0);
	cr_expect_eq(ibv_dereg_mr(r->mr), 0, "closing the other context must not free the region");
	cr_expect_eq(ibv_dealloc_pd(r->pd), 0);
	cr_expect_eq(ibv_close_device(r->ctx), 0);
}

Test(verbs_import, imported_pd_and_mr_are_the_same)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct rig r;

	rig_open(&r);
	cr_assert_eq(r.other->num_comp_vectors, r.ctx->num_comp_vectors);
	pd = ibv_import_pd(r.other, r.pd->handle);
	cr_assert(pd);
	mr = ibv_import_mr(pd, r.mr->handle);
	cr_assert(mr);
	cr_assert_eq(mr->lkey, r.mr->lkey);
	cr_assert_eq(mr->rkey, r.mr->rkey);
	cr_assert_eq(mr->length, sizeof(r.bytes));
	cq = ibv_create_cq(r.other, 4, NULL, NULL, 0);
	cr_assert(cq, "the imported context must be able to create a CQ");
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	rig_close(&r);
}

Test(verbs_import, handle_of_another_kind_is_refused)
{
	struct ibv_pd *pd;
	struct rig r;

	rig_open(&r);
	errno = 0;
	cr_assert_null(ibv_import_pd(r.other, r.mr->handle));
	cr_assert_eq(errno, ENOENT);
	pd = ibv_import_pd(r.other, r.pd->handle);
	cr_assert(pd);
	cr_assert_null(ibv_import_mr(pd, r.pd->handle));
	cr_assert_null(ibv_import_mr(pd, 999));
	ibv_unimport_pd(pd);
	rig_close(&r);
}

Test(verbs_import, port_has_no_switch_attributes)
{
	struct ibv_context *ctx = nic_open_context();
	struct mlx5dv_port port = { .flags = ~0ull };

	cr_assert_eq(mlx5dv_query_port(ctx, 1, &port), 0);
	cr_assert_eq(port.flags, 0);
	cr_assert_eq(mlx5dv_query_port(ctx, 2, &port), EINVAL);
	cr_assert_eq(ibv_close_device(ctx), 0);
}
