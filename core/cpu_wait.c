/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Source: Linux, Documentation/scheduler/sched-stats.rst, section /proc/<pid>/schedstat. */
#include "core/cpu_wait.h"

#include <dirent.h>
#include <stdio.h>

#define THREADS_MAX 256u

static uint64_t wait_of(const char *tid)
{
	unsigned long long ns = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", tid);
	f = fopen(path, "re");
	if (!f)
		return 0; /* the thread has ended */
	if (fscanf(f, "%*u %llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return ns;
}

uint64_t gdk_cpu_wait_ns(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int num = 0;
	struct dirent *task;
	uint64_t sum = 0;

	if (!tasks)
		return 0;
	while (num < THREADS_MAX && (task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		sum += wait_of(task->d_name);
		num++;
	}
	closedir(tasks);
	return sum;
}
