/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The plan of a high-level queue pair or group: its parameters, and what is decided before its
 * parts are created (high_level.c). */
#ifndef GDK_HIGH_LEVEL_H
#define GDK_HIGH_LEVEL_H

#include "doorbell/doorbell.h"
#include "host/doca_gpunetio_high_level.h"
#include "host/gdaki.h"
#include "qp/export/export.h"
#include "umem/slab.h"

/* Parameters and decisions for the creation of one QP or group. */
struct gdk_hl_plan {
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	enum doca_gpu_mem_type mem;
	unsigned int ways; /* GDK_UMEM_TRY_* */
	uint32_t depth;
	uint32_t rq_num, rq_sges; /* rq_num 0: no receive queue */
	bool cqe_inline;
	doca_verbs_cq_t **cq_rq;    /* where the receive CQ is kept; NULL: no receive queue */
	struct doca_verbs_srq *srq; /* NULL: no shared receive queue */
	doca_verbs_cq_t *srq_cq;    /* receive CQ of the caller, with srq */
	bool collapsed, core_direct, copy_engine;
	enum doca_verbs_qp_ordering_semantic ordering;
	enum doca_gpu_dev_verbs_nic_handler want;
	enum doca_gpu_verbs_send_dbr_mode_ext mode;
	bool mode_stated;
	struct gdk_decision decision; /* the chosen strategy and handler */
	/* The pages of unit contain the rings, at cq_at the CQ, and at rcq_at the receive CQ with
	 * its DBREC behind it; its lines contain all other parts. dbrec_apart: the DBREC is in
	 * dbrec_unit instead. export_apart: the export allocates the state blocks and the device
	 * structs instead. */
	struct gdk_slab_unit unit, dbrec_unit;
	size_t cq_at, rcq_at, page_bytes;
	bool dbrec_apart, export_apart;
};

/* Checks the attributes of a QP and takes them over. flags: GDK_QP_HL_*. */
doca_error_t gdk_hl_plan_init(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
			      uint32_t flags, struct gdk_hl_plan *p);
/* Takes over the attributes of a receive queue, which are valid. */
void gdk_hl_plan_rq(struct gdk_hl_plan *p, const struct gdk_qp_rq_attr_hl *rq_attr);
/* Creates a CQ that ignores overruns in the pages of a unit: num entries at `at`, and the DBREC
 * behind them (GDK_HL_CQ_BYTES). uar: NULL, or the UAR that the CQ uses. */
#define GDK_HL_CQ_BYTES(num) ((size_t)(num)*64u + 8u)
doca_error_t gdk_hl_cq_create(struct doca_dev *dev, const struct gdk_slab_unit *unit, size_t at,
			      uint32_t num, struct doca_verbs_uar *uar, doca_verbs_cq_t **cq);
/* Chooses the doorbell handler and the DBREC mode. */
doca_error_t gdk_hl_plan_handler(struct gdk_hl_plan *p, struct doca_verbs_uar *uar);
/* Decides where the parts are in the memory of the QP. */
void gdk_hl_plan_layout(struct gdk_hl_plan *p);

#endif
