/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The log of the host library: one line per message on standard error. Each line is
 * written with one write(), so that lines of parallel threads do not mix.
 * DOCA_GPUNETIO_LOG sets the highest level that is shown: 0..7 or its name in upper or
 * lower case (default 4, warning: warnings and more severe messages). core/gdaki.7
 * documents the format of a line. The device functions never log. libgdaki_doca.a can set a sink,
 * which then gets the lines instead of standard error.
 */
#ifndef GDK_LOG_H
#define GDK_LOG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

/* Writes a line with a line break to text, and returns its length. origin: "gdaki", or the source
 * that a program named. */
#define GDK_LOG_LINE_MAX 1024
struct gdk_log_at {
	const char *file;
	int line;
	const char *func;
};
size_t gdk_log_line(char *text, const char *origin, enum gdk_log_level level,
		    const struct gdk_log_at *at, const char *fmt, va_list args)
	__attribute__((format(printf, 5, 0)));

/* The level that DOCA_GPUNETIO_LOG sets, otherwise -1. */
int gdk_log_level_set(void);

/* From now on, sink gets the lines up to level, not standard error. It must not log. If
 * DOCA_GPUNETIO_LOG is set, the sink also gets the lines up to that level. */
typedef void (*gdk_log_sink)(enum gdk_log_level level, const char *text, size_t len);
void gdk_log_to(gdk_log_sink sink, int level);

#define GDK_LOG(level, ...) gdk_log(level, __FILE__, __LINE__, __func__, __VA_ARGS__)
#define gdk_err(...)	    GDK_LOG(GDK_LOG_ERR, __VA_ARGS__)
#define gdk_warn(...)	    GDK_LOG(GDK_LOG_WARNING, __VA_ARGS__)
#define gdk_info(...)	    GDK_LOG(GDK_LOG_INFO, __VA_ARGS__)
#define gdk_dbg(...)	    GDK_LOG(GDK_LOG_DEBUG, __VA_ARGS__)

/*
 * Public functions check their arguments with these macros. A failed check is logged with the
 * name and value of the argument and the expected values, and makes the calling function return
 * DOCA_ERROR_INVALID_VALUE; after *_OR the value ret, for functions that do not return
 * doca_error_t. Arguments have the names that they have in the public header.
 *
 *	GDK_CHECK_PTR(attr)			"invalid attr NULL"
 *	GDK_CHECK_RANGE(attr->threads, 0, 16)	"invalid attr->threads 99 (expected 0 to 16)"
 *	GDK_CHECK_ENUM(mtype, LAST)		"invalid mtype 99 (expected at most LAST, 2)"
 *	GDK_CHECK_ARG(size, "size 0 (expected at least 1)")
 *						"invalid size 0 (expected at least 1)"
 */
#define GDK_CHECK_PTR(arg)	   GDK_CHECK_PTR_OR(DOCA_ERROR_INVALID_VALUE, arg)
#define GDK_CHECK_PTR_OR(ret, arg) GDK_CHECK_(ret, (arg) != NULL, gdk_log_null(GDK_AT, #arg))
#define GDK_CHECK_ARG(ok, fmt, ...) \
	GDK_CHECK_ARG_OR(DOCA_ERROR_INVALID_VALUE, ok, fmt, ##__VA_ARGS__)
#define GDK_CHECK_ARG_OR(ret, ok, fmt, ...) \
	GDK_CHECK_(ret, ok, gdk_err("invalid " fmt, ##__VA_ARGS__))
/* arg has at most 32 bits */
#define GDK_CHECK_RANGE(arg, min, max) GDK_CHECK_RANGE_(#arg, arg, min, max, NULL)
/* The enumerators are 0 to last. */
#define GDK_CHECK_ENUM(arg, last) GDK_CHECK_RANGE_(#arg, (int)(arg), 0, last, #last)

#define GDK_AT __FILE__, __LINE__, __func__
#define GDK_CHECK_RANGE_(name, value, min, max, last) \
	GDK_CHECK_(DOCA_ERROR_INVALID_VALUE, (uint64_t)(value) - (min) <= (uint64_t)(max) - (min), \
		   gdk_log_range(GDK_AT, name, value, min, max, last))
#define GDK_CHECK_(ret, ok, log) \
	do { \
		if (!(ok)) { \
			log; \
			return ret; \
		} \
	} while (0)

/* check.c: log an argument that is NULL or outside min to max. last: name of max, or NULL. */
void gdk_log_null(const char *file, int line, const char *func, const char *name)
	__attribute__((cold));
void gdk_log_range(const char *file, int line, const char *func, const char *name, int64_t value,
		   int64_t min, int64_t max, const char *last) __attribute__((cold));

#endif
