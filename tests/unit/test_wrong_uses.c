/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Combinations of arguments that are valid each by itself, but not together or not
 * with this GPU. The call must be refused, the log must state the reason, and
 * nothing may change. Most tests are of QPs: creation, transitions and export.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/nic.h"
#include "../lib/standin.h"

#define A(name)	   DOCA_VERBS_QP_ATTR_##name
#define S(name)	   DOCA_VERBS_QP_STATE_##name
#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name
#define BDF	   "8a:00.0"

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_hl *hl; /* not exported */

static void open_on(const char *gpu)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };

	e2e_open_on(&nic, gpu);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.sq_nwqe = 64;
	attr.nic_handler = E2E_DB;
	cr_assert(!doca_gpu_verbs_create_qp_hl(&attr, &hl));
	cr_assert(!doca_gpu_verbs_unexport_qp(nic.gpu, hl->qp_gverbs));
	hl->qp_gverbs = NULL;
}

static void open_host(void)
{
	open_on("host");
}

static void open_cuda(void)
{
	standin_cuda();
	open_on(BDF);
}

static void close_all(void)
{
	cr_expect(!doca_gpu_verbs_destroy_qp_hl(hl));
	e2e_close(&nic);
}

TestSuite(wrong_uses, .init = open_host, .fini = close_all);
TestSuite(wrong_uses_cuda, .init = open_cuda, .fini = close_all);

/* ---- creation ---- */

static doca_verbs_qp_init_attr_t *init_attr(void)
{
	doca_verbs_qp_init_attr_t *attr;

	cr_assert(!doca_verbs_qp_init_attr_create(&attr));
	cr_assert(!doca_verbs_qp_init_attr_set_sq_wr(attr, 64));
	cr_assert(!doca_verbs_qp_init_attr_set_send_max_sges(attr, 1));
	cr_assert(!doca_verbs_qp_init_attr_set_send_cq(attr, hl->cq_sq));
	return attr;
}

static doca_error_t make(doca_verbs_qp_init_attr_t *attr)
{
	doca_verbs_qp_t *made = NULL;
	doca_error_t err = doca_verbs_qp_create(nic.dev, attr, &made);

	cr_expect(err ? !made : !doca_verbs_qp_destroy(made));
	return err;
}

#define SET(attr, name, ...) cr_assert(!doca_verbs_qp_init_attr_set_##name(attr, __VA_ARGS__))

Test(wrong_uses, conflicting_qp_attributes)
{
	doca_verbs_qp_init_attr_t *attr = init_attr();
	struct nic other = nic_open();

	SET(attr, pd, other.dev);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "belongs to another device than net_dev", make(attr));
	SET(attr, pd, nic.dev);
	SET(attr, sq_wr, 0);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "it has no queue: set sq_wr, rq_wr or srq", make(attr));
	SET(attr, sq_wr, 64);
	SET(attr, external_umem, hl->qp_umem, 0);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "set both or none", make(attr));
	SET(attr, external_umem, NULL, 0);
	SET(attr, emulate_no_dbr_ext, true);
	SET(attr, send_dbr_mode, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "exclude each other", make(attr));
	SET(attr, emulate_no_dbr_ext, false);
	SET(attr, send_dbr_mode, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID);
	cr_expect_eq(make(attr), DOCA_SUCCESS);
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
	nic_close(&other);
}

Test(wrong_uses, qp_with_only_a_receive_queue_is_accepted)
{
	doca_verbs_qp_init_attr_t *attr = init_attr();

	SET(attr, sq_wr, 0);
	/* one WQE of 16 bytes; the library enlarges the ring to its minimum of 64 bytes */
	SET(attr, rq_wr, 1);
	SET(attr, receive_max_sges, 1);
	SET(attr, receive_cq, hl->cq_sq);
	cr_expect_eq(make(attr), DOCA_SUCCESS);
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
}

