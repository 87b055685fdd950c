/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The watch of exported queue pairs. Two mistakes would otherwise end in a wait of 60 s without a
 * message:
 *   - The CPU must ring the doorbells of a QP (CPU_PROXY, NO_DBR_SW_EMULATED), but no thread does.
 *   - The QP is not connected.
 *
 * A wait of a GPU thread finds both in the queue's gdk_watch_word, and returns -EHOSTDOWN at its
 * time limit or -ENOTCONN. The host stores that word at once in the call that changes it, so that
 * the status does not depend on a thread. The waiting thread stores there that it ended the QP.
 *
 * The log needs a thread of the library, which polls the QPs of a list every 100 ms. It only reads
 * host memory, or GPU memory that is mapped for the CPU: a call of the CUDA driver could wait for
 * the kernel that hangs. At exit of the program, what has ended since the last poll is logged, too.
 *
 * QPs whose doorbells the CPU rings are in the list from export on. Other QPs enter the list when
 * they are not connected although the caller has their device struct. So programs that connect
 * first and never use a CPU proxy have no such thread. A QP leaves the list when it is unexported.
 * The thread starts with the first QP of the list and is joined with the last: it never outlives
 * the QPs, because the library may be part of a plugin that is unloaded. While no QP of the list
 * must be polled, the thread sleeps without a timeout.
 */
#include "qp/export/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/cpu_wait.h"
#include "core/log/log.h"
#include "core/util.h"
#include "device/gdk/state.h"
#include "qp/export/export.h"

#define POLL_MS	    100u
#define IDLE_MS	    500u /* the CPU has not rung for this time: doorbells are not served */
#define REPORTS_MAX 4u	 /* reports of one poll */
#define WAITED_FROM 2u	 /* idle poll that sets waited_ns; in normal use there is one at most */

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

static bool is_connected(enum doca_verbs_qp_state state)
{
	return state >= DOCA_VERBS_QP_STATE_RTS;
}

/* ---- reports ---- */

/* A log line that is written after `lock` was released: a full pipe at standard error must not
 * stop other threads. */
struct report {
	bool is_error;
	char text[600];
};

static void report_log(const struct report *r)
{
	if (r->is_error)
		gdk_err("%s", r->text);
	else
		gdk_warn("%s", r->text);
}

/* Why the CPU has not rung, and what to do. */
struct remedy {
	char text[300];
};

/* A thread that rings may exist and get no processor: if threads of the process waited for one for
 * half of the time, the text says so. */
static struct remedy remedy_of(const struct gdk_export *x)
{
	const unsigned int idle_ms = (x->watch.idle_polls - WAITED_FROM) * POLL_MS;
	const char *cure = "no service monitors it: " GDK_PROXY_REMEDY;
	struct remedy r;
	uint64_t ms = 0;

	if (atomic_load_explicit(&x->q.proxy.worker, memory_order_relaxed))
		cure = "the thread of the service that monitors it does not run: give it a CPU of "
		       "its own";
	if (x->watch.idle_polls > WAITED_FROM)
		ms = (gdk_cpu_wait_ns() - x->watch.waited_ns) / 1000000u;
	if (2 * ms >= idle_ms && ms && ms < UINT32_MAX)
		snprintf(r.text, sizeof(r.text),
			 "a thread that rings may have got no processor (threads of this process "
			 "waited for one, %u ms in sum), or %s",
			 (unsigned int)ms, cure);
	else
		snprintf(r.text, sizeof(r.text), "%s", cure);
	return r;
}

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

static uint64_t read_rung(const struct gdk_export *x)
{
	return __atomic_load_n(&x->q.pub.sq_wqe_pi_last, __ATOMIC_RELAXED);
}

/* Counts a wait that ended because the QP was not connected. Returns whether *r must be logged,
 * which is the case on the 1st, 2nd, 4th, ... occurrence. The callers of this function and the next
 * ones hold lock. */
