/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The log of the program, with macros, and where the log of the library goes. Return values: see
 * doca_error.h. Any thread may call these functions.
 *
 * Lines of the program are warnings and errors on standard error, without any call; see
 * doca_log_backend_create_standard() for others. Lines of the library go to standard error until
 * doca_log_backend_create_with_file_sdk() is called. The environment variable DOCA_GPUNETIO_LOG (0
 * to 7, or emerg to debug) adds the lines of both up to its level.
 */
#ifndef GDK_SDK_DOCA_LOG_H
#define GDK_SDK_DOCA_LOG_H

#include <stdint.h>
#include <stdio.h>

#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How severe a line is. A level includes the levels of smaller value. */
enum doca_log_level {
	DOCA_LOG_LEVEL_DISABLE = 10, /**< no lines */
	DOCA_LOG_LEVEL_CRIT = 20,    /**< the program cannot continue */
	DOCA_LOG_LEVEL_ERROR = 30,   /**< an operation failed */
	DOCA_LOG_LEVEL_WARNING = 40, /**< the program continues, but not as intended */
	DOCA_LOG_LEVEL_INFO = 50,    /**< what the program does */
	DOCA_LOG_LEVEL_DEBUG = 60,   /**< for developers */
	DOCA_LOG_LEVEL_TRACE = 70,   /**< for developers, more */
};

struct doca_log_backend; /* a destination of the library's lines */

/**
 * Also writes lines of the program of level INFO, on standard output. Lines of level WARNING and
 * worse are written on standard error. Further calls change nothing.
 */
doca_error_t doca_log_backend_create_standard(void);

/**
 * Writes lines of the library to a file, up to level WARNING. Backends exist until the program
 * ends. A second call for one file returns the first backend.
 *
 * @param fptr for example stderr; it must stay open
 * @param backend gets the backend
 * @retval DOCA_ERROR_FULL there are 16 backends for other files
 */
doca_error_t doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend);

/**
 * Sets the highest level of a backend.
 *
 * @param level of enum doca_log_level
 */
doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level);

/**
 * Sets the highest level of all backends: none writes lines above it.
 *
 * @param level of enum doca_log_level
 */
doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level);

/**
 * Writes a line of the program. Use the macros.
 *
 * @param level of enum doca_log_level
 * @param source what DOCA_LOG_REGISTER() got
 */
void gdk_sdk_log(uint32_t level, const char *source, const char *file, int line, const char *func,
		 const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/** Names the source of the lines of this file. Stands once in the file, outside of functions. */
#define DOCA_LOG_REGISTER(source) \
	static const char *const gdk_sdk_log_source __attribute__((unused)) = #source

/** A line of level LEVEL of enum doca_log_level, for the macros below. */
#define GDK_SDK_LOG(LEVEL, ...) \
	gdk_sdk_log(DOCA_LOG_LEVEL_##LEVEL, gdk_sdk_log_source, __FILE__, __LINE__, __func__, \
		    __VA_ARGS__)

#define DOCA_LOG_ERR(...)  GDK_SDK_LOG(ERROR, __VA_ARGS__)   /**< an error, as for printf() */
#define DOCA_LOG_WARN(...) GDK_SDK_LOG(WARNING, __VA_ARGS__) /**< a warning */
#define DOCA_LOG_INFO(...) GDK_SDK_LOG(INFO, __VA_ARGS__)    /**< information */
#define DOCA_LOG_DBG(...)  GDK_SDK_LOG(DEBUG, __VA_ARGS__)   /**< for developers */

#ifdef __cplusplus
}
#endif

#endif
