/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Contexts and progress engines of the SDK's interface, with contexts whose operations this test
 * controls: states, calls in a wrong state, starts and stops that take time, callbacks that
 * destroy contexts, and user data.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/doca/ctx.h"
#include "../lib/capture.h"
#include "../lib/failalloc.h"
#include "doca_base_rig.h"

struct work {
	struct doca_ctx ctx;
	doca_error_t start, stop; /* what the operations return */
	int events, calls;
	struct work *destroys; /* destroyed in the callback */
	struct doca_pe *destroy_pe, *progress_pe;
};

static struct work *work_of(struct doca_ctx *ctx)
{
	return (struct work *)ctx; /* the first member */
}

static doca_error_t start(struct doca_ctx *ctx)
{
	return work_of(ctx)->start;
}

static doca_error_t stop(struct doca_ctx *ctx)
{
	return work_of(ctx)->stop;
}

static bool progress(struct doca_ctx *ctx)
{
	struct work *w = work_of(ctx);

	w->calls++;
	if (!w->events)
		return false;
	w->events--;
	gdk_ctx_started(ctx);
	if (ctx->state == DOCA_CTX_STATE_STOPPING)
		gdk_ctx_stopped(ctx);
	if (w->destroys) {
		cr_expect_eq(gdk_ctx_fini(&w->destroys->ctx), DOCA_SUCCESS);
		cr_expect_null(w->destroys->ctx.pe);
		memset(w->destroys, 0xa5, sizeof(*w->destroys)); /* as if it were freed */
	}
	w->destroys = NULL;
	if (w->destroy_pe)
		REFUSED(DOCA_ERROR_IN_USE, "in one of its callbacks",
			doca_pe_destroy(w->destroy_pe));
	if (w->progress_pe)
		cr_expect_eq(doca_pe_progress(w->progress_pe), 0);
	return true;
}

static const struct gdk_ctx_ops ops = {
	.what = "test context", .on_gpu = true, .start = start, .stop = stop, .progress = progress
};
static const struct gdk_ctx_ops cpu_only = { .what = "test context", .start = start, .stop = stop };

static void init(struct work *w)
{
	memset(w, 0, sizeof(*w));
	gdk_ctx_init(&w->ctx, &ops, NULL);
}

static enum doca_ctx_states state(struct work *w)
{
	enum doca_ctx_states s = (enum doca_ctx_states)77;

	cr_expect_eq(doca_ctx_get_state(&w->ctx, &s), DOCA_SUCCESS);
	return s;
}

Test(doca_ctx, starts_and_stops)
{
	struct work w;

	init(&w);
	cr_expect_eq(state(&w), DOCA_CTX_STATE_IDLE);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(doca_ctx_start(&w.ctx), DOCA_SUCCESS);
		cr_expect_eq(state(&w), GDK_CTX_STATE_RUNNING);
		cr_expect_eq(doca_ctx_stop(&w.ctx), DOCA_SUCCESS);
		cr_expect_eq(state(&w), DOCA_CTX_STATE_IDLE);
	}
	cr_expect_eq(gdk_ctx_fini(&w.ctx), DOCA_SUCCESS);
}

Test(doca_ctx, calls_in_a_wrong_state_are_refused)
{
	struct doca_gpu *gpu = (struct doca_gpu *)&ops;
	struct doca_pe *pe;
	struct work w;

	init(&w);
	cr_assert_eq(doca_pe_create(&pe), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "idle (expected running)", doca_ctx_stop(&w.ctx));
	cr_assert_eq(doca_pe_connect_ctx(pe, &w.ctx), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_ALREADY_EXIST, "connected to progress engine",
		doca_pe_connect_ctx(pe, &w.ctx));
	cr_assert_eq(doca_ctx_start(&w.ctx), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "running (expected idle)", doca_ctx_start(&w.ctx));
	REFUSED(DOCA_ERROR_BAD_STATE, "running (expected idle)",
		doca_ctx_set_datapath_on_gpu(&w.ctx, gpu));
	REFUSED(DOCA_ERROR_BAD_STATE, "running (expected idle)", doca_pe_connect_ctx(pe, &w.ctx));
	REFUSED(DOCA_ERROR_BAD_STATE, "running (expected idle)", gdk_ctx_fini(&w.ctx));
	REFUSED(DOCA_ERROR_IN_USE, "a connected test context is running", doca_pe_destroy(pe));
	cr_expect_eq(state(&w), GDK_CTX_STATE_RUNNING);
	cr_expect_eq(doca_ctx_stop(&w.ctx), DOCA_SUCCESS);
	cr_expect_eq(doca_pe_destroy(pe), DOCA_SUCCESS, "an idle context prevents it");
	cr_expect_null(w.ctx.pe);
	cr_expect_eq(gdk_ctx_fini(&w.ctx), DOCA_SUCCESS);
}

Test(doca_ctx, a_start_or_stop_that_fails_leaves_the_state)
{
	struct work w;

	init(&w);
	w.start = DOCA_ERROR_NO_MEMORY;
	cr_expect_eq(doca_ctx_start(&w.ctx), DOCA_ERROR_NO_MEMORY);
	cr_expect_eq(state(&w), DOCA_CTX_STATE_IDLE);
	w.start = DOCA_SUCCESS;
	cr_expect_eq(doca_ctx_start(&w.ctx), DOCA_SUCCESS);
	w.stop = DOCA_ERROR_DRIVER;
	cr_expect_eq(doca_ctx_stop(&w.ctx), DOCA_ERROR_DRIVER);
	cr_expect_eq(state(&w), GDK_CTX_STATE_RUNNING);
}