static bool count_refused(struct gdk_export *x, struct report *r)
{
	if (!gdk_is_pow2(++x->watch.refused))
		return false;
	r->is_error = true;
	snprintf(r->text, sizeof(r->text),
		 "QP 0x%x: a wait of a GPU thread ended with -ENOTCONN, because the QP was not "
		 "connected (state %s now, %u times so far): modify it to RTS "
		 "(doca_verbs_qp_modify) before a kernel uses it",
		 x->q.qpn, gdk_qp_state_name(atomic_load(&x->watch.state)), x->watch.refused);
	return true;
}

/* As count_refused(), for a wait that ended at its time limit because the CPU had not rung. */
static bool count_late(struct gdk_export *x, const char *status, struct report *r)
{
	if (!gdk_is_pow2(++x->watch.late))
		return false;
	r->is_error = true;
	snprintf(r->text, sizeof(r->text),
		 "QP 0x%x: a wait of a GPU thread ended with %s, because the CPU had not rung "
		 "(doorbells requested up to index %llu, rung up to %llu now, %u times so far); %s",
		 x->q.qpn, status, (unsigned long long)read_raised(x),
		 (unsigned long long)read_rung(x), x->watch.late, remedy_of(x).text);
	return true;
}

/* Takes what a waiting GPU thread has stored in a gdk_watch_word, if anything. *r: as above. */
static bool take_ended(struct gdk_export *x, const struct gdk_word *at, struct report *r)
{
	struct gdk_watch_word *word = (struct gdk_watch_word *)(void *)at->cpu;

	if (!word || !__atomic_load_n(&word->ended, __ATOMIC_RELAXED))
		return false;
	switch (__atomic_exchange_n(&word->ended, 0, __ATOMIC_RELAXED)) {
	case ENOTCONN:
		return count_refused(x, r);
	case EHOSTDOWN:
		return count_late(x, "-EHOSTDOWN", r);
	case ETIMEDOUT: /* a service monitors the QP, or the limit was short */
		return x->q.pub.cpu_proxy && read_rung(x) < read_raised(x) &&
		       count_late(x, "-ETIMEDOUT", r);
	default: /* the caller or the NIC ended the QP */
		return false;
	}
}

static bool take_report(struct gdk_export *x, struct report *r)
{
	return take_ended(x, &x->watch.word, r) || take_ended(x, &x->watch.rq_word, r);
}

void gdk_watch_report(struct gdk_export *x)
{
	struct report r;
	bool any;

	pthread_mutex_lock(&lock);
	any = take_report(x, &r);
	pthread_mutex_unlock(&lock);
	if (any)
		report_log(&r);
}

/* ---- polls ---- */

