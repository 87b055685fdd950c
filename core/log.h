/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The log of the host library: one line per message on standard error. Each line is
 * written with one write(), so that lines of parallel threads do not mix.
 * DOCA_GPUNETIO_LOG=0..7 sets the highest syslog level that is shown (default 4: warnings
 * and more severe messages). The device functions never log.
 */
#ifndef GDK_LOG_H
#define GDK_LOG_H

#include "host/doca_error.h"

enum gdk_log_level {
	GDK_LOG_EMERG,
	GDK_LOG_ALERT,
	GDK_LOG_CRIT,
	GDK_LOG_ERR,
	GDK_LOG_WARNING,
	GDK_LOG_NOTICE,
	GDK_LOG_INFO,
	GDK_LOG_DEBUG,
};

void gdk_log(enum gdk_log_level level, const char *file, int line, const char *func,
	     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#define GDK_LOG(level, ...) gdk_log(level, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define gdk_err(...)	    GDK_LOG(GDK_LOG_ERR, __VA_ARGS__)
#define gdk_warn(...)	    GDK_LOG(GDK_LOG_WARNING, __VA_ARGS__)
#define gdk_info(...)	    GDK_LOG(GDK_LOG_INFO, __VA_ARGS__)
#define gdk_dbg(...)	    GDK_LOG(GDK_LOG_DEBUG, __VA_ARGS__)

/* Public functions check their arguments with these macros. If cond is false, GDK_CHECK_ARG logs
 * the text of cond and makes the calling function return DOCA_ERROR_INVALID_VALUE.
 * GDK_CHECK_ARG_OR makes it return value instead; it is for functions that do not return
 * doca_error_t. */
#define GDK_CHECK_ARG(cond)	      GDK_CHECK_ARG_(DOCA_ERROR_INVALID_VALUE, cond, #cond)
#define GDK_CHECK_ARG_OR(value, cond) GDK_CHECK_ARG_(value, cond, #cond)
#define GDK_CHECK_ARG_(value, cond, text) \
	do { \
		if (!(cond)) { \
			gdk_err("invalid argument: %s does not hold", text); \
			return value; \
		} \
	} while (0)

#endif
