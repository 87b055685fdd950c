/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls public host functions with one wrong argument at a time. Each call must
 * fail (a function without an error code must return 0 or do nothing), must not
 * write a result, and must log; every line that it logs must name the wrong
 * argument and contain its value. lib/api_args.py generates the calls from the headers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/nic.h"
#include "../standin/sdk_rig.h"
#include "doca_gpunetio_host.h"
#include "host/gdaki.h"

#include "api_args_rig.h"

static struct {
	struct nic nic;
	doca_gpu_t *gpu;
	doca_verbs_umem_t *umem;
	doca_verbs_cq_attr_t *cq_attr;
	doca_verbs_qp_attr_t *qp_attr;
	doca_verbs_qp_init_attr_t *init_attr;
	doca_verbs_ah_attr_t *ah_attr;
	struct doca_verbs_srq *srq;
	struct doca_verbs_srq_init_attr *srq_attr;
	struct doca_verbs_device_attr *device_attr;
	struct doca_gpu_verbs_qp_init_attr_hl hl_attr;
	struct doca_gpu_verbs_qp_hl *hl;
	struct doca_gpu_verbs_qp_hl *bare; /* not exported */
	struct doca_gpu_verbs_qp_group_hl *group;
	struct doca_gpu_dev_verbs_qp *qp_dev;
	doca_gpu_verbs_service_t service;
	struct gdk_service_attr service_attr;
	struct gdk_events *events;
	struct doca_verbs_gid gid;
	uint64_t *db_reg;
	char text[256];
	char page[8192] __attribute__((aligned(4096)));
} g;

static bool in_sdk; /* use the objects of the DOCA SDK stand-in */

#define MUST(call) cr_assert_eq(call, DOCA_SUCCESS, "%s", #call)

static void open_all(void)
{
	void *reg;

	g.nic = nic_open();
	MUST(doca_gpu_create(in_sdk ? BDF : "host", &g.gpu));
	MUST(doca_verbs_umem_create(g.nic.dev, NULL, g.page, sizeof(g.page), IBV_ACCESS_LOCAL_WRITE,
				    -1, 0, &g.umem));
	MUST(doca_verbs_cq_attr_create(&g.cq_attr));
	MUST(doca_verbs_qp_attr_create(&g.qp_attr));
	MUST(doca_verbs_qp_init_attr_create(&g.init_attr));
	MUST(doca_verbs_ah_attr_create(g.nic.dev, &g.ah_attr));
	MUST(doca_verbs_query_device(g.nic.ctx, &g.device_attr));
	MUST(doca_verbs_srq_init_attr_create(&g.srq_attr));
	MUST(doca_verbs_srq_init_attr_set_pd(g.srq_attr, g.nic.pd));
	MUST(doca_verbs_srq_init_attr_set_srq_wr(g.srq_attr, 16));
	MUST(doca_verbs_srq_init_attr_set_receive_max_sges(g.srq_attr, 1));
	MUST(doca_verbs_srq_create(g.nic.ctx, g.srq_attr, &g.srq));
	g.hl_attr.gpu_dev = g.gpu;
	g.hl_attr.net_dev = g.nic.dev;
	g.hl_attr.ibpd = g.nic.pd;
	g.hl_attr.sq_nwqe = 16;
	MUST(doca_gpu_verbs_create_qp_group_hl(&g.hl_attr, &g.group));
	g.hl_attr.nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	MUST(doca_gpu_verbs_create_qp_hl(&g.hl_attr, &g.hl));
	MUST(doca_gpu_verbs_get_qp_dev(g.hl->qp_gverbs, &g.qp_dev));
	MUST(doca_gpu_verbs_create_qp_hl(&g.hl_attr, &g.bare));
	MUST(doca_gpu_verbs_unexport_qp(g.gpu, g.bare->qp_gverbs));
	g.bare->qp_gverbs = NULL;
	MUST(doca_gpu_verbs_create_service(&g.service));
	MUST(gdk_events_open(g.nic.dev, &g.events));
	MUST(doca_verbs_uar_reg_addr_get(g.hl->external_uar, &reg));
	g.db_reg = reg;
}

