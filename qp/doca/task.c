/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tasks that the CPU submits: states, and dispatch to the kind of task.
 */
#include "qp/doca/task.h"

#include "core/log/log.h"

void gdk_task_init(struct doca_task *task, const struct gdk_task_ops *ops, struct doca_ctx *ctx)
{
	task->ops = ops;
	task->ctx = ctx;
	task->state = GDK_TASK_NEW;
	task->status = DOCA_SUCCESS;
}

void gdk_task_done(struct doca_task *task, doca_error_t status)
{
	task->state = GDK_TASK_DONE;
	task->status = status;
}

doca_error_t doca_task_submit(struct doca_task *task)
{
	doca_error_t err;

	GDK_CHECK_PTR(task);
	if (task->state == GDK_TASK_SUBMITTED) {
		gdk_err("%s: the %s %p is submitted and not done; call doca_pe_progress()",
			__func__, task->ops->what, (void *)task);
		return DOCA_ERROR_BAD_STATE;
	}
	if (task->ctx->state != GDK_CTX_STATE_RUNNING) {
		gdk_err("%s: the %s does not run; call doca_ctx_start() first", __func__,
			task->ctx->ops->what);
		return DOCA_ERROR_BAD_STATE;
	}
	err = task->ops->submit(task);
	if (!err)
		task->state = GDK_TASK_SUBMITTED;
	return err;
}

doca_error_t doca_task_get_status(const struct doca_task *task)
{
	GDK_CHECK_PTR(task);
	if (task->state == GDK_TASK_DONE)
		return task->status;
	if (task->state == GDK_TASK_SUBMITTED)
		return DOCA_ERROR_IN_PROGRESS;
	gdk_err("%s: the %s %p was not submitted", __func__, task->ops->what, (const void *)task);
	return DOCA_ERROR_BAD_STATE;
}

void doca_task_free(struct doca_task *task)
{
	GDK_CHECK_PTR_OR(, task);
	if (task->state == GDK_TASK_SUBMITTED) {
		gdk_err("%s: the %s %p is submitted and not done; call doca_pe_progress()",
			__func__, task->ops->what, (void *)task);
		return;
	}
	task->ops->free(task);
}
