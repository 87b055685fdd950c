/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Interposed calls of the CUDA driver that would fail because the NIC is not a PCIe
 * device. A register page is ordinary memory, and the driver refuses to register it as
 * device memory (CU_MEMHOSTREGISTER_IOMEMORY): the flag is removed for register pages,
 * so that a GPU can store doorbells. A process cannot map NVIDIA's dmabufs: the address
 * that each was exported from is recorded, and the NIC copies that memory through the
 * driver (mem_gpu.c).
 *
 * Programs find driver functions by linking, by dlsym or, as libcudart does, by
 * cuGetProcAddress. All three find the functions of this file: they have the driver's
 * names, and dlsym and cuGetProcAddress are interposed, too. Builds with sanitizers
 * interpose nothing: a sanitizer's runtime calls dlsym before anything is initialized.
 */
#ifndef GDK_SAN
#include "front.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CU_NOT_INITIALIZED 3
#define CU_HOST_IOMEMORY   4u
#define CU_HANDLE_DMABUF   1
#define CU_DMABUF_PCIE	   1u /* cuda.h: CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE */
#define EXPORTS		   1024u
#define NEW_GET_PROC	   12000 /* first version of CUDA with cuGetProcAddress_v2 */

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Interposed dlsym must tail-call the real one: RTLD_NEXT is resolved from the return address,
 * which must be in the program. */
#ifdef __clang__
#define TAIL_CALL __attribute__((musttail)) return
#define TAIL_CALLER
#else
#define TAIL_CALL   return
/* A build with gcov would count after the call, which is then no tail call. */
#define TAIL_CALLER __attribute__((optimize("O2"), no_profile_instrument_function))
#endif

typedef void *(*dlsym_fn)(void *handle, const char *name);

static dlsym_fn real_dlsym;

static dlsym_fn find_dlsym(void)
{
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
	dlsym_fn found = NULL;
	size_t i;

	for (i = 0; !found && i < sizeof(versions) / sizeof(versions[0]); i++)
		*(void **)&found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	if (!found)
		abort();
	__atomic_store_n(&real_dlsym, found, __ATOMIC_RELAXED);
	return found;
}

/* Returns the driver's own function; NULL: no driver is loaded, or it lacks the function. */
static void *driver_fn(const char *name)
{
	dlsym_fn find = real_dlsym ? real_dlsym : find_dlsym();
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *fn;

	if (!lib)
		return NULL;
	fn = find(lib, name);
	dlclose(lib); /* the program keeps the library open */
	return fn;
}

/* ---- register pages ---- */

static bool is_register_page(const void *ptr)
{
	unsigned long long from, to, at = (uintptr_t)ptr;
	char line[512];
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%llx-%llx", &from, &to) == 2 && from <= at && at < to &&
			strstr(line, "/memfd:" SN_MEMFD_NAME);
	if (f)
		fclose(f);
	return found;
}

static int host_register(const char *name, void *ptr, size_t size, unsigned int flags)
{
	int (*next)(void *, size_t, unsigned int);

	*(void **)&next = driver_fn(name);
	if (!next)
		return CU_NOT_INITIALIZED;
	if (flags & CU_HOST_IOMEMORY && is_register_page(ptr))
		flags &= ~CU_HOST_IOMEMORY;
	return next(ptr, size, flags);
}

int cuMemHostRegister(void *ptr, size_t size, unsigned int flags)
{
	return host_register("cuMemHostRegister", ptr, size, flags);
}

int cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	return host_register("cuMemHostRegister_v2", ptr, size, flags);
}

/* ---- dmabufs: identified by their inode ---- */

static pthread_mutex_t exports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	dev_t dev;
	ino_t ino;
	struct sn_export what;
} exports[EXPORTS]; /* only the newest: programs register a dmabuf soon after its export */
static unsigned n_exports;

static void record_export(int fd, struct sn_export what)
{
	struct stat st;

	if (fstat(fd, &st))
		return;
	pthread_mutex_lock(&exports_lock);
	exports[n_exports % EXPORTS].dev = st.st_dev;
	exports[n_exports % EXPORTS].ino = st.st_ino;
	exports[n_exports++ % EXPORTS].what = what;
	pthread_mutex_unlock(&exports_lock);
}

