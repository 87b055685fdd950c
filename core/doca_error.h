/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The result of every library function, and its text. */
#ifndef DOCA_ERROR_H
#define DOCA_ERROR_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values are those of DOCA. */
typedef enum doca_error {
	DOCA_SUCCESS = 0,
	DOCA_ERROR_UNKNOWN = 1,
	DOCA_ERROR_NOT_PERMITTED = 2,
	DOCA_ERROR_IN_USE = 3, /* something else still refers to the object */
	DOCA_ERROR_NOT_SUPPORTED = 4,
	DOCA_ERROR_AGAIN = 5,
	DOCA_ERROR_INVALID_VALUE = 6, /* an argument, or an attribute, is wrong */
	DOCA_ERROR_NO_MEMORY = 7,
	DOCA_ERROR_INITIALIZATION = 8,
	DOCA_ERROR_TIME_OUT = 9,
	DOCA_ERROR_SHUTDOWN = 10,
	DOCA_ERROR_CONNECTION_RESET = 11,
	DOCA_ERROR_CONNECTION_ABORTED = 12,
	DOCA_ERROR_CONNECTION_INPROGRESS = 13,
	DOCA_ERROR_NOT_CONNECTED = 14,
	DOCA_ERROR_NO_LOCK = 15,
	DOCA_ERROR_NOT_FOUND = 16,
	DOCA_ERROR_IO_FAILED = 17,
	DOCA_ERROR_BAD_STATE = 18, /* the object is not in a state that allows it */
	DOCA_ERROR_UNSUPPORTED_VERSION = 19,
	DOCA_ERROR_OPERATING_SYSTEM = 20, /* a call of the C library or kernel failed */
	DOCA_ERROR_DRIVER = 21,		  /* firmware or a driver refused; see the log */
	DOCA_ERROR_UNEXPECTED = 22,
	DOCA_ERROR_ALREADY_EXIST = 23,
	DOCA_ERROR_FULL = 24,
	DOCA_ERROR_EMPTY = 25,
	DOCA_ERROR_IN_PROGRESS = 26,
	DOCA_ERROR_TOO_BIG = 27,
	DOCA_ERROR_AUTHENTICATION = 28,
	DOCA_ERROR_BAD_CONFIG = 29,
	DOCA_ERROR_SKIPPED = 30, /* the result is valid, an earlier one was dropped */
	DOCA_ERROR_DEVICE_FATAL_ERROR = 31,
} doca_error_t;

/* What became of a call that was handed on to an installed DOCA SDK. */
typedef enum {
	DOCA_SDK_WRAPPER_SUCCESS = 0,
	DOCA_SDK_WRAPPER_NOT_FOUND = 1,	    /* no SDK library */
	DOCA_SDK_WRAPPER_NOT_SUPPORTED = 2, /* the library lacks the function */
	DOCA_SDK_WRAPPER_API_ERROR = 3,
	DOCA_SDK_WRAPPER_API_INVALID_VALUE = 4,
} doca_sdk_wrapper_error_t;

/* The enumerator's name ("DOCA_ERROR_IN_USE"), and one line of English. Static
 * text, never NULL; an unknown value has the name "DOCA_ERROR_UNKNOWN". The
 * DOCA SDK has these two; DOCA GPUNetIO open does not. */
const char *doca_error_get_name(doca_error_t error);
const char *doca_error_get_descr(doca_error_t error);

#ifdef __cplusplus
}
#endif

#endif
