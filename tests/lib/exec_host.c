/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Starts the test's own executable as another host on the network. */
#include "exec_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* softnic-run is found relative to the executable: build/tests/test_x -> build/bin/softnic-run. */
static void find(char *exe, char *runner, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", exe, len - 1);
	char *cut;

	if (n <= 0)
		_exit(126);
	exe[n] = 0;
	cut = strrchr(exe, '/');
	snprintf(runner, len, "%.*s/../bin/softnic-run", (int)(cut - exe), exe);
}

/* Is the NIC preloaded, and not linked with the program? */
static int preloads(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(E2E_LINKED_NIC)
	return 0;
#else
	return getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "softnic");
#endif
}

void exec_host(const char *option)
{
	char exe[4096], runner[4096], *argv[6];
	int n = 0;

	find(exe, runner, sizeof(exe));
	unsetenv("SOFTNIC_IP");
	unsetenv("SOFTNIC_SYSFS");
	unsetenv("SYSFS_PATH");
	unsetenv("SOFTNIC_PCAP");
	argv[n++] = runner;
	if (preloads())
		unsetenv("LD_PRELOAD");
	else
		argv[n++] = (char *)"--no-preload";
	if (option)
		argv[n++] = (char *)option;
	argv[n++] = (char *)"--";
	argv[n++] = exe;
	argv[n] = NULL;
	execv(runner, argv);
	_exit(127);
}
