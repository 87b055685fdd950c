/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Formats and writes log lines. core/gdaki.7, section "Log", documents the format. Each line
 * is built in a buffer on the stack and written with one write(). A line that does not fit
 * into the buffer is truncated.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/log/log.h"
#include "core/util.h"

#define LINE_MAX_LEN GDK_LOG_LINE_MAX

static const char *const level_names[] = {
	"EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG",
};

static int shown_level;
static int set_level = -1; /* shown_level, if the variable sets it */
static pthread_once_t level_once = PTHREAD_ONCE_INIT;

/* The level is stored before the sink; a thread that reads the sink reads this level or a later
 * one. */
static _Atomic(gdk_log_sink) sink;
static atomic_int sink_level;

/* Appends formatted text at *used. Truncates it so that one byte remains for '\n'. */
static void append(char *line, size_t *used, const char *fmt, va_list args)
{
	size_t left = LINE_MAX_LEN - 1 - *used;
	int len = vsnprintf(line + *used, left, fmt, args);

	if (len > 0)
		*used += (size_t)len < left ? (size_t)len : left - 1;
}

__attribute__((format(printf, 3, 4))) static void appendf(char *line, size_t *used, const char *fmt,
							  ...)
{
	va_list args;

	va_start(args, fmt);
	append(line, used, fmt, args);
	va_end(args);
}

static void append_time(char *line, size_t *used)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	*used += strftime(line, LINE_MAX_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
	appendf(line, used, ".%06ldZ", now.tv_nsec / 1000);
}

/* A control character in the message, such as a line break in the value of a variable, becomes a
 * blank. */
size_t gdk_log_line(char *text, const char *origin, enum gdk_log_level level,
		    const struct gdk_log_at *at, const char *fmt, va_list args)
{
	const char *slash = strrchr(at->file, '/');
	size_t used = 0, i;

	append_time(text, &used);
	appendf(text, &used, " %s %s %s:%d %s: ", origin, level_names[level],
		slash ? slash + 1 : at->file, at->line, at->func);
	append(text, &used, fmt, args);
	for (i = 0; i < used; i++)
		if ((unsigned char)text[i] < ' ')
			text[i] = ' ';
	text[used++] = '\n';
	return used;
}

/* Writes the line without checking the level. */
static void write_line(gdk_log_sink to, enum gdk_log_level level, const struct gdk_log_at *at,
		       const char *fmt, va_list args)
{
	char text[LINE_MAX_LEN];
	size_t len = gdk_log_line(text, "gdaki", level, at, fmt, args);
	ssize_t written;

	if (to) {
		to(level, text, len);
		return;
	}
	written = write(STDERR_FILENO, text, len);
	(void)written; /* an error here cannot be reported */
}

__attribute__((format(printf, 1, 2))) static void warn_level(const char *fmt, ...)
{
	const struct gdk_log_at at = { __FILE__, __LINE__, "gdk_log" };
	va_list args;

	va_start(args, fmt);
	write_line(NULL, GDK_LOG_WARNING, &at, fmt, args);
	va_end(args);
}

/* Accepts a digit or the name of a level, in capitals or not. */
static void read_level(void)
{
	const char *env = getenv("DOCA_GPUNETIO_LOG");
	int i;

	shown_level = GDK_LOG_WARNING;
	if (!env || !*env)
		return;
	for (i = GDK_LOG_EMERG; i <= GDK_LOG_DEBUG; i++) {
		if (strcasecmp(env, level_names[i]) && (env[0] != '0' + i || env[1]))
			continue;
		shown_level = set_level = i;
		return;
	}
	warn_level("ignoring DOCA_GPUNETIO_LOG=\"%.64s%s\" (expected 0..7, or emerg, alert, crit, "
		   "err, warning, notice, info or debug), using 4 (warning)",
		   env, strlen(env) > 64 ? "..." : "");
}

void gdk_log(enum gdk_log_level level, const char *file, int line, const char *func,
	     const char *fmt, ...)
{
	const struct gdk_log_at at = { file, line, func };
	gdk_log_sink to;
	va_list args;
	int shown;

	pthread_once(&level_once, read_level);
	/* Acquire: pairs with the release in gdk_log_to(), which stores sink_level first. */
	to = atomic_load_explicit(&sink, memory_order_acquire);
	shown = to ? atomic_load_explicit(&sink_level, memory_order_relaxed) : shown_level;
	if (shown < set_level)
		shown = set_level;
	if ((int)level > shown || (size_t)level >= GDK_ARRAY_SIZE(level_names))
		return;
	va_start(args, fmt);
	write_line(to, level, &at, fmt, args);
	va_end(args);
}

int gdk_log_level_set(void)
{
	pthread_once(&level_once, read_level);
	return set_level;
}

void gdk_log_to(gdk_log_sink to, int level)
{
	atomic_store_explicit(&sink_level, level, memory_order_relaxed);
	/* Release: pairs with the acquire in gdk_log(). */
	atomic_store_explicit(&sink, to, memory_order_release);
}
