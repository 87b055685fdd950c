/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Launches the kernel of a program, on a GPU or on CPU threads. Each NAME_kernel.cu is compiled for
 * both and exports the same table of functions.
 */
#ifndef EXAMPLES_GRID_H
#define EXAMPLES_GRID_H

#include <stddef.h>

#include "job.h"

struct ex_grid_ops {
	/* PCI address of the GPU; not used by CPU threads. Returns 0 or, after a message, -1. */
	int (*open)(const char *gpu);
	/* Starts the kernel and returns at once: 0 or, after a message, -1. Memory to which *job
	 * points stays valid until the kernel ends. */
	int (*launch)(const struct ex_job *job);
	/* 1: the kernel has ended; 0: it is running; negative errno: CUDA error, printed. */
	int (*done)(void);
	/* Seconds from the start of the last kernel to its end. The kernel has
	 * ended. Negative: unknown. */
	double (*seconds)(void);
	/* Copies between memories of all kinds. Returns 0 or, after a message, -1. */
	int (*copy)(void *dst, const void *src, size_t len);
	void (*close)(void); /* does not wait for a kernel that is still running */
};

/* "host": the kernel that is linked into the program. Otherwise the one in libNAME_cuda.so, loaded
 * at run time. Prints an error and returns NULL if that is impossible. */
const struct ex_grid_ops *ex_grid_get(const char *gpu);

#endif
