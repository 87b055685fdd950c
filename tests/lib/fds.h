/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Counts the process's open descriptors, except those that the test runner (Criterion) and the
 * software NIC's thread open. */
#ifndef FDS_H
#define FDS_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* The runner's thread opens pipes and its shared memory (bxf_arena) at any time; the NIC's thread
 * opens files in /proc/PID/task. The tested code opens neither. */
static inline bool is_others(int dir, const char *name)
{
	char to[64];
	ssize_t len = readlinkat(dir, name, to, sizeof(to) - 1);

	to[len > 0 ? len : 0] = 0;
	return !strncmp(to, "pipe:", 5) || strstr(to, "/bxf_arena") ||
	       (!strncmp(to, "/proc/", 6) && strstr(to, "/task"));
}

static inline unsigned int count_fds_once(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;
	struct dirent *e;

	cr_assert(d);
	while ((e = readdir(d)))
		n += !is_others(dirfd(d), e->d_name);
	closedir(d);
	return n;
}

/* Returns the least of several counts: another thread may have a file open for a moment. */
static inline unsigned int count_fds(void)
{
	unsigned int least = count_fds_once(), n;

	for (int i = 0; i < 3; i++) {
		usleep(300);
		n = count_fds_once();
		least = n < least ? n : least;
	}
	return least;
}

#endif
