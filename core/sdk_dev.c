/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode of GPUs, devices, umems, UARs, address handles and SRQs (sdk_objects.h). The SDK
 * creates verbs objects from its own objects for an ibv_context and an ibv_pd, called views
 * here. A device keeps one of each. CQs and QPs are in sdk_queue.c.
 */
#include "qp/qp.h"
#include "core/gpu/gpu_priv.h"
#include "core/sdk_objects.h"

typedef doca_error_t drop_fn(void *view);
typedef doca_error_t open_fn(struct ibv_pd *pd, void **dev);
typedef doca_error_t get_pd_fn(void *dev, struct ibv_pd **pd);
typedef doca_error_t import_pd_fn(struct ibv_pd *pd, void **view);
typedef doca_error_t import_context_fn(struct ibv_context *ctx, uint32_t flags, void **view);
typedef doca_error_t umem_fn(void *dev, void *addr, size_t size, uint32_t access, void **umem);
typedef doca_error_t umem_gpu_fn(void *gpu, void *dev, void *addr, size_t size, uint32_t access,
				 void **umem);

/* ---- views ---- */

static doca_error_t import_context(struct ibv_context *ctx, void **view)
{
	return GDK_SDK_CALL_AS("doca_verbs_bridge_verbs_context_import", import_context_fn, ctx, 0,
			       view);
}

static doca_error_t import_pd(struct ibv_pd *pd, void **view)
{
	return GDK_SDK_CALL_AS("doca_verbs_bridge_verbs_pd_import", import_pd_fn, pd, view);
}

/* Destroys a view. If an old SDK lacks the function, the view exists until the process ends. */
static void drop(const char *name, void **view)
{
	drop_fn *fn = *view ? gdk_sdk_find(name) : NULL;

	if (fn)
		(void)gdk_sdk_result(name, fn(*view));
	*view = NULL;
}

static void drop_context(void **view)
{
	drop("doca_verbs_context_destroy", view);
}

static void drop_pd(void **view)
{
	drop("doca_verbs_pd_destroy", view);
}

/* ---- GPU ---- */

doca_error_t gdk_sdk_gpu_create(doca_gpu_t *gpu, const char *gpu_bus_id)
{
	bool sdk = gdk_sdk_in_use() && !gdk_gpu_is_host(gpu);

	GDK_SDK_SAY("GPUNetIO", sdk);
	return sdk ? GDK_SDK_CALL(doca_gpu_create, gpu_bus_id, (void *)&gpu->sdk) : DOCA_SUCCESS;
}

doca_error_t gdk_sdk_mem_alloc(doca_gpu_t *gpu, struct gdk_block *block, size_t alignment)
{
	void *gpu_ptr = NULL, *cpu_ptr = NULL;
	doca_error_t err;

	err = GDK_SDK_CALL(doca_gpu_mem_alloc, gpu->sdk, block->size, alignment, block->type,
			   &gpu_ptr, block->type == DOCA_GPU_MEM_TYPE_GPU ? NULL : &cpu_ptr);
	block->gpu_ptr = (uintptr_t)gpu_ptr;
	block->cpu_ptr = cpu_ptr;
	return err;
}

/* ---- device ---- */

static doca_error_t import_views(doca_dev_t *dev)
{
	struct ibv_pd *pd = NULL;
	doca_error_t err;

	err = GDK_SDK_CALL_AS("doca_rdma_bridge_get_dev_pd", get_pd_fn, dev->sdk, &pd);
	if (err == DOCA_SUCCESS)
		err = import_pd(pd, &dev->sdk_pd);
	if (err == DOCA_SUCCESS)
		err = import_context(pd->context, &dev->sdk_context);
	return err;
}

doca_error_t gdk_sdk_dev_open(doca_dev_t *dev)
{
	doca_error_t err;

	GDK_SDK_SAY("Verbs Dev", gdk_sdk_in_use());
	if (!gdk_sdk_in_use())
		return DOCA_SUCCESS;
	err = GDK_SDK_CALL_AS("doca_rdma_bridge_open_dev_from_pd", open_fn, dev->pd, &dev->sdk);
	if (err != DOCA_SUCCESS)
		return err;
	err = import_views(dev);
	if (err != DOCA_SUCCESS)
		(void)gdk_sdk_dev_close(dev);
	return err;
}

doca_error_t gdk_sdk_dev_close(doca_dev_t *dev)
{
	drop_context(&dev->sdk_context);
	drop_pd(&dev->sdk_pd);
	return GDK_SDK_CALL_AS("doca_dev_close", drop_fn, dev->sdk);
}

