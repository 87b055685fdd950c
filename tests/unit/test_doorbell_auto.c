/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * gdk_doorbell_pick(): which doorbell handler it chooses for a GPU, a device, a UAR
 * and a DBREC mode, and the reasons that its report gives against the other
 * handlers.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/export/export.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"

#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

static struct e2e_nic nic;
static struct gdk_doorbell_ask ask;
static struct gdk_handler_report report;
static const struct gdk_doorbell *db;
static enum doca_gpu_dev_verbs_nic_handler got;

static void open_all(void)
{
	e2e_open(&nic);
	memset(&ask, 0, sizeof(ask));
	ask.gpu = nic.gpu;
	ask.dev = nic.dev;
	ask.dbr_mode_stated = true;
	cr_assert_eq(
		doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &ask.uar),
		DOCA_SUCCESS);
}

static void close_all(void)
{
	doca_verbs_uar_destroy(ask.uar);
	e2e_close(&nic);
}

TestSuite(doorbell_auto, .init = open_all, .fini = close_all);

static doca_error_t pick(enum doca_gpu_dev_verbs_nic_handler want,
			 enum doca_gpu_verbs_send_dbr_mode_ext mode)
{
	struct gdk_decision decision;
	doca_error_t err;

	ask.want = want;
	ask.dbr_mode = mode;
	db = NULL;
	err = gdk_choose_doorbell(&ask, &decision);
	db = decision.db;
	got = decision.chosen;
	gdk_doorbell_report(&decision, &report);
	return err;
}

Test(doorbell_auto, defect_15_auto_reports_a_reason_for_every_candidate)
{
	cr_assert_eq(pick(E2E_AUTO, MODE(VALID_DBR)), DOCA_SUCCESS);
	cr_assert_eq(got, E2E_DB);
	cr_assert_str_eq(db->name, "gpu_sm");
	cr_assert_eq(report.asked, E2E_AUTO);
	cr_assert_eq(report.chosen, E2E_DB);
	cr_assert_eq(report.num_candidates, 2);
	cr_assert_eq(report.candidates[0].handler, E2E_NO_DBR);
	cr_assert_not(report.candidates[0].usable);
	cr_assert_neq(report.candidates[0].reason[0], '\0');
	cr_assert(report.candidates[1].usable);
}

Test(doorbell_auto, auto_without_dbrec_is_no_dbr)
{
	cr_assert_eq(pick(E2E_AUTO, MODE(NO_DBR_HW)), DOCA_SUCCESS);
	cr_assert_eq(got, E2E_NO_DBR);
	cr_assert_eq(pick(E2E_DB, MODE(NO_DBR_HW)), DOCA_SUCCESS);
	cr_assert_eq(got, E2E_NO_DBR);
}

Test(doorbell_auto, unsupported_dbrec_less_mode_is_refused_if_explicit)
{
	nic.dev->caps.send_dbr_mode_no_dbr_ext = 0;
	cr_assert_eq(pick(E2E_NO_DBR, MODE(NO_DBR_HW)), DOCA_ERROR_NOT_SUPPORTED);
	cr_assert_neq(strstr(report.candidates[0].reason, "DBREC-less"), NULL);
	cr_assert_eq(report.chosen, DOCA_GPUNETIO_VERBS_NIC_HANDLER_TYPE_MAX);
	cr_assert_eq(pick(E2E_AUTO, MODE(NO_DBR_HW)), DOCA_ERROR_NOT_SUPPORTED);
	cr_assert_eq(db, NULL);
	ask.dbr_mode_stated = false;
	cr_assert_eq(pick(E2E_AUTO, MODE(NO_DBR_HW)), DOCA_SUCCESS);
	cr_assert_eq(got, E2E_DB, "a mode that is not explicit must fall back");
}