Test(doca_ctx, progress_ends_a_start_and_a_stop)
{
	struct doca_pe *pe;
	struct work w;

	init(&w);
	cr_assert_eq(doca_pe_create(&pe), DOCA_SUCCESS);
	cr_assert_eq(doca_pe_connect_ctx(pe, &w.ctx), DOCA_SUCCESS);
	cr_expect_eq(doca_pe_progress(pe), 0);
	cr_expect_eq(w.calls, 0, "an idle context was called");
	w.start = w.stop = DOCA_ERROR_IN_PROGRESS;
	cr_expect_eq(doca_ctx_start(&w.ctx), DOCA_ERROR_IN_PROGRESS);
	cr_expect_eq(state(&w), GDK_CTX_STATE_STARTING);
	cr_expect_eq(doca_pe_progress(pe), 0);
	w.events = 1;
	cr_expect_eq(doca_pe_progress(pe), 1);
	cr_expect_eq(state(&w), GDK_CTX_STATE_RUNNING);
	cr_expect_eq(doca_ctx_stop(&w.ctx), DOCA_ERROR_IN_PROGRESS);
	cr_expect_eq(doca_ctx_stop(&w.ctx), DOCA_ERROR_IN_PROGRESS, "a second stop");
	cr_expect_eq(state(&w), DOCA_CTX_STATE_STOPPING);
	REFUSED(DOCA_ERROR_IN_USE, "is stopping", doca_pe_destroy(pe));
	w.events = 1;
	cr_expect_eq(doca_pe_progress(pe), 1);
	cr_expect_eq(state(&w), DOCA_CTX_STATE_IDLE);
	cr_expect_eq(doca_pe_destroy(pe), DOCA_SUCCESS);
}

Test(doca_ctx, a_callback_may_destroy_other_contexts_but_not_the_engine)
{
	struct work w[3];
	struct doca_pe *pe;

	cr_assert_eq(doca_pe_create(&pe), DOCA_SUCCESS);
	for (int i = 0; i < 3; i++) {
		init(&w[i]);
		cr_assert_eq(doca_pe_connect_ctx(pe, &w[i].ctx), DOCA_SUCCESS);
	}
	cr_assert_eq(doca_ctx_start(&w[2].ctx), DOCA_SUCCESS); /* called first */
	cr_assert_eq(doca_ctx_start(&w[0].ctx), DOCA_SUCCESS);
	w[2].events = w[0].events = 1;
	w[2].destroys = &w[1];
	w[2].destroy_pe = w[2].progress_pe = pe;
	cr_expect_eq(doca_pe_progress(pe), 1);
	cr_expect_eq(w[0].calls, 1, "the context behind the destroyed one was not called");
	cr_expect_eq(doca_ctx_stop(&w[0].ctx), DOCA_SUCCESS);
	cr_expect_eq(doca_ctx_stop(&w[2].ctx), DOCA_SUCCESS);
	cr_expect_eq(doca_pe_destroy(pe), DOCA_SUCCESS);
}

Test(doca_ctx, user_data_and_gpu)
{
	struct doca_gpu *gpu = (struct doca_gpu *)&ops;
	union doca_data data = { .u64 = 1 };
	struct work w;

	init(&w);
	cr_expect_eq(doca_ctx_get_user_data(&w.ctx, &data), DOCA_SUCCESS);
	cr_expect_eq(data.u64, 0);
	data.ptr = &w;
	cr_expect_eq(doca_ctx_set_user_data(&w.ctx, data), DOCA_SUCCESS);
	data.ptr = NULL;
	cr_expect_eq(doca_ctx_get_user_data(&w.ctx, &data), DOCA_SUCCESS);
	cr_expect_eq(data.ptr, &w);
	cr_expect_eq(doca_ctx_set_datapath_on_gpu(&w.ctx, gpu), DOCA_SUCCESS);
	cr_expect_eq(w.ctx.gpu, gpu);
	gdk_ctx_init(&w.ctx, &cpu_only, NULL);
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "cannot drive a test context",
		doca_ctx_set_datapath_on_gpu(&w.ctx, gpu));
}

Test(doca_ctx, null_and_no_memory)
{
	struct doca_pe *pe = NULL;
	doca_error_t err;

	REFUSED(DOCA_ERROR_INVALID_VALUE, "ctx NULL", doca_ctx_start(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "ctx NULL", doca_ctx_stop(NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "pe NULL", doca_pe_connect_ctx(NULL, NULL));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "pe NULL", doca_pe_destroy(NULL));
	REFUSED(0, "pe NULL", (doca_error_t)doca_pe_progress(NULL));
	if (!FAILALLOC_WORKS)
		return;
	failalloc_arm(1);
	err = doca_pe_create(&pe);
	cr_expect(failalloc_disarm());
	cr_expect_eq(err, DOCA_ERROR_NO_MEMORY);
	cr_expect_null(pe);
}
