/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of a task. Each kind of task contains one and gives its operations. task.c
 * checks and changes the state.
 */
#ifndef GDK_DOCA_TASK_PRIV_H
#define GDK_DOCA_TASK_PRIV_H

#include "qp/doca/ctx.h"

/* The operations log the causes of their errors. */
struct gdk_task_ops {
	const char *what; /* for messages, for example "DMA task" */
	doca_error_t (*submit)(struct doca_task *task);
	void (*free)(struct doca_task *task);
};

enum gdk_task_state { GDK_TASK_NEW, GDK_TASK_SUBMITTED, GDK_TASK_DONE };

struct doca_task {
	const struct gdk_task_ops *ops;
	struct doca_ctx *ctx;
	enum gdk_task_state state;
	doca_error_t status; /* of a task that is done */
};

void gdk_task_init(struct doca_task *task, const struct gdk_task_ops *ops, struct doca_ctx *ctx);
void gdk_task_done(struct doca_task *task, doca_error_t status);

#endif
