/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The interface between queue pairs and doorbell strategies. Each strategy is one archive
 * that defines one pointer, gdk_doorbell_<name>, to its operations. libgdaki_db_none.a, last
 * on the link line, defines these pointers as NULL for the strategies that are not linked.
 * Only auto.c selects a strategy, for each QP again. Device code is in *_dev.h.
 */
#ifndef GDK_DOORBELL_H
#define GDK_DOORBELL_H

#include "core/gpu/gpu.h"
#include "core/net_dev.h"
#include "qp/qp.h"
#include "uar/uar.h"
#include "host/gdaki_core.h"
#include "host/gdaki_doorbell.h"

/* Input of the choice. It is made before the QP exists (high-level QPs) or at its export. */
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
	uint32_t handlers;  /* 1u << nic_handler for each handler that it implements */
	bool dbrec_on_host; /* the CPU must be able to write the DBREC */
	/* Checks whether handler h can work. *reason is static text, also on success. */
	doca_error_t (*probe)(const struct gdk_doorbell_ask *ask,
			      enum doca_gpu_dev_verbs_nic_handler h, const char **reason);
	/* Sets sq_db and the other members of qp and dev that the strategy owns. dev is the host's
	 * image of the device struct, which the caller then copies to the GPU. */
	doca_error_t (*attach)(const struct gdk_doorbell_ask *ask, struct doca_gpu_verbs_qp *qp,
			       struct doca_gpu_dev_verbs_qp *dev);
	void (*detach)(struct doca_gpu_verbs_qp *qp);
};

/* The result of a choice: a gdk_handler_report whose reasons are pointers to static text. */
struct gdk_decision {
	enum doca_gpu_dev_verbs_nic_handler asked, chosen;
	unsigned int num_candidates;
	struct gdk_candidate {
		const char *reason;
		uint8_t handler; /* enum doca_gpu_dev_verbs_nic_handler */
		bool usable;
	} candidates[3]; /* AUTO tries at most 3 handlers */
};

extern const struct gdk_doorbell *const gdk_doorbell_gpu_sm;
extern const struct gdk_doorbell *const gdk_doorbell_bf;
extern const struct gdk_doorbell *const gdk_doorbell_cpu_proxy;

/* Chooses a strategy and a handler. Fills decision with a reason per candidate, also on failure. */
doca_error_t gdk_doorbell_pick(const struct gdk_doorbell_ask *ask, const struct gdk_doorbell **db,
			       enum doca_gpu_dev_verbs_nic_handler *handler,
			       struct gdk_decision *decision);
void gdk_doorbell_report(const struct gdk_decision *decision, struct gdk_handler_report *report);

#endif
