/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The proxy service: CPU threads that poll the counters of the queue pairs they monitor and
 * ring (cpu_proxy.c). An idle thread spins, then yields, then sleeps for increasing times.
 *
 * QPs can be added and removed at any time. A thread holds its lock during one pass, and lets
 * waiting callers take the lock before its next pass. One thread monitors all counters of a
 * cache line. Unless the user gave a list of CPUs, a thread runs near the NIC of its QPs.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "core/log/log.h"
#include "core/numa.h"
#include "doorbell/cpu_proxy.h"

#define THREADS_MAX	  16u
#define SPIN_PASSES	  2000u /* idle passes before a thread yields */
#define YIELD_PASSES	  2000u /* further idle passes before it sleeps */
#define NAP_MIN_NS	  20000u
#define NAP_DOUBLES_EVERY 64u /* sleeps of one length before the length doubles */

struct gdk_worker {
	struct gdk_service *service;
	pthread_t thread;
	struct bitmask *cpus; /* CPUs that the thread may use */
	pthread_mutex_t lock; /* protects scan and node */
	atomic_int waiters;   /* callers that wait for the lock */
	struct gdk_scan scan;
	int node; /* NUMA node near which the thread must run; -1: any */
	int64_t stall_ns;
	uint64_t nap_max_ns;
	_Atomic int64_t seen_ns; /* time of the last pass; while it spins, of one pass in 64 */
	_Atomic uint64_t passes, rings, yields, naps, stalls, worst_gap_ns;
};

struct gdk_service {
	atomic_bool stop;
	bool near_nic; /* the user gave no list of CPUs: threads run near the NIC */
	unsigned int threads;
	struct gdk_worker workers[THREADS_MAX];
};

/* Protects the assignment of QPs to threads. Taken before the lock of a thread. */
static pthread_mutex_t membership_lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* ---- a thread ---- */

static void worker_lock(struct gdk_worker *w)
{
	atomic_fetch_add(&w->waiters, 1);
	pthread_mutex_lock(&w->lock);
	atomic_fetch_sub(&w->waiters, 1);
}

static void run_near(struct gdk_worker *w, int node)
{
	struct bitmask *near = gdk_cpus_near(w->cpus, node);

	if (near)
		gdk_run_on(near);
	gdk_cpus_free(near);
}

/* Makes one pass over the counters. Returns the number of QPs that were rung, and in *node the NUMA
 * node near which the thread must run. */
static unsigned int worker_pass(struct gdk_worker *w, int *node)
{
	unsigned int rung;

	while (atomic_load_explicit(&w->waiters, memory_order_relaxed) > 0)
		sched_yield();
	pthread_mutex_lock(&w->lock);
	rung = gdk_scan_pass(&w->scan);
	if (rung) /* counted under the lock, so that the next holder of the lock sees the count */
		count(&w->rings, rung);
	*node = w->node;
	pthread_mutex_unlock(&w->lock);
	count(&w->passes, 1);
	return rung;
}

static void idle(struct gdk_worker *w, uint64_t idle_passes)
{
	struct timespec ts = { 0 };
	uint64_t doublings, ns;

	if (idle_passes < SPIN_PASSES)
		return;
	if (idle_passes < SPIN_PASSES + YIELD_PASSES) {
		count(&w->yields, 1);
		sched_yield();
		return;
	}
	doublings = (idle_passes - SPIN_PASSES - YIELD_PASSES) / NAP_DOUBLES_EVERY;
	ns = (uint64_t)NAP_MIN_NS << (doublings < 20 ? doublings : 20);
	if (ns > w->nap_max_ns)
		ns = w->nap_max_ns;
	ts.tv_sec = (time_t)(ns / 1000000000);
	ts.tv_nsec = (long)(ns % 1000000000);
	count(&w->naps, 1);
	nanosleep(&ts, NULL);
}

/* Watchdog: detects that this thread rings late. The doorbells may have waited for a part of the
 * gap only. Logs a warning on the 1st, 2nd, 4th, ... occurrence. */
