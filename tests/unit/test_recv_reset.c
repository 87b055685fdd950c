/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receive queues after errors, in the error state and after resets; reports and dumps of the host.
 */
#include <criterion/criterion.h>

#include "../lib/bound.h"
#include "../lib/recv_rig.h"

static const struct doca_gpu_dev_verbs_addr nothing;
static struct recv_rig r;

static struct gdk_how how(gdk_mode_t mode)
{
	return gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
}

static void open_rig(void)
{
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 8, .rcq = 16 });
}

static void close_rig(void)
{
	recv_rig_close(&r);
}

TestSuite(recv_reset, .init = open_rig, .fini = close_rig);

static void set_state(struct recv_end *e, enum doca_verbs_qp_state state)
{
	doca_verbs_qp_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	doca_verbs_qp_attr_set_next_state(attr, state);
	E2E_REQUIRE(!doca_verbs_qp_modify(e->qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE));
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
}

static void reset(void)
{
	struct recv_end *ends[] = { &r.a, &r.b };

	for (int i = 0; i < 2; i++) {
		set_state(ends[i], DOCA_VERBS_QP_STATE_RST);
		cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(ends[i]->ex), DOCA_SUCCESS);
		cr_assert_eq(recv_dbrec(ends[i]), 0);
		cr_assert_eq(ends[i]->dev->rq_wqe_pi, 0);
	}
	recv_rig_connect(&r);
}

static int wait_recv(uint64_t ticket, gdk_mode_t mode, struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	return gdk_recv_wait(r.b.dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED, mode,
			     cqe);
}

static void post(uint64_t expect, uint32_t len, gdk_mode_t mode)
{
	uint64_t ticket;

	cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), len, &ticket, how(mode)), 0);
	cr_assert_eq(ticket, expect);
}

static void message(uint64_t ticket, gdk_mode_t mode)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	post(ticket, 64, mode);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 32, &sent, how(mode)), 0);
	cr_assert_eq(wait_recv(ticket, mode, &cqe), 0);
	cr_assert_eq(be16toh(cqe->wqe_counter), ticket);
	cr_assert_eq(gdk_cqe_bytes(cqe), 32);
	cr_assert_eq(gdk_wait(r.a.dev, sent, mode), 0);
}

/* The CQ keeps its index: after each reset it is at another entry and lap. */
Test(recv_reset, works_again_after_each_of_many_resets)
{
	const gdk_mode_t modes[] = { E2E_EXCL, E2E_MODE };

	for (uint64_t n = 0; n < 40; n++) {
		for (uint64_t i = 0; i < n; i++)
			message(i, modes[n % 2]);
		reset();
	}
}

Test(recv_reset, works_again_after_an_error_with_receives_outstanding)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	for (uint64_t n = 0; n < 5; n++) {
		message(0, E2E_MODE);
		post(1, 8, E2E_MODE);
		for (uint64_t i = 2; i < 2 + n; i++)
			post(i, 64, E2E_MODE);
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 9, &sent, how(E2E_MODE)), 0);
		cr_assert_eq(wait_recv(1, E2E_MODE, &cqe), -EIO);
		cr_assert_eq(wait_recv(1 + n, E2E_MODE, &cqe), -EIO, "flushed");
		cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_MODE), -EIO);
		reset();
	}
}

/* The host moves the QP to ERR: every receive that is posted completes with a flush. */
Test(recv_reset, the_error_state_flushes_all_that_is_posted)
{
	struct doca_gpunetio_ib_mlx5_err_cqe_ex *cqe;
	struct gdk_qp_recv_counters c;
	struct bound b = bound_begin(0, false);
	struct doca_gpunetio_ib_mlx5_cqe64 *last;

	message(0, E2E_EXCL);
	for (uint64_t i = 1; i < 6; i++)
		post(i, 64, E2E_EXCL);
	set_state(&r.b, DOCA_VERBS_QP_STATE_ERR);
	for (uint64_t i = 1; i < 6; i++) {
		cqe = (void *)gdk_cqe_at(gdk_qp_cq_rq(r.b.dev), i);
		while (*(volatile uint8_t *)&cqe->op_own >> 4 != 14)
			cr_assert(!bound_passed(&b, i, E2E_WAIT_NS), "receive %lu is not flushed",
				  i);
		cr_assert_eq(cqe->syndrome, 0x05);
		cr_assert_eq(be16toh(cqe->wqe_counter), i);
	}
	cr_assert_eq(wait_recv(5, E2E_EXCL, &last), -EIO);
	cr_assert_eq(gdk_verbs_qp_get_recv_counters(r.b.ex, &c), DOCA_SUCCESS);
	cr_assert_eq(c.status, -EIO);
	reset();
	message(0, E2E_EXCL);
}

