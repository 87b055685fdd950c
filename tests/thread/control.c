/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs the control-path calls that may be made concurrently. Eight threads create,
 * connect, use, unexport, export, reset and destroy queue pairs of one device and one
 * GPU, which share UAR pages. A service rings for some of the queue pairs; threads of
 * the test run proxy progress for others. At the same time QP groups, memory and
 * services are created and destroyed, and one call fails on purpose. For one more queue
 * pair, two threads call query functions and proxy progress while a third thread uses
 * and resets it.
 * Meant for ThreadSanitizer, with the NIC linked in.
 */
#include <string.h>

#include "../lib/e2e.h"

#define THREADS 8u
#define ROUNDS	12u
#define POSTS	24u /* more than DEPTH, so that the ring wraps */
#define DEPTH	16u

static const enum doca_gpu_dev_verbs_nic_handler handlers[] = { E2E_DB,	  E2E_PROXY, E2E_NO_DBR,
								E2E_AUTO, E2E_PROXY, E2E_BF };
#define HANDLERS (sizeof(handlers) / sizeof(handlers[0]))

static struct e2e_nic nic;
static doca_gpu_verbs_service_t service;
static doca_verbs_uar_t *shared_uar;
static atomic_uint running;

/* Posts POSTS NOPs on a QP that is connected to itself, and waits for them. */
static void use(struct e2e_qp *qp)
{
	uint64_t idx = 0;

	for (unsigned int i = 0; i < POSTS; i++)
		E2E_REQUIRE(
			!e2e_nop(qp, E2E_EXCL, i % 3 && i + 1 < POSTS ? 0 : GDK_CE_ALWAYS, &idx));
	E2E_REQUIRE(!gdk_wait_for(qp->dev, idx, E2E_EXCL, E2E_WAIT_NS));
}

/* Makes the service ring for a CPU_PROXY queue pair or, if `own` is set, a thread of this
 * test. */
static void serve(struct e2e_qp *qp, bool own)
{
	if (!qp->hl->qp_gverbs->cpu_proxy)
		return;
	if (own)
		e2e_proxy_begin(qp);
	else
		E2E_REQUIRE(!doca_gpu_verbs_service_monitor_qp(service, qp->hl->qp_gverbs));
}

static void connect(struct e2e_qp *qp)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	E2E_REQUIRE(!e2e_connect(&nic, qp->hl->qp, &nic.gid, qp->qpn, path));
}

static void export_again(struct e2e_qp *qp)
{
	struct doca_gpu_verbs_qp_hl *hl = qp->hl;
	struct doca_gpu_verbs_qp *old = hl->qp_gverbs;
	enum doca_gpu_verbs_send_dbr_mode_ext mode = old->send_dbr_mode_ext;

	E2E_REQUIRE(!doca_gpu_verbs_unexport_qp(nic.gpu, old));
	E2E_REQUIRE(!doca_gpu_verbs_export_qp(nic.gpu, hl->qp, hl->nic_handler, hl->qp_umem_gpu_ptr,
					      hl->cq_sq, mode, &hl->qp_gverbs));
	E2E_REQUIRE(!doca_gpu_verbs_get_qp_dev(hl->qp_gverbs, &qp->dev));
}

static void round_of(unsigned int n)
{
	struct gdk_qp_counters c;
	struct e2e_qp qp;

	memset(&qp, 0, sizeof(qp));
	E2E_REQUIRE(!e2e_qp_try(&nic, &qp, handlers[n % HANDLERS], DEPTH, false));
	export_again(&qp);
	connect(&qp);
	serve(&qp, n % 2);
	use(&qp);
	E2E_REQUIRE(!gdk_verbs_qp_get_counters(qp.hl->qp_gverbs, &c) && c.completions == POSTS);
	e2e_qp_reset(&qp);
	connect(&qp);
	use(&qp);
	e2e_qp_close(&qp);
}

/* Creates and destroys a CQ on the UAR page that the CQs of all threads share. */
static void share_uar_page(void)
{
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;

	E2E_REQUIRE(!doca_verbs_cq_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_cq_attr_set_cq_size(attr, DEPTH));
	E2E_REQUIRE(!doca_verbs_cq_attr_set_external_uar(attr, shared_uar));
	E2E_REQUIRE(!doca_verbs_cq_create(nic.dev, attr, &cq));
	E2E_REQUIRE(!doca_verbs_cq_destroy(cq));
	E2E_REQUIRE(!doca_verbs_cq_attr_destroy(attr));
}

