/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Two QPs whose doorbell registers share one page. They ring alternately or from
 * two threads, up to a million times; GDAKI_TEST_RINGS=n changes this number. A QP
 * waits for each doorbell's completion before it rings again, so that a later doorbell
 * cannot hide a lost one. On a busy machine, where each wait takes long, a test ends after
 * BUDGET_S, but not before LEAST doorbells; it then prints their number.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../lib/e2e.h"
#include "../lib/freeze.h"

#define BUDGET_S 5
#define LEAST	 20000u

struct two {
	struct e2e_nic nic;
	/* NULL: two separate QPs that libmlx5 placed on one page */
	struct doca_gpu_verbs_qp_group_hl *group;
	struct e2e_qp qp[2];
	uint64_t recovered; /* the NIC's counter before the first doorbell */
};

static void group_open(struct two *s, enum doca_gpu_dev_verbs_nic_handler handler, uint16_t depth)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };

	attr.gpu_dev = s->nic.gpu;
	attr.net_dev = s->nic.dev;
	attr.ibpd = s->nic.pd;
	attr.sq_nwqe = depth;
	attr.nic_handler = handler;
	if (handler == E2E_NO_DBR)
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &s->group), DOCA_SUCCESS);
	e2e_qp_adopt(&s->nic, &s->qp[0], &s->group->qp_main);
	e2e_qp_adopt(&s->nic, &s->qp[1], &s->group->qp_companion);
}

static void two_open(struct two *s, enum doca_gpu_dev_verbs_nic_handler handler, uint16_t depth)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	int i;

	e2e_open(&s->nic);
	s->group = NULL;
	s->recovered = e2e_recovered();
	if (handler != E2E_BF) /* BlueFlame does not permit that QPs of a group share a register */
		group_open(s, handler, depth);
	for (i = 0; i < 2 && !s->group; i++)
		e2e_qp_open(&s->nic, &s->qp[i], handler, depth);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(
			e2e_connect(&s->nic, s->qp[i].hl->qp, &s->nic.gid, s->qp[!i].qpn, path),
			DOCA_SUCCESS);
		if (handler == E2E_PROXY)
			e2e_proxy_begin(&s->qp[i]);
	}
	if (handler != E2E_PROXY)
		cr_assert_eq((uintptr_t)s->qp[0].dev->sq_db & ~4095ul,
			     (uintptr_t)s->qp[1].dev->sq_db & ~4095ul,
			     "the QPs are on different register pages");
}

/* The register of QPs without DBREC loses no doorbell. The counter is right when the QPs are
 * destroyed: a late doorbell is not lost. */
static void two_close(struct two *s)
{
	const bool has_dbrec = s->qp[0].hl->nic_handler != E2E_NO_DBR;

	e2e_proxy_end(&s->qp[0]);
	e2e_proxy_end(&s->qp[1]);
	if (s->group) {
		cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(s->group), DOCA_SUCCESS);
	} else {
		e2e_qp_close(&s->qp[0]);
		e2e_qp_close(&s->qp[1]);
	}
	if (!has_dbrec)
		cr_expect_eq(e2e_recovered() - s->recovered, 0);
	e2e_close(&s->nic);
}

static int wait_nop(struct e2e_qp *qp, uint64_t idx)
{
	return gdk_wait_for(qp->dev, idx, E2E_EXCL, E2E_WAIT_NS);
}

static time_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Returns whether a test that has rung `rung` of `total` times has no time left. */
static bool is_late(time_t start, uint64_t rung, uint64_t total)
{
	if (rung < LEAST || now_s() - start <= BUDGET_S || getenv("GDAKI_TEST_RINGS"))
		return false;
	fprintf(stderr, "busy machine: %lu of %lu doorbells\n", (unsigned long)rung,
		(unsigned long)total);
	return true;
}

/* The QPs ring alternately. The test waits for both after each has rung. */
static void rings(enum doca_gpu_dev_verbs_nic_handler handler, uint64_t total)
{
	const time_t start = now_s();
	struct two s;
	uint64_t a, b;

	two_open(&s, handler, 64);
	for (uint64_t i = 1; i <= total / 2; i++) {
		cr_assert_eq(e2e_nop(&s.qp[0], E2E_EXCL, GDK_CE_ALWAYS, &a), 0);
		cr_assert_eq(e2e_nop(&s.qp[1], E2E_EXCL, GDK_CE_ALWAYS, &b), 0);
		cr_assert_eq(wait_nop(&s.qp[0], a), 0, "doorbell %lu of the first QP",
			     (unsigned long)i);
		cr_assert_eq(wait_nop(&s.qp[1], b), 0, "doorbell %lu of the second QP",
			     (unsigned long)i);
		if (is_late(start, 2 * i, total))
			break;
	}
	two_close(&s);
}

