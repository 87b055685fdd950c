/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Progress engines, which call the callbacks of the contexts that are connected to them. Return
 * values and threads: see doca_error.h. Calls on one engine and on its contexts must run one after
 * another.
 */
#ifndef GDK_SDK_DOCA_PE_H
#define GDK_SDK_DOCA_PE_H

#include "doca_ctx.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_pe;	  /* a progress engine */
struct doca_task; /* a task: work of a context that the CPU submits */

/**
 * Creates a progress engine. Destroy it with doca_pe_destroy().
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_pe_create(struct doca_pe **pe);

/**
 * Destroys a progress engine and disconnects its contexts.
 *
 * @retval DOCA_ERROR_IN_USE a connected context is not idle, or a callback of the engine runs
 */
doca_error_t doca_pe_destroy(struct doca_pe *pe);

/**
 * Connects an idle context to a progress engine, until one of them is destroyed.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 * @retval DOCA_ERROR_ALREADY_EXIST the context is connected already
 */
doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);

/**
 * Handles what has happened in the connected contexts, and calls their callbacks. Does not wait.
 *
 * @return 1 if there was something, 0 if not or if pe is NULL
 */
uint8_t doca_pe_progress(struct doca_pe *pe);

/**
 * Submits a task to its context, which must run. doca_pe_progress() calls a callback of the context
 * when the task is done. A task that is done may be submitted again.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run, or the task is submitted already
 * @retval DOCA_ERROR_FULL no room in the queue; call doca_pe_progress() and try again
 * Other errors are those of the kind of task. After an error the task is not submitted.
 */
doca_error_t doca_task_submit(struct doca_task *task);

/**
 * Returns the result of a task.
 *
 * @retval DOCA_ERROR_IN_PROGRESS the task is not done
 * @retval DOCA_ERROR_BAD_STATE the task was not submitted
 */
doca_error_t doca_task_get_status(const struct doca_task *task);

/** Frees a task. One that is submitted and not done is not freed; the log reports it. */
void doca_task_free(struct doca_task *task);

#ifdef __cplusplus
}
#endif

#endif
