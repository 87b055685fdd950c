/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The watch of exported queue pairs. Two mistakes would otherwise end in a wait of 60 s without a
 * message:
 *   - The CPU must ring the doorbells of a QP (CPU_PROXY, NO_DBR_SW_EMULATED), but no thread does.
 *   - The QP is not connected.
 *
 * A thread of the library polls the QPs of a list every 100 ms. It only reads host memory, or
 * GPU memory that is mapped for the CPU: a call of the CUDA driver could wait for the kernel that
 * hangs. It sets GDK_HINT_UNSERVED in the QP's gdk_watch_word, so that a wait of a GPU thread ends
 * with -EHOSTDOWN at its limit, and reads there that a wait has ended with -ENOTCONN.
 *
 * QPs whose doorbells the CPU rings are in the list from export on. Other QPs enter the list when
 * they are not connected although the caller has their device struct. So programs that connect
 * first and never use a CPU proxy have no such thread. A QP leaves the list when it is unexported.
 * The thread starts with the first QP of the list and is joined with the last: it never outlives
 * the QPs, because the library may be part of a plugin that is unloaded. While no QP of the list
 * must be polled, the thread sleeps without a timeout.
 */
#include "qp/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/log.h"
#include "core/util.h"
#include "device/gdk/state.h"
#include "qp/export.h"

#define POLL_MS	    100u
#define IDLE_MS	    500u /* the CPU has not rung for this time: doorbells are not served */
#define REPORTS_MAX 4u	 /* reports of one poll */

struct watcher {
	pthread_t thread;
	pthread_cond_t cond; /* signalled if stop is set, or if polls are needed again */
	bool stop;
};

/* Protects the list, the thread, and the members of struct gdk_watch from `next` on. Innermost
 * lock, except for step_lock, which is taken with trylock only. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gdk_export *list;
static unsigned int list_id = 1; /* differs in each child of fork(), whose list is new */
static struct watcher *watcher;	 /* NULL: no thread */
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

/* A log line that is written after `lock` was released: a full pipe at standard error must not
 * stop other threads. */
struct report {
	bool is_error;
	char text[400];
};

static void report_log(const struct report *r)
{
	if (r->is_error)
		gdk_err("%s", r->text);
	else
		gdk_warn("%s", r->text);
}

/* Takes the report that a wait of a GPU thread ended the QP with -ENOTCONN, if there is one.
 * Returns whether *r must be logged, which is the case on the 1st, 2nd, 4th, ... occurrence. */
static bool take_refused(struct gdk_export *x, struct report *r)
{
	struct gdk_watch_word *word = word_of(x);
	unsigned int times;

	if (!word || !__atomic_load_n(&word->refused, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&word->refused, 0, __ATOMIC_RELAXED))
		return false;
	times = atomic_fetch_add_explicit(&x->watch.refused, 1, memory_order_relaxed) + 1;
	if (!gdk_is_pow2(times))
		return false;
	r->is_error = true;
	snprintf(r->text, sizeof(r->text),
		 "QP 0x%x: a wait of a GPU thread ended with -ENOTCONN, because the QP was not "
		 "connected (state %s now, %u times so far): modify it to RTS "
		 "(doca_verbs_qp_modify) before a kernel uses it",
		 x->q.qpn, gdk_qp_state_name(atomic_load(&x->watch.state)), times);
	return true;
}

void gdk_watch_report(struct gdk_export *x)
{
	struct report r;

	if (take_refused(x, &r))
		report_log(&r);
}

/* Counts that doorbells were not served. Returns whether *r must be logged, as above. */
static bool count_unserved(struct gdk_export *x, unsigned int ms, struct report *r)
{
	struct gdk_watch *w = &x->watch;
	const char *cure = "no service monitors it: " GDK_PROXY_REMEDY;

	w->unserved++;
	if (!gdk_is_pow2(w->unserved))
		return false;
	if (atomic_load_explicit(&x->q.proxy.worker, memory_order_relaxed))
		cure = "the thread of the service that monitors it does not run: give it a CPU of "
		       "its own";
	r->is_error = false;
	snprintf(r->text, sizeof(r->text),
		 "QP 0x%x: no CPU thread has rung its doorbells for %u ms (pending up to index "
		 "%llu, rung up to %llu, %u times so far); %s",
		 x->q.qpn, ms, (unsigned long long)w->raised, (unsigned long long)w->rung,
		 w->unserved, cure);
	return true;
}

/* ---- polls ---- */

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

/* Counts polls instead of time: while a process is stopped, no idle poll is counted. A thread of a
 * service may sleep for grace_ms. Returns whether *r must be logged. */
