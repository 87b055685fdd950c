/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Puts data with the doorbell strategy of batching.c, checks them, and compares the number of
 * doorbells with the number of WQEs. Two threads post, each to its own queue pair.
 *
 *	strategy_batching	a table for n = 1, 8 and 32, an incomplete batch, and WQEs that are
 *				pending when the queue pairs are closed
 *	strategy_batching PUTS	one line: PUTS of each thread, with n and t of BATCHING_N and
 *				BATCHING_US
 */
#include <device/gdk/onesided_dev.h>
#include <host/gdaki.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batching.h"
#include "loopback.h"

#define THREADS 2
#define BYTES	64u
#define WINDOW	64u /* puts of a thread before it waits */
#define PACE_US 4.0 /* time between puts; the strategy's thread is faster than that */
#define SHARED	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU

struct job {
	struct loopback lo;
	pthread_t thread;
	unsigned int puts, seed;
	unsigned int wrong; /* puts whose data did not arrive */
	int rc;
};

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void pause_for(double us)
{
	double until = now_us() + us;

	while (now_us() < until)
		sched_yield();
}

static void fill(struct job *job, unsigned int num, unsigned int window)
{
	for (unsigned int i = 0; i < num * BYTES; i++)
		job->lo.mem[i] = (uint8_t)(i * 7 + window * 31 + job->seed);
}

/* Puts slot i of the first half of the payload into slot i of the second half. */
static int put(struct job *job, unsigned int i, doca_gpu_dev_verbs_ticket_t *ticket)
{
	const uint64_t at = (uintptr_t)job->lo.mem + i * BYTES;
	const struct doca_gpu_dev_verbs_addr from = gdk_addr(at, gdk_key(job->lo.mr->lkey));
	const struct doca_gpu_dev_verbs_addr to = gdk_addr(at + WINDOW * BYTES,
							   gdk_key(job->lo.mr->rkey));

	return gdk_put(job->lo.dev_qp, to, from, BYTES, ticket,
		       gdk_how(SHARED, GDK_AUTO, GDK_THREAD, 0));
}

static void check(struct job *job, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++) {
		const uint8_t *from = job->lo.mem + i * BYTES;

		job->wrong += memcmp(from + WINDOW * BYTES, from, BYTES) != 0;
	}
}

static void *post(void *arg)
{
	struct job *job = arg;
	doca_gpu_dev_verbs_ticket_t ticket = 0;
	unsigned int done, num, i;

	for (done = 0; done < job->puts && !job->rc; done += num) {
		num = job->puts - done < WINDOW ? job->puts - done : WINDOW;
		fill(job, num, done / WINDOW);
		for (i = 0; i < num && !job->rc; i++) {
			job->rc = put(job, i, &ticket);
			pause_for(PACE_US);
		}
		job->rc = job->rc ? job->rc : gdk_wait(job->lo.dev_qp, ticket, SHARED);
		check(job, num);
	}
	return NULL;
}

/* Posts with all threads. Returns whether all data arrived. */
static bool post_all(struct job *jobs, unsigned int puts)
{
	bool good = true;
	int i;

	for (i = 0; i < THREADS; i++) {
		jobs[i].puts = puts / THREADS;
		jobs[i].seed++;
		if (pthread_create(&jobs[i].thread, NULL, post, &jobs[i])) {
			fputs("cannot start a thread\n", stderr);
			exit(1);
		}
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(jobs[i].thread, NULL);
		if (jobs[i].rc || jobs[i].wrong)
			fprintf(stderr, "thread %d: error %d, %u puts did not arrive\n", i,
				jobs[i].rc, jobs[i].wrong);
		good &= !jobs[i].rc && !jobs[i].wrong;
	}
	return good;
}

/* Posts and prints a line of the table. */
static bool run(struct job *jobs, unsigned int puts, const char *n, const char *us)
{
	struct batching_stats old, new;
	double start = now_us();
	uint64_t by_n, by_t;
	bool good;

	batching_get_stats(&old);
	good = post_all(jobs, puts);
	batching_get_stats(&new);
	by_n = new.full - old.full;
	by_t = new.timed - old.timed;
	printf("%5s %7s %7u %10lu %14.1f %6lu %6lu %9.0f\n", n, us, puts, by_n + by_t,
	       by_n + by_t ? (double)puts / (double)(by_n + by_t) : 0.0, by_n, by_t,
	       now_us() - start);
	return good;
}

static bool table(struct job *jobs)
{
	static const struct {
		unsigned int n, us, puts;
	} runs[] = {
		{ 1, 2000, 8192 },
		{ 8, 2000, 8192 },
		{ 32, 2000, 8192 },
		{ 64, 20000, 10 }, /* 5 WQEs for each queue pair: only t rings */
	};
	char n[16], us[16];
	bool good = true;
	size_t i;

	for (i = 0; i < sizeof(runs) / sizeof(runs[0]) && good; i++) {
		snprintf(n, sizeof(n), "%u", runs[i].n);
		snprintf(us, sizeof(us), "%u", runs[i].us);
		good = !batching_set(runs[i].n, runs[i].us) && run(jobs, runs[i].puts, n, us);
	}
	return good;
}

/* Leaves a WQE of each queue pair pending for longer than the program runs. */
static bool leave_pending(struct job *jobs)
{
	doca_gpu_dev_verbs_ticket_t ticket;

	return !batching_set(2, BATCHING_US_MAX) && !put(&jobs[0], 0, &ticket) &&
	       !put(&jobs[1], 0, &ticket);
}

int main(int argc, char **argv)
{
	struct batching_stats stats;
	struct job jobs[THREADS] = { 0 };
	const char *n = getenv("BATCHING_N"), *us = getenv("BATCHING_US");
	struct gdk_handler_report report;
	bool good = true;
	struct nic nic;
	int i;

	good = !nic_open(&nic);
	for (i = 0; i < THREADS && good; i++)
		good = !loopback_open(&jobs[i].lo, &nic, (size_t)2 * WINDOW * BYTES);
	good = good && !gdk_verbs_qp_get_handler_report(jobs[0].lo.qp->qp_gverbs, &report);
	if (good) {
		printf("handler %s, strategy %s: %s\n", gdk_handler_name(report.chosen),
		       report.candidates[0].strategy, report.candidates[0].reason);
		puts("    n    t us    puts  doorbells  puts/doorbell   full  timed        us");
		good = argc > 1 ? run(jobs, THREADS * (unsigned int)strtoul(argv[1], NULL, 10),
				      n ? n : "-", us ? us : "-")
				: table(jobs) && leave_pending(jobs);
	}
	for (i = 0; i < THREADS; i++)
		loopback_close(&jobs[i].lo);
	nic_close(&nic);
	batching_get_stats(&stats);
	printf("rung when a queue pair was closed: %lu\n", stats.drained);
	puts(good ? "all data arrived" : "FAILED");
	return !good;
}