Test(recv_reset, the_host_reports_and_prints_the_failed_receive)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct doca_gpu_verbs_qp_error_info info;
	struct gdk_qp_error e;
	char text[512], expect[256];
	uint64_t sent;

	message(0, E2E_EXCL);
	cr_assert_eq(gdk_verbs_qp_get_error(r.b.ex, &e), DOCA_SUCCESS);
	cr_assert_not(e.has_error);
	post(1, 8, E2E_EXCL);
	post(2, 64, E2E_EXCL);
	cr_assert_eq(gdk_verbs_qp_dump_recv_wqe(r.b.ex, 1, text, sizeof(text)), DOCA_SUCCESS);
	snprintf(expect, sizeof(expect),
		 "receive WQE 1\n  data byte_count 8 lkey 0x%x addr 0x%lx\n", r.b.buf.mr->lkey,
		 (unsigned long)r.b.buf.mem);
	cr_assert_str_eq(text, expect);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 9, &sent, how(E2E_EXCL)), 0);
	cr_assert_eq(wait_recv(2, E2E_EXCL, &cqe), -EIO);
	cr_assert_eq(gdk_verbs_qp_get_error(r.b.ex, &e), DOCA_SUCCESS);
	cr_assert(e.has_error && e.has_cqe && e.is_receive);
	cr_assert_eq(e.syndrome, 0x01);
	cr_assert_eq(e.wqe_counter, 1, "not the flush of receive 2");
	cr_assert_eq(e.qpn, r.b.qpn);
	cr_assert_eq(doca_gpu_verbs_query_last_error(r.b.ex, &info), DOCA_SUCCESS);
	cr_assert_eq(info.syndrome, 0x01);
	cr_assert_eq(gdk_verbs_qp_dump_recv_cqe(r.b.ex, 1, text, sizeof(text)), DOCA_SUCCESS);
	cr_assert(strstr(text, "syndrome 0x1 "), "%s", text);
	cr_assert_eq(gdk_verbs_qp_dump_recv_cqe(r.b.ex, 0, text, sizeof(text)), DOCA_SUCCESS);
	cr_assert(strstr(text, "byte_cnt"), "%s", text);
	/* The sender's error is that of a send. */
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), -EIO);
	cr_assert_eq(gdk_verbs_qp_get_error(r.a.ex, &e), DOCA_SUCCESS);
	cr_assert(e.has_cqe && !e.is_receive);
}

Test(recv_reset, clearing_an_abort_undoes_reservations)
{
	uint64_t idx;

	message(0, E2E_MODE);
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 3, E2E_MODE, 0, &idx), 0);
	cr_assert_eq(idx, 1);
	cr_assert_eq(gdk_verbs_qp_abort(r.b.ex), DOCA_SUCCESS);
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 8, E2E_MODE, 0, &idx), -ECANCELED);
	cr_assert_eq(gdk_verbs_qp_clear_abort(r.b.ex), DOCA_SUCCESS);
	message(1, E2E_MODE);
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 2, E2E_MODE, 0, &idx), 0);
	gdk_rq_mark_ready(r.b.dev, idx + 1, idx + 1, E2E_MODE);
	cr_assert_eq(gdk_verbs_qp_abort(r.b.ex), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_clear_abort(r.b.ex), DOCA_ERROR_BAD_STATE, "behind a gap");
}
