/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Properties of a UAR. */
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "uar/uar.h"

doca_error_t doca_verbs_uar_id_get(const doca_verbs_uar_t *uar, uint32_t *id)
{
	GDK_CHECK_PTR(uar);
	GDK_CHECK_PTR(id);
	GDK_SDK_AS(uar, "doca_uar_id_get", doca_verbs_uar_id_get, uar->sdk, id);
	*id = uar->id;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_uar_reg_addr_get(const doca_verbs_uar_t *uar_obj, void **reg_addr)
{
	GDK_CHECK_PTR(uar_obj);
	GDK_CHECK_PTR(reg_addr);
	GDK_SDK_AS(uar_obj, "doca_uar_reg_addr_get", doca_verbs_uar_reg_addr_get, uar_obj->sdk,
		   reg_addr);
	*reg_addr = uar_obj->reg_addr;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_uar_dbr_less_addr_get(const doca_verbs_uar_t *uar_obj, void **dbr_less_addr)
{
	GDK_CHECK_PTR(uar_obj);
	GDK_CHECK_PTR(dbr_less_addr);
	/* The SDK has one register address for QPs with and without DBREC. */
	GDK_SDK_AS(uar_obj, "doca_uar_reg_addr_get", doca_verbs_uar_dbr_less_addr_get, uar_obj->sdk,
		   dbr_less_addr);
	if (!uar_obj->dbr_less_addr) {
		gdk_info("UAR 0x%x: the device does not support QPs without DBREC", uar_obj->id);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*dbr_less_addr = uar_obj->dbr_less_addr;
	return DOCA_SUCCESS;
}
