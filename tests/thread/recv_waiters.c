/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks that no wait of the receive side lasts forever. On a full receive queue, threads wait in
 * several ways: for receives, for all of them, for CQEs, for free slots. After an abort by the
 * host, after the time limit, after an error of the NIC on either queue, after the host has moved
 * the QP to the error state, and after the peer is gone, all waits must return the same status
 * within a bound, in each sharing mode and with each handler. After the host has cleared an abort,
 * the receives that were posted before must complete. A thread whose receive is complete, and that
 * waits for a dump which no CPU thread rings, must hear the abort and the limit, too.
 */
#include <pthread.h>

#include "../lib/recv_rig.h"

#define DEPTH	 8u
#define LIMIT_NS 30000000u
#define BOUND_NS 5000000000u /* from the ending to the end of all waits */
#define CTA	 DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA

enum way { RESERVE, POST, SLOT, WAIT, RQ_WAIT, ALL, FLUSH, POLL_AT, POLL_ONE, WAYS };
/* PEER_GONE: the receiver does not notice, so its limit counts. PEER_GONE_WRITE: a write of the
 * receiver to the peer is outstanding. */
enum ending {
	ABORT,
	LIMIT,
	SHORT_BUFFER,
	WRITE_ERROR,
	TO_ERR,
	PEER_GONE,
	PEER_GONE_WRITE,
	ENDINGS
};

static const struct doca_gpu_dev_verbs_addr nothing;
static struct recv_rig r;
static gdk_mode_t mode;
static unsigned int started;

struct waiter {
	enum way way;
	uint64_t index;
	pthread_t thread;
	int status;
};

static struct gdk_how how(void)
{
	return gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
}

static int poll_one(uint64_t index, struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	uint32_t spins = 0;
	int err;

	while ((err = gdk_poll_one_cqe_at(gdk_qp_cq_rq(r.a.dev), index, mode, cqe)) == EBUSY)
		gdk_relax(spins++);
	return err;
}

static int wait_by(const struct waiter *w)
{
	const enum doca_gpu_dev_verbs_mcst_mode no_dump = DOCA_GPUNETIO_VERBS_MCST_DISABLED;
	struct doca_gpu_dev_verbs_qp *qp = r.a.dev;
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t idx;

	switch (w->way) {
	case RESERVE:
		return gdk_rq_reserve(qp, 1, mode, 0, &idx);
	case POST:
		return gdk_recv(qp, recv_at(&r.a, 0), 16, &idx, how());
	case SLOT:
		return gdk_rq_wait_slot(qp, DEPTH + w->index, mode);
	case WAIT:
		return gdk_recv_wait(qp, w->index, nothing, no_dump, mode, &cqe);
	case RQ_WAIT:
		return gdk_rq_wait(qp, w->index, mode);
	case ALL:
		return gdk_recv_wait_all(qp, nothing, no_dump, mode, &cqe);
	case FLUSH:
		return gdk_rq_flush(qp, mode);
	case POLL_AT:
		return gdk_poll_cqe_at(gdk_qp_cq_rq(qp), w->index, mode, &cqe);
	default:
		return poll_one(w->index, &cqe);
	}
}

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	__atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
	w->status = wait_by(w);
	return NULL;
}

static int write_to_peer(uint32_t flip)
{
	struct doca_gpu_dev_verbs_addr to = recv_remote(&r.b, 0);
	uint64_t ticket;
	bool rung;
	int err;

	to.key ^= flip;
	err = gdk_put(r.a.dev, to, recv_at(&r.a, 0), 8, &ticket, how());
	if (!err && r.a.how.handler == E2E_PROXY)
		err = doca_gpu_verbs_cpu_proxy_progress(r.a.ex, &rung) || !rung;
	return err;
}

static int send_from_peer(size_t bytes)
{
	uint64_t ticket;
	bool rung;
	int err = gdk_send(r.b.dev, recv_at(&r.b, 0), bytes, &ticket,
			   gdk_how(E2E_MODE, GDK_AUTO, GDK_THREAD, 0));

	if (!err && r.b.how.handler == E2E_PROXY)
		err = doca_gpu_verbs_cpu_proxy_progress(r.b.ex, &rung) || !rung;
	return err;
}

static int to_err(void)
{
	doca_verbs_qp_attr_t *attr;
	int err;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_ERR));
	err = doca_verbs_qp_modify(r.a.qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE);
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
	return err;
}

