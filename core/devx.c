/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends firmware commands and judges the answer: a command fails when the
 * kernel refuses to pass it on (errno), or when the firmware answers with a
 * status that is not zero. Each failure is logged here, once, in one line.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "devx.h"
#include "host/gdaki.h"
#include "log.h"
#include "util.h"

struct number_name {
	uint32_t number;
	const char *name;
};

#define OPCODE(name, opcode) {opcode, #name},
static const struct number_name opcodes[] = {GDK_COMMANDS(OPCODE)};

/* PRM, "Command interface": status codes; what brings them about, where that is known. */
static const struct number_name statuses[] = {
	{0x00, "OK"},
	{0x01, "internal error"},
	{0x02, "bad operation: the firmware has no such command, or not for this object"},
	{0x03, "bad parameter: a field is out of range, or the device lacks the feature"},
	{0x04, "bad system state: the device is being reset or has failed"},
	{0x05, "bad resource: an object that the command names does not exist"},
	{0x06, "resource busy: something still uses the object"},
	{0x08, "limit exceeded: the device has no more of these"},
	{0x09, "bad resource state"},
	{0x0a, "bad index"},
	{0x0f, "no resources: the device's memory or objects are used up"},
	{0x10, "bad QP state: the transition does not start where the QP is"},
	{0x30, "bad packet"},
	{0x40, "bad size: CQEs are outstanding"},
	{0x50, "bad input length"},
	{0x51, "bad output length"},
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

/* What was refused last in this thread: an error code says little. */
static _Thread_local struct gdk_command_error last;

doca_error_t gdk_get_command_error(struct gdk_command_error *error)
{
	GDK_CHECK_ARG(error != NULL);
	*error = last;
	return DOCA_SUCCESS;
}

/* Logs a failed command. sys_err is errno, out the answer, all zero when the
 * command did not reach the firmware. */
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

doca_error_t gdk_devx_create(struct ibv_context *ctx, const char *object, const void *in,
			     size_t inlen, void *out, size_t outlen, struct mlx5dv_devx_obj **obj)
{
	struct mlx5dv_devx_obj *created;

	memset(out, 0, outlen);
	errno = 0;
	created = mlx5dv_devx_obj_create(ctx, in, inlen, out, outlen);
	if (!created)
		return refused(object, in, out, errno);
	*obj = created;
	return DOCA_SUCCESS;
}

/* The calls that return 0 or an errno value; some versions return -1 and set
 * errno. The status is looked at in either case. */
static doca_error_t judge(int ret, const char *object, const void *in, const void *out)
{
	if (!ret && !prm_get(out, PRM_CMD_STATUS))
		return DOCA_SUCCESS;
	return refused(object, in, out, ret > 0 ? ret : errno);
}

doca_error_t gdk_devx_modify(struct mlx5dv_devx_obj *obj, const char *object, const void *in,
			     size_t inlen, void *out, size_t outlen)
{
	memset(out, 0, outlen);
	errno = 0;
	return judge(mlx5dv_devx_obj_modify(obj, in, inlen, out, outlen), object, in, out);
}

doca_error_t gdk_devx_query(struct mlx5dv_devx_obj *obj, const char *object, const void *in,
			    size_t inlen, void *out, size_t outlen)
{
	memset(out, 0, outlen);
	errno = 0;
	return judge(mlx5dv_devx_obj_query(obj, in, inlen, out, outlen), object, in, out);
}

doca_error_t gdk_devx_cmd(struct ibv_context *ctx, const char *object, const void *in, size_t inlen,
			  void *out, size_t outlen)
{
	memset(out, 0, outlen);
	errno = 0;
	return judge(mlx5dv_devx_general_cmd(ctx, in, inlen, out, outlen), object, in, out);
}

/* The driver keeps status and syndrome of a destroy to itself. */
doca_error_t gdk_devx_destroy(struct mlx5dv_devx_obj *obj, uint32_t opcode, const char *kind,
			      uint32_t number)
{
	int ret;

	errno = 0;
	ret = mlx5dv_devx_obj_destroy(obj);
	if (!ret)
		return DOCA_SUCCESS;
	gdk_err("%s 0x%x: %s (0x%x) was refused: %s", kind, number, opcode_name(opcode), opcode,
		strerror(ret > 0 ? ret : errno));
	return ret == EBUSY || errno == EBUSY ? DOCA_ERROR_IN_USE : DOCA_ERROR_DRIVER;
}
