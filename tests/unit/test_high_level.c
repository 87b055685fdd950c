/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The high-level API: the parts of a QP, DBREC modes, QP groups, flat lists (arrays
 * of device structs), and the kind of queue memory.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../qp/export/export.h"
#include "device/gdk/state.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"

#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_init_attr_hl attr;
static struct doca_gpu_verbs_qp_hl *hl;

static void open_all(void)
{
	e2e_open(&nic);
	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.ibpd = nic.pd;
	attr.sq_nwqe = 100;
	hl = NULL;
}

static void close_all(void)
{
	e2e_close(&nic); /* fails if an object is left */
}

TestSuite(high_level, .init = open_all, .fini = close_all);

Test(high_level, all_parts_of_a_qp_share_one_umem)
{
	uint32_t sq, rq, stride, cqe;
	void *ring, *rq_buf, *cq, *dbr;
	uint8_t size;

	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(attr.sq_nwqe, 100, "the caller's struct was changed");
	cr_assert_eq(hl->nic_handler, E2E_DB);
	doca_verbs_qp_get_wq(hl->qp, &ring, &sq, &rq_buf, &rq, &stride);
	doca_verbs_cq_get_wq(hl->cq_sq, &cq, &cqe, &size);
	doca_verbs_qp_get_dbr_addr(hl->qp, &dbr);
	cr_assert_eq(sq, 128);
	cr_assert_eq(cqe, 128);
	cr_assert_eq(ring, hl->qp_umem_gpu_ptr);
	cr_assert_eq(cq, hl->cq_sq_umem_gpu_ptr);
	cr_assert_eq(dbr, hl->qp_umem_dbr_gpu_ptr);
	cr_assert_eq(hl->qp_umem, hl->cq_sq_umem);
	cr_assert_eq(hl->qp_umem, hl->qp_umem_dbr);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
}

Test(high_level, only_the_proxy_needs_its_dbrec_on_the_host)
{
	attr.nic_handler = E2E_PROXY;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_neq(hl->qp_umem, hl->qp_umem_dbr);
	cr_assert(hl->qp_gverbs->cpu_proxy);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(high_level, depth_is_checked)
{
	attr.sq_nwqe = 32769;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_ERROR_INVALID_VALUE);
	attr.sq_nwqe = 0;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(hl, NULL);
	attr.sq_nwqe = 32768;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(hl->qp_gverbs->qp_cpu->sq_wqe_num, 32768);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(high_level, dbrec_modes)
{
	attr.send_dbr_mode_ext = MODE(NO_DBR_HW);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(hl->nic_handler, E2E_NO_DBR);
	doca_gpu_verbs_destroy_qp_hl(hl);
	attr.send_dbr_mode_ext = MODE(NO_DBR_SW_EMULATED);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(hl->nic_handler, E2E_NO_DBR);
	cr_assert(hl->qp_gverbs->cpu_proxy, "a CPU thread must maintain the DBREC");
	doca_gpu_verbs_destroy_qp_hl(hl);
	hl = NULL;
	nic.dev->caps.send_dbr_mode_no_dbr_ext = 0;
	attr.send_dbr_mode_ext = MODE(NO_DBR_HW);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_ERROR_NOT_SUPPORTED);
	cr_assert_eq(hl, NULL);
}

Test(high_level, auto_dbrec_mode_falls_back)
{
	attr.send_dbr_mode_ext = GDK_SEND_DBR_MODE_AUTO;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(hl->send_dbr_mode_ext, MODE(NO_DBR_HW));
	doca_gpu_verbs_destroy_qp_hl(hl);
	nic.dev->caps.send_dbr_mode_no_dbr_ext = 0;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(hl->nic_handler, E2E_DB);
	cr_assert_eq(hl->send_dbr_mode_ext, MODE(VALID_DBR));
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(high_level, group_shares_one_register_page)
{
	struct doca_gpu_verbs_qp_group_hl *g;
	void *a, *b;

	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &g), DOCA_SUCCESS);
	cr_assert_eq(g->qp_main.external_uar, g->qp_companion.external_uar);
	doca_verbs_qp_get_uar_addr(g->qp_main.qp, &a);
	doca_verbs_qp_get_uar_addr(g->qp_companion.qp, &b);
	cr_assert_eq(a, b);
	cr_assert_eq(g->qp_companion.qp->init.core_direct_master, 1);
	cr_assert_eq(g->qp_main.qp->init.core_direct_master, 0);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(g), DOCA_SUCCESS);
	attr.nic_handler = E2E_BF;
	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &g), DOCA_ERROR_NOT_SUPPORTED);
}

Test(high_level, flat_list_keeps_null_entries)
{
	struct doca_gpu_verbs_qp_hl *list[3] = { 0 };
	struct doca_gpu_dev_verbs_qp *flat;

	cr_assert_eq(doca_gpu_verbs_qp_flat_list_create_hl(list, 3, &flat),
		     DOCA_ERROR_INVALID_VALUE, "a list of only NULL entries must be refused");
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &list[0]), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &list[2]), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_qp_flat_list_create_hl(list, 3, &flat), DOCA_SUCCESS);
	cr_assert_eq(flat[0].sq_num, list[0]->qp_gverbs->qp_cpu->sq_num);
	cr_assert_eq(flat[1].sq_num, 0);
	cr_assert_eq(flat[2].gdk_state, list[2]->qp_gverbs->qp_cpu->gdk_state);
	cr_assert_eq(doca_gpu_verbs_qp_flat_list_destroy_hl(flat), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_qp_flat_list_destroy_hl(flat), DOCA_ERROR_NOT_FOUND);
	doca_gpu_verbs_destroy_qp_hl(list[0]);
	doca_gpu_verbs_destroy_qp_hl(list[2]);
}

Test(high_level, queue_memory_chosen_by_environment)
{
	setenv("GDAKI_QUEUE_MEM", "cpu_gpu", 1);
	cr_assert_eq(gdk_queue_mem_type(), DOCA_GPU_MEM_TYPE_CPU_GPU);
	attr.nic_handler = E2E_PROXY;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(hl->qp_umem, hl->qp_umem_dbr, "all memory must be on the host");
	cr_assert_neq(gdk_to_export(hl->qp_gverbs)->state_flags & GDK_QPF_SYS_SCOPE, 0);
	cr_assert_eq(gdk_to_export(hl->qp_gverbs)->state_flags & GDK_QPF_HOST_LOOKS, 0,
		     "CPU threads must not back off");
	doca_gpu_verbs_destroy_qp_hl(hl);
	capture_begin();
	setenv("GDAKI_QUEUE_MEM", "gpu", 1);
	cr_expect_eq(gdk_queue_mem_type(), DOCA_GPU_MEM_TYPE_GPU);
	cr_expect_str_eq(capture_end(), "");
	capture_begin();
	setenv("GDAKI_QUEUE_MEM", "host", 1);
	cr_expect_eq(gdk_queue_mem_type(), DOCA_GPU_MEM_TYPE_GPU);
	cr_expect(strstr(capture_end(), "ignoring GDAKI_QUEUE_MEM=\"host\""));
	unsetenv("GDAKI_QUEUE_MEM");
	cr_assert_eq(gdk_queue_mem_type(), DOCA_GPU_MEM_TYPE_GPU);
}
