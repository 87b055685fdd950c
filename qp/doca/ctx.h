/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of a context. Each kind of object (RDMA, DMA, ...) contains one, and gives the
 * operations that start it, stop it and handle its events. ctx.c checks and changes the state.
 */
#ifndef GDK_DOCA_CTX_PRIV_H
#define GDK_DOCA_CTX_PRIV_H

#include "qp/doca/dev.h"

#include "doca_ctx.h"
#include "doca_pe.h"

/* The operations log the causes of their errors. */
struct gdk_ctx_ops {
	const char *what; /* for messages, for example "DMA context" */
	bool on_gpu;	  /* kernels can drive the object */
	/* Returns SUCCESS; or IN_PROGRESS, if progress later calls gdk_ctx_started(); or an error,
	 * which leaves the context idle. */
	doca_error_t (*start)(struct doca_ctx *ctx);
	/* Returns SUCCESS; or IN_PROGRESS, if progress later calls gdk_ctx_stopped(); or an error,
	 * which leaves the context running. */
	doca_error_t (*stop)(struct doca_ctx *ctx);
	/* Handles events. Returns whether there were any. Called unless the context is idle; may be
	 * NULL. It may stop and destroy contexts. */
	bool (*progress)(struct doca_ctx *ctx);
};

struct doca_ctx {
	const struct gdk_ctx_ops *ops;
	struct doca_dev *dev;
	struct doca_gpu *gpu; /* NULL: the CPU drives the object */
	enum doca_ctx_states state;
	union doca_data user_data;
	struct doca_pe *pe;    /* NULL: not connected */
	struct doca_ctx *next; /* in the list of pe */
};

void gdk_ctx_init(struct doca_ctx *ctx, const struct gdk_ctx_ops *ops, struct doca_dev *dev);
/* Disconnects a context whose object is destroyed. BAD_STATE: it is not idle. */
doca_error_t gdk_ctx_fini(struct doca_ctx *ctx);

/* Returns BAD_STATE, with a message, unless the context is idle. func: the caller, which changes a
 * setting. */
doca_error_t gdk_ctx_must_be_idle(const struct doca_ctx *ctx, const char *func);

/* End a start or a stop that was in progress. */
void gdk_ctx_started(struct doca_ctx *ctx);
void gdk_ctx_stopped(struct doca_ctx *ctx);

#endif