static int end_by(enum ending ending)
{
	switch (ending) {
	case ABORT:
		return gdk_verbs_qp_abort(r.a.ex);
	case LIMIT:
		return 0;
	case SHORT_BUFFER:
		return send_from_peer(64);
	case WRITE_ERROR:
		return write_to_peer(0x100);
	case TO_ERR:
		return to_err();
	case PEER_GONE:
		E2E_REQUIRE(!doca_gpu_verbs_unexport_qp(r.nic.gpu, r.b.ex));
		return doca_verbs_qp_destroy(r.b.qp);
	default:
		E2E_REQUIRE(!doca_gpu_verbs_unexport_qp(r.nic.gpu, r.b.ex));
		E2E_REQUIRE(!doca_verbs_qp_destroy(r.b.qp));
		return write_to_peer(0);
	}
}

/* Opens the rig, with a full receive queue on side a. */
static void open_full(enum doca_gpu_dev_verbs_nic_handler handler, enum ending ending)
{
	/* The ACK timeout is 4.096 us << 8 = 1 ms, and each packet is sent up to 3 times. */
	const struct e2e_path path = { 8, 2, 0x1234 };
	const struct recv_rig_how shape = { .handler = handler, .sq_wr = DEPTH, .rq_wr = DEPTH };
	uint64_t idx;

	e2e_open(&r.nic);
	recv_end_open(&r.nic, &r.a, shape, NULL);
	recv_end_open(&r.nic, &r.b, shape, NULL);
	E2E_REQUIRE(!e2e_connect(&r.nic, r.a.qp, &r.nic.gid, r.b.qpn, path));
	E2E_REQUIRE(!e2e_connect(&r.nic, r.b.qp, &r.nic.gid, r.a.qpn, path));
	if (ending == LIMIT || ending == PEER_GONE)
		E2E_REQUIRE(!gdk_verbs_qp_set_wait_limit(r.a.ex, LIMIT_NS));
	for (unsigned int i = 0; i < DEPTH; i++)
		E2E_REQUIRE(!gdk_recv(r.a.dev, recv_at(&r.a, 0), 16, &idx, how()) && idx == i);
}

static void close_rig(enum ending ending)
{
	recv_end_close(&r.a);
	if (ending == PEER_GONE || ending == PEER_GONE_WRITE) {
		E2E_REQUIRE(!doca_verbs_cq_destroy(r.b.scq));
		E2E_REQUIRE(!doca_verbs_cq_destroy(r.b.rcq));
		e2e_buf_close(&r.b.buf);
	} else {
		recv_end_close(&r.b);
	}
	e2e_close(&r.nic);
}

/* The aborted waits have reserved slots, which are free again. */
static int works_after_clear_abort(void)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t idx = 0;
	int err = gdk_verbs_qp_clear_abort(r.a.ex);

	for (unsigned int i = 0; i < 2 * DEPTH && !err; i++) {
		err = send_from_peer(8);
		if (!err)
			err = gdk_recv_wait(r.a.dev, i, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
					    mode, &cqe);
		if (!err)
			err = gdk_recv(r.a.dev, recv_at(&r.a, 0), 16, &idx, how()) ||
			      idx != DEPTH + i;
	}
	if (err)
		fprintf(stderr, "recv_waiters: after clear_abort: error %d at receive %llu\n", err,
			(unsigned long long)idx);
	return err != 0;
}

