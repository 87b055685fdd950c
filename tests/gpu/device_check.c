/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks after a launch: every thread returned the expected status, each operation took
 * effect exactly once and in its own cell, and the other bytes of dst are unchanged.
 */
#include <string.h>

#include "device_host.h"

#ifndef GT_WARP
#define GT_WARP 32 /* lanes per warp */
#endif

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
				 env->status[first])
		   : 0;
}

#define CELL UINT32_MAX

/* Effects of each kind of operation: bytes written to the cell, slots used, additions
 * of 1 to the counter, and how many bytes of the operation's word in `old` become 0
 * (atomics that return the old value, which is 0). */
static const struct kind_facts {
	uint32_t bytes, slots, adds, zeros;
} kind_facts[GT_KINDS] = {
	[GT_KIND_PUT] = { CELL, 1, 0, 0 },
	[GT_KIND_PUT_NO_DB] = { CELL, 1, 0, 0 },
	[GT_KIND_P] = { 8, 1, 0, 0 },
	[GT_KIND_ADD] = { 0, 1, 1, 0 },
	[GT_KIND_LOW_PAIR] = { CELL, 2, 0, 0 },
	[GT_KIND_LOW_NO_DB] = { CELL, 2, 0, 0 },
	[GT_KIND_LONG] = { 8, 2, 0, 8 },
	[GT_KIND_GET] = { CELL, 1, 0, 0 },
	[GT_KIND_WRITE2] = { CELL, 1, 0, 0 },
	[GT_KIND_READ] = { CELL, 1, 0, 0 },
	[GT_KIND_READ2] = { CELL, 1, 0, 0 },
	[GT_KIND_INLINE] = { 28, 1, 0, 0 },
	[GT_KIND_INLINE_PARTS] = { 12, 1, 0, 0 },
	[GT_KIND_FA] = { 0, 1, 1, 0 },
	[GT_KIND_CS] = { 8, 1, 0, 8 },
	[GT_KIND_MFA4] = { 4, 1, 0, 4 },
	[GT_KIND_MFA8] = { 0, 1, 1, 0 },
	[GT_KIND_MCS4] = { 4, 1, 0, 4 },
	[GT_KIND_DUMP] = { CELL, 2, 0, 0 },
	[GT_KIND_WAIT] = { CELL, 3, 0, 0 },
	[GT_KIND_PUT_SCOPE] = { CELL, 1, 0, 0 },
	[GT_KIND_P_SCOPE] = { 8, 1, 0, 0 },
	[GT_KIND_PUT_SIGNAL_SCOPE] = { CELL, 2, 1, 0 },
	[GT_KIND_SIGNAL_SCOPE] = { 0, 1, 1, 0 },
	[GT_KIND_GET_SCOPE] = { CELL, 1, 0, 0 },
	[GT_KIND_PUT_BARE] = { CELL, 1, 0, 0 },
	[GT_KIND_P_BARE] = { 8, 1, 0, 0 },
	[GT_KIND_PUT_SIGNAL_BARE] = { CELL, 2, 1, 0 },
	[GT_KIND_P_SIGNAL_BARE] = { 8, 2, 1, 0 },
	[GT_KIND_SIGNAL_BARE] = { 0, 1, 1, 0 },
};

static const struct kind_facts *facts_of(const struct gt_job *job, uint64_t k)
{
	const enum gt_kind kind = gt_kind(job, k);

	return kind < GT_KINDS ? &kind_facts[kind] : NULL;
}

/* Number of bytes written to cell k. */
static uint32_t length_of(const struct gt_job *job, uint64_t k)
{
	const struct kind_facts *f = facts_of(job, k);

	if (gt_idle(job, k))
		return 0;
	if (f)
		return f->bytes == CELL ? job->size : f->bytes;
	return gt_flags(job->op) & GT_DATA ? gt_length(job, k) : 0;
}

/* Number of threads that share one dump WQE behind their data: the group, if half of the ring
 * holds all of its slots at once. */
static uint32_t group_of(const struct gt_job *job)
{
	const bool warp = job->scope == DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP;
	const uint32_t group = warp ? GT_WARP : job->threads;

	if (job->scope == DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD || group >= job->depth / 2)
		return 1;
	return group;
}

/* Returns whether `found` is a correct number of WQEs behind the data: one per operation
 * for signals, one per operation of a group for dumps. With varied lengths, some groups
 * post one dump per thread. */
static bool is_tails(const struct gt_job *job, uint64_t found)
{
	uint64_t n = 0, k, shared;

	for (k = 0; k < ops_of(job); k++)
		n += !gt_idle(job, k);
	shared = n / group_of(job);
	if (!(gt_flags(job->op) & GT_READ))
		return found == n;
	return job->varied ? found >= shared && found <= n : found == shared;
}

static uint64_t word_at(const uint8_t *image, uint64_t at)
{
	uint64_t v;

	memcpy(&v, image + at, 8);
	return v;
}

/* Checks the cells at part. Bytes that no operation writes must equal rest. */
static int check_cells(const uint8_t *part, const struct gt_job *job, uint8_t rest)
{
	uint64_t k, n = ops_of(job), bad = 0, first = 0;
	uint32_t i, at = 0, len;

	for (k = 0; k < n; k++) {
		len = length_of(job, k);
		for (i = 0; i < job->size; i++)
			if (part[k * job->size + i] != (i < len ? gt_byte(k, i, job->seed) : rest))
				break;
		if (i < job->size && !bad++) {
			first = k;
			at = i;
		}
	}
	if (bad)
		return gt_complain("%lu of %lu cells are wrong, the first is %lu: byte %u is %02x",
				   bad, n, first, at, part[first * job->size + at]);
	for (i = 0; n * job->size + i < GT_PART; i++)
		if (part[n * job->size + i] != rest)
			return gt_complain("byte %u behind the last cell was written", i);
	return 0;
}

