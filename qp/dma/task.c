/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Copies that the CPU submits. Requests complete in the order in which they were posted, so only
 * the first submitted task is polled. After an error the queue has ended: all submitted tasks fail.
 */
#include "qp/dma/dma.h"

#include <stdlib.h>

#include "core/log/log.h"
#include "gdk_sdk_dma_dev.h"
#include "qp/doca/buf.h"

#define SHARED DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU

static struct doca_dma_task_memcpy *task_of(struct doca_task *task)
{
	return (struct doca_dma_task_memcpy *)task; /* its first member */
}

doca_error_t doca_dma_task_memcpy_set_conf(struct doca_dma *dma,
					   doca_dma_task_memcpy_completion_cb_t task_completion_cb,
					   doca_dma_task_memcpy_completion_cb_t task_error_cb,
					   uint32_t num_tasks)
{
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	GDK_CHECK_PTR(task_completion_cb);
	GDK_CHECK_PTR(task_error_cb);
	GDK_CHECK_RANGE(num_tasks, 1, 32768);
	err = gdk_ctx_must_be_idle(&dma->ctx, __func__);
	if (err)
		return err;
	dma->done = task_completion_cb;
	dma->failed = task_error_cb;
	dma->num_tasks = num_tasks;
	return DOCA_SUCCESS;
}

/* ---- submission ---- */

static doca_error_t check_lens(const struct doca_dma_task_memcpy *t, uintptr_t to)
{
	uintptr_t from = (uintptr_t)t->src->data;
	size_t len = t->src->data_len;
	size_t room = t->dst->len - (to - (uintptr_t)t->dst->addr);

	GDK_CHECK_ARG(len && len <= GDK_DMA_MAX_COPY,
		      "src: its data has %zu bytes (expected 1..%llu)", len,
		      (unsigned long long)GDK_DMA_MAX_COPY);
	GDK_CHECK_ARG(len <= room, "dst: it has room for %zu bytes behind its data (expected %zu)",
		      room, len);
	GDK_CHECK_ARG(from >= to + len || to >= from + len,
		      "src and dst: the %zu bytes at %p and at %p overlap", len, (void *)from,
		      (void *)to);
	return DOCA_SUCCESS;
}

static doca_error_t check_bufs(const struct doca_dma_task_memcpy *t)
{
	const struct doca_dma *dma = t->dma;

	if (t->src->next || t->src->chained || t->dst->next || t->dst->chained) {
		gdk_err("DMA task: buffers in a list are not supported");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (dma->queue.engine == GDK_DMA_ENGINE_RDMA_WRITE &&
	    !gdk_mmap_remote_write(t->dst->mmap)) {
		gdk_err("DMA task: without a copy engine, the mmap of dst needs the permission "
			"DOCA_ACCESS_FLAG_RDMA_WRITE; call doca_mmap_set_permissions()");
		return DOCA_ERROR_NOT_PERMITTED;
	}
	return DOCA_SUCCESS;
}

static uintptr_t target(const struct doca_dma_task_memcpy *t)
{
	return (uintptr_t)t->dst->data + t->dst->data_len;
}

/* The requests must fit into the queue: a wait for free slots would block the CPU. */
static doca_error_t check_room(struct doca_dma *dma, uint64_t len)
{
	struct doca_gpu_dev_verbs_qp *qp = dma->queue.on_gpu->qp;
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	uint64_t needed = (len + dma->queue.max - 1) / dma->queue.max;
	uint64_t used = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_THREAD) -
			gdk_ld64(&st->completed, GDK_SCOPE_GPU);

	if (used + needed <= st->depth)
		return DOCA_SUCCESS;
	if (needed > st->depth) {
		gdk_err("DMA task: %llu bytes need %llu requests, the queue holds %u; call "
			"gdk_dma_set_queue_size()",
			(unsigned long long)len, (unsigned long long)needed, st->depth);
		return DOCA_ERROR_TOO_BIG;
	}
	return DOCA_ERROR_FULL;
}

static doca_error_t submit(struct doca_task *task)
{
	struct doca_dma_task_memcpy *t = task_of(task);
	struct doca_dma *dma = t->dma;
	struct gdk_dma_span s;
	doca_error_t err;

	s.from = (uintptr_t)t->src->data;
	s.to = target(t);
	s.len = t->src->data_len;
	s.from_key = gdk_bswap32(gdk_mmap_key(t->src->mmap));
	s.to_key = gdk_bswap32(gdk_mmap_key(t->dst->mmap));
	/* The buffers and the engine may be others than when the task was created. */
	err = check_bufs(t) ?: check_lens(t, s.to) ?: check_room(dma, s.len);
	if (err)
		return err;
	err = gdk_dma_error(gdk_dma_post(dma->queue.on_gpu, s, &t->ticket));
	if (!err)
		err = doca_gpu_dev_dma_commit(dma->queue.on_gpu);
	if (err) {
		gdk_err("DMA task: the queue has ended: %s; stop and start the context",
			doca_error_get_descr(err));
		return err;
	}
	t->len = s.len;
	t->next = NULL;
	*dma->last = t;
	dma->last = &t->next;
	return DOCA_SUCCESS;
}

