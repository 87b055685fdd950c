/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host's view of exported receive queues: what a query returns, the error state while threads
 * wait, receives that are posted after it, resets of high-level queue pairs, warnings about
 * receives that were never offered, and the reasons for refused receive CQs.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <pthread.h>
#include <unistd.h>

#include "../lib/capture.h"
#include "../lib/recv_rig.h"

#define CTA DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA

static const struct doca_gpu_dev_verbs_addr nothing;
static struct recv_rig r;
static int modes[] = { E2E_EXCL, CTA, E2E_MODE };

ParameterizedTestParameters(recv_host, a_receive_posted_in_the_error_state_drains_the_queue)
{
	return cr_make_param_array(int, modes, 3);
}

static struct gdk_how how(int mode)
{
	return gdk_how((gdk_mode_t)mode, GDK_AUTO, GDK_THREAD, 0);
}

static void set_state(doca_verbs_qp_t *qp, enum doca_verbs_qp_state state)
{
	doca_verbs_qp_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_next_state(attr, state));
	E2E_REQUIRE(!doca_verbs_qp_modify(qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE));
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
}

static int wait_recv(uint64_t ticket, int mode)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	return gdk_recv_wait(r.b.dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
			     (gdk_mode_t)mode, &cqe);
}

static uint64_t post(int mode)
{
	uint64_t ticket;

	cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &ticket, how(mode)), 0);
	return ticket;
}

static void message(uint64_t ticket)
{
	uint64_t sent;

	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, how(E2E_MODE)), 0);
	cr_assert_eq(wait_recv(ticket, E2E_MODE), 0);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_MODE), 0);
}

static void open_rig(void)
{
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 8 });
}

static void close_rig(void)
{
	recv_rig_close(&r);
}

/* ---- queries ---- */

static void want_inline(doca_verbs_qp_init_attr_t *init)
{
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_cqe_inline(init, 1));
}

static void expect_query(const struct recv_end *e, enum doca_verbs_qp_state state, bool cqe_inline)
{
	struct gdk_qp_init_attr init;
	doca_verbs_qp_init_attr_t *init_attr;
	enum doca_verbs_qp_state now;
	doca_verbs_qp_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_qp_init_attr_create(&init_attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	cr_assert_eq(doca_verbs_qp_query(e->qp, attr, init_attr, NULL), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_get_current_state(attr, &now), DOCA_SUCCESS);
	cr_assert_eq(now, state);
	cr_assert_eq(gdk_verbs_qp_init_attr_get(init_attr, &init), DOCA_SUCCESS);
	cr_assert_eq(init.rq_wr, 16, "state %d", (int)state);
	cr_assert_eq(init.receive_max_sges, 4, "3, rounded up to a power of two");
	cr_assert_eq(init.receive_cq, e->rcq);
	cr_assert_eq(init.cqe_inline, cqe_inline);
	cr_assert_null(init.srq);
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_destroy(init_attr));
}

static void query_all(bool uc, bool cqe_inline)
{
	recv_rig_create(&r,
			(struct recv_rig_how){ .handler = E2E_DB,
					       .rq_wr = 10,
					       .sges = 3,
					       .rcq = 16,
					       .uc = uc },
			cqe_inline ? want_inline : NULL);
	expect_query(&r.b, DOCA_VERBS_QP_STATE_RST, cqe_inline);
	recv_rig_connect(&r);
	expect_query(&r.b, DOCA_VERBS_QP_STATE_RTS, cqe_inline);
	(void)post(E2E_MODE);
	set_state(r.b.qp, DOCA_VERBS_QP_STATE_ERR);
	expect_query(&r.b, DOCA_VERBS_QP_STATE_ERR, cqe_inline);
	set_state(r.b.qp, DOCA_VERBS_QP_STATE_RST);
	expect_query(&r.b, DOCA_VERBS_QP_STATE_RST, cqe_inline);
	recv_rig_close(&r);
}

Test(recv_host, a_query_returns_the_receive_queue_in_every_state)
{
	query_all(false, false);
	query_all(false, true);
	query_all(true, false);
}

/* ---- the error state ---- */

