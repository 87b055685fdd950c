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
#include <string.h>
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

/* Starts this program again through softnic-run, with options that end with NULL. Its arguments are
 * `role` and two numbers. */
static inline pid_t start_on_nic(const char *const *options, const char *role, int a, int b)
{
	char self[4096], runner[4200], fds[2][12];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *args[16] = { runner };
	pid_t pid = fork();
	int n = 1;

	REQUIRE(len > 0 && pid >= 0);
	if (pid)
		return pid;
	self[len] = 0;
	snprintf(runner, sizeof(runner), "%s", self);
	strcpy(strrchr(runner, '/'), "/../bin/softnic-run");
	snprintf(fds[0], sizeof(fds[0]), "%d", a);
	snprintf(fds[1], sizeof(fds[1]), "%d", b);
	while (*options) {
		REQUIRE(n < 10);
		args[n++] = *options++;
	}
	args[n++] = "--";
	args[n++] = self;
	args[n++] = role;
	args[n++] = fds[0];
	args[n++] = fds[1];
	execv(runner, (char *const *)args);
	_exit(127);
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
