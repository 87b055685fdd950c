/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Messages and statuses if a kernel uses a QP that is not connected. Also the thread that watches
 * queue pairs.
 */
#include <sys/wait.h>

#include "wait_rig.h"
#include "watch_rig.h"

#define NOT_CONNECTED "ended with -ENOTCONN"

TestSuite(watch_connect, .timeout = 60);

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

/* The limit is 60 s, or none. test_wait_dev checks the time. */
Test(watch_connect, each_kind_of_wait_on_an_unconnected_qp_ends_at_once)
{
	unsigned int way;

	open_unconnected();
	for (way = 0; way < 2 * WAIT_KINDS; way++) {
		cr_assert_eq(
			gdk_verbs_qp_set_wait_limit(gverbs(), way < WAIT_KINDS ? 60000 * MS : 0),
			DOCA_SUCCESS);
		cr_expect_eq(wait_alone(p.tx.dev, way % WAIT_KINDS), -ENOTCONN, "kind of wait %u",
			     way);
		cr_expect_eq(gdk_qp_status(p.tx.dev), way % WAIT_KINDS == WAIT_FOR ? 0 : -ENOTCONN);
		cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(gverbs()), DOCA_SUCCESS);
	}
	e2e_pair_close(&p);
}

Test(watch_connect, a_wait_on_an_unconnected_qp_is_reported)
{
	const char *log;
	char name[24];

	open_unconnected();
	snprintf(name, sizeof(name), "QP 0x%x: ", p.tx.qpn);
	capture_begin();
	cr_expect_eq(gdk_wait(p.tx.dev, 3, E2E_MODE), -ENOTCONN);
	watch_polls(1);
	log = capture_end();
	cr_expect_eq(times(log, NOT_CONNECTED), 1, "log: %s", log);
	cr_expect(strstr(log, name) && strstr(log, "state RST") && strstr(log, "modify it to RTS"),
		  "log: %s", log);
	e2e_pair_close(&p);
}

/*
 * The status stays when the QP is connected, as the status of every error does. The NIC may execute
 * the first put then, if it sees the doorbell late. So only a transition to RST may restart the
 * indices.
 */
Test(watch_connect, the_status_is_cleared_by_clear_abort_or_a_reset)
{
	doca_gpu_dev_verbs_ticket_t t;

	open_unconnected();
	for (unsigned int round = 0; round < 2; round++) {
		put(&t);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), -ENOTCONN);
		connect_pair();
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), -ENOTCONN);
		if (round) {
			e2e_qp_reset(&p.tx);
			e2e_qp_reset(&p.rx);
			connect_pair();
		} else {
			cr_assert_eq(gdk_verbs_qp_clear_abort(gverbs()), DOCA_SUCCESS);
		}
		put(&t);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0, "round %u", round);
		e2e_qp_reset(&p.tx);
		e2e_qp_reset(&p.rx);
	}
	e2e_pair_close(&p);
}

Test(watch_connect, a_reset_qp_is_not_connected)
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
	cr_expect_eq(times(log, NOT_CONNECTED), 1, "the next host call must report it, log: %s",
		     log);
	cr_expect_eq(gdk_wait(p.tx.dev, 0, E2E_MODE), -ENOTCONN);
	e2e_pair_close(&p);
}

/* The QP is connected when its device struct is requested: only the reset makes it a QP that the
 * thread must poll. */
Test(watch_connect, a_reset_qp_is_reported_by_the_thread)
{
	const char *log;

	e2e_pair_open(&p, E2E_DB, 16, 4096);
	e2e_qp_reset(&p.tx);
	capture_begin();
	cr_expect_eq(gdk_wait(p.tx.dev, 0, E2E_MODE), -ENOTCONN);
	watch_polls(1);
	log = capture_end();
	cr_expect_eq(times(log, NOT_CONNECTED), 1, "log: %s", log);
	e2e_pair_close(&p);
}

/* A kernel that starts before the connection may wait in a loop: such waits do not end the QP. */
Test(watch_connect, waits_that_do_not_end_the_qp_are_not_reported)
{
	const char *log;

	open_unconnected();
	capture_begin();
	for (unsigned int i = 0; i < 20; i++)
		cr_expect_eq(gdk_wait_for(p.tx.dev, 0, E2E_MODE, MS), -ENOTCONN);
	watch_polls(1);
	log = capture_end();
	cr_expect_eq(times(log, NOT_CONNECTED), 0, "log: %s", log);
	connect_pair();
	cr_expect_eq(gdk_wait_for(p.tx.dev, 0, E2E_MODE, MS), -ETIMEDOUT);
	e2e_pair_close(&p);
}

/* A QP in the error state was not necessarily connected, but its WQEs complete with errors. */
Test(watch_connect, a_qp_in_the_error_state_is_not_refused)
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

Test(watch_connect, both_queue_pairs_of_a_group_are_checked)
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
	while (e2e_now_ns() < w.until + 4 * MS)
		sched_yield();
	(void)e2e_put(&p, 0, 64, &t); /* fails if the wait has ended */
	pthread_join(w.thread, NULL);
	if (early)
		cr_expect_eq(w.err, 0, "status %d", w.err);
	return early;
}

