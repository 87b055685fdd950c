/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Time stamps in the real-time format, on a device that supports both formats: a CQ that is
 * created for the wall clock selects it for the queues that use the CQ.
 */
/* softnic-run: --ts-format both */
#include "../lib/raw.h"

#define SLACK_S 10u

static struct vb v;

static struct ibv_cq *new_cq(uint64_t flags)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 63, .wc_flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(v.ctx, &init);

	cr_assert(cq, "CQ: %s", strerror(errno));
	return ibv_cq_ex_to_cq(cq);
}

/* Polls one completion and checks that its time stamp is the time of day, s << 32 | ns. */
static void check_real(struct ibv_cq *cq)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	struct ibv_poll_cq_attr attr = { 0 };
	struct timespec nap = { 0, 20000 };
	time_t end = time(NULL) + VB_WAIT_S;
	struct timespec now; /* time() may be behind by a tick */
	uint64_t stamp;

	while (ibv_start_poll(ex, &attr)) {
		cr_assert_lt(time(NULL), end);
		nanosleep(&nap, NULL);
	}
	cr_assert_eq(ex->status, IBV_WC_SUCCESS);
	stamp = ibv_wc_read_completion_wallclock_ns(ex);
	ibv_end_poll(ex);
	cr_assert_lt((uint32_t)stamp, 1000000000u);
	clock_gettime(CLOCK_REALTIME, &now);
	cr_assert_leq((time_t)(stamp >> 32), now.tv_sec);
	cr_assert_geq((time_t)(stamp >> 32) + SLACK_S, now.tv_sec);
}

Test(verbs_clock_real, rc)
{
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	v = vb_open(4096);
	cq = new_cq(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	qp = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	vb_connect(&v, qp, qp);
	cr_assert_eq(vb_recv(&v, qp, 1, 0, 64), 0);
	cr_assert_eq(vb_send(&v, qp, 2, 64, 64), 0);
	check_real(cq);
	check_real(cq);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

Test(verbs_clock_real, raw_packets)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0x0c };
	struct ibv_flow *flow;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	raw_need();
	v = vb_open(4096);
	cq = new_cq(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	qp = raw_qp(&v, cq, 16, 16, 0);
	raw_ready(qp);
	flow = raw_flow(qp, mac);
	memcpy(v.mem, mac, 6);
	cr_assert_eq(vb_recv(&v, qp, 1, 2048, 2048), 0);
	raw_send(&v, qp, 0, 100);
	check_real(cq);
	check_real(cq);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

/* The queues of an RC QP share one format; those of a raw packet QP are separate. */
Test(verbs_clock_real, mixed_formats)
{
	struct ibv_cq *real, *free_running;
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp *qp;

	raw_need();
	v = vb_open(4096);
	real = new_cq(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	free_running = new_cq(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	init = raw_init(&v, real, 16, 16);
	init.recv_cq = free_running;
	qp = ibv_create_qp_ex(v.ctx, &init);
	cr_assert(qp, "raw packet QP: %s", strerror(errno));
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	init.qp_type = IBV_QPT_RC;
	errno = 0;
	cr_assert_null(ibv_create_qp_ex(v.ctx, &init));
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_eq(ibv_destroy_cq(real), 0);
	cr_assert_eq(ibv_destroy_cq(free_running), 0);
	vb_close(&v);
}
