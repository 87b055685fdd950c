/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definitions of the Verbs objects that only the SDK's interface has: contexts and
 * protection domains. Each has a device handle of its own, because the functions of DOCA
 * GPUNetIO open create objects from device handles: CQs and paths from that of the context, QPs
 * from that of the protection domain. Umems and UARs belong to a third handle, which
 * doca_rdma_bridge_open_dev_from_pd() opens. All handles use the same ibv_context, so the objects
 * fit together.
 */
#ifndef GDK_DOCA_CONTEXT_H
#define GDK_DOCA_CONTEXT_H

/* The files of this folder use both interfaces. */
#ifndef GDK_BOTH_SHAPES
#define GDK_BOTH_SHAPES
#endif

#include <pthread.h>
#include <stdbool.h>

#include "core/nic/net_dev.h"
#include "doca_verbs_bridge.h"

struct doca_verbs_context {
	struct ibv_context *ctx;
	struct ibv_pd *ibpd; /* of dev; no QP belongs to it */
	doca_dev_t *dev;
	unsigned int pds;  /* protection domains that exist */
	unsigned int held; /* those of pds that were destroyed, and exist for an open NIC */
	bool destroyed;	   /* by the user; exists while held is not 0 */
	pthread_mutex_t event_lock;
};

struct doca_verbs_pd {
	struct doca_verbs_context *context;
	struct ibv_pd *ibpd;
	doca_dev_t *dev;
	unsigned int holders; /* NICs that were opened from ibpd and are open */
	bool destroyed;	      /* by the user; exists while holders is not 0 */
	struct doca_verbs_pd *next;
};

/* doca_rdma_bridge_open_dev_from_pd() calls gdk_doca_pd_hold() when it has opened a NIC from ibpd,
 * and doca_dev_close() calls gdk_doca_pd_drop() when it has closed the NIC. The protection domain
 * and its context exist until then, also if the user destroys them before. Returns NULL if the user
 * allocated ibpd with libibverbs. */
struct doca_verbs_pd *gdk_doca_pd_hold(const struct ibv_pd *ibpd);
void gdk_doca_pd_drop(struct doca_verbs_pd *pd);

#endif
