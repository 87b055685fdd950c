/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The proxy service: membership, drain guarantee, idleness, an end that comes. */
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "../../qp/export.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"

#define QPS 4
#define REPEATS 200

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_hl *hl[QPS];
static uint64_t reg[QPS];
static doca_gpu_verbs_service_t service;

static void open_all(void)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {.sq_nwqe = 16, .nic_handler = E2E_PROXY};

	e2e_open(&nic);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.ibpd = nic.pd;
	for (int i = 0; i < QPS; i++) {
		cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[i]), DOCA_SUCCESS);
		hl[i]->qp_gverbs->sq_db = &reg[i];
	}
	cr_assert_eq(doca_gpu_verbs_create_service(&service), DOCA_SUCCESS);
}

static void close_all(void)
{
	for (int i = 0; i < QPS; i++)
		if (hl[i])
			doca_gpu_verbs_destroy_qp_hl(hl[i]);
	if (service)
		cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	e2e_close(&nic);
}

TestSuite(service, .init = open_all, .fini = close_all, .timeout = 20);

static void post(int i, uint64_t pi)
{
	__atomic_store_n(hl[i]->qp_gverbs->cpu_db, pi, __ATOMIC_RELEASE);
}

static uint32_t rung(int i)
{
	uint64_t v = __atomic_load_n(&reg[i], __ATOMIC_ACQUIRE);

	return be32toh((uint32_t)v) >> 8;
}

static bool rung_within(int i, uint32_t pi, int ms)
{
	struct timespec nap = {.tv_nsec = 1000000};

	while (ms-- > 0 && rung(i) != pi)
		nanosleep(&nap, NULL);
	return rung(i) == pi;
}

Test(service, rings_for_all_it_monitors)
{
	for (int i = 0; i < QPS; i++)
		cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, hl[i]->qp_gverbs),
			     DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs), DOCA_SUCCESS,
		     "twice is once");
	for (int i = 0; i < QPS; i++)
		post(i, 10 + (uint64_t)i);
	for (int i = 0; i < QPS; i++)
		cr_assert(rung_within(i, 10 + (uint32_t)i, 3000), "QP %d", i);
}

Test(service, unmonitor_has_rung_what_was_posted)
{
	for (uint32_t n = 1; n <= REPEATS; n++) {
		doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs);
		post(0, n);
		cr_assert_eq(gdk_verbs_service_unmonitor_qp(service, hl[0]->qp_gverbs),
			     DOCA_SUCCESS);
		cr_assert_eq(rung(0), n, "the drain guarantee");
	}
	post(0, 5000);
	cr_assert_not(rung_within(0, 5000, 30), "it is not looked at any more");
	cr_assert_eq(gdk_verbs_service_unmonitor_qp(service, hl[0]->qp_gverbs),
		     DOCA_ERROR_NOT_FOUND);
}

Test(service, unexport_leaves_first)
{
	struct gdk_service_stats st;

	doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs);
	doca_gpu_verbs_service_monitor_qp(service, hl[1]->qp_gverbs);
	post(0, 3);
	doca_gpu_verbs_destroy_qp_hl(hl[0]);
	hl[0] = NULL;
	cr_assert_eq(rung(0), 3);
	post(1, 4);
	cr_assert(rung_within(1, 4, 3000), "the others go on");
	cr_assert_eq(gdk_verbs_service_get_stats(service, &st), DOCA_SUCCESS);
	cr_assert_eq(st.qps, 1);
	cr_assert_geq(st.rings, 2);
}

Test(service, destroy_with_members_drains_them)
{
	doca_gpu_verbs_service_t other;

	cr_assert_eq(doca_gpu_verbs_create_service(&other), DOCA_SUCCESS);
	doca_gpu_verbs_service_monitor_qp(other, hl[2]->qp_gverbs);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, hl[2]->qp_gverbs),
		     DOCA_ERROR_IN_USE);
	post(2, 77);
	cr_assert_eq(doca_gpu_verbs_destroy_service(other), DOCA_SUCCESS);
	cr_assert_eq(rung(2), 77);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, hl[2]->qp_gverbs), DOCA_SUCCESS);
}

Test(service, an_idle_service_sleeps_and_wakes)
{
	struct timespec nap = {.tv_nsec = 300000000};
	struct gdk_service_stats st;

	doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs);
	nanosleep(&nap, NULL);
	cr_assert_eq(gdk_verbs_service_get_stats(service, &st), DOCA_SUCCESS);
	cr_assert_gt(st.yields, 0);
	cr_assert_gt(st.sleeps, 0);
	post(0, 1);
	cr_assert(rung_within(0, 1, 3000));
}

Test(service, wants_a_proxy_qp)
{
	struct e2e_qp plain;

	e2e_qp_open(&nic, &plain, E2E_DB, 16);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, plain.hl->qp_gverbs),
		     DOCA_ERROR_NOT_SUPPORTED);
	e2e_qp_close(&plain);
}

/* ---- the environment's defaults ---- */

static const struct {
	const char *name, *value;
	uint32_t asked; /* attr.threads */
	uint32_t threads; /* 0: refused */
	bool said;
} env_cases[] = {
	{ "GDAKI_PROXY_THREADS", "3", 0, 3, false },
	{ "GDAKI_PROXY_THREADS", "16", 0, 16, false },
	{ "GDAKI_PROXY_THREADS", "3", 2, 2, false },
	{ "GDAKI_PROXY_THREADS", "", 0, 1, false },
	{ "GDAKI_PROXY_THREADS", "0", 0, 1, true },
	{ "GDAKI_PROXY_THREADS", "17", 0, 1, true },
	{ "GDAKI_PROXY_THREADS", "-1", 0, 1, true },
	{ "GDAKI_PROXY_THREADS", "2 or 3", 0, 1, true },
	{ "GDAKI_PROXY_NAP_US", "50", 0, 1, false },
	{ "GDAKI_PROXY_NAP_US", "1ms", 0, 1, true },
	{ "GDAKI_PROXY_NAP_US", "99999999999", 0, 1, true },
	{ "GDAKI_PROXY_CPUS", "", 0, 1, false },
	{ "GDAKI_PROXY_CPUS", "8191", 0, 0, true },
	{ "GDAKI_PROXY_CPUS", "fast ones", 0, 0, true },
};

Test(service, what_the_environment_says_is_taken_or_refused_by_its_name)
{
	for (size_t i = 0; i < sizeof(env_cases) / sizeof(env_cases[0]); i++) {
		const struct gdk_service_attr attr = { .threads = env_cases[i].asked };
		const char *name = env_cases[i].name, *value = env_cases[i].value, *log;
		struct gdk_service_stats st = { 0 };
		doca_gpu_verbs_service_t made = NULL;

		setenv(name, value, 1);
		capture_begin();
		(void)gdk_verbs_service_create(&attr, &made);
		log = capture_end();
		unsetenv(name);
		cr_expect_eq(strstr(log, name) != NULL, env_cases[i].said, "%s=%s: %s", name, value,
			     log);
		cr_expect_eq(made != NULL, env_cases[i].threads != 0, "%s=%s", name, value);
		if (!made)
			continue;
		cr_expect_eq(gdk_verbs_service_get_stats(made, &st), DOCA_SUCCESS);
		cr_expect_eq(st.threads, env_cases[i].threads, "%s=%s: %u", name, value,
			     st.threads);
		cr_expect_eq(doca_gpu_verbs_destroy_service(made), DOCA_SUCCESS);
	}
}
