/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC thread, one per process. In each pass it serves the wire, the register
 * pages and the queue pairs under the device lock. This file has the pass, the list
 * of busy queue pairs, the engine calls of the front (softnic.h), and the handling of
 * fork: a forked child has no NIC thread. waiting.c has the time between passes.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "eng.h"
#include "eth.h"

#define STOP_LIMIT_S  5
#define STALL_STEP_NS 1000000ull
#define ACK_HELD_MAX  8u

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

uint64_t (*sn_clock)(void) = monotonic;

uint64_t sn_now(void)
{
	return sn_clock();
}

/* ---- queue pairs ---- */

void sn_qp_wake(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->busy)
		return;
	q->busy = true;
	q->busy_next = NULL;
	*e->busy_tail = q;
	e->busy_tail = &q->busy_next;
}

/* True if the queue pair has no work until a doorbell, a packet or a state change wakes it. */
static bool is_idle(const struct sn_qp_eng *q)
{
	if (q->qp->eth)
		return sn_eth_sq_idle(q);
	return q->req.head == q->req.tail && q->sq.fetch == q->sq.pi &&
	       q->rsp.job_head == q->rsp.job_tail && !q->rsp.ack_due && !q->rsp.nak_due;
}

/* Returns true if an answer is to be sent now. While packets keep arriving, an acknowledgement is
 * delayed by up to ACK_HELD_MAX passes, so that it covers later packets, too. It must precede the
 * answer to a query (peer.c). */
static bool may_answer(const struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->rsp.job_head != q->rsp.job_tail || q->rsp.nak_due)
		return true;
	if (!q->rsp.ack_due ||
	    (e->arriving && !e->peers.nqueries && ++q->rsp.ack_held <= ACK_HELD_MAX))
		return false;
	q->rsp.ack_held = 0;
	return true;
}

static bool serve_qp(struct sn_eng *e, struct sn_qp_eng *q)
{
	bool any = false;

	if (q->qp->eth)
		return sn_eth_sq_serve(e, q);
	if (may_answer(e, q))
		any |= sn_rsp_send(e, q);
	switch (q->qp->state) {
	case SN_QPS_ERR:
	case SN_QPS_SQER:
		if (q->sq.fetch != q->sq.pi || q->req.head != q->req.tail)
			/* receive WQEs posted later are flushed by the sweep of uar_watch.c */
			sn_sq_flush(e, q);
		return any;
	case SN_QPS_RTS:
		any |= sn_req_timer(e, q);
		if (q->sq.fetch != q->sq.pi)
			any |= sn_sq_fetch(e, q);
		break;
	case SN_QPS_SQD:
		any |= sn_req_timer(e, q);
		sn_req_drained(e, q);
		break;
	default:
		return any;
	}
	if (q->req.head != q->req.tail)
		any |= sn_req_send(e, q);
	if (q->qp->state == SN_QPS_SQD) /* UC: messages are finished once they are sent */
		sn_req_drained(e, q);
	return any;
}

void sn_qp_to_error(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->qp->state == SN_QPS_ERR)
		return;
	sn_sq_posted(e, q);
	q->qp->state = SN_QPS_ERR;
	q->req.timer = 0;
	sn_qp_wake(e, q);
	sn_sq_flush(e, q);
	sn_rq_flush(e, q);
	if (q->qp->srq)
		sn_event_async_qp(e->dev, q->qp, SN_ASYNC_LAST_WQE);
	sn_eng_rts_count(e, q);
}

/* A failed send request moves a reliable queue pair to error. It stops only the send queue of an
 * unreliable one. */
void sn_qp_send_error(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->qp->type == SN_QPT_RC) {
		sn_qp_to_error(e, q);
		return;
	}
	sn_sq_posted(e, q);
	q->qp->state = SN_QPS_SQER;
	sn_sq_flush(e, q);
}

/* Moves each queue pair, from RTR on, to error if one of its CQs is in error: its completions are
 * lost. */
static void fail_with_cq(struct sn_eng *e)
{
	struct sn_qp_eng *q;

	e->cq_failed = false;
	for (q = e->qps; q; q = q->next) {
		struct sn_qp *qp = q->qp;

		if (qp->state < SN_QPS_RTR || qp->state == SN_QPS_ERR ||
		    !((qp->scq && qp->scq->error) || (qp->rcq && qp->rcq->error)))
			continue;
		if (qp->eth) {
			sn_eth_qp_modify(e->dev, qp, SN_QPS_ERR);
			continue;
		}
		sn_event_async_qp(e->dev, q->qp, SN_ASYNC_QP_FATAL);
		sn_qp_to_error(e, q);
	}
}

