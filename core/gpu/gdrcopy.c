/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Loads GDRCopy with dlopen at first use, once per process: from GDRCOPY_PATH_L (the library
 * file or its folder) or, if that fails, from the search path of the loader. If the environment
 * variable DOCA_GPUNETIO_DISABLE_GDRCOPY is a number other than 0, GDRCopy is not used.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/gpu/gdrcopy.h"
#include "core/log/log.h"
#include "core/util.h"

/* As in gdrapi.h: a handle is a struct of one long, passed by value. */
typedef struct {
	unsigned long h;
} gdr_handle;

static struct {
	void *(*open)(void);
	int (*pin_buffer)(void *gdr, unsigned long addr, size_t size, uint64_t p2p_token,
			  uint32_t va_space, gdr_handle *handle);
	int (*unpin_buffer)(void *gdr, gdr_handle handle);
	int (*map)(void *gdr, gdr_handle handle, void **va, size_t size);
	int (*unmap)(void *gdr, gdr_handle handle, void *va, size_t size);
} api;

static void *gdr; /* NULL: GDRCopy is not available */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	void **slot;
} symbols[] = {
	{ "gdr_open", (void **)&api.open },
	{ "gdr_pin_buffer", (void **)&api.pin_buffer },
	{ "gdr_unpin_buffer", (void **)&api.unpin_buffer },
	{ "gdr_map", (void **)&api.map },
	{ "gdr_unmap", (void **)&api.unmap },
};

static void *open_library(void)
{
	static const char *const names[] = { "libgdrapi.so.2", "libgdrapi.so" };
	const char *where = getenv("GDRCOPY_PATH_L");
	char path[4096];
	void *lib = NULL;
	size_t i;

	if (where && *where)
		lib = dlopen(where, RTLD_NOW);
	for (i = 0; !lib && where && *where && i < GDK_ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", where, names[i]);
		lib = dlopen(path, RTLD_NOW);
	}
	if (!lib && where && *where)
		gdk_warn("ignoring GDRCOPY_PATH_L=\"%s\" (expected libgdrapi.so.2 or its folder: "
			 "%s), using the default",
			 where, dlerror());
	for (i = 0; !lib && i < GDK_ARRAY_SIZE(names); i++)
		lib = dlopen(names[i], RTLD_NOW);
	return lib;
}

static bool is_disabled(void)
{
	const char *off = getenv("DOCA_GPUNETIO_DISABLE_GDRCOPY");
	char *end;
	long number;

	if (!off || !*off)
		return false;
	number = strtol(off, &end, 10);
	if (*end)
		gdk_warn("ignoring DOCA_GPUNETIO_DISABLE_GDRCOPY=\"%s\" (expected 0 or 1), using 0",
			 off);
	return number && !*end;
}

static void load(void)
{
	void *lib;
	size_t i;

	if (is_disabled()) {
		gdk_info("GDRCopy is disabled by DOCA_GPUNETIO_DISABLE_GDRCOPY");
		return;
	}
	lib = open_library();
	if (!lib) {
		gdk_info("cannot load GDRCopy: %s", dlerror());
		return;
	}
	for (i = 0; i < GDK_ARRAY_SIZE(symbols); i++) {
		*symbols[i].slot = dlsym(lib, symbols[i].name);
		if (!*symbols[i].slot) {
			gdk_warn("GDRCopy is not available: libgdrapi has no %s", symbols[i].name);
			dlclose(lib);
			return;
		}
	}
	gdr = api.open();
	if (gdr)
		return;
	gdk_warn("GDRCopy is not available: gdr_open failed (is the kernel module gdrdrv loaded?)");
	dlclose(lib);
}

doca_error_t gdk_gdr_map(uint64_t gpu_addr, size_t size, struct gdk_gdr_map *map)
{
	gdr_handle handle;
	void *va;
	int ret;

	pthread_once(&once, load);
	if (!gdr)
		return DOCA_ERROR_NOT_SUPPORTED;
	ret = api.pin_buffer(gdr, gpu_addr, size, 0, 0, &handle);
	if (ret) {
		gdk_err("gdr_pin_buffer of %zu bytes at 0x%llx failed: error %d", size,
			(unsigned long long)gpu_addr, ret);
		return DOCA_ERROR_DRIVER;
	}
	ret = api.map(gdr, handle, &va, size);
	if (ret) {
		gdk_err("gdr_map of %zu bytes at 0x%llx failed: error %d", size,
			(unsigned long long)gpu_addr, ret);
		goto unpin;
	}
	*map = (struct gdk_gdr_map){ .handle = handle.h, .cpu_ptr = va, .size = size };
	return DOCA_SUCCESS;

unpin:
	api.unpin_buffer(gdr, handle);
	return DOCA_ERROR_DRIVER;
}

void gdk_gdr_unmap(struct gdk_gdr_map *map)
{
	gdr_handle handle = { map->handle };

	if (api.unmap(gdr, handle, map->cpu_ptr, map->size))
		gdk_warn("gdr_unmap of %p failed", map->cpu_ptr);
	if (api.unpin_buffer(gdr, handle))
		gdk_warn("gdr_unpin_buffer of %p failed", map->cpu_ptr);
	map->cpu_ptr = NULL;
}
