/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The proxy service: adding and removing QPs, the guarantee that pending doorbells
 * are rung before a QP is removed, idle behaviour, assignment of QPs to threads,
 * statistics, and defaults from the environment.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../qp/export/export.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"

#define QPS	24 /* counters in three cache lines */
#define REPEATS 200

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_hl *hl[QPS];
static uint64_t reg[QPS];
static doca_gpu_verbs_service_t service;

static void open_all(void)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = 16, .nic_handler = E2E_PROXY };

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

TestSuite(service, .init = open_all, .fini = close_all, .timeout = 60);

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
	struct timespec nap = { .tv_nsec = 1000000 };

	while (ms-- > 0 && rung(i) != pi)
		nanosleep(&nap, NULL);
	return rung(i) == pi;
}

Test(service, rings_for_all_monitored_qps)
{
	for (int i = 0; i < QPS; i++)
		cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, hl[i]->qp_gverbs),
			     DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs), DOCA_SUCCESS,
		     "adding a QP twice must succeed");
	for (int i = 0; i < QPS; i++)
		post(i, 10 + (uint64_t)i);
	for (int i = 0; i < QPS; i++)
		cr_assert(rung_within(i, 10 + (uint32_t)i, 3000), "QP %d was not rung", i);
}

Test(service, unmonitor_rings_pending_doorbells)
{
	for (uint32_t n = 1; n <= REPEATS; n++) {
		doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs);
		post(0, n);
		cr_assert_eq(gdk_verbs_service_unmonitor_qp(service, hl[0]->qp_gverbs),
			     DOCA_SUCCESS);
		cr_assert_eq(rung(0), n, "unmonitor must ring pending doorbells first");
	}
	post(0, 5000);
	cr_assert_not(rung_within(0, 5000, 30), "a QP that left must not be rung");
	cr_assert_eq(gdk_verbs_service_unmonitor_qp(service, hl[0]->qp_gverbs),
		     DOCA_ERROR_NOT_FOUND);
}

Test(service, unexport_removes_the_qp_from_the_service)
{
	struct gdk_service_stats st;

	doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs);
	doca_gpu_verbs_service_monitor_qp(service, hl[1]->qp_gverbs);
	post(0, 3);
	doca_gpu_verbs_destroy_qp_hl(hl[0]);
	hl[0] = NULL;
	cr_assert_eq(rung(0), 3);
	post(1, 4);
	cr_assert(rung_within(1, 4, 3000), "the other QPs must still be rung");
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
	cr_assert_eq(gdk_verbs_service_unmonitor_qp(service, hl[2]->qp_gverbs),
		     DOCA_ERROR_NOT_FOUND);
	post(2, 77);
	cr_assert_eq(doca_gpu_verbs_destroy_service(other), DOCA_SUCCESS);
	cr_assert_eq(rung(2), 77);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, hl[2]->qp_gverbs), DOCA_SUCCESS);
}

static struct gdk_service_stats stats_of(doca_gpu_verbs_service_t of)
{
	struct gdk_service_stats st;

	cr_assert_eq(gdk_verbs_service_get_stats(of, &st), DOCA_SUCCESS);
	return st;
}

static void nap_ms(unsigned int ms)
{
	struct timespec nap = { .tv_nsec = (long)ms * 1000000 };

	nanosleep(&nap, NULL);
}

/*
 * Naps become longer: if all were as long as the first, there would be thousands.
 * After a doorbell, the thread spins and yields again.
 */
Test(service, idle_service_sleeps_and_wakes)
{
	const uint64_t begin = e2e_now_ns();
	struct gdk_service_stats st;

	doca_gpu_verbs_service_monitor_qp(service, hl[0]->qp_gverbs);
	do { /* until naps of the full length, 1 ms, are most of them */
		nap_ms(1);
		st = stats_of(service);
	} while (st.sleeps < 64 * 8);
	cr_assert_gt(st.yields, 0);
	cr_expect_leq(st.sleeps, 64 * 6 + (e2e_now_ns() - begin) / 1000000, "%lu naps are too many",
		      st.sleeps);
	post(0, 1);
	cr_assert(rung_within(0, 1, 3000));
	while (stats_of(service).yields == st.yields)
		nap_ms(1);
}

