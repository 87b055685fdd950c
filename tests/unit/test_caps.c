/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The device attributes of doca_verbs_query_device() and the capabilities in
 * doca_dev, on the software NIC.
 */
#include <dlfcn.h>

#include "../../core/nic/devx.h"
#include "../../core/nic/net_dev.h"
#include "../lib/nic.h"

/* If set, the replacement of libibverbs' ibv_query_device returns distinct attributes. */
static bool distinct_values;

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	int (*real)(struct ibv_context *, struct ibv_device_attr *);
	int rc;

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_query_device");
	rc = real(ctx, attr);
	if (rc || !distinct_values)
		return rc;
	attr->max_qp = 101;
	attr->max_qp_wr = 102;
	attr->max_sge = 103;
	attr->max_cq = 104;
	attr->max_cqe = 105;
	attr->max_mr = 106;
	attr->max_pd = 107;
	attr->max_ah = 108;
	attr->max_srq = 109;
	attr->max_srq_wr = 110;
	attr->max_srq_sge = -1;
	attr->max_qp_init_rd_atom = 300;
	attr->max_qp_rd_atom = 112;
	attr->max_pkeys = 113;
	return 0;
}

Test(caps, each_getter_returns_its_own_attribute)
{
	struct ibv_context *ctx = nic_open_context();
	struct doca_verbs_device_attr *attr;

	distinct_values = true;
	cr_assert_eq(doca_verbs_query_device(ctx, &attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_device_attr_get_max_qp(attr), 101);
	cr_expect_eq(doca_verbs_device_attr_get_max_qp_wr(attr), 102);
	cr_expect_eq(doca_verbs_device_attr_get_max_sge(attr), 103);
	cr_expect_eq(doca_verbs_device_attr_get_max_cq(attr), 104);
	cr_expect_eq(doca_verbs_device_attr_get_max_cqe(attr), 105);
	cr_expect_eq(doca_verbs_device_attr_get_max_mr(attr), 106);
	cr_expect_eq(doca_verbs_device_attr_get_max_pd(attr), 107);
	cr_expect_eq(doca_verbs_device_attr_get_max_ah(attr), 108);
	cr_expect_eq(doca_verbs_device_attr_get_max_srq(attr), 109);
	cr_expect_eq(doca_verbs_device_attr_get_max_srq_wr(attr), 110);
	cr_expect_eq(doca_verbs_device_attr_get_max_srq_sge(attr), 0,
		     "a negative count must become 0");
	cr_expect_eq(doca_verbs_device_attr_get_max_qp_init_rd_atom(attr), 255,
		     "must be limited to 8 bits");
	cr_expect_eq(doca_verbs_device_attr_get_max_qp_rd_atom(attr), 112);
	cr_expect_eq(doca_verbs_device_attr_get_max_pkeys(attr), 113);
	cr_expect_eq(doca_verbs_device_attr_free(attr), DOCA_SUCCESS);
	ibv_close_device(ctx);
}

Test(caps, attributes_are_those_of_ibv_query_device)
{
	struct ibv_context *ctx = nic_open_context();
	struct doca_verbs_device_attr *attr;
	struct ibv_device_attr verbs;

	cr_assert_eq(ibv_query_device(ctx, &verbs), 0);
	cr_assert_eq(doca_verbs_query_device(ctx, &attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_device_attr_get_max_qp(attr), (uint32_t)verbs.max_qp);
	cr_expect_eq(doca_verbs_device_attr_get_max_qp_wr(attr), (uint32_t)verbs.max_qp_wr);
	cr_expect_eq(doca_verbs_device_attr_get_max_sge(attr), (uint32_t)verbs.max_sge);
	cr_expect_eq(doca_verbs_device_attr_get_max_cq(attr), (uint32_t)verbs.max_cq);
	cr_expect_eq(doca_verbs_device_attr_get_max_cqe(attr), (uint32_t)verbs.max_cqe);
	cr_expect_eq(doca_verbs_device_attr_get_max_mr(attr), (uint32_t)verbs.max_mr);
	cr_expect_eq(doca_verbs_device_attr_get_max_pd(attr), (uint32_t)verbs.max_pd);
	cr_expect_eq(doca_verbs_device_attr_get_max_ah(attr), (uint32_t)verbs.max_ah);
	cr_expect_eq(doca_verbs_device_attr_get_max_srq(attr), (uint32_t)verbs.max_srq);
	cr_expect_eq(doca_verbs_device_attr_get_max_srq_wr(attr), (uint32_t)verbs.max_srq_wr);
	cr_expect_eq(doca_verbs_device_attr_get_max_srq_sge(attr), (uint32_t)verbs.max_srq_sge);
	cr_expect_eq(doca_verbs_device_attr_get_max_qp_init_rd_atom(attr),
		     verbs.max_qp_init_rd_atom);
	cr_expect_eq(doca_verbs_device_attr_get_send_dbr_mode_no_dbr_ext(attr), 1);
	cr_expect_eq(doca_verbs_device_attr_get_max_pkeys(attr), verbs.max_pkeys);
	cr_expect_eq(doca_verbs_device_attr_get_max_qp_rd_atom(attr), verbs.max_qp_rd_atom);
	cr_expect_gt(doca_verbs_device_attr_get_max_qp(attr), 0);
	cr_expect_eq(doca_verbs_device_attr_get_is_qp_type_supported(attr, DOCA_VERBS_QP_TYPE_RC),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_device_attr_get_is_qp_type_supported(attr, DOCA_VERBS_QP_TYPE_UC),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_device_attr_get_is_qp_type_supported(attr, 2),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_device_attr_free(attr), DOCA_SUCCESS);
	ibv_close_device(ctx);
}

Test(caps, bad_arguments_are_refused)
{
	struct doca_verbs_device_attr *attr;
	doca_dev_t *dev;

	cr_expect_eq(doca_verbs_query_device(NULL, &attr), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_device_attr_free(NULL), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_device_attr_get_max_qp(NULL), 0);
	cr_expect_eq(doca_verbs_dev_open(NULL, &dev), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_dev_close(NULL), DOCA_ERROR_INVALID_VALUE);
}

Test(caps, dev_open_reads_the_capabilities)
{
	struct nic nic = nic_open();

	cr_expect_eq(nic.dev->caps.roce, 1);
	cr_expect_eq(nic.dev->caps.rc_supported, 1);
	cr_expect_geq(nic.dev->caps.log_max_qp_sz, 15);
	cr_expect_leq(nic.dev->caps.r_roce_min_src_udp_port, nic.dev->caps.r_roce_max_src_udp_port);
	nic_close(&nic);
}

Test(caps, a_refused_command_is_a_driver_error)
{
	struct ibv_context *ctx = nic_open_context();
	uint8_t in[PRM_CMD_IN_LEN] = { 0 }, out[PRM_QUERY_HCA_CAP_OUT_LEN];

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_HCA_CAP);
	prm_set(in, PRM_CMD_OP_MOD, 0x7e << 1 | GDK_CAP_CURRENT);
	cr_expect_eq(gdk_devx_cmd(ctx, "test", in, sizeof(in), out, sizeof(out)),
		     DOCA_ERROR_DRIVER);
	cr_expect_neq(prm_get(out, PRM_CMD_STATUS), 0);
	ibv_close_device(ctx);
}
