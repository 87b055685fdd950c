/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The library on devices whose firmware differs: time stamp formats, bonds (LAG),
 * core direct, event types, number of QPs, late producer counters of CQs. Each test
 * configures the software NIC before it opens it.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "../../core/nic/net_dev.h"
#include "../../qp/verbs/qp.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/nicfail.h"

#define DEPTH 16u

static void connect_itself(struct e2e_nic *nic, struct e2e_qp *q)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	cr_assert_eq(e2e_connect(nic, q->hl->qp, &nic->gid, q->qpn, path), DOCA_SUCCESS);
}

/* Reads a field of the QP context from the firmware. */
static uint64_t field_of(doca_verbs_qp_t *qp, uint32_t field)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state state;

	cr_assert_eq(gdk_qp_query_state(qp, out, &state), DOCA_SUCCESS);
	return prm_get(out + PRM_QUERY_QP_QPC_AT, field);
}

/* ---- time stamps ---- */

static void expect_ts_format(const char *kind, uint64_t format)
{
	struct e2e_nic nic;
	struct e2e_qp q;

	setenv("SOFTNIC_TS_FORMAT", kind, 1);
	e2e_open(&nic);
	cr_assert_eq(e2e_qp_try(&nic, &q, E2E_DB, DEPTH, false), DOCA_SUCCESS, "%s", kind);
	cr_expect_eq(field_of(q.hl->qp, PRM_QPC_TS_FORMAT), format);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

Test(card, ts_format_free_running)
{
	expect_ts_format("free", 0);
}

Test(card, ts_format_default_if_only_real_time)
{
	expect_ts_format("real", 1);
}

Test(card, ts_format_free_running_if_both)
{
	expect_ts_format("both", 0);
}

/* ---- bonds ---- */

static struct gdk_qp_lag lag_of(struct e2e_qp *q)
{
	struct gdk_qp_lag lag;

	cr_assert_eq(gdk_verbs_qp_get_lag(q->hl->qp, &lag), DOCA_SUCCESS);
	return lag;
}

static uint64_t commands_to_connect(struct e2e_nic *nic, struct e2e_qp *q)
{
	uint64_t before = nicfail_stats()->commands;

	connect_itself(nic, q);
	return nicfail_stats()->commands - before;
}

Test(card, bond_is_queried_once)
{
	uint64_t n[4];
	struct e2e_qp q[4];
	struct e2e_nic nic;

	nicfail_find();
	setenv("SOFTNIC_LAG", "2", 1);
	e2e_open(&nic);
	for (int i = 0; i < 4; i++) {
		e2e_qp_open(&nic, &q[i], E2E_DB, DEPTH);
		n[i] = commands_to_connect(&nic, &q[i]);
	}
	for (int i = 1; i < 4; i++)
		cr_expect_eq(n[i] + 1, n[0], "QP %d took %d commands, the first took %d", i,
			     (int)n[i], (int)n[0]);
	for (int i = 0; i < 4; i++)
		e2e_qp_close(&q[i]);
	e2e_close(&nic);
}

/*
 * Firmware of a VF or SF may refuse QUERY_LAG. The library must treat the refusal as
 * "no bond", without a log line and without a recorded command error.
 */
Test(card, refused_query_lag_means_no_bond)
{
	struct gdk_command_error error;
	struct gdk_qp_lag lag;
	const char *log;
	struct e2e_nic nic;
	struct e2e_qp q;

	setenv("SOFTNIC_LAG", "2", 1);
	setenv("SOFTNIC_QUERY_LAG", "0", 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, DEPTH);
	capture_begin();
	connect_itself(&nic, &q);
	lag = lag_of(&q);
	log = capture_end();
	cr_expect_str_eq(log, "");
	cr_assert_eq(gdk_get_command_error(&error), DOCA_SUCCESS);
	cr_expect_eq(error.opcode, 0);
	cr_expect(lag.ports == 2 && !lag.active && !lag.by_queue && !lag.port);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

/* Replaces mlx5dv_devx_general_cmd of libmlx5: QUERY_LAG fails with lag_error, if it is not 0. */
static int lag_error;

int mlx5dv_devx_general_cmd(struct ibv_context *ctx, const void *in, size_t inlen, void *out,
			    size_t outlen)
{
	int (*next)(struct ibv_context *, const void *, size_t, void *, size_t);

	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_devx_general_cmd");
	if (lag_error && prm_get(in, PRM_CMD_OPCODE) == GDK_CMD_QUERY_LAG)
		return lag_error;
	return next(ctx, in, inlen, out, outlen);
}

static doca_error_t try_to_connect(struct e2e_nic *nic, struct e2e_qp *q, int error)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	lag_error = error;
	return e2e_connect(nic, q->hl->qp, &nic->gid, q->qpn, path);
}

Test(card, query_lag_driver_error_fails_and_is_tried_again)
{
	struct gdk_qp_lag lag;
	const char *log;
	struct e2e_nic nic;
	struct e2e_qp q;

	setenv("SOFTNIC_LAG", "2", 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, DEPTH);
	capture_begin();
	cr_expect_eq(try_to_connect(&nic, &q, ENOMEM), DOCA_ERROR_NO_MEMORY);
	log = capture_end();
	cr_expect(strstr(log, "QUERY_LAG (0x") && strstr(log, strerror(ENOMEM)), "log: %s", log);
	capture_begin();
	cr_expect_eq(try_to_connect(&nic, &q, EIO), DOCA_ERROR_DRIVER);
	cr_expect_eq(gdk_verbs_qp_get_lag(q.hl->qp, &lag), DOCA_ERROR_DRIVER);
	log = capture_end();
	cr_expect(strstr(log, strerror(EIO)), "log: %s", log);
	cr_assert_eq(try_to_connect(&nic, &q, 0), DOCA_SUCCESS);
	lag = lag_of(&q);
	cr_expect(lag.active && lag.by_queue && lag.port == 1);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

Test(card, unsupported_query_lag_means_no_bond)
{
	const char *log;
	struct e2e_nic nic;
	struct e2e_qp q;

	setenv("SOFTNIC_LAG", "2", 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, DEPTH);
	capture_begin();
	cr_assert_eq(try_to_connect(&nic, &q, EOPNOTSUPP), DOCA_SUCCESS);
	log = capture_end();
	cr_expect_str_eq(log, "");
	cr_expect_not(lag_of(&q).by_queue);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

/* The device has two ports that could form a bond, but the bond is not active. */
static void expect_port_without_bond(bool vf)
{
	struct gdk_qp_lag lag;
	struct e2e_nic nic;
	struct e2e_qp q;

	setenv("SOFTNIC_LAG", "2:inactive", 1);
	setenv("SOFTNIC_VF", vf ? "1" : "0", 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, DEPTH);
	connect_itself(&nic, &q);
	lag = lag_of(&q);
	cr_expect(!lag.active);
	cr_expect_eq(lag.by_queue, vf);
	cr_expect_eq(lag.port, vf ? 1 : 0);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

Test(card, inactive_bond_assigns_no_port)
{
	expect_port_without_bond(false);
}

Test(card, vf_assigns_ports_with_an_inactive_bond)
{
	expect_port_without_bond(true);
}

/* ---- core direct ---- */

static void expect_companion(bool has)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };
	struct doca_gpu_verbs_qp_group_hl *g[2];
	const char *log, *first;
	struct e2e_nic nic;

	setenv("SOFTNIC_CD", has ? "1" : "0", 1);
	e2e_open(&nic);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.sq_nwqe = DEPTH;
	attr.nic_handler = E2E_DB;
	capture_begin();
	for (int i = 0; i < 2; i++)
		cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &g[i]), DOCA_SUCCESS);
	log = capture_end();
	first = strstr(log, "does not support core direct");
	cr_expect_eq(!first, has, "log: %s", log);
	cr_expect(!first || !strstr(first + 1, "does not support core direct"),
		  "must be logged once: %s", log);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(field_of(g[i]->qp_companion.qp, PRM_QPC_CD_MASTER), has);
		cr_expect_eq(field_of(g[i]->qp_main.qp, PRM_QPC_CD_MASTER), 0);
		cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(g[i]), DOCA_SUCCESS);
	}
	e2e_close(&nic);
}

