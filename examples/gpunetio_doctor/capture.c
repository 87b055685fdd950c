/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Runs a function in a child process and reads what it prints, within a time limit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"

long long dr_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void run_child(int (*child)(const void *arg), const void *arg, int out)
{
	int null = open("/dev/null", O_WRONLY);
	int rc;

	dup2(out, STDOUT_FILENO);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	rc = child(arg);
	fflush(stdout);
	_exit(rc);
}

/* Reads until the end of the output. What does not fit is discarded. */
static int read_output(int fd, long long deadline, char *text, size_t size)
{
	char rest[1024];
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long long left = deadline - dr_now_ms();
		bool full = len == size - 1;
		ssize_t n;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = full ? read(fd, rest, sizeof(rest)) : read(fd, text + len, size - 1 - len);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (!full) {
			len += (size_t)n;
			text[len] = '\0';
		}
	}
}

int dr_reap(pid_t child, long long end_ms, int *status)
{
	pid_t got;

	while (!(got = waitpid(child, status, WNOHANG)) && dr_now_ms() < end_ms)
		usleep(1000);
	return got == child ? 0 : -1;
}

/* Ends a child that has closed its output but does not exit, too. */
static int wait_child(pid_t pid, long long deadline)
{
	int status;

	if (!dr_reap(pid, deadline, &status))
		return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
	kill(pid, SIGKILL);
	(void)dr_reap(pid, dr_now_ms() + DR_REAP_MS, &status);
	return -ETIMEDOUT;
}

int dr_capture(int (*child)(const void *arg), const void *arg, unsigned int timeout_s, char *text,
	       size_t size)
{
	long long deadline = dr_now_ms() + timeout_s * 1000LL;
	int fds[2], rc, status;
	pid_t pid;

	text[0] = '\0';
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL); /* the child must not print what the parent has buffered */
	pid = fork();
	if (!pid)
		run_child(child, arg, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	rc = read_output(fds[0], deadline, text, size);
	close(fds[0]);
	status = wait_child(pid, rc ? 0 : deadline);
	return rc ? rc : status;
}
