/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Messages and statuses for two mistakes: no CPU thread rings the doorbells of a QP, and a
 * kernel uses a QP that is not connected. Also the thread that watches for them.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "../../qp/export.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/standin.h"
#include "wait_rig.h"

#define GPU_NO_REG "8a:00.0" /* GPU 0 of the stand-in */
#define MS	   1000000ull
#define UNSERVED   "no CPU thread has rung its doorbells"
#define REFUSED	   "ended with -ENOTCONN"
#define EMULATED   DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED

static struct e2e_pair p;

TestSuite(watch, .timeout = 60);

static void nap_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static unsigned int times(const char *log, const char *what)
{
	unsigned int n = 0;

	while ((log = strstr(log, what))) {
		log++;
		n++;
	}
	return n;
}

/* Number of threads of this process that watch queue pairs. */
static unsigned int watchers(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	unsigned int n = 0;
	char path[300], name[32];
	FILE *comm;

	cr_assert(tasks);
	while ((task = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		comm = fopen(path, "r");
		if (!comm)
			continue;
		n += fgets(name, sizeof(name), comm) && !strcmp(name, "gdaki-watch\n");
		fclose(comm);
	}
	closedir(tasks);
	return n;
}

static struct doca_gpu_verbs_qp *gverbs(void)
{
	return p.tx.hl->qp_gverbs;
}

/* ---- doorbells that the CPU must ring ---- */

/* A connected pair without a thread that rings for tx. */
static void open_unserved(void)
{
	e2e_pair_open(&p, E2E_PROXY, 16, 4096);
	e2e_proxy_end(&p.tx);
}

static void put(doca_gpu_dev_verbs_ticket_t *t)
{
	cr_assert_eq(e2e_put(&p, 0, 64, t), 0);
}

Test(watch, unserved_doorbells_are_reported_and_end_a_wait_with_ehostdown)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_qp_counters c;
	uint64_t start, took;
	const char *log;
	char name[24];
	int err;

	open_unserved();
	snprintf(name, sizeof(name), "QP 0x%x: ", p.tx.qpn);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(gverbs(), 950 * MS), DOCA_SUCCESS);
	put(&t);
	put(&t);
	capture_begin();
	start = e2e_now_ns();
	err = gdk_wait(p.tx.dev, t, E2E_MODE);
	took = e2e_now_ns() - start;
	log = capture_end();
	cr_expect_eq(err, -EHOSTDOWN, "status %d", err);
	cr_expect_eq(gdk_wait(p.tx.dev, 0, E2E_MODE), -EHOSTDOWN, "the status must be sticky");
	cr_expect_geq(took, 949 * MS, "the wait must take its whole limit");
	cr_expect_eq(times(log, UNSERVED), 1, "log within a second: %s", log);
	cr_expect(strstr(log, name) && strstr(log, "pending up to index 2, rung up to 0") &&
			  strstr(log, "no service monitors it: call doca_gpu_verbs_create_service"),
		  "log: %s", log);
	cr_assert_eq(gdk_verbs_qp_get_counters(gverbs(), &c), DOCA_SUCCESS);
	cr_expect_eq(c.status, -EHOSTDOWN);
	e2e_pair_close(&p);
}

Test(watch, a_doorbell_that_is_served_late_completes)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;

	open_unserved();
	capture_begin();
	for (unsigned int i = 0; i < 3; i++) {
		put(&t);
		nap_ms(800);
		cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	}
	log = capture_end();
	cr_expect_eq(times(log, UNSERVED), 2, "1st and 2nd of 3 occurrences, log: %s", log);
	cr_expect(strstr(log, "2 times so far"), "log: %s", log);
	e2e_pair_close(&p);
}

/* A wait that ends after the CPU has rung again ends with -ETIMEDOUT as before. */
Test(watch, a_served_queue_pair_still_times_out)
{
	doca_gpu_dev_verbs_ticket_t t;

	open_unserved();
	put(&t);
	nap_ms(400);
	cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(gverbs(), 400 * MS), DOCA_SUCCESS);
	cr_expect_eq(gdk_wait(p.tx.dev, t + 1, E2E_MODE), -ETIMEDOUT);
	e2e_pair_close(&p);
}

Test(watch, calls_of_progress_keep_it_silent)
{
	doca_gpu_dev_verbs_ticket_t t;
	uint64_t end;
	const char *log;

	open_unserved();
	capture_begin();
	for (end = e2e_now_ns() + 1500 * MS; e2e_now_ns() < end; nap_ms(50)) {
		put(&t);
		cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	}
	log = capture_end();
	cr_expect_eq(times(log, UNSERVED), 0, "log: %s", log);
	e2e_pair_close(&p);
}

