/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The CPU proxy's host half: counters, and what one step writes where. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/export.h"
#include "../../qp/state.h"
#include "../lib/e2e.h"

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_init_attr_hl attr;

static void open_all(void)
{
	e2e_open(&nic);
	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.ibpd = nic.pd;
	attr.sq_nwqe = 16;
	attr.nic_handler = E2E_PROXY;
}

static void close_all(void)
{
	e2e_close(&nic);
}

TestSuite(cpu_proxy, .init = open_all, .fini = close_all);

/* Aims the register at plain memory, where this test reads what was written. */
static struct doca_gpu_verbs_qp *proxy_qp(struct doca_gpu_verbs_qp_hl **hl, uint64_t *reg)
{
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, hl), DOCA_SUCCESS);
	*reg = 0;
	(*hl)->qp_gverbs->sq_db = reg;
	return (*hl)->qp_gverbs;
}

Test(cpu_proxy, a_step_writes_dbrec_then_register)
{
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg;
	struct doca_gpu_verbs_qp *qp = proxy_qp(&hl, &reg);
	uint32_t *dbrec = hl->qp_umem_dbr_gpu_ptr, word[2];
	bool progressed = true;

	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(qp, &progressed), DOCA_SUCCESS);
	cr_assert_not(progressed);
	cr_assert_eq(reg, 0);
	*qp->cpu_db = 0x12345;
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(qp, &progressed), DOCA_SUCCESS);
	cr_assert(progressed);
	memcpy(word, &reg, 8);
	cr_assert_eq(be32toh(word[0]), 0x1234500);
	cr_assert_eq(be32toh(word[1]), qp->qp_cpu->sq_num << 8);
	cr_assert_eq(be32toh(dbrec[1]), 0x2345);
	cr_assert_eq(dbrec[0], 0, "the receive word is not ours");
	reg = 0;
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(qp, NULL), DOCA_SUCCESS);
	cr_assert_eq(reg, 0, "nothing new");
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(cpu_proxy, counter_is_compared_in_64_bits)
{
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg;
	struct doca_gpu_verbs_qp *qp = proxy_qp(&hl, &reg);
	bool progressed;

	*qp->cpu_db = 5;
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	*qp->cpu_db = 5 + (1ull << 32);
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	cr_assert(progressed, "the low halves are equal");
	cr_assert_eq(qp->sq_wqe_pi_last, 5 + (1ull << 32));
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	cr_assert_not(progressed);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(cpu_proxy, counters_are_packed_and_given_back)
{
	struct doca_gpu_verbs_qp_hl *hl[9];
	uint64_t *first;

	for (int i = 0; i < 9; i++)
		cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[i]), DOCA_SUCCESS);
	first = hl[0]->qp_gverbs->cpu_db;
	cr_assert_eq((uintptr_t)first % 64, 0);
	for (int i = 1; i < 9; i++)
		cr_assert_eq(hl[i]->qp_gverbs->cpu_db, first + i);
	cr_assert_eq(hl[3]->qp_gverbs->qp_cpu->sq_db, first + 3, "host GPU: one address");
	*hl[3]->qp_gverbs->cpu_db = 9;
	doca_gpu_verbs_destroy_qp_hl(hl[3]);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[3]), DOCA_SUCCESS);
	cr_assert_eq(hl[3]->qp_gverbs->cpu_db, first + 3, "the free slot is used again");
	cr_assert_eq(*hl[3]->qp_gverbs->cpu_db, 0);
	for (int i = 0; i < 9; i++)
		doca_gpu_verbs_destroy_qp_hl(hl[i]);
}

Test(cpu_proxy, other_handlers_have_no_progress)
{
	struct doca_gpu_verbs_qp_hl *hl;
	bool progressed;

	attr.nic_handler = E2E_DB;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(hl->qp_gverbs, &progressed),
		     DOCA_ERROR_NOT_SUPPORTED);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(cpu_proxy, emulation_writes_the_dbrec_that_the_gpu_does_not)
{
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg, *real;
	uint32_t *dbrec;

	attr.nic_handler = E2E_AUTO;
	attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	real = hl->qp_gverbs->sq_db;
	hl->qp_gverbs->sq_db = &reg;
	dbrec = hl->qp_umem_dbr_gpu_ptr;
	hl->qp_gverbs->qp_cpu->gdk_state->rung = 3; /* as the GPU's ringer does */
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(hl->qp_gverbs, NULL), DOCA_SUCCESS);
	cr_assert_eq(be32toh(dbrec[1]), 3);
	cr_assert_eq(be32toh((uint32_t)reg), 3 << 8, "and rings again");
	hl->qp_gverbs->sq_db = real;
	doca_gpu_verbs_destroy_qp_hl(hl);
}
