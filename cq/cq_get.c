/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Properties of a CQ. */
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "cq/cq.h"

doca_error_t doca_verbs_cq_get_wq(doca_verbs_cq_t *cq, void **cq_buf, uint32_t *cq_num_entries,
				  uint8_t *cq_entry_size)
{
	GDK_CHECK_PTR(cq);
	GDK_CHECK_PTR(cq_buf);
	GDK_CHECK_PTR(cq_num_entries);
	GDK_CHECK_PTR(cq_entry_size);
	GDK_SDK_VOID(cq, "doca_verbs_cq_get_wq", (void *, void **, uint32_t *, uint8_t *), cq->sdk,
		     cq_buf, cq_num_entries, cq_entry_size);
	*cq_buf = cq->buf;
	*cq_num_entries = cq->cqe_num;
	*cq_entry_size = DOCA_GPUNETIO_VERBS_CQE_SIZE;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_cq_get_dbr_addr(doca_verbs_cq_t *cq, uint64_t **uar_db_reg,
					uint32_t **ci_dbr, uint32_t **arm_dbr)
{
	GDK_CHECK_PTR(cq);
	GDK_CHECK_PTR(uar_db_reg);
	GDK_CHECK_PTR(ci_dbr);
	GDK_CHECK_PTR(arm_dbr);
	GDK_SDK_VOID(cq, "doca_verbs_cq_get_dbr_addr",
		     (void *, uint64_t **, uint32_t **, uint32_t **), cq->sdk, uar_db_reg, ci_dbr,
		     arm_dbr);
	*uar_db_reg = cq->uar->reg_addr;
	*ci_dbr = &cq->dbrec[0];
	*arm_dbr = &cq->dbrec[1];
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_cq_get_cqn(const doca_verbs_cq_t *cq, uint32_t *cqn)
{
	GDK_CHECK_PTR(cq);
	GDK_CHECK_PTR(cqn);
	GDK_SDK_VALUE(cq, uint32_t, "doca_verbs_cq_get_cqn", cqn);
	*cqn = cq->cqn;
	return DOCA_SUCCESS;
}
