/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks that no wait lasts forever. On a full queue pair, threads wait in several ways:
 * for tickets, for CQEs, for all WQEs, for free slots, for the newest CQE of a collapsed
 * CQ. After an error CQE in the middle of the ring, after an abort by the host, and after
 * the time limit, all waits must return the same negative status, and each thread must
 * read the right index of the failed WQE. After the host has cleared an abort, the queue
 * pair must work again.
 */
#include <pthread.h>
#include <string.h>

#include "../lib/e2e.h"

#define DEPTH 16u
#define BAD   6u /* index of the failing WQE for ERROR_CQE */
#define EACH  2u
#define BYTES 4096u

enum ending { ERROR_CQE, ABORT, LIMIT };
enum way { RESERVE, WAIT, FLUSH, POLL_TICKET, POLL_CQ_AT, POLL_CQ, NEWEST, PUT, GET_WAIT, WAYS };

struct waiter {
	struct e2e_pair *pair;
	enum way way;
	uint64_t index;
	pthread_t thread;
	int status;
	uint64_t error_wqe;
};

static unsigned int started;

static int post(struct e2e_pair *p, uint32_t flip, doca_gpu_dev_verbs_ticket_t *t)
{
	return gdk_put(p->tx.dev, e2e_addr(p->dst.mem, p->dst.mr->rkey ^ flip),
		       e2e_addr(p->src.mem, p->src.mr->lkey), 64, t,
		       gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0));
}

static int poll_ticket(struct doca_gpu_dev_verbs_qp *qp, uint64_t ticket)
{
	uint32_t spins = 0;
	int err;

	while ((err = gdk_poll_ticket(qp, ticket, E2E_MODE)) == EBUSY)
		gdk_relax(spins++);
	return err;
}

static int wait_by(const struct waiter *w)
{
	struct doca_gpu_dev_verbs_qp *qp = w->pair->tx.dev;
	struct doca_gpu_dev_verbs_cq *cq = gdk_qp_cq(qp);
	doca_gpu_dev_verbs_ticket_t t;

	switch (w->way) {
	case RESERVE: /* more slots than become free before the error */
		return gdk_reserve(qp, DEPTH / 2, E2E_MODE, 0, &t);
	case WAIT:
		return gdk_wait(qp, w->index, E2E_MODE);
	case FLUSH:
		return gdk_flush(qp, E2E_MODE);
	case POLL_TICKET:
		return poll_ticket(qp, w->index);
	case POLL_CQ_AT:
		return gdk_poll_cq_at(cq, w->index, E2E_MODE);
	case POLL_CQ:
		return gdk_poll_cq(cq, DEPTH, E2E_MODE);
	case NEWEST:
		return gdk_poll_collapsed_at(qp, w->index, E2E_MODE);
	case PUT:
		return post(w->pair, 0, &t);
	default:
		return gdk_dump_wait(qp, e2e_addr(w->pair->src.mem, w->pair->src.mr->lkey),
				     w->index, E2E_MODE, E2E_AUTO);
	}
}

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	__atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
	w->status = wait_by(w);
	w->error_wqe = gdk_qp_error_wqe(w->pair->tx.dev);
	return NULL;
}

/* Opens a full queue pair. No proxy reads its doorbell counter yet, so that no WQE is executed. */
static void open_full(struct e2e_pair *p, bool collapsed, enum ending ending)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_dev_verbs_ticket_t t;

	memset(p, 0, sizeof(*p));
	e2e_open(&p->nic);
	E2E_REQUIRE(!e2e_qp_try(&p->nic, &p->tx, E2E_PROXY, DEPTH, collapsed));
	e2e_qp_open(&p->nic, &p->rx, E2E_DB, 64);
	E2E_REQUIRE(!e2e_connect(&p->nic, p->tx.hl->qp, &p->nic.gid, p->rx.qpn, path));
	E2E_REQUIRE(!e2e_connect(&p->nic, p->rx.hl->qp, &p->nic.gid, p->tx.qpn, path));
	e2e_buf_open(&p->nic, &p->src, BYTES, IBV_ACCESS_LOCAL_WRITE);
	e2e_buf_open(&p->nic, &p->dst, BYTES, E2E_REMOTE);
	for (unsigned int i = 0; i < DEPTH; i++)
		E2E_REQUIRE(!post(p, ending == ERROR_CQE && i == BAD ? 0x100 : 0, &t) && t == i);
}

static void pause_ms(unsigned int ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000l };

	nanosleep(&t, NULL);
}

/* Starts the threads. The threads of RESERVE start first, and the function waits until they
 * have increased the reserved index, so that no thread that starts later gets a slot. */
