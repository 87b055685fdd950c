/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Known defects 20 to 23 of NVIDIA's open-source gpunetio (see test_defects.c),
 * which concern its CPU proxy. Covers memory and stores per doorbell, service
 * threads (placement, statistics, stalls, end under load), 64-bit counters, and QPs
 * that fail before the proxy rings.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "../../doorbell/cpu_proxy.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"

TestSuite(peer_defects, .timeout = 60);

#define BYTES 4096u

static void nap_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* ---- 20: one page per QP; atomics and two stores per doorbell ---- */

Test(peer_defects, defect_20_a_proxy_queue_pair_costs_at_most_64_bytes)
{
	const size_t in_scan = sizeof(struct gdk_scan_line) / GDK_SCAN_SLOTS +
			       sizeof(struct gdk_db_qp *);
	struct e2e_qp qp[GDK_SCAN_SLOTS];
	uint64_t *first;
	struct e2e_nic nic;

	cr_expect_leq(sizeof(uint64_t) + sizeof(struct gdk_proxied) + in_scan, 64);
	e2e_open(&nic);
	for (unsigned int i = 0; i < GDK_SCAN_SLOTS; i++)
		e2e_qp_open(&nic, &qp[i], E2E_PROXY, 16);
	first = qp[0].hl->qp_gverbs->cpu_db;
	cr_expect_eq((uintptr_t)first % 64, 0);
	for (unsigned int i = 0; i < GDK_SCAN_SLOTS; i++)
		cr_expect_eq(qp[i].hl->qp_gverbs->cpu_db, first + i,
			     "eight counters must share a cache line");
	for (unsigned int i = 0; i < GDK_SCAN_SLOTS; i++)
		e2e_qp_close(&qp[i]);
	e2e_close(&nic);
}

#if defined(__x86_64__) && !defined(GDK_SAN)
#define TRAP_FLAG 0x100
static void *watched;
static volatile unsigned int stores;

/*
 * SIGSEGV: a store to the write-protected page. Counts it, permits writes and single-
 * steps the instruction. SIGTRAP: protects the page again after this instruction.
 */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (sig == SIGTRAP) {
		uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
		mprotect(watched, 4096, PROT_READ);
		return;
	}
	if (((uintptr_t)info->si_addr & ~4095ul) != (uintptr_t)watched)
		abort();
	stores++;
	mprotect(watched, 4096, PROT_READ | PROT_WRITE);
	uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void watch_page_of(const void *addr)
{
	struct sigaction act = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	watched = (void *)((uintptr_t)addr & ~4095ul);
	cr_assert_eq(sigaction(SIGSEGV, &act, NULL) | sigaction(SIGTRAP, &act, NULL), 0);
	cr_assert_eq(mprotect(watched, 4096, PROT_READ), 0);
}

/* Sets the counter to its maximum first, so that only a plain store leaves idx + 1 in it. */
Test(peer_defects, defect_20_a_doorbell_is_one_plain_store)
{
	static const gdk_mode_t modes[] = { E2E_EXCL, E2E_MODE };
	struct e2e_qp qp;
	struct e2e_nic nic;
	uint64_t idx;

	e2e_open(&nic);
	e2e_qp_open(&nic, &qp, E2E_PROXY, 16);
	for (uint64_t i = 0; i < 8; i++) {
		gdk_mode_t mode = modes[i / 4];

		cr_assert_eq(gdk_reserve(qp.dev, 1, mode, 0, &idx), 0);
		gdk_wqe_nop(qp.dev, gdk_get_wqe_ptr(qp.dev, idx), (uint16_t)idx, 0);
		*qp.hl->qp_gverbs->cpu_db = UINT64_MAX;
		stores = 0;
		watch_page_of(qp.hl->qp_gverbs->cpu_db);
		gdk_mark_ready(qp.dev, idx, idx, mode, E2E_AUTO);
		gdk_submit(qp.dev, idx + 1, gdk_how(mode, E2E_AUTO, GDK_THREAD, 0));
		mprotect(watched, 4096, PROT_READ | PROT_WRITE);
		cr_expect_eq(stores, 1, "submission %d made %u stores", (int)i, stores);
		cr_expect_eq(*qp.hl->qp_gverbs->cpu_db, idx + 1);
	}
	e2e_qp_close(&qp);
	e2e_close(&nic);
}
#endif

