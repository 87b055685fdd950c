/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The strategy of batching.h. It takes the place of gdaki's strategy cpu_proxy at link time and
 * uses installed headers only. The device half of CPU_PROXY stays: the GPU thread that would ring
 * stores the index after the last WQE to a counter in host memory, after the WQEs. Here a thread
 * polls the counters and decides when to ring. doca_gpu_verbs_cpu_proxy_progress() rings: it writes
 * the DBREC and the doorbell register with the barriers that they need.
 *
 * No doorbell is lost:
 *   - The counter is a level, not an event. WQEs are pending as long as *cpu_db is above
 *     sq_wqe_pi_last, the index that was rung last. A later store to the counter covers the earlier
 *     ones, because the index only increases (a reset sets both to 0).
 *   - progress() loads the counter, rings for this index, and only then stores it to
 *     sq_wqe_pi_last. An index that is raised after the load remains pending.
 *   - A pass that finds fewer than n WQEs pending does not change `idle_ns`. So some pass finds
 *     them pending for t, and rings.
 *   - detach() rings what is pending.
 *
 * A doorbell waits for at most t and one pass. idle_ns is a time before the load that found nothing
 * pending, so each WQE that is found later was raised after it. An idle thread sleeps for at most
 * t / 2. The time in which the operating system does not run the thread is added.
 *
 * A GPU thread that waits for a free slot of a ring with fewer than n slots waits for t only.
 */
#include "batching.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <host/gdaki_strategy.h>

#define H(name)	    DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name
#define COUNTER_LEN 64	    /* a cache line, so that queue pairs do not disturb each other */
#define IDLE_PASSES 1000u   /* passes without a pending WQE before the thread sleeps */
#define NAP_MAX_NS  1000000 /* longest sleep */

/* A queue pair that is attached. */
struct served {
	struct served *next;
	struct doca_gpu_verbs_qp *qp;
	void *counter_gpu; /* GPU address of *qp->cpu_db */
	int64_t idle_ns;   /* no WQE that is pending was raised before this time */
};

static atomic_uint batch_n = BATCHING_N_DEFAULT, batch_us = BATCHING_US_DEFAULT;
static atomic_ullong full, timed, drained;

/* Serializes attach and detach, which start and end the thread. Taken before list_lock. */
static pthread_mutex_t members_lock = PTHREAD_MUTEX_INITIALIZER;
/* Protects the list. The thread holds it during a pass. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiters; /* callers that wait for list_lock */
static struct served *list;
static pthread_t thread;
static atomic_bool stop;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* ---- settings and statistics ---- */

int batching_set(unsigned int n, unsigned int us)
{
	if (!n || n > BATCHING_N_MAX || us > BATCHING_US_MAX)
		return -1;
	atomic_store(&batch_n, n);
	atomic_store(&batch_us, us);
	return 0;
}

void batching_get_stats(struct batching_stats *stats)
{
	stats->full = atomic_load(&full);
	stats->timed = atomic_load(&timed);
	stats->drained = atomic_load(&drained);
}

static void read_number(const char *name, unsigned int min, unsigned int max, atomic_uint *value)
{
	const char *text = getenv(name);
	unsigned long v;
	char *end;

	if (!text)
		return;
	v = strtoul(text, &end, 10);
	if (end == text || *end || v < min || v > max)
		fprintf(stderr, "ignoring %s=\"%s\" (expected %u..%u), using %u\n", name, text, min,
			max, atomic_load(value));
	else
		atomic_store(value, (unsigned int)v);
}

static void read_environment(void)
{
	read_number("BATCHING_N", 1, BATCHING_N_MAX, &batch_n);
	read_number("BATCHING_US", 0, BATCHING_US_MAX, &batch_us);
}

/* ---- the thread ---- */

static void list_take(void)
{
	atomic_fetch_add(&waiters, 1);
	pthread_mutex_lock(&list_lock);
	atomic_fetch_sub(&waiters, 1);
}

/* Rings for every index that was raised before the call, and counts it. */
static void ring(struct doca_gpu_verbs_qp *qp, atomic_ullong *cause)
{
	bool rang = false;

	if (doca_gpu_verbs_cpu_proxy_progress(qp, &rang) == DOCA_SUCCESS && rang)
		atomic_fetch_add(cause, 1);
}

/* Rings for one queue pair if its batch is full or has waited for t. Returns whether WQEs were
 * pending. The loads are relaxed: they only decide whether to ring, and progress() loads the
 * counter again, with acquire, before it writes the DBREC. */
static bool poll_one(struct served *s)
{
	const struct doca_gpu_verbs_qp *qp = s->qp;
	const int64_t now = now_ns(); /* before the loads: see idle_ns */
	const uint64_t raised = __atomic_load_n(qp->cpu_db, __ATOMIC_RELAXED),
		       rung = __atomic_load_n(&qp->sq_wqe_pi_last, __ATOMIC_RELAXED),
		       pending = raised > rung ? raised - rung : 0;

	if (pending >= atomic_load(&batch_n))
		ring(s->qp, &full);
	else if (pending && now - s->idle_ns >= 1000ll * atomic_load(&batch_us))
		ring(s->qp, &timed);
	else if (pending)
		return true;
	s->idle_ns = now;
	return pending != 0;
}

