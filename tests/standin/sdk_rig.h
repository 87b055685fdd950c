/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Helpers for tests of the SDK mode. They make the library load the stand-in SDK, read
 * the record of calls, and capture the log. */
#ifndef SDK_RIG_H
#define SDK_RIG_H

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "../lib/nic.h"
#include "../lib/standin.h"
#include "doca_gpunetio_host.h"

#define BDF   "8A:00.0"
#define NO_FD ((int)DOCA_VERBS_DMABUF_INVALID_FD)

static const char *(*sdk_record)(void);
static void (*sdk_clear)(void);
static int (*sdk_live)(void);
static void (*sdk_fail_at)(long n);

/* Sets DOCA_SDK_LIB_PATH to the folder `name` of the stand-ins. */
static inline void sdk_env(const char *name)
{
	char path[4096];

	standin_path(path, sizeof(path), name);
	setenv("DOCA_SDK_LIB_PATH", path, 1);
}

/* Finds the standin_sdk_* functions in the same library that gdaki loads. */
static inline void sdk_attach(const char *name)
{
	char path[4096], file[64];
	void *lib;

	snprintf(file, sizeof(file), "%s/libdoca_common.so", name);
	standin_path(path, sizeof(path), file);
	lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	cr_assert(lib, "%s", dlerror());
	sdk_record = (const char *(*)(void))dlsym(lib, "standin_sdk_record");
	sdk_clear = (void (*)(void))dlsym(lib, "standin_sdk_clear");
	sdk_live = (int (*)(void))dlsym(lib, "standin_sdk_live");
	sdk_fail_at = (void (*)(long))dlsym(lib, "standin_sdk_fail_at");
	cr_assert(sdk_record && sdk_clear && sdk_live && sdk_fail_at);
}

static inline void sdk_begin(const char *name)
{
	standin_cuda();
	sdk_env(name);
	sdk_attach(name);
}

static off_t sdk_forgotten;

/* sdk_capture() sets the log level to 6 and redirects standard error to a file.
 * sdk_captured() returns the text in the file since the last sdk_forget(). */
static inline void sdk_capture(void)
{
	FILE *file = tmpfile();

	cr_assert(file);
	setenv("DOCA_GPUNETIO_LOG", "6", 1);
	dup2(fileno(file), STDERR_FILENO);
}

static inline const char *sdk_captured(void)
{
	static char text[1 << 16];
	ssize_t len = pread(STDERR_FILENO, text, sizeof(text) - 1, sdk_forgotten);

	text[len > 0 ? len : 0] = '\0';
	return text;
}

static inline void sdk_forget(void)
{
	sdk_forgotten = lseek(STDERR_FILENO, 0, SEEK_END);
}

#endif
