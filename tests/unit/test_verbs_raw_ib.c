/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A port of InfiniBand reports no capability of raw Ethernet and refuses its objects.
 */
/* softnic-run: --link-layer infiniband */
#include "../lib/raw.h"

Test(verbs_raw_ib, nothing_of_ethernet)
{
	struct ibv_device_attr_ex dev;
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 16, .max_sge = 1 };
	struct vb v = { .ctx = pick_open() };
	struct ibv_cq *cq;

	raw_need();
	cr_assert(v.ctx);
	v.pd = ibv_alloc_pd(v.ctx);
	cq = ibv_create_cq(v.ctx, 15, NULL, NULL, 0);
	cr_assert(v.pd && cq);
	cr_assert_eq(ibv_query_device_ex(v.ctx, NULL, &dev), 0);
	cr_assert_eq(dev.raw_packet_caps, 0);
	cr_assert_eq(dev.rss_caps.supported_qpts, 0);
	cr_assert_eq(dev.tso_caps.supported_qpts, 0);
	cr_assert_eq(dev.max_wq_type_rq, 0);
	cr_assert_eq(dev.orig_attr.device_cap_flags &
			     (IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING),
		     0);
	errno = 0;
	cr_assert_null(raw_qp_try(&v, cq, 16, 16, 0));
	cr_assert_eq(errno, EOPNOTSUPP);
	wq.pd = v.pd;
	wq.cq = cq;
	errno = 0;
	cr_assert_null(ibv_create_wq(v.ctx, &wq));
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	cr_assert_eq(ibv_dealloc_pd(v.pd), 0);
	cr_assert_eq(ibv_close_device(v.ctx), 0);
}
