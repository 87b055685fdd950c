/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Shared by the benchmarks of the software NIC: time, messages between processes, and
 * series of measurements. */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RUNS	5
#define LIMIT_S 55u

#define REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

struct series {
	double v[RUNS];
	int n;
};

static inline double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static inline void series_add(struct series *s, double v)
{
	REQUIRE(s->n < RUNS);
	s->v[s->n++] = v;
}

static inline int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the series, which must have RUNS values. Then v[0] and v[RUNS - 1] are its range. */
static inline double median(struct series *s)
{
	qsort(s->v, RUNS, sizeof(s->v[0]), by_value);
	return s->v[RUNS / 2];
}

static inline void send_bytes(int fd, const void *buf, size_t len)
{
	REQUIRE(write(fd, buf, len) == (ssize_t)len);
}

static inline void receive_bytes(int fd, void *buf, size_t len)
{
	REQUIRE(read(fd, buf, len) == (ssize_t)len); /* short messages arrive as a whole */
}

/* Yields the CPU on machines with few cores, after a poll without result. */
static inline void pause_if_crowded(void)
{
	static long cores;

	if (!cores)
		cores = sysconf(_SC_NPROCESSORS_ONLN);
	if (cores < 4)
		sched_yield();
}

static inline void await_word(const volatile uint64_t *at, uint64_t value)
{
	while (*at != value)
		pause_if_crowded();
}

double udp_rate(size_t payload);  /* packets per second that arrive, in batches */
double udp_loop_rate(size_t len); /* the same, one system call for each packet */
double udp_round_trip(void);	  /* microseconds; both sides poll */

#endif