static void *create_and_destroy(void *arg)
{
	const unsigned int id = (unsigned int)(uintptr_t)arg;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		round_of(id + i);
		share_uar_page();
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* Creates and destroys groups, memory and services while the other threads run, and
 * makes one call fail. */
static void use_other_objects(void)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .gpu_dev = nic.gpu,
						       .net_dev = nic.dev,
						       .ibpd = nic.pd,
						       .sq_nwqe = DEPTH };
	struct doca_gpu_verbs_qp_group_hl *group;
	doca_gpu_verbs_service_t other;
	struct gdk_service_stats stats;
	void *gpu_ptr, *cpu_ptr;

	E2E_REQUIRE(!doca_gpu_verbs_create_qp_group_hl(&attr, &group));
	E2E_REQUIRE(!doca_gpu_verbs_destroy_qp_group_hl(group));
	E2E_REQUIRE(!doca_gpu_mem_alloc(nic.gpu, 4096, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &gpu_ptr,
					&cpu_ptr));
	E2E_REQUIRE(!doca_gpu_mem_free(nic.gpu, gpu_ptr));
	E2E_REQUIRE(!doca_gpu_verbs_create_service(&other));
	E2E_REQUIRE(!doca_gpu_verbs_destroy_service(other));
	E2E_REQUIRE(!gdk_verbs_service_get_stats(service, &stats));
	attr.sq_nwqe = 0;
	E2E_REQUIRE(doca_gpu_verbs_create_qp_group_hl(&attr, &group) == DOCA_ERROR_INVALID_VALUE);
}

/* ---- one queue pair: used and reset by one thread, queried by two others ---- */

#define WATCHED_ROUNDS 30u

static struct e2e_qp watched;
static atomic_bool watched_done;

static void *use_watched(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < WATCHED_ROUNDS; i++) {
		use(&watched);
		e2e_qp_reset(&watched);
		connect(&watched);
	}
	atomic_store(&watched_done, true);
	return NULL;
}

static void *query_watched(void *arg)
{
	struct doca_gpu_verbs_qp *qp = watched.hl->qp_gverbs;
	struct doca_gpu_verbs_qp_error_info info;
	struct gdk_handler_report report;
	struct gdk_qp_counters c;
	struct gdk_qp_error error;

	while (!atomic_load(&watched_done)) {
		E2E_REQUIRE(!doca_gpu_verbs_cpu_proxy_progress(qp, NULL));
		E2E_REQUIRE(!gdk_verbs_qp_get_counters(qp, &c) && c.completions <= POSTS);
		E2E_REQUIRE(!gdk_verbs_qp_get_error(qp, &error));
		E2E_REQUIRE(!doca_gpu_verbs_query_last_error(qp, &info) && !info.has_error);
		E2E_REQUIRE(!gdk_verbs_qp_get_handler_report(qp, &report));
		gdk_host_yield();
	}
	return arg;
}

static void query_while_used(void)
{
	pthread_t user, queriers[2];

	E2E_REQUIRE(!e2e_qp_try(&nic, &watched, E2E_PROXY, DEPTH, false));
	connect(&watched);
	serve(&watched, false);
	for (int i = 0; i < 2; i++)
		E2E_REQUIRE(!pthread_create(&queriers[i], NULL, query_watched, NULL));
	E2E_REQUIRE(!pthread_create(&user, NULL, use_watched, NULL));
	pthread_join(user, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(queriers[i], NULL);
	e2e_qp_close(&watched);
}

int main(void)
{
	pthread_t threads[THREADS];

	e2e_open(&nic);
	E2E_REQUIRE(!doca_gpu_verbs_create_service(&service));
	E2E_REQUIRE(!doca_verbs_uar_create(nic.dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE,
					   &shared_uar));
	atomic_store(&running, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		E2E_REQUIRE(!pthread_create(&threads[i], NULL, create_and_destroy, (void *)i));
	query_while_used();
	while (atomic_load(&running))
		use_other_objects();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	E2E_REQUIRE(!doca_verbs_uar_destroy(shared_uar));
	E2E_REQUIRE(!doca_gpu_verbs_destroy_service(service));
	e2e_close(&nic);
	return 0;
}