/* Naps double in length every 64 naps: without the limit, the 960th would last half a second. */
Test(service, naps_do_not_exceed_nap_max_us)
{
	const struct gdk_service_attr attr = { .nap_max_us = 20 };
	doca_gpu_verbs_service_t short_naps;

	cr_assert_eq(gdk_verbs_service_create(&attr, &short_naps), DOCA_SUCCESS);
	while (stats_of(short_naps).sleeps < 64 * 15)
		nap_ms(1);
	cr_assert_eq(doca_gpu_verbs_destroy_service(short_naps), DOCA_SUCCESS);
}

/* A thread that naps for the permitted time is not late. */
Test(service, long_nap_is_not_a_stall)
{
	const struct gdk_service_attr attr = { .nap_max_us = 10000000, .stall_ms = 1 };
	doca_gpu_verbs_service_t naps;

	cr_assert_eq(gdk_verbs_service_create(&attr, &naps), DOCA_SUCCESS);
	doca_gpu_verbs_service_monitor_qp(naps, hl[0]->qp_gverbs);
	while (stats_of(naps).sleeps < 64 * 8) /* enough naps to grow from 20 us to 2.6 ms */
		nap_ms(1);
	post(0, 1);
	cr_expect(rung_within(0, 1, 3000));
	cr_expect_eq(stats_of(naps).stalls, 0);
	cr_expect_eq(stats_of(naps).late_threads, 0);
	cr_assert_eq(doca_gpu_verbs_destroy_service(naps), DOCA_SUCCESS);
	cr_expect_eq(rung(0), 1);
}

/* ---- assignment of QPs to threads ---- */

static void *thread_of(int i)
{
	return gdk_to_db_qp(hl[i]->qp_gverbs)->proxy.worker;
}

/*
 * All counters of a cache line are served by one thread, and a thread serves NICs
 * of one NUMA node if possible.
 */
Test(service, qps_are_assigned_by_cache_line_and_node)
{
	const struct gdk_service_attr attr = { .threads = 2 };
	doca_gpu_verbs_service_t two;

	cr_assert_eq(gdk_verbs_service_create(&attr, &two), DOCA_SUCCESS);
	for (int i = 0; i < QPS; i++) {
		nic.dev->numa_node = i / 8 % 2; /* as if there were NICs on two nodes */
		if (i < 9 || i >= 16)
			cr_assert_eq(doca_gpu_verbs_service_monitor_qp(two, hl[i]->qp_gverbs),
				     DOCA_SUCCESS);
		post(i, 5);
	}
	for (int i = 0; i < 8; i++)
		cr_expect_eq(thread_of(i), thread_of(0),
			     "QP %d is served by another thread than QP 0", i);
	cr_expect_neq(thread_of(8), thread_of(0));
	cr_expect_eq(thread_of(16), thread_of(0),
		     "the same node counts more than the number of QPs");
	cr_assert_eq(doca_gpu_verbs_destroy_service(two), DOCA_SUCCESS);
	for (int i = 0; i < QPS; i++) {
		cr_expect_null(thread_of(i), "QP %d still has a thread", i);
		cr_expect_eq(rung(i), i < 9 || i >= 16 ? 5 : 0, "QP %d: wrong index rung", i);
	}
}

Test(service, qp_is_assigned_to_the_thread_with_fewest)
{
	const struct gdk_service_attr attr = { .threads = 3 };
	doca_gpu_verbs_service_t three;

	cr_assert_eq(gdk_verbs_service_create(&attr, &three), DOCA_SUCCESS);
	for (int i = 0; i < QPS; i += 8)
		cr_assert_eq(doca_gpu_verbs_service_monitor_qp(three, hl[i]->qp_gverbs),
			     DOCA_SUCCESS);
	cr_expect(thread_of(0) != thread_of(8) && thread_of(8) != thread_of(16) &&
		  thread_of(16) != thread_of(0));
	cr_assert_eq(doca_gpu_verbs_destroy_service(three), DOCA_SUCCESS);
}