/* Here step_lock keeps the service's thread from ringing. */
Test(watch, a_stuck_service_thread_is_reported)
{
	doca_gpu_verbs_service_t service;
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_db_qp *x;
	const char *log;

	open_unserved();
	x = gdk_to_db_qp(gverbs());
	cr_assert_eq(doca_gpu_verbs_create_service(&service), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(service, gverbs()), DOCA_SUCCESS);
	capture_begin();
	put(&t);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	pthread_spin_lock(&x->proxy.step_lock);
	put(&t);
	nap_ms(1000);
	pthread_spin_unlock(&x->proxy.step_lock);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	log = capture_end();
	cr_expect_eq(times(log, UNSERVED), 1, "log: %s", log);
	cr_expect(strstr(log, "the thread of the service that monitors it does not run"), "log: %s",
		  log);
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	e2e_pair_close(&p);
}

static struct doca_gpu_verbs_qp_hl *create(struct e2e_nic *nic, unsigned int mode)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = nic->gpu,
		.net_dev = nic->dev,
		.ibpd = nic->pd,
		.sq_nwqe = 16,
		.nic_handler = E2E_AUTO,
		.send_dbr_mode_ext = (enum doca_gpu_verbs_send_dbr_mode_ext)mode,
	};
	struct doca_gpu_verbs_qp_hl *hl;

	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	return hl;
}

/* The CPU writes the DBREC; the counter is `rung` in the state block. */
Test(watch, unserved_dbrecs_of_no_dbr_emulation_are_reported)
{
	struct doca_gpu_verbs_qp_hl *hl;
	struct e2e_nic nic;
	const char *log;
	char text[80];
	uint32_t qpn;

	e2e_open(&nic);
	hl = create(&nic, EMULATED);
	cr_assert_eq(doca_verbs_qp_get_qpn(hl->qp, &qpn), DOCA_SUCCESS);
	snprintf(text, sizeof(text), "QP 0x%x: " UNSERVED, qpn);
	capture_begin();
	__atomic_store_n(&hl->qp_gverbs->qp_cpu->gdk_state->rung, 3, __ATOMIC_RELEASE);
	nap_ms(1000);
	log = capture_end();
	cr_expect_eq(times(log, text), 1, "log: %s", log);
	cr_expect(strstr(log, "pending up to index 3, rung up to 0"), "log: %s", log);
	__atomic_store_n(&hl->qp_gverbs->qp_cpu->gdk_state->rung, 0, __ATOMIC_RELEASE);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* ---- AUTO ---- */

/* Opens and closes a QP on a GPU that cannot map the register page. Returns what was logged. */
static const char *log_of_export(enum doca_gpu_dev_verbs_nic_handler handler, char *text,
				 size_t len)
{
	const char *log;

	capture_begin();
	e2e_qp_open(&p.nic, &p.tx, handler, 16);
	snprintf(text, len, "QP 0x%x: AUTO chose CPU_PROXY because GPU_SM_DB is not usable (",
		 p.tx.qpn);
	cr_expect_eq(p.tx.hl->nic_handler, E2E_PROXY);
	e2e_qp_close(&p.tx);
	log = capture_end();
	return log;
}

Test(watch, auto_that_takes_the_proxy_without_a_service_is_a_warning)
{
	doca_gpu_verbs_service_t service;
	const char *log;
	char text[100];

	standin_cuda();
	setenv("STANDIN_CUDA_NO_REG", "0", 1);
	e2e_open_on(&p.nic, GPU_NO_REG);
	for (unsigned int i = 0; i < 2; i++) {
		log = log_of_export(E2E_AUTO, text, sizeof(text));
		cr_expect_eq(times(log, text), 1, "log: %s", log);
		cr_expect(strstr(log, "call doca_gpu_verbs_create_service and "
				      "doca_gpu_verbs_service_monitor_qp, or "
				      "doca_gpu_verbs_cpu_proxy_progress"),
			  "log: %s", log);
		cr_expect_eq(times(log_of_export(E2E_PROXY, text, sizeof(text)), "AUTO"), 0,
			     "a handler that was requested by name");
		cr_assert_eq(doca_gpu_verbs_create_service(&service), DOCA_SUCCESS);
		cr_expect_eq(times(log_of_export(E2E_AUTO, text, sizeof(text)), "AUTO"), 0);
		cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	}
	e2e_close(&p.nic);
}

/* ---- queue pairs that are not connected ---- */

static const struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

static void open_unconnected(void)
{
	e2e_open(&p.nic);
	e2e_qp_open(&p.nic, &p.tx, E2E_DB, 16);
	e2e_qp_open(&p.nic, &p.rx, E2E_DB, 16);
	e2e_buf_open(&p.nic, &p.src, 4096, IBV_ACCESS_LOCAL_WRITE);
	e2e_buf_open(&p.nic, &p.dst, 4096, E2E_REMOTE);
}

static void connect_pair(void)
{
	cr_assert_eq(e2e_connect(&p.nic, p.rx.hl->qp, &p.nic.gid, p.tx.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&p.nic, p.tx.hl->qp, &p.nic.gid, p.rx.qpn, path), DOCA_SUCCESS);
}

/* The limit is 60 s, or none. */
Test(watch, each_kind_of_wait_on_an_unconnected_qp_ends_at_once)
{
	uint64_t start, took;
	unsigned int way;

	open_unconnected();
	for (way = 0; way < 2 * WAIT_KINDS; way++) {
		cr_assert_eq(
			gdk_verbs_qp_set_wait_limit(gverbs(), way < WAIT_KINDS ? 60000 * MS : 0),
			DOCA_SUCCESS);
		start = e2e_now_ns();
		cr_expect_eq(wait_alone(p.tx.dev, way % WAIT_KINDS), -ENOTCONN, "kind of wait %u",
			     way);
		took = e2e_now_ns() - start;
		cr_expect(took >= 1 * MS && took < 50 * MS, "kind of wait %u took %lu ns", way,
			  took);
		cr_expect_eq(gdk_qp_status(p.tx.dev), way % WAIT_KINDS == WAIT_FOR ? 0 : -ENOTCONN);
		cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(gverbs()), DOCA_SUCCESS);
	}
	e2e_pair_close(&p);
}