bool sn_export_of(int fd, uint64_t off, uint64_t len, struct sn_export *found)
{
	bool known = false, holds = false;
	struct stat st;
	unsigned i, n;

	if (fstat(fd, &st))
		return false;
	pthread_mutex_lock(&exports_lock);
	n = n_exports < EXPORTS ? n_exports : EXPORTS;
	for (i = 1; !holds && i <= n; i++) { /* newest first */
		unsigned at = (n_exports - i) % EXPORTS;
		const struct sn_export *x = &exports[at].what;

		if (exports[at].dev != st.st_dev || exports[at].ino != st.st_ino)
			continue;
		holds = off <= x->len && len <= x->len - off;
		if (!known || holds)
			*found = *x;
		known = true;
	}
	pthread_mutex_unlock(&exports_lock);
	return known;
}

int cuMemGetHandleForAddressRange(void *handle, unsigned long long va, size_t size, int type,
				  unsigned long long flags)
{
	int (*next)(void *, unsigned long long, size_t, int, unsigned long long), rc;

	*(void **)&next = driver_fn("cuMemGetHandleForAddressRange");
	if (!next)
		return CU_NOT_INITIALIZED;
	rc = next(handle, va, size, type, flags);
	if (!rc && type == CU_HANDLE_DMABUF)
		record_export(*(int *)handle,
			      (struct sn_export){ va, size, flags & CU_DMABUF_PCIE });
	return rc;
}

/* ---- cuGetProcAddress and dlsym: they return the functions above ---- */

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status);

static const struct {
	const char *name;
	void *fn;
} wrapped[] = {
	{ "cuMemHostRegister_v2", (void *)cuMemHostRegister_v2 },
	{ "cuMemHostRegister", (void *)cuMemHostRegister },
	{ "cuMemGetHandleForAddressRange", (void *)cuMemGetHandleForAddressRange },
	{ "cuGetProcAddress_v2", (void *)cuGetProcAddress_v2 },
	{ "cuGetProcAddress", (void *)cuGetProcAddress },
};

static void *wrapper_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(wrapped) / sizeof(wrapped[0]); i++)
		if (!strcmp(name, wrapped[i].name))
			return wrapped[i].fn;
	return NULL;
}

/* Replaces a driver function by its wrapper. The name cuGetProcAddress means the function with
 * suffix _v2 from CUDA 12.0 on, the name cuMemHostRegister always does. */
static void replace(const char *name, void **fn, int version)
{
	void *ours = wrapper_of(name);

	if (!ours || !*fn)
		return;
	if (!strcmp(name, "cuGetProcAddress") && version >= NEW_GET_PROC)
		ours = (void *)cuGetProcAddress_v2;
	else if (!strcmp(name, "cuMemHostRegister"))
		ours = (void *)cuMemHostRegister_v2;
	*fn = ours;
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	int (*next)(const char *, void **, int, uint64_t), rc;

	*(void **)&next = driver_fn("cuGetProcAddress");
	if (!next)
		return CU_NOT_INITIALIZED;
	rc = next(name, fn, version, flags);
	if (!rc)
		replace(name, fn, version);
	return rc;
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	int (*next)(const char *, void **, int, uint64_t, int *), rc;

	*(void **)&next = driver_fn("cuGetProcAddress_v2");
	if (!next)
		return CU_NOT_INITIALIZED;
	rc = next(name, fn, version, flags, status);
	if (!rc)
		replace(name, fn, version);
	return rc;
}

static void *wrapped_dlsym(void *handle, const char *name)
{
	void *found = real_dlsym(handle, name), *ours = wrapper_of(name);

	return found && ours ? ours : found;
}

TAIL_CALLER void *dlsym(void *restrict handle, const char *restrict name)
{
	dlsym_fn next = __atomic_load_n(&real_dlsym, __ATOMIC_RELAXED);

	if (!next)
		next = find_dlsym();
	if (name[0] == 'c' && name[1] == 'u' && wrapper_of(name))
		return wrapped_dlsym(handle, name);
	TAIL_CALL next(handle, name);
}

#else
#include "front.h"

bool sn_export_of(int fd, uint64_t off, uint64_t len, struct sn_export *found)
{
	(void)fd;
	(void)off;
	(void)len;
	(void)found;
	return false;
}
#endif