/* Destroys all objects; fails if a refused call left one in use. */
static void close_all(void)
{
	MUST(gdk_events_close(g.events));
	MUST(doca_gpu_verbs_destroy_service(g.service));
	MUST(doca_gpu_verbs_destroy_qp_hl(g.bare));
	MUST(doca_gpu_verbs_destroy_qp_hl(g.hl));
	MUST(doca_gpu_verbs_destroy_qp_group_hl(g.group));
	MUST(doca_verbs_srq_destroy(g.srq));
	MUST(doca_verbs_srq_init_attr_destroy(g.srq_attr));
	MUST(doca_verbs_device_attr_free(g.device_attr));
	MUST(doca_verbs_ah_attr_destroy(g.ah_attr));
	MUST(doca_verbs_qp_init_attr_destroy(g.init_attr));
	MUST(doca_verbs_qp_attr_destroy(g.qp_attr));
	MUST(doca_verbs_cq_attr_destroy(g.cq_attr));
	MUST(doca_verbs_umem_destroy(g.umem));
	MUST(doca_gpu_destroy(g.gpu));
	nic_close(&g.nic);
}

static void open_in_sdk(void)
{
	in_sdk = api_null_only = true;
	sdk_begin("sdk");
	open_all();
}

TestSuite(api_args, .init = open_all, .fini = close_all);
TestSuite(api_args_sdk, .init = open_in_sdk, .fini = close_all);

#include "api_args.inc"

Test(api_args, every_wrong_argument_is_refused_and_named_in_the_log)
{
	api_call(wrongs, sizeof(wrongs) / sizeof(wrongs[0]), true);
}

Test(api_args_sdk, every_null_argument_is_refused_and_named_in_the_log)
{
	api_call(wrongs, sizeof(wrongs) / sizeof(wrongs[0]), true);
}

static const char *number(long long value)
{
	static char text[32];

	snprintf(text, sizeof(text), "%lld", value);
	return text;
}

/*
 * Sets one field of the high-level attributes to a wrong value. The functions that
 * create a QP and a group must fail and log the name of the field.
 */
#define FIELD_VALUE(field) \
	number(sizeof(attr.field) == 4 ? (int)(intptr_t)attr.field : (intptr_t)attr.field)
#define FIELD(field, value) \
	do { \
		struct doca_gpu_verbs_qp_init_attr_hl attr = g.hl_attr; \
		void *out = NULL; \
\
		attr.field = value; \
		REFUSES(#field, FIELD_VALUE(field), \
			doca_gpu_verbs_create_qp_hl(&attr, (void *)&out)); \
		cr_expect_null(out); \
		REFUSES(#field, FIELD_VALUE(field), \
			doca_gpu_verbs_create_qp_group_hl(&attr, (void *)&out)); \
		cr_expect_null(out); \
	} while (0)

Test(api_args, wrong_high_level_attributes_are_refused_and_named)
{
	static const char fn[] = "create_qp[_group]_hl";
	struct nic other = nic_open();

	FIELD(gpu_dev, NULL);
	FIELD(net_dev, NULL);
	FIELD(ibpd, other.pd);
	FIELD(sq_nwqe, 0);
	FIELD(sq_nwqe, 32769);
	FIELD(nic_handler, (enum doca_gpu_dev_verbs_nic_handler) - 1);
	FIELD(nic_handler, (enum doca_gpu_dev_verbs_nic_handler)99);
	FIELD(mreg_type, (enum doca_gpu_verbs_mem_reg_type) - 1);
	FIELD(mreg_type, DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_MAX);
	FIELD(send_dbr_mode_ext, (enum doca_gpu_verbs_send_dbr_mode_ext) - 1);
	FIELD(send_dbr_mode_ext, (enum doca_gpu_verbs_send_dbr_mode_ext)99);
	FIELD(ordering_semantic, (enum doca_verbs_qp_ordering_semantic) - 1);
	FIELD(ordering_semantic, (enum doca_verbs_qp_ordering_semantic)99);
	nic_close(&other);
	/* These handlers determine themselves whether the QP has a DBREC, so AUTO is refused. */
	g.hl_attr.send_dbr_mode_ext = GDK_SEND_DBR_MODE_AUTO;
	FIELD(nic_handler, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF);
	FIELD(nic_handler, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR);
}

