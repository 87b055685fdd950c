/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Contexts and progress engines. An engine has a list of its contexts. While it calls the progress
 * functions, a callback may disconnect any context, so the engine keeps the next one in a member
 * that disconnecting corrects.
 */
#include "qp/doca/ctx.h"

#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"

struct doca_pe {
	struct doca_ctx *first;
	struct doca_ctx *next; /* context that progress visits next */
	bool running;	       /* in doca_pe_progress() */
};

static const char *state_name(enum doca_ctx_states state)
{
	static const char *const names[] = { "idle", "starting", "running", "stopping" };

	return names[state];
}

/* ---- contexts ---- */

void gdk_ctx_init(struct doca_ctx *ctx, const struct gdk_ctx_ops *ops, struct doca_dev *dev)
{
	memset(ctx, 0, sizeof(*ctx));
	ctx->ops = ops;
	ctx->dev = dev;
}

doca_error_t gdk_ctx_must_be_idle(const struct doca_ctx *ctx, const char *func)
{
	if (ctx->state == DOCA_CTX_STATE_IDLE)
		return DOCA_SUCCESS;
	gdk_err("%s: the %s is %s (expected idle); call doca_ctx_stop() first", func,
		ctx->ops->what, state_name(ctx->state));
	return DOCA_ERROR_BAD_STATE;
}

static void disconnect(struct doca_ctx *ctx)
{
	struct doca_pe *pe = ctx->pe;
	struct doca_ctx **at;

	if (!pe)
		return;
	for (at = &pe->first; *at != ctx; at = &(*at)->next)
		;
	*at = ctx->next;
	if (pe->next == ctx)
		pe->next = ctx->next;
	ctx->pe = NULL;
}

doca_error_t gdk_ctx_fini(struct doca_ctx *ctx)
{
	doca_error_t err = gdk_ctx_must_be_idle(ctx, "destruction");

	if (!err)
		disconnect(ctx);
	return err;
}

void gdk_ctx_started(struct doca_ctx *ctx)
{
	if (ctx->state == GDK_CTX_STATE_STARTING)
		ctx->state = GDK_CTX_STATE_RUNNING;
}

void gdk_ctx_stopped(struct doca_ctx *ctx)
{
	ctx->state = DOCA_CTX_STATE_IDLE;
}

doca_error_t doca_ctx_start(struct doca_ctx *ctx)
{
	doca_error_t err;

	GDK_CHECK_PTR(ctx);
	err = gdk_ctx_must_be_idle(ctx, __func__);
	if (err)
		return err;
	ctx->state = GDK_CTX_STATE_STARTING;
	err = ctx->ops->start(ctx);
	if (!err)
		gdk_ctx_started(ctx);
	else if (err != DOCA_ERROR_IN_PROGRESS)
		ctx->state = DOCA_CTX_STATE_IDLE;
	return err;
}

doca_error_t doca_ctx_stop(struct doca_ctx *ctx)
{
	enum doca_ctx_states before;
	doca_error_t err;

	GDK_CHECK_PTR(ctx);
	before = ctx->state;
	if (before == DOCA_CTX_STATE_IDLE) {
		gdk_err("%s: the %s is idle (expected running); call doca_ctx_start() first",
			__func__, ctx->ops->what);
		return DOCA_ERROR_BAD_STATE;
	}
	if (before == DOCA_CTX_STATE_STOPPING)
		return DOCA_ERROR_IN_PROGRESS;
	ctx->state = DOCA_CTX_STATE_STOPPING;
	err = ctx->ops->stop(ctx);
	if (!err)
		gdk_ctx_stopped(ctx);
	else if (err != DOCA_ERROR_IN_PROGRESS)
		ctx->state = before;
	return err;
}

doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state)
{
	GDK_CHECK_PTR(ctx);
	GDK_CHECK_PTR(state);
	*state = ctx->state;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data)
{
	GDK_CHECK_PTR(ctx);
	ctx->user_data = user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data)
{
	GDK_CHECK_PTR(ctx);
	GDK_CHECK_PTR(user_data);
	*user_data = ctx->user_data;
	return DOCA_SUCCESS;
}

doca_error_t doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu_dev)
{
	doca_error_t err;

	GDK_CHECK_PTR(ctx);
	GDK_CHECK_PTR(gpu_dev);
	err = gdk_ctx_must_be_idle(ctx, __func__);
	if (err)
		return err;
	if (!ctx->ops->on_gpu) {
		gdk_err("%s: kernels of a GPU cannot drive a %s", __func__, ctx->ops->what);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	ctx->gpu = gpu_dev;
	return DOCA_SUCCESS;
}

/* ---- progress engines ---- */

doca_error_t doca_pe_create(struct doca_pe **pe)
{
	struct doca_pe *new;

	GDK_CHECK_PTR(pe);
	new = calloc(1, sizeof(*new));
	if (!new) {
		gdk_err("no memory for a progress engine");
		return DOCA_ERROR_NO_MEMORY;
	}
	*pe = new;
	return DOCA_SUCCESS;
}

doca_error_t doca_pe_destroy(struct doca_pe *pe)
{
	struct doca_ctx *ctx;

	GDK_CHECK_PTR(pe);
	if (pe->running) {
		gdk_err("progress engine %p: cannot destroy it in one of its callbacks",
			(void *)pe);
		return DOCA_ERROR_IN_USE;
	}
	for (ctx = pe->first; ctx; ctx = ctx->next) {
		if (ctx->state == DOCA_CTX_STATE_IDLE)
			continue;
		gdk_err("progress engine %p: cannot destroy it: a connected %s is %s; stop it "
			"first",
			(void *)pe, ctx->ops->what, state_name(ctx->state));
		return DOCA_ERROR_IN_USE;
	}
	while (pe->first)
		disconnect(pe->first);
	free(pe);
	return DOCA_SUCCESS;
}

doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx)
{
	doca_error_t err;

	GDK_CHECK_PTR(pe);
	GDK_CHECK_PTR(ctx);
	err = gdk_ctx_must_be_idle(ctx, __func__);
	if (err)
		return err;
	if (ctx->pe) {
		gdk_err("%s: the %s is connected to progress engine %p already", __func__,
			ctx->ops->what, (void *)ctx->pe);
		return DOCA_ERROR_ALREADY_EXIST;
	}
	ctx->pe = pe;
	ctx->next = pe->first;
	pe->first = ctx;
	return DOCA_SUCCESS;
}

uint8_t doca_pe_progress(struct doca_pe *pe)
{
	struct doca_ctx *ctx;
	uint8_t any = 0;

	GDK_CHECK_PTR_OR(0, pe);
	if (pe->running) {
		gdk_err("progress engine %p: a callback of the engine must not call %s", (void *)pe,
			__func__);
		return 0;
	}
	pe->running = true;
	for (ctx = pe->first; ctx; ctx = pe->next) {
		pe->next = ctx->next;
		if (ctx->state != DOCA_CTX_STATE_IDLE && ctx->ops->progress &&
		    ctx->ops->progress(ctx))
			any = 1;
	}
	pe->running = false;
	return any;
}
