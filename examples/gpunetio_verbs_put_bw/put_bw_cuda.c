/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Loads the GPU's part of gpunetio_verbs_put_bw, libgpunetio_verbs_put_bw_cuda.so, at run time,
 * so that one binary works with and without CUDA. It searches ../lib/ relative to the program,
 * the folder of the program, and then the search path of the loader.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "put_bw.h"

#define LIBRARY "libgpunetio_verbs_put_bw_cuda.so"

static void *open_near_program(const char *folder)
{
	char path[4096 + 64];
	ssize_t n = readlink("/proc/self/exe", path, 4095);
	char *slash;

	if (n <= 0)
		return NULL;
	path[n] = 0;
	slash = strrchr(path, '/');
	snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s" LIBRARY, folder);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *find(const char *symbol)
{
	static void *lib;
	void *fn;

	if (!lib)
		lib = open_near_program("../lib/");
	if (!lib)
		lib = open_near_program("");
	if (!lib)
		lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		ex_error("cannot load the GPU code: %s (build it with nvcc, or use -g host)",
			 dlerror());
		return NULL;
	}
	fn = dlsym(lib, symbol);
	if (!fn)
		ex_error("%s", dlerror());
	return fn;
}

int put_bw_cuda_run(struct put_bw_job *job)
{
	int (*run)(struct put_bw_job *) = NULL;

	*(void **)&run = find("put_bw_gpu_run");
	return run ? run(job) : -1;
}

int put_bw_cuda_copy(const char *gpu, void *dst, const void *src, size_t len)
{
	int (*copy)(const char *, void *, const void *, size_t) = NULL;

	*(void **)&copy = find("put_bw_gpu_copy");
	return copy ? copy(gpu, dst, src, len) : -1;
}
