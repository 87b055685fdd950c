/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode of GPUs and devices (sdk.h). The SDK does not take an ibv_context or an ibv_pd:
 * it imports them as objects of its own, which this file calls views. A device keeps one view
 * of its context and one of its protection domain.
 */
#include "core/gpu/gpu_priv.h"
#include "core/nic/net_dev.h"
#include "core/sdk/sdk_dev.h"

typedef doca_error_t drop_fn(void *view);
typedef doca_error_t open_fn(struct ibv_pd *pd, void **dev);
typedef doca_error_t get_pd_fn(void *dev, struct ibv_pd **pd);
typedef doca_error_t import_pd_fn(struct ibv_pd *pd, void **view);
typedef doca_error_t import_context_fn(struct ibv_context *ctx, uint32_t flags, void **view);

/* ---- views ---- */

doca_error_t gdk_sdk_import_context(struct ibv_context *ctx, void **view)
{
	return GDK_SDK_CALL_AS("doca_verbs_bridge_verbs_context_import", import_context_fn, ctx, 0,
			       view);
}

doca_error_t gdk_sdk_import_pd(struct ibv_pd *pd, void **view)
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

void gdk_sdk_drop_context(void **view)
{
	drop("doca_verbs_context_destroy", view);
}

void gdk_sdk_drop_pd(void **view)
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
		err = gdk_sdk_import_pd(pd, &dev->sdk_pd);
	if (err == DOCA_SUCCESS)
		err = gdk_sdk_import_context(pd->context, &dev->sdk_context);
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
	gdk_sdk_drop_context(&dev->sdk_context);
	gdk_sdk_drop_pd(&dev->sdk_pd);
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
	err = gdk_sdk_import_context(ctx, &context);
	if (err == DOCA_SUCCESS)
		err = GDK_SDK_CALL(doca_verbs_query_device, context, (void *)sdk);
	gdk_sdk_drop_context(&context);
	return err;
}
