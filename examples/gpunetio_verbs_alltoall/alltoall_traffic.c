/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The exchange of blocks by one rank: a queue pair for each other rank, launches of the kernel
 * until all threads have done all iterations, and the reasons if they do not.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alltoall_rank.h"

#define WAIT_NS	   50000000ull	/* a launch ends if a thread waits this long for its peer */
#define LAUNCH_NS  250000000ull /* and at the first end of an iteration after this time */
#define GRACE_S	   5		/* more time for a launch than its kernel needs */
#define STALL_S	   1		/* without progress, the states of the queue pairs are queried */
#define WARMUP_MAX 100

struct traffic {
	const struct a2a_options *opt;
	const struct a2a_world *w;
	struct ex_endpoint ep;
	const struct ex_grid_ops *grid;
	struct ex_job job;   /* its members are addresses for threads */
	struct a2a_run *run; /* the same memory for the CPU */
	uint32_t *peer;	     /* rank of the peer of each queue pair */
	struct a2a_thread *threads;
	int *status;
	void *memory; /* of all of these */
	size_t num_threads;
	uint64_t progress; /* iterations of all threads together */
	double progress_at;
};

static void must(const struct traffic *t, int rc, const char *what)
{
	if (rc)
		a2a_abort(t->w, "%s failed", what);
}

/* ---- set up ---- */

static size_t take(size_t *at, size_t len)
{
	size_t begin = *at;

	*at += (len + 63) / 64 * 64;
	return begin;
}

/* One allocation of memory that CPU and GPU access has all that threads read and write, except the
 * payload. */
static void alloc_shared(struct traffic *t)
{
	const uint32_t n = t->ep.num_queues;
	size_t len = 0, queues = take(&len, n * sizeof(struct ex_dev_queue));
	size_t run = take(&len, sizeof(*t->run)), peer = take(&len, n * sizeof(*t->peer));
	size_t threads = take(&len, t->num_threads * sizeof(*t->threads));
	size_t status = take(&len, t->num_threads * sizeof(*t->status));
	void *gpu, *cpu;

	must(t,
	     ex_check(doca_gpu_mem_alloc(t->ep.gpu, len, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &gpu,
					 &cpu),
		      "doca_gpu_mem_alloc"),
	     "the allocation of memory");
	memset(cpu, 0, len);
	t->memory = gpu;
	t->run = (void *)((char *)cpu + run);
	t->peer = (void *)((char *)cpu + peer);
	t->threads = (void *)((char *)cpu + threads);
	t->status = (void *)((char *)cpu + status);
	t->run->peer = (void *)((char *)gpu + peer);
	t->run->threads = (void *)((char *)gpu + threads);
	t->job.arg = (char *)gpu + run;
	t->job.status = (void *)((char *)gpu + status);
	t->job.queues = (void *)((char *)gpu + queues);
}

/* The flags must be 0 before a peer can add to them. */
static void clear_payload(struct traffic *t)
{
	const struct ex_payload *pl = &t->ep.payload;
	void *zeroes;

	if (pl->cpu_ptr) {
		memset(pl->cpu_ptr, 0, pl->len);
		return;
	}
	zeroes = calloc(1, pl->len);
	if (!zeroes)
		a2a_abort(t->w, "out of memory");
	must(t, t->grid->copy(pl->gpu_ptr, zeroes, pl->len), "clearing the GPU memory");
	free(zeroes);
}

/* Rank r sends to rank s the data of its queue pair for s. A rank has none for itself. */
static void connect_all(struct traffic *t)
{
	const struct a2a_world *w = t->w;
	struct ex_peer *to = calloc((size_t)w->ranks, sizeof(*to));
	struct ex_peer *from = calloc((size_t)w->ranks, sizeof(*from));
	struct ex_dev_queue *queues = calloc(t->ep.num_queues, sizeof(*queues));

	if (!to || !from || !queues)
		a2a_abort(w, "out of memory");
	for (uint32_t q = 0; q < t->ep.num_queues; q++)
		ex_queue_local(&t->ep, q, &to[t->peer[q]]);
	a2a_exchange(w, to, from, sizeof(*to));
	for (uint32_t q = 0; q < t->ep.num_queues; q++)
		if (ex_queue_connect(&t->ep, q, &from[t->peer[q]]) ||
		    ex_queue_device(&t->ep, q, &from[t->peer[q]], &queues[q]))
			a2a_abort(w, "cannot connect the queue pair to rank %u", t->peer[q]);
	must(t, t->grid->copy(t->job.queues, queues, t->ep.num_queues * sizeof(*queues)),
	     "a copy to the GPU");
	free(to);
	free(from);
	free(queues);
	a2a_barrier(w, "to connect the queue pairs");
}

