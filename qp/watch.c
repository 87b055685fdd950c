/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The watch of exported queue pairs. Two mistakes would otherwise end in a wait of 60 s without a
 * message:
 *   - The CPU must ring the doorbells of a QP (CPU_PROXY, NO_DBR_SW_EMULATED), but no thread does.
 *   - The QP is not connected.
 *
 * A thread of the library looks at the QPs of a list, every 100 ms. It only reads host memory, or
 * GPU memory that is mapped for the CPU: a call of the CUDA driver could wait for the kernel that
 * hangs. It sets GDK_HINT_UNSERVED in the QP's gdk_watch_word, so that a wait of a GPU thread ends
 * with -EHOSTDOWN at its limit, and reads there that a wait has ended with -ENOTCONN.
 *
 * QPs whose doorbells the CPU rings are in the list from export on. Other QPs enter the list when
 * the caller gets the device struct of a QP that is not connected yet. So programs that connect
 * first and never use a CPU proxy have no such thread. A QP leaves the list when it is unexported.
 * The thread starts with the first QP of the list and is joined with the last: it never outlives
 * the QPs, because the library may be part of a plugin that is unloaded. While no QP of the list
 * needs looks, the thread sleeps without a timeout.
 */
#include "qp/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/log.h"
#include "device/gdk/state.h"
#include "qp/export.h"

#define LOOK_MS	      100u
#define LOOKS_TO_HINT 2u /* idle looks after which waits end with -EHOSTDOWN */
#define LOOKS_TO_LOG  6u /* the CPU has not rung for 500 to 600 ms */

struct watcher {
	pthread_t thread;
	pthread_cond_t cond; /* signalled if stop is set, or if looks are needed again */
	bool stop;
};

/* Protects the list, the thread, and the members of struct gdk_watch that say so. Innermost lock
 * but for step_lock, which is only tried. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gdk_export *list;
static struct watcher *watcher; /* NULL: no thread */
static struct gdk_words words = GDK_WORDS_INIT("words for waiting GPU threads");

static struct gdk_watch_word *word_of(const struct gdk_export *x)
{
	return (struct gdk_watch_word *)(void *)x->watch.word.cpu;
}

static bool is_connected(enum doca_verbs_qp_state state)
{
	return state >= DOCA_VERBS_QP_STATE_RTS;
}

/* Relaxed: see struct gdk_watch_word. */
static void set_hint(const struct gdk_export *x, uint32_t hint, bool on)
{
	struct gdk_watch_word *word = word_of(x);

	if (!word)
		return;
	if (on)
		__atomic_fetch_or(&word->hints, hint, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&word->hints, ~hint, __ATOMIC_RELAXED);
}

/* ---- reports ---- */

/* Each report is logged on the 1st, 2nd, 4th, ... occurrence. */
static bool is_power_of_2(unsigned int n)
{
	return !(n & (n - 1));
}

void gdk_watch_report(struct gdk_export *x)
{
	struct gdk_watch_word *word = word_of(x);
	unsigned int times;

	if (!word || !__atomic_load_n(&word->refused, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&word->refused, 0, __ATOMIC_RELAXED))
		return;
	times = atomic_fetch_add_explicit(&x->watch.refused, 1, memory_order_relaxed) + 1;
	if (is_power_of_2(times))
		gdk_err("QP 0x%x: a wait of a GPU thread ended with -ENOTCONN, because the QP was "
			"not connected (state %s now, %u times so far): modify it to RTS "
			"(doca_verbs_qp_modify) before a kernel uses it",
			x->q.qpn, gdk_qp_state_name(atomic_load(&x->watch.state)), times);
}

static void report_unserved(struct gdk_export *x)
{
	const struct gdk_watch *w = &x->watch;
	const char *cure = "no service monitors it: call doca_gpu_verbs_create_service and "
			   "doca_gpu_verbs_service_monitor_qp, or "
			   "doca_gpu_verbs_cpu_proxy_progress repeatedly";

	if (!is_power_of_2(w->unserved))
		return;
	if (atomic_load_explicit(&x->q.proxy.worker, memory_order_relaxed))
		cure = "the thread of the service that monitors it does not run: give it a CPU of "
		       "its own";
	gdk_warn("QP 0x%x: no CPU thread has rung its doorbells for %u ms (pending up to index "
		 "%llu, rung up to %llu, %u times so far); %s",
		 x->q.qpn, (LOOKS_TO_LOG - 1) * LOOK_MS, (unsigned long long)w->raised,
		 (unsigned long long)w->rung, w->unserved, cure);
}

/* ---- looks ---- */

/* Reads the index up to which the GPU requested doorbells. A reset overwrites a counter in the
 * state block under step_lock. If the lock is taken, the result is the last index. */
static uint64_t read_raised(struct gdk_export *x)
{
	uint64_t raised = x->watch.raised;

	if (x->q.proxy.page)
		return __atomic_load_n(x->q.pub.cpu_db, __ATOMIC_RELAXED);
	if (!pthread_spin_trylock(&x->q.proxy.step_lock)) {
		raised = __atomic_load_n(x->q.pub.cpu_db, __ATOMIC_RELAXED);
		pthread_spin_unlock(&x->q.proxy.step_lock);
	}
	return raised;
}

