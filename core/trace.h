/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The command trace: GDAKI_TRACE_CMDS=FILE appends each firmware command and its answer to
 * FILE, with what a comparison of two traces needs besides. GDAKI_TRACE_CMDS_MASK=1 replaces
 * addresses, GIDs, MACs, keys and device names. The format, one record in one write:
 *
 *	start pid 71 seq 0 t 0.000000 version 1 time 2026-01-31T12:00:00Z libmlx5 ... libibverbs ...
 *	cmd pid 71 seq 3 t 0.001812 dev mlx5_0 CREATE_CQ 0x400 op_mod 0x0 object CQ of 64 entries
 *	 in 272
 *	  0000: 04000000 00000000 00000000 00000000
 *	 out 16
 *	  0000: 00000000 00000000 00000411 00000000
 *	 end 3 status 0x0 syndrome 0x0 errno 0 us 41
 *
 * A record begins in column 0 with its kind; t is seconds since the process began to trace.
 * Offsets of rows are bytes in hex; rows of zeros are left out. A masked byte is "**"; a masked
 * field that is zero stays zero. Other kinds are one line of "name value" pairs: device, umem,
 * uar, eqn, events, sdk. A masked address keeps its low 16 bits ("**+0x5800"); the addr of a umem
 * by dmabuf is the offset in the dmabuf, never masked. A command that the driver builds
 * (DESTROY_*) has no boxes.
 * The file is created with mode 0600; both variables are ignored in a setuid program.
 * Every function returns at once if the trace is off.
 */
#ifndef GDK_TRACE_H
#define GDK_TRACE_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens the file at the first call in the process. */
bool gdk_trace_on(void);
/* Clock for gdk_trace_command: 0 if the trace is off. */
uint64_t gdk_trace_clock(void);

struct gdk_trace_cmd {
	struct ibv_context *ctx;
	const char *name, *object;
	uint32_t opcode;
	const void *in, *out; /* NULL: the driver has them */
	size_t inlen, outlen;
	int sys_err;   /* errno, 0 if the command reached the firmware */
	uint64_t sent; /* gdk_trace_clock() before the call */
};

void gdk_trace_command(const struct gdk_trace_cmd *cmd);

void gdk_trace_device(struct ibv_context *ctx, const struct ibv_device_attr *attr);
/* umem NULL: the registration failed with sys_err. dmabuf_fd -1: registered by address. */
void gdk_trace_umem(struct ibv_context *ctx, const struct mlx5dv_devx_umem_in *in, int dmabuf_fd,
		    const struct mlx5dv_devx_umem *umem, int sys_err);
void gdk_trace_uar(struct ibv_context *ctx, const char *type, const struct mlx5dv_devx_uar *uar,
		   int sys_err);
void gdk_trace_eqn(struct ibv_context *ctx, uint32_t vector, uint32_t eqn, int sys_err);
/* A subscription to event types of object number; is_cq, otherwise of a QP. */
void gdk_trace_events(struct ibv_context *ctx, bool is_cq, uint32_t number, const uint16_t *types,
		      size_t num_types, int sys_err);
/* The DOCA SDK in folder sends the commands of its objects; they do not appear here. */
void gdk_trace_sdk(const char *folder);

#endif
