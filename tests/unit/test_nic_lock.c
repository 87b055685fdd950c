/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The locks of the software NIC: their order, and the report of a call that waits for long. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/nic.h"
#include "../lib/raw.h"
#include "../softnic/eng.h"

static struct sn_dev *dev;

static void await_waiter(void)
{
	while (!__atomic_load_n(&dev->waiting, __ATOMIC_SEQ_CST))
		sched_yield();
}

/* ---- order ---- */

static void *close_pipe(void *arg)
{
	close(*(int *)arg);
	return NULL;
}

/* A close() of a pipe holds the lock of the list of contexts and waits for the device lock, which
 * the NIC thread holds while it reads the states of the threads. */
Test(nic_lock, a_pipe_is_closed_while_the_nic_reads_thread_states, .timeout = 60)
{
	bool (*passed)(struct sn_writers * w, uint64_t since, uint64_t now);
	void (*release)(struct sn_writers * w);
	struct ibv_context *ctx = nic_open_context();
	struct sn_writers writers = { 0 };
	pthread_t thread;
	int ends[2];

	dev = *(struct sn_dev **)raw_symbol("sn_dev");
	*(void **)&passed = raw_symbol("sn_writers_passed");
	*(void **)&release = raw_symbol("sn_writers_free");
	cr_assert_eq(pipe(ends), 0);
	raw_lock(dev);
	cr_assert_eq(pthread_create(&thread, NULL, close_pipe, &ends[0]), 0);
	await_waiter();
	passed(&writers, 1, 1);
	pthread_mutex_unlock(&dev->lock);
	pthread_join(thread, NULL);
	release(&writers);
	close(ends[1]);
	ibv_close_device(ctx);
}

/* ---- a call that waits for long ---- */

static void *alloc_pd(void *ctx)
{
	return ibv_alloc_pd(ctx);
}

Test(nic_lock, a_long_wait_names_the_holder, .timeout = 60)
{
	struct ibv_context *ctx = nic_open_context();
	char line[512] = "", name[64];
	int ends[2], old = dup(2);
	pthread_t thread;
	void *pd;

	dev = *(struct sn_dev **)raw_symbol("sn_dev");
	*(unsigned int *)raw_symbol("sn_lock_report_ms") = 10;
	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(dup2(ends[1], 2), 2);
	raw_lock(dev);
	cr_assert_eq(pthread_create(&thread, NULL, alloc_pd, ctx), 0);
	cr_assert_gt(read(ends[0], line, sizeof(line) - 1), 0);
	pthread_mutex_unlock(&dev->lock);
	pthread_join(thread, &pd);
	dup2(old, 2);
	snprintf(name, sizeof(name), "which thread %d (", (int)syscall(SYS_gettid));
	cr_expect(strstr(line, "a call of the program has waited 10 ms for the lock of the NIC"),
		  "%s", line);
	cr_expect(strstr(line, name), "%s", line);
	cr_expect(strstr(line, " in state S: ") || strstr(line, " in state R: "), "%s", line);
	cr_assert(pd, "the call fails after its wait");
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
}