void sn_eng_rts_count(struct sn_eng *e, struct sn_qp_eng *q)
{
	bool is = q->qp->state >= SN_QPS_RTR && q->qp->state != SN_QPS_ERR;

	e->nrts += (unsigned)is - (unsigned)q->is_rts;
	q->is_rts = is;
}

/* ---- the thread ---- */

/* Serves each busy QP once. Those that stay busy are served again in the next pass. */
static bool serve_busy(struct sn_eng *e)
{
	struct sn_qp_eng *q, *next = e->busy;
	bool any = false;

	e->busy = NULL;
	e->busy_tail = &e->busy;
	while ((q = next)) {
		next = q->busy_next;
		q->busy = false;
		any |= serve_qp(e, q);
		if (!is_idle(q))
			sn_qp_wake(e, q);
	}
	return any;
}

static void unlink_busy(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_qp_eng **at = &e->busy;

	if (!q->busy)
		return;
	while (*at != q)
		at = &(*at)->busy_next;
	*at = q->busy_next;
	if (e->busy_tail == &q->busy_next)
		e->busy_tail = at;
	q->busy = false;
}

bool sn_eng_pass(struct sn_eng *e)
{
	bool any;

	e->passes++;
	sn_clock_publish(e);
	sn_guard_pass();
	sn_gpu_fresh();
	sn_peers_poll(e);
	any = sn_wire_poll(e);
	if (e->eth)
		any |= sn_eth_poll(e);
	any |= sn_uar_poll(e);
	any |= sn_uar_sweep(e);
	any |= sn_uar_settle(e);
	/* discard data read ahead for packets: it may be older than a doorbell of this pass */
	sn_gpu_fresh();
	e->copied = false;
	any |= serve_busy(e);
	any |= e->copied;
	if (e->cq_failed)
		fail_with_cq(e);
	sn_cq_due(e);
	sn_mem_settle();
	sn_wire_flush(e);
	if (e->eth)
		sn_eth_flush(e);
	if (e->peers.nqueries && !e->more && !sn_eth_more(e))
		sn_peers_answer(e);
	if (any)
		e->last_active = e->now;
	return any;
}

static void *nic_thread(void *arg)
{
	uint64_t stalled, due = UINT64_MAX;
	struct sn_eng *e = arg;
	bool any;
	long ns;

	prctl(PR_SET_NAME, "softnic");
	sn_hide_thread(true);
	sn_wait_setup(e);
	while (!__atomic_load_n(&e->stop, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&e->dev->lock);
		sn_eng_clock(e, due);
		stalled = sn_min64(sn_fault_stall(e), STALL_STEP_NS);
		any = !stalled && sn_eng_pass(e);
		ns = stalled ? (long)stalled : any ? 0 : sn_wait_time(e);
		due = ns < 0 ? UINT64_MAX : e->now + (uint64_t)ns;
		e->eth_fd = sn_eth_fd(e); /* the front may close the port after the unlock */
		if (e->dev->snapshot)
			e->dev->snapshot(e->dev, e->now);
		pthread_mutex_unlock(&e->dev->lock);
		if (stalled)
			sn_wait_stalled(e, stalled);
		else
			sn_wait(e, ns, any);
	}
	sn_hide_thread(false);
	return NULL;
}

static int spawn(struct sn_eng *e)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* guard.c handles them on this thread */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&e->thread, NULL, nic_thread, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

/* ---- fork ---- */

/* The engine whose thread runs. The handler of uverbs_context.c, which clears sn_dev, runs before
 * the one below. */
static struct sn_eng *of_thread;

static void forked_child(void)
{
	struct sn_eng *e = of_thread;

	if (!e)
		return;
	of_thread = NULL;
	pthread_mutex_init(&e->dev->lock, NULL);
	e->running = false;
	e->dead = true;
	close(e->sock);
	close(e->evfd);
	e->sock = e->evfd = -1;
	sn_peers_close(e);
	e->pcap = NULL;
	e->recent = false;
	sn_eth_close(e);
}

static void register_atfork(void)
{
	pthread_atfork(NULL, NULL, forked_child);
}

/* ---- calls of the front ---- */