/* The completion of a receive that is posted in the error state follows those of all others. */
ParameterizedTest(const int *mode, recv_host, a_receive_posted_in_the_error_state_drains_the_queue)
{
	const struct doca_gpunetio_ib_mlx5_err_cqe_ex *cqe;
	struct gdk_qp_recv_counters c;
	struct gdk_qp_error e;

	open_rig();
	for (uint64_t i = 0; i < 5; i++)
		cr_assert_eq(post(*mode), i);
	message(0);
	set_state(r.b.qp, DOCA_VERBS_QP_STATE_ERR);
	cr_assert_eq(post(*mode), 5);
	cr_assert_eq(wait_recv(5, *mode), -EIO);
	for (uint64_t i = 1; i < 6; i++) {
		cqe = (const void *)gdk_cqe_at(gdk_qp_cq_rq(r.b.dev), i);
		cr_assert_eq(cqe->op_own >> 4, DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR, "receive %lu",
			     i);
		cr_assert_eq(cqe->syndrome, 0x05);
		cr_assert_eq(be16toh(cqe->wqe_counter), i);
	}
	cr_assert_eq(gdk_verbs_qp_get_error(r.b.ex, &e), DOCA_SUCCESS);
	cr_assert(e.has_error && e.has_cqe && e.is_receive);
	cr_assert_eq(e.syndrome, 0x05);
	cr_assert_eq(gdk_verbs_qp_get_recv_counters(r.b.ex, &c), DOCA_SUCCESS);
	cr_assert_eq(c.reserved, 6);
	cr_assert_eq(c.posted, 6);
	cr_assert_eq(c.status, -EIO);
	close_rig();
}

struct waiter {
	pthread_t thread;
	int mode, rc;
	bool room; /* waits for a free slot, not for a completion */
};

static void *wait_for_error(void *arg)
{
	struct waiter *w = arg;
	uint64_t ticket;

	w->rc = w->room ? gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &ticket, how(w->mode))
			: wait_recv(7, w->mode);
	return NULL;
}

/* The queue is full, and no message comes. */
Test(recv_host, the_error_state_ends_all_waits)
{
	struct waiter w[] = { { .mode = E2E_MODE },
			      { .mode = E2E_MODE, .room = true },
			      { .mode = CTA },
			      { .mode = CTA, .room = true } };
	uint64_t begin;

	open_rig();
	for (uint64_t i = 0; i < 8; i++)
		(void)post(E2E_MODE);
	for (int i = 0; i < 4; i++)
		E2E_REQUIRE(!pthread_create(&w[i].thread, NULL, wait_for_error, &w[i]));
	E2E_REQUIRE(!usleep(20000));
	begin = e2e_now_ns();
	set_state(r.b.qp, DOCA_VERBS_QP_STATE_ERR);
	for (int i = 0; i < 4; i++) {
		pthread_join(w[i].thread, NULL);
		cr_assert_eq(w[i].rc, -EIO, "waiter %d: %d", i, w[i].rc);
	}
	cr_assert_lt(e2e_now_ns() - begin, E2E_WAIT_NS / 2, "a waiter did not see the flush");
	close_rig();
}

/* ---- resets of high-level queue pairs ---- */

static void use_after_resets(struct doca_gpu_verbs_qp_hl *hl)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe, *same;
	struct gdk_qp_recv_counters c;
	uint64_t sent, ticket;
	struct e2e_qp q;
	char text[512];

	e2e_qp_adopt(&r.nic, &q, hl);
	for (uint64_t lap = 0; lap < 12; lap++) {
		E2E_REQUIRE(!e2e_connect(&r.nic, hl->qp, &r.nic.gid, q.qpn,
					 (struct e2e_path){ 14, 7, 99 }));
		for (uint64_t i = 0; i < lap; i++) {
			cr_assert_eq(gdk_recv(q.dev, recv_at(&r.b, 0), 64, &ticket, how(E2E_MODE)),
				     0);
			cr_assert_eq(ticket, i);
			cr_assert_eq(gdk_send(q.dev, recv_at(&r.a, 0), i + 1, &sent, how(E2E_MODE)),
				     0);
			cr_assert_eq(gdk_recv_wait(q.dev, ticket, nothing,
						   DOCA_GPUNETIO_VERBS_MCST_DISABLED, E2E_MODE,
						   &cqe),
				     0, "receive %lu after %lu resets", i, lap);
			cr_assert_eq(gdk_cqe_bytes(cqe), i + 1);
			cr_assert_eq(gdk_poll_one_cqe_at(gdk_qp_cq_rq(q.dev), i, E2E_MODE, &same),
				     0);
			cr_assert_eq(same, cqe);
			cr_assert_eq(gdk_wait(q.dev, sent, E2E_MODE), 0);
		}
		e2e_qp_reset(&q);
		cr_assert_eq(gdk_verbs_qp_get_recv_counters(hl->qp_gverbs, &c), DOCA_SUCCESS);
		cr_assert_eq(c.reserved + c.posted + c.completions, 0);
		cr_assert_eq(c.status, 0);
		cr_assert_eq(gdk_verbs_qp_dump_recv_wqe(hl->qp_gverbs, 0, text, sizeof(text)),
			     DOCA_SUCCESS);
		cr_assert(strstr(text, "byte_count 0 lkey 0x0 addr 0x0"), "%s", text);
	}
}

