/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Firmware commands through libmlx5's DEVX calls. The callers do not read status and syndrome of
 * a command: devx.c does. It logs a failed command once, with the names of opcode, status and
 * object and the syndrome, and returns a DOCA error, which callers return without logging it
 * again.
 * The layouts of the commands are in prm.h.
 */
#ifndef GDK_DEVX_H
#define GDK_DEVX_H

#include <infiniband/mlx5dv.h>

#include "host/doca_error.h"
#include "core/nic/prm.h"

/* object names the object in log messages, e.g. "mlx5_0: CQ of 64 entries" or "QP 0x1f". in and
 * out are command boxes in PRM layout; in holds the opcode. *obj is set on success only. */
doca_error_t gdk_devx_create(struct ibv_context *ctx, const char *object, const void *in,
			     size_t inlen, void *out, size_t outlen, struct mlx5dv_devx_obj **obj);
doca_error_t gdk_devx_modify(struct ibv_context *ctx, struct mlx5dv_devx_obj *obj,
			     const char *object, const void *in, size_t inlen, void *out,
			     size_t outlen);
doca_error_t gdk_devx_query(struct ibv_context *ctx, struct mlx5dv_devx_obj *obj,
			    const char *object, const void *in, size_t inlen, void *out,
			    size_t outlen);
doca_error_t gdk_devx_cmd(struct ibv_context *ctx, const char *object, const void *in, size_t inlen,
			  void *out, size_t outlen);
/* As gdk_devx_cmd, for a command that some devices lack. If the firmware refuses the command or
 * the driver does not support it, the function logs this at level INFO, keeps the thread's last
 * command error unchanged and returns NOT_SUPPORTED. */
doca_error_t gdk_devx_try_cmd(struct ibv_context *ctx, const char *object, const void *in,
			      size_t inlen, void *out, size_t outlen);
/* opcode, kind (e.g. "CQ") and number are used for logging only. */
doca_error_t gdk_devx_destroy(struct ibv_context *ctx, struct mlx5dv_devx_obj *obj, uint32_t opcode,
			      const char *kind, uint32_t number);

#endif
