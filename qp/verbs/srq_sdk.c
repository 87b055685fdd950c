/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode of shared receive queues and address handles (core/sdk/sdk.h). SRQs are created
 * without a doca_dev, so each SRQ has an SDK object of its own for the verbs context, and each
 * attribute object has one for the PD.
 */
#include "core/sdk/sdk_dev.h"
#include "qp/verbs/qp.h"

doca_error_t gdk_sdk_ah_create(doca_verbs_ah_attr_t *ah)
{
	return GDK_SDK_CALL(doca_verbs_ah_attr_create, ah->dev->sdk_context, (void *)&ah->sdk);
}

doca_error_t gdk_sdk_srq_set_pd(struct doca_verbs_srq_init_attr *attr, struct ibv_pd *pd)
{
	void *view = NULL;
	doca_error_t err = gdk_sdk_import_pd(pd, &view);

	if (err == DOCA_SUCCESS)
		err = GDK_SDK_CALL(doca_verbs_srq_init_attr_set_pd, attr->sdk, view);
	if (err != DOCA_SUCCESS) {
		gdk_sdk_drop_pd(&view);
		return err;
	}
	gdk_sdk_drop_pd(&attr->sdk_pd);
	attr->sdk_pd = view;
	attr->pd = pd;
	return DOCA_SUCCESS;
}

doca_error_t gdk_sdk_srq_attr_destroy(struct doca_verbs_srq_init_attr *attr)
{
	doca_error_t err = GDK_SDK_CALL(doca_verbs_srq_init_attr_destroy, attr->sdk);

	if (err != DOCA_SUCCESS)
		return err;
	gdk_sdk_drop_pd(&attr->sdk_pd);
	free(attr);
	return DOCA_SUCCESS;
}

doca_error_t gdk_sdk_srq_create(struct ibv_context *ctx, struct doca_verbs_srq_init_attr *attr,
				struct doca_verbs_srq **out)
{
	struct doca_verbs_srq *srq = calloc(1, sizeof(*srq));
	doca_error_t err;

	if (!srq) {
		gdk_err("no memory for an SRQ");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = gdk_sdk_import_context(ctx, &srq->sdk_context);
	if (err == DOCA_SUCCESS)
		err = GDK_SDK_CALL(doca_verbs_srq_create, srq->sdk_context, attr->sdk,
				   (void *)&srq->sdk);
	if (err != DOCA_SUCCESS) {
		gdk_sdk_drop_context(&srq->sdk_context);
		free(srq);
		return err;
	}
	srq->umem = attr->external_umem;
	if (srq->umem)
		atomic_fetch_add(&srq->umem->users, 1);
	*out = srq;
	return DOCA_SUCCESS;
}

doca_error_t gdk_sdk_srq_destroy(struct doca_verbs_srq *srq)
{
	doca_error_t err = GDK_SDK_CALL(doca_verbs_srq_destroy, srq->sdk);

	if (err != DOCA_SUCCESS)
		return err;
	gdk_sdk_drop_context(&srq->sdk_context);
	if (srq->umem)
		atomic_fetch_sub(&srq->umem->users, 1);
	free(srq);
	return DOCA_SUCCESS;
}
