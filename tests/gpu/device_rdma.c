/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Runs operations of the RDMA library: writes the object whose connections are the QPs of the job,
 * and checks that each commit was counted once. */
#define GDK_BOTH_SHAPES /* the RDMA library has the SDK's interface */
#include <string.h>

#include "device_host.h"
#include "gdk_rdma_send_dev.h"

static struct {
	struct doca_gpu_dev_rdma rdma;
	struct gdk_rdma_conn conn[GT_QPS];
} object;
_Static_assert(sizeof(object) <= GT_RDMA_WORDS - GT_RDMA, "the words are behind the object");
_Static_assert(GT_RDMA_WORDS + sizeof(struct gt_rdma) <= GT_COUNTERS, "part of the payload");

static int write_object(const struct gt_job *job)
{
	uint8_t *at = job->gpu + job->counters + GT_RDMA;

	memset(&object, 0, sizeof(object));
	object.rdma.conns = (uintptr_t)(at + sizeof(object.rdma));
	object.rdma.num = job->nqps;
	for (uint32_t i = 0; i < job->nqps; i++)
		object.conn[i].qp = (uintptr_t)job->qp[i];
	return gt_gpu_copy(at, &object, sizeof(object))
		       ? gt_complain("copying the RDMA object to the GPU failed")
		       : 0;
}

static int check_commits(const struct gt_job *job)
{
	struct gt_rdma w;

	if (gt_gpu_copy(&w, job->gpu + job->counters + GT_RDMA_WORDS, sizeof(w)))
		return gt_complain("copying the payload from the GPU failed");
	if (!w.made || w.made != w.counted)
		return gt_complain("%lu commits were made, %lu were counted", w.made, w.counted);
	return 0;
}

int gt_run_rdma(struct gt_env *env, const struct gt_case *c)
{
	struct gt_qps qps;
	struct gt_job job;
	int rc;

	E2E_REQUIRE(c->nqps <= GT_RDMA_CONNS && c->blocks <= GT_RDMA_BLOCKS && c->size <= 24);
	gt_qps_open(env, &qps, c);
	gt_qps_connect(env, &qps, gt_good_path);
	rc = gt_prepare(env, c, &qps, &job) || write_object(&job) || gt_run(env, &qps, &job) ||
	     gt_check_status(env, &job) || gt_check_payload(env, c, &job) ||
	     gt_check_counters(&qps, &job, gt_slots(&job)) || check_commits(&job);
	gt_qps_close(&qps);
	return rc ? -1 : 0;
}