Test(wrong_uses, umem_of_another_device)
{
	static char mem[8192] __attribute__((aligned(4096)));
	struct doca_verbs_srq_init_attr *srq_attr;
	struct doca_verbs_srq *srq = NULL;
	doca_verbs_cq_attr_t *cq_attr;
	doca_verbs_qp_init_attr_t *attr = init_attr();
	struct nic other = nic_open();
	doca_verbs_cq_t *cq = NULL;
	doca_verbs_umem_t *umem;

	cr_assert(!doca_verbs_umem_create(other.dev, NULL, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE,
					  -1, 0, &umem));
	SET(attr, external_umem, umem, 0);
	SET(attr, external_umem_dbr, umem, 4096);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "a work queue of 4096 bytes at offset 0 is not in umem",
		make(attr));
	cr_assert(!doca_verbs_cq_attr_create(&cq_attr));
	cr_assert(!doca_verbs_cq_attr_set_cq_size(cq_attr, 16));
	cr_assert(!doca_verbs_cq_attr_set_external_umem(cq_attr, umem, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "CQ: a ring of 1032 bytes at offset 0 is not in umem",
		doca_verbs_cq_create(nic.dev, cq_attr, &cq));
	cr_assert(!doca_verbs_srq_init_attr_create(&srq_attr));
	cr_assert(!doca_verbs_srq_init_attr_set_pd(srq_attr, nic.pd));
	cr_assert(!doca_verbs_srq_init_attr_set_srq_wr(srq_attr, 16));
	cr_assert(!doca_verbs_srq_init_attr_set_receive_max_sges(srq_attr, 1));
	cr_assert(!doca_verbs_srq_init_attr_set_external_umem(srq_attr, umem, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "SRQ: a ring of 520 bytes at offset 0 is not in umem",
		doca_verbs_srq_create(nic.ctx, srq_attr, &srq));
	cr_assert(!cq && !srq);
	cr_assert(!doca_verbs_srq_init_attr_destroy(srq_attr));
	cr_assert(!doca_verbs_cq_attr_destroy(cq_attr));
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
	cr_assert(!doca_verbs_umem_destroy(umem));
	nic_close(&other);
}

/* ---- modification ---- */

static doca_error_t move(doca_verbs_qp_attr_t *attr, enum doca_verbs_qp_state to, int mask)
{
	cr_assert(!doca_verbs_qp_attr_set_next_state(attr, to));
	return doca_verbs_qp_modify(hl->qp, attr, mask | A(NEXT_STATE));
}

#define TO_INIT (A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ))
#define TO_RTR	(A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) | A(MIN_RNR_TIMER))
#define TO_RTS	(A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY))

Test(wrong_uses, conflicting_transition_attributes)
{
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr;
	struct doca_verbs_gid gid;

	memcpy(gid.raw, nic.gid.raw, sizeof(gid.raw));
	cr_assert(!doca_verbs_ah_attr_create(nic.dev, &ah));
	cr_assert(!doca_verbs_ah_attr_set_gid(ah, gid));
	cr_assert(!doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)nic.gid_index));
	cr_assert(!doca_verbs_qp_attr_create(&attr));
	cr_assert(!doca_verbs_qp_attr_set_port_num(attr, 1));
	cr_assert(!move(attr, S(INIT), TO_INIT));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "no ah_attr was set", move(attr, S(RTR), TO_RTR));
	cr_assert(!doca_verbs_qp_attr_set_ah_attr(attr, ah));
	gid = (struct doca_verbs_gid){ { 0xfe, 0x80, [11] = 0xff, 0xfe } };
	cr_assert(!doca_verbs_ah_attr_set_gid(ah, gid));
	cr_assert(!doca_verbs_qp_attr_set_ah_attr(attr, ah));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "GID fe80::ff:fe00:0 have different IP versions",
		move(attr, S(RTR), TO_RTR));
	memcpy(gid.raw, nic.gid.raw, sizeof(gid.raw));
	cr_assert(!doca_verbs_ah_attr_set_gid(ah, gid));
	cr_assert(!doca_verbs_qp_attr_set_ah_attr(attr, ah));
	cr_assert(!doca_verbs_qp_attr_set_max_dest_rd_atomic(attr, 255));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "max_dest_rd_atomic 255 is too large",
		move(attr, S(RTR), TO_RTR | A(MAX_DEST_RD_ATOMIC)));
	cr_assert(!doca_verbs_qp_attr_set_rq_psn(attr, 0xff000001));
	REFUSED(DOCA_SUCCESS, "PSN 0xff000001 has more than 24 bits", move(attr, S(RTR), TO_RTR));
	cr_assert(!doca_verbs_qp_attr_set_max_rd_atomic(attr, 255));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "max_rd_atomic 255 is too large",
		move(attr, S(RTS), TO_RTS | A(MAX_QP_RD_ATOMIC)));
	cr_expect_eq(move(attr, S(RTS), TO_RTS), DOCA_SUCCESS);
	cr_assert(!doca_verbs_qp_attr_destroy(attr));
	cr_assert(!doca_verbs_ah_attr_destroy(ah));
}

