/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Completion queues in the SDK's interface: created from a context, with the prototypes of the
 * SDK. cq/cq.c does the work.
 */
#include "cq/cq.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "qp/doca/verbs/context.h"
#include "qp/doca/verbs/shape.h"

#define ENTRY_SIZE_64 0 /* DOCA_VERBS_CQ_ENTRY_SIZE_64 */

typedef doca_error_t set_flag_fn(void *attr, uint8_t value);

doca_error_t gdk_doca_cq_attr_set_cq_overrun(doca_verbs_cq_attr_t *cq_attr, uint8_t overrun)
{
	GDK_CHECK_RANGE(overrun, 0, 1);
	return doca_verbs_cq_attr_set_cq_overrun(cq_attr, overrun ? DOCA_VERBS_CQ_ENABLE_OVERRUN
								  : DOCA_VERBS_CQ_DISABLE_OVERRUN);
}

/* All CQs have entries of 64 bytes, so there is nothing to store. */
doca_error_t doca_verbs_cq_attr_set_entry_size(doca_verbs_cq_attr_t *cq_attr, int entry_size)
{
	GDK_CHECK_PTR(cq_attr);
	if (entry_size == ENTRY_SIZE_64)
		return DOCA_SUCCESS;
	gdk_err("entry_size %d is not supported (expected DOCA_VERBS_CQ_ENTRY_SIZE_64, %d)",
		entry_size, ENTRY_SIZE_64);
	return DOCA_ERROR_NOT_SUPPORTED;
}

/* The user's code is the only data path, so there is nothing to store. */
doca_error_t doca_verbs_cq_attr_set_external_datapath_en(doca_verbs_cq_attr_t *cq_attr,
							 uint8_t external_datapath_en)
{
	GDK_CHECK_PTR(cq_attr);
	GDK_SDK_AS(cq_attr, "doca_verbs_cq_attr_set_external_datapath_en", set_flag_fn,
		   cq_attr->sdk, external_datapath_en);
	GDK_CHECK_RANGE(external_datapath_en, 0, 1);
	if (external_datapath_en)
		return DOCA_SUCCESS;
	gdk_err("CQ: external_datapath_en 0 is not supported: this library polls no CQ itself; set "
		"it to 1 and poll with device functions");
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t gdk_doca_cq_create(struct doca_verbs_context *verbs_context,
				doca_verbs_cq_attr_t *cq_attr, doca_verbs_cq_t **verbs_cq)
{
	GDK_CHECK_PTR(verbs_context);
	return doca_verbs_cq_create(verbs_context->dev, cq_attr, verbs_cq);
}

uint32_t gdk_doca_cq_get_cqn(const doca_verbs_cq_t *verbs_cq)
{
	uint32_t cqn = 0;

	GDK_CHECK_PTR_OR(0, verbs_cq);
	(void)doca_verbs_cq_get_cqn(verbs_cq, &cqn);
	return cqn;
}
