/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Finds the kernel of this program: the one for CPU threads is linked, the one for a GPU is in
 * libNAME_cuda.so, where NAME is the name of the program. It is loaded at run time, so that one
 * program works with and without CUDA.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "grid.h"

/* NULL in a program without a kernel. */
extern const struct ex_grid_ops ex_grid_cpu __attribute__((__weak__));

/* Searches ../lib/ relative to the program, then the folder of the program. */
static void *open_near(const char *program, const char *name)
{
	static const char *const folders[] = { "../lib/", "" };
	const char *slash = strrchr(program, '/');
	char path[2 * 4096];
	void *lib = NULL;

	for (size_t i = 0; !lib && i < 2; i++) {
		snprintf(path, sizeof(path), "%.*s%s%s", (int)(slash + 1 - program), program,
			 folders[i], name);
		if (!access(path, F_OK)) /* otherwise dlerror() would name the wrong file */
			lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return lib;
}

static const struct ex_grid_ops *load(void)
{
	char program[4096], name[512];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	const struct ex_grid_ops *ops;
	void *lib;

	if (n <= 0)
		return (void)ex_error("cannot read /proc/self/exe"), NULL;
	program[n] = 0;
	snprintf(name, sizeof(name), "lib%.400s_cuda.so", strrchr(program, '/') + 1);
	lib = open_near(program, name);
	if (!lib)
		lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		ex_error("cannot load the GPU code: %s (build it with nvcc, or use -g host)",
			 dlerror());
		return NULL;
	}
	ops = dlsym(lib, "ex_grid_cuda");
	if (!ops)
		ex_error("%s", dlerror());
	return ops;
}

const struct ex_grid_ops *ex_grid_get(const char *gpu)
{
	if (strcmp(gpu, "host"))
		return load();
	if (!&ex_grid_cpu)
		ex_error("this program has no kernel");
	return &ex_grid_cpu;
}
