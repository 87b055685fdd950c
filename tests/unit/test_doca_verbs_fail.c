/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Contexts, protection domains, umems, UARs, CQs, queue pairs and their export, in the SDK's
 * interface, with failing allocations and verbs calls: each failure is logged, and nothing leaks.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "doca_gpunetio.h"
#include "doca_rdma_bridge.h"
#include "doca_uar.h"
#include "doca_umem.h"
#include "doca_verbs.h"

#include "doca_base_rig.h"

static char memory[4096] __attribute__((aligned(4096)));

/* A call that destroys an object may fail once, and the object then stays valid. */
#define TWICE(call) (call != DOCA_SUCCESS ? call : DOCA_SUCCESS)

/* Opens the objects that belong to a NIC, and closes those that it opened. Returns the first error
 * of an open. */
static doca_error_t on_dev(struct doca_dev *dev)
{
	struct doca_umem *umem = NULL;
	struct doca_uar *uar = NULL;
	doca_error_t err;

	err = doca_uar_create(dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar);
	if (!err)
		err = doca_umem_create(dev, memory, sizeof(memory),
				       DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &umem);
	if (umem)
		cr_expect_eq(TWICE(doca_umem_destroy(umem)), DOCA_SUCCESS);
	if (uar)
		cr_expect_eq(TWICE(doca_uar_destroy(uar)), DOCA_SUCCESS);
	return err;
}

static doca_error_t on_context(struct doca_verbs_context *context)
{
	struct doca_verbs_ah_attr *ah = NULL;
	struct doca_verbs_pd *pd = NULL;
	struct doca_dev *dev = NULL;
	doca_error_t err;

	err = doca_verbs_pd_create(context, &pd);
	if (!err)
		err = doca_rdma_bridge_open_dev_from_pd(doca_verbs_bridge_verbs_pd_get_ibv_pd(pd),
							&dev);
	if (!err)
		err = on_dev(dev);
	if (!err)
		err = doca_verbs_ah_attr_create(context, &ah);
	if (ah)
		cr_expect_eq(doca_verbs_ah_attr_destroy(ah), DOCA_SUCCESS);
	if (dev)
		cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	if (pd)
		cr_expect_eq(TWICE(doca_verbs_pd_destroy(pd)), DOCA_SUCCESS);
	return err;
}

static doca_error_t open_context(struct doca_verbs_context **context)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	doca_error_t err;

	cr_assert(list && list[0]);
	err = doca_verbs_bridge_verbs_context_create(list[0], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
						     context);
	ibv_free_device_list(list);
	return err;
}

static doca_error_t open_and_close(void)
{
	struct doca_verbs_device_attr *attr = NULL;
	struct doca_verbs_context *context = NULL;
	doca_error_t err = open_context(&context);

	if (!err)
		err = doca_verbs_query_device(context, &attr);
	if (attr)
		cr_expect_eq(doca_verbs_device_attr_free(attr), DOCA_SUCCESS);
	if (context)
		cr_expect_eq(TWICE(doca_verbs_context_destroy(context)), DOCA_SUCCESS);
	return err;
}

static struct doca_verbs_context *kept;

static doca_error_t on_kept(void)
{
	return on_context(kept);
}

Test(doca_verbs_fail, contexts, .timeout = 60)
{
	rig_faults(open_and_close, 3, 4);
	cr_expect_eq(nicfail_live(), 0);
}

/* The context stays open: its end would free what leaks. */
Test(doca_verbs_fail, objects_of_a_context, .timeout = 60)
{
	cr_assert_eq(open_context(&kept), DOCA_SUCCESS);
	rig_faults(on_kept, 5, 4);
	cr_expect_eq(doca_verbs_context_destroy(kept), DOCA_SUCCESS);
	cr_expect_eq(nicfail_live(), 0);
}

/* ---- queues ---- */

#define DEPTH	  16u
#define CQ_AT(i)  ((i)*2048u) /* offsets of the CQs, DBRECs included, in the umem */
#define QP_AT	  4096u
#define DBR_AT	  8192u
#define MEM_BYTES 12288u

static struct {
	struct doca_verbs_pd *pd;
	struct doca_dev *dev;
	struct doca_gpu *gpu;
	struct doca_uar *uar;
	struct doca_umem *umem;
	char *mem;
} k;

