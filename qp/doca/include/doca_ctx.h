/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Contexts: the common part of objects that work (RDMA, DMA and Ethernet queues). Return values
 * and threads: see doca_error.h.
 *
 * An object is configured while its context is idle, works while it runs, and may be destroyed when
 * it is idle again.
 */
#ifndef GDK_SDK_DOCA_CTX_H
#define GDK_SDK_DOCA_CTX_H

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_ctx; /* the context of an object */
struct doca_gpu;

/** States of a context. */
enum doca_ctx_states {
	DOCA_CTX_STATE_IDLE = 0,     /**< not started, or stopped */
	GDK_CTX_STATE_STARTING = 1,  /**< the start has not ended yet */
	GDK_CTX_STATE_RUNNING = 2,   /**< started */
	DOCA_CTX_STATE_STOPPING = 3, /**< the stop has not ended yet */
};

/**
 * Starts an idle context.
 *
 * @retval DOCA_ERROR_IN_PROGRESS call doca_pe_progress() until the context runs
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 * Other errors are those of the object; the context is then idle.
 */
doca_error_t doca_ctx_start(struct doca_ctx *ctx);

/**
 * Stops a context.
 *
 * @retval DOCA_ERROR_IN_PROGRESS call doca_pe_progress() until the context is idle
 * @retval DOCA_ERROR_BAD_STATE the context is idle
 * Other errors are those of the object; the context then runs on.
 */
doca_error_t doca_ctx_stop(struct doca_ctx *ctx);

/** Returns the state of a context. */
doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state);

/** Stores a value that callbacks get, in any state. */
doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);

/** Returns the value of doca_ctx_set_user_data(), at first 0. */
doca_error_t doca_ctx_get_user_data(const struct doca_ctx *ctx, union doca_data *user_data);

/**
 * Selects that kernels of a GPU drive the object. The GPU must stay open until the object is
 * destroyed.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 * @retval DOCA_ERROR_NOT_SUPPORTED a GPU cannot drive this kind of object
 */
doca_error_t doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu_dev);

#ifdef __cplusplus
}
#endif

#endif