static void open_all(struct traffic *t)
{
	struct ex_options ex = t->opt->ex;
	uint32_t total = ex.iters + t->job.iters;

	ex.queues = (uint32_t)t->w->ranks - 1;
	ex.companions = t->opt->counter;
	t->grid = ex_grid_get(ex.gpu);
	if (!t->grid || t->grid->open(ex.gpu) || ex_endpoint_open(&t->ep, &ex) ||
	    ex_areas_alloc(&t->ep, A2A_SLOTS * a2a_stride(ex.size), 2 * ex.threads, true,
			   ex.payload_gpu))
		a2a_abort(t->w, "cannot use GPU %s with RDMA device %s", ex.gpu,
			  ex.device ? ex.device : "(none)");
	t->num_threads = (size_t)t->ep.num_queues * ex.threads;
	alloc_shared(t);
	clear_payload(t);
	for (uint32_t q = 0; q < t->ep.num_queues; q++)
		t->peer[q] = q + (q >= (uint32_t)t->w->rank);
	t->run->rank = (uint32_t)t->w->rank;
	t->run->check = t->opt->check;
	t->run->last = total - 1;
	t->run->bad_iter = UINT64_MAX;
	t->run->wait_ns = WAIT_NS;
	t->run->launch_ns = LAUNCH_NS;
	t->job.num_queues = t->ep.num_queues;
	t->job.blocks = 1;
	t->job.threads = ex.threads;
	t->job.size = ex.size;
	t->job.window = A2A_SLOTS;
	t->job.batch = 1;
	t->job.client = true;
	connect_all(t);
}

static void close_all(struct traffic *t)
{
	ex_check(doca_gpu_mem_free(t->ep.gpu, t->memory), "doca_gpu_mem_free");
	t->grid->close();
	ex_endpoint_close(&t->ep);
}

/* ---- failures ---- */

/* Ends the job if a queue pair has failed, and names its peer. */
static void check_queues(const struct traffic *t)
{
	for (uint32_t q = 0; q < t->ep.num_queues; q++) {
		struct gdk_qp_error e = { 0 };

		if (gdk_verbs_qp_get_error(t->ep.queues[q].qp->qp_gverbs, &e) != DOCA_SUCCESS ||
		    !e.has_error)
			continue;
		a2a_abort(t->w,
			  "the queue pair to rank %u failed: %s (syndrome 0x%x, vendor 0x%x); "
			  "usual cause: %s",
			  t->peer[q], e.has_cqe ? gdk_syndrome_text(e.syndrome) : "no error CQE",
			  e.syndrome, e.vendor_err_synd,
			  e.has_cqe ? gdk_syndrome_cause(e.syndrome) : "unknown");
	}
}

/* Ends the job because there was no progress. Names the ranks whose pieces are missing. */
static void time_out(const struct traffic *t)
{
	char text[256] = "";
	size_t at = 0;

	for (uint32_t q = 0; q < t->ep.num_queues && at < sizeof(text); q++) {
		const struct a2a_thread *of = &t->threads[(size_t)q * t->job.threads];
		uint64_t least = UINT64_MAX;
		uint32_t waits = 0;

		for (uint32_t i = 0; i < t->job.threads; i++) {
			waits += of[i].step == A2A_POSTED;
			least = of[i].done < least ? of[i].done : least;
		}
		if (waits)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%s%u (after iteration %llu)", at ? ", " : "",
					       t->peer[q], (unsigned long long)least);
	}
	a2a_abort(t->w, "no progress for %u s (-w): nothing arrives from rank %s", t->w->timeout_s,
		  at ? text : "any");
}

