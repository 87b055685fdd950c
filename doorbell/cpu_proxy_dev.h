/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The doorbell rung by a CPU thread: this side raises a 64-bit counter in host
 * memory, sq_db, to the index up to which the proxy is to ring.
 */
#ifndef GDK_CPU_PROXY_DEV_H
#define GDK_CPU_PROXY_DEV_H

#include "gpu_sm_dev.h"

/* The holder of the token alone stores, so the counter never falls. */
GDK_FN void gdk_counter_store(const struct gdk_db *db, uint64_t pi)
{
	gdk_st64(db->reg, pi, GDK_SCOPE_SYS);
}

/* For those who ring by themselves. WQEs, then the counter: the proxy reads the
 * counter (acquire) and rings, and the NIC reads the WQEs. The proxy itself reads
 * none, so the fence is as wide as before a register: it is one with a CPU behind. */
GDK_FN void gdk_ring_proxy(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi,
			   enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_db db = gdk_db_of(qp);

	if (gdk_debug_refuses_below(qp, pi))
		return;
	gdk_max64(&st->rung, pi, gdk_mode_scope(mode));
	gdk_fence_rel(gdk_nic_scope(st));
	if (mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		gdk_counter_store(&db, pi);
	else
		gdk_red_max64(db.reg, pi, GDK_SCOPE_SYS);
}

#endif