Test(card, companion_is_a_core_direct_master)
{
	expect_companion(true);
}

Test(card, companion_without_core_direct_warns_once)
{
	expect_companion(false);
}

/* ---- events ---- */

#define ACCESS_EVENT 0x11

/*
 * Sends the peer a write with a wrong rkey. *kind receives the event that the peer's
 * event channel returns, or -1 if it returns none.
 */
static void access_event(struct e2e_pair *p, struct gdk_events *ev, int *kind)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_event e;
	doca_error_t err;

	cr_assert_eq(gdk_put(p->tx.dev, e2e_addr(p->dst.mem, p->dst.mr->rkey ^ 0x100),
			     e2e_addr(p->src.mem, p->src.mr->lkey), 64, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&p->tx, t), -EIO);
	err = gdk_events_get(ev, &e);
	*kind = err == DOCA_SUCCESS ? (int)e.kind : -1;
}

static void expect_events(const char *mask, doca_error_t want, int want_kind)
{
	struct gdk_events *ev;
	struct e2e_pair p;
	int kind;

	setenv("SOFTNIC_EVENTS", mask, 1);
	e2e_pair_open(&p, E2E_DB, DEPTH, 4096);
	cr_assert_eq(gdk_events_open(p.nic.dev, &ev), DOCA_SUCCESS);
	cr_expect_eq(gdk_events_watch_qp(ev, p.rx.hl->qp), want, "%s", mask);
	access_event(&p, ev, &kind);
	cr_expect_eq(kind, want_kind, "event mask %s: got event %d", mask, kind);
	cr_assert_eq(gdk_events_close(ev), DOCA_SUCCESS);
	e2e_pair_close(&p);
}

