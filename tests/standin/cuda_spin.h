/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* A kernel that occupies the whole GPU and does not end. While it "runs", a call that waits for it
 * with a real driver fails and is counted. tests/gpu/spin.cu measures which calls wait. */
#ifndef CUDA_SPIN_H
#define CUDA_SPIN_H

#include <stdio.h>

#define LAUNCH_TIMEOUT 702

static int spinning;
static long waits;

__attribute__((visibility("default"))) void standin_cuda_spin(int on)
{
	__atomic_store_n(&spinning, on, __ATOMIC_RELEASE);
}

/* Returns the number of calls that would have waited. */
__attribute__((visibility("default"))) long standin_cuda_waits(void)
{
	return __atomic_load_n(&waits, __ATOMIC_ACQUIRE);
}

static int would_wait(const char *call)
{
	if (!__atomic_load_n(&spinning, __ATOMIC_ACQUIRE))
		return 0;
	__atomic_add_fetch(&waits, 1, __ATOMIC_ACQ_REL);
	fprintf(stderr, "stand-in driver: %s would wait for a running kernel\n", call);
	return 1;
}

#define WAITS() \
	do { \
		if (would_wait(__func__)) \
			return LAUNCH_TIMEOUT; \
	} while (0)

#endif
