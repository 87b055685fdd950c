/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The log of the SDK's interface. Lines of the program go to standard output and standard error;
 * lines of the library go to the backends. core/log/log.c formats both.
 */
#include "core/log/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/util.h"
#include "doca_log.h"
#include "doca_version.h"

#define SDK_VERSION  "3.3.0"
#define BACKENDS_MAX 16

struct doca_log_backend {
	FILE *file;
	atomic_int level; /* of enum gdk_log_level; -1: none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* serializes changes */
static struct doca_log_backend backends[BACKENDS_MAX];
static atomic_uint num_backends; /* a backend is complete before it is counted */
static atomic_int limit = GDK_LOG_DEBUG;
static atomic_bool standard;

const char *doca_version(void)
{
	return SDK_VERSION;
}

/* Converts a level of enum doca_log_level. Returns false for another value. */
static bool to_gdk(uint32_t level, int *gdk)
{
	switch (level) {
	case DOCA_LOG_LEVEL_DISABLE:
		*gdk = -1;
		return true;
	case DOCA_LOG_LEVEL_CRIT:
		*gdk = GDK_LOG_CRIT;
		return true;
	case DOCA_LOG_LEVEL_ERROR:
		*gdk = GDK_LOG_ERR;
		return true;
	case DOCA_LOG_LEVEL_WARNING:
		*gdk = GDK_LOG_WARNING;
		return true;
	case DOCA_LOG_LEVEL_INFO:
		*gdk = GDK_LOG_INFO;
		return true;
	case DOCA_LOG_LEVEL_DEBUG:
	case DOCA_LOG_LEVEL_TRACE:
		*gdk = GDK_LOG_DEBUG;
		return true;
	default:
		return false;
	}
}

/* ---- lines of the library ---- */

/* core/log/log.c applies the limit. */
static void write_to_backends(enum gdk_log_level level, const char *text, size_t len)
{
	/* Acquire: pairs with the release in add(). */
	unsigned int n = atomic_load_explicit(&num_backends, memory_order_acquire), i;
	bool forced = (int)level <= gdk_log_level_set();

	for (i = 0; i < n; i++) {
		if (!forced && (int)level > atomic_load(&backends[i].level))
			continue;
		fwrite(text, 1, len, backends[i].file);
		fflush(backends[i].file);
	}
}

/* The level above which no backend writes. The caller holds the lock. */
static void update(void)
{
	unsigned int n = atomic_load(&num_backends), i;
	int highest = -1;

	for (i = 0; i < n; i++)
		if (highest < atomic_load(&backends[i].level))
			highest = atomic_load(&backends[i].level);
	if (highest > atomic_load(&limit))
		highest = atomic_load(&limit);
	if (n)
		gdk_log_to(write_to_backends, highest);
}

/* The caller holds the lock. */
static struct doca_log_backend *add(FILE *file)
{
	unsigned int n = atomic_load(&num_backends), i;

	for (i = 0; i < n; i++)
		if (backends[i].file == file)
			return &backends[i];
	if (n == BACKENDS_MAX)
		return NULL;
	backends[n].file = file;
	atomic_store(&backends[n].level, GDK_LOG_WARNING);
	/* Release: pairs with the acquire in write_to_backends(), which must see file and level. */
	atomic_store_explicit(&num_backends, n + 1, memory_order_release);
	update();
	return &backends[n];
}

doca_error_t doca_log_backend_create_with_file_sdk(FILE *fptr, struct doca_log_backend **backend)
{
	struct doca_log_backend *found;

	GDK_CHECK_PTR(fptr);
	GDK_CHECK_PTR(backend);
	pthread_mutex_lock(&lock);
	found = add(fptr);
	pthread_mutex_unlock(&lock);
	if (!found) {
		gdk_err("cannot add a log backend: %d exist; use one file for several of them",
			BACKENDS_MAX);
		return DOCA_ERROR_FULL;
	}
	*backend = found;
	return DOCA_SUCCESS;
}

static void set_level(atomic_int *at, int level)
{
	pthread_mutex_lock(&lock);
	atomic_store(at, level);
	update();
	pthread_mutex_unlock(&lock);
}

doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level)
{
	int gdk;

	GDK_CHECK_PTR(backend);
	GDK_CHECK_ARG(to_gdk(level, &gdk), "level %u (expected a value of enum doca_log_level)",
		      level);
	set_level(&backend->level, gdk);
	return DOCA_SUCCESS;
}

doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level)
{
	int gdk;

	GDK_CHECK_ARG(to_gdk(level, &gdk), "level %u (expected a value of enum doca_log_level)",
		      level);
	set_level(&limit, gdk);
	return DOCA_SUCCESS;
}

/* ---- lines of the program ---- */

doca_error_t doca_log_backend_create_standard(void)
{
	atomic_store(&standard, true);
	return DOCA_SUCCESS;
}

void gdk_sdk_log(uint32_t level, const char *source, const char *file, int line, const char *func,
		 const char *fmt, ...)
{
	int shown = atomic_load(&standard) ? GDK_LOG_INFO : GDK_LOG_WARNING, gdk;
	const struct gdk_log_at at = { file, line, func };
	char text[GDK_LOG_LINE_MAX];
	va_list args;
	size_t len;
	FILE *to;

	if (shown < gdk_log_level_set())
		shown = gdk_log_level_set();
	if (!to_gdk(level, &gdk) || gdk < 0 || gdk > shown || !source || !file || !func || !fmt)
		return;
	va_start(args, fmt);
	len = gdk_log_line(text, source, (enum gdk_log_level)gdk, &at, fmt, args);
	va_end(args);
	to = gdk <= GDK_LOG_WARNING ? stderr : stdout;
	fwrite(text, 1, len, to);
	fflush(to);
}