Test(card, all_qp_events_supported)
{
	expect_events("", DOCA_SUCCESS, GDK_EVENT_QP_ACCESS);
}

/* The device offers only event 0x11, of the three that are requested (0x05, 0x10, 0x11). */
Test(card, some_qp_events_supported)
{
	expect_events("0x20000", DOCA_SUCCESS, GDK_EVENT_QP_ACCESS);
}

Test(card, no_qp_events_supported)
{
	expect_events("0x10", DOCA_ERROR_NOT_SUPPORTED, -1);
}

/*
 * Replaces mlx5dv_devx_subscribe_devx_event of libmlx5. If second_error is set, the
 * subscription of the whole list fails with EINVAL, as does that of the first event
 * alone; that of the second event alone fails with second_error.
 */
static int second_error, subscriptions;

int mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *ch,
				     struct mlx5dv_devx_obj *obj, uint16_t size, uint16_t list[],
				     uint64_t cookie)
{
	int (*next)(struct mlx5dv_devx_event_channel *, struct mlx5dv_devx_obj *, uint16_t,
		    uint16_t *, uint64_t);

	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_devx_subscribe_devx_event");
	if (!second_error)
		return next(ch, obj, size, list, cookie);
	return ++subscriptions == 3 ? second_error : EINVAL;
}

Test(card, subscribe_driver_error_is_reported)
{
	struct gdk_events *ev;
	struct e2e_nic nic;
	const char *log;
	struct e2e_qp q;

	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, DEPTH);
	cr_assert_eq(gdk_events_open(nic.dev, &ev), DOCA_SUCCESS);
	second_error = EIO;
	capture_begin();
	cr_expect_eq(gdk_events_watch_qp(ev, q.hl->qp), DOCA_ERROR_DRIVER);
	log = capture_end();
	cr_expect(strstr(log, strerror(EIO)), "log: %s", log);
	cr_expect_eq(subscriptions, 3, "%d subscriptions", subscriptions);
	cr_assert_eq(gdk_events_close(ev), DOCA_SUCCESS);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

/* ---- exhaustion ---- */

/* A ConnectX-4 without free QPs returned status 0x05. The text of this status must name this
 * cause. */
Test(card, status_text_when_no_qp_is_left)
{
	struct gdk_command_error error;
	struct e2e_nic nic;
	struct e2e_qp q[2];

	setenv("SOFTNIC_QP_MAX", "1", 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q[0], E2E_DB, DEPTH);
	cr_expect_eq(e2e_qp_try(&nic, &q[1], E2E_DB, DEPTH, false), DOCA_ERROR_DRIVER);
	cr_assert_eq(gdk_get_command_error(&error), DOCA_SUCCESS);
	cr_expect_eq(error.status, 0x05);
	cr_expect_eq(error.syndrome, 0x65b500);
	cr_expect(strstr(error.status_text, "is left"), "%s", error.status_text);
	e2e_qp_close(&q[0]);
	e2e_close(&nic);
}

/* ---- the CQ's producer index after a reset ---- */

struct producer {
	bool collapsed, uneven;
	const char *behind; /* CQEs that the producer counter of QUERY_CQ lacks */
};

