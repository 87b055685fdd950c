/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Functions that run one case of the GPU test: operations, functions that need no queue,
 * resets in the middle of a lap, errors, aborts. */
#include <string.h>

#include "device_host.h"

/* maximum time, in the fastest try, from the host's store of the abort word to the return
 * of the last thread */
#define ABORT_LIMIT_NS	       1000000
#define ABORT_TRIES	       5
#define RESETS		       3
#define NO_SUCH_QPN	       0xfffff0 /* QP number of no queue pair */
#define SYNDROME_REMOTE_ACCESS 0x13
#define SYNDROME_RETRIES       0x15
/* maximum time (struct bound) from the end of the first wait to the end of the kernel; CPU threads
 * wait for each other */
#define UNUSABLE_LATE_NS (GT_ON_GPU ? 2000000000ull : 20000000000ull)
/* longer than the library needs, also on a busy machine, to notice that no CPU thread rings */
#define UNSERVED_LIMIT_NS 1500000000u

static int run_once(struct gt_env *env, const struct gt_case *c, struct gt_qps *qps)
{
	struct gt_job job;

	return gt_prepare(env, c, qps, &job) || gt_run(env, qps, &job) ||
			       gt_check_status(env, &job) || gt_check_payload(env, c, &job) ||
			       gt_check_counters(qps, &job, gt_slots(&job)) || gt_check_quiet(&job)
		       ? -1
		       : 0;
}

int gt_run_ops(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	int rc;

	gt_qps_open(env, &qps, c);
	gt_qps_connect(env, &qps, gt_good_path);
	rc = run_once(env, c, &qps);
	gt_qps_close(&qps);
	return rc;
}

/* ---- functions that need no queue ---- */

static int check_tools(struct gt_env *env, const struct gt_job *job)
{
	const uint64_t n = (uint64_t)job->blocks * job->threads;
	struct gt_tools s;

	if (gt_gpu_copy(&s, (uint8_t *)env->host.gpu + job->counters, sizeof(s)))
		return gt_complain("copying the payload from the GPU failed");
	if (s.sum != 5 * n || s.sum32 != 3 * n || s.locked != n || s.lock)
		return gt_complain(
			"%lu threads: sums %lu and %u, %u increments under the lock, lock word %d",
			n, s.sum, s.sum32, s.locked, s.lock);
	if (s.most != n - 1 || s.most32 != n - 1 || s.least_negated || s.ready != n)
		return gt_complain("%lu threads: maxima %lu, %u, %ld, index %lu", n, s.most,
				   s.most32, s.least_negated, s.ready);
	return 0;
}

int gt_run_tools(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	struct gt_job job;
	int rc;

	gt_qps_open(env, &qps, c);
	rc = gt_prepare(env, c, &qps, &job) || gt_run(env, &qps, &job) ||
			     gt_check_status(env, &job) || check_tools(env, &job)
		     ? -1
		     : 0;
	gt_qps_close(&qps);
	return rc;
}

/* ---- resets ---- */

static void reset(struct gt_qps *qps)
{
	doca_verbs_qp_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RST));
	for (uint32_t i = 0; i < qps->num; i++) {
		e2e_proxy_end(&qps->qp[i]);
		E2E_REQUIRE(!doca_verbs_qp_modify(qps->qp[i].hl->qp, attr,
						  DOCA_VERBS_QP_ATTR_NEXT_STATE));
		E2E_REQUIRE(!doca_gpu_verbs_reset_tracking_and_memory(qps->qp[i].hl->qp_gverbs));
	}
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
}

/* Most runs use a number of slots that is not a multiple of the depth, so that the next
 * reset finds the ring in the middle of a lap. */
int gt_run_reset(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	int rc = 0;

	gt_qps_open(env, &qps, c);
	for (int i = 0; i <= RESETS && !rc; i++) {
		if (i)
			reset(&qps);
		gt_qps_connect(env, &qps, gt_good_path);
		rc = run_once(env, c, &qps);
	}
	gt_qps_close(&qps);
	return rc;
}

/* ---- errors and aborts ---- */

int gt_all_returned(struct gt_env *env, const struct gt_job *job, int expect)
{
	for (uint32_t i = 0; i < job->blocks * job->threads; i++)
		if (env->status[i] != expect)
			return gt_complain("thread %u returned %d (expected %d)", i, env->status[i],
					   expect);
	return 0;
}

static int check_error(struct gt_qps *qps, int syndrome, int wqe)
{
	struct doca_gpu_verbs_qp_error_info info;
	struct gdk_qp_counters n;

	E2E_REQUIRE(!doca_gpu_verbs_query_last_error(qps->qp[0].hl->qp_gverbs, &info));
	E2E_REQUIRE(!gdk_verbs_qp_get_counters(qps->qp[0].hl->qp_gverbs, &n));
	if (!info.has_error || info.syndrome != syndrome || info.wqe_counter != wqe)
		return gt_complain("the host reads error %d, syndrome 0x%x, WQE %d", info.has_error,
				   info.syndrome, info.wqe_counter);
	if (n.status >= 0 || n.error_wqe != (uint64_t)wqe)
		return gt_complain("the host reads status %d of WQE %lu", n.status, n.error_wqe);
	return 0;
}

/* All threads wait on QP 0, for WQE 1 or for a free slot, and must return -EIO. wqe:
 * the WQE that the host must report as failed. */
static int run_to_error(struct gt_env *env, const struct gt_case *c, struct gt_qps *qps,
			int syndrome, int wqe)
{
	struct gt_job job;
	int rc = gt_prepare(env, c, qps, &job);

	job.nqps = 1;
	return rc || gt_run(env, qps, &job) || gt_all_returned(env, &job, -EIO) ||
			       check_error(qps, syndrome, wqe)
		       ? -1
		       : 0;
}