static uint64_t rings_of_all(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < QPS; i++)
		sum += gdk_to_db_qp(hl[i]->qp_gverbs)->proxy.rings;
	return sum;
}

/*
 * The sum of the doorbells of all QPs must be the service's total, whether a thread of
 * the service or the removal of a QP rang them.
 */
Test(service, statistics_are_sums_over_threads_and_qps)
{
	const struct gdk_service_attr attr = { .threads = 2 };
	struct gdk_service_stats st;
	doca_gpu_verbs_service_t two;

	cr_assert_eq(gdk_verbs_service_create(&attr, &two), DOCA_SUCCESS);
	for (int i = 0; i < QPS; i++)
		cr_assert_eq(doca_gpu_verbs_service_monitor_qp(two, hl[i]->qp_gverbs),
			     DOCA_SUCCESS);
	cr_expect_eq(stats_of(two).qps, QPS);
	for (uint64_t pi = 1; pi < 100; pi++)
		for (int i = 0; i < QPS; i++)
			post(i, pi);
	for (int i = 0; i < QPS; i++)
		cr_expect(rung_within(i, 99, 3000), "QP %d was not rung", i);
	st = stats_of(two);
	cr_expect_gt(st.passes, 0);
	cr_expect_leq(st.yields + st.sleeps, st.passes);
	while (stats_of(two).passes == st.passes)
		nap_ms(1);
	for (int i = 0; i < QPS; i++) {
		post(i, 100);
		cr_assert_eq(gdk_verbs_service_unmonitor_qp(two, hl[i]->qp_gverbs), DOCA_SUCCESS);
	}
	cr_expect_eq(stats_of(two).rings, rings_of_all());
	cr_expect_geq(rings_of_all(), 2 * QPS);
	cr_expect_eq(stats_of(two).qps, 0);
	cr_assert_eq(doca_gpu_verbs_destroy_service(two), DOCA_SUCCESS);
}

/* The threads of the service and of the watch block signals, so that the application's own
 * threads get them: the thread that created those keeps its mask. */
Test(service, threads_block_signals)
{
	char path[64], line[128];
	unsigned long long blocked;
	unsigned int threads = 0;
	struct dirent *e;
	bool library;
	FILE *file;
	DIR *d;

	cr_assert((d = opendir("/proc/self/task")));
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", e->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		cr_assert(fgets(line, sizeof(line), file));
		library = strstr(line, "gdaki-proxy") || strstr(line, "gdaki-watch");
		blocked = 0;
		while (fgets(line, sizeof(line), file))
			if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
				break;
		if (library)
			cr_expect(blocked >> (SIGUSR1 - 1) & blocked >> (SIGINT - 1) & 1,
				  "blocked signals: %llx", blocked);
		else if (atoi(e->d_name) == gettid())
			cr_expect_eq(blocked, 0, "of the caller: %llx", blocked);
		threads += library;
		fclose(file);
	}
	closedir(d);
	cr_expect_eq(threads, 2);
}

Test(service, other_handlers_are_refused)
{
	struct e2e_qp plain;

	e2e_qp_open(&nic, &plain, E2E_DB, 16);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, plain.hl->qp_gverbs),
		     DOCA_ERROR_NOT_SUPPORTED);
	e2e_qp_close(&plain);
}

/* ---- defaults from the environment ---- */

static const struct {
	const char *name, *value;
	uint32_t asked;	  /* attr.threads */
	uint32_t threads; /* 0: creation refused */
	bool logged;
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

Test(service, environment_defaults_are_used_or_reported)
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
		cr_expect_eq(strstr(log, name) != NULL, env_cases[i].logged, "%s=%s: wrong log: %s",
			     name, value, log);
		cr_expect_eq(made != NULL, env_cases[i].threads != 0,
			     "%s=%s: wrong result of creation", name, value);
		if (!made)
			continue;
		cr_expect_eq(gdk_verbs_service_get_stats(made, &st), DOCA_SUCCESS);
		cr_expect_eq(st.threads, env_cases[i].threads, "%s=%s: %u threads", name, value,
			     st.threads);
		cr_expect_eq(doca_gpu_verbs_destroy_service(made), DOCA_SUCCESS);
	}
}
