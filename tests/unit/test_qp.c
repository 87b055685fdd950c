/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creation of queue pairs: sizes, memory layout (allocated by the library or
 * external), attributes that creation refuses, and the order of destruction.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/verbs/qp.h"
#include "../lib/e2e.h"

static struct e2e_nic nic;
static doca_verbs_qp_init_attr_t *init;
static doca_verbs_cq_t *cq;

static void open_all(void)
{
	doca_verbs_cq_attr_t *attr;

	e2e_open(&nic);
	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, 1024);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &cq), DOCA_SUCCESS);
	doca_verbs_cq_attr_destroy(attr);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_set_pd(init, nic.dev);
	doca_verbs_qp_init_attr_set_send_cq(init, cq);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_sq_wr(init, 100);
}

static void close_all(void)
{
	doca_verbs_qp_init_attr_destroy(init);
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS, "a QP still uses the CQ");
	e2e_close(&nic);
}

TestSuite(qp, .init = open_all, .fini = close_all);

static doca_error_t create(doca_verbs_qp_t **qp)
{
	*qp = NULL;
	return doca_verbs_qp_create(nic.dev, init, qp);
}

Test(qp, send_queue_is_rounded_up_to_slots)
{
	doca_verbs_qp_t *qp;
	uint32_t sq, rq, rwqe, qpn;
	void *sq_buf, *rq_buf;

	cr_assert_eq(create(&qp), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_get_wq(qp, &sq_buf, &sq, &rq_buf, &rq, &rwqe), DOCA_SUCCESS);
	cr_assert_eq(sq, 128);
	cr_assert_eq(rq, 0);
	cr_assert_eq(doca_verbs_qp_get_qpn(qp, &qpn), DOCA_SUCCESS);
	cr_assert_neq(qpn, 0);
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_ERROR_IN_USE);
	cr_assert_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
}

Test(qp, inline_data_takes_more_slots)
{
	doca_verbs_qp_t *qp;

	doca_verbs_qp_init_attr_set_max_inline_data(init, 60); /* 32 + 64 bytes take 2 slots */
	cr_assert_eq(create(&qp), DOCA_SUCCESS);
	cr_assert_eq(qp->sq_num, 256);
	cr_assert_eq(qp->init.max_inline_data, 92);
	doca_verbs_qp_destroy(qp);
}

Test(qp, defect_04_depth_limit_is_32768_slots)
{
	doca_verbs_qp_t *qp;

	doca_verbs_qp_init_attr_set_sq_wr(init, 32769);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE);
	doca_verbs_qp_init_attr_set_sq_wr(init, 65536);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE);
	doca_verbs_qp_init_attr_set_sq_wr(init, UINT32_MAX);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE);
	doca_verbs_qp_init_attr_set_sq_wr(init, 32768);
	cr_assert_eq(create(&qp), DOCA_SUCCESS);
	cr_assert_eq(qp->sq_num, 32768);
	doca_verbs_qp_destroy(qp);
}

Test(qp, receive_queue_comes_before_the_send_queue)
{
	doca_verbs_qp_t *qp;

	doca_verbs_qp_init_attr_set_receive_cq(init, cq);
	doca_verbs_qp_init_attr_set_rq_wr(init, 10);
	doca_verbs_qp_init_attr_set_receive_max_sges(init, 3);
	cr_assert_eq(create(&qp), DOCA_SUCCESS);
	cr_assert_eq(qp->rq_num, 16);
	cr_assert_eq(qp->rwqe_size, 64);
	cr_assert_eq(qp->sq_buf, (uint8_t *)qp->rq_buf + 16 * 64);
	cr_assert_geq((void *)qp->dbrec, (void *)((uint8_t *)qp->sq_buf + 128 * 64));
	doca_verbs_qp_destroy(qp);
}

Test(qp, external_memory_is_used_at_the_given_offsets)
{
	void *mem = aligned_alloc(4096, 65536), *dbr;
	doca_verbs_umem_t *umem;
	doca_verbs_qp_t *qp;

	cr_assert_eq(doca_verbs_umem_create(nic.dev, nic.gpu, mem, 65536, IBV_ACCESS_LOCAL_WRITE,
					    -1, 0, &umem),
		     DOCA_SUCCESS);
	doca_verbs_qp_init_attr_set_external_umem(init, umem, 8192);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE,
		     "queues in a umem need a DBREC in a umem");
	doca_verbs_qp_init_attr_set_external_umem_dbr(init, umem, 65536);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE,
		     "a DBREC outside the umem must be refused");
	doca_verbs_qp_init_attr_set_external_umem_dbr(init, umem, 128);
	cr_assert_eq(create(&qp), DOCA_SUCCESS);
	cr_assert_eq(qp->sq_buf, (uint8_t *)mem + 8192);
	cr_assert_eq(doca_verbs_qp_get_dbr_addr(qp, &dbr), DOCA_SUCCESS);
	cr_assert_eq(dbr, (uint8_t *)mem + 128);
	cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_ERROR_IN_USE);
	doca_verbs_qp_destroy(qp);
	cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	free(mem);
}

Test(qp, create_refuses_unusable_attributes)
{
	doca_verbs_qp_t *qp;

	doca_verbs_qp_init_attr_set_send_cq(init, NULL);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE);
	doca_verbs_qp_init_attr_set_send_cq(init, cq);
	doca_verbs_qp_init_attr_set_sq_wr(init, 0);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE, "a QP without queues must be refused");
	doca_verbs_qp_init_attr_set_sq_wr(init, 16);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 0);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_ordering_semantic(init, DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_RW);
	cr_assert_eq(create(&qp), DOCA_ERROR_NOT_SUPPORTED);
	doca_verbs_qp_init_attr_set_ordering_semantic(init, DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA);
	doca_verbs_qp_init_attr_set_send_dbr_mode(init, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
	doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(init, true);
	cr_assert_eq(create(&qp), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(qp, NULL);
}

Test(qp, shared_receive_queue_attributes_are_checked)
{
	struct doca_verbs_srq_init_attr *attr;
	struct doca_verbs_srq *srq = NULL;

	cr_assert_eq(doca_verbs_srq_init_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_init_attr_set_srq_wr(attr, 100), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_init_attr_set_receive_max_sges(attr, 2), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_init_attr_get_srq_wr(attr), 100);
	cr_assert_eq(doca_verbs_srq_create(nic.ctx, attr, &srq), DOCA_ERROR_INVALID_VALUE,
		     "an SRQ without PD must be refused");
	doca_verbs_srq_init_attr_set_pd(attr, nic.pd);
	doca_verbs_srq_init_attr_set_srq_wr(attr, 40000);
	cr_assert_eq(doca_verbs_srq_create(nic.ctx, attr, &srq), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(srq, NULL);
	doca_verbs_srq_init_attr_destroy(attr);
}
