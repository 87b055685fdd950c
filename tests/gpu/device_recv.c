/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks that each message of GT_RECV was received once, and the counters of receive queues. */
#include "device_host.h"

static int check_messages(struct gt_env *env, const struct gt_case *c, const struct gt_job *job)
{
	const struct gt_region *r = c->payload_on_gpu ? &env->dev : &env->host;
	const uint64_t *times = (const uint64_t *)(const void *)(env->image + job->counters);
	const uint32_t num = job->blocks * job->threads * job->iters;

	E2E_REQUIRE(num <= GT_COUNTERS / 8);
	if (gt_gpu_copy(env->image, r->gpu, GT_BYTES))
		return gt_complain("copying the payload from the GPU failed");
	for (uint32_t k = 0; k < num; k++)
		if (times[k] != 1)
			return gt_complain("message %u of %u was received %lu times", k, num,
					   times[k]);
	return 0;
}

static int check_receives(struct gt_qps *qps, const struct gt_job *job)
{
	const uint64_t num = (uint64_t)job->blocks * job->threads * job->iters / qps->num;
	struct gdk_qp_recv_counters n;

	for (uint32_t i = 0; i < qps->num; i++) {
		E2E_REQUIRE(!gdk_verbs_qp_get_recv_counters(qps->qp[i].hl->qp_gverbs, &n));
		if (n.status || n.reserved != num || n.posted != num || n.completions != num)
			return gt_complain("QP %u: status %d, %lu receives reserved, %lu posted, "
					   "%lu complete (expected %lu)",
					   i, n.status, n.reserved, n.posted, n.completions, num);
	}
	return 0;
}

int gt_run_recv(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	struct gt_job job;
	int rc;

	gt_qps_open(env, &qps, c);
	gt_qps_connect(env, &qps, gt_good_path);
	rc = gt_prepare(env, c, &qps, &job) || gt_run(env, &qps, &job) ||
	     gt_check_status(env, &job) || check_messages(env, c, &job) ||
	     check_receives(&qps, &job);
	gt_qps_close(&qps);
	return rc ? -1 : 0;
}
