/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The status of a QP: 0, or the negative errno that ended it. The first one stays. */
#ifndef GDK_STATUS_DEV_H
#define GDK_STATUS_DEV_H

#include "../../device/gdk/platform.h"

GDK_FN struct gdk_qp_state *gdk_state_of_qp(const struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct gdk_qp_state *)(uintptr_t)gdk_ld_state(GDK_QP_AT(qp, gdk_state));
}

GDK_FN struct gdk_qp_state *gdk_state_of_cq(const struct doca_gpu_dev_verbs_cq *cq)
{
	return (struct gdk_qp_state *)(uintptr_t)gdk_ld_state(GDK_CQ_AT(cq, gdk_state));
}

GDK_FN struct doca_gpu_dev_verbs_cq *gdk_qp_cq(struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct doca_gpu_dev_verbs_cq *)(uintptr_t)GDK_QP_AT(qp, cq_sq);
}

/* Ends the QP with status unless it has ended. Returns the status that ended it. */
GDK_FN int gdk_state_end(struct gdk_qp_state *st, int status)
{
	uint32_t old = gdk_rmw_cas32((uint32_t *)&st->status, 0, (uint32_t)status, GDK_SCOPE_GPU);

	return old ? (int)old : status;
}

/* Has the QP ended, or has the host aborted it? */
GDK_FN int gdk_state_ended(const struct gdk_qp_state *st)
{
	return gdk_ld64((const uint64_t *)(const void *)&st->status, GDK_SCOPE_GPU) != 0;
}

/* Returns 0 or the status that ended the QP. An abort by the host becomes its status here. */
GDK_FN int gdk_state_status(struct gdk_qp_state *st)
{
	uint64_t both = gdk_ld64((const uint64_t *)(const void *)&st->status, GDK_SCOPE_GPU);

	if (!both)
		return 0;
	return (uint32_t)both ? (int)(uint32_t)both : gdk_state_end(st, -ECANCELED);
}

GDK_FN int gdk_qp_status(const struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_state_status(gdk_state_of_qp(qp));
}

#endif
