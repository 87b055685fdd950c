/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DMA objects: settings, and start and stop of their contexts. The queue of an object that the CPU
 * drives is exported to a GPU of CPU threads, so that tasks are posted by the functions that
 * kernels use.
 */
#include "qp/dma/dma.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/log/log.h"

#define REQUESTS     1024u
#define REQUESTS_MAX 32768u

static struct doca_dma *dma_of(struct doca_ctx *ctx)
{
	return (struct doca_dma *)ctx; /* its first member */
}

static doca_error_t close_queue(struct doca_dma *dma)
{
	doca_error_t err = gdk_dma_queue_close(&dma->queue);

	if (!err && dma->cpu)
		err = doca_gpu_destroy(dma->cpu);
	if (!err)
		dma->cpu = NULL;
	return err;
}

static doca_error_t start(struct doca_ctx *ctx)
{
	struct doca_dma *dma = dma_of(ctx);
	uint32_t requests = dma->requests;
	doca_error_t err;

	if (!ctx->gpu && !dma->done) {
		gdk_err("DMA context: neither kernels nor the CPU can use it; call "
			"doca_ctx_set_datapath_on_gpu() or doca_dma_task_memcpy_set_conf() first");
		return DOCA_ERROR_BAD_STATE;
	}
	if (!ctx->gpu) {
		err = doca_gpu_create("host", &dma->cpu);
		if (err)
			return err;
		if (requests < dma->num_tasks)
			requests = dma->num_tasks;
	}
	dma->first = NULL;
	dma->last = &dma->first;
	dma->logged = false;
	err = gdk_dma_queue_open(&dma->queue, dma->dev, ctx->gpu ? ctx->gpu : dma->cpu, dma->want,
				 requests);
	if (err)
		close_queue(dma);
	return err;
}

static doca_error_t stop(struct doca_ctx *ctx)
{
	struct doca_dma *dma = dma_of(ctx);

	return dma->first ? DOCA_ERROR_IN_PROGRESS : close_queue(dma);
}

static bool progress(struct doca_ctx *ctx)
{
	struct doca_dma *dma = dma_of(ctx);
	bool exists, any = gdk_dma_tasks_progress(dma, &exists);

	/* If the queue cannot be closed, the next call tries again. */
	if (exists && ctx->state == DOCA_CTX_STATE_STOPPING && !dma->first && !close_queue(dma))
		gdk_ctx_stopped(ctx);
	return any;
}

static const struct gdk_ctx_ops ops = {
	.what = "DMA context",
	.on_gpu = true,
	.start = start,
	.stop = stop,
	.progress = progress,
};

doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma)
{
	struct doca_dma *new;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(dma);
	if (dev->sdk) {
		gdk_err("%s: the NIC belongs to the DOCA SDK", __func__);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	new = calloc(1, sizeof(*new));
	if (!new) {
		gdk_err("no memory for a DMA object");
		return DOCA_ERROR_NO_MEMORY;
	}
	gdk_ctx_init(&new->ctx, &ops, dev);
	new->dev = dev;
	new->requests = REQUESTS;
	atomic_fetch_add(&dev->users, 1);
	*dma = new;
	return DOCA_SUCCESS;
}

doca_error_t doca_dma_destroy(struct doca_dma *dma)
{
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	err = gdk_ctx_fini(&dma->ctx);
	if (err)
		return err;
	gdk_dma_tasks_free(dma);
	atomic_fetch_sub(&dma->dev->users, 1);
	free(dma);
	return DOCA_SUCCESS;
}

struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma)
{
	GDK_CHECK_PTR_OR(NULL, dma);
	return &dma->ctx;
}

doca_error_t doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **dma_gpu)
{
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	GDK_CHECK_PTR(dma_gpu);
	err = gdk_dma_must_run(dma, __func__);
	if (err)
		return err;
	if (!dma->ctx.gpu) {
		gdk_err("%s: the CPU drives the DMA context; call doca_ctx_set_datapath_on_gpu() "
			"before doca_ctx_start()",
			__func__);
		return DOCA_ERROR_BAD_STATE;
	}
	*dma_gpu = dma->queue.on_gpu;
	return DOCA_SUCCESS;
}

doca_error_t gdk_dma_set_engine(struct doca_dma *dma, enum gdk_dma_engine engine)
{
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	GDK_CHECK_ENUM(engine, GDK_DMA_ENGINE_RDMA_WRITE);
	err = gdk_ctx_must_be_idle(&dma->ctx, __func__);
	if (!err)
		dma->want = engine;
	return err;
}

doca_error_t gdk_dma_get_engine(const struct doca_dma *dma, enum gdk_dma_engine *engine,
				uint64_t *max_bytes)
{
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	GDK_CHECK_PTR(engine);
	err = gdk_dma_must_run(dma, __func__);
	if (err)
		return err;
	*engine = dma->queue.engine;
	if (max_bytes)
		*max_bytes = dma->queue.max;
	return DOCA_SUCCESS;
}

doca_error_t gdk_dma_set_queue_size(struct doca_dma *dma, uint32_t requests)
{
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	GDK_CHECK_RANGE(requests, 1, REQUESTS_MAX);
	err = gdk_ctx_must_be_idle(&dma->ctx, __func__);
	if (!err)
		dma->requests = requests;
	return err;
}

doca_error_t gdk_dma_abort(struct doca_dma *dma)
{
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_PTR(dma);
	/* A stop waits for tasks that may never be done otherwise. */
	if (dma->ctx.state != DOCA_CTX_STATE_STOPPING)
		err = gdk_dma_must_run(dma, __func__);
	if (err || !dma->queue.qp || !dma->queue.qp->qp_gverbs) /* closed in part */
		return err;
	return gdk_verbs_qp_abort(dma->queue.qp->qp_gverbs);
}

doca_error_t gdk_dma_set_wait_limit(struct doca_dma *dma, uint64_t ns)
{
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	GDK_CHECK_ARG(ns, "ns 0 (expected at least 1)");
	err = gdk_dma_must_run(dma, __func__);
	return err ? err : gdk_verbs_qp_set_wait_limit(dma->queue.qp->qp_gverbs, ns);
}
