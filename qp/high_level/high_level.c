/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * High-level queue pairs: creates a QP, its memory, umem, UAR and CQ, and exports it, with
 * the functions of other files. One slab unit per QP (slab.h) contains the rings, the CQs,
 * their DBRECs, the state blocks and the device structs. If a CPU thread must write the DBREC and
 * the rings are in GPU memory, the DBREC gets a unit of its own in host memory.
 *
 * GDAKI_QUEUE_MEM=cpu_gpu, or GDK_QP_HL_QUEUES_ON_HOST for one QP, places what the NIC accesses in
 * host memory that the GPU can access, instead of GPU memory: for systems with a fast path between
 * CPU and GPU (DGX Spark), and for systems where the NIC cannot access GPU memory. State blocks and
 * device structs are then apart, in GPU memory (export.c).
 */
#include <stdlib.h>
#include <string.h>

#include "doorbell/doorbell.h"
#include "qp/export/export.h"
#include "qp/high_level/high_level.h"
#include "core/gpu/gpu_priv.h"
#include "host/doca_gpunetio_high_level.h"
#include "host/gdaki.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"

#define CQE_BYTES   64u
#define DBREC_ALIGN 64u
/* offsets in the lines of a slab unit (umem/slab.h) */
#define CQ_DBREC_AT 0u
#define DBREC_AT    DBREC_ALIGN
#define EXPORT_AT   GDK_SLAB_LINE
#define H(name)	    DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name
#define MODE(name)  DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

/* ---- parts ---- */

static doca_error_t create_uar(const struct gdk_hl_plan *p, struct doca_verbs_uar **uar)
{
	static const enum doca_verbs_uar_allocation_type plain[] = {
		DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED,
		DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE,
		DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME,
	};
	doca_error_t err = DOCA_ERROR_NOT_SUPPORTED;
	size_t i;

	if (p->want == H(GPU_SM_BF))
		return doca_verbs_uar_create(p->dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, uar);
	for (i = 0; i < GDK_ARRAY_SIZE(plain) && err != DOCA_SUCCESS; i++)
		err = doca_verbs_uar_create(p->dev, plain[i], uar);
	return err;
}

static doca_error_t create_memory(struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	size_t export_bytes = p->export_apart ? 0 : gdk_export_bytes(p->depth, p->rq_num);
	struct gdk_slab_kind kind = {
		.gpu = p->gpu,
		.dev = p->dev,
		.mem = p->mem,
		.ways = p->ways,
		.pages = p->page_bytes,
		.lines = gdk_align_up(EXPORT_AT + export_bytes, GDK_SLAB_LINE),
		.format_cq = gdk_cq_format_image,
		.cq_at = p->cq_at,
		.cqe_num = p->depth,
	};
	doca_error_t err = gdk_slab_get(&kind, &p->unit);

	if (err != DOCA_SUCCESS)
		return err;
	hl->qp_umem = p->unit.umem;
	hl->qp_umem_gpu_ptr = p->unit.pages;
	hl->cq_sq_umem = p->unit.umem;
	hl->cq_sq_umem_gpu_ptr = (uint8_t *)p->unit.pages + p->cq_at;
	hl->qp_umem_dbr = p->unit.umem;
	hl->qp_umem_dbr_gpu_ptr = (uint8_t *)p->unit.lines + DBREC_AT;
	if (!p->dbrec_apart)
		return DOCA_SUCCESS;
	kind = (struct gdk_slab_kind){
		.gpu = p->gpu,
		.dev = p->dev,
		.mem = DOCA_GPU_MEM_TYPE_CPU_GPU,
		.lines = GDK_SLAB_LINE,
	};
	err = gdk_slab_get(&kind, &p->dbrec_unit);
	if (err != DOCA_SUCCESS)
		return err;
	hl->qp_umem_dbr = p->dbrec_unit.umem;
	hl->qp_umem_dbr_gpu_ptr = p->dbrec_unit.lines;
	return DOCA_SUCCESS;
}

