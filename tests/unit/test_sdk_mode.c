/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * When the DOCA SDK is used and when it is not, what is logged about this, and refusal
 * of calls that mix the SDK's objects with others. If any call of the SDK or any
 * allocation fails, nothing may leak.
 */
#include <sys/stat.h>

#include "../standin/sdk_rig.h"
#include "../lib/failalloc.h"
#include "../lib/fds.h"
#include "../../core/sdk/sdk.h"
#include "../../qp/export/export.h"
#include "device/gdk/state.h"
#include "host/gdaki.h"

#define RUNS_MAX 150 /* more than the number of calls */

/* Creates objects and expects them to be those of the open library. */
static void expect_open(void)
{
	struct nic nic = nic_open();
	doca_verbs_qp_attr_t *attr;
	doca_verbs_uar_t *uar;
	doca_gpu_t *gpu;

	cr_expect_eq(doca_gpu_create("host", &gpu), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &uar),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_expect_not(gdk_sdk_in_use());
	cr_expect_eq(doca_verbs_qp_attr_set_retry_cnt(attr, 8), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_qp_attr_destroy(attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_uar_destroy(uar), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	nic_close(&nic);
}

static void expect_log(const char *what)
{
	const char *log = sdk_captured();

	cr_expect(strstr(log, what), "\"%s\" is not in the log:\n%s", what, log);
}

static void expect_warning(const char *what)
{
	const char *at = strstr(sdk_captured(), what);

	expect_log(what);
	while (at && at > sdk_captured() && at[-1] != '\n')
		at--;
	cr_expect(at && strstr(at, " gdaki WARNING ") && strstr(at, "DOCA SDK is not in use\n"),
		  "%s", at);
}

Test(sdk_mode, unset_or_empty_path_uses_the_open_library_silently)
{
	sdk_capture();
	setenv("DOCA_SDK_LIB_PATH", "", 1);
	expect_open();
	cr_expect_not(strstr(sdk_captured(), "SDK"), "%s", sdk_captured());
}

Test(sdk_mode, wrong_folder_is_logged_with_the_missing_file)
{
	sdk_capture();
	setenv("DOCA_SDK_LIB_PATH", "/no/such/folder", 1);
	expect_open();
	expect_warning("/no/such/folder/libdoca_common.so");
	expect_log("Use DOCA GPUNetIO open\n");
	expect_log("Use DOCA Verbs Dev open\n");
	expect_log("Use DOCA Verbs UAR open\n");
	expect_log("Use DOCA Verbs QP Attr open\n");
}

/* The SDK has three libraries, and all are needed. The test's folder has only one. */
Test(sdk_mode, missing_library_is_logged_and_the_others_are_closed)
{
	char dir[] = "/tmp/gdk-sdk-XXXXXX", from[4096], to[64];

	cr_assert(mkdtemp(dir));
	standin_path(from, sizeof(from), "sdk/libdoca_common.so");
	snprintf(to, sizeof(to), "%s/libdoca_common.so", dir);
	cr_assert_eq(symlink(from, to), 0);
	sdk_capture();
	setenv("DOCA_SDK_LIB_PATH", dir, 1);
	expect_open();
	expect_warning("/libdoca_verbs.so");
	cr_expect_null(dlopen(from, RTLD_NOW | RTLD_NOLOAD));
	unlink(to);
	rmdir(dir);
}

Test(sdk_mode, missing_function_is_logged_and_the_libraries_are_closed)
{
	char path[4096];

	sdk_capture();
	sdk_env("sdk_broken");
	expect_open();
	expect_warning("doca_verbs_qp_modify");
	standin_path(path, sizeof(path), "sdk_broken/libdoca_verbs.so");
	cr_expect_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

Test(sdk_mode, log_names_the_library_in_use)
{
	struct nic nic;
	doca_verbs_uar_t *uar;
	doca_gpu_t *gpu, *host;

	sdk_capture();
	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_gpu_create(BDF, &gpu), DOCA_SUCCESS);
	expect_log("the DOCA SDK is in use\n");
	expect_log("Use DOCA GPUNetIO SDK\n");
	expect_log("Use DOCA Verbs Dev SDK\n");
	cr_assert_eq(doca_gpu_create("host", &host), DOCA_SUCCESS);
	expect_log("Use DOCA GPUNetIO open\n");
	sdk_fail_at(1);
	cr_expect_eq(doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &uar),
		     DOCA_ERROR_DRIVER);
	expect_log("Use DOCA Verbs UAR SDK\n");
	expect_log("gdaki ERR sdk.c");
	expect_log("doca_uar_create of the DOCA SDK failed: DOCA_ERROR_DRIVER (21)\n");
	cr_expect_eq(doca_gpu_destroy(host), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	nic_close(&nic);
}

/* ---- old versions of the SDK ---- */

Test(sdk_mode, old_sdk_without_new_functions_is_accepted)
{
	doca_verbs_qp_init_attr_t *init;
	struct doca_verbs_device_attr *attr;
	struct doca_verbs_srq_init_attr *srq_attr;
	struct gdk_qp_init_attr init_values;
	struct gdk_qp_attr values;
	doca_verbs_qp_attr_t *qp_attr;
	doca_verbs_ah_attr_t *ah;
	struct nic nic;

	sdk_capture();
	sdk_begin("sdk_old");
	nic = nic_open();
	cr_expect(gdk_sdk_in_use());
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_init_attr_set_ordering_semantic(
			     init, DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_RW),
		     DOCA_ERROR_NOT_SUPPORTED);
	expect_log("has no doca_verbs_qp_init_attr_set_ordering_semantic\n");
	cr_expect_eq(gdk_verbs_qp_init_attr_get(init, &init_values), DOCA_ERROR_NOT_SUPPORTED);
	expect_log("belongs to the DOCA SDK\n");
	cr_assert_eq(doca_verbs_qp_attr_create(&qp_attr), DOCA_SUCCESS);
	cr_expect_eq(gdk_verbs_qp_attr_get(qp_attr, &values), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(doca_verbs_qp_attr_destroy(qp_attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_srq_init_attr_create(&srq_attr), DOCA_ERROR_NOT_SUPPORTED);
	expect_log("has no doca_verbs_srq_init_attr_create\n");
	/* Values that the library itself stores or queries remain available. */
	cr_assert_eq(doca_verbs_ah_attr_create(nic.dev, &ah), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_ah_attr_set_dlid(ah, 5), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_ah_get_dlid(ah), 5);
	cr_assert_eq(doca_verbs_query_device(nic.ctx, &attr), DOCA_SUCCESS);
	cr_expect_gt(doca_verbs_device_attr_get_max_qp(attr), 101);
	cr_expect_eq(doca_verbs_device_attr_free(attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_ah_attr_destroy(ah), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_init_attr_destroy(init), DOCA_SUCCESS);
	nic_close(&nic);
}

/* ---- objects of the SDK and of the open library ---- */

/* While the SDK is in use, gdaki creates no objects of its own. This struct looks like one. */
struct open_object {
	void *sdk;
	char rest[1024];
};

#define REFUSES(call, whose, other) \
	do { \
		sdk_clear(); \
		sdk_forget(); \
		cr_expect_eq(call, DOCA_ERROR_INVALID_VALUE); \
		cr_expect_str_eq(sdk_record(), "", "the SDK was called: %s", sdk_record()); \
		expect_log(": " whose " belongs to the DOCA SDK, " other \
			   " does not: cannot mix them\n"); \
	} while (0)

/* init and attr belong to the SDK, open to the open library. */
static void refuse_mixed_qp(doca_verbs_qp_init_attr_t *init, doca_verbs_qp_attr_t *attr, void *open)
{
	doca_verbs_qp_t *out;

	REFUSES(doca_verbs_qp_init_attr_set_pd(init, open), "qp_init_attr", "pd");
	REFUSES(doca_verbs_qp_init_attr_set_send_cq(init, open), "qp_init_attr", "send_cq");
	REFUSES(doca_verbs_qp_init_attr_set_receive_cq(open, (void *)attr), "receive_cq",
		"qp_init_attr");
	REFUSES(doca_verbs_qp_init_attr_set_external_uar(init, open), "qp_init_attr",
		"external_uar");
	REFUSES(doca_verbs_qp_init_attr_set_srq(init, open), "qp_init_attr", "srq");
	REFUSES(doca_verbs_qp_init_attr_set_external_umem(init, open, 0), "qp_init_attr",
		"external_umem");
	REFUSES(doca_verbs_qp_init_attr_set_external_umem_dbr(init, open, 0), "qp_init_attr",
		"external_umem");
	REFUSES(doca_verbs_qp_attr_set_ah_attr(attr, open), "qp_attr", "ah_attr");
	REFUSES(doca_verbs_qp_create(open, init, &out), "qp_init_attr", "net_dev");
	REFUSES(doca_verbs_qp_modify(open, attr, 0), "qp_attr", "qp");
	REFUSES(doca_verbs_qp_query(open, attr, init, NULL), "qp_attr", "qp");
	REFUSES(doca_verbs_qp_query(open, open, init, NULL), "qp_init_attr", "qp");
}

Test(sdk_mode, objects_of_sdk_and_open_library_cannot_be_mixed)
{
	struct doca_gpu_verbs_qp_init_attr_hl hl = { .sq_nwqe = 8 };
	struct open_object other = { 0 };
	void *open = &other, *umem, *out;
	doca_verbs_qp_init_attr_t *init;
	struct doca_verbs_srq_init_attr *srq_attr;
	doca_verbs_cq_attr_t *cq_attr;
	doca_verbs_qp_attr_t *attr;
	doca_gpu_t *gpu, *host;
	struct nic nic;
	char mem[64];

	sdk_capture();
	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_gpu_create(BDF, &gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_create("host", &host), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_create(&cq_attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_init_attr_create(&srq_attr), DOCA_SUCCESS);
	REFUSES(doca_verbs_srq_init_attr_set_external_umem(srq_attr, open, 0), "srq_init_attr",
		"external_umem");
	REFUSES(doca_verbs_umem_create(nic.dev, host, mem, 64, 0, NO_FD, 0, (void *)&umem),
		"net_dev", "gpu");
	REFUSES(doca_verbs_umem_create(open, gpu, mem, 64, 0, NO_FD, 0, (void *)&umem), "gpu",
		"net_dev");
	REFUSES(doca_verbs_cq_attr_set_external_umem(cq_attr, open, 0), "cq_attr", "external_umem");
	REFUSES(doca_verbs_cq_attr_set_external_uar(cq_attr, open), "cq_attr", "external_uar");
	REFUSES(doca_verbs_cq_create(nic.dev, open, (void *)&out), "net_dev", "cq_attr");
	REFUSES(doca_verbs_cq_create(open, cq_attr, (void *)&out), "cq_attr", "net_dev");
	refuse_mixed_qp(init, attr, open);
	REFUSES(doca_gpu_verbs_export_qp(gpu, open, 0, NULL, open, 0, (void *)&out), "gpu_dev",
		"qp");
	REFUSES(doca_gpu_verbs_export_qp(host, open, 0, NULL, (void *)attr, 0, (void *)&out),
		"cq_sq", "qp");
	hl.gpu_dev = host;
	hl.net_dev = nic.dev;
	REFUSES(doca_gpu_verbs_create_qp_hl(&hl, (void *)&out), "qp_init_attr->net_dev",
		"qp_init_attr->gpu_dev");
	cr_expect_eq(doca_verbs_srq_init_attr_destroy(srq_attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_cq_attr_destroy(cq_attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_attr_destroy(attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_init_attr_destroy(init), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(host), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	nic_close(&nic);
}

/* A NULL object belongs to neither library, so it must be accepted. */
Test(sdk_mode, null_is_accepted_beside_sdk_objects)
{
	doca_verbs_qp_init_attr_t *init;

	sdk_begin("sdk");
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	sdk_clear();
	cr_expect_eq(doca_verbs_qp_init_attr_set_srq(init, NULL), DOCA_SUCCESS);
	cr_expect_str_eq(sdk_record(), "doca_verbs_qp_init_attr_set_srq(qp_init_attr, NULL)\n");
	cr_expect_eq(doca_verbs_qp_init_attr_destroy(init), DOCA_SUCCESS);
}

/* ---- receives by GPU threads ---- */

Test(sdk_mode, queue_pairs_with_receives_are_refused_with_the_reason)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 8 };
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = 8 };
	struct doca_gpu_verbs_qp_group_hl *group = NULL;
	struct doca_gpu_verbs_qp_hl *hl, *none = NULL;
	struct doca_gpu_verbs_qp *out = NULL;
	struct nic nic;

	sdk_capture();
	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_gpu_create(BDF, &attr.gpu_dev), DOCA_SUCCESS);
	attr.net_dev = nic.dev;
	sdk_forget();
	cr_expect_eq(gdk_verbs_create_qp_group_rq_hl(&attr, &rq, 0, &group),
		     DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(sdk_captured(), "high-level QPs of the SDK have no receive"));
	cr_expect_null(group);
	sdk_forget();
	cr_expect_eq(gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &none), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(sdk_captured(), "high-level QPs of the SDK have no receive"));
	cr_expect_null(none);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	sdk_forget();
	cr_expect_eq(gdk_verbs_export_qp_rq(attr.gpu_dev, hl->qp, 0, hl->cq_sq, hl->cq_sq, 0, &out),
		     DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(sdk_captured(), "it belongs to the DOCA SDK"));
	cr_expect_null(out);
	cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(attr.gpu_dev), DOCA_SUCCESS);
	nic_close(&nic);
}

Test(sdk_mode, shared_receive_queues_are_not_exported)
{
	struct doca_gpu_dev_verbs_qp *dev = NULL;
	struct doca_gpu_dev_verbs_cq cq_dev;
	struct doca_verbs_srq_init_attr *attr;
	struct doca_verbs_srq *srq;
	doca_verbs_cq_attr_t *cq_attr;
	doca_verbs_cq_t *cq;
	doca_gpu_t *gpu;
	struct nic nic;

	sdk_capture();
	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_gpu_create(BDF, &gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_init_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_init_attr_set_pd(attr, nic.pd), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_create(nic.ctx, attr, &srq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_create(&cq_attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, cq_attr, &cq), DOCA_SUCCESS);
	sdk_forget();
	cr_expect_eq(gdk_verbs_export_srq(gpu, srq, &dev), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(sdk_captured(), "it belongs to the DOCA SDK, which does not tell where"));
	cr_expect_null(dev);
	cr_expect_eq(gdk_verbs_srq_get_cq_dev(srq, cq, &cq_dev), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(gdk_verbs_unexport_srq(srq), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(doca_verbs_srq_destroy(srq), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_srq_init_attr_destroy(attr), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_cq_attr_destroy(cq_attr), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	nic_close(&nic);
}

/* ---- external queue memory: the receive queue precedes the send queue ---- */

Test(sdk_mode, external_queues_are_at_the_given_offsets)
{
	static uint8_t mem[8192] __attribute__((aligned(4096)));
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_umem_t *umem;
	doca_verbs_qp_t *qp;
	struct nic nic;

	setenv("STANDIN_SDK_RQ", "5", 1); /* five receive WQEs of 16 bytes: a ring of 128 bytes */
	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_verbs_umem_create(nic.dev, NULL, mem, sizeof(mem), 0, NO_FD, 0, &umem),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_set_external_umem(init, umem, 256), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_set_external_umem_dbr(init, umem, 64), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_create(nic.dev, init, &qp), DOCA_SUCCESS);
	cr_expect_eq(qp->rq_buf, mem + 256);
	cr_expect_eq(qp->sq_buf, mem + 256 + 128);
	cr_expect_eq(qp->dbrec, (uint32_t *)(mem + 64));
	cr_expect_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_init_attr_destroy(init), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	nic_close(&nic);
}

/* ---- objects in use ---- */

Test(sdk_mode, objects_in_use_are_not_destroyed)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = 64 };
	struct doca_gpu_verbs_qp_hl *hl;
	struct nic nic;

	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_gpu_create(BDF, &attr.gpu_dev), DOCA_SUCCESS);
	attr.net_dev = nic.dev;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	sdk_clear();
	cr_expect_eq(doca_verbs_qp_destroy(hl->qp), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_verbs_cq_destroy(hl->cq_sq), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_verbs_umem_destroy(hl->qp_umem), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_verbs_uar_destroy(hl->external_uar), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_verbs_dev_close(nic.dev), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_gpu_destroy(attr.gpu_dev), DOCA_ERROR_IN_USE);
	cr_expect_str_eq(sdk_record(), "");
	cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(attr.gpu_dev), DOCA_SUCCESS);
	nic_close(&nic);
	cr_expect_eq(sdk_live(), 0);
}

/* ---- connection ---- */

static bool refuses_waits(const struct doca_gpu_verbs_qp_hl *hl)
{
	const struct gdk_watch_word *word =
		(const void *)gdk_to_export(hl->qp_gverbs)->watch.word.cpu;

	cr_assert(word);
	return word->hint == GDK_HINT_UNCONNECTED;
}

Test(sdk_mode, waits_are_refused_until_the_sdk_connected_the_qp)
{
	static const enum doca_verbs_qp_state states[] = {
		DOCA_VERBS_QP_STATE_INIT,
		DOCA_VERBS_QP_STATE_RTR,
		DOCA_VERBS_QP_STATE_RTS,
		DOCA_VERBS_QP_STATE_ERR,
	};
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = 64 };
	struct doca_gpu_verbs_qp_hl *hl;
	doca_verbs_qp_attr_t *to;
	struct nic nic;

	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_gpu_create(BDF, &attr.gpu_dev), DOCA_SUCCESS);
	attr.net_dev = nic.dev;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_create(&to), DOCA_SUCCESS);
	cr_expect(refuses_waits(hl));
	for (unsigned int i = 0; i < 4; i++) {
		cr_assert_eq(doca_verbs_qp_attr_set_next_state(to, states[i]), DOCA_SUCCESS);
		cr_assert_eq(doca_verbs_qp_modify(hl->qp, to, DOCA_VERBS_QP_ATTR_NEXT_STATE),
			     DOCA_SUCCESS);
		cr_expect_eq(refuses_waits(hl), states[i] < DOCA_VERBS_QP_STATE_RTS);
	}
	cr_expect_eq(doca_verbs_qp_attr_destroy(to), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(attr.gpu_dev), DOCA_SUCCESS);
	nic_close(&nic);
}

