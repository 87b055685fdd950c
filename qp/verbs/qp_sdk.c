/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode of queue pairs (core/sdk/sdk.h). After the SDK has created a QP, this file queries it
 * for the numbers, sizes and addresses that the export needs. Addresses in an external umem are
 * computed from the umem and the offset instead.
 */
#include "core/sdk/sdk.h"
#include "qp/verbs/qp.h"

/* umem and uar stand for the memory and the UAR that the SDK created itself. They are never
 * returned to the application. */
struct sdk_qp {
	struct doca_verbs_qp_t qp;
	struct doca_verbs_umem umem;
	struct doca_verbs_uar uar;
};

/* Sets the addresses in external umems. The receive queue is in front of the send queue. */
static void place_in_umem(struct doca_verbs_qp_t *qp)
{
	const struct doca_verbs_qp_init_attr *init = &qp->init;
	size_t rq_bytes = gdk_align_up((size_t)qp->rq_num * qp->rwqe_size, GDK_WQEBB_SIZE);

	if (init->external_umem) {
		qp->rq_buf = (uint8_t *)init->external_umem->addr + init->external_umem_offset;
		qp->sq_buf = (uint8_t *)qp->rq_buf + rq_bytes;
	}
	if (init->external_umem_dbr)
		qp->dbrec = (uint32_t *)((uint8_t *)init->external_umem_dbr->addr +
					 init->external_umem_dbr_offset);
}

static doca_error_t query_qp(struct doca_verbs_qp_t *qp)
{
	void *dbrec = NULL;
	doca_error_t err;

	err = doca_verbs_qp_get_wq(qp, &qp->sq_buf, &qp->sq_num, &qp->rq_buf, &qp->rq_num,
				   &qp->rwqe_size);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_qp_get_dbr_addr(qp, &dbrec);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_qp_get_uar_addr(qp, &qp->sdk_reg);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_qp_get_qpn(qp, &qp->qpn);
	qp->dbrec = dbrec;
	place_in_umem(qp);
	return err;
}

static void take_parts(struct sdk_qp *made, const struct doca_verbs_qp_init_attr *init)
{
	struct doca_verbs_qp_t *qp = &made->qp;

	qp->init = *init;
	qp->init.sdk = NULL; /* the SDK's attributes belong to the caller's object */
	qp->context = init->qp_context;
	qp->no_dbr = init->send_dbr_mode == DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT;
	qp->emulate_no_dbr = init->emulate_no_dbr_ext;
	qp->umem = init->external_umem ? init->external_umem : &made->umem;
	qp->umem_dbr = init->external_umem_dbr ? init->external_umem_dbr : &made->umem;
	qp->own_umem = !init->external_umem;
	qp->gpu = qp->umem->gpu;
	qp->uar = init->external_uar ? init->external_uar : &made->uar;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->receive_cq;
	qp->srq = init->srq;
}

doca_error_t gdk_sdk_qp_create(doca_dev_t *dev, doca_verbs_qp_init_attr_t *init,
			       doca_verbs_qp_t **out)
{
	struct sdk_qp *made = calloc(1, sizeof(*made));
	struct doca_verbs_qp_t *qp;
	doca_error_t err;

	if (!made) {
		gdk_err("no memory for a QP");
		return DOCA_ERROR_NO_MEMORY;
	}
	qp = &made->qp;
	qp->dev = dev;
	take_parts(made, init);
	err = GDK_SDK_CALL(doca_verbs_qp_create, dev->sdk_context, init->sdk, (void *)&qp->sdk);
	if (err != DOCA_SUCCESS)
		goto err_free;
	err = query_qp(qp);
	if (err != DOCA_SUCCESS)
		goto err_destroy;
	made->uar.reg_addr = qp->sdk_reg;
	pthread_mutex_init(&qp->lock, NULL);
	gdk_qp_count_uses(qp, 1);
	*out = qp;
	return DOCA_SUCCESS;

err_destroy:
	(void)GDK_SDK_CALL(doca_verbs_qp_destroy, qp->sdk);
err_free:
	free(made);
	return err;
}

doca_error_t gdk_sdk_qp_destroy(doca_verbs_qp_t *qp)
{
	doca_error_t err = GDK_SDK_CALL(doca_verbs_qp_destroy, qp->sdk);

	if (err != DOCA_SUCCESS)
		return err;
	gdk_qp_count_uses(qp, -1);
	pthread_mutex_destroy(&qp->lock);
	free(GDK_CONTAINER_OF(qp, struct sdk_qp, qp));
	return DOCA_SUCCESS;
}
