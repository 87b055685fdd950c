/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * usage: eth PCI-ADDRESS [PATTERN...]
 *        eth_kernels_WIDTH [--testpmd=N] [PATTERN...]
 * Runs the cases whose names match one of the shell patterns (all cases without a pattern) on that
 * GPU, or on CPU threads in warps of WIDTH with fewer packets, and the software NIC. Needs
 * CAP_NET_RAW. --testpmd: runs other cases, each with about N packets, which go to dpdk-testpmd on
 * another NIC and back (tests/eth_testpmd.py). The last line of output is "N passed, N failed".
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eth_host.h"

#define MAX_CASES 100

static struct et_case cases[MAX_CASES];
static const struct et_case *running;
static unsigned int passed, failed;
static uint64_t since_ns;

static void report(bool ok)
{
	printf("%-5s %-52s %8.1f ms%s%s\n", ok ? "ok" : "FAIL", running ? running->name : "start",
	       (double)(et_now_ns() - since_ns) * 1e-6, ok ? "" : ": ", ok ? "" : et_complaint());
	passed += ok;
	failed += !ok;
	fflush(stdout);
}

void et_die(void)
{
	report(false);
	printf("%u passed, %u failed\n", passed, failed);
	fflush(stdout);
	_exit(1);
}

static bool selected(const struct et_case *c, char **patterns)
{
	bool match = !*patterns;

	for (; *patterns; patterns++)
		match |= !fnmatch(*patterns, c->name, 0);
	return match;
}

int main(int argc, char **argv)
{
#ifdef GDK_WARP
	const char *gpu = "host";
	char **patterns = argv + 1;
	const bool small = argc > 0;

	et_env.testpmd = argc > 1 && !strncmp(argv[1], "--testpmd=", 10);
	if (et_env.testpmd)
		et_env.case_packets = (uint32_t)strtoul(argv[1] + 10, NULL, 10);
	patterns += et_env.testpmd;
#else
	const char *gpu = argv[1];
	char **patterns = argv + 2;
	const bool small = false;

	if (argc < 2) {
		fprintf(stderr, "usage: eth PCI-ADDRESS [PATTERN...]\n");
		return 2;
	}
#endif
	const unsigned int n = et_cases(cases, MAX_CASES, small);

	setvbuf(stdout, NULL, _IOLBF, 0);
	et_env_open(gpu);
	for (unsigned int i = 0; i < n; i++) {
		if (!selected(&cases[i], patterns))
			continue;
		running = &cases[i];
		since_ns = et_now_ns();
		report(!running->run(running));
	}
	et_env_close();
	if (et_env.testpmd)
		printf("%llu packets\n", (unsigned long long)et_env.packets);
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
