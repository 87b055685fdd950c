/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Helpers of the tests of the watch (watch.c): a pair of queue pairs, and what was logged. */
#ifndef WATCH_RIG_H
#define WATCH_RIG_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "../../qp/export/export.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/standin.h"

#define MS	 1000000ull
#define EMULATED DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED

static struct e2e_pair p;

static inline unsigned int times(const char *log, const char *what)
{
	unsigned int n = 0;

	while ((log = strstr(log, what))) {
		log++;
		n++;
	}
	return n;
}

/*
 * The clock of the watch: its thread polls only when watch_polls() lets it. The program is linked
 * with --wrap=pthread_cond_timedwait. All members are protected by the lock that the thread passes.
 */
static struct {
	_Atomic(pthread_mutex_t *) lock; /* NULL: the thread has not waited yet */
	pthread_cond_t *cond;		 /* wakes the thread */
	pthread_cond_t waits_now;	 /* signalled when the thread waits for its next poll */
	bool waits, due;		 /* the thread waits; its wait must time out */
} watch_clock = { .waits_now = PTHREAD_COND_INITIALIZER };

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until);

/* cond measures time by CLOCK_MONOTONIC, as the real wait needs. */
static inline int wait_in_real_time(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	struct timespec now, until;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += until.tv_nsec >= 990000000;
	until.tv_nsec = (until.tv_nsec + 10000000) % 1000000000;
	err = __real_pthread_cond_timedwait(cond, lock, &until);
	clock_gettime(CLOCK_MONOTONIC, &now);
	cr_assert(!err || now.tv_sec > until.tv_sec ||
			  (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec),
		  "a wait of the thread ended before its time");
	return err;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  const struct timespec *until)
{
	static _Thread_local struct timespec last; /* poll of this thread */
	struct timespec now;
	bool due;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (until->tv_sec > now.tv_sec + 10) /* CLOCK_REALTIME: a thread of the software NIC */
		return __real_pthread_cond_timedwait(cond, lock, until);
	cr_assert(until->tv_nsec < 1000000000 &&
			  (until->tv_sec > last.tv_sec ||
			   (until->tv_sec == last.tv_sec && until->tv_nsec > last.tv_nsec)),
		  "a wait until before it began");
	if (!last.tv_sec && !wait_in_real_time(cond, lock))
		return 0;
	watch_clock.cond = cond;
	watch_clock.waits = true;
	atomic_store(&watch_clock.lock, lock);
	pthread_cond_broadcast(&watch_clock.waits_now);
	pthread_cond_wait(cond, lock);
	due = watch_clock.due;
	watch_clock.due = watch_clock.waits = false;
	if (due)
		clock_gettime(CLOCK_MONOTONIC, &last);
	return due ? ETIMEDOUT : 0;
}

/* Makes the thread poll n times. On return it has logged what it found. n 0: waits for its first
 * poll. */
static inline void watch_polls(unsigned int n)
{
	pthread_mutex_t *lock;

	while (!(lock = atomic_load(&watch_clock.lock)))
		sched_yield();
	pthread_mutex_lock(lock);
	for (;; n--) {
		while (!watch_clock.waits || watch_clock.due)
			pthread_cond_wait(&watch_clock.waits_now, lock);
		if (!n)
			break;
		watch_clock.due = true;
		pthread_cond_signal(watch_clock.cond);
	}
	pthread_mutex_unlock(lock);
}

/* Number of threads of this process that watch queue pairs. */
static inline unsigned int watchers(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	unsigned int n = 0;
	char path[300], name[32];
	FILE *comm;

	cr_assert(tasks);
	while ((task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		comm = fopen(path, "r");
		if (!comm)
			continue;
		n += fgets(name, sizeof(name), comm) && !strcmp(name, "gdaki-watch\n");
		fclose(comm);
	}
	closedir(tasks);
	return n;
}

static inline struct doca_gpu_verbs_qp *gverbs(void)
{
	return p.tx.hl->qp_gverbs;
}

static inline void put(doca_gpu_dev_verbs_ticket_t *t)
{
	cr_assert_eq(e2e_put(&p, 0, 64, t), 0);
}

static inline struct doca_gpu_verbs_qp_hl *create(struct e2e_nic *nic, unsigned int mode)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = nic->gpu,
		.net_dev = nic->dev,
		.ibpd = nic->pd,
		.sq_nwqe = 16,
		.nic_handler = E2E_AUTO,
		.send_dbr_mode_ext = (enum doca_gpu_verbs_send_dbr_mode_ext)mode,
	};
	struct doca_gpu_verbs_qp_hl *hl;

	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	return hl;
}

#endif