/* ---- completion ---- */

static void log_failure(struct doca_dma *dma, int status)
{
	struct gdk_qp_error error;

	if (dma->logged || gdk_verbs_qp_get_error(dma->queue.qp->qp_gverbs, &error))
		return;
	dma->logged = true;
	if (status == -EIO)
		gdk_err("DMA queue (QP 0x%x, %s): a copy failed: %s (syndrome 0x%x, vendor 0x%x): "
			"%s",
			error.qpn, gdk_dma_engine_text(dma->queue.engine),
			gdk_syndrome_text(error.syndrome), error.syndrome, error.vendor_err_synd,
			gdk_syndrome_cause(error.syndrome));
	else
		gdk_err("DMA queue (QP 0x%x): ends with its tasks: %s", error.qpn,
			doca_error_get_descr(gdk_dma_error(status)));
}

/* Returns whether the object exists after the callback. If no other task is submitted, the callback
 * may stop and destroy it, unless it is stopping already. */
static bool finish(struct doca_dma_task_memcpy *t, int status)
{
	struct doca_dma *dma = t->dma;
	const bool stays = t->next || dma->ctx.state == DOCA_CTX_STATE_STOPPING;

	dma->first = t->next;
	if (!dma->first)
		dma->last = &dma->first;
	if (status)
		log_failure(dma, status);
	else
		t->dst->data_len += t->len;
	gdk_task_done(&t->task, gdk_dma_error(status));
	/* last: the callback may free the task */
	(status ? dma->failed : dma->done)(t, t->user_data, dma->ctx.user_data);
	return stays;
}

bool gdk_dma_tasks_progress(struct doca_dma *dma, bool *exists)
{
	bool any = false;
	int status;

	*exists = true;
	while (*exists && dma->first) {
		status = gdk_poll_ticket(dma->queue.on_gpu->qp, dma->first->ticket, SHARED);
		if (status == EBUSY)
			break;
		*exists = finish(dma->first, status);
		any = true;
	}
	return any;
}

/* ---- tasks ---- */

static void free_task(struct doca_task *task)
{
	struct doca_dma_task_memcpy *t = task_of(task), **at;

	for (at = &t->dma->tasks; *at != t; at = &(*at)->others)
		;
	*at = t->others;
	t->dma->used_tasks--;
	free(t);
}

static const struct gdk_task_ops ops = {
	.what = "DMA task",
	.submit = submit,
	.free = free_task,
};

doca_error_t doca_dma_task_memcpy_alloc_init(struct doca_dma *dma, const struct doca_buf *src,
					     struct doca_buf *dst, union doca_data user_data,
					     struct doca_dma_task_memcpy **task)
{
	struct doca_dma_task_memcpy *t, init;
	doca_error_t err;

	GDK_CHECK_PTR(dma);
	GDK_CHECK_PTR(src);
	GDK_CHECK_PTR(dst);
	GDK_CHECK_PTR(task);
	err = gdk_dma_must_run(dma, __func__);
	if (err)
		return err;
	if (dma->ctx.gpu) {
		gdk_err("%s: kernels drive the DMA context, not the CPU", __func__);
		return DOCA_ERROR_BAD_STATE;
	}
	init = (struct doca_dma_task_memcpy){ .dma = dma,
					      .src = src,
					      .dst = dst,
					      .user_data = user_data };
	err = check_bufs(&init) ?: check_lens(&init, target(&init));
	if (err)
		return err;
	if (dma->used_tasks >= dma->num_tasks) {
		gdk_err("%s: %u tasks exist (doca_dma_task_memcpy_set_conf() sets the maximum)",
			__func__, dma->used_tasks);
		return DOCA_ERROR_FULL;
	}
	t = malloc(sizeof(*t));
	if (!t) {
		gdk_err("no memory for a DMA task");
		return DOCA_ERROR_NO_MEMORY;
	}
	*t = init;
	gdk_task_init(&t->task, &ops, &dma->ctx);
	t->others = dma->tasks;
	dma->tasks = t;
	dma->used_tasks++;
	*task = t;
	return DOCA_SUCCESS;
}

struct doca_task *doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task)
{
	GDK_CHECK_PTR_OR(NULL, task);
	return &task->task;
}

void gdk_dma_tasks_free(struct doca_dma *dma)
{
	while (dma->tasks)
		free_task(&dma->tasks->task);
}

doca_error_t gdk_dma_must_run(const struct doca_dma *dma, const char *func)
{
	if (dma->ctx.state == GDK_CTX_STATE_RUNNING)
		return DOCA_SUCCESS;
	gdk_err("%s: the DMA context does not run; call doca_ctx_start() first", func);
	return DOCA_ERROR_BAD_STATE;
}