static void keep(void)
{
	void *mem;

	cr_assert_eq(open_context(&kept), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_create("host", &k.gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_pd_create(kept, &k.pd), DOCA_SUCCESS);
	cr_assert_eq(doca_rdma_bridge_open_dev_from_pd(doca_verbs_bridge_verbs_pd_get_ibv_pd(k.pd),
						       &k.dev),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_uar_create(k.dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &k.uar),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_mem_alloc(k.gpu, MEM_BYTES, 4096, DOCA_GPU_MEM_TYPE_GPU, &mem, NULL),
		     DOCA_SUCCESS);
	k.mem = mem;
	cr_assert_eq(doca_umem_gpu_create(k.gpu, k.dev, mem, MEM_BYTES,
					  DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &k.umem),
		     DOCA_SUCCESS);
}

static void release(void)
{
	cr_expect_eq(doca_umem_destroy(k.umem), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(k.gpu, k.mem), DOCA_SUCCESS);
	cr_expect_eq(doca_uar_destroy(k.uar), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(k.dev), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_pd_destroy(k.pd), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_context_destroy(kept), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(k.gpu), DOCA_SUCCESS);
	cr_expect_eq(nicfail_live(), 0);
}

static doca_error_t cq_open(uint32_t i, struct doca_verbs_cq **cq)
{
	struct doca_verbs_cq_attr *attr;
	doca_error_t err = doca_verbs_cq_attr_create(&attr);

	if (err)
		return err;
	cr_assert(!doca_verbs_cq_attr_set_external_datapath_en(attr, 1));
	cr_assert(!doca_verbs_cq_attr_set_external_umem(attr, k.umem, CQ_AT(i)));
	cr_assert(!doca_verbs_cq_attr_set_external_uar(attr, k.uar));
	cr_assert(!doca_verbs_cq_attr_set_cq_size(attr, DEPTH));
	cr_assert(!doca_verbs_cq_attr_set_cq_overrun(attr, 1));
	err = doca_verbs_cq_create(kept, attr, cq);
	cr_expect_eq(doca_verbs_cq_attr_destroy(attr), DOCA_SUCCESS);
	return err;
}

static doca_error_t qp_open(struct doca_verbs_cq *cq, struct doca_verbs_cq *cq_rq,
			    struct doca_verbs_qp **qp)
{
	struct doca_verbs_qp_init_attr *attr;
	doca_error_t err = doca_verbs_qp_init_attr_create(&attr);

	if (err)
		return err;
	cr_assert(!doca_verbs_qp_init_attr_set_external_datapath_en(attr, 1));
	cr_assert(!doca_verbs_qp_init_attr_set_external_uar(attr, k.uar));
	cr_assert(!doca_verbs_qp_init_attr_set_external_umem(attr, k.umem, QP_AT));
	cr_assert(!doca_verbs_qp_init_attr_set_external_dbr_umem(attr, k.umem, DBR_AT));
	cr_assert(!doca_verbs_qp_init_attr_set_pd(attr, k.pd));
	cr_assert(!doca_verbs_qp_init_attr_set_qp_type(attr, DOCA_VERBS_QP_TYPE_RC));
	cr_assert(!doca_verbs_qp_init_attr_set_sq_wr(attr, DEPTH));
	cr_assert(!doca_verbs_qp_init_attr_set_send_max_sges(attr, 1));
	cr_assert(!doca_verbs_qp_init_attr_set_send_cq(attr, cq));
	cr_assert(!doca_verbs_qp_init_attr_set_rq_wr(attr, DEPTH));
	cr_assert(!doca_verbs_qp_init_attr_set_receive_max_sges(attr, 1));
	cr_assert(!doca_verbs_qp_init_attr_set_receive_cq(attr, cq_rq));
	err = doca_verbs_qp_create(kept, attr, qp);
	cr_expect_eq(doca_verbs_qp_init_attr_destroy(attr), DOCA_SUCCESS);
	return err;
}

static doca_error_t queues(void)
{
	struct doca_verbs_cq *cq = NULL, *cq_rq = NULL;
	struct doca_gpu_dev_verbs_qp *device = NULL;
	struct doca_gpu_verbs_qp *exported = NULL;
	struct doca_verbs_qp *qp = NULL;
	doca_error_t err;

	err = cq_open(0, &cq);
	if (!err)
		err = cq_open(1, &cq_rq);
	if (!err)
		err = qp_open(cq, cq_rq, &qp);
	if (!err)
		err = doca_gpu_verbs_export_qp(k.gpu, k.dev, qp,
					       DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB,
					       k.mem + QP_AT, cq, cq_rq, &exported);
	if (!err)
		err = doca_gpu_verbs_get_qp_dev(exported, &device);
	cr_expect_eq(device == NULL, err != DOCA_SUCCESS);
	if (exported)
		cr_expect_eq(TWICE(doca_gpu_verbs_unexport_qp(k.gpu, exported)), DOCA_SUCCESS);
	if (qp)
		cr_expect_eq(TWICE(doca_verbs_qp_destroy(qp)), DOCA_SUCCESS);
	if (cq_rq)
		cr_expect_eq(TWICE(doca_verbs_cq_destroy(cq_rq)), DOCA_SUCCESS);
	if (cq)
		cr_expect_eq(TWICE(doca_verbs_cq_destroy(cq)), DOCA_SUCCESS);
	return err;
}

Test(doca_verbs_fail, queues_and_their_export, .init = keep, .fini = release, .timeout = 60)
{
	rig_faults_but(queues, 10, 5, 8);
}
