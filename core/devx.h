/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Firmware commands through libmlx5's DEVX calls. This is the only place that
 * reads a command's status and syndrome: a refused command is logged once,
 * with opcode name, status name, syndrome and the object's name, and becomes
 * a DOCA error. Callers just return what they get.
 */
#ifndef GDK_DEVX_H
#define GDK_DEVX_H

#include <infiniband/mlx5dv.h>

#include "host/doca_error.h"
#include "prm.h"

/* object: for the log, such as "mlx5_0: CQ of 64 entries" or "QP 0x1f". in/out are command boxes in
 * PRM layout; the opcode is read from in. *obj is set on success only. */
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
/* For a command that not every device has: if the firmware refuses it, or the driver does not
 * support it, that is logged at INFO, does not become the thread's last command error, and
 * gives NOT_SUPPORTED. Other errors of the driver are as those of gdk_devx_cmd. */
doca_error_t gdk_devx_try_cmd(struct ibv_context *ctx, const char *object, const void *in,
			      size_t inlen, void *out, size_t outlen);
/* opcode, kind ("CQ") and number: for the log. */
doca_error_t gdk_devx_destroy(struct ibv_context *ctx, struct mlx5dv_devx_obj *obj, uint32_t opcode,
			      const char *kind, uint32_t number);

#endif
