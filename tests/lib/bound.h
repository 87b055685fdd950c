/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Limits of tests without progress: a time that has to elapse, and that the process also has to get
 * as CPU time. A process that a busy machine or a debugger keeps from running does not reach the
 * limit; one that sleeps for ever does not either, and is ended by the time limit of run-one.sh.
 */
#ifndef BOUND_H
#define BOUND_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct bound {
	uint64_t progress;
	uint64_t elapsed, cpu; /* times of the last progress */
	bool on_gpu;	       /* a GPU makes the progress: CPU time does not count */
};

static inline uint64_t bound_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline struct bound bound_begin(uint64_t progress, bool on_gpu)
{
	return (struct bound){ progress, bound_ns(CLOCK_MONOTONIC),
			       bound_ns(CLOCK_PROCESS_CPUTIME_ID), on_gpu };
}

/* Returns whether ns have passed since `progress` last changed. */
static inline bool bound_passed(struct bound *b, uint64_t progress, uint64_t ns)
{
	if (progress != b->progress)
		*b = bound_begin(progress, b->on_gpu);
	return bound_ns(CLOCK_MONOTONIC) - b->elapsed > ns &&
	       (b->on_gpu || bound_ns(CLOCK_PROCESS_CPUTIME_ID) - b->cpu > ns);
}

#endif
