/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The plan of a high-level queue pair: attributes, doorbell handler, layout of its memory. */
#include "qp/high_level/high_level.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"

#define CQE_BYTES   64u
#define DBREC_BYTES 8u
#define SGE_BYTES   16u
#define H(name)	    DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name
#define MODE(name)  DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

/* Returns whether the device can probably create one more DBREC-less QP. QPs of other processes,
 * which count too, are not known. */
static bool has_room_without_dbr(struct doca_dev *dev)
{
	unsigned int max = atomic_load(&dev->no_dbr_max);

	return dev->caps.send_dbr_mode_no_dbr_ext && (!max || atomic_load(&dev->no_dbr_qps) < max);
}

static const unsigned int ways[] = {
	[DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_DEFAULT] = GDK_UMEM_TRY_DMABUF | GDK_UMEM_TRY_PEER,
	[DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_DMABUF] = GDK_UMEM_TRY_DMABUF,
	[DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_PEERMEM] = GDK_UMEM_TRY_PEER,
};

/* Does not read the reserved bytes of qp_init_attr: programs leave them uninitialized. */
doca_error_t gdk_hl_plan_init(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
			      uint32_t flags, struct gdk_hl_plan *p)
{
	bool stated = qp_init_attr->send_dbr_mode_ext != GDK_SEND_DBR_MODE_AUTO;
	enum doca_gpu_dev_verbs_nic_handler h = qp_init_attr->nic_handler;

	GDK_CHECK_PTR(qp_init_attr->gpu_dev);
	GDK_CHECK_PTR(qp_init_attr->net_dev);
	GDK_CHECK_MIX(qp_init_attr->gpu_dev, qp_init_attr->net_dev);
	GDK_CHECK_ARG(
		!qp_init_attr->ibpd || qp_init_attr->ibpd == qp_init_attr->net_dev->pd,
		"qp_init_attr->ibpd %p (expected NULL or %p, the protection domain of net_dev)",
		(void *)qp_init_attr->ibpd, (void *)qp_init_attr->net_dev->pd);
	GDK_CHECK_RANGE(qp_init_attr->sq_nwqe, 1, GDK_SQ_DEPTH_MAX);
	GDK_CHECK_HANDLER(qp_init_attr->nic_handler);
	GDK_CHECK_ENUM(qp_init_attr->mreg_type, DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_PEERMEM);
	if (stated)
		GDK_CHECK_ENUM(qp_init_attr->send_dbr_mode_ext,
			       DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED);
	GDK_CHECK_ENUM(qp_init_attr->ordering_semantic, DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_ALL);
	if (!stated && h != H(AUTO) && h != H(CPU_PROXY) && h != H(GPU_SM_DB)) {
		gdk_err("nic_handler %s (%d) excludes send_dbr_mode_ext GDK_SEND_DBR_MODE_AUTO "
			"(%d): set VALID_DBR (%d) or NO_DBR_HW (%d)",
			gdk_handler_name(h), h, GDK_SEND_DBR_MODE_AUTO, MODE(VALID_DBR),
			MODE(NO_DBR_HW));
		return DOCA_ERROR_INVALID_VALUE;
	}
	*p = (struct gdk_hl_plan){
		.gpu = qp_init_attr->gpu_dev,
		.dev = qp_init_attr->net_dev,
		.mem = flags & GDK_QP_HL_QUEUES_ON_HOST ? DOCA_GPU_MEM_TYPE_CPU_GPU
							: gdk_queue_mem_type(),
		.ways = ways[qp_init_attr->mreg_type],
		.depth = (uint32_t)gdk_roundup_pow2(qp_init_attr->sq_nwqe),
		.collapsed = qp_init_attr->cq_collapsed,
		.copy_engine = flags & GDK_QP_HL_COPY_ENGINE,
		.ordering = qp_init_attr->ordering_semantic,
		.want = h,
		.mode = stated ? qp_init_attr->send_dbr_mode_ext : MODE(VALID_DBR),
		.mode_stated = stated,
	};
	if (!stated && h == H(AUTO) && has_room_without_dbr(p->dev))
		p->mode = MODE(NO_DBR_HW);
	return DOCA_SUCCESS;
}

doca_error_t gdk_hl_plan_handler(struct gdk_hl_plan *p, struct doca_verbs_uar *uar)
{
	struct gdk_doorbell_ask ask = {
		.gpu = p->gpu,
		.dev = p->dev,
		.uar = uar,
		.want = p->want,
		.dbr_mode = p->mode,
		.dbr_mode_stated = p->mode_stated,
	};
	doca_error_t err = gdk_choose_doorbell(&ask, &p->decision);

	if (err != DOCA_SUCCESS)
		return err;
	if (!p->mode_stated && p->decision.chosen != H(GPU_SM_NO_DBR))
		p->mode = MODE(VALID_DBR);
	return DOCA_SUCCESS;
}

void gdk_hl_plan_rq(struct gdk_hl_plan *p, const struct gdk_qp_rq_attr_hl *rq_attr)
{
	/* As in size_rq() of qp.c. */
	uint32_t sges = (uint32_t)gdk_roundup_pow2(rq_attr->receive_max_sges ?: 1);
	uint32_t least = GDK_WQEBB_SIZE / (sges * SGE_BYTES);

	p->rq_sges = sges;
	p->rq_num = (uint32_t)gdk_roundup_pow2(rq_attr->rq_nwqe > least ? rq_attr->rq_nwqe : least);
	p->cqe_inline = rq_attr->cqe_inline;
}

/* Bytes of the receive ring, which precedes the send ring. */
static size_t rq_bytes(const struct gdk_hl_plan *p)
{
	return (size_t)p->rq_num * p->rq_sges * SGE_BYTES;
}

void gdk_hl_plan_layout(struct gdk_hl_plan *p)
{
	bool emulated = p->mode == MODE(NO_DBR_SW_EMULATED);
	bool on_gpu = p->mem == DOCA_GPU_MEM_TYPE_GPU;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t cq_bytes = (size_t)p->depth * CQE_BYTES;

	if (p->gpu->sdk) /* the SDK places a CQ's DBREC behind the CQEs */
		cq_bytes += DBREC_BYTES;
	p->dbrec_apart = (p->decision.db->dbrec_on_host || emulated) && on_gpu;
	/* The state block and the queues may be in different memory: export.c. */
	p->export_apart = emulated ? on_gpu : !on_gpu && !gdk_gpu_is_host(p->gpu);
	p->cq_at = gdk_align_up(rq_bytes(p) + (size_t)p->depth * GDK_WQEBB_SIZE, page);
	p->page_bytes = gdk_align_up(p->cq_at + cq_bytes, page);
	if (!p->rq_num)
		return;
	p->rcq_at = p->page_bytes;
	p->page_bytes = gdk_align_up(p->rcq_at + (size_t)p->rq_num * CQE_BYTES + DBREC_BYTES, page);
}