/* Exclusive use: one thread, which waits in the way `first`. */
static int run(enum doca_gpu_dev_verbs_nic_handler handler, enum ending ending, enum way first)
{
	static const int expected[] = {
		-ECANCELED, -ETIMEDOUT, -EIO, -EIO, -EIO, -ETIMEDOUT, -EIO
	};
	const unsigned int n = mode == GDK_EXCLUSIVE ? 1 : WAYS;
	struct gdk_qp_recv_counters c;
	struct waiter w[WAYS];
	unsigned int i;
	uint64_t start;
	int bad = 0;

	open_full(handler, ending);
	__atomic_store_n(&started, 0, __ATOMIC_RELAXED);
	for (i = 0; i < n; i++) {
		w[i] = (struct waiter){ .way = (enum way)(first + i), .index = i % DEPTH };
		E2E_REQUIRE(!pthread_create(&w[i].thread, NULL, waiter_main, &w[i]));
	}
	while (__atomic_load_n(&started, __ATOMIC_RELAXED) < n)
		gdk_host_yield();
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	start = e2e_now_ns();
	E2E_REQUIRE(!end_by(ending));
	for (i = 0; i < n; i++) {
		pthread_join(w[i].thread, NULL);
		if (w[i].status != expected[ending]) {
			fprintf(stderr, "recv_waiters: way %d: status %d\n", w[i].way, w[i].status);
			bad = 1;
		}
	}
	bad |= e2e_now_ns() - start > BOUND_NS;
	bad |= gdk_rq_wait(r.a.dev, 0, mode) != expected[ending];
	E2E_REQUIRE(!gdk_verbs_qp_get_recv_counters(r.a.ex, &c));
	bad |= c.status != expected[ending] || gdk_qp_status(r.a.dev) != expected[ending];
	if (ending == ABORT)
		bad |= works_after_clear_abort();
	close_rig(ending);
	if (bad)
		fprintf(stderr, "recv_waiters: mode %d, handler %d, ending %d, way %d: failed\n",
			mode, handler, ending, first);
	return bad;
}

static void *dump_main(void *arg)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	int *status = arg;

	*status = gdk_recv_wait(r.a.dev, 0, recv_at(&r.a, 0), DOCA_GPUNETIO_VERBS_MCST_ENABLED,
				mode, &cqe);
	return NULL;
}

/* The limit of the wait shall end the dump, not the wait for the message on a busy machine. */
static void receive_first_message(void)
{
	const struct doca_gpunetio_ib_mlx5_cqe64 *cqe = gdk_cqe_at(gdk_qp_cq_rq(r.a.dev), 0);
	const uint64_t start = e2e_now_ns();

	E2E_REQUIRE(!send_from_peer(8));
	while (__atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE) >> 4 ==
	       DOCA_GPUNETIO_IB_MLX5_CQE_INVALID) {
		E2E_REQUIRE(e2e_now_ns() - start < E2E_WAIT_NS);
		gdk_host_yield();
	}
}

static int run_dump(enum ending ending)
{
	const uint64_t start = e2e_now_ns();
	pthread_t thread;
	int status, bad;

	open_full(E2E_PROXY, ending);
	receive_first_message();
	E2E_REQUIRE(!pthread_create(&thread, NULL, dump_main, &status));
	while (!gdk_ld64(gdk_rsvd_index(r.a.dev), GDK_SCOPE_GPU)) {
		E2E_REQUIRE(e2e_now_ns() - start < BOUND_NS);
		gdk_host_yield();
	}
	E2E_REQUIRE(!end_by(ending));
	pthread_join(thread, NULL);
	bad = ending == ABORT ? status != -ECANCELED : status != -ETIMEDOUT;
	bad |= gdk_qp_status(r.a.dev) != status || e2e_now_ns() - start > BOUND_NS;
	close_rig(ending);
	if (bad)
		fprintf(stderr, "recv_waiters: mode %d, ending %d: a dump returned %d\n", mode,
			ending, status);
	return bad;
}

static int run_ways(enum doca_gpu_dev_verbs_nic_handler handler, enum ending ending)
{
	int way, bad = 0;

	if (mode != GDK_EXCLUSIVE)
		return run(handler, ending, RESERVE);
	for (way = 0; way < WAYS; way++)
		if (way != POLL_ONE || (ending != LIMIT && ending != PEER_GONE)) /* has no limit */
			bad |= run(handler, ending, (enum way)way);
	return bad;
}

int main(void)
{
	static const enum doca_gpu_dev_verbs_nic_handler handlers[] = { E2E_DB, E2E_BF, E2E_PROXY,
									E2E_NO_DBR };
	static const gdk_mode_t modes[] = { E2E_MODE, CTA, E2E_EXCL };
	int bad = 0;

	for (unsigned int m = 0; m < 3; m++) {
		for (unsigned int h = 0; h < 4; h++) {
			if (handlers[h] == E2E_NO_DBR && !e2e_has_no_dbr())
				continue;
			mode = modes[m];
			for (int ending = 0; ending < ENDINGS; ending++)
				bad |= run_ways(handlers[h], (enum ending)ending);
		}
		bad |= run_dump(ABORT) | run_dump(LIMIT);
	}
	return bad;
}
