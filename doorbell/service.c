/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A service: CPU threads that ring for the queue pairs they monitor. A thread
 * scans the counters of its QPs; with nothing to do it spins, then yields,
 * then sleeps for longer and longer (at most SLEEP_MAX_NS), so that an idle
 * service costs little. QPs can leave at any time: the lock of a thread is
 * held for one pass, and a thread lets waiting callers go first.
 *
 * Tuning: GDAKI_PROXY_THREADS, threads per service (default 1, at most 16).
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "../core/log.h"
#include "../qp/export.h"

#define THREADS_MAX 16u
#define SPIN_PASSES 2000u  /* idle passes before yielding */
#define YIELD_PASSES 2000u /* and before sleeping */
#define SLEEP_MIN_NS 20000L
#define SLEEP_MAX_NS 1000000L
#define STALL_NS 100000000L /* a working pass this long after the last one is a stall */

/* Entries [0, num) are monitored by this thread; order means nothing. */
struct worker {
	struct gdk_service *service;
	pthread_t thread;
	pthread_mutex_t lock; /* qps, num, cap */
	atomic_int waiters;   /* callers that want the lock */
	struct gdk_export **qps;
	size_t num, cap;
	_Atomic uint64_t passes, rings, yields, sleeps, stalls;
};

struct gdk_service {
	atomic_bool stop;
	unsigned int threads;
	struct worker workers[THREADS_MAX];
};

/* Which service monitors a QP is decided under this lock. */
static pthread_mutex_t membership_lock = PTHREAD_MUTEX_INITIALIZER;

static void worker_lock(struct worker *w)
{
	atomic_fetch_add(&w->waiters, 1);
	pthread_mutex_lock(&w->lock);
	atomic_fetch_sub(&w->waiters, 1);
}

