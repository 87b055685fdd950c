/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* How many descriptors the process has, those of the test runner and of the NIC's thread aside. */
#ifndef FDS_H
#define FDS_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* The runner's own thread opens its arena and its pipes when it gets to it, the NIC's what
 * the kernel says of the process's threads. */
static inline bool is_others(int dir, const char *name)
{
	char to[64];
	ssize_t len = readlinkat(dir, name, to, sizeof(to) - 1);

	to[len > 0 ? len : 0] = 0;
	return !strncmp(to, "pipe:", 5) || strstr(to, "/bxf_arena") ||
	       (!strncmp(to, "/proc/", 6) && strstr(to, "/task"));
}

static inline unsigned int count_fds(void)
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

#endif