static size_t offset_of(const void *ptr, const struct doca_verbs_umem *umem)
{
	return (size_t)((const uint8_t *)ptr - (const uint8_t *)umem->addr);
}

static doca_error_t create_cq(const struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	doca_verbs_cq_attr_t *attr;
	doca_error_t err = doca_verbs_cq_attr_create(&attr);

	if (err != DOCA_SUCCESS)
		return err;
	attr->dbrec_offset = offset_of((uint8_t *)p->unit.lines + CQ_DBREC_AT, hl->cq_sq_umem);
	err = doca_verbs_cq_attr_set_cq_size(attr, p->depth) ?:
	      doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN) ?:
	      doca_verbs_cq_attr_set_cq_collapsed(attr, p->collapsed) ?:
	      doca_verbs_cq_attr_set_external_umem(attr, hl->cq_sq_umem,
						   offset_of(hl->cq_sq_umem_gpu_ptr,
							     hl->cq_sq_umem)) ?:
	      doca_verbs_cq_attr_set_external_uar(attr, hl->external_uar) ?:
	      doca_verbs_cq_create(p->dev, attr, &hl->cq_sq);
	(void)doca_verbs_cq_attr_destroy(attr);
	return err;
}

doca_error_t gdk_hl_cq_create(struct doca_dev *dev, const struct gdk_slab_unit *unit, size_t at,
			      uint32_t num, struct doca_verbs_uar *uar, doca_verbs_cq_t **cq)
{
	doca_verbs_cq_attr_t *attr;
	doca_error_t err = doca_verbs_cq_attr_create(&attr);

	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_cq_attr_set_cq_size(attr, num) ?:
	      doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN) ?:
	      doca_verbs_cq_attr_set_external_umem(
		      attr, unit->umem, offset_of((uint8_t *)unit->pages + at, unit->umem)) ?:
	      doca_verbs_cq_attr_set_external_uar(attr, uar) ?:
	      doca_verbs_cq_create(dev, attr, cq);
	(void)doca_verbs_cq_attr_destroy(attr);
	return err;
}

/* Sets the attributes of the receive queue. */
static doca_error_t fill_rq(const struct gdk_hl_plan *p, doca_verbs_qp_init_attr_t *init)
{
	return doca_verbs_qp_init_attr_set_rq_wr(init, p->rq_num) ?:
	       doca_verbs_qp_init_attr_set_receive_max_sges(init, p->rq_sges) ?:
	       doca_verbs_qp_init_attr_set_receive_cq(init, *p->cq_rq) ?:
	       doca_verbs_qp_init_attr_set_cqe_inline(init, p->cqe_inline);
}

/* Sets the shared receive queue. */
static doca_error_t fill_srq(const struct gdk_hl_plan *p, doca_verbs_qp_init_attr_t *init)
{
	return doca_verbs_qp_init_attr_set_rq_wr(init, 0) ?:
	       doca_verbs_qp_init_attr_set_srq(init, p->srq) ?:
	       doca_verbs_qp_init_attr_set_receive_cq(init, p->srq_cq);
}