Test(recv_host, high_level_queue_pairs_and_groups_are_reset, .init = open_rig, .fini = close_rig)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .gpu_dev = r.nic.gpu,
						       .net_dev = r.nic.dev,
						       .nic_handler = E2E_DB,
						       .sq_nwqe = 8 };
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 4 };
	struct doca_gpu_verbs_qp_group_hl *g;
	struct doca_gpu_verbs_qp_hl *hl;

	cr_assert_eq(gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &hl), DOCA_SUCCESS);
	use_after_resets(hl);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_create_qp_group_rq_hl(&attr, &rq, 0, &g), DOCA_SUCCESS);
	use_after_resets(&g->qp_main);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(g), DOCA_SUCCESS);
}

/* ---- receives that were never offered ---- */

static void reset_and_expect(const char *line)
{
	const char *log;

	set_state(r.b.qp, DOCA_VERBS_QP_STATE_RST);
	capture_begin();
	E2E_REQUIRE(!doca_gpu_verbs_reset_tracking_and_memory(r.b.ex));
	log = capture_end();
	cr_assert(line ? strstr(log, line) != NULL : !strstr(log, "receives from"), "log: %s", log);
}

Test(recv_host, warns_of_receives_that_were_never_offered, .init = open_rig, .fini = close_rig)
{
	uint64_t idx;

	reset_and_expect(NULL);
	(void)post(E2E_MODE);
	reset_and_expect(NULL);
	cr_assert_eq(gdk_rq_submit(r.b.dev, 8, how(E2E_MODE)), 0);
	reset_and_expect(NULL);
	(void)post(E2E_MODE);
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 3, E2E_MODE, 0, &idx), 0);
	gdk_rq_mark_ready(r.b.dev, idx, idx + 1, E2E_MODE);
	reset_and_expect("receives from 1 on were never offered to the NIC: 3 reserved, 2 of them "
			 "marked ready");
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 3, E2E_MODE, 0, &idx), 0);
	cr_assert_eq(gdk_verbs_qp_abort(r.b.ex), DOCA_SUCCESS);
	reset_and_expect(NULL);
}

/* ---- refused receive CQs ---- */

static doca_verbs_cq_t *use_cq;

static void set_receive_cq(doca_verbs_qp_init_attr_t *init)
{
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_receive_cq(init, use_cq));
}

/* Creates the QP of r.a anew with this receive CQ, and exports it. */
static doca_error_t export_with(doca_verbs_cq_t *cq)
{
	use_cq = cq;
	E2E_REQUIRE(!doca_verbs_qp_destroy(r.a.qp));
	recv_qp_create(&r.a, set_receive_cq);
	return gdk_verbs_export_qp_rq(r.nic.gpu, r.a.qp, E2E_DB, r.a.scq, cq,
				      DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR, &r.a.ex);
}

static void expect_refused(doca_verbs_cq_t *cq, doca_error_t expected, const char *line)
{
	doca_error_t err;
	const char *log;

	capture_begin();
	err = export_with(cq);
	log = capture_end();
	cr_assert_eq(err, expected);
	cr_assert(strstr(log, line), "log: %s", log);
}

Test(recv_host, the_log_tells_why_a_receive_cq_is_refused, .init = open_rig, .fini = close_rig)
{
	doca_verbs_cq_t *small = recv_cq_open(&r.nic, 4);

	cr_assert_eq(doca_gpu_verbs_unexport_qp(r.nic.gpu, r.a.ex), DOCA_SUCCESS);
	expect_refused(r.a.scq, DOCA_ERROR_NOT_SUPPORTED,
		       "cq_rq is also the send CQ, where the index of a CQE does not tell the WQE: "
		       "create the QP with a receive CQ of its own");
	expect_refused(r.b.rcq, DOCA_ERROR_IN_USE, "another QP was created with cq_rq, too");
	E2E_REQUIRE(!doca_gpu_verbs_unexport_qp(r.nic.gpu, r.b.ex));
	expect_refused(r.b.rcq, DOCA_ERROR_IN_USE, "another QP was created with cq_rq, too");
	expect_refused(small, DOCA_ERROR_INVALID_VALUE,
		       "of 4 entries is too small for 8 receive WQEs");
	cr_assert_eq(gdk_verbs_export_qp_rq(r.nic.gpu, r.b.qp, E2E_DB, r.b.scq, r.b.rcq,
					    DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
					    &r.b.ex),
		     DOCA_SUCCESS);
	cr_assert_eq(export_with(r.a.rcq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_destroy(small), DOCA_SUCCESS);
}
