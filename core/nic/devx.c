/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends firmware commands and checks the results. A command fails if the kernel does not
 * pass it on (errno), or if the firmware returns a status other than zero. This file logs each
 * failure in one line. It keeps a failure as the thread's last command error, except of destroy
 * commands and of commands that some devices lack. It also passes each command to the command
 * trace (trace.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/nic/devx.h"
#include "host/gdaki_core.h"
#include "core/log/log.h"
#include "core/log/trace.h"
#include "core/util.h"

struct number_name {
	uint32_t number;
	const char *name;
};

#define OPCODE(name, opcode) { opcode, #name },
static const struct number_name opcodes[] = { GDK_COMMANDS(OPCODE) };

/*
 * Status codes of PRM, "Command interface", with their cause where it is known. A ConnectX-4
 * without free QPs also returned 0x05 to CREATE_QP (syndrome 0x65b500, firmware 12.28.2006;
 * linux-rdma list, 27 June 2022).
 */
static const struct number_name statuses[] = {
	{ 0x00, "OK" },
	{ 0x01, "internal error" },
	{ 0x02, "bad operation: the firmware does not support this command for this object" },
	{ 0x03, "bad parameter: a field is out of range, or the device lacks the feature" },
	{ 0x04, "bad system state: the device is being reset or has failed" },
	{ 0x05, "bad resource: an object named in the command does not exist, or no object of "
		"the kind to create is left" },
	{ 0x06, "resource busy: another object still uses this one" },
	{ 0x08, "limit exceeded: the device has no more objects of this kind" },
	{ 0x09, "bad resource state" },
	{ 0x0a, "bad index" },
	{ 0x0f, "no resources: the device's memory or objects are exhausted" },
	{ 0x10, "bad QP state: the QP is not in the state that the transition starts from" },
	{ 0x30, "bad packet" },
	{ 0x40, "bad size: CQEs are outstanding" },
	{ 0x50, "bad input length" },
	{ 0x51, "bad output length" },
};

static const char *name_of(const struct number_name *names, size_t count, uint32_t number)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (names[i].number == number)
			return names[i].name;
	return "unknown";
}

static const char *opcode_name(uint32_t opcode)
{
	return name_of(opcodes, GDK_ARRAY_SIZE(opcodes), opcode);
}

/* The last failed command of this thread, for gdk_get_command_error. */
static _Thread_local struct gdk_command_error last;

doca_error_t gdk_get_command_error(struct gdk_command_error *error)
{
	GDK_CHECK_PTR(error);
	*error = last;
	return DOCA_SUCCESS;
}

/* Logs and stores a failed command and returns its DOCA error. sys_err is an errno value; out is
 * the output box, all zero if the command did not reach the firmware. */
static doca_error_t refused(const char *object, const void *in, const void *out, int sys_err)
{
	last = (struct gdk_command_error){
		.opcode = (uint32_t)prm_get(in, PRM_CMD_OPCODE),
		.status = (uint8_t)prm_get(out, PRM_CMD_STATUS),
		.syndrome = (uint32_t)prm_get(out, PRM_CMD_SYNDROME),
		.sys_err = sys_err,
	};
	last.command = opcode_name(last.opcode);
	last.status_text = name_of(statuses, GDK_ARRAY_SIZE(statuses), last.status);
	snprintf(last.object, sizeof(last.object), "%s", object);
	if (last.status) {
		gdk_err("%s: firmware refused %s (0x%x): status 0x%x (%s), syndrome 0x%08x", object,
			last.command, last.opcode, last.status, last.status_text, last.syndrome);
		return DOCA_ERROR_DRIVER;
	}
	gdk_err("%s: %s (0x%x) did not reach the firmware: %s", object, last.command, last.opcode,
		sys_err ? strerror(sys_err) : "no reason given");
	switch (sys_err) {
	case ENOMEM:
		return DOCA_ERROR_NO_MEMORY;
	case EOPNOTSUPP:
	case ENOSYS:
		return DOCA_ERROR_NOT_SUPPORTED;
	case EPERM:
	case EACCES:
		return DOCA_ERROR_NOT_PERMITTED;
	default:
		return DOCA_ERROR_DRIVER;
	}
}

/* A command in progress, with all that the trace and the log need. */
struct command {
	struct ibv_context *ctx;
	const char *object;
	const void *in;
	size_t inlen;
	void *out;
	size_t outlen;
	uint64_t sent;
};

static struct command begin(struct ibv_context *ctx, const char *object, const void *in,
			    size_t inlen, void *out, size_t outlen)
{
	struct command c = { ctx, object, in, inlen, out, outlen, gdk_trace_clock() };

	memset(out, 0, outlen);
	errno = 0;
	return c;
}