/* ---- export ---- */

static doca_error_t export_as(doca_gpu_t *gpu, doca_verbs_qp_t *qp,
			      enum doca_gpu_dev_verbs_nic_handler handler,
			      enum doca_gpu_verbs_send_dbr_mode_ext mode)
{
	struct doca_gpu_verbs_qp *made = NULL;
	doca_error_t err = doca_gpu_verbs_export_qp(gpu, qp, handler, NULL, hl->cq_sq, mode, &made);

	cr_expect(err ? !made : !doca_gpu_verbs_unexport_qp(gpu, made));
	return err;
}

Test(wrong_uses, export_with_a_cq_that_is_too_small)
{
	doca_verbs_qp_init_attr_t *attr = init_attr();
	doca_verbs_qp_t *big;

	SET(attr, sq_wr, 128);
	cr_assert(!doca_verbs_qp_create(nic.dev, attr, &big));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "a CQ of 64 entries is too small",
		export_as(nic.gpu, big, E2E_DB, MODE(VALID_DBR)));
	cr_assert(!doca_verbs_qp_destroy(big));
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
}

/* Device threads of two QPs would consume each other's completions. */
Test(wrong_uses, export_with_the_cq_of_another_exported_qp)
{
	doca_verbs_qp_init_attr_t *attr = init_attr();
	struct doca_gpu_verbs_qp *made = NULL;
	doca_verbs_qp_t *second;

	cr_assert(!doca_verbs_qp_create(nic.dev, attr, &second));
	cr_assert(!doca_gpu_verbs_export_qp(nic.gpu, hl->qp, E2E_DB, NULL, hl->cq_sq,
					    MODE(VALID_DBR), &made));
	REFUSED(DOCA_ERROR_IN_USE, "another exported QP uses CQ",
		export_as(nic.gpu, second, E2E_DB, MODE(VALID_DBR)));
	cr_assert(!doca_gpu_verbs_unexport_qp(nic.gpu, made));
	cr_expect_eq(export_as(nic.gpu, second, E2E_DB, MODE(VALID_DBR)), DOCA_SUCCESS);
	cr_assert(!doca_verbs_qp_destroy(second));
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
}

Test(wrong_uses_cuda, export_of_memory_that_the_gpu_cannot_access)
{
	doca_verbs_qp_init_attr_t *attr = init_attr();
	doca_verbs_qp_t *internal;

	cr_assert(!doca_verbs_qp_create(nic.dev, attr, &internal));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "is in internal host memory, which GPU",
		export_as(nic.gpu, internal, E2E_DB, MODE(VALID_DBR)));
	cr_assert(!doca_verbs_qp_destroy(internal));
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
}

