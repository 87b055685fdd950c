/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Private definitions of a DMA object and of its tasks. */
#ifndef GDK_DMA_PRIV_H
#define GDK_DMA_PRIV_H

#include "qp/dma/queue.h"
#include "qp/doca/task.h"

struct doca_dma_task_memcpy {
	struct doca_task task;
	struct doca_dma *dma;
	const struct doca_buf *src;
	struct doca_buf *dst;
	union doca_data user_data;
	uint64_t ticket;		     /* of the last request, if submitted */
	size_t len;			     /* bytes, if submitted */
	struct doca_dma_task_memcpy *next;   /* in the list of submitted tasks */
	struct doca_dma_task_memcpy *others; /* in the list of all tasks */
};

struct doca_dma {
	struct doca_ctx ctx;
	struct doca_dev *dev;
	enum gdk_dma_engine want;
	uint32_t requests;
	doca_dma_task_memcpy_completion_cb_t done, failed; /* NULL: not configured */
	uint32_t num_tasks, used_tasks;
	struct doca_dma_task_memcpy *tasks;	    /* all tasks */
	struct doca_dma_task_memcpy *first, **last; /* submitted, in the order of their tickets */
	doca_gpu_t *cpu; /* the GPU "host" of an object that the CPU drives, otherwise NULL */
	struct gdk_dma_queue queue;
	bool logged; /* the error that ended the queue was logged */
};

/* Returns BAD_STATE, with a message, unless the context runs. func: the caller. */
doca_error_t gdk_dma_must_run(const struct doca_dma *dma, const char *func);

/* task.c */
/* Calls the callbacks of tasks that are done. Returns whether there were any. *exists: false if a
 * callback may have destroyed the object. */
bool gdk_dma_tasks_progress(struct doca_dma *dma, bool *exists);
void gdk_dma_tasks_free(struct doca_dma *dma);

#endif
