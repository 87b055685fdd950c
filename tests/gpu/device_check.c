/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What must be true after a launch: each operation took effect exactly once, in
 * its own cell, and nothing else changed.
 */
#include <string.h>

#include "device_host.h"

static uint64_t ops_of(const struct gt_job *job)
{
	return (uint64_t)job->blocks * job->threads * job->iters;
}

int gt_check_status(struct gt_env *env, const struct gt_job *job)
{
	uint32_t i, bad = 0, first = 0, n = job->blocks * job->threads;

	for (i = n; i-- > 0;)
		if (env->status[i]) {
			bad++;
			first = i;
		}
	return bad ? gt_complain("%u of %u threads failed, the first is %u with %d", bad, n, first,
				 env->status[first]) : 0;
}

static bool is_short(const struct gt_job *job, uint64_t k)
{
	enum gt_kind kind = gt_kind(k, job->seed);

	return job->op == GT_MIX && (kind == GT_KIND_P || kind == GT_KIND_LONG);
}

static bool op_writes(const struct gt_job *job, uint64_t k)
{
	if (job->op == GT_MIX)
		return gt_kind(k, job->seed) != GT_KIND_ADD;
	return job->op != GT_SIGNAL && job->op != GT_CAS;
}

static bool op_adds(const struct gt_job *job, uint64_t k)
{
	if (job->op == GT_MIX)
		return gt_kind(k, job->seed) == GT_KIND_ADD;
	return job->op == GT_SIGNAL || job->op == GT_PUT_SIGNAL;
}

static uint8_t byte_of(const struct gt_job *job, uint64_t k, uint32_t i)
{
	return (uint8_t)(gt_word(k, i / 8, job->seed) >> 8 * (i % 8));
}

static int check_dst(const uint8_t *dst, const struct gt_job *job)
{
	uint64_t k, n = ops_of(job), bad = 0, first = 0;
	uint32_t i, len;

	for (k = 0; k < n; k++) {
		len = op_writes(job, k) ? job->size : 0;
		if (is_short(job, k))
			len = 8;
		for (i = 0; i < job->size; i++)
			if (dst[k * job->size + i] != (i < len ? byte_of(job, k, i) : 0))
				break;
		if (i < job->size && !bad++)
			first = k;
	}
	if (bad)
		return gt_complain("%lu of %lu cells are wrong, the first is %lu", bad, n, first);
	for (i = 0; n * job->size + i < GT_PART; i++)
		if (dst[n * job->size + i])
			return gt_complain("a byte %u behind the last cell was written", i);
	return 0;
}

/* The old values of n additions of 1 are 0 to n-1, each once. */
static int check_adds(const uint8_t *image, const struct gt_job *job)
{
	uint64_t k, v, adds = 0, n = ops_of(job), total;
	uint8_t *seen = calloc(1, n + 1);
	int rc = 0;

	E2E_REQUIRE(seen);
	memcpy(&total, image + job->counters, 8);
	for (k = 0; k < n; k++)
		adds += op_adds(job, k);
	for (k = 0; k < n && !rc; k++) {
		memcpy(&v, image + job->old + 8 * k, 8);
		if (!op_adds(job, k))
			rc = v ? gt_complain("old value %lu was written", k) : 0;
		else if (v >= adds || seen[v]++)
			rc = gt_complain("addition %lu saw %lu of %lu, or not alone", k, v, adds);
	}
	free(seen);
	if (!rc && total != adds)
		rc = gt_complain("%lu additions of 1 give %lu", adds, total);
	return rc;
}

static int check_cas(const uint8_t *image, const struct gt_job *job)
{
	uint64_t k, old, now;

	for (k = 0; k < ops_of(job); k++) {
		memcpy(&old, image + job->old + 8 * k, 8);
		memcpy(&now, image + job->counters + 8 * k, 8);
		if (old != k || now != gt_word(k, 0, job->seed))
			return gt_complain("compare-and-swap %lu saw %lu, left %lx", k, old, now);
	}
	return 0;
}

int gt_check_payload(struct gt_env *env, const struct gt_case *c, const struct gt_job *job)
{
	const struct gt_region *r = c->payload_on_gpu ? &env->dev : &env->host;

	if (gt_gpu_copy(env->image, r->gpu, GT_BYTES))
		return gt_complain("payload: copy");
	if (job->op == GT_CAS)
		return check_cas(env->image, job);
	return check_dst(env->image + job->dst, job) || check_adds(env->image, job) ? -1 : 0;
}

static uint32_t slots_of(const struct gt_job *job, uint64_t k)
{
	enum gt_kind kind = gt_kind(k, job->seed);

	if (job->op == GT_MIX)
		return kind == GT_KIND_LOW_PAIR || kind == GT_KIND_LOW_NO_DB ||
		       kind == GT_KIND_LONG ? 2 : 1;
	if (job->op == GT_IMM)
		return k % 3 == 0 ? 2 : 1;
	return job->op == GT_PUT_SIGNAL || job->op == GT_LOW || job->op == GT_GET_MCST ? 2 : 1;
}

uint64_t gt_slots(const struct gt_job *job)
{
	uint64_t k, slots = 0;

	for (k = 0; k < ops_of(job); k++)
		slots += slots_of(job, k);
	return slots;
}

int gt_check_counters(struct gt_qps *qps, const struct gt_case *c, uint64_t slots)
{
	uint64_t reserved = 0, doorbells = 0, records = 0;
	struct gdk_qp_counters n;

	for (uint32_t i = 0; i < qps->num; i++) {
		E2E_REQUIRE(!gdk_verbs_qp_get_counters(qps->qp[i].hl->qp_gverbs, &n));
		if (n.status)
			return gt_complain("QP %u: status %d", i, n.status);
		reserved += n.wqes_reserved;
		doorbells += n.doorbells;
		records += n.dbrec_updates;
	}
	if (reserved != slots)
		return gt_complain("%lu slots were reserved, not %lu", reserved, slots);
	/* a thread that waits for an exclusive QP may ring once more */
	if (!doorbells || doorbells > slots * (c->mode == GDK_EXCLUSIVE ? 2 : 1))
		return gt_complain("%lu doorbells for %lu slots", doorbells, slots);
	if ((records == 0) != (c->handler == E2E_NO_DBR))
		return gt_complain("%lu doorbell records", records);
	return 0;
}