Test(wrong_uses_cuda, export_with_a_cq_that_the_gpu_cannot_access)
{
	doca_verbs_qp_init_attr_t *attr = init_attr();
	struct doca_gpu_verbs_qp *made = NULL;
	doca_verbs_cq_attr_t *cq_attr;
	doca_verbs_qp_t *qp;
	doca_verbs_cq_t *cq;

	cr_assert(!doca_verbs_cq_attr_create(&cq_attr));
	cr_assert(!doca_verbs_cq_attr_set_cq_size(cq_attr, 64));
	cr_assert(!doca_verbs_cq_create(nic.dev, cq_attr, &cq));
	SET(attr, send_cq, cq);
	SET(attr, external_umem, hl->qp_umem, 0);
	SET(attr, external_umem_dbr, hl->qp_umem, 64 * 64); /* behind the ring */
	cr_assert(!doca_verbs_qp_create(nic.dev, attr, &qp));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "its CQ is in internal host memory, which GPU",
		doca_gpu_verbs_export_qp(nic.gpu, qp, E2E_DB, NULL, cq, MODE(VALID_DBR), &made));
	cr_assert(!doca_verbs_qp_destroy(qp));
	cr_assert(!doca_verbs_cq_destroy(cq));
	cr_assert(!doca_verbs_cq_attr_destroy(cq_attr));
	cr_assert(!doca_verbs_qp_init_attr_destroy(attr));
}

Test(wrong_uses_cuda, dbrec_that_the_cpu_cannot_write)
{
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "the CPU cannot write the memory of the QP's DBREC",
		export_as(nic.gpu, hl->qp, E2E_PROXY, MODE(VALID_DBR)));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "NO_DBR_SW_EMULATED",
		export_as(nic.gpu, hl->qp, E2E_NO_DBR, MODE(NO_DBR_SW_EMULATED)));
	cr_expect_eq(export_as(nic.gpu, hl->qp, E2E_DB, MODE(VALID_DBR)), DOCA_SUCCESS);
}

Test(wrong_uses_cuda, qp_of_another_gpu)
{
	struct doca_gpu_verbs_qp *made = NULL;
	struct doca_gpu_dev_verbs_qp *array = NULL;
	doca_gpu_t *other;

	cr_assert(!doca_gpu_create("8b:00.0", &other));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "its queues are in memory of another GPU",
		export_as(other, hl->qp, E2E_DB, MODE(VALID_DBR)));
	cr_assert(!doca_gpu_verbs_export_qp(nic.gpu, hl->qp, E2E_DB, NULL, hl->cq_sq,
					    MODE(VALID_DBR), &made));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "array of GPU 0000:8b:00.0: exported to GPU 0000:8a:00.0",
		doca_gpu_verbs_export_multi_qps_dev(other, &made, 1, &array));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "GPU 0000:8a:00.0, to which QP",
		doca_gpu_verbs_unexport_qp(other, made));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "qp_list[0]: QP ",
		doca_gpu_verbs_qp_flat_list_create_hl(&hl, 1, &array));
	cr_expect_null(array);
	cr_assert(!doca_gpu_verbs_export_multi_qps_dev(nic.gpu, &made, 1, &array));
	REFUSED(DOCA_ERROR_NOT_FOUND, "not an array of QPs of this GPU",
		doca_gpu_verbs_unexport_multi_qps_dev(other, &made, 1, array));
	cr_assert(!doca_gpu_verbs_unexport_multi_qps_dev(nic.gpu, &made, 1, array));
	cr_assert(!doca_gpu_verbs_unexport_qp(nic.gpu, made));
	cr_assert(!doca_gpu_destroy(other));
}

static struct doca_verbs_srq *srq_in(doca_verbs_umem_t *umem)
{
	struct doca_verbs_srq_init_attr *attr = NULL;
	struct doca_verbs_srq *srq = NULL;

