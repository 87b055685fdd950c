/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Verbs functions of the SDK's interface refuse NULL, values out of range, objects of another
 * context and a wrong order of calls. The log names the object, the value and the remedy.
 */
#include "doca_rig.h"

Test(doca_verbs_wrong, null_arguments)
{
	struct doca_verbs_context *context = NULL;
	struct doca_verbs_device_attr *device;
	struct doca_verbs_pd *pd = NULL;
	struct doca_gpu_verbs_qp *out;
	struct doca_umem *umem;
	struct doca_uar *uar;
	struct nic n = nic_open();
	struct side a;

	REFUSED(DOCA_ERROR_INVALID_VALUE, "ibv_device NULL",
		doca_verbs_bridge_verbs_context_create(NULL, 0, &context));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "verbs_context NULL", doca_verbs_pd_create(NULL, &pd));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "verbs_pd NULL", doca_verbs_pd_create(n.context, NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "verbs_pd NULL", doca_verbs_pd_destroy(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "verbs_context NULL", doca_verbs_context_destroy(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "verbs_context NULL",
		doca_verbs_query_device(NULL, &device));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dev NULL", doca_uar_create(NULL, 0, &uar));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "uar NULL", doca_uar_destroy(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dev NULL", doca_umem_create(NULL, &n, 8, 1, &umem));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "address NULL",
		doca_umem_create(n.dev, NULL, 8, 1, &umem));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "gpu_dev NULL",
		doca_umem_gpu_create(NULL, n.dev, &n, 8, 1, &umem));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "umem NULL", doca_umem_destroy(NULL));
	REFUSED(0u, "verbs_qp NULL", (doca_error_t)doca_verbs_qp_get_qpn(NULL));
	REFUSED(0u, "verbs_cq NULL", (doca_error_t)doca_verbs_cq_get_cqn(NULL));
	cr_expect_null(doca_verbs_bridge_verbs_pd_get_ibv_pd(NULL));
	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "dev NULL",
		doca_gpu_verbs_export_qp(n.gpu, NULL, a.qp, H(AUTO), NULL, a.cq, NULL, &out));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "qp NULL",
		doca_gpu_verbs_export_qp(n.gpu, n.dev, NULL, H(AUTO), NULL, a.cq, NULL, &out));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "qp_out NULL",
		doca_gpu_verbs_export_qp(n.gpu, n.dev, a.qp, H(AUTO), NULL, a.cq, NULL, NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "cq_rq is not the receive CQ",
		doca_gpu_verbs_export_qp(n.gpu, n.dev, a.qp, H(AUTO), NULL, a.cq, a.cq, &out));
	side_close(&n, &a);
	nic_close(&n);
}

Test(doca_verbs_wrong, values_out_of_range)
{
	struct doca_verbs_context *context;
	struct doca_verbs_qp_init_attr *init;
	struct doca_verbs_cq_attr *attr;
	struct nic n = nic_open();
	struct doca_umem *umem;
	struct doca_uar *uar;
	char mem[64];

	REFUSED(DOCA_ERROR_INVALID_VALUE, "flags 0x1",
		doca_verbs_bridge_verbs_context_create(n.pd->context->device, 1, &context));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "0x8000 is no DOCA_ACCESS_FLAG",
		doca_umem_create(n.dev, mem, sizeof(mem), FLAGS | 0x8000, &umem));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "allocation_type 3",
		doca_uar_create(n.dev, (enum gdk_uar_allocation_type)3, &uar));
	OK(doca_verbs_cq_attr_create(&attr));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "overrun 2", doca_verbs_cq_attr_set_cq_overrun(attr, 2));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "entry_size 1",
		doca_verbs_cq_attr_set_entry_size(attr, (enum gdk_cq_entry_size)1));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "external_datapath_en 0",
		doca_verbs_cq_attr_set_external_datapath_en(attr, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "external_datapath_en 2",
		doca_verbs_cq_attr_set_external_datapath_en(attr, 2));
	OK(doca_verbs_cq_attr_destroy(attr));
	OK(doca_verbs_qp_init_attr_create(&init));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "external_datapath_en 0",
		doca_verbs_qp_init_attr_set_external_datapath_en(init, 0));
	OK(doca_verbs_qp_init_attr_destroy(init));
	nic_close(&n);
}

/* Two contexts of one device do not share objects. */
Test(doca_verbs_wrong, objects_of_another_context)
{
	struct nic n = nic_open(), other = nic_open();
	struct doca_verbs_qp_init_attr *attr;
	struct doca_verbs_cq_attr *cq_attr;
	struct doca_gpu_verbs_qp *out;
	struct doca_verbs_qp *qp;
	struct doca_verbs_cq *cq;
	struct side a;

	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	attr = qp_attr(&n, &a);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "protection domain belongs to another context",
		doca_verbs_qp_create(other.context, attr, &qp));
	OK(doca_verbs_qp_init_attr_set_pd(attr, other.vpd));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "one of its CQs belongs to another context",
		doca_verbs_qp_create(other.context, attr, &qp));
	OK(doca_verbs_qp_init_attr_set_pd(attr, NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "no protection domain",
		doca_verbs_qp_create(n.context, attr, &qp));
	OK(doca_verbs_qp_init_attr_destroy(attr));
	OK(doca_verbs_cq_attr_create(&cq_attr));
	OK(doca_verbs_cq_attr_set_cq_size(cq_attr, DEPTH));
	OK(doca_verbs_cq_attr_set_external_umem(cq_attr, a.cq_mem.umem, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "belongs to another device",
		doca_verbs_cq_create(other.context, cq_attr, &cq));
	OK(doca_verbs_cq_attr_destroy(cq_attr));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "another verbs context than that of dev",
		doca_gpu_verbs_export_qp(n.gpu, other.dev, a.qp, H(AUTO), NULL, a.cq, NULL, &out));
	side_close(&n, &a);
	nic_close(&n);
	nic_close(&other);
}

Test(doca_verbs_wrong, wrong_order)
{
	struct nic n = nic_open();
	struct doca_verbs_qp_attr *attr;
	struct doca_gpu_verbs_qp *out;
	struct side a;

	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	OK(doca_verbs_qp_attr_create(&attr));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS));
	REFUSED(DOCA_ERROR_BAD_STATE, "RST to RTS",
		doca_verbs_qp_modify(a.qp, attr, A(NEXT_STATE)));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_INIT));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "RST to INIT",
		doca_verbs_qp_modify(a.qp, attr, A(NEXT_STATE)));
	OK(doca_verbs_qp_attr_destroy(attr));
	side_export(&n, &a, H(GPU_SM_DB));
	REFUSED(DOCA_ERROR_IN_USE, "already exported",
		doca_gpu_verbs_export_qp(n.gpu, n.dev, a.qp, H(GPU_SM_DB), NULL, a.cq, NULL, &out));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "", doca_gpu_verbs_cpu_proxy_progress(a.exported));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "",
		doca_gpu_dmabuf_fd(n.gpu, a.qp_mem.mem, 4096, &(int){ 0 }));
	side_close(&n, &a);
	nic_close(&n);
}
