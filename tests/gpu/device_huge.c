/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Transfers of more than 1 GiB, each of which needs two WQEs. The host writes and checks
 * the payload; the kernel only posts and waits. */
#include <string.h>
#include <sys/mman.h>

#include "device_host.h"

#define HUGE_BYTES (DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE + 12344ull)
#define HUGE_PART  (HUGE_BYTES + 4096 - HUGE_BYTES % 4096)

static int compare(const uint64_t *src, const uint8_t *dst, uint64_t key)
{
	uint64_t i, v;

	for (i = 0; i < HUGE_BYTES / 8; i++) {
		memcpy(&v, dst + 8 * i, 8);
		if (v != src[i])
			return gt_complain("word %lu of %lu is wrong", i, (uint64_t)HUGE_BYTES / 8);
	}
	memcpy(&v, dst + HUGE_BYTES, 8);
	return v ? gt_complain("bytes behind the transfer were written, key %lx", key) : 0;
}

static int run_on(struct gt_env *env, const struct gt_case *c, uint64_t *src, struct ibv_mr *mr)
{
	struct gt_qps qps;
	struct gt_job job;
	int rc;

	gt_qps_open(env, &qps, c);
	gt_qps_connect(env, &qps, gt_good_path);
	rc = gt_prepare(env, c, &qps, &job);
	job.size = HUGE_BYTES;
	job.nic = (uintptr_t)src;
	job.dst = HUGE_PART;
	job.lkey_be = htobe32(mr->lkey);
	job.rkey_be = htobe32(mr->rkey);
	rc = rc || gt_run(env, &qps, &job) || gt_check_status(env, &job) ||
	     compare(src, (uint8_t *)src + HUGE_PART, mr->rkey) || gt_check_counters(&qps, &job, 2);
	gt_qps_close(&qps);
	return rc ? -1 : 0;
}

int gt_run_huge(struct gt_env *env, const struct gt_case *c)
{
	uint64_t *src = mmap(NULL, 2 * HUGE_PART, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	int rc;

	E2E_REQUIRE(src != MAP_FAILED);
	for (uint64_t i = 0; i < HUGE_BYTES / 8; i++)
		src[i] = gt_word(i, 0, c->op);
	E2E_REQUIRE(mr = ibv_reg_mr(env->nic.pd, src, 2 * HUGE_PART, E2E_REMOTE));
	rc = run_on(env, c, src, mr);
	E2E_REQUIRE(!ibv_dereg_mr(mr) && !munmap(src, 2 * HUGE_PART));
	return rc;
}
