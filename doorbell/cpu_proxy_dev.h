/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The doorbell rung by a CPU thread: this side raises a 64-bit counter in host
 * memory, sq_db, to the index up to which the proxy is to ring.
 */
#ifndef GDK_CPU_PROXY_DEV_H
#define GDK_CPU_PROXY_DEV_H

#include "gpu_sm_dev.h"

/* WQEs, then the counter: the proxy reads the counter (acquire) and rings, and
 * the NIC reads the WQEs. The counter never falls. */
GDK_FN void gdk_ring_counter(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, int scope)
{
	uint64_t *counter = gdk_db_reg(qp);

	gdk_fence_rel(GDK_SCOPE_SYS);
	if (scope == GDK_SCOPE_THREAD)
		gdk_st64(counter, pi, GDK_SCOPE_SYS);
	else
		gdk_rmw_max64(counter, pi, GDK_SCOPE_SYS);
}

GDK_FN void gdk_ring_proxy(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi,
			   enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	const int scope = gdk_mode_scope(mode);

	gdk_max64_rel(&gdk_state_of_qp(qp)->rung, pi, scope);
	gdk_ring_counter(qp, pi, scope);
}

#endif
