/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode of completion queues (core/sdk/sdk.h). When this file creates a CQ, it queries the SDK
 * for the CQ number, sizes and addresses that export and polling need. If the CQ is in a umem of
 * the caller, it computes the address of the entries from the umem and the offset instead.
 */
#include "core/sdk/sdk.h"
#include "cq/cq.h"

/* umem is used if the SDK allocated the memory of the CQ itself. It is never returned to the
 * application. */
struct sdk_cq {
	struct doca_verbs_cq_t cq;
	struct doca_verbs_umem umem;
};

/* Adds by to the use counts of the CQ's umem, UAR and device: 1 at creation, -1 at destruction. */
static void count_cq_uses(struct doca_verbs_cq_t *cq, int by)
{
	atomic_fetch_add(&cq->umem->users, by);
	if (cq->uar)
		atomic_fetch_add(&cq->uar->users, by);
	atomic_fetch_add(&cq->dev->users, by);
}

static doca_error_t query_cq(struct doca_verbs_cq_t *cq, const doca_verbs_cq_attr_t *attr)
{
	uint32_t *arm_dbr;
	uint64_t *reg;
	doca_error_t err;
	uint8_t size;

	err = doca_verbs_cq_get_wq(cq, &cq->buf, &cq->cqe_num, &size);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_cq_get_dbr_addr(cq, &reg, &cq->dbrec, &arm_dbr);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_cq_get_cqn(cq, &cq->cqn);
	if (err != DOCA_SUCCESS || !attr->umem)
		return err;
	cq->buf = (uint8_t *)attr->umem->addr + attr->umem_offset;
	return gdk_cq_format(cq, 0);
}

doca_error_t gdk_sdk_cq_create(doca_dev_t *dev, doca_verbs_cq_attr_t *attr, doca_verbs_cq_t **out)
{
	struct sdk_cq *made = calloc(1, sizeof(*made));
	struct doca_verbs_cq_t *cq;
	doca_error_t err;

	if (!made) {
		gdk_err("no memory for a CQ");
		return DOCA_ERROR_NO_MEMORY;
	}
	cq = &made->cq;
	cq->dev = dev;
	cq->collapsed = attr->collapsed;
	cq->overrun_ignore = attr->overrun == DOCA_VERBS_CQ_ENABLE_OVERRUN;
	cq->context = attr->context;
	cq->umem = attr->umem ? attr->umem : &made->umem;
	cq->own_umem = !attr->umem;
	cq->gpu = cq->umem->gpu;
	cq->uar = attr->uar;
	err = GDK_SDK_CALL(doca_verbs_cq_create, dev->sdk_context, attr->sdk, (void *)&cq->sdk);
	if (err != DOCA_SUCCESS)
		goto err_free;
	err = query_cq(cq, attr);
	if (err != DOCA_SUCCESS)
		goto err_destroy;
	count_cq_uses(cq, 1);
	*out = cq;
	return DOCA_SUCCESS;

err_destroy:
	(void)GDK_SDK_CALL(doca_verbs_cq_destroy, cq->sdk);
err_free:
	free(made);
	return err;
}

doca_error_t gdk_sdk_cq_destroy(doca_verbs_cq_t *cq)
{
	doca_error_t err = GDK_SDK_CALL(doca_verbs_cq_destroy, cq->sdk);

	if (err != DOCA_SUCCESS)
		return err;
	count_cq_uses(cq, -1);
	free(GDK_CONTAINER_OF(cq, struct sdk_cq, cq));
	return DOCA_SUCCESS;
}