Test(api_args, wrong_arguments_of_groups_lists_and_services_are_refused)
{
	static const char fn[] = "create";
	struct doca_gpu_verbs_qp_hl *none[3] = { NULL };
	struct gdk_service_attr attr = { .threads = 17 };

	g.hl_attr.nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF;
	REFUSES("nic_handler", "GPU_SM_BF",
		doca_gpu_verbs_create_qp_group_hl(&g.hl_attr, (void *)api_out));
	REFUSES("qp_list", "NULL", doca_gpu_verbs_qp_flat_list_create_hl(none, 3, (void *)api_out));
	REFUSES("qp_list", "0", doca_gpu_verbs_qp_flat_list_create_hl(&g.bare, 1, (void *)api_out));
	REFUSES("threads", "17", gdk_verbs_service_create(&attr, (void *)api_out));
}

/* ---- values that setters accept and the create functions refuse ---- */

static doca_error_t make_qp(void)
{
	doca_verbs_qp_t *qp = NULL;
	doca_error_t err = doca_verbs_qp_create(g.nic.dev, g.init_attr, &qp);

	cr_expect(err ? !qp : !doca_verbs_qp_destroy(qp));
	return err;
}

static doca_error_t make_cq(void)
{
	doca_verbs_cq_t *cq = NULL;
	doca_error_t err = doca_verbs_cq_create(g.nic.dev, g.cq_attr, &cq);

	cr_expect(err ? !cq : !doca_verbs_cq_destroy(cq));
	return err;
}

static doca_error_t make_srq(void)
{
	struct doca_verbs_srq *srq = NULL;
	doca_error_t err = doca_verbs_srq_create(g.nic.ctx, g.srq_attr, &srq);

	cr_expect(err ? !srq : !doca_verbs_srq_destroy(srq));
	return err;
}

