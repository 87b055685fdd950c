/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data path of gpunetio_verbs_put_bw on CPU threads. It does the same as the GPU kernel
 * (put_bw_kernel.cu), with the C functions of the device API. A warp of
 * CPU threads has one thread.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common.h"
#include "device/gdk/onesided_dev.h"
#include "put_bw.h"

#define SHARING DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU

struct crew { /* all threads of one run */
	const struct put_bw_job *job;
	pthread_mutex_t lock; /* protects the following members */
	pthread_cond_t changed;
	bool go;
	uint32_t running;
	int status; /* 0, or a negative errno: first thread that failed, or timeout */
};

struct worker {
	struct crew *crew;
	pthread_t thread;
	uint32_t index;
};

static int put_one(const struct put_bw_job *job, uint32_t thread, uint32_t iter,
		   doca_gpu_dev_verbs_ticket_t *ticket)
{
	uint64_t slot = put_bw_slot(&job->shape, thread, iter);
	struct doca_gpu_dev_verbs_addr to = { .addr = job->dst_addr + slot, .key = job->rkey_be };
	struct doca_gpu_dev_verbs_addr from = { .addr = job->src_addr + slot, .key = job->lkey_be };

	put_bw_stamp(&job->shape, job->src + slot, thread, iter);
	return gdk_put(job->qp, to, from, job->shape.size, ticket, SHARING,
		       DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
		       job->warp ? DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
				 : DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD,
		       DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT);
}

static int put_all(const struct put_bw_job *job, uint32_t thread)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < job->shape.iters; i++) {
		rc = put_one(job, thread, i, &ticket);
		if (!rc && ((i + 1) % job->batch == 0 || i + 1 == job->shape.iters))
			rc = gdk_wait(job->qp, ticket, SHARING);
	}
	return rc;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct crew *crew = w->crew;
	int rc;

	pthread_mutex_lock(&crew->lock);
	while (!crew->go)
		pthread_cond_wait(&crew->changed, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
	rc = put_all(crew->job, w->index);
	pthread_mutex_lock(&crew->lock);
	if (rc && !crew->status)
		crew->status = rc;
	crew->running--;
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static double now_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Waits for all threads. After the time limit, or on Ctrl-C, aborts the queue pair, which ends
 * their waits. */
static void wait_crew(struct crew *crew)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += crew->job->timeout_s;
	pthread_mutex_lock(&crew->lock);
	while (crew->running && !ex_interrupted()) {
		struct timespec slice;

		clock_gettime(CLOCK_REALTIME, &slice);
		if (slice.tv_sec > end.tv_sec)
			break;
		slice.tv_sec += 1;
		pthread_cond_timedwait(&crew->changed, &crew->lock, &slice);
	}
	if (crew->running) {
		crew->status = ex_interrupted() ? -EINTR : -ETIMEDOUT;
		crew->job->abort(crew->job->arg);
	}
	pthread_mutex_unlock(&crew->lock);
}

static uint32_t start_crew(struct crew *crew, struct worker *workers)
{
	uint32_t n = 0;

	while (n < crew->job->shape.threads) {
		workers[n] = (struct worker){ .crew = crew, .index = n };
		if (pthread_create(&workers[n].thread, NULL, work, &workers[n]))
			break;
		n++;
	}
	pthread_mutex_lock(&crew->lock);
	crew->running = n;
	crew->status = n == crew->job->shape.threads ? 0 : -EAGAIN;
	crew->go = true;
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	return n;
}

int put_bw_host_run(struct put_bw_job *job)
{
	struct crew crew = { .job = job,
			     .lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER };
	struct worker *workers = calloc(job->shape.threads, sizeof(*workers));
	double start;
	uint32_t n;

	if (!workers)
		return -ENOMEM;
	start = now_s(CLOCK_MONOTONIC);
	n = start_crew(&crew, workers);
	wait_crew(&crew);
	while (n)
		pthread_join(workers[--n].thread, NULL);
	job->seconds = now_s(CLOCK_MONOTONIC) - start;
	free(workers);
	return crew.status;
}