static const char *failure_text(int rc)
{
	return rc == -EHOSTDOWN	 ? "no CPU thread rings the doorbells"
	       : rc == -ENOTCONN ? "the queue pair is not connected"
	       : rc == -1	 ? "the thread did not run"
				 : strerror(-rc);
}

/* ---- launches ---- */

/* The kernel ends after LAUNCH_NS and WAIT_NS, unless the GPU is gone or a thread waits for a
 * completion that never comes. An abort of the queue pairs ends that wait. */
static void wait_kernel(struct traffic *t)
{
	const struct timespec nap = { 0, 100000 };
	double limit = a2a_now() + t->w->timeout_s + GRACE_S;
	bool aborted = false;
	int done;

	while (!(done = t->grid->done())) {
		nanosleep(&nap, NULL);
		if (a2a_now() < limit)
			continue;
		if (aborted)
			a2a_abort(t->w, "the kernel does not end");
		check_queues(t);
		for (uint32_t q = 0; q < t->ep.num_queues; q++)
			gdk_verbs_qp_abort(t->ep.queues[q].qp->qp_gverbs);
		aborted = true;
		limit = a2a_now() + GRACE_S;
	}
	if (done < 0)
		a2a_abort(t->w, "the kernel failed");
	if (aborted)
		a2a_abort(t->w, "the puts did not complete within %u s (-w)", t->w->timeout_s);
}

/* Returns whether all threads have ended. Ends the job if one failed. */
static bool all_ended(const struct traffic *t)
{
	bool ended = true;

	for (size_t i = 0; i < t->num_threads; i++) {
		int rc = t->status[i];

		if (rc == -EAGAIN)
			ended = false;
		if (!rc || rc == -EAGAIN)
			continue;
		check_queues(t);
		a2a_abort(t->w, "thread %zu of the queue pair to rank %u failed: %s",
			  i % t->job.threads, t->peer[i / t->job.threads], failure_text(rc));
	}
	return ended;
}

static void watch_progress(struct traffic *t)
{
	double now = a2a_now();
	uint64_t progress = 0;

	for (size_t i = 0; i < t->num_threads; i++)
		progress += 4 * t->threads[i].done + t->threads[i].step;
	if (progress != t->progress) {
		t->progress = progress;
		t->progress_at = now;
		return;
	}
	if (now - t->progress_at > STALL_S)
		check_queues(t);
	if (now - t->progress_at > t->w->timeout_s)
		time_out(t);
}

/* Runs iterations first to first + iters - 1. Returns the time that it took. */
static double run_iterations(struct traffic *t, uint64_t first, uint32_t iters)
{
	double begin = a2a_now();

	t->job.first = first;
	t->job.iters = iters;
	t->progress_at = begin;
	do {
		for (size_t i = 0; i < t->num_threads; i++)
			t->status[i] = -1;
		if (t->grid->launch(&t->job))
			a2a_abort(t->w, "cannot launch the kernel");
		wait_kernel(t);
		watch_progress(t);
		if (ex_interrupted())
			a2a_abort(t->w, "interrupted by the launcher or by Ctrl-C");
	} while (!all_ended(t));
	return a2a_now() - begin;
}

/* ---- planted faults ---- */

static void fault(const struct traffic *t, uint32_t warmup)
{
	const enum a2a_fault kind = t->opt->fault;

	/* The other ranks start when the killed one is dead, so that their puts to it fail. If it
	 * still answered one, the next put would wait for its data. */
	if (kind == A2A_FAULT_KILL && t->opt->fault_rank != (uint32_t)t->w->rank)
		nanosleep(&(struct timespec){ 1, 0 }, NULL);
	if (kind == A2A_FAULT_NONE || t->opt->fault_rank != (uint32_t)t->w->rank)
		return;
	if (kind == A2A_FAULT_WRONG)
		t->run->bad_iter = warmup + t->opt->ex.iters / 2;
	if (kind == A2A_FAULT_KILL)
		raise(SIGKILL);
	while (kind == A2A_FAULT_HANG && !ex_interrupted())
		nanosleep(&(struct timespec){ 1, 0 }, NULL);
}