/* The setter accepts the wrong value, but `use` fails with it. With the right value it succeeds. */
#define REFUSED_BY_CREATE(set, attr, name, wrong, right, use) \
	do { \
		MUST(set##_##name(attr, wrong)); \
		REFUSES(#name, number((long long)(wrong)), use()); \
		MUST(set##_##name(attr, right)); \
		cr_expect_eq(use(), DOCA_SUCCESS, "%s %s", #name, #right); \
	} while (0)
#define QP_INIT(name, wrong, right) \
	REFUSED_BY_CREATE(doca_verbs_qp_init_attr_set, g.init_attr, name, wrong, right, make_qp)

Test(api_args, qp_create_refuses_wrong_attributes)
{
	static const char fn[] = "doca_verbs_qp_create";

	MUST(doca_verbs_qp_init_attr_set_send_cq(g.init_attr, g.hl->cq_sq));
	MUST(doca_verbs_qp_init_attr_set_receive_cq(g.init_attr, g.hl->cq_sq));
	MUST(doca_verbs_qp_init_attr_set_sq_wr(g.init_attr, 16));
	MUST(doca_verbs_qp_init_attr_set_rq_wr(g.init_attr, 16));
	MUST(doca_verbs_qp_init_attr_set_send_max_sges(g.init_attr, 1));
	MUST(doca_verbs_qp_init_attr_set_receive_max_sges(g.init_attr, 1));
	QP_INIT(sq_wr, 32769, 16);
	QP_INIT(sq_wr, UINT32_MAX, 16);
	QP_INIT(rq_wr, 32769, 16);
	QP_INIT(rq_wr, UINT32_MAX, 16);
	QP_INIT(send_max_sges, 0, 1);
	QP_INIT(send_max_sges, 64, 1);
	QP_INIT(send_max_sges, UINT32_MAX, 1);
	QP_INIT(receive_max_sges, 0, 1);
	QP_INIT(receive_max_sges, 33, 1);
	QP_INIT(receive_max_sges, UINT32_MAX, 1);
	QP_INIT(max_inline_data, 1024, 0);
	QP_INIT(max_inline_data, UINT32_MAX, 0);
	QP_INIT(send_cq, NULL, g.hl->cq_sq);
	QP_INIT(receive_cq, NULL, g.hl->cq_sq);
	QP_INIT(ordering_semantic, DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_RW,
		DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA);
}

Test(api_args, cq_and_srq_create_refuse_wrong_attributes)
{
	static const char fn[] = "doca_verbs_[s]rq|cq_create";

	REFUSED_BY_CREATE(doca_verbs_cq_attr_set, g.cq_attr, cq_size, UINT32_MAX, 16, make_cq);
	REFUSED_BY_CREATE(doca_verbs_cq_attr_set, g.cq_attr, cq_size, 1u << 23, 16, make_cq);
	REFUSED_BY_CREATE(doca_verbs_srq_init_attr_set, g.srq_attr, srq_wr, 32769, 16, make_srq);
	REFUSED_BY_CREATE(doca_verbs_srq_init_attr_set, g.srq_attr, srq_wr, UINT32_MAX, 16,
			  make_srq);
	REFUSED_BY_CREATE(doca_verbs_srq_init_attr_set, g.srq_attr, receive_max_sges, 32, 1,
			  make_srq);
	REFUSED_BY_CREATE(doca_verbs_srq_init_attr_set, g.srq_attr, receive_max_sges, UINT32_MAX, 1,
			  make_srq);
}

/*
 * The whole object must be inside its umem. Rings must be aligned to 64 bytes and
 * DBRECs to 8, and the DBREC must not overlap the ring. The given offset breaks one
 * of these rules, so creation must fail.
 */
static const char *offset_text(unsigned long long offset)
{
	static char text[32];

	snprintf(text, sizeof(text), "%llu", offset);
	return text;
}

#define OUTSIDE(set, attr, offset, use) \
	do { \
		MUST(set(attr, g.umem, offset)); \
		REFUSES("umem", offset_text(offset), use()); \
		MUST(set(attr, NULL, 0)); \
	} while (0)

Test(api_args, objects_outside_their_umem_are_refused)
{
	static const char fn[] = "create";

	MUST(doca_verbs_cq_attr_set_cq_size(g.cq_attr, 64));
	OUTSIDE(doca_verbs_cq_attr_set_external_umem, g.cq_attr, 4096, make_cq);
	OUTSIDE(doca_verbs_cq_attr_set_external_umem, g.cq_attr, UINT64_MAX - 63, make_cq);
	MUST(doca_verbs_srq_init_attr_set_srq_wr(g.srq_attr, 256));
	OUTSIDE(doca_verbs_srq_init_attr_set_external_umem, g.srq_attr, 4160, make_srq);
	OUTSIDE(doca_verbs_srq_init_attr_set_external_umem, g.srq_attr, UINT64_MAX - 63, make_srq);
	OUTSIDE(doca_verbs_srq_init_attr_set_external_umem, g.srq_attr, 32, make_srq);
	MUST(doca_verbs_qp_init_attr_set_send_cq(g.init_attr, g.hl->cq_sq));
	MUST(doca_verbs_qp_init_attr_set_sq_wr(g.init_attr, 64));
	MUST(doca_verbs_qp_init_attr_set_send_max_sges(g.init_attr, 1));
	MUST(doca_verbs_qp_init_attr_set_external_umem_dbr(g.init_attr, g.umem, 0));
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem, g.init_attr, 96, make_qp);
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem, g.init_attr, 4160, make_qp);
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem, g.init_attr, UINT64_MAX - 63, make_qp);
	MUST(doca_verbs_qp_init_attr_set_external_umem(g.init_attr, g.umem, 4096));
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem_dbr, g.init_attr, 8192, make_qp);
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem_dbr, g.init_attr, UINT64_MAX - 7,
		make_qp);
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem_dbr, g.init_attr, 4, make_qp);
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem_dbr, g.init_attr, 8184, make_qp);
	OUTSIDE(doca_verbs_qp_init_attr_set_external_umem_dbr, g.init_attr, 4096, make_qp);
	MUST(doca_verbs_qp_init_attr_set_external_umem_dbr(g.init_attr, g.umem, 4088));
	cr_expect_eq(make_qp(), DOCA_SUCCESS, "a DBREC in the last 8 bytes before the ring");
}