/* ---- failures of the SDK's calls and of allocations ---- */

static doca_error_t make_all(struct ibv_pd *pd, struct ibv_context *ctx)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = 64 };
	struct doca_verbs_srq_init_attr *srq_attr = NULL;
	struct doca_gpu_verbs_qp_group_hl *group = NULL;
	struct doca_gpu_verbs_qp_error_info info;
	struct doca_verbs_device_attr *caps = NULL;
	struct doca_gpu_dev_verbs_qp *dev;
	struct doca_verbs_srq *srq = NULL;
	doca_verbs_ah_attr_t *ah = NULL;
	doca_error_t err;

	err = doca_gpu_create(BDF, &attr.gpu_dev) ?: doca_verbs_dev_open(pd, &attr.net_dev) ?:
	      doca_verbs_query_device(ctx, &caps) ?: doca_verbs_ah_attr_create(attr.net_dev, &ah) ?:
	      doca_verbs_srq_init_attr_create(&srq_attr) ?:
	      doca_verbs_srq_init_attr_set_pd(srq_attr, pd) ?:
	      doca_verbs_srq_init_attr_set_pd(srq_attr, pd) ?:
	      doca_verbs_srq_create(ctx, srq_attr, &srq) ?:
	      doca_gpu_verbs_create_qp_group_hl(&attr, &group) ?:
	      doca_gpu_verbs_get_qp_dev(group->qp_main.qp_gverbs, &dev) ?:
	      doca_gpu_verbs_query_last_error(group->qp_main.qp_gverbs, &info);
	sdk_fail_at(0);
	if (group)
		cr_expect_eq(doca_gpu_verbs_destroy_qp_group_hl(group), DOCA_SUCCESS);
	if (srq)
		cr_expect_eq(doca_verbs_srq_destroy(srq), DOCA_SUCCESS);
	if (srq_attr)
		cr_expect_eq(doca_verbs_srq_init_attr_destroy(srq_attr), DOCA_SUCCESS);
	if (ah)
		cr_expect_eq(doca_verbs_ah_attr_destroy(ah), DOCA_SUCCESS);
	if (caps)
		cr_expect_eq(doca_verbs_device_attr_free(caps), DOCA_SUCCESS);
	if (attr.net_dev)
		cr_expect_eq(doca_verbs_dev_close(attr.net_dev), DOCA_SUCCESS);
	if (attr.gpu_dev)
		cr_expect_eq(doca_gpu_destroy(attr.gpu_dev), DOCA_SUCCESS);
	return err;
}

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	unsigned int fds, failed;
	size_t blocks;
} leaks;