static doca_error_t fill_init(const struct gdk_hl_plan *p, const struct doca_gpu_verbs_qp_hl *hl,
			      doca_verbs_qp_init_attr_t *init)
{
	enum doca_verbs_qp_send_dbr_mode mode = p->mode == MODE(NO_DBR_HW)
							? DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT
							: DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID;
	size_t ring_at = offset_of(hl->qp_umem_gpu_ptr, hl->qp_umem);
	size_t dbrec_at = offset_of(hl->qp_umem_dbr_gpu_ptr, hl->qp_umem_dbr);
	bool emulate = p->mode == MODE(NO_DBR_SW_EMULATED);

	return doca_verbs_qp_init_attr_set_pd(init, p->dev) ?:
	       doca_verbs_qp_init_attr_set_qp_type(init, DOCA_VERBS_QP_TYPE_RC) ?:
	       doca_verbs_qp_init_attr_set_send_cq(init, hl->cq_sq) ?:
	       doca_verbs_qp_init_attr_set_sq_wr(init, p->depth) ?:
	       doca_verbs_qp_init_attr_set_send_max_sges(init, 1) ?:
	       doca_verbs_qp_init_attr_set_receive_max_sges(init, 1) ?:
	       doca_verbs_qp_init_attr_set_external_umem(init, hl->qp_umem, ring_at) ?:
	       doca_verbs_qp_init_attr_set_external_umem_dbr(init, hl->qp_umem_dbr, dbrec_at) ?:
	       doca_verbs_qp_init_attr_set_external_uar(init, hl->external_uar) ?:
	       doca_verbs_qp_init_attr_set_core_direct_master(init, p->core_direct) ?:
	       doca_verbs_qp_init_attr_set_send_dbr_mode(init, mode) ?:
	       doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(init, emulate) ?:
	       (p->copy_engine ? gdk_verbs_qp_init_attr_set_copy_engine(init, 1) :
				 DOCA_SUCCESS) ?:
	       /* the default is not set, because an old SDK lacks the setter */
	       (p->ordering == DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA ?
			DOCA_SUCCESS :
			doca_verbs_qp_init_attr_set_ordering_semantic(init, p->ordering));
}

static doca_error_t create_qp(const struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	doca_verbs_qp_init_attr_t *init;
	doca_error_t err = doca_verbs_qp_init_attr_create(&init);

	if (err != DOCA_SUCCESS)
		return err;
	err = fill_init(p, hl, init);
	if (err == DOCA_SUCCESS && p->rq_num)
		err = fill_rq(p, init);
	if (err == DOCA_SUCCESS && p->srq)
		err = fill_srq(p, init);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_qp_create(p->dev, init, &hl->qp);
	(void)doca_verbs_qp_init_attr_destroy(init);
	return err;
}

/* Destroys all parts that exist, in reverse order. Stops at the first error, because the NIC may
 * still use the remaining parts. cq_rq: NULL, or where the receive CQ is kept. keep_uar: the UAR
 * belongs to another QP. */
static doca_error_t destroy_parts(struct doca_gpu_verbs_qp_hl *hl, doca_verbs_cq_t **cq_rq,
				  bool keep_uar)
{
	doca_error_t err = DOCA_SUCCESS;

	if (hl->qp_gverbs)
		err = doca_gpu_verbs_unexport_qp(hl->gpu_dev, hl->qp_gverbs);
	if (err != DOCA_SUCCESS)
		return err;
	hl->qp_gverbs = NULL;
	if (hl->qp)
		err = doca_verbs_qp_destroy(hl->qp);
	if (err != DOCA_SUCCESS)
		return err;
	hl->qp = NULL;
	if (cq_rq && *cq_rq)
		err = doca_verbs_cq_destroy(*cq_rq);
	if (err != DOCA_SUCCESS)
		return err;
	if (cq_rq)
		*cq_rq = NULL;
	if (hl->cq_sq)
		err = doca_verbs_cq_destroy(hl->cq_sq);
	if (err != DOCA_SUCCESS)
		return err;
	if (hl->qp_umem_dbr != hl->qp_umem)
		gdk_slab_put(hl->qp_umem_dbr, hl->qp_umem_dbr_gpu_ptr);
	if (hl->qp_umem)
		gdk_slab_put(hl->qp_umem, hl->qp_umem_gpu_ptr);
	if (hl->external_uar && !keep_uar)
		(void)doca_verbs_uar_destroy(hl->external_uar);
	memset(hl, 0, sizeof(*hl));
	return DOCA_SUCCESS;
}

static doca_error_t export_qp(const struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	const struct gdk_export_ask what = {
		.gpu = p->gpu,
		.qp = hl->qp,
		.cq = hl->cq_sq,
		.cq_rq = p->rq_num ? *p->cq_rq : NULL,
		.handler = p->decision.chosen,
		.mode = p->mode,
		.decision = &p->decision,
		.place = p->export_apart ? NULL : (uint8_t *)p->unit.lines + EXPORT_AT,
	};
	doca_error_t err = gdk_qp_export(&what, &hl->qp_gverbs);

	if (err != DOCA_SUCCESS)
		return err;
	hl->nic_handler = p->decision.chosen;
	hl->send_dbr_mode_ext = p->mode;
	return DOCA_SUCCESS;
}