int sn_eng_create(struct sn_dev *dev)
{
	struct sn_eng *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->dev = dev;
	e->started = sn_now();
	e->busy_tail = &e->busy;
	sn_probe_wait_init(e);
	e->rng = dev->cfg.seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull;
	e->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = e->evfd < 0 ? -errno : sn_wire_open(e);
	if (err)
		goto free_engine;
	sn_peers_open(e);
	sn_pcap_open(e);
	dev->eng = e;
	return 0;

free_engine:
	if (e->evfd >= 0)
		close(e->evfd);
	free(e);
	return err;
}

static void destroy(struct sn_dev *dev)
{
	struct sn_eng *e = dev->eng;

	sn_pcap_close(e);
	sn_eth_close(e);
	sn_wire_close(e);
	sn_peers_close(e);
	sn_writers_free(&e->writers);
	if (e->evfd >= 0)
		close(e->evfd);
	dev->eng = NULL;
	free(e);
}

int sn_eng_start(struct sn_dev *dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err;

	if (dev->eng && dev->eng->running)
		return 0;
	err = sn_eng_create(dev);
	if (err)
		return err;
	sn_guard_install();
	dev->eng->running = true;
	err = spawn(dev->eng);
	if (err) {
		sn_guard_remove();
		destroy(dev);
		return err;
	}
	of_thread = dev->eng;
	pthread_once(&once, register_atfork);
	return 0;
}

/* Joins the thread. Returns false if it still runs after STOP_LIMIT_S: when the process exits, the
 * thread may hang in a driver that has already shut down. */
static bool join_thread(struct sn_eng *e)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_LIMIT_S;
	if (!pthread_timedjoin_np(e->thread, NULL, &until))
		return true;
	sn_message("NIC thread still runs %d s after the stop request, leaving it", STOP_LIMIT_S);
	pthread_detach(e->thread);
	return false;
}

void sn_eng_stop(struct sn_dev *dev)
{
	struct sn_eng *e = dev->eng;

	if (!e)
		return;
	if (e->running) {
		of_thread = NULL;
		__atomic_store_n(&e->stop, 1, __ATOMIC_RELEASE);
		sn_eng_kick(dev);
		if (!join_thread(e)) { /* the thread still uses *e, so *e is not freed */
			dev->eng = NULL;
			return;
		}
		sn_guard_remove();
	}
	destroy(dev);
}

void sn_eng_kick(struct sn_dev *dev)
{
	const uint64_t one = 1;

	if (!dev->eng || !dev->eng->running ||
	    __atomic_exchange_n(&dev->eng->kicked, 1, __ATOMIC_ACQ_REL))
		return;
	if (write(dev->eng->evfd, &one, sizeof(one)) < 0)
		return;
}

static void classify_memory(struct sn_qp_eng *q)
{
	const struct sn_qp *qp = q->qp;

	q->sq_gpu = qp->sq_wqebbs && sn_mem_is_gpu(qp->sq_buf, 64);
	q->rq_gpu = qp->rq_wqes && sn_mem_is_gpu(qp->rq_buf, 16);
	q->dbr_gpu = qp->dbr && sn_mem_is_gpu(qp->dbr, 8);
	q->sq_cuda = qp->sq_wqebbs && sn_mem_is_cuda(qp->sq_buf);
	q->dbr_ok = qp->dbr && !q->dbr_gpu && qp->dbr % 4 == 0 && sn_mem_readable(qp->dbr, 8);
}

static uint32_t qp_mtu(const struct sn_dev *dev, const struct sn_qp *qp)
{
	if (qp->type != SN_QPT_UD && qp->path_mtu >= 1 && qp->path_mtu <= 5)
		return 128u << qp->path_mtu;
	return dev->cfg.mtu >= 256 && dev->cfg.mtu <= 4096 ? dev->cfg.mtu : 4096;
}

int sn_eng_eth_open(struct sn_dev *dev)
{
	return dev->eng ? sn_eth_open(dev->eng) : -ENODEV;
}

int sn_eng_qp_add(struct sn_dev *dev, struct sn_qp *qp)
{
	struct sn_eng *e = dev->eng;
	struct sn_qp_eng *q;

	if (!e)
		return -ENODEV;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->qp = qp;
	q->mtu = qp_mtu(dev, qp);
	classify_memory(q);
	SN_LINK(&e->qps, q, next, at);
	sn_uar_attach(e, q);
	e->nqps++;
	if (qp->type == SN_QPT_UD)
		sn_wire_report_headers(e);
	qp->eng = q;
	sn_uar_list(e);
	sn_eng_kick(dev);
	return 0;
}

