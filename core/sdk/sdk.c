/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Loads the libraries of the DOCA SDK from the folder in DOCA_SDK_LIB_PATH, once per
 * process. If one of them, or a required function, is missing, it logs a warning and SDK
 * mode stays off. sdk.h has the macros that forward calls.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log/trace.h"
#include "core/sdk/sdk.h"

/* RTLD_GLOBAL: the SDK's libraries need each other's symbols; libdoca_common must be first.
 * RTLD_DEEPBIND: the program, or a library of it, may export functions of the same names from
 * another implementation; the SDK must call its own. Sanitizers do not allow RTLD_DEEPBIND. */
#ifdef GDK_SAN
#define FLAGS (RTLD_NOW | RTLD_GLOBAL)
#else
#define FLAGS (RTLD_NOW | RTLD_GLOBAL | RTLD_DEEPBIND)
#endif

static const char *const files[] = {
	"libdoca_common.so",
	"libdoca_verbs.so",
	"libdoca_gpunetio.so",
};

/* Functions that the SDK must have. */
static const char *const required[] = {
#define FN(name) #name,
#include "core/sdk/sdk_required.h"
#undef FN
};

static char folder[2048]; /* DOCA_SDK_LIB_PATH; empty: not set */
static void *libs[GDK_ARRAY_SIZE(files)];
static bool in_use;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void close_libs(void)
{
	size_t i;

	for (i = GDK_ARRAY_SIZE(libs); i-- > 0;) {
		if (libs[i])
			dlclose(libs[i]);
		libs[i] = NULL;
	}
}

static void *find(const char *name)
{
	void *found = NULL;
	size_t i;

	for (i = 0; !found && i < GDK_ARRAY_SIZE(libs); i++)
		found = dlsym(libs[i], name);
	return found;
}

static bool open_libs(void)
{
	char path[4096];
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		libs[i] = dlopen(path, FLAGS);
		if (!libs[i]) {
			gdk_warn("ignoring DOCA_SDK_LIB_PATH=%s: cannot load %s (%s); the DOCA SDK "
				 "is not in use",
				 folder, path, dlerror());
			return false;
		}
	}
	return true;
}

static bool has_functions(void)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(required); i++) {
		if (find(required[i]))
			continue;
		gdk_warn("ignoring DOCA_SDK_LIB_PATH=%s: its libraries have no %s; the DOCA SDK is "
			 "not in use",
			 folder, required[i]);
		return false;
	}
	return true;
}

static void load(void)
{
	const char *env = getenv("DOCA_SDK_LIB_PATH");

	if (!env || !*env)
		return;
	snprintf(folder, sizeof(folder), "%s", env);
	in_use = open_libs() && has_functions();
	if (in_use) {
		gdk_warn("DOCA_SDK_LIB_PATH=%s: the DOCA SDK is in use", folder);
		gdk_trace_sdk(folder);
	} else {
		close_libs();
	}
}

bool gdk_sdk_in_use(void)
{
	pthread_once(&once, load);
	return in_use;
}

bool gdk_sdk_asked(void)
{
	pthread_once(&once, load);
	return folder[0];
}

void *gdk_sdk_find(const char *name)
{
	return gdk_sdk_in_use() ? find(name) : NULL;
}

void *gdk_sdk_function(const char *name)
{
	void *found = gdk_sdk_find(name);

	if (!found)
		gdk_err("the DOCA SDK in %s has no %s", folder, name);
	return found;
}

doca_error_t gdk_sdk_result(const char *name, doca_error_t err)
{
	if (err != DOCA_SUCCESS)
		gdk_err("%s of the DOCA SDK failed: %s (%d)", name, doca_error_get_name(err),
			(int)err);
	return err;
}
