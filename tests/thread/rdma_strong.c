/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --loss 0.002 --dup 0.002 --reorder 0.002 --seed 8 */
/*
 * Strong operations of several threads on two connections, as of several blocks: each thread
 * writes, commits now and then, and waits for all commits. A write that its thread has committed
 * must have arrived when the thread returns from the wait, and each commit must be counted once.
 */
#include <pthread.h>

#include "../lib/rdma_rig.h"

#define THREADS	   4u
#define DEPTH	   32u /* the ring is full most of the time */
#define OPERATIONS 1500u

static struct rig r;
static uint64_t made, counted;
static int failed;

static void fail(const char *what, uint64_t a, uint64_t b)
{
	if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "%s: %llu, %llu\n", what, (unsigned long long)a,
			(unsigned long long)b);
}

static void wait_all(void)
{
	uint32_t num;

	if (doca_gpu_dev_rdma_wait_all(r.a.dev, &num))
		fail("a wait failed", 0, num);
	__atomic_fetch_add(&counted, num, __ATOMIC_RELAXED);
}

static void *poster(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg, conn = me % 2;
	const uint32_t *arrived = (const uint32_t *)(const void *)(r.b.m.mem + 256 * (size_t)me);
	const struct doca_gpu_buf *to = rig_remote(&r.b, me);

	for (uint32_t i = 1; i <= OPERATIONS && !__atomic_load_n(&failed, __ATOMIC_RELAXED); i++) {
		if (doca_gpu_dev_rdma_write_inline_strong(r.a.dev, conn, to, 0, &i, sizeof(i), 0,
							  DOCA_GPU_RDMA_WRITE_FLAG_NONE))
			fail("a post failed", me, i);
		if (i % (3 + me) && i != OPERATIONS)
			continue;
		__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
		if (doca_gpu_dev_rdma_commit_strong(r.a.dev, conn))
			fail("a commit failed", me, i);
		if (i % 5 && i != OPERATIONS)
			continue;
		wait_all();
		if (__atomic_load_n(arrived, __ATOMIC_RELAXED) != i)
			fail("a committed write has not arrived", i, *arrived);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	rig_begin(&r, (struct rig_how){ .conns = 2, .send = DEPTH });
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, poster, (void *)i))
			abort();
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	wait_all();
	if (counted != made)
		fail("commits made, commits counted", made, counted);
	rig_end(&r);
	return failed;
}