/* WQE 0 is good; WQE 1 has an rkey that the peer does not know. */
int gt_run_bad_rkey(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	int rc;

	gt_qps_open(env, &qps, c);
	gt_connect_to(env, &qps.qp[0], qps.qp[1].qpn, gt_good_path);
	gt_connect_to(env, &qps.qp[1], qps.qp[0].qpn, gt_good_path);
	rc = run_to_error(env, c, &qps, SYNDROME_REMOTE_ACCESS, 1);
	gt_qps_close(&qps);
	return rc;
}

/* The peer does not exist: no packet is acknowledged, and the retries run out. */
int gt_run_no_peer(struct gt_env *env, const struct gt_case *c)
{
	const struct e2e_path path = { .ack_timeout = 10, .retry_cnt = 1 };
	struct gt_qps qps;
	int rc;

	gt_qps_open(env, &qps, c);
	gt_connect_to(env, &qps.qp[0], NO_SUCH_QPN, path);
	rc = run_to_error(env, c, &qps, SYNDROME_RETRIES, 0);
	gt_qps_close(&qps);
	return rc;
}

/* ---- queue pairs that cannot complete work ---- */

/* The waits of all threads must return `expect`, none earlier than least_ns. */
static int run_to_status(struct gt_env *env, const struct gt_case *c, struct gt_qps *qps,
			 int expect, uint64_t limit_ns, uint64_t least_ns)
{
	struct doca_gpu_verbs_qp *qp = qps->qp[0].hl->qp_gverbs;
	struct gdk_qp_counters n;
	struct gt_job job;
	struct bound b;
	uint64_t ns;

	E2E_REQUIRE(!gdk_verbs_qp_set_wait_limit(qp, limit_ns));
	if (gt_prepare(env, c, qps, &job))
		return -1;
	b = bound_begin(0, GT_ON_GPU);
	ns = e2e_now_ns();
	if (gt_run(env, qps, &job) || gt_all_returned(env, &job, expect))
		return -1;
	ns = e2e_now_ns() - ns;
	printf("      %u threads ended after %lu us\n", c->blocks * c->threads, ns / 1000);
	if (ns < least_ns || bound_over(&b, least_ns + UNUSABLE_LATE_NS))
		return gt_complain("the waits ended after %lu ns", ns);
	E2E_REQUIRE(!gdk_verbs_qp_get_counters(qp, &n));
	return n.status == expect ? 0 : gt_complain("the host reads status %d", n.status);
}

/* The QP is never connected, and its waits have no limit. */
int gt_run_unconnected(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	int rc;

	gt_qps_open(env, &qps, c);
	rc = run_to_status(env, c, &qps, -ENOTCONN, 0, 1000000);
	gt_qps_close(&qps);
	return rc;
}

/* The QP is connected, but no CPU thread rings its doorbells. */
int gt_run_unserved(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	int rc;

	gt_qps_open(env, &qps, c);
	gt_qps_connect(env, &qps, gt_good_path);
	e2e_proxy_end(&qps.qp[0]);
	rc = run_to_status(env, c, &qps, -EHOSTDOWN, UNSERVED_LIMIT_NS, UNSERVED_LIMIT_NS);
	gt_qps_close(&qps);
	return rc;
}

static uint32_t count_ended(struct gt_env *env, uint32_t threads)
{
	uint32_t i, n = 0;

	for (i = 0; i < threads; i++)
		n += __atomic_load_n(&env->status[i], __ATOMIC_ACQUIRE) != GT_RUNNING;
	return n;
}

/* Measures the time from the store of the abort word to the return of the last thread,
 * both observed by this thread. */
static int time_abort(struct gt_env *env, struct gt_qps *qps, const struct gt_job *job,
		      uint64_t *ns)
{
	const uint32_t threads = job->blocks * job->threads;
	const struct timespec settle = { 0, 20000000 };
	uint64_t start, now;
	uint32_t ended;

	nanosleep(&settle, NULL);
	if (count_ended(env, threads))
		return gt_complain("a thread returned before the abort");
	start = e2e_now_ns();
	E2E_REQUIRE(!gdk_verbs_qp_abort(qps->qp[0].hl->qp_gverbs));
	do {
		ended = count_ended(env, threads);
		now = e2e_now_ns();
	} while (ended < threads && now - start < GT_BOUND_S * 1000000000ull);
	*ns = now - start;
	return gt_wait(qps) || gt_all_returned(env, job, -ECANCELED) ? -1 : 0;
}

/* Opens new queue pairs for each try. */
static int abort_once(struct gt_env *env, const struct gt_case *c, uint64_t *ns)
{
	struct gt_qps qps;
	struct gt_job job;
	int rc;

	gt_qps_open(env, &qps, c);
	gt_qps_connect(env, &qps, gt_good_path);
	rc = gt_prepare(env, c, &qps, &job) || gt_launch(env, &job);
	if (!rc)
		rc = time_abort(env, &qps, &job, ns);
	gt_qps_close(&qps);
	return rc ? -1 : 0;
}

int gt_run_abort(struct gt_env *env, const struct gt_case *c)
{
	uint64_t ns, best = UINT64_MAX, worst = 0;

	for (int i = 0; i < ABORT_TRIES; i++) {
		if (abort_once(env, c, &ns))
			return -1;
		best = ns < best ? ns : best;
		worst = ns > worst ? ns : worst;
	}
	printf("      %u threads ended %lu to %lu ns after the store of the abort word\n",
	       c->blocks * c->threads, best, worst);
	/* Use the best try, because the host's scheduler may delay any one of them. */
	return best > ABORT_LIMIT_NS ? gt_complain("the fastest abort took %lu ns", best) : 0;
}