static doca_error_t build_parts(struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	doca_error_t err = gdk_hl_plan_handler(p, hl->external_uar);

	if (err != DOCA_SUCCESS)
		return err;
	gdk_hl_plan_layout(p);
	err = create_memory(p, hl);
	if (err == DOCA_SUCCESS)
		err = create_cq(p, hl);
	if (err == DOCA_SUCCESS && p->rq_num)
		err = gdk_hl_cq_create(p->dev, &p->unit, p->rcq_at, p->rq_num, hl->external_uar,
				       p->cq_rq);
	if (err == DOCA_SUCCESS)
		err = create_qp(p, hl);
	if (err == DOCA_SUCCESS)
		err = export_qp(p, hl);
	return err;
}

/* Creates all parts except the UAR, which exists already. On failure the UAR is not destroyed. */
static doca_error_t build_on_uar(struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	void *reg = hl->external_uar->reg_addr, *reg_gpu;
	doca_error_t err;
	bool mapped;

	hl->gpu_dev = p->gpu;
	/* The strategies' probes and the export map this page, too. Mapping it here first keeps it
	 * registered meanwhile, so that their calls only change its use count. */
	mapped = !gdk_gpu_map_reg(p->gpu, reg, &reg_gpu, NULL);
	err = build_parts(p, hl);
	if (mapped)
		(void)gdk_gpu_unmap_reg(p->gpu, reg);
	if (err != DOCA_SUCCESS)
		(void)destroy_parts(hl, p->cq_rq, true);
	return err;
}

static doca_error_t build_qp(struct gdk_hl_plan *p, void *qp)
{
	struct doca_gpu_verbs_qp_hl *hl = qp;
	struct doca_verbs_uar *uar;
	doca_error_t err = create_uar(p, &uar);

	if (err != DOCA_SUCCESS)
		return err;
	hl->external_uar = uar;
	err = build_on_uar(p, hl);
	if (err != DOCA_SUCCESS)
		(void)doca_verbs_uar_destroy(uar);
	return err;
}

/* A group. The caller knows its first member. */
struct group_with_rq {
	struct doca_gpu_verbs_qp_group_hl pub;
	doca_verbs_cq_t *cq_rq; /* of the main QP; NULL: no receive queue */
};

/* Creates both QPs of a group. They share a UAR and have the same DBREC mode. Only the main QP has
 * a receive queue. */
static doca_error_t build_group(struct gdk_hl_plan *p, void *group)
{
	struct group_with_rq *g = group;
	const uint32_t rq_num = p->rq_num;
	doca_error_t err;

	p->core_direct = false;
	p->cq_rq = &g->cq_rq;
	err = build_qp(p, &g->pub.qp_main);
	if (err != DOCA_SUCCESS)
		return err;
	p->core_direct = true;
	p->rq_num = 0;
	p->cq_rq = NULL;
	g->pub.qp_companion.external_uar = g->pub.qp_main.external_uar;
	err = build_on_uar(p, &g->pub.qp_companion);
	p->rq_num = rq_num; /* the group may be built again, with DBRECs */
	if (err != DOCA_SUCCESS)
		(void)destroy_parts(&g->pub.qp_main, &g->cq_rq, false);
	return err;
}

/* Creates a QP or a group with build(). A device supports a limited number of DBREC-less QPs. If it
 * refuses one more, and the caller did not request a DBREC mode, creates it with DBRECs instead. */
