/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The seam between a queue pair and the strategies that ring its doorbell.
 * Each strategy is one archive that defines one pointer, gdk_doorbell_<name>,
 * to its operations; libgdaki_db_none.a, last on the link line, defines the
 * same pointers as NULL for the strategies that were not linked. Selection is
 * made in auto.c and nowhere else, per QP, and never cached.
 */
#ifndef GDK_DOORBELL_H
#define GDK_DOORBELL_H

#include "core/gpu/gpu.h"
#include "core/net_dev.h"
#include "qp/qp.h"
#include "uar/uar.h"
#include "host/gdaki.h"

/* What is known when the choice is made: before the QP exists (high level) or
 * at its export. */
struct gdk_doorbell_ask {
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	struct doca_verbs_uar *uar;
	enum doca_gpu_dev_verbs_nic_handler want; /* AUTO, or one handler */
	enum doca_gpu_verbs_send_dbr_mode_ext dbr_mode;
	bool dbr_mode_stated;	    /* false: AUTO may fall back from NO_DBR */
	struct doca_verbs_qp_t *qp; /* NULL before creation */
};

struct gdk_doorbell {
	const char *name;
	uint32_t handlers;  /* 1u << nic_handler for each one served */
	bool dbrec_on_host; /* the DBREC must be CPU-writable; read before QP creation */
	/* Can it serve handler h for this ask? reason: static text either way. */
	doca_error_t (*probe)(const struct gdk_doorbell_ask *ask,
			      enum doca_gpu_dev_verbs_nic_handler h, const char **reason);
	/* Fills sq_db and what else the strategy owns in qp and in dev (host image
	 * of the device struct, copied to the GPU afterwards). */
	doca_error_t (*attach)(const struct gdk_doorbell_ask *ask, struct doca_gpu_verbs_qp *qp,
			       struct doca_gpu_dev_verbs_qp *dev);
	void (*detach)(struct doca_gpu_verbs_qp *qp);
};

/* A gdk_handler_report as it is kept: the reasons are static text. */
struct gdk_decision {
	enum doca_gpu_dev_verbs_nic_handler asked, chosen;
	unsigned int num_candidates;
	struct gdk_candidate {
		const char *reason;
		uint8_t handler; /* enum doca_gpu_dev_verbs_nic_handler */
		bool usable;
	} candidates[3]; /* AUTO has no more */
};

extern const struct gdk_doorbell *const gdk_doorbell_gpu_sm;
extern const struct gdk_doorbell *const gdk_doorbell_bf;
extern const struct gdk_doorbell *const gdk_doorbell_cpu_proxy;

/* Decides. On success *db and *handler are the choice; decision is filled in
 * either case, one reason per candidate. */
doca_error_t gdk_doorbell_pick(const struct gdk_doorbell_ask *ask, const struct gdk_doorbell **db,
			       enum doca_gpu_dev_verbs_nic_handler *handler,
			       struct gdk_decision *decision);
void gdk_doorbell_report(const struct gdk_decision *decision, struct gdk_handler_report *report);

#endif