static uint64_t count(uint64_t otherwise)
{
	const char *s = getenv("GDAKI_TEST_RINGS");

	return s ? strtoull(s, NULL, 0) : otherwise;
}

Test(e2e_share, gpu_sm_db_loses_no_doorbell)
{
	rings(E2E_DB, count(1000000));
}

Test(e2e_share, bf_loses_no_doorbell)
{
	rings(E2E_BF, count(1000000));
}

/* Only 20000 doorbells, because the proxy thread needs CPU time for each. */
Test(e2e_share, cpu_proxy_loses_no_doorbell)
{
	rings(E2E_PROXY, count(20000));
}

Test(e2e_share, no_dbr_loses_no_doorbell)
{
	E2E_NEEDS_NO_DBR();
	rings(E2E_NO_DBR, count(20000));
}

#define STOPPED_MS 300

struct stopped {
	struct e2e_qp *qp;
	uint64_t idx;
	pthread_t thread;
	atomic_int tid;
	atomic_bool go;
	int rc;
};

/* Writes a WQE without its control flags, waits, writes the WQE with them, and rings. */
static void *stop_within(void *arg)
{
	struct stopped *s = arg;
	struct doca_gpu_dev_verbs_qp *dev = s->qp->dev;

	s->rc = gdk_reserve(dev, 1, E2E_EXCL, 0, &s->idx);
	gdk_wqe_nop(dev, gdk_get_wqe_ptr(dev, s->idx), (uint16_t)s->idx, 0);
	atomic_store(&s->tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&s->go))
		;
	gdk_wqe_nop(dev, gdk_get_wqe_ptr(dev, s->idx), (uint16_t)s->idx,
		    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE);
	gdk_mark_ready(dev, s->idx, s->idx, E2E_EXCL, E2E_AUTO);
	gdk_submit(dev, s->idx + 1, gdk_how(E2E_EXCL, E2E_AUTO, GDK_THREAD, 0));
	s->rc = s->rc ? s->rc : wait_nop(s->qp, s->idx);
	return NULL;
}

/*
 * While a thread without a core has a half-written WQE in its ring, the NIC looks for
 * lost doorbells. It must not execute this WQE before its doorbell.
 */
Test(e2e_share, no_dbr_half_written_wqe_is_not_executed)
{
	const struct timespec pause = { .tv_nsec = STOPPED_MS * 1000000l };
	struct stopped s = { 0 };
	struct freeze freeze;
	struct two two;
	bool frozen;
	uint64_t idx;

	E2E_NEEDS_NO_DBR();
	two_open(&two, E2E_NO_DBR, 64);
	s.qp = &two.qp[0];
	cr_assert_eq(pthread_create(&s.thread, NULL, stop_within, &s), 0);
	while (!atomic_load(&s.tid))
		sched_yield();
	frozen = freeze_begin(&freeze, atomic_load(&s.tid));
	cr_assert_eq(e2e_nop(&two.qp[1], E2E_EXCL, GDK_CE_ALWAYS, &idx), 0);
	cr_expect_eq(wait_nop(&two.qp[1], idx), 0);
	nanosleep(&pause, NULL);
	atomic_store(&s.go, true);
	if (frozen)
		freeze_end(&freeze);
	pthread_join(s.thread, NULL);
	cr_expect_eq(s.rc, 0);
	two_close(&two);
	if (!frozen)
		cr_skip_test("this machine does not allow tracing");
}

struct racer {
	struct e2e_qp *qp;
	uint64_t n;
	int rc;
};

static void *race_main(void *arg)
{
	struct racer *r = arg;
	uint64_t idx;

	for (uint64_t i = 0; i < r->n && !r->rc; i++) {
		r->rc = e2e_nop(r->qp, E2E_EXCL, GDK_CE_ALWAYS, &idx);
		if (!r->rc)
			r->rc = wait_nop(r->qp, idx);
	}
	return NULL;
}

/* Like rings() with window 1, but with one thread per QP, so that doorbell stores may coincide. */
static void race(enum doca_gpu_dev_verbs_nic_handler handler, uint64_t n)
{
	struct two s;
	struct racer r[2];
	pthread_t t[2];
	int i;

	two_open(&s, handler, 64);
	for (i = 0; i < 2; i++) {
		r[i] = (struct racer){ .qp = &s.qp[i], .n = n };
		cr_assert_eq(pthread_create(&t[i], NULL, race_main, &r[i]), 0);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		cr_expect_eq(r[i].rc, 0, "QP %d failed with %d", i, r[i].rc);
	}
	two_close(&s);
}

Test(e2e_share, doorbells_from_two_threads)
{
	race(E2E_DB, count(20000));
}

Test(e2e_share, doorbells_from_two_threads_without_dbrec)
{
	E2E_NEEDS_NO_DBR();
	race(E2E_NO_DBR, count(20000));
}