/* Sends the acknowledgement that may_answer() delayed, before a queue pair stops answering. */
static void answer_now(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (!q->rsp.ack_due || e->dead)
		return;
	sn_rsp_send(e, q);
	sn_wire_flush(e);
}

void sn_eng_qp_remove(struct sn_dev *dev, struct sn_qp *qp)
{
	struct sn_qp_eng *q = qp->eng;
	struct sn_eng *e = dev->eng;

	if (!q || !e)
		return;
	answer_now(e, q);
	if (qp->eth)
		sn_eth_sq_reset(e, q);
	if (!e->dead)
		/* take doorbells now: a later pass would find no QP and count a violation */
		sn_uar_drain(e, qp->uar);
	SN_UNLINK(q, next, at);
	sn_uar_detach(e, q);
	unlink_busy(e, q);
	sn_peer_put(e, q->peer);
	e->nqps--;
	qp->eng = NULL;
	e->nrts -= q->is_rts;
	sn_sq_free(q);
	free(q);
}

static void reset(struct sn_qp_eng *q)
{
	q->sq = (struct sn_qp_sq){ .last_ring = q->page->rings };
	q->req = (struct sn_qp_req){ 0 };
	memset(&q->rsp, 0, sizeof(q->rsp)); /* too large for a temporary */
}

void sn_eng_qp_state(struct sn_dev *dev, struct sn_qp *qp, enum sn_qp_state from)
{
	struct sn_qp_eng *q = qp->eng;
	struct sn_eng *e = dev->eng;

	if (!q || !e)
		return;
	if (qp->eth) {
		if (qp->state == SN_QPS_RST && !e->dead)
			sn_uar_drain(e, qp->uar);
		if (qp->state == SN_QPS_RST)
			reset(q);
		sn_eth_state(e, q, from);
		sn_qp_wake(e, q);
		sn_eng_rts_count(e, q);
		sn_eng_kick(dev);
		return;
	}
	if (qp->state == SN_QPS_RST || qp->state == SN_QPS_ERR)
		answer_now(e, q);
	switch (qp->state) {
	case SN_QPS_RST:
		qp->mmo = qp->mmo_created;
		/* fallthrough */
	case SN_QPS_INIT: /* doorbells that arrived while the QP was in reset are discarded */
		if (from == SN_QPS_INIT)
			break;
		if (!e->dead)
			sn_uar_drain(e, qp->uar);
		reset(q);
		break;
	case SN_QPS_RTR:
		q->mtu = qp_mtu(dev, qp);
		q->rsp.epsn = qp->rq_psn & SN_PSN_MASK;
		sn_peer_put(e, q->peer);
		q->peer = qp->type == SN_QPT_RC ? sn_peer_get(e, &qp->way.ip) : NULL;
		break;
	case SN_QPS_RTS:
		q->req.ce_error = false;
		if (from != SN_QPS_RTR)
			break;
		sn_window_open(q);
		q->req.next_psn = q->req.una = q->req.max_sent = qp->sq_psn & SN_PSN_MASK;
		break;
	case SN_QPS_SQD:
		if (from == SN_QPS_RTS)
			sn_req_drain(q);
		break;
	case SN_QPS_ERR:
		q->rsp.job_head = q->rsp.job_tail;
		q->rsp.ack_due = false;
		q->rsp.nak_due = 0;
		e->now = sn_now();
		if (from != SN_QPS_RST && from != SN_QPS_ERR) {
			qp->state = from;
			sn_qp_to_error(e, q);
		}
		break;
	default:
		break;
	}
	sn_qp_wake(e, q);
	sn_eng_rts_count(e, q);
	sn_eng_kick(dev);
}

void sn_eth_qp_modify(struct sn_dev *dev, struct sn_qp *qp, enum sn_qp_state to)
{
	enum sn_qp_state from = qp->state;

	qp->state = to;
	sn_eng_qp_state(dev, qp, from);
}

void sn_eng_qp_query(struct sn_qp *qp, uint32_t *sq_psn, uint32_t *rq_psn, uint16_t *sq_ci)
{
	const struct sn_qp_eng *q = qp->eng;

	*sq_psn = q ? q->req.max_sent : 0;
	*rq_psn = q ? q->rsp.epsn : 0;
	*sq_ci = !q ? 0 : q->req.head != q->req.tail ? sn_msg_at(q, q->req.head)->idx : q->sq.fetch;
}

bool sn_eng_qp_draining(const struct sn_qp *qp)
{
	return qp->state == SN_QPS_SQD && qp->eng && !qp->eng->req.drained;
}