/*
 * Posts n writes. If uneven is set, only every second one and the last request a CQE.
 * Returns the number of CQEs.
 */
static uint32_t post_writes(struct e2e_pair *p, uint32_t n, bool uneven)
{
	uint64_t idx = 0;
	uint32_t i, cqes = 0;

	for (i = 0; i < n; i++) {
		bool signalled = !uneven || i % 2 || i + 1 == n;

		cqes += signalled;
		cr_assert_eq(gdk_reserve(p->tx.dev, 1, E2E_MODE, 0, &idx), 0);
		gdk_wqe_rdma(p->tx.dev,
			     gdk_wqe_at(gdk_get_wqe_ptr(p->tx.dev, idx), (uint16_t)idx,
					DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					signalled ? DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE : 0),
			     gdk_mem((uintptr_t)p->dst.mem, gdk_key(p->dst.mr->rkey)),
			     gdk_mem((uintptr_t)p->src.mem, gdk_key(p->src.mr->lkey)), 64);
		gdk_mark_ready(p->tx.dev, idx, idx, E2E_MODE, E2E_AUTO);
		gdk_submit(p->tx.dev, idx + 1, gdk_how(E2E_MODE, E2E_AUTO, GDK_THREAD, 0));
	}
	if (n)
		cr_assert_eq(gdk_wait_for(p->tx.dev, idx, E2E_MODE, E2E_WAIT_NS), 0);
	return cqes;
}

static void expect_producer(struct producer k)
{
	static const uint32_t rounds[] = { 5, 40, 3, 0, 57, 1 };
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	struct e2e_pair p;
	uint64_t total = 0;

	setenv("SOFTNIC_CQ_BEHIND", k.behind, 1);
	e2e_pair_open(&p, E2E_DB, DEPTH, 4096);
	if (k.collapsed) {
		e2e_qp_close(&p.tx);
		cr_assert_eq(e2e_qp_try(&p.nic, &p.tx, E2E_DB, DEPTH, true), DOCA_SUCCESS);
	}
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		e2e_qp_reset(&p.tx);
		e2e_qp_reset(&p.rx);
		cr_expect_eq(p.tx.hl->qp_gverbs->qp_cpu->cq_sq.cqe_rsvd, total,
			     "round %zu: the CQ continues at %llu, expected %llu", i,
			     (unsigned long long)p.tx.hl->qp_gverbs->qp_cpu->cq_sq.cqe_rsvd,
			     (unsigned long long)total);
		path.psn += 4096;
		cr_assert_eq(e2e_connect(&p.nic, p.tx.hl->qp, &p.nic.gid, p.rx.qpn, path), 0);
		cr_assert_eq(e2e_connect(&p.nic, p.rx.hl->qp, &p.nic.gid, p.tx.qpn, path), 0);
		total += post_writes(&p, rounds[i], k.uneven);
	}
	e2e_pair_close(&p);
}

Test(card, cq_continues_after_a_reset)
{
	expect_producer((struct producer){ .behind = "0" });
	expect_producer((struct producer){ .behind = "0", .uneven = true });
}

Test(card, collapsed_cq_continues_after_a_reset)
{
	expect_producer((struct producer){ .behind = "0", .collapsed = true });
	expect_producer((struct producer){ .behind = "0", .collapsed = true, .uneven = true });
}

Test(card, cq_with_a_late_counter_continues_after_a_reset)
{
	expect_producer((struct producer){ .behind = "4" });
}

Test(card, cq_with_a_late_counter_and_unsignalled_wqes_continues)
{
	expect_producer((struct producer){ .behind = "4", .uneven = true });
}

/* A collapsed CQ has no ring to scan, so this works only if every WQE requests a CQE. */
Test(card, collapsed_cq_with_a_late_counter_continues)
{
	expect_producer((struct producer){ .behind = "4", .collapsed = true });
}

static void expect_warning(const char *behind, bool warned)
{
	const char *log;

	capture_begin();
	expect_producer((struct producer){ .behind = behind });
	log = capture_end();
	cr_expect_eq(strstr(log, "differs from the index") != NULL, warned, "%s: %s", behind, log);
}

Test(card, counter_less_than_a_ring_late_is_not_logged)
{
	expect_warning("4", false);
}

Test(card, counter_a_ring_late_is_logged)
{
	expect_warning("20", true);
}
