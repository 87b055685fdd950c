/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests proxy services under load: each thread uses and resets its own queue pair, and
 * the first one also moves it to the error state. Meanwhile the main thread moves the
 * queue pairs between services, destroys and creates services, and queries statistics. In
 * the pauses, every queue pair must make progress, because its service rings for it.
 * Meant for ThreadSanitizer, with the NIC linked in.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "../lib/e2e.h"

#define QPS	 10u /* their doorbell counters are in two cache lines, 8 in each */
#define SERVICES 2u
#define DEPTH	 16u
#define STORMS	 12u
#define MOVES	 60u /* moves per storm */
#define QUIET	 3u  /* batches that each queue pair must complete in a pause */
#define BATCHES	 5u  /* batches between two resets */

static struct e2e_nic nic;
static doca_gpu_verbs_service_t service[SERVICES];

static struct user {
	struct e2e_qp qp;
	pthread_t thread;
	doca_gpu_verbs_service_t in; /* service that monitors the QP; NULL: none */
	_Atomic uint64_t batches;
} users[QPS];
static atomic_bool done;

static unsigned int random_below(unsigned int n)
{
	static uint32_t seed = 12345;

	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void connect(struct e2e_qp *qp)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	E2E_REQUIRE(!e2e_connect(&nic, qp->hl->qp, &nic.gid, qp->qpn, path));
}

/* Posts five NOPs with one doorbell each and waits for the last one. */
static int post_batch(struct e2e_qp *qp)
{
	uint64_t idx = 0;
	int rc = 0;

	for (unsigned int i = 0; i < 5 && !rc; i++)
		rc = e2e_nop(qp, E2E_EXCL, GDK_CE_ALWAYS, &idx);
	return rc ? rc : gdk_wait_for(qp->dev, idx, E2E_EXCL, E2E_WAIT_NS);
}

static void to_error(struct e2e_qp *qp)
{
	doca_verbs_qp_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_ERR));
	E2E_REQUIRE(!doca_verbs_qp_modify(qp->hl->qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE));
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
	E2E_REQUIRE(post_batch(qp) == -EIO); /* The NIC flushes the WQEs after the doorbell. */
}

static void *use(void *arg)
{
	struct user *u = arg;

	while (!atomic_load(&done)) {
		for (unsigned int i = 0; i < BATCHES; i++) {
			E2E_REQUIRE(!post_batch(&u->qp));
			atomic_fetch_add(&u->batches, 1);
		}
		if (u == users)
			to_error(&u->qp);
		e2e_qp_reset(&u->qp);
		connect(&u->qp);
	}
	return NULL;
}

/* ---- services and the queue pairs that they monitor ---- */

static void create(unsigned int s)
{
	const struct gdk_service_attr attr = { .threads = 1 + s, .nap_max_us = 200 };

	E2E_REQUIRE(!gdk_verbs_service_create(&attr, &service[s]));
}

static void destroy(unsigned int s)
{
	E2E_REQUIRE(!doca_gpu_verbs_destroy_service(service[s]));
	for (unsigned int i = 0; i < QPS; i++)
		if (users[i].in == service[s])
			users[i].in = NULL;
}

static void move_to(struct user *u, unsigned int s)
{
	struct doca_gpu_verbs_qp *qp = u->qp.hl->qp_gverbs;

	if (u->in)
		E2E_REQUIRE(!gdk_verbs_service_unmonitor_qp(u->in, qp));
	E2E_REQUIRE(!doca_gpu_verbs_service_monitor_qp(service[s], qp));
	u->in = service[s];
}

static void move_one(void)
{
	const unsigned int s = random_below(SERVICES);
	struct gdk_service_stats st;

	if (random_below(10) == 0) {
		destroy(s);
		create(s);
	}
	move_to(&users[random_below(QPS)], s);
	E2E_REQUIRE(!gdk_verbs_service_get_stats(service[s], &st));
	E2E_REQUIRE(st.threads == 1 + s && st.qps >= 1 && st.qps <= QPS);
}

static void pause_moves(void)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	uint64_t from[QPS];

	for (unsigned int i = 0; i < QPS; i++) {
		if (!users[i].in)
			move_to(&users[i], i % SERVICES);
		from[i] = atomic_load(&users[i].batches);
	}
	for (unsigned int i = 0; i < QPS; i++)
		while (atomic_load(&users[i].batches) < from[i] + QUIET)
			nanosleep(&nap, NULL);
}

int main(void)
{
	e2e_open(&nic);
	for (unsigned int s = 0; s < SERVICES; s++)
		create(s);
	for (unsigned int i = 0; i < QPS; i++) {
		E2E_REQUIRE(!e2e_qp_try(&nic, &users[i].qp, E2E_PROXY, DEPTH, false));
		connect(&users[i].qp);
		E2E_REQUIRE(!pthread_create(&users[i].thread, NULL, use, &users[i]));
	}
	for (unsigned int n = 0; n < STORMS; n++) {
		for (unsigned int i = 0; i < MOVES; i++)
			move_one();
		pause_moves();
	}
	atomic_store(&done, true);
	for (unsigned int i = 0; i < QPS; i++)
		pthread_join(users[i].thread, NULL);
	for (unsigned int s = 0; s < SERVICES; s++)
		destroy(s);
	for (unsigned int i = 0; i < QPS; i++)
		e2e_qp_close(&users[i].qp);
	e2e_close(&nic);
	return 0;
}
