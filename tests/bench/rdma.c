/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures how many operations per second CPU threads execute through the RDMA library, on the
 * software NIC: inline writes on one connection, in strong mode with a commit by each thread after
 * each 16 operations, or in weak mode with a commit by one thread for all. The last value of each
 * thread must have arrived. tests/bench/rdma.sh runs it.
 */
#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#include "../lib/rdma_rig.h"

#define ROUND	    16u /* operations of a thread between two commits */
#define DEPTH	    8192u
#define OPERATIONS  64000u
#define MAX_THREADS 256u
#define RUNS	    3

static struct rig r;
static uint32_t threads;
static int is_weak;
static pthread_barrier_t meet;

static void post(uint32_t thread, uint64_t n, uint64_t position)
{
	const uint32_t value = (uint32_t)n;

	if (is_weak)
		OK(doca_gpu_dev_rdma_write_inline_weak(r.a.dev, 0, rig_remote(&r.b, thread), 0,
						       &value, 4, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE,
						       (uint32_t)position));
	else
		OK(doca_gpu_dev_rdma_write_inline_strong(r.a.dev, 0, rig_remote(&r.b, thread), 0,
							 &value, 4, 0,
							 DOCA_GPU_RDMA_WRITE_FLAG_NONE));
}

static void *worker(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	const uint64_t rounds = OPERATIONS / ROUND / threads;
	uint64_t n = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		for (uint32_t k = 0; k < ROUND; k++, n++)
			post(me, n, (i * threads + me) * ROUND + k);
		if (!is_weak) {
			OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
			continue;
		}
		pthread_barrier_wait(&meet);
		if (me == 0)
			OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, threads * ROUND));
		pthread_barrier_wait(&meet);
	}
	return NULL;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns million operations per second. */
static double run(void)
{
	const uint64_t each = OPERATIONS / ROUND / threads * ROUND;
	pthread_t id[MAX_THREADS];
	uint32_t num, last;
	double start;

	rig_begin(&r, (struct rig_how){ .send = DEPTH });
	pthread_barrier_init(&meet, NULL, threads);
	start = seconds();
	for (uintptr_t i = 0; i < threads; i++)
		if (pthread_create(&id[i], NULL, worker, (void *)i))
			abort();
	for (uint32_t i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	start = seconds() - start;
	for (uint32_t i = 0; i < threads; i++) {
		memcpy(&last, r.b.m.mem + i * 256, 4);
		if (last != each - 1) {
			fprintf(stderr, "thread %u: %u is the last value (expected %" PRIu64 ")\n",
				i, last, each - 1);
			exit(1);
		}
	}
	pthread_barrier_destroy(&meet);
	rig_end(&r);
	return (double)(each * threads) / start * 1e-6;
}

int main(void)
{
	static const uint32_t counts[] = { 1, 32, 256 };

	for (is_weak = 0; is_weak < 2; is_weak++)
		for (int c = 0; c < 3; c++) {
			double best = 0, rate;

			threads = counts[c];
			for (int i = 0; i < RUNS; i++) {
				rate = run();
				best = rate > best ? rate : best;
			}
			printf("%-6s  %3u threads  %8.3f M/s\n", is_weak ? "weak" : "strong",
			       threads, best);
			fflush(stdout);
		}
	return 0;
}
