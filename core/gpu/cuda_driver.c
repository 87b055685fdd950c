/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Loads libcuda.so.1 and its functions (cuda_driver.h). This file logs nothing: callers get the
 * reason of a failure as text.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/gpu/cuda_driver.h"
#include "core/util.h"

static struct gdk_cuda cuda;
static bool usable;
static char reason[192];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	void **slot;
	bool optional;
} symbols[] = {
	{ "cuInit", (void **)&cuda.init, false },
	{ "cuGetErrorName", (void **)&cuda.error_name, false },
	{ "cuDeviceGetByPCIBusId", (void **)&cuda.device_by_pci, false },
	{ "cuDeviceGetAttribute", (void **)&cuda.device_attribute, false },
	{ "cuDevicePrimaryCtxRetain", (void **)&cuda.primary_retain, false },
	{ "cuDevicePrimaryCtxRelease_v2", (void **)&cuda.primary_release, false },
	{ "cuCtxPushCurrent_v2", (void **)&cuda.push, false },
	{ "cuCtxPopCurrent_v2", (void **)&cuda.pop, false },
	{ "cuCtxGetDevice", (void **)&cuda.current_device, false },
	{ "cuMemAlloc_v2", (void **)&cuda.mem_alloc, false },
	{ "cuMemFree_v2", (void **)&cuda.mem_free, false },
	{ "cuMemHostRegister_v2", (void **)&cuda.host_register, false },
	{ "cuMemHostUnregister", (void **)&cuda.host_unregister, false },
	{ "cuMemHostGetDevicePointer_v2", (void **)&cuda.host_device_ptr, false },
	{ "cuMemcpyHtoDAsync_v2", (void **)&cuda.copy_to, false },
	{ "cuMemcpyDtoHAsync_v2", (void **)&cuda.copy_from, false },
	{ "cuStreamCreate", (void **)&cuda.stream_create, false },
	{ "cuStreamSynchronize", (void **)&cuda.stream_sync, false },
	{ "cuStreamDestroy_v2", (void **)&cuda.stream_destroy, false },
	{ "cuPointerSetAttribute", (void **)&cuda.pointer_set, false },
	{ "cuDeviceGetCount", (void **)&cuda.device_count, true },
	{ "cuDeviceGet", (void **)&cuda.device_get, true },
	{ "cuDeviceGetPCIBusId", (void **)&cuda.device_pci, true },
	{ "cuMemGetHandleForAddressRange", (void **)&cuda.handle_for_range, true },
};

static bool find_symbols(void *lib)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(symbols); i++) {
		*symbols[i].slot = dlsym(lib, symbols[i].name);
		if (*symbols[i].slot || symbols[i].optional)
			continue;
		snprintf(reason, sizeof(reason), "libcuda.so.1 has no %s", symbols[i].name);
		return false;
	}
	return true;
}

static void load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int ret;

	if (!lib) {
		snprintf(reason, sizeof(reason), "cannot load the CUDA driver: %s", dlerror());
		return;
	}
	if (!find_symbols(lib))
		goto close;
	ret = cuda.init(0);
	if (ret) {
		snprintf(reason, sizeof(reason), "cuInit failed: %s", gdk_cuda_error(&cuda, ret));
		goto close;
	}
	usable = true;
	return;

close:
	dlclose(lib);
}

const struct gdk_cuda *gdk_cuda_load(const char **why)
{
	pthread_once(&once, load);
	*why = reason;
	return usable ? &cuda : NULL;
}

const char *gdk_cuda_error(const struct gdk_cuda *driver, int error)
{
	const char *name = NULL;

	if (driver->error_name(error, &name) || !name)
		return "unknown CUDA error";
	return name;
}
