/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Log lines of failed argument checks (core/log/log.h). They are functions because there are more
 * than 200 checks and a call is shorter than the formats.
 */
#include <stddef.h>

#include "core/log/log.h"

void gdk_log_null(const char *file, int line, const char *func, const char *name)
{
	gdk_log(GDK_LOG_ERR, file, line, func, "invalid %s NULL", name);
}

void gdk_log_range(const char *file, int line, const char *func, const char *name, int64_t value,
		   int64_t min, int64_t max, const char *last)
{
	const long long v = value, from = min, to = max;

	if (last)
		gdk_log(GDK_LOG_ERR, file, line, func,
			"invalid %s %lld (expected at most %s, %lld)", name, v, last, to);
	else
		gdk_log(GDK_LOG_ERR, file, line, func, "invalid %s %lld (expected %lld to %lld)",
			name, v, from, to);
}