Test(doorbell_auto, explicit_handlers)
{
	cr_assert_eq(pick(E2E_PROXY, MODE(VALID_DBR)), DOCA_SUCCESS);
	cr_assert_str_eq(db->name, "cpu_proxy");
	cr_assert(db->dbrec_on_host);
	cr_assert_eq(pick(E2E_BF, MODE(VALID_DBR)), DOCA_ERROR_NOT_SUPPORTED,
		     "BlueFlame needs a BlueFlame page");
	cr_assert_eq(pick(E2E_PROXY, MODE(NO_DBR_SW_EMULATED)), DOCA_ERROR_NOT_SUPPORTED);
	cr_assert_eq(pick((enum doca_gpu_dev_verbs_nic_handler)5, MODE(VALID_DBR)),
		     DOCA_ERROR_INVALID_VALUE);
}

Test(doorbell_auto, blueflame_needs_its_kind_of_page)
{
	doca_verbs_uar_t *bf, *plain = ask.uar;

	if (doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, &bf))
		cr_skip_test("no BlueFlame page");
	ask.uar = bf;
	cr_assert_eq(pick(E2E_BF, MODE(VALID_DBR)), DOCA_SUCCESS);
	cr_assert_eq(got, E2E_BF);
	cr_assert_eq(pick(E2E_AUTO, MODE(VALID_DBR)), DOCA_SUCCESS);
	cr_assert_eq(got, E2E_DB, "AUTO never picks BlueFlame");
	ask.uar = plain;
	doca_verbs_uar_destroy(bf);
}

/* Chooses with the given strategies only. Returns the log. */
static const char *refused_with(const struct gdk_slot *slots, size_t num,
				enum doca_gpu_dev_verbs_nic_handler want)
{
	struct gdk_decision decision;
	doca_error_t err;
	const char *log;

	ask.want = want;
	ask.dbr_mode = MODE(VALID_DBR);
	capture_begin();
	err = gdk_doorbell_pick(slots, num, &ask, &decision);
	log = capture_end();
	cr_expect_eq(err, DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_null(decision.db);
	gdk_doorbell_report(&decision, &report);
	return log;
}

Test(doorbell_auto, refusal_without_strategies_names_what_to_link)
{
	const struct gdk_doorbell *none = NULL;
	const struct gdk_slot slots[] = { { "gpu_sm", &none }, { "cpu_proxy", &none } };
	const char *log = refused_with(slots, 2, E2E_AUTO);

	cr_expect(strstr(log, "no doorbell strategy is linked; link -lgdaki, or put"), "%s", log);
	cr_expect(strstr(log, "-lgdaki_db_cpu_proxy behind -lgdaki_qp"), "%s", log);
	cr_expect_str_eq(
		report.candidates[report.num_candidates - 1].reason,
		"libgdaki_db_cpu_proxy.a is not linked: link -lgdaki, or put -lgdaki_db_cpu_proxy "
		"behind -lgdaki_qp");
}

Test(doorbell_auto, refusal_names_the_archive_that_is_not_linked)
{
	const struct gdk_doorbell *none = NULL;
	const struct gdk_slot slots[] = { { "gpu_sm", &none },
					  { "cpu_proxy", &gdk_doorbell_cpu_proxy } };
	const char *log = refused_with(slots, 2, E2E_DB);

	cr_expect(strstr(log, "libgdaki_db_gpu_sm.a is not linked: link -lgdaki, or put "
			      "-lgdaki_db_gpu_sm behind -lgdaki_qp"),
		  "%s", log);
	cr_expect(strstr(log, "linked strategies: cpu_proxy"), "%s", log);
}

Test(doorbell_auto, names)
{
	cr_assert_str_eq(gdk_handler_name(E2E_AUTO), "AUTO");
	cr_assert_str_eq(gdk_handler_name(E2E_NO_DBR), "GPU_SM_NO_DBR");
	cr_assert_str_eq(gdk_handler_name((enum doca_gpu_dev_verbs_nic_handler)77), "?");
}