/* Counts that doorbells were not served. *r: as above. */
static bool count_unserved(struct gdk_export *x, unsigned int ms, struct report *r)
{
	struct gdk_watch *w = &x->watch;

	if (!gdk_is_pow2(++w->unserved))
		return false;
	r->is_error = false;
	snprintf(r->text, sizeof(r->text),
		 "QP 0x%x: no CPU thread has rung its doorbells for %u ms (pending up to index "
		 "%llu, rung up to %llu, %u times so far); %s",
		 x->q.qpn, ms, (unsigned long long)w->raised, (unsigned long long)w->rung,
		 w->unserved, remedy_of(x).text);
	return true;
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
	rung = read_rung(x);
	if (rung >= w->raised || rung != w->rung) {
		w->rung = rung;
		w->idle_polls = rung < w->raised;
		return false;
	}
	if (++w->idle_polls == WAITED_FROM)
		w->waited_ns = gdk_cpu_wait_ns();
	/* The first idle poll is up to POLL_MS after the CPU should have rung. */
	if (w->idle_polls != idle_ms / POLL_MS + 1)
		return false;
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
		if (num < REPORTS_MAX && take_report(x, &reports[num]))
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

/* Bounded, because a signal handler that calls exit() may have the lock. Not by
 * pthread_mutex_clocklock(), which ThreadSanitizer does not know. */
static bool lock_at_exit(void)
{
	const struct timespec ms = { 0, 1000000 };
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		if (!pthread_mutex_trylock(&lock))
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

/* At exit of the program: logs which waits have ended since the last poll. If the library is in a
 * plugin, this runs when the plugin is unloaded, and the list is empty. */
static void report_at_exit(void)
{
	struct report reports[REPORTS_MAX];
	struct gdk_export *x;
	unsigned int num, i;

	do {
		if (!lock_at_exit())
			return;
		num = 0;
		for (x = list; x && num < REPORTS_MAX; x = x->watch.next)
			num += take_report(x, &reports[num]);
		pthread_mutex_unlock(&lock);
		for (i = 0; i < num; i++)
			report_log(&reports[i]);
	} while (num == REPORTS_MAX);
}

static void prepare_process(void)
{
	(void)pthread_atfork(NULL, NULL, after_fork);
	(void)atexit(report_at_exit);
}

/* Starts the thread with all signals blocked, so that the application's own threads handle them.
 * Returns 0 or an errno value. */
static int watcher_start(struct watcher *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	pthread_once(&once, prepare_process);
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

void gdk_watch_bind(const struct gdk_export *x, struct gdk_qp_state *image)
{
	const struct gdk_word *word = image->flags & GDK_QPF_RECV ? &x->watch.rq_word
								  : &x->watch.word;

	if (word->gpu)
		image->watch = (uintptr_t)word->gpu;
}

/* Stores the state of the QP, and the hints that follow from it. */
static void store_state(struct gdk_export *x, enum doca_verbs_qp_state state)
{
	const bool unconnected = !is_connected(state);
	struct gdk_watch_word *rq = (struct gdk_watch_word *)(void *)x->watch.rq_word.cpu;

	atomic_store(&x->watch.state, state);
	pthread_spin_lock(&x->q.proxy.step_lock);
	x->q.unconnected = unconnected;
	gdk_store_hint(&x->q);
	pthread_spin_unlock(&x->q.proxy.step_lock);
	if (rq) /* Relaxed: see struct gdk_watch_word. */
		__atomic_store_n(&rq->hint, unconnected ? GDK_HINT_UNCONNECTED : 0,
				 __ATOMIC_RELAXED);
}

static bool get_word(const struct gdk_export *x, struct gdk_word *word)
{
	if (gdk_word_get(&words, x->q.pub.gpu_dev, x->q.dev, word) != DOCA_SUCCESS)
		return false;
	__atomic_store_n(word->cpu, 0, __ATOMIC_RELAXED);
	return true;
}

static void put_word(struct gdk_word *word)
{
	if (word->page)
		gdk_word_put(&words, word->page, word->cpu);
	*word = (struct gdk_word){ NULL, NULL, NULL };
}

/* Called by a transition, with qp->lock held. */
static void state_changed(struct doca_verbs_qp_t *qp, enum doca_verbs_qp_state state)
{
	struct gdk_export *x = gdk_to_export(qp->exported);

	gdk_watch_report(x);
	store_state(x, state);
	if (!is_connected(state) && atomic_load(&x->watch.in_use))
		enlist(x);
}

void gdk_watch_open(struct gdk_export *x)
{
	if (!get_word(x, &x->watch.word) || (x->rq.cq && !get_word(x, &x->watch.rq_word)))
		gdk_warn("QP 0x%x: exported without a word for waiting GPU threads: while it is "
			 "not connected, or the CPU does not ring, a wait ends with -ETIMEDOUT",
			 x->q.qpn);
	if (x->watch.word.cpu)
		x->q.hint = &((struct gdk_watch_word *)(void *)x->watch.word.cpu)->hint;
	store_state(x, x->q.pub.qp->state);
	x->q.pub.qp->on_state = state_changed;
}

void gdk_watch_start(struct gdk_export *x)
{
	if (x->q.pub.cpu_proxy)
		enlist(x);
}

void gdk_watch_close(struct gdk_export *x)
{
	x->q.pub.qp->on_state = NULL;
	unlist(x);
	gdk_watch_report(x);
	x->q.hint = NULL;
	put_word(&x->watch.word);
	put_word(&x->watch.rq_word);
}

/* Sequentially consistent: state_changed() stores the state and then loads in_use. At least one
 * of the two functions sees the store of the other. */
void gdk_watch_use(struct gdk_export *x)
{
	atomic_store(&x->watch.in_use, true);
	if (needs_polls(x))
		enlist(x);
}