/*
 * ---- 21: the service spins forever, keeps its QPs, cannot stop under load, and has no
 * placement or statistics ----
 */

struct load {
	struct e2e_qp *qp;
	atomic_bool stop;
};

/* Raises the counter continuously, as a GPU would that does not wait for completions. */
static void *keep_raising(void *arg)
{
	struct load *l = arg;
	uint64_t *db = l->qp->hl->qp_gverbs->cpu_db;

	for (uint64_t pi = 1; !atomic_load(&l->stop); pi++)
		__atomic_store_n(db, pi, __ATOMIC_RELEASE);
	return NULL;
}

/* Unmonitoring a QP and destroying the service must end while the counters of all QPs rise. */
Test(peer_defects, defect_21_unmonitor_and_destroy_end_under_load)
{
	enum { QPS = 3 };
	doca_gpu_verbs_service_t service;
	struct load load[QPS];
	struct e2e_qp qp[QPS];
	uint64_t reg[QPS];
	pthread_t t[QPS];
	struct e2e_nic nic;

	e2e_open(&nic);
	for (int i = 0; i < QPS; i++) {
		e2e_qp_open(&nic, &qp[i], E2E_PROXY, 16);
		qp[i].hl->qp_gverbs->sq_db = &reg[i]; /* plain memory instead of a register */
		load[i].qp = &qp[i];
		atomic_store(&load[i].stop, false);
		cr_assert_eq(pthread_create(&t[i], NULL, keep_raising, &load[i]), 0);
	}
	for (int round = 0; round < 30; round++) {
		cr_assert_eq(doca_gpu_verbs_create_service(&service), DOCA_SUCCESS);
		for (int i = 0; i < QPS; i++)
			cr_assert_eq(
				doca_gpu_verbs_service_monitor_qp(service, qp[i].hl->qp_gverbs),
				DOCA_SUCCESS);
		cr_assert_eq(gdk_verbs_service_unmonitor_qp(service, qp[round % QPS].hl->qp_gverbs),
			     DOCA_SUCCESS);
		cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	}
	for (int i = 0; i < QPS; i++) {
		atomic_store(&load[i].stop, true);
		pthread_join(t[i], NULL);
		e2e_qp_close(&qp[i]);
	}
	e2e_close(&nic);
}

/* Returns the number of the service's threads and lists the CPUs on which each may run. */
static int service_threads(char *cpus, size_t len)
{
	char cmd[256], line[64];
	size_t used = 0;
	FILE *p;
	int n = 0;

	snprintf(cmd, sizeof(cmd),
		 "for t in /proc/%d/task/*; do grep -q gdaki-proxy $t/comm && "
		 "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' $t/status; done 2>/dev/null | "
		 "sort -n",
		 (int)getpid());
	p = popen(cmd, "r");
	cr_assert(p);
	for (; fgets(line, sizeof(line), p) && used < len; n++)
		used += (size_t)snprintf(cpus + used, len - used, "%s%.*s", n ? " " : "",
					 (int)strcspn(line, "\n"), line);
	pclose(p);
	return n;
}

static bool placed_on(const char *want, int threads)
{
	char cpus[64] = "";

	for (int ms = 0; ms < 5000; ms++, nap_ms(1))
		if (service_threads(cpus, sizeof(cpus)) == threads && !strcmp(cpus, want))
			return true;
	fprintf(stderr, "service threads on CPUs %s, expected %s\n", cpus, want);
	return false;
}

/* Replaces numa_node_to_cpus of libnuma: every node has only this CPU. */
static unsigned int only_cpu;

int numa_node_to_cpus(int node, struct bitmask *mask)
{
	(void)node;
	numa_bitmask_setbit(numa_bitmask_clearall(mask), only_cpu);
	return 0;
}

static void expect_placed(const struct gdk_service_attr *attr, struct e2e_qp *qp, const char *want)
{
	doca_gpu_verbs_service_t service;

	cr_assert_eq(gdk_verbs_service_create(attr, &service), DOCA_SUCCESS);
	doca_gpu_verbs_service_monitor_qp(service, qp->hl->qp_gverbs);
	cr_expect(placed_on(want, (int)attr->threads));
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
}