static bool poll_all(void)
{
	struct served *s;
	bool pending = false;

	while (atomic_load(&waiters)) /* a mutex does not hand over to a waiter by itself */
		sched_yield();
	pthread_mutex_lock(&list_lock);
	for (s = list; s; s = s->next)
		pending |= poll_one(s);
	pthread_mutex_unlock(&list_lock);
	return pending;
}

static void nap(void)
{
	int64_t half = 500ll * atomic_load(&batch_us);
	struct timespec ts = { .tv_nsec = half < NAP_MAX_NS ? half : NAP_MAX_NS };

	nanosleep(&ts, NULL);
}

static void *thread_main(void *arg)
{
	unsigned int idle = 0;

	while (!atomic_load(&stop)) {
		idle = poll_all() ? 0 : idle + 1;
		if (idle < IDLE_PASSES)
			sched_yield();
		else
			nap();
	}
	return arg;
}

/* Starts the thread with all signals blocked, so that the threads of the program handle them. */
static int thread_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t all, old;
	int err;

	pthread_once(&once, read_environment);
	atomic_store(&stop, false);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, thread_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* ---- operations of the strategy ---- */

static doca_error_t probe(const struct gdk_doorbell_ask *ask, enum doca_gpu_dev_verbs_nic_handler h,
			  const char **reason)
{
	(void)h; /* only CPU_PROXY */
	if (ask->dbr_mode != DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR) {
		*reason = "strategy batching supports the DBREC mode VALID_DBR only";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (ask->qp && !ask->qp->sq_dbrec) {
		*reason = "the CPU cannot write the memory of the queue pair's DBREC";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*reason = "a thread of strategy batching rings";
	return DOCA_SUCCESS;
}

/* Adds to the list, and starts the thread for the first queue pair. The caller holds
 * members_lock. */
static doca_error_t enlist(struct served *s)
{
	bool first = !list;

	list_take();
	s->next = list;
	list = s;
	pthread_mutex_unlock(&list_lock);
	if (!first || !thread_start())
		return DOCA_SUCCESS;
	list = NULL; /* no thread runs */
	return DOCA_ERROR_OPERATING_SYSTEM;
}

static doca_error_t attach(struct doca_gpu_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *dev)
{
	struct served *s = calloc(1, sizeof(*s));
	doca_error_t err = DOCA_ERROR_NO_MEMORY;
	void *counter;

	if (!s)
		return err;
	err = doca_gpu_mem_alloc(qp->gpu_dev, COUNTER_LEN, COUNTER_LEN, DOCA_GPU_MEM_TYPE_CPU_GPU,
				 &s->counter_gpu, &counter);
	if (err != DOCA_SUCCESS)
		goto free_served;
	s->qp = qp;
	s->idle_ns = now_ns();
	qp->cpu_db = counter;
	__atomic_store_n(qp->cpu_db, 0, __ATOMIC_RELAXED);
	qp->cpu_proxy = true;
	dev->sq_db = s->counter_gpu;
	pthread_mutex_lock(&members_lock);
	err = enlist(s);
	pthread_mutex_unlock(&members_lock);
	if (err == DOCA_SUCCESS)
		return DOCA_SUCCESS;
	doca_gpu_mem_free(qp->gpu_dev, s->counter_gpu);
free_served:
	free(s);
	return err;
}

/* Removes a queue pair from the list, and ends the thread after the last one, so that the thread
 * does not outlive a plugin that has this code. The caller holds members_lock. */
static struct served *unlist(const struct doca_gpu_verbs_qp *qp)
{
	struct served **at, *s;
	bool last;

	list_take();
	for (at = &list; (*at)->qp != qp; at = &(*at)->next)
		;
	s = *at;
	*at = s->next;
	last = !list;
	pthread_mutex_unlock(&list_lock);
	if (last) {
		atomic_store(&stop, true);
		pthread_join(thread, NULL);
	}
	return s;
}

static void detach(struct doca_gpu_verbs_qp *qp)
{
	struct served *s;

	pthread_mutex_lock(&members_lock);
	s = unlist(qp);
	pthread_mutex_unlock(&members_lock);
	ring(qp, &drained);
	doca_gpu_mem_free(qp->gpu_dev, s->counter_gpu);
	qp->cpu_db = NULL;
	free(s);
}

/* The caller holds the lock that progress() takes, so no step is in progress. */
static void reset(struct doca_gpu_verbs_qp *qp)
{
	__atomic_store_n(qp->cpu_db, 0, __ATOMIC_RELEASE);
}

static const struct gdk_doorbell ops = {
	.name = "batching",
	.handlers = 1u << H(CPU_PROXY),
	.dbrec_on_host = true,
	.probe = probe,
	.attach = attach,
	.detach = detach,
	.reset = reset,
};

GDK_DOORBELL(cpu_proxy, &ops);