static bool poll_doorbells(struct gdk_export *x, struct report *r)
{
	const unsigned int grace_ms = atomic_load(&x->q.proxy.grace_ms);
	const unsigned int idle_ms = IDLE_MS + (grace_ms + POLL_MS - 1) / POLL_MS * POLL_MS;
	struct gdk_watch *w = &x->watch;
	uint64_t rung;

	w->raised = read_raised(x);
	rung = __atomic_load_n(&x->q.pub.sq_wqe_pi_last, __ATOMIC_RELAXED);
	if (rung >= w->raised || rung != w->rung) {
		w->rung = rung;
		w->idle_polls = rung < w->raised;
		set_hint(x, GDK_HINT_UNSERVED, false);
		return false;
	}
	/* The first idle poll is up to POLL_MS after the CPU should have rung. */
	if (++w->idle_polls != idle_ms / POLL_MS + 1)
		return false;
	set_hint(x, GDK_HINT_UNSERVED, true);
	return count_unserved(x, idle_ms, r);
}

static bool needs_polls(const struct gdk_export *x)
{
	return x->q.pub.cpu_proxy || !is_connected(atomic_load(&x->watch.state));
}

/* Polls the QPs of the list. Stores up to REPORTS_MAX reports; other reports are left to the next
 * poll. *again: another poll is needed later. The caller holds lock. */
static unsigned int poll_all(struct report *reports, bool *again)
{
	struct gdk_export *x;
	unsigned int num = 0;

	*again = false;
	for (x = list; x; x = x->watch.next) {
		*again |= needs_polls(x);
		if (x->q.pub.cpu_proxy && num < REPORTS_MAX && poll_doorbells(x, &reports[num]))
			num++;
		if (num < REPORTS_MAX && take_refused(x, &reports[num]))
			num++;
	}
	return num;
}

/* ---- the thread ---- */

static struct timespec next_poll(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += POLL_MS * 1000000l;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

static void *watcher_main(void *arg)
{
	struct report reports[REPORTS_MAX];
	struct watcher *w = arg;
	struct timespec until;
	unsigned int num, i;
	bool again;

	pthread_mutex_lock(&lock);
	while (!w->stop) {
		num = poll_all(reports, &again);
		if (num) {
			pthread_mutex_unlock(&lock);
			for (i = 0; i < num; i++)
				report_log(&reports[i]);
			pthread_mutex_lock(&lock);
		} else if (!again) {
			pthread_cond_wait(&w->cond, &lock);
			continue;
		}
		until = next_poll();
		while (!w->stop && !pthread_cond_timedwait(&w->cond, &lock, &until))
			;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* A child of fork() has no such thread, and must not access the QPs of its parent. */
static void after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	list = NULL;
	list_id++;
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

/* Starts the thread, or wakes it so that it polls. The caller holds lock. */
static void watcher_wake(void)
{
	static bool logged;
	struct watcher *w;
	int err;

	if (watcher) {
		pthread_cond_signal(&watcher->cond);
		return;
	}
	w = calloc(1, sizeof(*w));
	err = w ? watcher_start(w) : ENOMEM;
	if (err) {
		if (!logged)
			gdk_warn("cannot start the thread that watches queue pairs: %s; doorbells "
				 "that no CPU thread rings will not be reported, and missing "
				 "connections late",
				 strerror(err));
		logged = true;
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
	if (x->watch.listed != list_id) {
		x->watch.listed = list_id;
		x->watch.next = list;
		list = x;
	}
	watcher_wake();
	pthread_mutex_unlock(&lock);
}

static void unlist(struct gdk_export *x)
{
	struct watcher *ended = NULL;
	struct gdk_export **at;

	pthread_mutex_lock(&lock);
	if (x->watch.listed == list_id) {
		for (at = &list; *at != x; at = &(*at)->watch.next)
			;
		*at = x->watch.next;
		x->watch.listed = 0;
	}
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
	else
		gdk_warn(
			"QP 0x%x: exported without a word for waiting GPU threads: while it is not "
			"connected, a wait ends at its time limit only",
			x->q.qpn);
	set_hint(x, GDK_HINT_UNCONNECTED, !is_connected(state));
}

void gdk_watch_start(struct gdk_export *x)
{
	if (x->q.pub.cpu_proxy)
		enlist(x);
}

void gdk_watch_close(struct gdk_export *x)
{
	unlist(x);
	gdk_watch_report(x);
	if (x->watch.word.page)
		gdk_word_put(&words, x->watch.word.page, x->watch.word.cpu);
	x->watch.word = (struct gdk_word){ NULL, NULL, NULL };
}

/* Sequentially consistent: gdk_watch_state() stores the state and then loads in_use. At least one
 * of the two functions sees the store of the other. */
void gdk_watch_use(struct gdk_export *x)
{
	atomic_store(&x->watch.in_use, true);
	if (needs_polls(x))
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
	if (is_connected(state))
		return;
	set_hint(x, GDK_HINT_UNSERVED, false);
	if (atomic_load(&x->watch.in_use))
		enlist(x);
}
