/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * High-level queue pairs: composition only. One block of memory per QP holds
 * send ring, CQ and DBREC; where the doorbell strategy wants the DBREC on the
 * host and the rings are not, the DBREC gets a block of its own.
 *
 * Tuning: GDAKI_QUEUE_MEM=cpu_gpu puts rings, CQ, DBREC, state blocks and
 * device structs into host memory that the GPU addresses, instead of GPU
 * memory. For systems where the two are close (DGX Spark), and where the NIC
 * cannot reach GPU memory.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../doorbell/doorbell.h"
#include "../qp/export.h"
#include "gpu_priv.h"
#include "host/doca_gpunetio_high_level.h"
#include "log.h"
#include "sdk_objects.h"

#define CQE_BYTES 64u
#define DBREC_BYTES 8u
#define DBREC_ALIGN 64u
#define H(name) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name
#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

/* Everything that one creation decides before it allocates. */
struct plan {
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	enum doca_gpu_verbs_mem_reg_type reg;
	uint32_t depth;
	bool collapsed, core_direct;
	enum doca_verbs_qp_ordering_semantic ordering;
	enum doca_gpu_dev_verbs_nic_handler want;
	enum doca_gpu_verbs_send_dbr_mode_ext mode;
	bool mode_stated;
	/* the choice */
	const struct gdk_doorbell *db;
	enum doca_gpu_dev_verbs_nic_handler handler;
	struct gdk_handler_report report;
	/* offsets within the block; its total */
	size_t cq_at, dbrec_at, bytes;
	bool dbrec_apart;
};

enum doca_gpu_mem_type gdk_queue_mem_type(void)
{
	const char *env = getenv("GDAKI_QUEUE_MEM");

	return env && !strcmp(env, "cpu_gpu") ? DOCA_GPU_MEM_TYPE_CPU_GPU : DOCA_GPU_MEM_TYPE_GPU;
}

/* ---- plan ---- */