/* Checks that `adds` additions of 1 hit the counter: the old values that they returned
 * at `old` must be 0 to adds - 1, each once. */
static int check_adds(const uint8_t *image, const struct gt_job *job, uint64_t old,
		      uint64_t counter, uint64_t adds)
{
	uint64_t k, v, found = 0, n = ops_of(job), total = word_at(image, counter);
	uint8_t *seen = calloc(1, n + 1);
	int rc = 0;

	E2E_REQUIRE(seen);
	for (k = 0; k < n && !rc; k++) {
		const struct kind_facts *f = facts_of(job, k);

		v = word_at(image, old + 8 * k);
		if (f && f->zeros && !gt_idle(job, k)) {
			rc = v != (f->zeros < 8 ? GT_UNTOUCHED << 8 * f->zeros : 0)
				     ? gt_complain("atomic %lu did not run exactly once", k)
				     : 0;
		} else if (v != GT_UNTOUCHED) {
			found++;
			if (v >= adds || seen[v]++)
				rc = gt_complain(
					"addition %lu returned %lu, repeated or not below %lu", k,
					v, adds);
		}
	}
	free(seen);
	if (!rc && (total != adds || found != adds))
		rc = gt_complain("%lu additions expected, %lu executed, counter is %lu", adds,
				 found, total);
	return rc;
}

static int check_sets(const uint8_t *image, const struct gt_job *job)
{
	uint64_t k, v, n = ops_of(job);

	for (k = 0; k < n; k++) {
		v = word_at(image, job->old + 8 * k);
		if (v != gt_word(k, 1, job->seed))
			return gt_complain("signal %lu stored the wrong value %lx", k, v);
	}
	return 0;
}

static uint64_t adds_of(const struct gt_job *job)
{
	uint64_t k, adds = 0;

	for (k = 0; k < ops_of(job); k++) {
		const struct kind_facts *f = facts_of(job, k);

		if (gt_idle(job, k))
			continue;
		adds += f ? f->adds : !!(gt_flags(job->op) & GT_ADD);
	}
	return adds;
}

static int check_old(const uint8_t *image, const struct gt_job *job)
{
	const uint32_t flags = gt_flags(job->op);

	if (flags & GT_THIRD)
		return check_cells(image + job->old, job, 0xff);
	if (flags & GT_SET)
		return check_sets(image, job);
	if (flags & GT_COUNT &&
	    check_adds(image, job, job->old + GT_OLD_HALF, job->counters + 8, ops_of(job)))
		return -1;
	return check_adds(image, job, job->old, job->counters, adds_of(job));
}

static int check_cas(const uint8_t *image, const struct gt_job *job)
{
	uint64_t k, old, now;

	for (k = 0; k < ops_of(job); k++) {
		old = word_at(image, job->old + 8 * k);
		now = word_at(image, job->counters + 8 * k);
		if (old != k || now != gt_word(k, 0, job->seed))
			return gt_complain("compare-and-swap %lu returned %lu and left %lx", k, old,
					   now);
	}
	return 0;
}

int gt_check_payload(struct gt_env *env, const struct gt_case *c, const struct gt_job *job)
{
	const struct gt_region *r = c->payload_on_gpu ? &env->dev : &env->host;

	if (gt_gpu_copy(env->image, r->gpu, GT_BYTES))
		return gt_complain("copying the payload from the GPU failed");
	if (job->op == GT_CAS)
		return check_cas(env->image, job);
	return check_cells(env->image + job->dst, job, 0) || check_old(env->image, job) ? -1 : 0;
}

/* Number of WQEs for a transfer of `bytes` bytes. */
static uint32_t pieces_of(uint32_t bytes)
{
	return bytes ? ((bytes - 1) >> GT_CHUNK_SHIFT) + 1 : 1;
}

/* Slots of operation k, without a signal or dump WQE behind its data. */
static uint32_t slots_of(const struct gt_job *job, uint64_t k)
{
	const struct kind_facts *f = facts_of(job, k);

	if (gt_idle(job, k))
		return 0;
	if (f)
		return f->slots;
	switch (job->op) {
	case GT_IMM:
		return k % 3 == 0 ? 2 : 1;
	case GT_P:
	case GT_P_SIGNAL:
	case GT_P_COUNTER:
		return (job->size + 27) / 28;
	case GT_CAS:
		return 1;
	case GT_LOW:
		return 2;
	case GT_FENCE:
		return 2 * pieces_of(gt_length(job, k)) + 1;
	default:
		return gt_flags(job->op) & GT_DATA ? pieces_of(gt_length(job, k)) : 0;
	}
}

uint64_t gt_slots(const struct gt_job *job)
{
	uint64_t k, slots = 0;

	for (k = 0; k < ops_of(job); k++)
		slots += slots_of(job, k);
	return slots;
}

int gt_check_counters(struct gt_qps *qps, const struct gt_job *job, uint64_t slots)
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
	if (gt_flags(job->op) & GT_TAIL ? !is_tails(job, reserved - slots) : reserved != slots)
		return gt_complain("%lu slots were reserved (expected %lu)", reserved, slots);
	/* A wait repeats a doorbell without its DBREC, and only if there is a DBREC. */
	if (!doorbells || doorbells < records || (records ? records : doorbells) > reserved)
		return gt_complain("%lu doorbells and %lu DBREC updates for %lu slots", doorbells,
				   records, reserved);
	if ((records == 0) != (job->handler == E2E_NO_DBR))
		return gt_complain("%lu DBREC updates do not fit the handler", records);
	return 0;
}
