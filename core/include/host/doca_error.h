/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Error codes of the library, and their texts.
 */
#ifndef DOCA_ERROR_H
#define DOCA_ERROR_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a function. The values are those of DOCA; this library does not return every one. */
typedef enum doca_error {
	DOCA_SUCCESS = 0,		       /**< the function succeeded */
	DOCA_ERROR_UNKNOWN = 1,		       /**< unknown error */
	DOCA_ERROR_NOT_PERMITTED = 2,	       /**< the kernel does not permit the operation */
	DOCA_ERROR_IN_USE = 3,		       /**< another object still uses this one */
	DOCA_ERROR_NOT_SUPPORTED = 4,	       /**< device, driver or library lacks the feature */
	DOCA_ERROR_AGAIN = 5,		       /**< there is no result now; try again */
	DOCA_ERROR_INVALID_VALUE = 6,	       /**< an argument or attribute is invalid */
	DOCA_ERROR_NO_MEMORY = 7,	       /**< no memory */
	DOCA_ERROR_INITIALIZATION = 8,	       /**< an object could not be initialized */
	DOCA_ERROR_TIME_OUT = 9,	       /**< a time limit has passed */
	DOCA_ERROR_SHUTDOWN = 10,	       /**< the object is shut down */
	DOCA_ERROR_CONNECTION_RESET = 11,      /**< the peer reset the connection */
	DOCA_ERROR_CONNECTION_ABORTED = 12,    /**< the connection was aborted */
	DOCA_ERROR_CONNECTION_INPROGRESS = 13, /**< the connection is being established */
	DOCA_ERROR_NOT_CONNECTED = 14,	       /**< there is no connection */
	DOCA_ERROR_NO_LOCK = 15,	       /**< a lock could not be acquired */
	DOCA_ERROR_NOT_FOUND = 16,	       /**< the argument names no known object */
	DOCA_ERROR_IO_FAILED = 17,	       /**< input or output failed */
	DOCA_ERROR_BAD_STATE = 18, /**< the state of the object does not allow the operation */
	DOCA_ERROR_UNSUPPORTED_VERSION = 19, /**< the version is not supported */
	DOCA_ERROR_OPERATING_SYSTEM = 20,    /**< a call of the C library or kernel failed */
	DOCA_ERROR_DRIVER = 21,		     /**< firmware or a driver refused; see the log */
	DOCA_ERROR_UNEXPECTED = 22,	     /**< a value that the library does not know */
	DOCA_ERROR_ALREADY_EXIST = 23,	     /**< the object exists already */
	DOCA_ERROR_FULL = 24,		     /**< no room is left */
	DOCA_ERROR_EMPTY = 25,		     /**< nothing is queued */
	DOCA_ERROR_IN_PROGRESS = 26,	     /**< the operation has not ended yet */
	DOCA_ERROR_TOO_BIG = 27,	     /**< the argument is too large */
	DOCA_ERROR_AUTHENTICATION = 28,	     /**< authentication failed */
	DOCA_ERROR_BAD_CONFIG = 29,	     /**< the configuration is invalid */
	DOCA_ERROR_SKIPPED = 30,	     /**< the result is valid, an earlier one was dropped */
	DOCA_ERROR_DEVICE_FATAL_ERROR = 31,  /**< the device failed and must be reset */
} doca_error_t;

/** Result of the attempt to call a function of an installed DOCA SDK. */
typedef enum {
	DOCA_SDK_WRAPPER_SUCCESS = 0,		/**< the function was called */
	DOCA_SDK_WRAPPER_NOT_FOUND = 1,		/**< the library of the SDK is not installed */
	DOCA_SDK_WRAPPER_NOT_SUPPORTED = 2,	/**< the library lacks the function */
	DOCA_SDK_WRAPPER_API_ERROR = 3,		/**< the function failed */
	DOCA_SDK_WRAPPER_API_INVALID_VALUE = 4, /**< an argument was invalid */
} doca_sdk_wrapper_error_t;

/**
 * Returns the name of an error code, for example "DOCA_ERROR_IN_USE"; "DOCA_ERROR_UNKNOWN" for an
 * unknown value. The string is static. The DOCA SDK also has this function, but DOCA GPUNetIO open
 * does not. Any thread may call this.
 */
const char *doca_error_get_name(doca_error_t error);

/**
 * Returns the meaning of an error code in one line of English. An unknown value gets the text of
 * DOCA_ERROR_UNKNOWN. The string is static. The DOCA SDK also has this function, but DOCA GPUNetIO
 * open does not. Any thread may call this.
 */
const char *doca_error_get_descr(doca_error_t error);

#ifdef __cplusplus
}
#endif

#endif
