/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Time stamps of completions: they must not decrease, and libmlx5 must convert them
 * to the time of day when the message was sent, with tolerance for a busy machine.
 */
#include <infiniband/mlx5dv.h>
#include <time.h>

#include "../lib/vb.h"

/* Tolerance: the NIC takes the time stamp when a pass begins, and may be preempted after that. */
#define SLACK_NS 10000000000ull

static uint64_t time_of_day(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Polls the CQ and returns the time stamp of its next completion. */
static uint64_t next_stamp(struct ibv_cq_ex *cq)
{
	struct timespec nap = { 0, 20000 };
	struct ibv_poll_cq_attr attr = { 0 };
	time_t end = time(NULL) + VB_WAIT_S;
	uint64_t stamp;

	while (ibv_start_poll(cq, &attr)) {
		cr_assert_lt(time(NULL), end);
		nanosleep(&nap, NULL);
	}
	cr_assert_eq(cq->status, IBV_WC_SUCCESS);
	stamp = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	return stamp;
}

/* The core clock advances without any work request, and has the time of CLOCK_MONOTONIC. It may be
 * late by one sleep of the NIC thread and by the time that the thread waits for a core. */
Test(verbs_clock, core_clock_is_current)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_context *ctx = pick_open();
	struct timespec nap = { 0, 10000000 }, now;
	uint64_t last = 0, first = 0, ns;
	int i;

	cr_assert(ctx);
	for (i = 0; i < 20; i++) {
		v.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
		cr_assert_eq(ibv_query_rt_values_ex(ctx, &v), 0);
		cr_assert_eq(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
		clock_gettime(CLOCK_MONOTONIC, &now);
		ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		cr_assert_leq((uint64_t)v.raw_clock.tv_nsec, ns, "ahead of the time");
		cr_assert_lt(ns - (uint64_t)v.raw_clock.tv_nsec, SLACK_NS);
		cr_assert_geq((uint64_t)v.raw_clock.tv_nsec, last);
		last = (uint64_t)v.raw_clock.tv_nsec;
		first = i ? first : last;
		nanosleep(&nap, NULL);
	}
	cr_assert_gt(last, first + 50000000, "advanced by %llu ns in 200 ms",
		     (unsigned long long)(last - first));
	ibv_close_device(ctx);
}

Test(verbs_clock, completions_have_time_stamps)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 16,
					    .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_device_attr_ex dev;
	struct mlx5dv_clock_info clock;
	struct vb v = vb_open(4096);
	uint64_t before, stamps[2], when;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	cr_assert_eq(ibv_query_device_ex(v.ctx, NULL, &dev), 0);
	cr_assert_eq(dev.completion_timestamp_mask, 0x7fffffffffffffffull);
	cr_assert_eq(dev.hca_core_clock, 1000000u, "the clock must be 1000000 kHz");
	cq = ibv_create_cq_ex(v.ctx, &init);
	cr_assert(cq);
	qp = vb_qp(&v, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), NULL);
	vb_connect(&v, qp, qp);
	before = time_of_day();
	cr_assert_eq(vb_recv(&v, qp, 1, 0, 64), 0);
	cr_assert_eq(vb_send(&v, qp, 2, 64, 64), 0);
	stamps[0] = next_stamp(cq);
	stamps[1] = next_stamp(cq);
	cr_assert_leq(stamps[0], stamps[1]);
	cr_assert_eq(mlx5dv_get_clock_info(v.ctx, &clock), 0);
	when = mlx5dv_ts_to_ns(&clock, stamps[1]);
	cr_assert_geq(when + SLACK_NS, before);
	cr_assert_leq(when, time_of_day() + SLACK_NS);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	vb_close(&v);
}
