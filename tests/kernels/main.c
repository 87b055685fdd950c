/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the GPU test's kernels on CPU threads against the software NIC, with the checks
 * of the GPU test: each WQE is executed exactly once, and every byte of memory is
 * right. Built for warps of 1 and of 32 lanes (GDK_WARP). Another thread, which touches
 * no queue, gets no processor: no case may need it.
 * usage: kernels_WIDTH [PATTERN...]
 */
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "../gpu/device_host.h"
#include "../lib/freeze.h"
#include "host_gpu.h"

#define MAX_CASES 1000

static struct gt_case cases[MAX_CASES];
static const struct gt_case *running;
static unsigned int failed;

static void report(bool ok)
{
	if (!ok)
		printf("FAIL  %s: %s\n", running->name, gt_complaint());
	failed += !ok;
	fflush(stdout);
}

void gt_die(void)
{
	report(false);
	_exit(1);
}

static bool selected(const struct gt_case *c, char **patterns)
{
	bool match = !*patterns;

	for (; *patterns; patterns++)
		match |= !fnmatch(*patterns, c->name, 0);
	return match;
}

/* The doorbell register of DBREC-less queue pairs loses nothing (softnic/lossless.h). */
static bool run_case(struct gt_env *env, const struct gt_case *c)
{
	const uint64_t before = e2e_recovered();
	uint64_t lost;

	running = c;
	if (c->run(env, c))
		return false;
	lost = e2e_recovered() - before;
	if (c->handler == E2E_NO_DBR && lost)
		return !gt_complain("the NIC had to recover %lu doorbells (expected 0)", lost);
	return true;
}

int main(int argc, char **argv)
{
	unsigned int i, ran = 0, n = gt_cases(cases, MAX_CASES);
	struct bystander bystander;
	struct gt_env env;
	bool frozen;

	(void)argc;
	if (host_gpu_overlaps()) {
		puts("FAIL  a kernel begins before the previous kernel of its stream has ended");
		return 1;
	}
	frozen = bystander_freeze(&bystander);
	if (!frozen)
		puts("no frozen thread: this machine does not allow tracing");
	gt_env_open(&env, "host");
	for (i = 0; i < n; i++) {
		if (!selected(&cases[i], argv + 1))
			continue;
		ran++;
		report(run_case(&env, &cases[i]));
	}
	if (frozen)
		bystander_thaw(&bystander);
	printf("kernels: warps of %d: %u cases, %u failed\n", GDK_WARP, ran, failed);
	return failed != 0;
}
