/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Preloaded into perftest's programs. Each of them measures the CPU's frequency when it starts, and
 * spins for 0.2 s between calls of gettimeofday(). Here that clock runs 16 times as fast, so only
 * the rates that the programs print are wrong.
 */
#include <sys/time.h>
#include <time.h>

#define SPEED 16

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	static long long first;
	struct timespec t;
	long long us, none = 0;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	us = t.tv_sec * 1000000ll + t.tv_nsec / 1000;
	__atomic_compare_exchange_n(&first, &none, us, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	us = first + (us - first) * SPEED;
	now->tv_sec = us / 1000000;
	now->tv_usec = us % 1000000;
	return 0;
}
