/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The clock, and the yield of CPU threads that poll. */
#ifndef GDK_PLATFORM_YIELD_H
#define GDK_PLATFORM_YIELD_H

#include <sched.h>
#include <stdint.h>
#include <sys/select.h>
#include <time.h>

#include "device/gdk/platform_fn.h"

#define GDK_HOST_LATE_NS  500000u /* a longer yield waited for another program */
#define GDK_HOST_LATE	  1000	  /* number of sleeps after such a yield */
#define GDK_HOST_SLEEP_US 50

GDK_FN uint64_t gdk_now_ns(void)
{
	struct timespec ts;

#ifdef CLOCK_MONOTONIC
	clock_gettime(CLOCK_MONOTONIC, &ts);
#else /* strict ISO C has only this clock */
	timespec_get(&ts, TIME_UTC);
#endif
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* How often the calling thread sleeps before it tries to yield again. */
static __thread uint32_t gdk_host_late __attribute__((__unused__));

/*
 * Lets other threads run. Beside programs that never sleep, each sched_yield() waits for a time
 * slice of theirs: 1.8 ms for each step of threads that hand work to each other (Linux 6.18, 2
 * processors, 4 busy loops). A thread that wakes up from a sleep preempts such programs, and a step
 * takes 0.1 ms. So a thread whose yield took long sleeps instead for a while.
 */
GDK_SLOW_FN void gdk_host_yield(void)
{
	struct timeval t = { 0, GDK_HOST_SLEEP_US };
	uint64_t start;

	if (gdk_host_late) {
		gdk_host_late--;
		(void)select(0, NULL, NULL, NULL, &t); /* strict C11 declares it, too */
		return;
	}
	start = gdk_now_ns();
	sched_yield();
	if (gdk_now_ns() - start > GDK_HOST_LATE_NS)
		gdk_host_late = GDK_HOST_LATE;
}

#endif