doca_error_t gdk_sdk_query_device(struct ibv_context *ctx, void **sdk)
{
	bool has = gdk_sdk_find("doca_verbs_query_device") != NULL;
	void *context = NULL;
	doca_error_t err;

	GDK_SDK_SAY("Verbs Device Attr", has);
	if (!has)
		return DOCA_SUCCESS;
	err = import_context(ctx, &context);
	if (err == DOCA_SUCCESS)
		err = GDK_SDK_CALL(doca_verbs_query_device, context, (void *)sdk);
	drop_context(&context);
	return err;
}

/* ---- umem, UAR, AH ---- */

doca_error_t gdk_sdk_umem_create(doca_verbs_umem_t *umem, uint32_t access_flags, int dmabuf_fd)
{
	void *dev = umem->dev->sdk;

	/* For GPU memory the SDK creates its own dmabuf. */
	if (umem->gpu && dmabuf_fd >= 0)
		return GDK_SDK_CALL_AS("doca_umem_gpu_create", umem_gpu_fn, umem->gpu->sdk, dev,
				       umem->addr, umem->size, access_flags, &umem->sdk);
	return GDK_SDK_CALL_AS("doca_umem_create", umem_fn, dev, umem->addr, umem->size,
			       access_flags, &umem->sdk);
}

doca_error_t gdk_sdk_uar_create(doca_verbs_uar_t *uar)
{
	doca_error_t err;

	err = GDK_SDK_CALL_AS("doca_uar_create", doca_verbs_uar_create, uar->dev->sdk, uar->type,
			      (void *)&uar->sdk);
	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_uar_reg_addr_get(uar, &uar->reg_addr);
	if (err != DOCA_SUCCESS)
		(void)GDK_SDK_CALL_AS("doca_uar_destroy", drop_fn, uar->sdk);
	uar->dbr_less_addr = uar->reg_addr;
	return err;
}

doca_error_t gdk_sdk_ah_create(doca_verbs_ah_attr_t *ah)
{
	return GDK_SDK_CALL(doca_verbs_ah_attr_create, ah->dev->sdk_context, (void *)&ah->sdk);
}

/* ---- SRQ: created without a doca_dev, so each SRQ has its own views ---- */

doca_error_t gdk_sdk_srq_set_pd(struct doca_verbs_srq_init_attr *attr, struct ibv_pd *pd)
{
	void *view = NULL;
	doca_error_t err = import_pd(pd, &view);

	if (err == DOCA_SUCCESS)
		err = GDK_SDK_CALL(doca_verbs_srq_init_attr_set_pd, attr->sdk, view);
	if (err != DOCA_SUCCESS) {
		drop_pd(&view);
		return err;
	}
	drop_pd(&attr->sdk_pd);
	attr->sdk_pd = view;
	attr->pd = pd;
	return DOCA_SUCCESS;
}

doca_error_t gdk_sdk_srq_attr_destroy(struct doca_verbs_srq_init_attr *attr)
{
	doca_error_t err = GDK_SDK_CALL(doca_verbs_srq_init_attr_destroy, attr->sdk);

	if (err != DOCA_SUCCESS)
		return err;
	drop_pd(&attr->sdk_pd);
	free(attr);
	return DOCA_SUCCESS;
}

doca_error_t gdk_sdk_srq_create(struct ibv_context *ctx, struct doca_verbs_srq_init_attr *attr,
				struct doca_verbs_srq **out)
{
	struct doca_verbs_srq *srq = calloc(1, sizeof(*srq));
	doca_error_t err;

	if (!srq) {
		gdk_err("no memory for an SRQ");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = import_context(ctx, &srq->sdk_context);
	if (err == DOCA_SUCCESS)
		err = GDK_SDK_CALL(doca_verbs_srq_create, srq->sdk_context, attr->sdk,
				   (void *)&srq->sdk);
	if (err != DOCA_SUCCESS) {
		drop_context(&srq->sdk_context);
		free(srq);
		return err;
	}
	srq->umem = attr->external_umem;
	if (srq->umem)
		atomic_fetch_add(&srq->umem->users, 1);
	*out = srq;
	return DOCA_SUCCESS;
}

doca_error_t gdk_sdk_srq_destroy(struct doca_verbs_srq *srq)
{
	doca_error_t err = GDK_SDK_CALL(doca_verbs_srq_destroy, srq->sdk);

	if (err != DOCA_SUCCESS)
		return err;
	drop_context(&srq->sdk_context);
	if (srq->umem)
		atomic_fetch_sub(&srq->umem->users, 1);
	free(srq);
	return DOCA_SUCCESS;
}