Test(peer_defects, defect_21_threads_and_counters_are_near_the_nic)
{
	struct gdk_service_attr attr = { .threads = 1 };
	doca_gpu_verbs_service_t service;
	unsigned long mask[64] = { 0 };
	unsigned int first = 0;
	struct e2e_nic nic;
	struct e2e_qp qp;
	char list[32], each[32];
	int mode;

	while (!numa_bitmask_isbitset(numa_all_cpus_ptr, first))
		first++;
	for (only_cpu = first + 1; only_cpu < numa_all_cpus_ptr->size; only_cpu++)
		if (numa_bitmask_isbitset(numa_all_cpus_ptr, only_cpu))
			break;
	if (only_cpu == numa_all_cpus_ptr->size)
		only_cpu = first;
	e2e_open(&nic);
	nic.dev->numa_node = 0;
	e2e_qp_open(&nic, &qp, E2E_PROXY, 16);
	if (!get_mempolicy(&mode, mask, sizeof(mask) * 8, qp.hl->qp_gverbs->cpu_db, MPOL_F_ADDR)) {
		cr_expect_eq(mode, MPOL_PREFERRED);
		cr_expect_eq(mask[0], 1);
	}
	snprintf(list, sizeof(list), "%u", only_cpu);
	expect_placed(&attr, &qp, list);
	attr.threads = 3;
	attr.cpus = list;
	snprintf(list, sizeof(list), "%u,%u", first, only_cpu);
	snprintf(each, sizeof(each), "%u %u %u", first, first, only_cpu);
	if (first != only_cpu)
		expect_placed(&attr, &qp, each);
	attr.cpus = NULL;
	attr.threads = 1;
	snprintf(list, sizeof(list), "%u", first);
	setenv("GDAKI_PROXY_CPUS", list, 1);
	expect_placed(&attr, &qp, list);
	attr.cpus = "8191";
	cr_expect_eq(gdk_verbs_service_create(&attr, &service), DOCA_ERROR_INVALID_VALUE);
	attr.cpus = "";
	cr_expect_eq(gdk_verbs_service_create(&attr, &service), DOCA_ERROR_INVALID_VALUE);
	e2e_qp_close(&qp);
	e2e_close(&nic);
}

static void *hog(void *stop)
{
	while (!atomic_load((atomic_bool *)stop))
		;
	return NULL;
}

/* The service shares its only CPU with a busy thread; it must count and log gaps above 1 ms. */
Test(peer_defects, defect_21_late_service_is_logged)
{
	struct gdk_service_attr attr = { .nap_max_us = 1, .stall_ms = 1 };
	struct gdk_service_stats st = { 0 };
	atomic_bool stop = false;
	bool late = false;
	const char *log;
	doca_gpu_verbs_service_t service;
	struct e2e_nic nic;
	struct e2e_qp qp;
	pthread_t t;
	cpu_set_t one;
	char cpu[16];
	uint64_t reg;

	snprintf(cpu, sizeof(cpu), "%d", sched_getcpu());
	attr.cpus = cpu;
	CPU_ZERO(&one);
	CPU_SET((size_t)strtoul(cpu, NULL, 10), &one);
	e2e_open(&nic);
	e2e_qp_open(&nic, &qp, E2E_PROXY, 16);
	qp.hl->qp_gverbs->sq_db = &reg;
	capture_begin();
	cr_assert_eq(gdk_verbs_service_create(&attr, &service), DOCA_SUCCESS);
	doca_gpu_verbs_service_monitor_qp(service, qp.hl->qp_gverbs);
	cr_assert_eq(pthread_create(&t, NULL, hog, &stop), 0);
	pthread_setaffinity_np(t, sizeof(one), &one);
	for (uint64_t pi = 1; st.stalls < 3 || !late; pi++) {
		__atomic_store_n(qp.hl->qp_gverbs->cpu_db, pi, __ATOMIC_RELEASE);
		nap_ms(3);
		cr_assert_eq(gdk_verbs_service_get_stats(service, &st), DOCA_SUCCESS);
		late |= st.late_threads == 1;
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	cr_expect_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	log = capture_end();
	cr_expect(strstr(log, "ms, and doorbells waited for it (1 times"), "log: %s", log);
	cr_expect(strstr(log, "(2 times") && !strstr(log, "(3 times"), "log: %s", log);
	cr_expect_gt(st.worst_gap_ns, 1000000);
	e2e_qp_close(&qp);
	e2e_close(&nic);
}

Test(peer_defects, defect_21_idle_service_sleeps)
{
	struct gdk_service_attr attr = { .threads = 3 };
	struct gdk_service_stats st = { 0 };
	doca_gpu_verbs_service_t service;

	cr_assert_eq(gdk_verbs_service_create(&attr, &service), DOCA_SUCCESS);
	while (st.sleeps == 0 || st.yields == 0) {
		nap_ms(1);
		cr_assert_eq(gdk_verbs_service_get_stats(service, &st), DOCA_SUCCESS);
	}
	cr_expect_eq(st.threads, 3);
	cr_expect_eq(st.qps, 0);
	cr_expect_eq(st.rings, 0);
	cr_expect_eq(st.stalls, 0);
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
}

/* ---- 22: only 32 bits of the 64-bit counter are compared ---- */

Test(peer_defects, defect_22_indices_have_64_bits)
{
	struct gdk_service_attr attr = { .nap_max_us = 1 };
	doca_gpu_verbs_service_t service;
	struct doca_gpu_verbs_qp *q;
	struct e2e_nic nic;
	struct e2e_qp qp;
	uint64_t reg = 0;

	e2e_open(&nic);
	e2e_qp_open(&nic, &qp, E2E_PROXY, 16);
	q = qp.hl->qp_gverbs;
	q->sq_db = &reg;
	cr_assert_eq(gdk_verbs_service_create(&attr, &service), DOCA_SUCCESS);
	for (uint64_t pi = 5; pi < 5 + (8ull << 32); pi += 1ull << 32) {
		cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, q), DOCA_SUCCESS);
		__atomic_store_n(&reg, 0, __ATOMIC_RELEASE);
		__atomic_store_n(q->cpu_db, pi, __ATOMIC_RELEASE);
		cr_assert_eq(gdk_verbs_service_unmonitor_qp(service, q), DOCA_SUCCESS);
		cr_expect_eq(q->sq_wqe_pi_last, pi);
		cr_expect_eq(be32toh((uint32_t)__atomic_load_n(&reg, __ATOMIC_ACQUIRE)) >> 8, 5,
			     "wrong register value at index %llx", (unsigned long long)pi);
	}
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	e2e_qp_close(&qp);
	e2e_close(&nic);
}

