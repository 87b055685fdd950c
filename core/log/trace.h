/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The command trace: GDAKI_TRACE_CMDS=FILE appends each firmware command of this library and
 * its result to FILE, with the versions, umems, UARs and event queues that are needed to compare
 * two traces. GDAKI_TRACE_CMDS_MASK=1 hides addresses, GIDs, MACs, keys, device names and the
 * folder of the DOCA SDK. Each record is written with one write(). The format:
 *
 *	start pid 71 seq 0 t 0.000000 version 1 time 2026-01-31T12:00:00Z masked 0 libmlx5 ...
 *	cmd pid 71 seq 3 t 0.001812 dev mlx5_0 CREATE_CQ 0x400 op_mod 0x0 object CQ of 64 entries
 *	 in 272
 *	  0000: 04000000 00000000 00000000 00000000
 *	 out 16
 *	  0000: 00000000 00000000 00000411 00000000
 *	 end 3 status 0x0 syndrome 0x0 errno 0 us 41
 *
 * A record begins in column 0 with its kind; t is seconds since the process began to trace.
 * A row begins with its byte offset in hex; rows of zeros are omitted. A masked byte is "**";
 * a masked field that is zero is shown as zero. A record of another kind (device, umem, uar,
 * eqn, events, sdk) is one line of names and values. A masked address keeps its low 16 bits
 * ("**+0x5800"). The addr of a umem of a dmabuf is the offset in the dmabuf and is never
 * masked. A command that the driver builds (DESTROY_*) has no boxes.
 *
 * The file is created with mode 0600. A setuid program ignores both variables. The functions
 * write nothing if the trace is off.
 */
#ifndef GDK_TRACE_H
#define GDK_TRACE_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the trace is on. The first call in the process opens the file. */
bool gdk_trace_on(void);
/* Time in ns for gdk_trace_cmd.sent. 0: the trace is off. */
uint64_t gdk_trace_clock(void);

struct gdk_trace_cmd {
	struct ibv_context *ctx;
	const char *name, *object;
	uint32_t opcode;
	const void *in, *out; /* NULL: built by the driver, not known here */
	size_t inlen, outlen;
	int sys_err;   /* errno value; 0: the driver reported no error */
	uint64_t sent; /* gdk_trace_clock() before the call */
};

void gdk_trace_command(const struct gdk_trace_cmd *cmd);

void gdk_trace_device(struct ibv_context *ctx, const struct ibv_device_attr *attr);
/* umem is NULL if the registration failed with sys_err. dmabuf_fd is -1 if the memory was
 * registered by its address. */
void gdk_trace_umem(struct ibv_context *ctx, const struct mlx5dv_devx_umem_in *in, int dmabuf_fd,
		    const struct mlx5dv_devx_umem *umem, int sys_err);
void gdk_trace_uar(struct ibv_context *ctx, const char *type, const struct mlx5dv_devx_uar *uar,
		   int sys_err);
void gdk_trace_eqn(struct ibv_context *ctx, uint32_t vector, uint32_t eqn, int sys_err);
/* Records a subscription to event types of the CQ (is_cq) or QP with this number. */
void gdk_trace_events(struct ibv_context *ctx, bool is_cq, uint32_t number, const uint16_t *types,
		      size_t num_types, int sys_err);
/* Records that the DOCA SDK in folder sends commands that the trace does not contain. */
void gdk_trace_sdk(const char *folder);

#endif
