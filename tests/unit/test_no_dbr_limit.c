/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --no-dbr-max 3 */
/*
 * A device that supports only three QPs without DBREC (defect 19 in
 * tests/defects.sh). Creation of a fourth must fail and log the reason if the
 * caller requests a QP without DBREC. With AUTO, the library must create QPs with
 * DBREC from then on and log this once.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/capture.h"
#include "../../core/nic/net_dev.h"
#include "../lib/e2e.h"
#include "../lib/nicfail.h"

#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name
#define LIMIT	   3
#define QPS	   6

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_init_attr_hl attr;
static struct doca_gpu_verbs_qp_hl *hl[QPS];
static int num;

static void open_all(void)
{
	e2e_open(&nic);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.sq_nwqe = 64;
	attr.send_dbr_mode_ext = GDK_SEND_DBR_MODE_AUTO;
}

static void close_all(void)
{
	while (num)
		cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[--num]), DOCA_SUCCESS);
	e2e_close(&nic); /* fails if an object is left */
}

TestSuite(no_dbr_limit, .init = open_all, .fini = close_all);

static doca_error_t add(void)
{
	doca_error_t err = doca_gpu_verbs_create_qp_hl(&attr, &hl[num]);

	num += err == DOCA_SUCCESS;
	return err;
}

static int times(const char *text, const char *what)
{
	int n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

static void fill_up(void)
{
	while (num < LIMIT) {
		cr_assert_eq(add(), DOCA_SUCCESS);
		cr_assert_eq(hl[num - 1]->send_dbr_mode_ext, MODE(NO_DBR_HW));
		cr_assert_eq(hl[num - 1]->nic_handler, E2E_NO_DBR);
	}
}

Test(no_dbr_limit, explicit_mode_fails_and_logs_the_limit)
{
	static const enum doca_gpu_dev_verbs_nic_handler asked[] = { E2E_AUTO, E2E_DB, E2E_NO_DBR,
								     E2E_PROXY };
	const char *log;

	attr.send_dbr_mode_ext = MODE(NO_DBR_HW);
	while (num < LIMIT)
		cr_assert_eq(add(), DOCA_SUCCESS);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		attr.nic_handler = asked[i];
		capture_begin();
		cr_expect_eq(add(), DOCA_ERROR_NOT_SUPPORTED);
		log = capture_end();
		cr_expect(strstr(log, "mlx5_0: firmware limit for DBREC-less QPs reached "
				      "(3 in use)"),
			  "log: %s", log);
	}
	/* After a QP is destroyed, another one without DBREC can be created. */
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[--num]), DOCA_SUCCESS);
	cr_assert_eq(add(), DOCA_SUCCESS);
	cr_assert_eq(hl[num - 1]->send_dbr_mode_ext, MODE(NO_DBR_HW));
}

Test(no_dbr_limit, auto_falls_back_to_dbrecs_and_logs_it_once)
{
	const char *log;

	fill_up();
	capture_begin();
	while (num < QPS && add() == DOCA_SUCCESS)
		;
	log = capture_end();
	cr_assert_eq(num, QPS);
	cr_expect_eq(times(log, "AUTO creates QPs with DBREC from now on"), 1, "log: %s", log);
	cr_expect_eq(times(log, "firmware refused CREATE_QP"), 2,
		     "tried again after the first refusal: %s", log);
	for (int i = LIMIT; i < QPS; i++) {
		cr_expect_eq(hl[i]->send_dbr_mode_ext, MODE(VALID_DBR));
		cr_expect_eq(hl[i]->nic_handler, E2E_DB);
		cr_expect_eq(hl[i]->qp_gverbs->qp_cpu->nic_handler, E2E_DB);
	}
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[--num]), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl[0]), DOCA_SUCCESS);
	hl[0] = hl[--num];
	cr_assert_eq(add(), DOCA_SUCCESS);
	cr_expect_eq(hl[num - 1]->send_dbr_mode_ext, MODE(NO_DBR_HW),
		     "a QP was destroyed, so one without DBREC must be created");
	atomic_store(&nic.dev->no_dbr_max, QPS); /* as if another process had taken the last one */
	capture_begin();
	cr_assert_eq(add(), DOCA_SUCCESS);
	log = capture_end();
	cr_expect_eq(hl[num - 1]->send_dbr_mode_ext, MODE(VALID_DBR));
	cr_expect(strstr(log, "limit for DBREC-less QPs reached") && !strstr(log, "from now on"),
		  "log: %s", log);
}

/* The NIC refuses the fourth QP without DBREC, so both QPs of the second group must be
 * created with one. */
Test(no_dbr_limit, qps_of_a_group_have_the_same_mode)
{
	struct doca_gpu_verbs_qp_group_hl *g[2];
	struct doca_gpu_verbs_qp_group_hl *none = NULL;

	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &g[0]), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &g[1]), DOCA_SUCCESS);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(g[i]->qp_main.send_dbr_mode_ext,
			     i ? MODE(VALID_DBR) : MODE(NO_DBR_HW));
		cr_expect_eq(g[i]->qp_companion.send_dbr_mode_ext, g[i]->qp_main.send_dbr_mode_ext);
		cr_expect_eq(g[i]->qp_companion.external_uar, g[i]->qp_main.external_uar);
	}
	attr.send_dbr_mode_ext = MODE(NO_DBR_HW);
	cr_expect_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &none), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_null(none);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(g[0]), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(g[1]), DOCA_SUCCESS);
	cr_assert_eq(add(), DOCA_SUCCESS);
	cr_expect_eq(hl[0]->send_dbr_mode_ext, MODE(NO_DBR_HW),
		     "destroying a group must free its QPs");
}

/* A refusal of another command, or a single refusal of CREATE_QP, does not show the limit. */
Test(no_dbr_limit, other_refusals_are_not_the_limit)
{
	struct doca_gpu_verbs_qp_hl *none = NULL;
	const char *log;

	nicfail_find();
	attr.nic_handler = E2E_NO_DBR;
	attr.send_dbr_mode_ext = MODE(NO_DBR_HW);
	cr_assert_eq(add(), DOCA_SUCCESS);
	capture_begin();
	nicfail_next(1, 0x0f, 0xabc, 0); /* CREATE_CQ */
	cr_expect_eq(doca_gpu_verbs_create_qp_hl(&attr, &none), DOCA_ERROR_DRIVER);
	log = capture_end();
	cr_expect_null(strstr(log, "without DBREC"), "log: %s", log);
	nicfail_next(2, 0x0f, 0xabc, 0); /* CREATE_QP */
	cr_assert_eq(add(), DOCA_SUCCESS);
	cr_expect_eq(hl[num - 1]->send_dbr_mode_ext, MODE(NO_DBR_HW));
}