static void watch(struct gdk_worker *w, bool rang)
{
	int64_t now = now_ns();
	int64_t gap = now - atomic_load_explicit(&w->seen_ns, memory_order_relaxed);
	uint64_t stalls;

	atomic_store_explicit(&w->seen_ns, now, memory_order_relaxed);
	if (!rang)
		return;
	if ((uint64_t)gap > atomic_load_explicit(&w->worst_gap_ns, memory_order_relaxed))
		atomic_store_explicit(&w->worst_gap_ns, (uint64_t)gap, memory_order_relaxed);
	if (gap < w->stall_ns)
		return;
	stalls = atomic_fetch_add_explicit(&w->stalls, 1, memory_order_relaxed) + 1;
	if (!(stalls & (stalls - 1)))
		gdk_warn("proxy thread did not run for %lld ms, and doorbells waited for it (%llu "
			 "times so far); give it a CPU of its own",
			 (long long)(gap / 1000000), (unsigned long long)stalls);
}

static void *worker_main(void *arg)
{
	struct gdk_worker *w = arg;
	uint64_t idle_passes = 0, n = 0;
	int node, placed = -1;
	unsigned int rung;

	run_near(w, -1);
	while (!atomic_load_explicit(&w->service->stop, memory_order_acquire)) {
		rung = worker_pass(w, &node);
		/* While the thread spins, it reads the clock on every 64th pass only. */
		if (rung || idle_passes >= SPIN_PASSES || n++ % 64 == 0)
			watch(w, rung);
		if (node != placed)
			run_near(w, placed = node);
		idle_passes = rung ? 0 : idle_passes + 1;
		if (!rung)
			idle(w, idle_passes);
	}
	return NULL;
}

/* ---- creation ---- */

static uint32_t from_env(const char *name, uint32_t max, uint32_t otherwise)
{
	const char *env = getenv(name);
	unsigned long n;
	char *end;

	if (!env || !*env)
		return otherwise;
	n = strtoul(env, &end, 10);
	if (*env >= '0' && *env <= '9' && !*end && n > 0 && n <= max)
		return (uint32_t)n;
	gdk_warn("ignoring %s=\"%s\" (expected 1..%u), using %u", name, env, max, otherwise);
	return otherwise;
}

static struct gdk_service_attr or_defaults(struct gdk_service_attr attr)
{
	if (!attr.threads)
		attr.threads = from_env("GDAKI_PROXY_THREADS", THREADS_MAX, 1);
	if (!attr.nap_max_us)
		attr.nap_max_us = from_env("GDAKI_PROXY_NAP_US", UINT32_MAX, 1000);
	if (!attr.stall_ms)
		attr.stall_ms = 100;
	return attr;
}

/* Returns the CPUs on which the threads are allowed to run, or NULL after a logged error. *near_nic
 * is set to whether the user gave no list. */
static struct bitmask *cpus_for(const struct gdk_service_attr *attr, bool *near_nic)
{
	const char *env = getenv("GDAKI_PROXY_CPUS");

	*near_nic = !attr->cpus && (!env || !*env);
	if (*near_nic)
		return gdk_cpus_of("all CPUs", NULL);
	return attr->cpus ? gdk_cpus_of("attr->cpus", attr->cpus)
			  : gdk_cpus_of("GDAKI_PROXY_CPUS", env);
}

/* Starts a thread with all signals blocked, so that the application's own threads handle them. */
static int start_quietly(struct gdk_worker *w)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(w->thread, "gdaki-proxy");
	return err;
}

static doca_error_t worker_start(struct gdk_worker *w, const struct gdk_service_attr *attr,
				 struct bitmask *cpus)
{
	struct gdk_service *s = w->service;
	doca_error_t err = DOCA_ERROR_NO_MEMORY;

	w->cpus = s->near_nic ? gdk_cpus_near(cpus, -1)
			      : gdk_cpus_nth(cpus, (unsigned int)(w - s->workers));
	if (!w->cpus)
		goto err_log;
	w->node = -1;
	w->nap_max_ns = 1000ull * attr->nap_max_us;
	w->stall_ns = 1000000ll * attr->stall_ms + (int64_t)w->nap_max_ns;
	atomic_store(&w->seen_ns, now_ns());
	pthread_mutex_init(&w->lock, NULL);
	if (!start_quietly(w))
		return DOCA_SUCCESS;
	err = DOCA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_destroy(&w->lock);
	gdk_cpus_free(w->cpus);
err_log:
	gdk_err("cannot start thread %d of a proxy service", (int)(w - s->workers));
	return err;
}

