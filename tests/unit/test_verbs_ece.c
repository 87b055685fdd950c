/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Enhanced connection establishment (ECE) through libibverbs, as NCCL and UCX use
 * it: the options of a new QP, and those that a connection keeps.
 */
#include "../lib/vb.h"

#define NIC_OPTIONS 0x30000002u
#define VENDOR	    0x15b3u

/* Connects a QP with these options of the peer and returns the options that the NIC kept. */
static uint32_t connect_with(struct vb *v, uint32_t options)
{
	struct ibv_cq *cq = ibv_create_cq(v->ctx, 4, NULL, NULL, 0);
	struct ibv_qp *qp = vb_qp(v, IBV_QPT_RC, cq, NULL);
	struct ibv_ece ece = { .vendor_id = VENDOR, .options = options };

	cr_assert_eq(ibv_set_ece(qp, &ece), 0);
	vb_connect(v, qp, qp);
	cr_assert_eq(ibv_query_ece(qp, &ece), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	return ece.options;
}

Test(ece, new_qp_has_the_options_of_the_nic)
{
	struct vb v = vb_open(4096);
	struct ibv_cq *cq = ibv_create_cq(v.ctx, 4, NULL, NULL, 0);
	struct ibv_qp *qp = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	struct ibv_ece ece;

	cr_assert_eq(ibv_query_ece(qp, &ece), 0);
	cr_assert_eq(ece.vendor_id, VENDOR);
	cr_assert_eq(ece.options, NIC_OPTIONS);
	ece.comp_mask = 1;
	cr_assert_neq(ibv_set_ece(qp, &ece), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

Test(ece, connection_keeps_the_common_options)
{
	struct vb v = vb_open(4096);

	cr_assert_eq(connect_with(&v, NIC_OPTIONS), NIC_OPTIONS);
	cr_assert_eq(connect_with(&v, 0x10000000), 0x10000000);
	cr_assert_eq(connect_with(&v, NIC_OPTIONS | 0x40), NIC_OPTIONS);
	vb_close(&v);
}
