/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Loads the stand-ins (substitutes for tests) of libcuda and libgdrapi. When gdaki
 * later calls dlopen(), it gets the stand-in, which is loaded under the same soname.
 * The stand-ins are in ../standin, relative to the folder of the test executable; the
 * environment variable STANDIN_DIR names another folder.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int (*standin_cuda_live)(void);
static long (*standin_cuda_calls)(void);
static __attribute__((unused)) long (*standin_cuda_copies)(void);
static __attribute__((unused)) long (*standin_cuda_writes)(void);
static __attribute__((unused)) size_t (*standin_cuda_write)(long n, unsigned long long *dst);
static __attribute__((unused)) size_t (*standin_cuda_bytes)(void);
static __attribute__((unused)) void (*standin_cuda_spin)(int on);
static __attribute__((unused)) long (*standin_cuda_waits)(void);
static void (*standin_cuda_fail_at)(long n);
static int (*standin_cuda_failed)(void);
static int (*standin_gdr_live)(void);
static void (*standin_gdr_fail_at)(long n);
static int (*standin_gdr_failed)(void);

static inline void standin_path(char *path, size_t len, const char *name)
{
	const char *dir = getenv("STANDIN_DIR");
	char exe[2048];
	ssize_t used;

	if (dir) {
		snprintf(path, len, "%s/%s", dir, name);
		return;
	}
	used = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	cr_assert_gt(used, 0);
	exe[used] = '\0';
	snprintf(path, len, "%s/../standin/%s", dirname(exe), name);
}

static inline void *standin_open(const char *name)
{
	char path[4096];
	void *lib;

	standin_path(path, sizeof(path), name);
	lib = dlopen(path, RTLD_NOW);
	cr_assert(lib, "%s", dlerror());
	return lib;
}

/* Closes a library that standin_open() opened. Expects that gdaki has no reference to it. */
static inline void standin_close(void *lib, const char *name)
{
	char path[4096];

	standin_path(path, sizeof(path), name);
	dlclose(lib);
	cr_expect_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD), "%s was not closed", name);
}

static inline void standin_cuda(void)
{
	void *lib = standin_open("libcuda.so.1");

	standin_cuda_live = (int (*)(void))dlsym(lib, "standin_cuda_live");
	standin_cuda_calls = (long (*)(void))dlsym(lib, "standin_cuda_calls");
	standin_cuda_copies = (long (*)(void))dlsym(lib, "standin_cuda_copies");
	*(void **)&standin_cuda_writes = dlsym(lib, "standin_cuda_writes");
	*(void **)&standin_cuda_write = dlsym(lib, "standin_cuda_write");
	*(void **)&standin_cuda_spin = dlsym(lib, "standin_cuda_spin");
	*(void **)&standin_cuda_waits = dlsym(lib, "standin_cuda_waits");
	standin_cuda_fail_at = (void (*)(long))dlsym(lib, "standin_cuda_fail_at");
	standin_cuda_bytes = (size_t(*)(void))dlsym(lib, "standin_cuda_bytes");
	standin_cuda_failed = (int (*)(void))dlsym(lib, "standin_cuda_failed");
	cr_assert(standin_cuda_live && standin_cuda_calls && standin_cuda_bytes &&
		  standin_cuda_fail_at && standin_cuda_failed);
}

static inline void *standin_gdr(void)
{
	void *lib = standin_open("libgdrapi.so");

	standin_gdr_live = (int (*)(void))dlsym(lib, "standin_gdr_live");
	standin_gdr_fail_at = (void (*)(long))dlsym(lib, "standin_gdr_fail_at");
	standin_gdr_failed = (int (*)(void))dlsym(lib, "standin_gdr_failed");
	cr_assert(standin_gdr_live && standin_gdr_fail_at && standin_gdr_failed);
	return lib;
}

#endif
