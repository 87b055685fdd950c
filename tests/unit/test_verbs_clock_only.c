/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * QPs on a device whose only format of time stamps is real time: a CQ for free-running time
 * stamps cannot be used by a QP.
 */
/* softnic-run: --ts-format real */
#include "../lib/raw.h"

static int errno_with(struct vb *v, enum ibv_qp_type type, uint64_t flags)
{
	struct ibv_cq_init_attr_ex cq_init = { .cqe = 63, .wc_flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(v->ctx, &cq_init);
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp *qp;
	int err;

	cr_assert(cq, "CQ: %s", strerror(errno));
	init = raw_init(v, ibv_cq_ex_to_cq(cq), 16, 16);
	init.qp_type = type;
	qp = ibv_create_qp_ex(v->ctx, &init);
	err = qp ? 0 : errno;
	if (qp)
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	return err;
}

Test(verbs_clock_only, free_running_is_refused)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RAW_PACKET };
	struct vb v;
	unsigned i;

	raw_need();
	v = vb_open(4096);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(errno_with(&v, types[i], 0), 0);
		cr_assert_eq(
			errno_with(&v, types[i], IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK), 0);
		cr_assert_eq(errno_with(&v, types[i], IBV_WC_EX_WITH_COMPLETION_TIMESTAMP),
			     EOPNOTSUPP);
	}
	vb_close(&v);
}
