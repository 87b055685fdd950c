/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Example: one CPU proxy service rings the doorbells of many queue pairs. The client's threads
 * put data into the server's memory on all of them. Meanwhile a thread removes each queue pair from
 * the service and adds it again, one after the other. No doorbell is lost: the service rings what
 * was requested before the removal, and finds what was requested since when the queue pair is
 * added. Prints the statistics of the service.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "program.h"

#define SERVICE_THREADS "2"	/* unless GDAKI_PROXY_THREADS is set */
#define TIME_OUT_NS	200000	/* a queue pair is out of the service for this time */
#define TIME_IN_NS	2000000 /* until the next one is removed */

static struct {
	struct ex_endpoint *ep;
	pthread_t thread;
	atomic_bool stop;
	unsigned long removals;
	bool failed;
} mover;

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

static int move(struct ex_endpoint *ep, uint32_t queue)
{
	struct doca_gpu_verbs_qp *qp = ep->queues[queue].qp->qp_gverbs;

	if (ex_check(gdk_verbs_service_unmonitor_qp(ep->service, qp), "proxy service, unmonitor"))
		return -1;
	sleep_ns(TIME_OUT_NS);
	return ex_check(doca_gpu_verbs_service_monitor_qp(ep->service, qp),
			"proxy service, monitor");
}

static void *move_all(void *arg)
{
	uint32_t queue = 0;

	while (!atomic_load(&mover.stop) && !mover.failed) {
		mover.failed = move(mover.ep, queue) != 0;
		mover.removals++;
		queue = (queue + 1) % mover.ep->num_queues;
		sleep_ns(TIME_IN_NS);
	}
	return arg;
}

static int begin(struct ex_endpoint *ep)
{
	if (!ep->service)
		return ex_error("the queue pairs use no proxy service");
	mover.ep = ep;
	if (pthread_create(&mover.thread, NULL, move_all, NULL))
		return ex_error("cannot start a thread");
	return 0;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int end(struct ex_endpoint *ep, const struct ex_options *opt)
{
	FILE *out = is_stdout(opt->json) || is_stdout(opt->csv) ? stderr : stdout;
	struct gdk_service_stats s;

	atomic_store(&mover.stop, true);
	pthread_join(mover.thread, NULL);
	if (mover.failed ||
	    ex_check(gdk_verbs_service_get_stats(ep->service, &s), "proxy service, statistics"))
		return -1;
	fprintf(out,
		"Service: %u threads, %u queue pairs, %" PRIu64 " doorbells, %" PRIu64
		" passes, %" PRIu64 " yields, %" PRIu64 " sleeps, %" PRIu64
		" stalls, longest gap %.1f us\n",
		s.threads, s.qps, s.rings, s.passes, s.yields, s.sleeps, s.stalls,
		(double)s.worst_gap_ns / 1e3);
	fprintf(out, "Queue pairs removed and added again: %lu times\n", mover.removals);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct ex_program program = {
		.name = "gpunetio_verbs_service_many_qps",
		.summary = "Puts on many queue pairs, whose doorbells one CPU proxy service rings. "
			   "Queue pairs are\nremoved from the service and added again meanwhile.",
		.kind = EX_BANDWIDTH,
		.handlers = 1u << DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
		.queues = 256,
		.host_threads = 1,
		.gpu_threads = 32,
		.gpu_blocks = 1,
		.iters = 256,
		.begin = begin,
		.end = end,
	};

	setenv("GDAKI_PROXY_THREADS", SERVICE_THREADS, 0);
	return ex_main(argc, argv, &program);
}
