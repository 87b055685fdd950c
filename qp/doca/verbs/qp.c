/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Queue pairs and paths in the SDK's interface: created from a context and a protection domain,
 * with the prototypes of the SDK. qp/verbs/qp.c and qp/verbs/ah.c do the work.
 */
#include "qp/verbs/qp.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "qp/doca/verbs/context.h"
#include "qp/doca/verbs/shape.h"

typedef doca_error_t set_flag_fn(void *attr, uint8_t value);

doca_error_t gdk_doca_ah_attr_create(struct doca_verbs_context *verbs_context,
				     doca_verbs_ah_attr_t **ah_attr)
{
	GDK_CHECK_PTR(verbs_context);
	return doca_verbs_ah_attr_create(verbs_context->dev, ah_attr);
}

doca_error_t gdk_doca_qp_init_attr_set_pd(doca_verbs_qp_init_attr_t *qp_init_attr,
					  struct doca_verbs_pd *pd)
{
	return doca_verbs_qp_init_attr_set_pd(qp_init_attr, pd ? pd->dev : NULL);
}

/* The user's code is the only data path, so there is nothing to store. */
doca_error_t
doca_verbs_qp_init_attr_set_external_datapath_en(doca_verbs_qp_init_attr_t *qp_init_attr,
						 uint8_t external_datapath_en)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_SDK_AS(qp_init_attr, "doca_verbs_qp_init_attr_set_external_datapath_en", set_flag_fn,
		   qp_init_attr->sdk, external_datapath_en);
	GDK_CHECK_RANGE(external_datapath_en, 0, 1);
	if (external_datapath_en)
		return DOCA_SUCCESS;
	gdk_err("QP: external_datapath_en 0 is not supported: this library posts no WQE itself; "
		"set it to 1 and post with device functions");
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_verbs_qp_init_attr_set_external_dbr_umem(doca_verbs_qp_init_attr_t *qp_init_attr,
							   doca_verbs_umem_t *external_dbr_umem,
							   uint64_t external_dbr_umem_offset)
{
	return doca_verbs_qp_init_attr_set_external_umem_dbr(qp_init_attr, external_dbr_umem,
							     external_dbr_umem_offset);
}

static doca_error_t check_contexts(const struct doca_verbs_context *context,
				   const doca_verbs_qp_init_attr_t *init)
{
	const char *why = NULL;

	if (!init->pd)
		why = "it has no protection domain: set one with doca_verbs_qp_init_attr_set_pd";
	else if (init->pd->ctx != context->ctx)
		why = "its protection domain belongs to another context";
	else if ((init->send_cq && init->send_cq->dev->ctx != context->ctx) ||
		 (init->receive_cq && init->receive_cq->dev->ctx != context->ctx))
		why = "one of its CQs belongs to another context";
	else if (init->external_uar && init->external_uar->dev->ctx != context->ctx)
		why = "its UAR belongs to another context";
	if (!why)
		return DOCA_SUCCESS;
	gdk_err("QP of sq_wr %u, rq_wr %u: cannot create it: %s", init->sq_wr, init->rq_wr, why);
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t gdk_doca_qp_create(struct doca_verbs_context *verbs_context,
				doca_verbs_qp_init_attr_t *qp_init_attr, doca_verbs_qp_t **verbs_qp)
{
	doca_error_t err;

	GDK_CHECK_PTR(verbs_context);
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(verbs_qp);
	err = check_contexts(verbs_context, qp_init_attr);
	if (err != DOCA_SUCCESS)
		return err;
	return doca_verbs_qp_create(qp_init_attr->pd, qp_init_attr, verbs_qp);
}

uint32_t gdk_doca_qp_get_qpn(const doca_verbs_qp_t *verbs_qp)
{
	uint32_t qpn = 0;

	GDK_CHECK_PTR_OR(0, verbs_qp);
	(void)doca_verbs_qp_get_qpn(verbs_qp, &qpn);
	return qpn;
}
