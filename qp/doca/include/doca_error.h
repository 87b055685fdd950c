/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Error codes and their texts. They are those of DOCA GPUNetIO open.
 *
 * Rules for the headers of gdaki-doca:
 *
 * - Functions of type doca_error_t return DOCA_SUCCESS, DOCA_ERROR_INVALID_VALUE for an argument
 *   that is NULL or out of range, or one of the errors in their description. The log has the cause
 *   of an error.
 * - Out-parameters are written on success only.
 * - Numbers are in CPU byte order unless the description says otherwise.
 * - Calls on different objects may run in parallel. Calls on one object must run one after another.
 */
#ifndef GDK_SDK_DOCA_ERROR_H
#define GDK_SDK_DOCA_ERROR_H

#include "host/doca_error.h"
#include "gdk_sdk_shape.h"

/** Assigns the error t to r, unless r has an error already. */
#define DOCA_ERROR_PROPAGATE(r, t) \
	do { \
		if ((r) == DOCA_SUCCESS) \
			(r) = (t); \
	} while (0)

#endif