static void trace(const struct command *c, int sys_err)
{
	uint32_t opcode = (uint32_t)prm_get(c->in, PRM_CMD_OPCODE);

	gdk_trace_command(&(struct gdk_trace_cmd){
		.ctx = c->ctx,
		.name = opcode_name(opcode),
		.object = c->object,
		.opcode = opcode,
		.in = c->in,
		.inlen = c->inlen,
		.out = c->out,
		.outlen = c->outlen,
		.sys_err = sys_err,
		.sent = c->sent,
	});
}

/* Converts a return value of libmlx5 to 0 or an errno value. Some versions of libmlx5 return an
 * errno value, others return -1 and set errno. */
static int driver_error(int ret)
{
	return ret < 0 ? (errno ? errno : EIO) : ret;
}

/* Traces a command and returns its result. Some kernels return 0 although the firmware refused the
 * command, so the status is checked, too. */
static doca_error_t judge(int ret, const struct command *c)
{
	int sys_err = driver_error(ret);

	if (c->sent)
		trace(c, sys_err);
	if (!sys_err && !prm_get(c->out, PRM_CMD_STATUS))
		return DOCA_SUCCESS;
	return refused(c->object, c->in, c->out, sys_err);
}

doca_error_t gdk_devx_create(struct ibv_context *ctx, const char *object, const void *in,
			     size_t inlen, void *out, size_t outlen, struct mlx5dv_devx_obj **obj)
{
	struct command c = begin(ctx, object, in, inlen, out, outlen);
	struct mlx5dv_devx_obj *created;
	int sys_err;

	created = mlx5dv_devx_obj_create(ctx, in, inlen, out, outlen);
	sys_err = created ? 0 : errno;
	if (c.sent)
		trace(&c, sys_err);
	if (!created)
		return refused(object, in, out, sys_err);
	*obj = created;
	return DOCA_SUCCESS;
}

doca_error_t gdk_devx_modify(struct ibv_context *ctx, struct mlx5dv_devx_obj *obj,
			     const char *object, const void *in, size_t inlen, void *out,
			     size_t outlen)
{
	struct command c = begin(ctx, object, in, inlen, out, outlen);

	return judge(mlx5dv_devx_obj_modify(obj, in, inlen, out, outlen), &c);
}

doca_error_t gdk_devx_query(struct ibv_context *ctx, struct mlx5dv_devx_obj *obj,
			    const char *object, const void *in, size_t inlen, void *out,
			    size_t outlen)
{
	struct command c = begin(ctx, object, in, inlen, out, outlen);

	return judge(mlx5dv_devx_obj_query(obj, in, inlen, out, outlen), &c);
}

doca_error_t gdk_devx_cmd(struct ibv_context *ctx, const char *object, const void *in, size_t inlen,
			  void *out, size_t outlen)
{
	struct command c = begin(ctx, object, in, inlen, out, outlen);

	return judge(mlx5dv_devx_general_cmd(ctx, in, inlen, out, outlen), &c);
}

doca_error_t gdk_devx_try_cmd(struct ibv_context *ctx, const char *object, const void *in,
			      size_t inlen, void *out, size_t outlen)
{
	struct command c = begin(ctx, object, in, inlen, out, outlen);
	int sys_err = driver_error(mlx5dv_devx_general_cmd(ctx, in, inlen, out, outlen));
	uint32_t opcode = (uint32_t)prm_get(in, PRM_CMD_OPCODE);
	uint32_t status = (uint32_t)prm_get(out, PRM_CMD_STATUS);

	if (c.sent)
		trace(&c, sys_err);
	if (!sys_err && !status)
		return DOCA_SUCCESS;
	if (!status && sys_err != EOPNOTSUPP)
		return refused(object, in, out, sys_err);
	gdk_info("%s: %s (0x%x) is not available: %s, status 0x%x, syndrome 0x%08x", object,
		 opcode_name(opcode), opcode,
		 status ? "refused by the firmware" : "not supported by the driver", status,
		 (uint32_t)prm_get(out, PRM_CMD_SYNDROME));
	return DOCA_ERROR_NOT_SUPPORTED;
}

/* The driver does not report status and syndrome of a destroy command, only an errno value. */
doca_error_t gdk_devx_destroy(struct ibv_context *ctx, struct mlx5dv_devx_obj *obj, uint32_t opcode,
			      const char *kind, uint32_t number)
{
	uint64_t sent = gdk_trace_clock();
	char name[32];
	int ret;

	errno = 0;
	ret = driver_error(mlx5dv_devx_obj_destroy(obj));
	if (sent) {
		snprintf(name, sizeof(name), "%s 0x%x", kind, number);
		gdk_trace_command(&(struct gdk_trace_cmd){
			.ctx = ctx,
			.name = opcode_name(opcode),
			.object = name,
			.opcode = opcode,
			.sys_err = ret,
			.sent = sent,
		});
	}
	if (!ret)
		return DOCA_SUCCESS;
	gdk_err("%s 0x%x: %s (0x%x) failed: %s", kind, number, opcode_name(opcode), opcode,
		strerror(ret));
	return ret == EBUSY ? DOCA_ERROR_IN_USE : DOCA_ERROR_DRIVER;
}