static void stop_workers(struct gdk_service *s, unsigned int started)
{
	struct gdk_worker *w;

	atomic_store_explicit(&s->stop, true, memory_order_release);
	for (w = s->workers; w < s->workers + started; w++) {
		pthread_join(w->thread, NULL);
		pthread_mutex_destroy(&w->lock);
		gdk_scan_free(&w->scan);
		gdk_cpus_free(w->cpus);
	}
}

static doca_error_t start_workers(struct gdk_service *s, const struct gdk_service_attr *attr,
				  struct bitmask *cpus)
{
	doca_error_t err = DOCA_SUCCESS;
	unsigned int i;

	for (i = 0; i < s->threads && err == DOCA_SUCCESS; i++) {
		s->workers[i].service = s;
		err = worker_start(&s->workers[i], attr, cpus);
	}
	if (err != DOCA_SUCCESS)
		stop_workers(s, i - 1);
	return err;
}

doca_error_t gdk_verbs_service_create(const struct gdk_service_attr *attr,
				      doca_gpu_verbs_service_t *out_service)
{
	struct gdk_service_attr all;
	struct gdk_service *s;
	struct bitmask *cpus;
	doca_error_t err;

	GDK_CHECK_PTR(attr);
	GDK_CHECK_PTR(out_service);
	GDK_CHECK_RANGE(attr->threads, 0, THREADS_MAX);
	s = calloc(1, sizeof(*s));
	if (!s) {
		gdk_err("no memory for a proxy service");
		return DOCA_ERROR_NO_MEMORY;
	}
	all = or_defaults(*attr);
	s->threads = all.threads;
	cpus = cpus_for(&all, &s->near_nic);
	err = cpus ? start_workers(s, &all, cpus) : DOCA_ERROR_INVALID_VALUE;
	gdk_cpus_free(cpus);
	if (err != DOCA_SUCCESS) {
		free(s);
		return err;
	}
	atomic_fetch_add_explicit(&gdk_proxy_services, 1, memory_order_relaxed);
	*out_service = s;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_create_service(doca_gpu_verbs_service_t *out_service)
{
	static const struct gdk_service_attr defaults;

	GDK_CHECK_PTR(out_service);
	return gdk_verbs_service_create(&defaults, out_service);
}

/* ---- membership ---- */

/* Chooses the thread for a QP: the one that already has counters of the same cache line. Otherwise
 * it prefers threads that have no QPs or run near node, and of these the one with the fewest QPs.
 * The callers of this function, leave() and join() hold membership_lock. */
static struct gdk_worker *choose(struct gdk_service *s, const struct gdk_db_qp *x, int node)
{
	struct gdk_worker *w, *best = NULL;
	size_t cost, least = SIZE_MAX;

	for (w = s->workers; w < s->workers + s->threads; w++) {
		if (gdk_scan_has_line(&w->scan, x))
			return w;
		cost = w->scan.num;
		if (cost && w->node != node)
			cost += SIZE_MAX / 2;
		if (cost < least) {
			least = cost;
			best = w;
		}
	}
	return best;
}

static void set_worker(struct gdk_db_qp *x, struct gdk_worker *w)
{
	pthread_spin_lock(&x->proxy.step_lock);
	x->proxy.worker = w;
	gdk_store_hint(x);
	pthread_spin_unlock(&x->proxy.step_lock);
}

static void leave(struct gdk_db_qp *x)
{
	struct gdk_worker *w = x->proxy.worker;

	/* Removes the QP from the scan set before it drains the QP, so that no pass waits for the
	 * drain. */
	worker_lock(w);
	gdk_scan_remove(&w->scan, x);
	pthread_mutex_unlock(&w->lock);
	if (gdk_proxy_drain(x))
		count(&w->rings, 1);
	set_worker(x, NULL);
	atomic_store(&x->proxy.grace_ms, 0);
}

static void unmonitor(struct gdk_db_qp *x)
{
	pthread_mutex_lock(&membership_lock);
	if (x->proxy.worker)
		leave(x);
	pthread_mutex_unlock(&membership_lock);
}

static doca_error_t join(struct gdk_service *s, struct gdk_db_qp *x)
{
	int node = x->dev->numa_node;
	struct gdk_worker *w;
	doca_error_t err;

	if (x->proxy.worker && x->proxy.worker->service == s)
		return DOCA_SUCCESS;
	if (x->proxy.worker) {
		gdk_err("QP 0x%x: cannot monitor it: another service does", x->qpn);
		return DOCA_ERROR_IN_USE;
	}
	w = choose(s, x, node);
	worker_lock(w);
	if (s->near_nic && !w->scan.num)
		w->node = node;
	err = gdk_scan_add(&w->scan, x);
	pthread_mutex_unlock(&w->lock);
	if (err != DOCA_SUCCESS)
		return err;
	atomic_store(&x->proxy.grace_ms, (unsigned int)(w->nap_max_ns / 1000000));
	set_worker(x, w);
	atomic_store_explicit(&x->proxy.unmonitor, unmonitor, memory_order_release);
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_service_monitor_qp(doca_gpu_verbs_service_t service,
					       struct doca_gpu_verbs_qp *qp)
{
	struct gdk_db_qp *x;
	doca_error_t err;

	GDK_CHECK_PTR(service);
	GDK_CHECK_PTR(qp);
	x = gdk_to_db_qp(qp);
	if (!qp->cpu_proxy) {
		gdk_err("QP 0x%x: cannot monitor handler %s (expected CPU_PROXY, or "
			"NO_DBR_SW_EMULATED mode)",
			x->qpn, gdk_handler_name(x->decision.chosen));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	pthread_mutex_lock(&membership_lock);
	err = join(service, x);
	pthread_mutex_unlock(&membership_lock);
	return err;
}

doca_error_t gdk_verbs_service_unmonitor_qp(doca_gpu_verbs_service_t service,
					    struct doca_gpu_verbs_qp *qp)
{
	struct gdk_service *s = service;
	struct gdk_db_qp *x;
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_PTR(service);
	GDK_CHECK_PTR(qp);
	x = gdk_to_db_qp(qp);
	pthread_mutex_lock(&membership_lock);
	if (x->proxy.worker && x->proxy.worker->service == s) {
		leave(x);
	} else {
		gdk_err("QP 0x%x: cannot unmonitor it: not monitored by this service", x->qpn);
		err = DOCA_ERROR_NOT_FOUND;
	}
	pthread_mutex_unlock(&membership_lock);
	return err;
}

doca_error_t doca_gpu_verbs_destroy_service(doca_gpu_verbs_service_t service)
{
	struct gdk_service *s = service;
	struct gdk_db_qp *x;
	struct gdk_worker *w;

	GDK_CHECK_PTR(service);
	pthread_mutex_lock(&membership_lock);
	for (w = s->workers; w < s->workers + s->threads; w++)
		while ((x = gdk_scan_any(&w->scan)))
			leave(x);
	pthread_mutex_unlock(&membership_lock);
	stop_workers(s, s->threads);
	atomic_fetch_sub_explicit(&gdk_proxy_services, 1, memory_order_relaxed);
	free(s);
	return DOCA_SUCCESS;
}

/* ---- statistics ---- */

static void add_stats(struct gdk_worker *w, int64_t now, struct gdk_service_stats *sum)
{
	uint64_t worst = atomic_load(&w->worst_gap_ns);

	sum->passes += atomic_load(&w->passes);
	sum->rings += atomic_load(&w->rings);
	sum->yields += atomic_load(&w->yields);
	sum->sleeps += atomic_load(&w->naps);
	sum->stalls += atomic_load(&w->stalls);
	sum->worst_gap_ns = worst > sum->worst_gap_ns ? worst : sum->worst_gap_ns;
	sum->late_threads += now - atomic_load(&w->seen_ns) > w->stall_ns;
	sum->qps += (uint32_t)w->scan.num; /* protected by membership_lock */
}

doca_error_t gdk_verbs_service_get_stats(doca_gpu_verbs_service_t service,
					 struct gdk_service_stats *stats)
{
	struct gdk_service *s = service;
	struct gdk_service_stats sum = { 0 };
	int64_t now = now_ns();
	unsigned int i;

	GDK_CHECK_PTR(service);
	GDK_CHECK_PTR(stats);
	pthread_mutex_lock(&membership_lock);
	for (i = 0; i < s->threads; i++)
		add_stats(&s->workers[i], now, &sum);
	pthread_mutex_unlock(&membership_lock);
	sum.threads = s->threads;
	*stats = sum;
	return DOCA_SUCCESS;
}
