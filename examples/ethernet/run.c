/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The start and the end of a kernel of one block. A kernel that does not end after an abort is left
 * alone, and so is its memory.
 */
#include <time.h>

#include "exchange.h"

#include "ethernet.h"
#include "queues.h"

#define NAP_NS	   20000 /* between two polls for the end of the kernel */
#define ABORTED_MS 10000 /* time limit of a kernel to end after et_abort() */

int et_launch(struct et_queues *q, uint32_t threads, void *arg, const void *job, size_t len)
{
	const struct ex_job grid = {
		.num_queues = 1,
		.blocks = 1,
		.threads = threads,
		.arg = arg,
		.status = et_status(q),
	};

	if (et_copy(q, arg, job, len))
		return -1;
	return et_grid(q)->launch(&grid) ? ex_error("cannot start the kernel") : 0;
}

static int check_status(struct et_queues *q, uint32_t threads)
{
	int status[ET_THREADS_MAX];
	uint32_t i;

	if (et_copy(q, status, et_status(q), threads * sizeof(*status)))
		return -1;
	for (i = 0; i < threads; i++)
		if (status[i])
			return ex_error("thread %u: %s", i,
					doca_error_get_descr((doca_error_t)status[i]));
	return 0;
}

/* Waits until the kernel has ended. Returns -1 if it was aborted or failed. */
static int await_end(struct et_queues *q, int (*step)(void *), void *step_arg)
{
	const struct timespec nap = { 0, NAP_NS };
	int64_t end = 0; /* 0: the kernel was not aborted */
	int rc;

	while (!(rc = et_grid(q)->done())) {
		bool fails = et_progress(q) != 0;

		if (!end && ex_waits_end())
			fails = ex_error("interrupted") != 0;
		else if (!end && !fails && step)
			fails = step(step_arg) != 0;
		if (!end && fails) {
			end = ex_now_ms() + ABORTED_MS;
			(void)et_abort(q);
		}
		if (end && ex_now_ms() > end) {
			et_hung(q);
			return ex_error("the kernel does not end");
		}
		nanosleep(&nap, NULL);
	}
	return end || rc < 0 ? -1 : et_progress(q);
}

int et_wait(struct et_queues *q, int (*step)(void *), void *step_arg, void *arg, void *job,
	    size_t len)
{
	if (await_end(q, step, step_arg))
		return -1;
	return check_status(q, et_options(q)->threads) || et_copy(q, job, arg, len) ? -1 : 0;
}

double et_seconds(struct et_queues *q)
{
	return et_grid(q)->seconds();
}
