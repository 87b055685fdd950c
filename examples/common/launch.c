/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the kernel for a number of iterations: starts it, and waits for its end. The wait has a time
 * limit without progress: completed work, or messages of the peer. If it passes, or the peer fails
 * meanwhile, the queue pairs are aborted, which ends all waits of the kernel's threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session.h"

#define NAP_NS	      50000 /* between two polls for the end of the kernel */
#define POLL_S	      0.05  /* between two polls of signals and messages */
#define COUNT_S	      0.5   /* between two reads of the counters of the queue pairs */
#define ABORT_GRACE_S 10    /* time for aborted threads to end */

double ex_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* ---- queue pairs ---- */

/* Calls fn for each queue pair and companion until it fails. */
static int for_each_qp(struct ex_session *s, int (*fn)(struct doca_gpu_verbs_qp *qp, void *arg),
		       void *arg)
{
	int rc = 0;

	for (uint32_t k = 0; !rc && k < s->ep.num_queues; k++) {
		const struct ex_queue *q = &s->ep.queues[k];

		rc = fn(q->qp->qp_gverbs, arg);
		if (!rc && q->companion)
			rc = fn(q->companion->qp_gverbs, arg);
	}
	return rc;
}

static int add_counters(struct doca_gpu_verbs_qp *qp, void *arg)
{
	struct ex_totals *t = arg;
	struct gdk_qp_counters c;

	if (ex_check(gdk_verbs_qp_get_counters(qp, &c), "counters"))
		return -1;
	t->doorbells += c.doorbells;
	t->dbrec_updates += c.dbrec_updates;
	t->work += c.wqes_reserved + c.doorbells + c.completions;
	return 0;
}

static int add_recv_counters(struct doca_gpu_verbs_qp *qp, void *arg)
{
	struct ex_totals *t = arg;
	struct gdk_qp_recv_counters c;

	if (ex_check(gdk_verbs_qp_get_recv_counters(qp, &c), "counters of the receive queue"))
		return -1;
	t->work += c.reserved + c.completions;
	return 0;
}

int ex_count(struct ex_session *s, struct ex_totals *t)
{
	*t = (struct ex_totals){ 0 };
	if (s->opt.receive_queues && for_each_qp(s, add_recv_counters, t))
		return -1;
	return for_each_qp(s, add_counters, t);
}

static int abort_qp(struct doca_gpu_verbs_qp *qp, void *arg)
{
	(void)arg;
	gdk_verbs_qp_abort(qp);
	return 0;
}

/* Prints the error of a queue pair, and returns 1, if it has one. */
static int print_error(struct doca_gpu_verbs_qp *qp, void *arg)
{
	struct gdk_qp_error e = { 0 };
	char where[64] = "";

	(void)arg;
	if (gdk_verbs_qp_get_error(qp, &e) != DOCA_SUCCESS || !e.has_cqe)
		return 0;
	if (e.has_remote)
		snprintf(where, sizeof(where), ", to address 0x%" PRIx64 " by key 0x%x",
			 e.remote_addr, e.rkey);
	ex_error("%s %u of QP 0x%x%s: %s (syndrome 0x%x, vendor 0x%x); usual cause: %s",
		 e.is_receive ? "receive" : "WQE", e.wqe_counter, e.qpn, where,
		 gdk_syndrome_text(e.syndrome), e.syndrome, e.vendor_err_synd,
		 gdk_syndrome_cause(e.syndrome));
	return 1;
}

/* ---- kernel ---- */

int ex_launch(struct ex_session *s, uint32_t iters)
{
	size_t threads = (size_t)s->job.num_queues * s->job.threads;

	memset(s->status.cpu, 0xff, threads * sizeof(int)); /* -1: the thread did not run */
	s->job.iters = iters;
	return s->grid->launch(&s->job) ? -1 : 0;
}

static const char *failure_text(int rc)
{
	switch (rc) {
	case -ENOTCONN:
		return "the queue pair was used before it was connected";
	case -EHOSTDOWN:
		return "no CPU thread rings the doorbells of the queue pair";
	case -EBADMSG:
		return "an operation was not executed, or not as posted";
	case -1:
		return "a thread did not run";
	default:
		return strerror(-rc);
	}
}

/* Returns 0 if all threads succeeded. */
static int check_status(struct ex_session *s)
{
	const int *status = s->status.cpu;
	struct ex_msg m;

	for (uint32_t t = 0; t < s->job.num_queues * s->job.threads; t++) {
		if (!status[t])
			continue;
		ex_error("thread %u of queue pair %u failed: %s", t % s->job.threads,
			 t / s->job.threads, failure_text(status[t]));
		for_each_qp(s, print_error, NULL);
		if (!s->has_pending)
			(void)ex_msg_poll(&s->conn, &m); /* prints if the peer has ended */
		return -1;
	}
	return 0;
}

int ex_end_kernel(struct ex_session *s)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	double end = ex_now_s() + ABORT_GRACE_S;

	for_each_qp(s, abort_qp, NULL);
	while (!s->grid->done() && ex_now_s() < end)
		nanosleep(&nap, NULL);
	if (!s->grid->done()) {
		s->hung = true;
		ex_error("the kernel did not end after the abort");
	}
	return -1;
}

/* Polls for signals and for messages of the peer, which can arrive while the kernel runs. */
static int poll_peer(struct ex_session *s, bool *progress)
{
	if (ex_waits_end())
		return ex_error("interrupted");
	while (!s->has_pending) {
		int rc = ex_msg_poll(&s->conn, &s->pending);

		if (rc <= 0)
			return rc;
		*progress = true;
		if (s->pending.type == EX_MSG_STOP)
			s->stop = true;
		else if (s->pending.type != EX_MSG_PROGRESS)
			s->has_pending = true;
	}
	return 0;
}

static int count_progress(struct ex_session *s, uint64_t *work, bool *progress)
{
	struct ex_totals t;

	if (ex_count(s, &t))
		return -1;
	*progress |= t.work != *work;
	*work = t.work;
	return 0;
}

static int await_end(struct ex_session *s, void (*tick)(struct ex_session *s))
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	double now = ex_now_s(), alive = now, next = now + POLL_S, count = now + COUNT_S;
	uint64_t work = 0;
	int rc;

	while (!(rc = s->grid->done())) {
		bool progress = false;

		nanosleep(&nap, NULL);
		now = ex_now_s();
		if (now < next)
			continue;
		next = now + POLL_S;
		if (poll_peer(s, &progress))
			return -1;
		if (now >= count) {
			count = now + COUNT_S;
			if (count_progress(s, &work, &progress))
				return -1;
			tick(s);
		}
		if (progress)
			alive = now;
		if (now - alive > s->opt.timeout_s)
			return ex_error("timed out: no progress for %u s (-w)", s->opt.timeout_s);
	}
	return rc < 0 ? -1 : 0;
}

int ex_await(struct ex_session *s, void (*tick)(struct ex_session *s))
{
	if (await_end(s, tick))
		return ex_end_kernel(s);
	if (check_status(s))
		return -1;
	s->job.first += s->job.iters;
	return 0;
}