/* One pass over the counters; true: something was rung. */
static bool worker_pass(struct worker *w)
{
	bool any = false, progressed;
	size_t i;

	while (atomic_load_explicit(&w->waiters, memory_order_relaxed) > 0)
		sched_yield();
	pthread_mutex_lock(&w->lock);
	for (i = 0; i < w->num; i++) {
		gdk_proxy_progress(w->qps[i], &progressed);
		if (progressed)
			atomic_fetch_add_explicit(&w->rings, 1, memory_order_relaxed);
		any |= progressed;
	}
	pthread_mutex_unlock(&w->lock);
	atomic_fetch_add_explicit(&w->passes, 1, memory_order_relaxed);
	return any;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void idle(struct worker *w, uint64_t idle_passes)
{
	struct timespec ts = {0};
	uint64_t doublings;

	if (idle_passes < SPIN_PASSES)
		return;
	if (idle_passes < SPIN_PASSES + YIELD_PASSES) {
		atomic_fetch_add_explicit(&w->yields, 1, memory_order_relaxed);
		sched_yield();
		return;
	}
	doublings = (idle_passes - SPIN_PASSES - YIELD_PASSES) / 64;
	ts.tv_nsec = doublings >= 6 ? SLEEP_MAX_NS : SLEEP_MIN_NS << doublings;
	atomic_fetch_add_explicit(&w->sleeps, 1, memory_order_relaxed);
	nanosleep(&ts, NULL);
}

/* Says when this thread did not run for long although there was work. */
static void watch(struct worker *w, int64_t *last, bool any)
{
	int64_t t = now_ns();

	if (any && t - *last > STALL_NS) {
		if (atomic_fetch_add(&w->stalls, 1) == 0)
			gdk_warn("a proxy thread did not run for %lld ms while QPs waited for "
				 "their doorbell: give it a CPU of its own",
				 (long long)((t - *last) / 1000000));
	}
	*last = t;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	uint64_t idle_passes = 0, n = 0;
	int64_t last = now_ns();
	bool any;

	while (!atomic_load_explicit(&w->service->stop, memory_order_acquire)) {
		any = worker_pass(w);
		/* The clock is read on one pass of 64 while busy spinning. */
		if (any || idle_passes >= SPIN_PASSES || n++ % 64 == 0)
			watch(w, &last, any);
		idle_passes = any ? 0 : idle_passes + 1;
		if (!any)
			idle(w, idle_passes);
	}
	return NULL;
}

static unsigned int threads_wanted(void)
{
	const char *env = getenv("GDAKI_PROXY_THREADS");
	long n = env ? strtol(env, NULL, 10) : 1;

	return n < 1 ? 1 : n > (long)THREADS_MAX ? THREADS_MAX : (unsigned int)n;
}

static void stop_workers(struct gdk_service *s, unsigned int started)
{
	unsigned int i;

	atomic_store_explicit(&s->stop, true, memory_order_release);
	for (i = 0; i < started; i++) {
		pthread_join(s->workers[i].thread, NULL);
		pthread_mutex_destroy(&s->workers[i].lock);
		free(s->workers[i].qps);
	}
}

doca_error_t doca_gpu_verbs_create_service(doca_gpu_verbs_service_t *out_service)
{
	struct gdk_service *s;
	unsigned int i;

	GDK_CHECK_ARG(out_service != NULL);
	s = calloc(1, sizeof(*s));
	if (!s) {
		gdk_err("no memory for a proxy service");
		return DOCA_ERROR_NO_MEMORY;
	}
	s->threads = threads_wanted();
	for (i = 0; i < s->threads; i++) {
		s->workers[i].service = s;
		pthread_mutex_init(&s->workers[i].lock, NULL);
		if (pthread_create(&s->workers[i].thread, NULL, worker_main, &s->workers[i]))
			goto err_stop;
	}
	*out_service = s;
	return DOCA_SUCCESS;

err_stop:
	gdk_err("thread %u of a proxy service did not start", i);
	pthread_mutex_destroy(&s->workers[i].lock);
	stop_workers(s, i);
	free(s);
	return DOCA_ERROR_OPERATING_SYSTEM;
}

static doca_error_t worker_add(struct worker *w, struct gdk_export *x)
{
	doca_error_t err = DOCA_SUCCESS;
	struct gdk_export **grown;
	size_t cap;

	worker_lock(w);
	if (w->num == w->cap) {
		cap = w->cap ? w->cap * 2 : 16;
		grown = realloc(w->qps, cap * sizeof(*grown));
		if (!grown) {
			err = DOCA_ERROR_NO_MEMORY;
			goto out;
		}
		w->qps = grown;
		w->cap = cap;
	}
	w->qps[w->num++] = x;
out:
	pthread_mutex_unlock(&w->lock);
	return err;
}

/* Rings what is left, under the thread's lock, and forgets the QP. */
static bool worker_remove(struct worker *w, struct gdk_export *x)
{
	bool found = false, progressed = false;
	size_t i;

	worker_lock(w);
	for (i = 0; i < w->num && !found; i++) {
		if (w->qps[i] != x)
			continue;
		gdk_proxy_progress(x, &progressed);
		w->qps[i] = w->qps[--w->num];
		found = true;
	}
	pthread_mutex_unlock(&w->lock);
	if (progressed)
		atomic_fetch_add(&w->rings, 1);
	return found;
}

/* membership_lock is held. */
static void leave(struct gdk_service *s, struct gdk_export *x)
{
	unsigned int i;

	for (i = 0; i < s->threads; i++)
		if (worker_remove(&s->workers[i], x))
			break;
	x->service = NULL;
	x->unmonitor = NULL;
}

static void unmonitor(struct gdk_service *s, struct gdk_export *x)
{
	pthread_mutex_lock(&membership_lock);
	if (x->service == s)
		leave(s, x);
	pthread_mutex_unlock(&membership_lock);
}

doca_error_t doca_gpu_verbs_service_monitor_qp(doca_gpu_verbs_service_t service,
					       struct doca_gpu_verbs_qp *qp)
{
	struct gdk_service *s = service;
	struct worker *w, *least;
	struct gdk_export *x;
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_ARG(service != NULL);
	GDK_CHECK_ARG(qp != NULL);
	x = gdk_to_export(qp);
	if (!qp->cpu_proxy) {
		gdk_err("QP 0x%x: handler %s needs no service", qp->qp->qpn,
			gdk_handler_name(x->decision.chosen));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	pthread_mutex_lock(&membership_lock);
	if (x->service) {
		if (x->service != s) {
			gdk_err("QP 0x%x is monitored by another service", qp->qp->qpn);
			err = DOCA_ERROR_IN_USE;
		}
		goto out;
	}
	/* num is only written under membership_lock. */
	for (least = w = s->workers; w < s->workers + s->threads; w++)
		if (w->num < least->num)
			least = w;
	err = worker_add(least, x);
	if (err == DOCA_SUCCESS) {
		x->service = s;
		x->unmonitor = unmonitor;
	} else {
		gdk_err("QP 0x%x: no memory to monitor it", qp->qp->qpn);
	}
out:
	pthread_mutex_unlock(&membership_lock);
	return err;
}

doca_error_t gdk_verbs_service_unmonitor_qp(doca_gpu_verbs_service_t service,
					    struct doca_gpu_verbs_qp *qp)
{
	struct gdk_service *s = service;
	struct gdk_export *x;
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_ARG(service != NULL);
	GDK_CHECK_ARG(qp != NULL);
	x = gdk_to_export(qp);
	pthread_mutex_lock(&membership_lock);
	if (x->service == s) {
		leave(s, x);
	} else {
		gdk_err("QP 0x%x is not monitored by this service", qp->qp->qpn);
		err = DOCA_ERROR_NOT_FOUND;
	}
	pthread_mutex_unlock(&membership_lock);
	return err;
}

doca_error_t doca_gpu_verbs_destroy_service(doca_gpu_verbs_service_t service)
{
	struct gdk_service *s = service;
	unsigned int i;

	GDK_CHECK_ARG(service != NULL);
	pthread_mutex_lock(&membership_lock);
	for (i = 0; i < s->threads; i++)
		while (s->workers[i].num)
			leave(s, s->workers[i].qps[0]);
	pthread_mutex_unlock(&membership_lock);
	stop_workers(s, s->threads);
	free(s);
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_service_get_stats(doca_gpu_verbs_service_t service,
					 struct gdk_service_stats *stats)
{
	struct gdk_service *s = service;
	struct gdk_service_stats sum = {0};
	struct worker *w;

	GDK_CHECK_ARG(service != NULL);
	GDK_CHECK_ARG(stats != NULL);
	pthread_mutex_lock(&membership_lock);
	for (w = s->workers; w < s->workers + s->threads; w++) {
		sum.passes += atomic_load(&w->passes);
		sum.rings += atomic_load(&w->rings);
		sum.yields += atomic_load(&w->yields);
		sum.sleeps += atomic_load(&w->sleeps);
		sum.stalls += atomic_load(&w->stalls);
		sum.qps += (uint32_t)w->num;
	}
	pthread_mutex_unlock(&membership_lock);
	sum.threads = s->threads;
	*stats = sum;
	return DOCA_SUCCESS;
}
