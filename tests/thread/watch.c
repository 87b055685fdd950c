/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The watch of queue pairs (qp/export/watch.c) under concurrency: four threads wait on queue pairs
 * that are not connected, connect, reset and destroy them, so that the library's thread starts
 * and stops, while one queue pair has doorbells that no CPU thread rings until the log reports it.
 * Meant for ThreadSanitizer, with the NIC linked in.
 */
#include <errno.h>
#include <semaphore.h>
#include <string.h>

#include "../../core/log/log.h"
#include "../lib/e2e.h"

#define THREADS	 4u
#define ROUNDS	 10u
#define DEPTH	 16u
#define UNSERVED "no CPU thread has rung its doorbells"

static struct e2e_nic nic;
static struct e2e_qp late;
static sem_t reported; /* posted when the log reports doorbells that no CPU thread rings */

/* Called for each line of the log. */
static void note_line(enum gdk_log_level level, const char *text, size_t len)
{
	(void)level;
	fwrite(text, 1, len, stderr);
	if (memmem(text, len, UNSERVED, strlen(UNSERVED)))
		sem_post(&reported);
}

static void connect(struct e2e_qp *qp)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	E2E_REQUIRE(!e2e_connect(&nic, qp->hl->qp, &nic.gid, qp->qpn, path));
}

static uint64_t post(struct e2e_qp *qp)
{
	uint64_t idx;

	E2E_REQUIRE(!e2e_nop(qp, E2E_MODE, GDK_CE_ALWAYS, &idx));
	return idx;
}

static void *refuse_and_connect(void *arg)
{
	struct e2e_qp qp;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		memset(&qp, 0, sizeof(qp));
		E2E_REQUIRE(!e2e_qp_try(&nic, &qp, i % 2 ? E2E_PROXY : E2E_DB, DEPTH, false));
		E2E_REQUIRE(gdk_wait(qp.dev, 0, E2E_MODE) == -ENOTCONN);
		connect(&qp);
		E2E_REQUIRE(!gdk_verbs_qp_clear_abort(qp.hl->qp_gverbs));
		if (i % 2)
			e2e_proxy_begin(&qp);
		E2E_REQUIRE(!gdk_wait_for(qp.dev, post(&qp), E2E_MODE, E2E_WAIT_NS));
		e2e_qp_reset(&qp);
		E2E_REQUIRE(gdk_wait(qp.dev, 0, E2E_MODE) == -ENOTCONN);
		e2e_qp_close(&qp);
	}
	return arg;
}

/* Its doorbells wait until the host rings, after the log reported them. */
static void *wait_for_late(void *arg)
{
	E2E_REQUIRE(!gdk_wait_for(late.dev, post(&late), E2E_MODE, E2E_WAIT_NS));
	return arg;
}

static void serve_late(void)
{
	struct gdk_qp_counters c;
	pthread_t waiter;

	E2E_REQUIRE(!e2e_qp_try(&nic, &late, E2E_PROXY, DEPTH, false));
	connect(&late);
	for (int i = 0; i < 2; i++) {
		E2E_REQUIRE(!pthread_create(&waiter, NULL, wait_for_late, NULL));
		while (sem_wait(&reported))
			;
		E2E_REQUIRE(!gdk_verbs_qp_get_counters(late.hl->qp_gverbs, &c) && !c.status);
		do
			E2E_REQUIRE(!doca_gpu_verbs_cpu_proxy_progress(late.hl->qp_gverbs, NULL));
		while (pthread_tryjoin_np(waiter, NULL));
	}
	e2e_qp_close(&late);
}

int main(void)
{
	pthread_t threads[THREADS];
	unsigned int i;

	E2E_REQUIRE(!sem_init(&reported, 0, 0));
	gdk_log_to(note_line, GDK_LOG_WARNING);
	e2e_open(&nic);
	for (i = 0; i < THREADS; i++)
		E2E_REQUIRE(!pthread_create(&threads[i], NULL, refuse_and_connect, NULL));
	serve_late();
	while (i > 0)
		pthread_join(threads[--i], NULL);
	e2e_close(&nic);
	printf("watch: %u queue pairs refused, connected and reset\n", THREADS * ROUNDS);
	return 0;
}