static doca_error_t plan_init(const struct doca_gpu_verbs_qp_init_attr_hl *attr, struct plan *p)
{
	bool stated = attr->send_dbr_mode_ext != GDK_SEND_DBR_MODE_AUTO;
	enum doca_gpu_dev_verbs_nic_handler h = attr->nic_handler;

	GDK_CHECK_ARG(attr->gpu_dev != NULL);
	GDK_CHECK_ARG(attr->net_dev != NULL);
	GDK_CHECK_MIX(attr->gpu_dev, attr->net_dev);
	GDK_CHECK_ARG(attr->ibpd == NULL || attr->ibpd == attr->net_dev->pd);
	GDK_CHECK_ARG(attr->sq_nwqe > 0);
	GDK_CHECK_ARG((unsigned int)attr->mreg_type < DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_MAX);
	GDK_CHECK_ARG(!stated || (unsigned int)attr->send_dbr_mode_ext <= MODE(NO_DBR_SW_EMULATED));
	GDK_CHECK_ARG(stated || h == H(AUTO) || h == H(CPU_PROXY) || h == H(GPU_SM_DB));
	*p = (struct plan){
		.gpu = attr->gpu_dev,
		.dev = attr->net_dev,
		.reg = attr->mreg_type,
		.depth = (uint32_t)gdk_roundup_pow2(attr->sq_nwqe),
		.collapsed = attr->cq_collapsed,
		.ordering = attr->ordering_semantic,
		.want = h,
		.mode = stated ? attr->send_dbr_mode_ext : MODE(VALID_DBR),
		.mode_stated = stated,
	};
	if (p->depth > GDK_SQ_DEPTH_MAX) {
		gdk_err("sq_nwqe %u: at most %u slots", attr->sq_nwqe, GDK_SQ_DEPTH_MAX);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (!stated && h == H(AUTO) && p->dev->caps.send_dbr_mode_no_dbr_ext)
		p->mode = MODE(NO_DBR_HW);
	return DOCA_SUCCESS;
}

static doca_error_t plan_handler(struct plan *p, struct doca_verbs_uar *uar)
{
	struct gdk_doorbell_ask ask = {
		.gpu = p->gpu,
		.dev = p->dev,
		.uar = uar,
		.want = p->want,
		.dbr_mode = p->mode,
		.dbr_mode_stated = p->mode_stated,
	};
	doca_error_t err = gdk_doorbell_pick(&ask, &p->db, &p->handler, &p->report);

	if (err != DOCA_SUCCESS)
		return err;
	if (!p->mode_stated && p->handler != H(GPU_SM_NO_DBR))
		p->mode = MODE(VALID_DBR);
	return DOCA_SUCCESS;
}

static void plan_layout(struct plan *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	bool host = p->db->dbrec_on_host || p->mode == MODE(NO_DBR_SW_EMULATED);

	p->dbrec_apart = host && gdk_queue_mem_type() != DOCA_GPU_MEM_TYPE_CPU_GPU;
	p->cq_at = gdk_align_up((size_t)p->depth * GDK_WQEBB_SIZE, page);
	/* the CQ's own DBREC follows its entries */
	p->dbrec_at = gdk_align_up(p->cq_at + (size_t)p->depth * CQE_BYTES + DBREC_BYTES,
				   DBREC_ALIGN);
	p->bytes = gdk_align_up(p->dbrec_at + DBREC_BYTES, page);
}

/* ---- parts ---- */

static doca_error_t create_uar(const struct plan *p, struct doca_verbs_uar **uar)
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

/* Asks for peer memory by hiding the GPU, which would try a dmabuf first. */
static doca_error_t umem_peermem(const struct plan *p, void *ptr, size_t bytes,
				 struct doca_verbs_umem **umem)
{
	doca_error_t err = doca_verbs_umem_create(p->dev, NULL, ptr, bytes, IBV_ACCESS_LOCAL_WRITE,
						  (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, umem);

	if (err == DOCA_SUCCESS)
		(*umem)->gpu = p->gpu;
	return err;
}

static doca_error_t umem_dmabuf(const struct plan *p, void *ptr, size_t bytes,
				struct doca_verbs_umem **umem)
{
	doca_error_t err;
	int fd;

	err = doca_gpu_get_dmabuf_fd(p->gpu, ptr, bytes, &fd);
	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_umem_create(p->dev, p->gpu, ptr, bytes, IBV_ACCESS_LOCAL_WRITE, fd, 0,
				     umem);
	close(fd);
	return err;
}

static doca_error_t create_umem(const struct plan *p, void *ptr, size_t bytes,
				enum doca_gpu_mem_type kind, struct doca_verbs_umem **umem)
{
	if (kind != DOCA_GPU_MEM_TYPE_CPU_GPU && !gdk_gpu_is_host(p->gpu)) {
		if (p->reg == DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_PEERMEM)
			return umem_peermem(p, ptr, bytes, umem);
		if (p->reg == DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_DMABUF)
			return umem_dmabuf(p, ptr, bytes, umem);
		/* DEFAULT: the SDK, unlike umem.c, tries no dmabuf that it is not given. */
		if (p->gpu->sdk && umem_dmabuf(p, ptr, bytes, umem) == DOCA_SUCCESS)
			return DOCA_SUCCESS;
	}
	return doca_verbs_umem_create(p->dev, p->gpu, ptr, bytes, IBV_ACCESS_LOCAL_WRITE,
				      (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, umem);
}

static doca_error_t create_block(const struct plan *p, size_t bytes, enum doca_gpu_mem_type kind,
				 void **ptr, struct doca_verbs_umem **umem)
{
	doca_error_t err;
	void *cpu = NULL;

	err = doca_gpu_mem_alloc(p->gpu, bytes, (size_t)sysconf(_SC_PAGESIZE), kind, ptr, &cpu);
	if (err != DOCA_SUCCESS)
		return err;
	err = gdk_gpu_fill(p->gpu, *ptr, 0, bytes);
	if (err == DOCA_SUCCESS)
		err = create_umem(p, *ptr, bytes, kind, umem);
	if (err != DOCA_SUCCESS) {
		(void)doca_gpu_mem_free(p->gpu, *ptr);
		*ptr = NULL;
	}
	return err;
}

static doca_error_t create_memory(const struct plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	doca_error_t err;

	err = create_block(p, p->bytes, gdk_queue_mem_type(), &hl->qp_umem_gpu_ptr, &hl->qp_umem);
	if (err != DOCA_SUCCESS)
		return err;
	hl->cq_sq_umem = hl->qp_umem;
	hl->cq_sq_umem_gpu_ptr = (uint8_t *)hl->qp_umem_gpu_ptr + p->cq_at;
	if (p->dbrec_apart)
		return create_block(p, (size_t)sysconf(_SC_PAGESIZE), DOCA_GPU_MEM_TYPE_CPU_GPU,
				    &hl->qp_umem_dbr_gpu_ptr, &hl->qp_umem_dbr);
	hl->qp_umem_dbr = hl->qp_umem;
	hl->qp_umem_dbr_gpu_ptr = (uint8_t *)hl->qp_umem_gpu_ptr + p->dbrec_at;
	return DOCA_SUCCESS;
}

static doca_error_t create_cq(const struct plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	doca_verbs_cq_attr_t *attr;
	doca_error_t err = doca_verbs_cq_attr_create(&attr);

	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_cq_attr_set_cq_size(attr, p->depth) ?:
	      doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN) ?:
	      doca_verbs_cq_attr_set_cq_collapsed(attr, p->collapsed) ?:
	      doca_verbs_cq_attr_set_external_umem(attr, hl->cq_sq_umem, p->cq_at) ?:
	      doca_verbs_cq_attr_set_external_uar(attr, hl->external_uar) ?:
	      doca_verbs_cq_create(p->dev, attr, &hl->cq_sq);
	(void)doca_verbs_cq_attr_destroy(attr);
	return err;
}

static doca_error_t fill_init(const struct plan *p, const struct doca_gpu_verbs_qp_hl *hl,
			      doca_verbs_qp_init_attr_t *init)
{
	enum doca_verbs_qp_send_dbr_mode mode = p->mode == MODE(NO_DBR_HW) ?
							DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT :
							DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID;
	size_t dbrec_at = p->dbrec_apart ? 0 : p->dbrec_at;
	bool emulate = p->mode == MODE(NO_DBR_SW_EMULATED);

	return doca_verbs_qp_init_attr_set_pd(init, p->dev) ?:
	       doca_verbs_qp_init_attr_set_qp_type(init, DOCA_VERBS_QP_TYPE_RC) ?:
	       doca_verbs_qp_init_attr_set_send_cq(init, hl->cq_sq) ?:
	       doca_verbs_qp_init_attr_set_sq_wr(init, p->depth) ?:
	       doca_verbs_qp_init_attr_set_send_max_sges(init, 1) ?:
	       doca_verbs_qp_init_attr_set_receive_max_sges(init, 1) ?:
	       doca_verbs_qp_init_attr_set_external_umem(init, hl->qp_umem, 0) ?:
	       doca_verbs_qp_init_attr_set_external_umem_dbr(init, hl->qp_umem_dbr, dbrec_at) ?:
	       doca_verbs_qp_init_attr_set_external_uar(init, hl->external_uar) ?:
	       doca_verbs_qp_init_attr_set_core_direct_master(init, p->core_direct) ?:
	       doca_verbs_qp_init_attr_set_send_dbr_mode(init, mode) ?:
	       doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(init, emulate) ?:
	       /* the default, which an old SDK cannot be told */
	       (p->ordering == DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA ?
			DOCA_SUCCESS :
			doca_verbs_qp_init_attr_set_ordering_semantic(init, p->ordering));
}

static doca_error_t create_qp(const struct plan *p, struct doca_gpu_verbs_qp_hl *hl)
{
	doca_verbs_qp_init_attr_t *init;
	doca_error_t err = doca_verbs_qp_init_attr_create(&init);

	if (err != DOCA_SUCCESS)
		return err;
	err = fill_init(p, hl, init);
	if (err == DOCA_SUCCESS)
		err = doca_verbs_qp_create(p->dev, init, &hl->qp);
	(void)doca_verbs_qp_init_attr_destroy(init);
	return err;
}

/* Releases what exists, in reverse order; keep_uar: it is another QP's. */
static void destroy_parts(struct doca_gpu_verbs_qp_hl *hl, bool keep_uar)
{
	if (hl->qp_gverbs)
		(void)doca_gpu_verbs_unexport_qp(hl->gpu_dev, hl->qp_gverbs);
	if (hl->qp)
		(void)doca_verbs_qp_destroy(hl->qp);
	if (hl->cq_sq)
		(void)doca_verbs_cq_destroy(hl->cq_sq);
	if (hl->qp_umem_dbr && hl->qp_umem_dbr != hl->qp_umem) {
		(void)doca_verbs_umem_destroy(hl->qp_umem_dbr);
		(void)doca_gpu_mem_free(hl->gpu_dev, hl->qp_umem_dbr_gpu_ptr);
	}
	if (hl->qp_umem) {
		(void)doca_verbs_umem_destroy(hl->qp_umem);
		(void)doca_gpu_mem_free(hl->gpu_dev, hl->qp_umem_gpu_ptr);
	}
	if (hl->external_uar && !keep_uar)
		(void)doca_verbs_uar_destroy(hl->external_uar);
	memset(hl, 0, sizeof(*hl));
}

static doca_error_t build(struct plan *p, struct doca_verbs_uar *shared_uar,
			  struct doca_gpu_verbs_qp_hl *hl)
{
	doca_error_t err = DOCA_SUCCESS;

	memset(hl, 0, sizeof(*hl));
	hl->gpu_dev = p->gpu;
	hl->external_uar = shared_uar;
	if (!shared_uar)
		err = create_uar(p, &hl->external_uar);
	if (err == DOCA_SUCCESS)
		err = plan_handler(p, hl->external_uar);
	if (err != DOCA_SUCCESS)
		goto err_parts;
	plan_layout(p);
	err = create_memory(p, hl);
	if (err == DOCA_SUCCESS)
		err = create_cq(p, hl);
	if (err == DOCA_SUCCESS)
		err = create_qp(p, hl);
	if (err == DOCA_SUCCESS)
		err = doca_gpu_verbs_export_qp(p->gpu, hl->qp, p->handler, hl->qp_umem_gpu_ptr,
					       hl->cq_sq, p->mode, &hl->qp_gverbs);
	if (err != DOCA_SUCCESS)
		goto err_parts;
	/* The decision worth reporting is this one, with every candidate. */
	gdk_to_export(hl->qp_gverbs)->report = p->report;
	hl->nic_handler = p->handler;
	hl->send_dbr_mode_ext = p->mode;
	return DOCA_SUCCESS;

err_parts:
	destroy_parts(hl, shared_uar != NULL);
	return err;
}

/* A device gives a bounded number of DBREC-less QPs. Who stated no mode gets a
 * QP with DBREC when one more is refused; who did state it gets the error. */
static doca_error_t build_or_fall_back(struct plan *p, struct doca_verbs_uar *shared_uar,
				       struct doca_gpu_verbs_qp_hl *hl)
{
	doca_error_t err = build(p, shared_uar, hl);

	if (err == DOCA_SUCCESS || p->mode_stated || p->mode != MODE(NO_DBR_HW))
		return err;
	if (!atomic_exchange(&p->dev->said_no_dbr_fallback, true))
		gdk_warn("%s: a QP without DBREC was refused; QPs with DBREC are used from here on",
			 ibv_get_device_name(p->dev->ctx->device));
	p->mode = MODE(VALID_DBR);
	return build(p, shared_uar, hl);
}

/* ---- public ---- */

doca_error_t doca_gpu_verbs_create_qp_hl(struct doca_gpu_verbs_qp_init_attr_hl *attr,
					 struct doca_gpu_verbs_qp_hl **qp)
{
	struct doca_gpu_verbs_qp_hl *hl;
	struct plan p;
	doca_error_t err;

	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(qp != NULL);
	err = plan_init(attr, &p);
	if (err != DOCA_SUCCESS)
		return err;
	hl = calloc(1, sizeof(*hl));
	if (!hl) {
		gdk_err("no memory for a high-level QP");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = build_or_fall_back(&p, NULL, hl);
	if (err != DOCA_SUCCESS) {
		free(hl);
		return err;
	}
	*qp = hl;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_destroy_qp_hl(struct doca_gpu_verbs_qp_hl *qp)
{
	GDK_CHECK_ARG(qp != NULL);
	destroy_parts(qp, false);
	free(qp);
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_create_qp_group_hl(struct doca_gpu_verbs_qp_init_attr_hl *attr,
					       struct doca_gpu_verbs_qp_group_hl **qpg)
{
	struct doca_gpu_verbs_qp_group_hl *g;
	struct plan p;
	doca_error_t err;

	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(qpg != NULL);
	/* Two QPs cannot alternate the halves of one BlueFlame buffer. */
	GDK_CHECK_ARG(attr->nic_handler != H(GPU_SM_BF));
	err = plan_init(attr, &p);
	if (err != DOCA_SUCCESS)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g) {
		gdk_err("no memory for a high-level QP group");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = build_or_fall_back(&p, NULL, &g->qp_main);
	if (err != DOCA_SUCCESS)
		goto err_free;
	p.core_direct = true;
	err = build_or_fall_back(&p, g->qp_main.external_uar, &g->qp_companion);
	if (err != DOCA_SUCCESS)
		goto err_main;
	*qpg = g;
	return DOCA_SUCCESS;

err_main:
	destroy_parts(&g->qp_main, false);
err_free:
	free(g);
	return err;
}

doca_error_t doca_gpu_verbs_destroy_qp_group_hl(struct doca_gpu_verbs_qp_group_hl *qpg)
{
	GDK_CHECK_ARG(qpg != NULL);
	destroy_parts(&qpg->qp_companion, true);
	destroy_parts(&qpg->qp_main, false);
	free(qpg);
	return DOCA_SUCCESS;
}

/* A flat list is freed by its address alone: remember whose memory it is. */
struct flat_list {
	struct flat_list *next;
	doca_gpu_t *gpu;
	void *ptr;
};

static pthread_mutex_t flat_lock = PTHREAD_MUTEX_INITIALIZER;
static struct flat_list *flat_lists;

static doca_error_t flat_fill(struct doca_gpu_verbs_qp_hl **list, uint32_t num,
			      struct flat_list *f)
{
	struct doca_gpu_dev_verbs_qp *image = calloc(num, sizeof(*image));
	doca_error_t err = DOCA_ERROR_NO_MEMORY;
	void *cpu = NULL;
	uint32_t i;

	if (!image) {
		gdk_err("no memory for a flat list of %u QPs", num);
		return err;
	}
	for (i = 0; i < num; i++)
		if (list[i])
			image[i] = *list[i]->qp_gverbs->qp_cpu;
	err = doca_gpu_mem_alloc(f->gpu, num * sizeof(*image), 128, gdk_queue_mem_type(), &f->ptr,
				 &cpu);
	if (err != DOCA_SUCCESS)
		goto out;
	err = gdk_gpu_write(f->gpu, f->ptr, image, num * sizeof(*image));
	if (err != DOCA_SUCCESS)
		(void)doca_gpu_mem_free(f->gpu, f->ptr);
out:
	free(image);
	return err;
}

static doca_error_t flat_gpu(struct doca_gpu_verbs_qp_hl **list, uint32_t num, doca_gpu_t **gpu)
{
	uint32_t i;

	*gpu = NULL;
	for (i = 0; i < num; i++) {
		if (!list[i])
			continue;
		if (!list[i]->qp_gverbs || (*gpu && *gpu != list[i]->gpu_dev)) {
			gdk_err("flat list: entry %u is not exported, or on another GPU", i);
			return DOCA_ERROR_INVALID_VALUE;
		}
		*gpu = list[i]->gpu_dev;
	}
	GDK_CHECK_ARG(*gpu != NULL);
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_qp_flat_list_create_hl(struct doca_gpu_verbs_qp_hl **qp_list,
						   uint32_t num_elems,
						   struct doca_gpu_dev_verbs_qp **qp_gpu)
{
	struct flat_list *f;
	doca_gpu_t *gpu;
	doca_error_t err;

	GDK_CHECK_ARG(qp_list != NULL);
	GDK_CHECK_ARG(num_elems > 0);
	GDK_CHECK_ARG(qp_gpu != NULL);
	err = flat_gpu(qp_list, num_elems, &gpu);
	if (err != DOCA_SUCCESS)
		return err;
	f = calloc(1, sizeof(*f));
	if (!f) {
		gdk_err("no memory for a flat list");
		return DOCA_ERROR_NO_MEMORY;
	}
	f->gpu = gpu;
	err = flat_fill(qp_list, num_elems, f);
	if (err != DOCA_SUCCESS) {
		free(f);
		return err;
	}
	pthread_mutex_lock(&flat_lock);
	f->next = flat_lists;
	flat_lists = f;
	pthread_mutex_unlock(&flat_lock);
	*qp_gpu = f->ptr;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_qp_flat_list_destroy_hl(struct doca_gpu_dev_verbs_qp *qp_gpu)
{
	struct flat_list **at, *f;
	doca_error_t err;

	GDK_CHECK_ARG(qp_gpu != NULL);
	pthread_mutex_lock(&flat_lock);
	for (at = &flat_lists; *at && (*at)->ptr != qp_gpu; at = &(*at)->next)
		;
	f = *at;
	if (f)
		*at = f->next;
	pthread_mutex_unlock(&flat_lock);
	if (!f) {
		gdk_err("%p is not a flat list", (void *)qp_gpu);
		return DOCA_ERROR_NOT_FOUND;
	}
	err = doca_gpu_mem_free(f->gpu, f->ptr);
	free(f);
	return err;
}
