/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Names and one-line descriptions of doca_error_t. The values are in host/doca_error.h.
 * Descriptions of firmware errors are in core/nic/devx.c, those of CQE syndromes in
 * qp/export/error.c.
 */
#include "host/doca_error.h"
#include "core/util.h"

#define ENTRY(name, text) [name] = { #name, text }

static const struct {
	const char *name;
	const char *descr;
} errors[] = {
	ENTRY(DOCA_SUCCESS, "Success"),
	ENTRY(DOCA_ERROR_UNKNOWN, "Unknown error"),
	ENTRY(DOCA_ERROR_NOT_PERMITTED, "The operation is not permitted"),
	ENTRY(DOCA_ERROR_IN_USE, "The object is in use"),
	ENTRY(DOCA_ERROR_NOT_SUPPORTED, "The operation is not supported"),
	ENTRY(DOCA_ERROR_AGAIN, "Temporarily unavailable, try again"),
	ENTRY(DOCA_ERROR_INVALID_VALUE, "An argument is invalid"),
	ENTRY(DOCA_ERROR_NO_MEMORY, "Out of memory"),
	ENTRY(DOCA_ERROR_INITIALIZATION, "An object could not be initialized"),
	ENTRY(DOCA_ERROR_TIME_OUT, "The operation timed out"),
	ENTRY(DOCA_ERROR_SHUTDOWN, "Shut down, or shutting down"),
	ENTRY(DOCA_ERROR_CONNECTION_RESET, "The peer reset the connection"),
	ENTRY(DOCA_ERROR_CONNECTION_ABORTED, "The connection was aborted"),
	ENTRY(DOCA_ERROR_CONNECTION_INPROGRESS, "The connection is being established"),
	ENTRY(DOCA_ERROR_NOT_CONNECTED, "Not connected"),
	ENTRY(DOCA_ERROR_NO_LOCK, "A lock could not be acquired"),
	ENTRY(DOCA_ERROR_NOT_FOUND, "Not found"),
	ENTRY(DOCA_ERROR_IO_FAILED, "Input or output failed"),
	ENTRY(DOCA_ERROR_BAD_STATE, "The object's state does not allow the operation"),
	ENTRY(DOCA_ERROR_UNSUPPORTED_VERSION, "The version is not supported"),
	ENTRY(DOCA_ERROR_OPERATING_SYSTEM, "An operating system call failed"),
	ENTRY(DOCA_ERROR_DRIVER, "The driver or the firmware refused the request"),
	ENTRY(DOCA_ERROR_UNEXPECTED, "Unexpected error"),
	ENTRY(DOCA_ERROR_ALREADY_EXIST, "The object already exists"),
	ENTRY(DOCA_ERROR_FULL, "No space is left"),
	ENTRY(DOCA_ERROR_EMPTY, "The object is empty"),
	ENTRY(DOCA_ERROR_IN_PROGRESS, "The operation is in progress"),
	ENTRY(DOCA_ERROR_TOO_BIG, "Too big to fit"),
	ENTRY(DOCA_ERROR_AUTHENTICATION, "Authentication failed"),
	ENTRY(DOCA_ERROR_BAD_CONFIG, "The configuration is not valid"),
	ENTRY(DOCA_ERROR_SKIPPED, "The result is valid, but an earlier result was dropped"),
	ENTRY(DOCA_ERROR_DEVICE_FATAL_ERROR, "The device failed and cannot recover"),
};

static size_t known(doca_error_t error)
{
	return (size_t)error < GDK_ARRAY_SIZE(errors) ? (size_t)error : DOCA_ERROR_UNKNOWN;
}

const char *doca_error_get_name(doca_error_t error)
{
	return errors[known(error)].name;
}

const char *doca_error_get_descr(doca_error_t error)
{
	return errors[known(error)].descr;
}