/* ---- 23: with a stopped proxy and a QP in error, completions never arrive ---- */

static void to_error(struct e2e_qp *qp)
{
	doca_verbs_qp_attr_t *attr;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_ERR);
	cr_assert_eq(doca_verbs_qp_modify(qp->hl->qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE),
		     DOCA_SUCCESS);
	doca_verbs_qp_attr_destroy(attr);
}

/* Posts three puts while no proxy runs, and moves the QP to the error state. */
static void post_three_unrung(struct e2e_pair *p, doca_gpu_dev_verbs_ticket_t *t)
{
	e2e_pair_open(p, E2E_PROXY, 16, BYTES);
	e2e_proxy_end(&p->tx);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(e2e_put(p, (size_t)i * 64, 64, &t[i]), 0);
	to_error(&p->tx);
}

/* When a service then monitors the QP, it must ring the puts, so that the NIC flushes all three. */
Test(peer_defects, defect_23_later_service_rings_so_that_the_nic_flushes)
{
	doca_gpu_dev_verbs_ticket_t t[3];
	doca_gpu_verbs_service_t service;
	struct e2e_pair p;

	post_three_unrung(&p, t);
	cr_assert_eq(doca_gpu_verbs_create_service(&service), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, p.tx.hl->qp_gverbs), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(e2e_wait(&p.tx, t[i]), -EIO, "put %d", i);
	e2e_pair_close(&p);
}

/*
 * Without a service, a wait with a time limit must end at the limit, and destroying the QP must
 * log the pending doorbells.
 */
Test(peer_defects, defect_23_without_a_proxy_waits_end_and_lost_doorbells_are_logged)
{
	doca_gpu_dev_verbs_ticket_t t[3];
	struct e2e_pair p;
	char want[96];
	int err;

	post_three_unrung(&p, t);
	err = gdk_wait_for(p.tx.dev, t[0], E2E_MODE, 20000000);
	cr_expect_eq(err, -ETIMEDOUT, "status %d", err);
	snprintf(want, sizeof(want), "QP 0x%x: doorbells up to index 3 are pending", p.tx.qpn);
	capture_begin();
	e2e_pair_close(&p);
	cr_expect_neq(strstr(capture_end(), want), NULL);
}
