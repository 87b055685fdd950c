/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What the parts of the software NIC's bench share: time, talk, and series of figures. */
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

/* Sorts; the first and the last are the range then. */
static inline double median(struct series *s)
{
	qsort(s->v, RUNS, sizeof(s->v[0]), by_value);
	return s->v[RUNS / 2];
}

static inline void say(int fd, const void *buf, size_t len)
{
	REQUIRE(write(fd, buf, len) == (ssize_t)len);
}

static inline void hear(int fd, void *buf, size_t len)
{
	REQUIRE(read(fd, buf, len) == (ssize_t)len); /* short and written whole */
}

/* Who polls without result leaves its core to others where there are few. */
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

double udp_rate(size_t payload); /* packets a second that arrive */
double udp_round_trip(void);	 /* microseconds, both sides polling */

#endif