Test(watch, a_wait_on_an_unconnected_qp_is_reported)
{
	const char *log;
	char name[24];

	open_unconnected();
	snprintf(name, sizeof(name), "QP 0x%x: ", p.tx.qpn);
	capture_begin();
	cr_expect_eq(gdk_wait(p.tx.dev, 3, E2E_MODE), -ENOTCONN);
	nap_ms(900);
	log = capture_end();
	cr_expect_eq(times(log, REFUSED), 1, "log: %s", log);
	cr_expect(strstr(log, name) && strstr(log, "state RST") && strstr(log, "modify it to RTS"),
		  "log: %s", log);
	e2e_pair_close(&p);
}

/* The status stays when the QP is connected, as the status of every error does. */
Test(watch, the_status_is_cleared_by_clear_abort_or_a_reset)
{
	doca_gpu_dev_verbs_ticket_t t;

	open_unconnected();
	for (unsigned int round = 0; round < 2; round++) {
		put(&t);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), -ENOTCONN);
		connect_pair();
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), -ENOTCONN);
		if (round)
			cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(gverbs()),
				     DOCA_SUCCESS);
		else
			cr_assert_eq(gdk_verbs_qp_clear_abort(gverbs()), DOCA_SUCCESS);
		put(&t);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0, "round %u", round);
		e2e_qp_reset(&p.tx);
		e2e_qp_reset(&p.rx);
	}
	e2e_pair_close(&p);
}

Test(watch, a_reset_qp_is_not_connected)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;

	e2e_pair_open(&p, E2E_DB, 16, 4096);
	put(&t);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	e2e_qp_reset(&p.tx);
	capture_begin();
	cr_expect_eq(gdk_wait(p.tx.dev, 0, E2E_MODE), -ENOTCONN);
	e2e_qp_reset(&p.tx);
	log = capture_end();
	cr_expect_eq(times(log, REFUSED), 1, "the next host call must report it, log: %s", log);
	cr_expect_eq(gdk_wait(p.tx.dev, 0, E2E_MODE), -ENOTCONN);
	e2e_pair_close(&p);
}

/* A QP in the error state was not necessarily connected, but its WQEs complete with errors. */
Test(watch, a_qp_in_the_error_state_is_not_refused)
{
	doca_verbs_qp_attr_t *attr;

	open_unconnected();
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_ERR), 0);
	cr_assert_eq(doca_verbs_qp_modify(p.tx.hl->qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE), 0);
	cr_assert_eq(doca_verbs_qp_attr_destroy(attr), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(gverbs(), 20 * MS), DOCA_SUCCESS);
	cr_expect_eq(gdk_wait(p.tx.dev, 0, E2E_MODE), -ETIMEDOUT);
	e2e_pair_close(&p);
}