	cr_assert(!doca_verbs_srq_init_attr_create(&attr));
	cr_assert(!doca_verbs_srq_init_attr_set_pd(attr, nic.pd));
	cr_assert(!doca_verbs_srq_init_attr_set_srq_wr(attr, 16));
	cr_assert(!doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1));
	cr_assert(!doca_verbs_srq_init_attr_set_type(attr, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS));
	cr_assert(!doca_verbs_srq_init_attr_set_external_umem(attr, umem, 0));
	cr_assert(!doca_verbs_srq_create(nic.ctx, attr, &srq));
	cr_assert(!doca_verbs_srq_init_attr_destroy(attr));
	return srq;
}

Test(wrong_uses_cuda, receive_cq_of_another_gpu)
{
	struct doca_gpu_dev_verbs_qp *dev;
	struct doca_gpu_dev_verbs_cq cq;
	struct doca_verbs_srq *srq;
	doca_verbs_umem_t *umem;
	doca_gpu_t *other;
	void *ring;

	cr_assert(!doca_gpu_create("8b:00.0", &other));
	cr_assert(!doca_gpu_mem_alloc(other, 4096, 4096, DOCA_GPU_MEM_TYPE_GPU, &ring, NULL));
	cr_assert(!doca_verbs_umem_create(nic.dev, other, ring, 4096, IBV_ACCESS_LOCAL_WRITE, -1, 0,
					  &umem));
	srq = srq_in(umem);
	cr_assert(!gdk_verbs_export_srq(other, srq, &dev));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "it is in memory of another GPU than the one of the SRQ",
		gdk_verbs_srq_get_cq_dev(srq, hl->cq_sq, &cq));
	cr_assert(!gdk_verbs_unexport_srq(srq));
	cr_assert(!doca_verbs_srq_destroy(srq));
	cr_assert(!doca_verbs_umem_destroy(umem));
	cr_assert(!doca_gpu_mem_free(other, ring));
	cr_assert(!doca_gpu_destroy(other));
}

/* ---- register pages (UARs) ---- */

static void *cuda(const char *name)
{
	return dlsym(standin_open("libcuda.so.1"), name);
}

/* A page that the application has registered itself must be usable, and must stay registered. */
Test(wrong_uses_cuda, page_registered_by_the_application_is_accepted)
{
	int (*retain)(void **, int) = (int (*)(void **, int))cuda("cuDevicePrimaryCtxRetain");
	int (*release)(int) = (int (*)(int))cuda("cuDevicePrimaryCtxRelease_v2");
	int (*current)(void *) = (int (*)(void *))cuda("cuCtxSetCurrent");
	int (*enlist)(void *, size_t, unsigned int) =
		(int (*)(void *, size_t, unsigned int))cuda("cuMemHostRegister_v2");
	int (*forget)(void *) = (int (*)(void *))cuda("cuMemHostUnregister");
	void *context, *reg, *page;
	uint64_t *there = NULL;
	doca_verbs_uar_t *uar; /* the library has registered the page of hl's UAR */

	setenv("STANDIN_CUDA_IOMEM", "1", 1);
	cr_assert(!doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, &uar));
	cr_assert(!doca_verbs_uar_reg_addr_get(uar, &reg));
	page = (void *)((uintptr_t)reg & ~(uintptr_t)4095);
	cr_assert(!retain(&context, 0) && !current(context) && !enlist(page, 4096, 3));
	cr_expect_eq(doca_gpu_verbs_export_uar(reg, &there), DOCA_SUCCESS);
	cr_expect_eq(there, reg, "wrong address of the mapped register");
	cr_expect_eq(doca_gpu_verbs_unexport_uar(there), DOCA_SUCCESS);
	cr_expect_eq(forget(page), 0, "the application's registration is gone");
	cr_assert(!current(NULL) && !release(0));
	cr_assert(!doca_verbs_uar_destroy(uar));
}
