/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Doorbell register pages (UARs) of each allocation type on the software NIC: their
 * registers, their use by other objects, and refused arguments.
 */
#include "../../uar/uar.h"
#include "../lib/nic.h"

static const enum doca_verbs_uar_allocation_type kinds[] = {
	DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME,
	DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE,
	DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED,
};

Test(uar, every_kind_has_a_register)
{
	struct nic nic = nic_open();
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(kinds); i++) {
		doca_verbs_uar_t *uar;
		doca_error_t err = doca_verbs_uar_create(nic.dev, kinds[i], &uar);
		uint32_t id = UINT32_MAX;
		void *reg = NULL;

		if (kinds[i] == DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED &&
		    err == DOCA_ERROR_NOT_SUPPORTED)
			continue; /* the library or kernel does not support this type */
		cr_assert_eq(err, DOCA_SUCCESS);
		cr_expect_eq(doca_verbs_uar_id_get(uar, &id), DOCA_SUCCESS);
		cr_expect_neq(id, UINT32_MAX);
		cr_expect_eq(doca_verbs_uar_reg_addr_get(uar, &reg), DOCA_SUCCESS);
		cr_assert(reg);
		cr_expect_eq((uintptr_t)reg & 0x7ff, 0, "register at %p is not aligned", reg);
		cr_expect_eq(doca_verbs_uar_destroy(uar), DOCA_SUCCESS);
	}
	nic_close(&nic);
}

Test(uar, dbrec_less_register_is_on_the_same_page)
{
	struct nic nic = nic_open();
	doca_verbs_uar_t *uar;
	void *reg, *less = NULL;
	doca_error_t err;

	cr_assert_eq(doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &uar),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_uar_reg_addr_get(uar, &reg), DOCA_SUCCESS);
	err = doca_verbs_uar_dbr_less_addr_get(uar, &less);
	if (nic.dev->caps.send_dbr_mode_no_dbr_ext) {
		cr_expect_eq(err, DOCA_SUCCESS);
		cr_expect_eq((uintptr_t)less & 0xfff, 0x600);
		cr_expect_eq((uintptr_t)less >> 12, (uintptr_t)reg >> 12);
	} else {
		cr_expect_eq(err, DOCA_ERROR_NOT_SUPPORTED);
		cr_expect_null(less);
	}
	cr_expect_eq(doca_verbs_uar_destroy(uar), DOCA_SUCCESS);
	nic_close(&nic);
}

Test(uar, uar_in_use_is_not_destroyed)
{
	struct nic nic = nic_open();
	doca_verbs_uar_t *uar;

	cr_assert_eq(doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, &uar),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_dev_close(nic.dev), DOCA_ERROR_IN_USE);
	atomic_fetch_add(&uar->users, 1);
	cr_expect_eq(doca_verbs_uar_destroy(uar), DOCA_ERROR_IN_USE);
	atomic_fetch_sub(&uar->users, 1);
	cr_expect_eq(doca_verbs_uar_destroy(uar), DOCA_SUCCESS);
	nic_close(&nic);
}

Test(uar, bad_arguments_are_refused)
{
	struct nic nic = nic_open();
	doca_verbs_uar_t *uar = NULL;
	void *reg;

	cr_expect_eq(doca_verbs_uar_create(NULL, kinds[0], &uar), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_uar_create(nic.dev, kinds[0], NULL), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_uar_create(nic.dev, (enum doca_verbs_uar_allocation_type)3, &uar),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_uar_destroy(NULL), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_uar_reg_addr_get(NULL, &reg), DOCA_ERROR_INVALID_VALUE);
	cr_expect_null(uar);
	nic_close(&nic);
}