Test(watch, both_queue_pairs_of_a_group_are_checked)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = 16, .nic_handler = E2E_DB };
	struct doca_gpu_verbs_qp_group_hl *group;
	struct e2e_qp main_qp, companion;
	struct e2e_nic nic;

	e2e_open(&nic);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.ibpd = nic.pd;
	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &group), DOCA_SUCCESS);
	e2e_qp_adopt(&nic, &main_qp, &group->qp_main);
	e2e_qp_adopt(&nic, &companion, &group->qp_companion);
	cr_assert_eq(e2e_connect(&nic, main_qp.hl->qp, &nic.gid, main_qp.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(main_qp.hl->qp_gverbs, 20 * MS), DOCA_SUCCESS);
	cr_expect_eq(gdk_wait(main_qp.dev, 0, E2E_MODE), -ETIMEDOUT);
	cr_expect_eq(gdk_wait(companion.dev, 0, E2E_MODE), -ENOTCONN);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(group), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* A wait of another thread; it starts before the QP is connected. */
struct waiter {
	pthread_t thread;
	uint64_t until; /* the QP must be connected before this time */
	atomic_bool started;
	int err;
};

static void *wait_main(void *arg)
{
	struct waiter *w = arg;

	w->until = e2e_now_ns() + 1 * MS;
	atomic_store(&w->started, true);
	w->err = gdk_wait(p.tx.dev, 0, E2E_MODE);
	return NULL;
}

/* Moves tx to RTS during a wait. Returns whether that was early enough. */
static bool connect_during_a_wait(void)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct waiter w = { .until = 0 };
	bool early;

	cr_assert_eq(e2e_connect(&p.nic, p.rx.hl->qp, &p.nic.gid, p.tx.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(pthread_create(&w.thread, NULL, wait_main, &w), 0);
	while (!atomic_load(&w.started))
		sched_yield();
	cr_assert_eq(e2e_connect(&p.nic, p.tx.hl->qp, &p.nic.gid, p.rx.qpn, path), DOCA_SUCCESS);
	early = e2e_now_ns() < w.until;
	nap_ms(5);
	(void)e2e_put(&p, 0, 64, &t); /* fails if the wait has ended */
	pthread_join(w.thread, NULL);
	if (early)
		cr_expect_eq(w.err, 0, "status %d", w.err);
	return early;
}

/* Also checked with a clock that the test controls: wait_dev. */
Test(watch, a_wait_continues_if_the_qp_is_connected_in_time)
{
	unsigned int tries = 0;
	bool early;

	open_unconnected();
	do {
		early = connect_during_a_wait();
		e2e_qp_reset(&p.tx);
		e2e_qp_reset(&p.rx);
	} while (!early && ++tries < 200);
	e2e_pair_close(&p);
	if (!early)
		cr_skip_test("the connection always took longer than 1 ms");
}

/* ---- the thread ---- */

Test(watch, the_thread_exists_only_while_it_is_needed)
{
	struct doca_gpu_verbs_qp_hl *hl, *other;
	struct doca_gpu_dev_verbs_qp *dev;
	struct e2e_nic nic;
	uint32_t qpn;

	e2e_open(&nic);
	hl = create(&nic, 0);
	other = create(&nic, 0);
	cr_assert_eq(doca_verbs_qp_get_qpn(hl->qp, &qpn), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, hl->qp, &nic.gid, qpn, path), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(hl->qp_gverbs, &dev), DOCA_SUCCESS);
	cr_expect_eq(watchers(), 0, "a QP that was connected first needs no thread");
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(other->qp_gverbs, &dev), DOCA_SUCCESS);
	cr_expect_eq(watchers(), 1);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(other), DOCA_SUCCESS);
	cr_expect_eq(watchers(), 0, "the thread must not outlive the QP that needed it");
	other = create(&nic, EMULATED);
	cr_expect_eq(watchers(), 1);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	cr_expect_eq(watchers(), 1);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(other), DOCA_SUCCESS);
	cr_expect_eq(watchers(), 0);
	e2e_close(&nic);
}

/* The child must end, and the parent's thread must continue. */
Test(watch, fork_does_not_disturb_the_thread)
{
	int status = -1;
	const char *log;
	pid_t pid;

	open_unconnected();
	for (unsigned int i = 0; i < 20; i++) {
		pid = fork();
		if (!pid)
			_exit(watchers() == 0 ? 0 : 1);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect_eq(status, 0);
	}
	capture_begin();
	cr_expect_eq(gdk_wait(p.tx.dev, 3, E2E_MODE), -ENOTCONN);
	nap_ms(900);
	log = capture_end();
	cr_expect_eq(times(log, REFUSED), 1, "log: %s", log);
	e2e_pair_close(&p);
}
