/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode (core/sdk/sdk.h) of UARs: creates the SDK's UAR and queries its register address. The
 * SDK decides which pages are shared.
 */
#include "core/sdk/sdk.h"
#include "uar/uar.h"

doca_error_t gdk_sdk_uar_create(doca_verbs_uar_t *uar)
{
	doca_error_t err;

	err = GDK_SDK_CALL_AS("doca_uar_create", doca_verbs_uar_create, uar->dev->sdk, uar->type,
			      (void *)&uar->sdk);
	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_uar_reg_addr_get(uar, &uar->reg_addr);
	if (err != DOCA_SUCCESS)
		(void)GDK_SDK_CALL_AS("doca_uar_destroy", doca_verbs_uar_destroy, uar->sdk);
	uar->dbr_less_addr = uar->reg_addr;
	return err;
}
