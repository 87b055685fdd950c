/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests the complete data path with threads: four threads put on one shared queue pair,
 * with each handler (for CPU_PROXY, the service thread rings), while other queue pairs
 * are created and destroyed. The NIC's thread executes the WQEs. Every byte is checked
 * at the end. Meant for ThreadSanitizer, with the NIC linked in.
 */
#include <string.h>

#include "../lib/e2e.h"

#define THREADS	  4u
#define PUTS	  200u
#define SIZE	  64u
#define OTHER_QPS 8u

struct poster {
	struct e2e_pair *pair;
	unsigned int id;
	int rc;
};

static void *post(void *arg)
{
	struct poster *p = arg;
	doca_gpu_dev_verbs_ticket_t t;

	for (unsigned int i = 0; i < PUTS && !p->rc; i++) {
		p->rc = e2e_put(p->pair, (p->id * PUTS + i) * SIZE, SIZE, &t);
		if (!p->rc && i % 16 == 15)
			p->rc = e2e_wait(&p->pair->tx, t);
	}
	p->rc = p->rc ? p->rc : e2e_wait(&p->pair->tx, t);
	return NULL;
}

/* Creates and destroys queue pairs while the posters run. A service, if there is one,
 * monitors these queue pairs. */
static void open_and_close_qps(struct e2e_nic *nic, doca_gpu_verbs_service_t service)
{
	struct e2e_qp qp;

	for (unsigned int i = 0; i < OTHER_QPS; i++) {
		memset(&qp, 0, sizeof(qp));
		if (!service) {
			e2e_qp_open(nic, &qp, E2E_DB, 16);
			e2e_qp_close(&qp);
			continue;
		}
		E2E_REQUIRE(!e2e_qp_try(nic, &qp, E2E_PROXY, 16, false));
		E2E_REQUIRE(!doca_gpu_verbs_service_monitor_qp(service, qp.hl->qp_gverbs));
		e2e_qp_close(&qp);
	}
}

static int run(enum doca_gpu_dev_verbs_nic_handler handler)
{
	const size_t bytes = THREADS * PUTS * SIZE;
	doca_gpu_verbs_service_t service = NULL;
	struct poster posters[THREADS];
	pthread_t threads[THREADS];
	struct e2e_pair p;
	int bad = 0;

	e2e_pair_open(&p, handler, 64, bytes);
	if (handler == E2E_PROXY) {
		e2e_proxy_end(&p.tx);
		E2E_REQUIRE(!doca_gpu_verbs_create_service(&service));
		E2E_REQUIRE(!doca_gpu_verbs_service_monitor_qp(service, p.tx.hl->qp_gverbs));
	}
	for (size_t i = 0; i < bytes; i++)
		p.src.mem[i] = e2e_pattern(i, handler);
	for (unsigned int i = 0; i < THREADS; i++) {
		posters[i] = (struct poster){ .pair = &p, .id = i };
		E2E_REQUIRE(!pthread_create(&threads[i], NULL, post, &posters[i]));
	}
	open_and_close_qps(&p.nic, service);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		bad |= posters[i].rc;
	}
	bad |= memcmp(p.src.mem, p.dst.mem, bytes);
	if (bad)
		fprintf(stderr, "%s: a put failed or bytes differ\n", gdk_handler_name(handler));
	if (service)
		E2E_REQUIRE(!doca_gpu_verbs_destroy_service(service));
	e2e_pair_close(&p);
	return bad != 0;
}

int main(void)
{
	return run(E2E_DB) | run(E2E_PROXY) | run(E2E_BF) | run(E2E_NO_DBR);
}