static doca_error_t build_or_fall_back(struct gdk_hl_plan *p, void *obj,
				       doca_error_t (*build)(struct gdk_hl_plan *p, void *obj))
{
	doca_error_t err = build(p, obj);

	if (err != DOCA_ERROR_NOT_SUPPORTED || p->mode_stated || p->mode != MODE(NO_DBR_HW))
		return err;
	if (!atomic_exchange(&p->dev->logged_no_dbr_fallback, true))
		gdk_warn("%s: no DBREC-less QPs left: AUTO creates QPs with DBREC from now on",
			 ibv_get_device_name(p->dev->ctx->device));
	p->mode = MODE(VALID_DBR);
	return build(p, obj);
}

/* ---- public ---- */

#define ALL_FLAGS (GDK_QP_HL_QUEUES_ON_HOST | GDK_QP_HL_COPY_ENGINE)
#define CHECK_FLAGS(flags) \
	GDK_CHECK_ARG(!((flags) & ~ALL_FLAGS), #flags " 0x%x (expected a set of 0x%x)", flags, \
		      ALL_FLAGS)

/* A high-level QP. The caller knows its first member. The QPs of a group are not of this type. */
struct hl_with_rq {
	struct doca_gpu_verbs_qp_hl pub;
	doca_verbs_cq_t *cq_rq; /* NULL: no receive queue */
};

static doca_error_t create_hl(struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_hl **qp)
{
	struct hl_with_rq *hl = calloc(1, sizeof(*hl));
	doca_error_t err;

	if (!hl) {
		gdk_err("no memory for a high-level QP");
		return DOCA_ERROR_NO_MEMORY;
	}
	p->cq_rq = &hl->cq_rq;
	err = build_or_fall_back(p, &hl->pub, build_qp);
	if (err != DOCA_SUCCESS) {
		free(hl);
		return err;
	}
	*qp = &hl->pub;
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_create_qp_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
				    uint32_t flags, struct doca_gpu_verbs_qp_hl **qp)
{
	struct gdk_hl_plan p;
	doca_error_t err;

	GDK_CHECK_PTR(qp_init_attr);
	CHECK_FLAGS(flags);
	GDK_CHECK_PTR(qp);
	err = gdk_hl_plan_init(qp_init_attr, flags, &p);
	return err == DOCA_SUCCESS ? create_hl(&p, qp) : err;
}