/* ---- result ---- */

static const char *reason_of(const struct gdk_handler_report *r)
{
	for (unsigned int i = 0; i < r->num_candidates; i++)
		if (r->candidates[i].usable && r->candidates[i].handler == r->chosen)
			return r->candidates[i].reason;
	return "";
}

static void count(struct traffic *t, struct doca_gpu_verbs_qp_hl *qp, struct a2a_result *r,
		  int sign)
{
	struct gdk_qp_counters c = { 0 };

	if (!qp)
		return;
	must(t, ex_check(gdk_verbs_qp_get_counters(qp->qp_gverbs, &c), "counters"), "a query");
	r->doorbells += (uint64_t)sign * c.doorbells;
	r->dbrec_updates += (uint64_t)sign * c.dbrec_updates;
}

/* Adds the counters of all queue pairs, or with sign -1 subtracts them. */
static void count_all(struct traffic *t, struct a2a_result *r, int sign)
{
	for (uint32_t q = 0; q < t->ep.num_queues; q++) {
		count(t, t->ep.queues[q].qp, r, sign);
		count(t, t->ep.queues[q].companion, r, sign);
	}
}

static void describe(struct traffic *t, struct a2a_result *r)
{
	const bool ethernet = t->ep.port.link_layer == IBV_LINK_LAYER_ETHERNET;
	struct gdk_handler_report h;

	must(t,
	     ex_check(gdk_verbs_qp_get_handler_report(t->ep.queues[0].qp->qp_gverbs, &h), "report"),
	     "a query");
	snprintf(r->host, sizeof(r->host), "%s", t->w->host);
	snprintf(r->gpu, sizeof(r->gpu), "%s", t->opt->ex.gpu);
	snprintf(r->device, sizeof(r->device), "%s", ibv_get_device_name(t->ep.ctx->device));
	snprintf(r->link_layer, sizeof(r->link_layer), "%s", ethernet ? "Ethernet" : "InfiniBand");
	snprintf(r->requested, sizeof(r->requested), "%s", gdk_handler_name(h.asked));
	snprintf(r->handler, sizeof(r->handler), "%s", gdk_handler_name(h.chosen));
	snprintf(r->reason, sizeof(r->reason), "%s", reason_of(&h));
	r->mtu = 128u << t->ep.port.active_mtu;
}

static void find_wrong(const struct traffic *t, struct a2a_result *r)
{
	for (size_t i = 0; i < t->num_threads; i++) {
		const struct a2a_thread *th = &t->threads[i];

		if (th->wrong && !r->wrong)
			snprintf(r->text, sizeof(r->text),
				 "byte %u of the block from rank %u in iteration %llu is 0x%02x, "
				 "expected 0x%02x",
				 th->wrong_at, t->peer[i / t->job.threads],
				 (unsigned long long)th->wrong_iter, th->got, th->expected);
		r->wrong += th->wrong;
	}
}

void a2a_traffic(const struct a2a_options *opt, const struct a2a_world *w, struct a2a_result *r)
{
	struct traffic t = { .opt = opt, .w = w };
	uint32_t warmup = opt->no_warmup ? 0 : opt->ex.iters / 10 + 1;

	warmup = warmup > WARMUP_MAX ? WARMUP_MAX : warmup;
	t.job.iters = warmup;
	open_all(&t);
	describe(&t, r);
	if (warmup)
		run_iterations(&t, 0, warmup);
	count_all(&t, r, -1);
	a2a_barrier(w, "to start the measurement");
	fault(&t, warmup);
	r->seconds = run_iterations(&t, warmup, opt->ex.iters);
	r->messages = (uint64_t)t.ep.num_queues * opt->ex.iters;
	count_all(&t, r, 1);
	find_wrong(&t, r);
	/* A queue pair must stay until its peer has got the last acknowledgement. */
	a2a_barrier(w, "to close the queue pairs");
	close_all(&t);
}
