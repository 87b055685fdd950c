/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * usage: device PCI-ADDRESS [PATTERN...]
 * Runs the cases whose names match one of the shell patterns (all cases without a
 * pattern) on that GPU and the software NIC. Cases run in a child process: a crash or
 * a hang fails one case, and a new child continues with the next. If a child cannot open
 * NIC and GPU, no further case runs. The last line of output is "N passed, N failed".
 */
#include <fnmatch.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device_host.h"

#define MAX_CASES 1000
#define CASE_S	  45 /* seconds after which the parent kills a case */

/* Shared memory of parent and child. */
struct progress {
	unsigned int next; /* index of the running case, or of the next one */
	uint64_t since_ns;
	unsigned int passed, failed;
	bool opened; /* the child has opened NIC and GPU */
};

static struct gt_case cases[MAX_CASES];
static unsigned int ncases;
static struct progress *progress;

static void begin(unsigned int next)
{
	__atomic_store_n(&progress->since_ns, e2e_now_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(&progress->next, next, __ATOMIC_RELEASE);
}

static void report(const struct gt_case *c, bool ok, const char *why)
{
	double ms = (double)(e2e_now_ns() - progress->since_ns) * 1e-6;

	if (ok)
		printf("ok    %-76s %7.1f ms\n", c->name, ms);
	else
		printf("FAIL  %-76s %7.1f ms: %s\n", c->name, ms, why);
	fflush(stdout);
	progress->passed += ok;
	progress->failed += !ok;
}

void gt_die(void)
{
	report(&cases[progress->next], false, gt_complaint());
	begin(progress->next + 1);
	_exit(1);
}

static void child(const char *pci)
{
	struct gt_env env;

	gt_env_open(&env, pci);
	progress->opened = true;
	for (unsigned int i = progress->next; i < ncases; i++) {
		const uint64_t recovered = e2e_recovered();
		int rc;

		begin(i);
		rc = cases[i].run(&env, &cases[i]);
		report(&cases[i], !rc, gt_complaint());
		if (e2e_recovered() > recovered)
			printf("      the NIC recovered %lu doorbells, 4 ms or more each\n",
			       e2e_recovered() - recovered);
		begin(i + 1);
	}
	_exit(0);
}

static bool too_late(void)
{
	uint64_t since = __atomic_load_n(&progress->since_ns, __ATOMIC_RELAXED);

	return e2e_now_ns() - since > CASE_S * 1000000000ull;
}

/* Waits until the child ends; kills it if one case takes longer than CASE_S. */
static void supervise(pid_t pid)
{
	const struct timespec nap = { 0, 2000000 };
	unsigned int before;
	bool hung = false;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		nanosleep(&nap, NULL);
		if (too_late() && !hung) {
			hung = true;
			kill(pid, SIGKILL);
		}
	}
	before = progress->next;
	if (before < ncases && (hung || WIFSIGNALED(status))) {
		report(&cases[before], false,
		       hung ? "took too long, killed" : strsignal(WTERMSIG(status)));
		begin(before + 1);
	}
}

static void select_cases(char **patterns)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < ncases; i++) {
		bool match = !*patterns;

		for (char **p = patterns; *p; p++)
			match |= !fnmatch(*p, cases[i].name, 0);
		if (match)
			cases[kept++] = cases[i];
	}
	ncases = kept;
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: device PCI-ADDRESS [PATTERN...]\n");
		return 2;
	}
	ncases = gt_cases(cases, MAX_CASES);
	select_cases(argv + 2);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	E2E_REQUIRE(progress != MAP_FAILED);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (progress->next < ncases) {
		begin(progress->next);
		progress->opened = false;
		E2E_REQUIRE((pid = fork()) >= 0);
		if (!pid)
			child(argv[1]);
		supervise(pid);
		if (!progress->opened) /* the next child could not open NIC and GPU either */
			break;
	}
	printf("%u passed, %u failed\n", progress->passed, progress->failed);
	return progress->failed != 0;
}