/* Adds a receive queue to the plan. */
static doca_error_t plan_rq(struct gdk_hl_plan *p, const struct gdk_qp_rq_attr_hl *rq_attr)
{
	GDK_CHECK_RANGE(rq_attr->rq_nwqe, 1, GDK_SQ_DEPTH_MAX);
	GDK_CHECK_RANGE(rq_attr->receive_max_sges, 0, 32);
	if (p->gpu->sdk) {
		gdk_err("GPU %s belongs to the DOCA SDK: high-level QPs of the SDK have no receive "
			"queue",
			gdk_gpu_name(p->gpu));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	gdk_hl_plan_rq(p, rq_attr);
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_create_qp_rq_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
				       const struct gdk_qp_rq_attr_hl *rq_attr, uint32_t flags,
				       struct doca_gpu_verbs_qp_hl **qp)
{
	struct gdk_hl_plan p;
	doca_error_t err;

	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(rq_attr);
	CHECK_FLAGS(flags);
	GDK_CHECK_PTR(qp);
	err = gdk_hl_plan_init(qp_init_attr, flags, &p);
	if (err == DOCA_SUCCESS)
		err = plan_rq(&p, rq_attr);
	return err == DOCA_SUCCESS ? create_hl(&p, qp) : err;
}

doca_error_t gdk_verbs_create_qp_srq_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					struct doca_verbs_srq *srq, doca_verbs_cq_t *cq_rq,
					uint32_t flags, struct doca_gpu_verbs_qp_hl **qp)
{
	struct gdk_hl_plan p;
	doca_error_t err;

	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(srq);
	GDK_CHECK_PTR(cq_rq);
	CHECK_FLAGS(flags);
	GDK_CHECK_PTR(qp);
	err = gdk_hl_plan_init(qp_init_attr, flags, &p);
	if (err != DOCA_SUCCESS)
		return err;
	if (p.gpu->sdk) {
		gdk_err("GPU %s belongs to the DOCA SDK: high-level QPs of the SDK have no SRQ",
			gdk_gpu_name(p.gpu));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	p.srq = srq;
	p.srq_cq = cq_rq;
	return create_hl(&p, qp);
}

/* The receive CQ belongs to the QP (destroy_parts()), or with an SRQ to the caller. */
doca_error_t gdk_verbs_qp_hl_get_cq_rq(const struct doca_gpu_verbs_qp_hl *qp,
				       doca_verbs_cq_t **cq_rq)
{
	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(cq_rq);
	GDK_CHECK_ARG(qp->qp && qp->qp->recv_cq, "qp %p: it has no receive queue",
		      (const void *)qp);
	*cq_rq = qp->qp->recv_cq;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_create_qp_hl(struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					 struct doca_gpu_verbs_qp_hl **qp)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(qp);
	return gdk_verbs_create_qp_hl(qp_init_attr, 0, qp);
}

doca_error_t doca_gpu_verbs_destroy_qp_hl(struct doca_gpu_verbs_qp_hl *qp)
{
	struct hl_with_rq *hl;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	hl = GDK_CONTAINER_OF(qp, struct hl_with_rq, pub);
	err = destroy_parts(qp, &hl->cq_rq, false);
	if (err == DOCA_SUCCESS)
		free(hl);
	return err;
}

static doca_error_t create_group(struct gdk_hl_plan *p, struct doca_gpu_verbs_qp_group_hl **qpg)
{
	struct group_with_rq *g;
	doca_error_t err;

	if (p->want == H(GPU_SM_BF)) {
		gdk_err("nic_handler GPU_SM_BF is not supported for groups: the two QPs would need "
			"the same BlueFlame buffer");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	g = calloc(1, sizeof(*g));
	if (!g) {
		gdk_err("no memory for a high-level QP group");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = build_or_fall_back(p, g, build_group);
	if (err != DOCA_SUCCESS) {
		free(g);
		return err;
	}
	*qpg = &g->pub;
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_create_qp_group_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					  uint32_t flags, struct doca_gpu_verbs_qp_group_hl **qpg)
{
	struct gdk_hl_plan p;
	doca_error_t err;

	GDK_CHECK_PTR(qp_init_attr);
	CHECK_FLAGS(flags);
	GDK_CHECK_PTR(qpg);
	err = gdk_hl_plan_init(qp_init_attr, flags, &p);
	return err == DOCA_SUCCESS ? create_group(&p, qpg) : err;
}

doca_error_t
gdk_verbs_create_qp_group_rq_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
				const struct gdk_qp_rq_attr_hl *rq_attr, uint32_t flags,
				struct doca_gpu_verbs_qp_group_hl **qpg)
{
	struct gdk_hl_plan p;
	doca_error_t err;

	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(rq_attr);
	CHECK_FLAGS(flags);
	GDK_CHECK_PTR(qpg);
	err = gdk_hl_plan_init(qp_init_attr, flags, &p);
	if (err == DOCA_SUCCESS)
		err = plan_rq(&p, rq_attr);
	return err == DOCA_SUCCESS ? create_group(&p, qpg) : err;
}

doca_error_t doca_gpu_verbs_create_qp_group_hl(struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					       struct doca_gpu_verbs_qp_group_hl **qpg)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(qpg);
	return gdk_verbs_create_qp_group_hl(qp_init_attr, 0, qpg);
}

doca_error_t doca_gpu_verbs_destroy_qp_group_hl(struct doca_gpu_verbs_qp_group_hl *qpg)
{
	struct group_with_rq *g;
	doca_error_t err;

	GDK_CHECK_PTR(qpg);
	g = GDK_CONTAINER_OF(qpg, struct group_with_rq, pub);
	err = destroy_parts(&qpg->qp_companion, NULL, true);
	if (err == DOCA_SUCCESS)
		err = destroy_parts(&qpg->qp_main, &g->cq_rq, false);
	if (err == DOCA_SUCCESS)
		free(g);
	return err;
}