static unsigned int start(struct e2e_pair *p, struct waiter *w, bool collapsed)
{
	unsigned int n = 0, i;

	__atomic_store_n(&started, 0, __ATOMIC_RELAXED);
	for (unsigned int way = RESERVE; way < WAYS; way++) {
		/* POLL_CQ needs one CQE per WQE; NEWEST needs a collapsed CQ. */
		if (collapsed ? way == POLL_CQ : way == NEWEST)
			continue;
		for (i = 0; i < EACH; i++, n++) {
			w[n] = (struct waiter){ .pair = p,
						.way = (enum way)way,
						.index = BAD + n % (DEPTH - BAD) };
			E2E_REQUIRE(!pthread_create(&w[n].thread, NULL, waiter_main, &w[n]));
		}
		while (way == RESERVE && gdk_ld64(gdk_rsvd_index(p->tx.dev), GDK_SCOPE_GPU) <
						 DEPTH + EACH * DEPTH / 2)
			gdk_host_yield();
	}
	while (__atomic_load_n(&started, __ATOMIC_RELAXED) < n)
		gdk_host_yield();
	pause_ms(20);
	return n;
}

/* A collapsed CQ may show only the last flush error. The reported WQE is then the
 * first one not known to be complete, which is at or before the failed WQE. */
static bool is_expected(enum ending ending, bool collapsed, int status, uint64_t error_wqe)
{
	static const int expected[] = { -EIO, -ECANCELED, -ETIMEDOUT };

	if (status != expected[ending])
		return false;
	if (ending == ERROR_CQE)
		return collapsed ? error_wqe <= BAD : error_wqe == BAD;
	return error_wqe == 0;
}

static int finish(struct waiter *w, unsigned int n, enum ending ending, bool collapsed)
{
	int bad = 0;

	for (unsigned int i = 0; i < n; i++) {
		pthread_join(w[i].thread, NULL);
		if (is_expected(ending, collapsed, w[i].status, w[i].error_wqe) &&
		    w[i].status == w[0].status)
			continue;
		fprintf(stderr, "waiters: way %d index %llu: status %d, WQE %llu\n", w[i].way,
			(unsigned long long)w[i].index, w[i].status,
			(unsigned long long)w[i].error_wqe);
		bad = 1;
	}
	return bad;
}

/* Clears the abort: the rung WQEs complete, and the slots that waiting threads had
 * reserved are usable again. */
static int works_after_clear_abort(struct e2e_pair *p)
{
	doca_gpu_dev_verbs_ticket_t t = 0;
	int err = gdk_verbs_qp_clear_abort(p->tx.hl->qp_gverbs);

	e2e_proxy_begin(&p->tx);
	for (unsigned int i = 0; i < 3 * DEPTH && !err; i++)
		err = post(p, 0, &t) || t != DEPTH + i;
	err = err ? err : gdk_wait(p->tx.dev, t, E2E_MODE);
	if (err)
		fprintf(stderr, "waiters: after clear_abort: error %d at WQE %llu\n", err,
			(unsigned long long)t);
	return err != 0;
}

static int run(enum ending ending, bool collapsed)
{
	struct waiter w[WAYS * EACH];
	struct gdk_qp_counters c;
	struct e2e_pair p;
	unsigned int n;
	int bad;

	open_full(&p, collapsed, ending);
	if (ending == LIMIT)
		E2E_REQUIRE(!gdk_verbs_qp_set_wait_limit(p.tx.hl->qp_gverbs, 100000000));
	n = start(&p, w, collapsed);
	if (ending == ERROR_CQE)
		e2e_proxy_begin(&p.tx);
	if (ending == ABORT)
		E2E_REQUIRE(!gdk_verbs_qp_abort(p.tx.hl->qp_gverbs));
	bad = finish(w, n, ending, collapsed);
	E2E_REQUIRE(!gdk_verbs_qp_get_counters(p.tx.hl->qp_gverbs, &c));
	if (!is_expected(ending, collapsed, c.status, c.error_wqe) || c.status != w[0].status) {
		fprintf(stderr, "waiters: the host reads status %d, WQE %llu\n", c.status,
			(unsigned long long)c.error_wqe);
		bad = 1;
	}
	if (ending == ABORT)
		bad |= works_after_clear_abort(&p);
	else if (gdk_verbs_qp_clear_abort(p.tx.hl->qp_gverbs) != DOCA_ERROR_BAD_STATE)
		bad = 1;
	e2e_pair_close(&p);
	if (bad)
		fprintf(stderr, "waiters: ending %d, %s CQ: failed\n", ending,
			collapsed ? "collapsed" : "full-size");
	return bad;
}

int main(void)
{
	int bad = 0;

	for (int collapsed = 0; collapsed < 2; collapsed++)
		for (int ending = ERROR_CQE; ending <= LIMIT; ending++)
			bad |= run((enum ending)ending, collapsed);
	return bad;
}
