/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Limits of tests without progress: a time that has to elapse, and that the process also has to get
 * as CPU time, while none of its threads waits for a processor. A process that a busy machine or a
 * debugger keeps from running does not reach the limit, nor does one of which a thread spins on one
 * processor while the kernel starves the others. One that sleeps for ever does not either, and is
 * ended by the time limit of run-one.sh.
 */
#ifndef BOUND_H
#define BOUND_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BOUND_THREADS 512
#define BOUND_RUN_NS  5000000000u /* in this time each thread that can run must have run */

struct bound {
	uint64_t progress;
	uint64_t elapsed, cpu; /* times of the last progress */
	uint64_t noted;	       /* time at which the threads were noted, or 0 */
	bool on_gpu;	       /* a GPU makes the progress: CPU time does not count */
};

static __thread struct {
	int tid;
	unsigned long long ran; /* ns */
} bound_threads[BOUND_THREADS];
static __thread unsigned int bound_num;

static inline uint64_t bound_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline bool bound_read(int tid, const char *file, char text[256])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, file);
	f = fopen(path, "re");
	text[0] = 0;
	if (!f)
		return false;
	text[fread(text, 1, 255, f)] = 0;
	fclose(f);
	return text[0];
}

/* Returns whether the thread runs, or waits for a processor, and the time that it has run. */
static inline bool bound_can_run(int tid, unsigned long long *ran)
{
	char text[256], *state;

	if (!bound_read(tid, "stat", text))
		return false;
	state = strrchr(text, ')');
	if (!state || strncmp(state, ") R", 3) || !bound_read(tid, "schedstat", text))
		return false;
	*ran = strtoull(text, NULL, 10);
	return true;
}

static inline void bound_note_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;

	bound_num = 0;
	while (dir && (d = readdir(dir)) && bound_num < BOUND_THREADS) {
		bound_threads[bound_num].tid = atoi(d->d_name);
		bound_num += bound_can_run(bound_threads[bound_num].tid,
					   &bound_threads[bound_num].ran);
	}
	if (dir)
		closedir(dir);
}

/* Returns whether a thread that was noted has waited for a processor since then. */
static inline bool bound_starves(void)
{
	unsigned long long ran;
	unsigned int i;

	for (i = 0; i < bound_num; i++)
		if (bound_can_run(bound_threads[i].tid, &ran) && ran == bound_threads[i].ran)
			return true;
	return false;
}

static inline struct bound bound_begin(uint64_t progress, bool on_gpu)
{
	struct bound b = { .progress = progress, .on_gpu = on_gpu };

	b.elapsed = bound_ns(CLOCK_MONOTONIC);
	b.cpu = bound_ns(CLOCK_PROCESS_CPUTIME_ID);
	return b;
}

/* Returns whether ns have elapsed since the last progress, and the process got as much CPU time. */
static inline bool bound_over(const struct bound *b, uint64_t ns)
{
	return bound_ns(CLOCK_MONOTONIC) - b->elapsed > ns &&
	       (b->on_gpu || bound_ns(CLOCK_PROCESS_CPUTIME_ID) - b->cpu > ns);
}

/* Also returns false if `progress` has changed since the last call, or if a thread starves. Must be
 * called repeatedly. */
static inline bool bound_passed(struct bound *b, uint64_t progress, uint64_t ns)
{
	const uint64_t now = bound_ns(CLOCK_MONOTONIC);

	if (progress != b->progress)
		*b = bound_begin(progress, b->on_gpu);
	if (!bound_over(b, ns))
		return false;
	if (b->on_gpu)
		return true;
	if (!b->noted) {
		bound_note_threads();
		b->noted = now;
	}
	if (now - b->noted < BOUND_RUN_NS)
		return false;
	if (bound_starves())
		*b = bound_begin(progress, false);
	return b->noted;
}

#endif
