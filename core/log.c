/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Formats and writes log lines: time (UTC, microseconds), level, file, line, function,
 * message. Each line is built in a buffer on the stack and written with one write(). A line
 * that does not fit into the buffer is truncated.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void read_level(void)
{
	const char *env = getenv("DOCA_GPUNETIO_LOG");
	char *end;
	long level;

	shown_level = GDK_LOG_WARNING;
	if (!env || !*env)
		return;
	level = strtol(env, &end, 10);
	if (!*end && level >= GDK_LOG_EMERG && level <= GDK_LOG_DEBUG)
		shown_level = (int)level;
}

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

void gdk_log(enum gdk_log_level level, const char *file, int line, const char *func,
	     const char *fmt, ...)
{
	const char *slash = strrchr(file, '/');
	char text[LINE_MAX_LEN];
	size_t used = 0;
	va_list args;
	ssize_t written;

	pthread_once(&level_once, read_level);
	if ((int)level > shown_level || (size_t)level >= GDK_ARRAY_SIZE(level_names))
		return;
	append_time(text, &used);
	appendf(text, &used, " gdaki %s %s:%d %s: ", level_names[level], slash ? slash + 1 : file,
		line, func);
	va_start(args, fmt);
	append(text, &used, fmt, args);
	va_end(args);
	text[used++] = '\n';
	written = write(STDERR_FILENO, text, used);
	(void)written; /* an error here cannot be reported */
}
