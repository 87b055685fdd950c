/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Properties of a queue pair, and the counts of uses of what it was created with. */
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "qp/verbs/qp.h"

void *gdk_qp_db_reg(const struct doca_verbs_qp_t *qp)
{
	if (qp->sdk)
		return qp->sdk_reg;
	return qp->no_dbr ? qp->uar->dbr_less_addr : qp->uar->reg_addr;
}

doca_error_t doca_verbs_qp_get_wq(const doca_verbs_qp_t *qp, void **sq_buf,
				  uint32_t *sq_num_entries, void **rq_buf, uint32_t *rq_num_entries,
				  uint32_t *rwqe_size_bytes)
{
	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(sq_buf);
	GDK_CHECK_PTR(sq_num_entries);
	GDK_CHECK_PTR(rq_buf);
	GDK_CHECK_PTR(rq_num_entries);
	GDK_CHECK_PTR(rwqe_size_bytes);
	GDK_SDK_VOID(qp, "doca_verbs_qp_get_wq",
		     (const void *, void **, uint32_t *, void **, uint32_t *, uint32_t *), qp->sdk,
		     sq_buf, sq_num_entries, rq_buf, rq_num_entries, rwqe_size_bytes);
	*sq_buf = qp->sq_buf;
	*sq_num_entries = qp->sq_num;
	*rq_buf = qp->rq_buf;
	*rq_num_entries = qp->rq_num;
	*rwqe_size_bytes = qp->rwqe_size;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_get_dbr_addr(const doca_verbs_qp_t *qp, void **dbr_addr)
{
	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(dbr_addr);
	GDK_SDK_VALUE(qp, void *, "doca_verbs_qp_get_dbr_addr", dbr_addr);
	*dbr_addr = qp->dbrec;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_get_uar_addr(const doca_verbs_qp_t *qp, void **uar_addr)
{
	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(uar_addr);
	GDK_SDK_VALUE(qp, void *, "doca_verbs_qp_get_uar_addr", uar_addr);
	*uar_addr = gdk_qp_db_reg(qp);
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_get_qpn(const doca_verbs_qp_t *qp, uint32_t *qpn)
{
	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(qpn);
	GDK_SDK_VALUE(qp, uint32_t, "doca_verbs_qp_get_qpn", qpn);
	*qpn = qp->qpn;
	return DOCA_SUCCESS;
}

bool doca_verbs_qp_get_emulate_no_dbr_ext(const doca_verbs_qp_t *qp)
{
	GDK_CHECK_PTR_OR(false, qp);
	return qp->emulate_no_dbr;
}

void gdk_qp_count_uses(struct doca_verbs_qp_t *qp, int by)
{
	atomic_fetch_add(&qp->umem->users, by);
	if (qp->umem_dbr != qp->umem)
		atomic_fetch_add(&qp->umem_dbr->users, by);
	atomic_fetch_add(&qp->uar->users, by);
	if (qp->send_cq)
		atomic_fetch_add(&qp->send_cq->users, by);
	if (qp->recv_cq)
		atomic_fetch_add(&qp->recv_cq->users, by);
	if (qp->srq)
		atomic_fetch_add(&qp->srq->users, by);
	if (qp->no_dbr)
		atomic_fetch_add(&qp->dev->no_dbr_qps, (unsigned int)by);
	atomic_fetch_add(&qp->dev->users, by);
}
