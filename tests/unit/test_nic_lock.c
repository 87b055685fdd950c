/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The lock of the software NIC: the report of a call that waits for long. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/nic.h"
#include "../lib/raw.h"
#include "../softnic/softnic.h"

static struct sn_dev *dev;

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
