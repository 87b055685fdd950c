/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Formats and writes log lines. core/gdaki.7, section "Log", documents the format. Each line
 * is built in a buffer on the stack and written with one write(). A line that does not fit
 * into the buffer is truncated.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/util.h"

#define LINE_MAX_LEN 1024

static const char *const level_names[] = {
	"EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG",
};

static int shown_level;
static pthread_once_t level_once = PTHREAD_ONCE_INIT;

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

/* Writes the line without checking the level. A control character in the message, such as a line
 * break in the value of a variable, becomes a blank. */
static void write_line(enum gdk_log_level level, const char *file, int line, const char *func,
		       const char *fmt, va_list args)
{
	const char *slash = strrchr(file, '/');
	char text[LINE_MAX_LEN];
	size_t used = 0, i;
	ssize_t written;

	append_time(text, &used);
	appendf(text, &used, " gdaki %s %s:%d %s: ", level_names[level], slash ? slash + 1 : file,
		line, func);
	append(text, &used, fmt, args);
	for (i = 0; i < used; i++)
		if ((unsigned char)text[i] < ' ')
			text[i] = ' ';
	text[used++] = '\n';
	written = write(STDERR_FILENO, text, used);
	(void)written; /* an error here cannot be reported */
}

__attribute__((format(printf, 1, 2))) static void warn_level(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(GDK_LOG_WARNING, __FILE__, __LINE__, "gdk_log", fmt, args);
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
		shown_level = i;
		return;
	}
	warn_level("ignoring DOCA_GPUNETIO_LOG=\"%.64s%s\" (expected 0..7, or emerg, alert, crit, "
		   "err, warning, notice, info or debug), using 4 (warning)",
		   env, strlen(env) > 64 ? "..." : "");
}

void gdk_log(enum gdk_log_level level, const char *file, int line, const char *func,
	     const char *fmt, ...)
{
	va_list args;

	pthread_once(&level_once, read_level);
	if ((int)level > shown_level || (size_t)level >= GDK_ARRAY_SIZE(level_names))
		return;
	va_start(args, fmt);
	write_line(level, file, line, func, fmt, args);
	va_end(args);
}