static void begin_leaks(void)
{
	leaks.ctx = nic_open_context();
	leaks.pd = ibv_alloc_pd(leaks.ctx);
	setenv("DOCA_GPUNETIO_LOG", "0", 1);
	sdk_begin("sdk");
	cr_assert_eq(make_all(leaks.pd, leaks.ctx), DOCA_SUCCESS);
	leaks.fds = count_fds();
	leaks.blocks = failalloc_live();
}

/*
 * More open descriptors than at the start count as a leak only if they occur in every try,
 * because another thread of the test runner may open one. It may also have had one open at the
 * start; then later counts are lower.
 */
static void run_once(void (*arm)(long n), long n)
{
	unsigned int tries = 0, fds;
	doca_error_t err;

	do {
		arm(n);
		err = make_all(leaks.pd, leaks.ctx);
		failalloc_disarm();
	} while (count_fds() > leaks.fds && ++tries < 3);
	leaks.failed += err != DOCA_SUCCESS;
	cr_assert_eq(sdk_live(), 0, "run %ld: %d objects of the SDK leaked\n%s", n, sdk_live(),
		     sdk_record());
	cr_assert_eq(standin_cuda_live(), 0, "run %ld: CUDA objects leaked", n);
	cr_assert_eq(failalloc_live(), leaks.blocks, "run %ld: memory leaked", n);
	for (tries = 0; (fds = count_fds()) > leaks.fds && tries < 1000; tries++)
		usleep(1000);
	cr_assert_leq(fds, leaks.fds, "run %ld: %u descriptors are open, %u before", n, fds,
		      leaks.fds);
	leaks.fds = fds;
	sdk_clear();
}

static void end_leaks(unsigned int at_least)
{
	cr_expect_geq(leaks.failed, at_least, "only %u runs failed", leaks.failed);
	ibv_dealloc_pd(leaks.pd);
	ibv_close_device(leaks.ctx);
}

Test(sdk_mode, no_leak_if_any_sdk_call_fails)
{
	long n;

	begin_leaks();
	for (n = 1; n < RUNS_MAX; n++)
		run_once(sdk_fail_at, n);
	end_leaks(60);
}

static void fail_alloc_at(long n)
{
	failalloc_arm((uint32_t)n);
}

Test(sdk_mode, no_leak_if_any_allocation_fails)
{
	long n;

	if (!FAILALLOC_WORKS)
		cr_skip_test("a sanitizer replaces malloc");
	begin_leaks();
	for (n = 1; n < RUNS_MAX; n++)
		run_once(fail_alloc_at, n);
	end_leaks(25);
}