/* Counts looks instead of time: a process that was stopped for a while has no idle looks. */
static void look_at_doorbells(struct gdk_export *x)
{
	struct gdk_watch *w = &x->watch;
	uint64_t rung;

	w->raised = read_raised(x);
	rung = __atomic_load_n(&x->q.pub.sq_wqe_pi_last, __ATOMIC_RELAXED);
	if (rung == w->raised || rung != w->rung) {
		w->rung = rung;
		if (w->idle_looks >= LOOKS_TO_HINT)
			set_hint(x, GDK_HINT_UNSERVED, false);
		w->idle_looks = rung != w->raised;
		return;
	}
	w->idle_looks++;
	if (w->idle_looks == LOOKS_TO_HINT)
		set_hint(x, GDK_HINT_UNSERVED, true);
	if (w->idle_looks != LOOKS_TO_LOG)
		return;
	w->unserved++;
	report_unserved(x);
}

static bool needs_looks(const struct gdk_export *x)
{
	return x->q.pub.cpu_proxy || !is_connected(atomic_load(&x->watch.state));
}

/* Looks at all QPs. Returns whether another look is needed later. The caller holds lock. */
static bool look(void)
{
	struct gdk_export *x;
	bool again = false;

	for (x = list; x; x = x->watch.next) {
		if (x->q.pub.cpu_proxy)
			look_at_doorbells(x);
		gdk_watch_report(x);
		again |= needs_looks(x);
	}
	return again;
}

/* ---- the thread ---- */

static struct timespec next_look(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += LOOK_MS * 1000000l;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

static void *watcher_main(void *arg)
{
	struct watcher *w = arg;
	struct timespec until;

	pthread_mutex_lock(&lock);
	while (!w->stop) {
		if (!look()) {
			pthread_cond_wait(&w->cond, &lock);
			continue;
		}
		until = next_look();
		while (!w->stop && !pthread_cond_timedwait(&w->cond, &lock, &until))
			;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* A child of fork() has no such thread, and must not look at the QPs of its parent. */
static void after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	list = NULL;
	watcher = NULL;
}

static void prepare_fork(void)
{
	(void)pthread_atfork(NULL, NULL, after_fork);
}

/* Starts the thread with all signals blocked, so that the application's own threads handle them.
 * Returns 0 or an errno value. */
static int watcher_start(struct watcher *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	pthread_once(&once, prepare_fork);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->cond, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, NULL, watcher_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		pthread_cond_destroy(&w->cond);
	else
		pthread_setname_np(w->thread, "gdaki-watch");
	return err;
}

/* Makes sure that the thread runs and looks. The caller holds lock. */
static void watcher_wake(void)
{
	struct watcher *w;
	int err;

	if (watcher) {
		pthread_cond_signal(&watcher->cond);
		return;
	}
	w = calloc(1, sizeof(*w));
	err = w ? watcher_start(w) : ENOMEM;
	if (err) {
		gdk_warn("cannot start a thread that watches queue pairs: %s; doorbells that no "
			 "CPU thread rings will not be reported",
			 strerror(err));
		free(w);
		return;
	}
	watcher = w;
}

static void watcher_join(struct watcher *w)
{
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->cond);
	free(w);
}

/* ---- the list ---- */

static void enlist(struct gdk_export *x)
{
	pthread_mutex_lock(&lock);
	if (!x->watch.listed) {
		x->watch.listed = true;
		x->watch.next = list;
		list = x;
	}
	watcher_wake();
	pthread_mutex_unlock(&lock);
}

static void wake_if_listed(const struct gdk_export *x)
{
	pthread_mutex_lock(&lock);
	if (x->watch.listed)
		watcher_wake();
	pthread_mutex_unlock(&lock);
}

static void unlist(struct gdk_export *x)
{
	struct watcher *ended = NULL;
	struct gdk_export **at;

	pthread_mutex_lock(&lock);
	for (at = &list; x->watch.listed && *at && *at != x; at = &(*at)->watch.next)
		;
	if (x->watch.listed && *at)
		*at = x->watch.next;
	if (!list && watcher) {
		ended = watcher;
		watcher = NULL;
		ended->stop = true;
		pthread_cond_signal(&ended->cond);
	}
	pthread_mutex_unlock(&lock);
	if (ended)
		watcher_join(ended);
}

/* ---- one queue pair ---- */

uint64_t gdk_watch_addr(const struct gdk_export *x)
{
	return (uintptr_t)x->watch.word.gpu;
}

void gdk_watch_open(struct gdk_export *x)
{
	const enum doca_verbs_qp_state state = x->q.pub.qp->state;

	atomic_store(&x->watch.state, state);
	if (gdk_word_get(&words, x->q.pub.gpu_dev, x->q.dev, &x->watch.word) == DOCA_SUCCESS)
		__atomic_store_n(x->watch.word.cpu, 0, __ATOMIC_RELAXED);
	set_hint(x, GDK_HINT_UNCONNECTED, !is_connected(state));
}

void gdk_watch_close(struct gdk_export *x)
{
	unlist(x);
	gdk_watch_report(x);
	if (x->watch.word.page)
		gdk_word_put(&words, x->watch.word.page, x->watch.word.cpu);
	x->watch.word = (struct gdk_word){ NULL, NULL, NULL };
}

void gdk_watch_use(struct gdk_export *x)
{
	if (needs_looks(x))
		enlist(x);
}

void gdk_watch_state(struct doca_verbs_qp_t *qp, enum doca_verbs_qp_state state)
{
	struct gdk_export *x;

	qp->state = state;
	if (!qp->exported)
		return;
	x = gdk_to_export(qp->exported);
	gdk_watch_report(x);
	atomic_store(&x->watch.state, state);
	set_hint(x, GDK_HINT_UNCONNECTED, !is_connected(state));
	if (!is_connected(state))
		wake_if_listed(x);
}