/* Also checked with a clock that the test controls: wait_dev. */
Test(watch_connect, a_wait_continues_if_the_qp_is_connected_in_time)
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

Test(watch_connect, the_thread_exists_only_while_it_is_needed)
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

static void *reset_until_stopped(void *stop)
{
	doca_verbs_qp_attr_t *attr;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RST), 0);
	while (!atomic_load((atomic_bool *)stop))
		cr_expect_eq(doca_verbs_qp_modify(p.tx.hl->qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE),
			     DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_destroy(attr), DOCA_SUCCESS);
	return NULL;
}

/* Both take the lock of the QP. The word of the export must not be used after un-export. */
Test(watch_connect, export_and_transitions_may_overlap)
{
	struct doca_gpu_verbs_qp *again, *first;
	struct doca_gpu_dev_verbs_qp *dev;
	atomic_bool stop = false;
	pthread_t thread;

	open_unconnected();
	first = gverbs();
	cr_assert_eq(doca_gpu_verbs_unexport_qp(p.nic.gpu, first), DOCA_SUCCESS);
	cr_assert_eq(pthread_create(&thread, NULL, reset_until_stopped, &stop), 0);
	for (unsigned int i = 0; i < 300; i++) {
		cr_assert_eq(doca_gpu_verbs_export_qp(p.nic.gpu, p.tx.hl->qp, E2E_DB, NULL,
						      p.tx.hl->cq_sq, 0, &again),
			     DOCA_SUCCESS);
		cr_assert_eq(doca_gpu_verbs_get_qp_dev(again, &dev), DOCA_SUCCESS);
		cr_assert_eq(doca_gpu_verbs_unexport_qp(p.nic.gpu, again), DOCA_SUCCESS);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	cr_expect_eq(watchers(), 1, "for rx only");
	cr_assert_eq(doca_gpu_verbs_export_qp(p.nic.gpu, p.tx.hl->qp, E2E_DB, NULL, p.tx.hl->cq_sq,
					      0, &p.tx.hl->qp_gverbs),
		     DOCA_SUCCESS);
	e2e_pair_close(&p);
}

/* The child must end, and the parent's thread must continue. */
Test(watch_connect, fork_does_not_disturb_the_thread)
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
	watch_polls(1);
	log = capture_end();
	cr_expect_eq(times(log, NOT_CONNECTED), 1, "log: %s", log);
	e2e_pair_close(&p);
}

/* ---- many at once ---- */

#define MANY		9
#define REPORTS_OF_POLL 4u

static struct doca_gpu_verbs_qp_hl *many[MANY];

/* A wait of each of many queue pairs ends because it is not connected. */
static void end_waits_of_many(struct e2e_nic *nic)
{
	struct doca_gpu_dev_verbs_qp *dev;
	unsigned int i;

	e2e_open(nic);
	for (i = 0; i < MANY; i++) {
		many[i] = create(nic, 0);
		cr_assert_eq(doca_gpu_verbs_get_qp_dev(many[i]->qp_gverbs, &dev), DOCA_SUCCESS);
	}
	watch_polls(0);
	capture_begin();
	for (i = 0; i < MANY; i++) {
		cr_assert_eq(doca_gpu_verbs_get_qp_dev(many[i]->qp_gverbs, &dev), DOCA_SUCCESS);
		if (gdk_wait(dev, 3, E2E_MODE) != -ENOTCONN)
			_exit(EXIT_FAILURE);
	}
}

Test(watch_connect, a_poll_leaves_reports_to_the_next_one)
{
	unsigned int i, left = MANY, now;
	struct e2e_nic nic;

	end_waits_of_many(&nic);
	while (left) {
		now = left < REPORTS_OF_POLL ? left : REPORTS_OF_POLL;
		watch_polls(1);
		cr_assert_eq(times(capture_end(), NOT_CONNECTED), now, "%u were left", left);
		capture_begin();
		left -= now;
	}
	watch_polls(1);
	cr_expect_eq(times(capture_end(), NOT_CONNECTED), 0);
	for (i = 0; i < MANY; i++)
		cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(many[i]), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* ---- a program that ends at once ---- */

#define LOGGED 7 /* exit code */

static unsigned int waits_ended;

static void check_log_at_exit(void)
{
	_exit(times(capture_end(), NOT_CONNECTED) == waits_ended ? LOGGED : 1);
}

/* The function is registered before that of the library, and runs after it. The thread does not
 * poll. */
Test(watch_connect, a_program_that_ends_at_once_gets_the_report, .exit_code = LOGGED)
{
	cr_assert_eq(atexit(check_log_at_exit), 0);
	waits_ended = 1;
	open_unconnected();
	watch_polls(0);
	capture_begin();
	if (gdk_wait(p.tx.dev, 3, E2E_MODE) == -ENOTCONN)
		exit(EXIT_FAILURE);
}

Test(watch_connect, a_program_that_ends_at_once_gets_many_reports, .exit_code = LOGGED)
{
	struct e2e_nic nic;

	cr_assert_eq(atexit(check_log_at_exit), 0);
	waits_ended = MANY;
	end_waits_of_many(&nic);
	exit(EXIT_FAILURE);
}
