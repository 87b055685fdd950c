/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Status and control of an exported queue pair from the host: counters, the report of the
 * chosen handler, warnings about slots that were never rung, abort and time limit. Errors are
 * in error.c, the reset is in reset.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "device/gdk/wait_dev.h"
#include "qp/export/export.h"

#define CQE_BYTES 64u

doca_error_t gdk_queue_read(doca_gpu_t *gpu, void *dst, const void *src, size_t len)
{
	if (gpu)
		return gdk_gpu_read(gpu, dst, src, len);
	memcpy(dst, src, len);
	return DOCA_SUCCESS;
}

doca_error_t gdk_export_read_cq(const struct doca_verbs_cq_t *cq, uint8_t **out)
{
	size_t len = (size_t)cq->cqe_num * CQE_BYTES;
	uint8_t *ring = malloc(len);
	doca_error_t err;

	if (!ring) {
		gdk_err("CQ 0x%x: no memory for a copy of %zu bytes", cq->cqn, len);
		return DOCA_ERROR_NO_MEMORY;
	}
	err = gdk_queue_read(cq->gpu, ring, cq->buf, len);
	if (err != DOCA_SUCCESS) {
		free(ring);
		return err;
	}
	*out = ring;
	return DOCA_SUCCESS;
}

/* ---- report, counters, abort ---- */

doca_error_t gdk_verbs_qp_get_handler_report(const struct doca_gpu_verbs_qp *qp,
					     struct gdk_handler_report *report)
{
	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(report);
	/* q.pub is at offset 0 of struct gdk_export */
	gdk_doorbell_report(&((const struct gdk_export *)qp)->q.decision, report);
	return DOCA_SUCCESS;
}

/* GPU address of the device struct of a queue that GPU threads use. */
static struct doca_gpu_dev_verbs_qp *dev_in_use(const struct gdk_export *x,
						const struct gdk_export_queue *q)
{
	if (q->dev == &x->dev && x->q.pub.qp_gpu)
		return x->q.pub.qp_gpu;
	return (void *)((uint8_t *)q->state + q->dev_at);
}

/* Copies the state block of a queue, its ready bits and the device struct behind it from GPU
 * memory. The caller frees the copy. *reserved is the reservation index in the device struct that
 * GPU threads use. */
static doca_error_t read_state(const struct gdk_export *x, const struct gdk_export_queue *q,
			       struct gdk_qp_state **out, uint64_t *reserved)
{
	const struct doca_gpu_dev_verbs_qp *dev = dev_in_use(x, q);
	size_t bytes = q->dev_at + sizeof(*dev);
	struct gdk_qp_state *st = malloc(bytes);
	doca_error_t err;

	if (!st) {
		gdk_err("QP 0x%x: no memory for a copy of its state", x->q.pub.qp->qpn);
		return DOCA_ERROR_NO_MEMORY;
	}
	err = gdk_gpu_read(x->q.pub.gpu_dev, st, q->state, bytes);
	if (err == DOCA_SUCCESS && (uint8_t *)dev != (uint8_t *)q->state + q->dev_at)
		err = gdk_gpu_read(x->q.pub.gpu_dev, reserved, &dev->sq_rsvd_index,
				   sizeof(*reserved));
	else
		*reserved = ((const struct doca_gpu_dev_verbs_qp *)((uint8_t *)st + q->dev_at))
				    ->sq_rsvd_index;
	if (err != DOCA_SUCCESS) {
		free(st);
		return err;
	}
	*out = st;
	return DOCA_SUCCESS;
}

/* As gdk_qp_error_wqe(), which looks for the first error in the CQ. st: a copy of the state. */
static doca_error_t find_error_wqe(const struct gdk_export *x, struct gdk_qp_state *st,
				   uint64_t *index)
{
	const struct doca_gpu_dev_verbs_qp dev = { .gdk_state = st };
	uint8_t *ring;
	doca_error_t err = gdk_export_read_cq(x->cq, &ring);

	if (err != DOCA_SUCCESS)
		return err;
	st->cq_ring = (uint64_t)(uintptr_t)ring;
	*index = gdk_qp_error_wqe(&dev);
	free(ring);
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_qp_get_counters(struct doca_gpu_verbs_qp *qp,
				       struct gdk_qp_counters *counters)
{
	struct gdk_export_queue q;
	struct gdk_qp_state *st;
	struct gdk_export *x;
	uint64_t reserved, rings;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(counters);
	x = gdk_to_export(qp);
	gdk_watch_report(x);
	q = gdk_export_sq(x);
	err = read_state(x, &q, &st, &reserved);
	if (err != DOCA_SUCCESS)
		return err;
	rings = atomic_load_explicit(&x->q.proxy.rings, memory_order_relaxed);
	/* With a CPU proxy only the proxy writes the register: GPU threads raise a counter instead,
	 * so st->doorbells is not added. */
	counters->doorbells = x->q.decision.chosen == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY
				      ? rings
				      : st->doorbells + rings;
	counters->dbrec_updates = st->bare_records;
	if (!qp->qp->no_dbr)
		counters->dbrec_updates += counters->doorbells - st->bare_rings;
	counters->wqes_reserved = reserved;
	counters->completions = st->completed;
	counters->status = st->status;
	counters->error_wqe = 0;
	if (st->status)
		err = find_error_wqe(x, st, &counters->error_wqe);
	free(st);
	return err;
}

doca_error_t gdk_verbs_qp_get_recv_counters(struct doca_gpu_verbs_qp *qp,
					    struct gdk_qp_recv_counters *counters)
{
	struct gdk_export_queue q;
	struct gdk_qp_state *st;
	uint64_t reserved;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(counters);
	q = gdk_export_rq(gdk_to_export(qp));
	GDK_CHECK_ARG(q.cq, "QP 0x%x: its receive queue is not exported", qp->qp->qpn);
	err = read_state(gdk_to_export(qp), &q, &st, &reserved);
	if (err != DOCA_SUCCESS)
		return err;
	counters->reserved = reserved;
	counters->posted = st->rung;
	counters->completions = st->completed;
	counters->status = st->status;
	counters->error_wqe = st->error_wqe == GDK_NO_WQE ? 0 : st->error_wqe;
	free(st);
	return DOCA_SUCCESS;
}

/* ---- slots that were never rung ---- */

/* Finds the first slot, starting at rung, that is not published. *beyond is the number of published
 * slots after that slot. */
static uint64_t find_gap(struct gdk_qp_state *st, uint64_t *beyond)
{
	const uint64_t end = st->rung + st->depth;
	uint64_t i = st->rung, gap;

	while (i < end && gdk_is_ready(st, st->depth, i))
		i++;
	gap = i;
	for (*beyond = 0; i < end; i++)
		*beyond += gdk_is_ready(st, st->depth, i) ? 1 : 0;
	return gap;
}

void gdk_export_warn_unserved(const struct gdk_export *x)
{
	const struct doca_gpu_verbs_qp *qp = &x->q.pub;
	uint64_t raised, rung;

	if (!x->q.proxy.page)
		return;
	raised = __atomic_load_n(qp->cpu_db, __ATOMIC_RELAXED);
	rung = __atomic_load_n(&qp->sq_wqe_pi_last, __ATOMIC_RELAXED);
	if (raised > rung)
		gdk_warn(
			"QP 0x%x: doorbells up to index %llu are pending, but the CPU rang only up "
			"to %llu: monitor the QP by a service, or call cpu_proxy_progress",
			qp->qp->qpn, (unsigned long long)raised, (unsigned long long)rung);
}

/* Slots of a queue that were reserved or published but not rung. */
struct tail {
	uint64_t rung, reserved, published;
	bool ended; /* with an error or an abort, or unknown */
};

static struct tail read_tail(struct gdk_export *x, const struct gdk_export_queue *q)
{
	struct tail t = { .ended = true };
	uint64_t reserved, beyond;
	struct gdk_qp_state *st;

	if (!q->cq || read_state(x, q, &st, &reserved) != DOCA_SUCCESS)
		return t;
	t.rung = st->rung;
	t.published = find_gap(st, &beyond) - st->rung + beyond;
	t.reserved = reserved > t.rung + t.published ? reserved - t.rung : t.published;
	t.ended = st->status || st->abort_word;
	free(st);
	return t;
}

void gdk_export_warn_tail(struct gdk_export *x)
{
	const struct gdk_export_queue sq = gdk_export_sq(x), rq = gdk_export_rq(x);
	const struct tail s = read_tail(x, &sq), r = read_tail(x, &rq);

	if (s.reserved && !s.ended)
		gdk_warn("QP 0x%x: slots from %llu on were never rung: %llu reserved, %llu of them "
			 "published (is a submit missing?)",
			 x->q.pub.qp->qpn, (unsigned long long)s.rung,
			 (unsigned long long)s.reserved, (unsigned long long)s.published);
	if (r.reserved && !r.ended && !s.ended)
		gdk_warn("QP 0x%x: receives from %llu on were never offered to the NIC: %llu "
			 "reserved, %llu of them marked ready (is a submit missing?)",
			 x->q.pub.qp->qpn, (unsigned long long)r.rung,
			 (unsigned long long)r.reserved, (unsigned long long)r.published);
}

/* ---- abort and limits ---- */

/* Stores a word of the state blocks that GPU threads poll. If the CPU can access the memory, the
 * store is atomic. */
static doca_error_t state_store32(struct gdk_export *x, size_t offset, uint32_t value)
{
	void *const states[] = { x->q.state, x->rq.state };
	doca_error_t err = DOCA_SUCCESS;
	uint32_t *at, *cpu;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(states) && states[i] && err == DOCA_SUCCESS; i++) {
		at = (void *)((uint8_t *)states[i] + offset);
		cpu = gdk_gpu_cpu_ptr(x->q.pub.gpu_dev, at);
		if (cpu)
			__atomic_store_n(cpu, value, __ATOMIC_SEQ_CST);
		else
			err = gdk_gpu_write(x->q.pub.gpu_dev, at, &value, sizeof(value));
	}
	return err;
}

doca_error_t gdk_verbs_qp_abort(struct doca_gpu_verbs_qp *qp)
{
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	err = state_store32(gdk_to_export(qp), offsetof(struct gdk_qp_state, abort_word), 1);
	return err == DOCA_SUCCESS ? gdk_dev_clear_plain_ends(gdk_to_export(qp)) : err;
}

/* Moves the reservation index back to the first slot that is not published: an aborted reservation
 * left a gap, and slots behind a gap are never rung. Published slots before the gap are kept; the
 * next submit rings them. */
static doca_error_t undo_reservations(const struct gdk_export *x, const struct gdk_export_queue *q,
				      struct gdk_qp_state *st, uint64_t reserved)
{
	struct doca_gpu_dev_verbs_qp *dev = dev_in_use(x, q);
	uint64_t beyond, gap = find_gap(st, &beyond);

	if (beyond) {
		gdk_err("QP 0x%x: cannot clear the abort: WQEs are published behind %s %llu, "
			"which is not published; reset the QP",
			x->q.pub.qp->qpn, q->flags & GDK_QPF_RECV ? "receive" : "slot",
			(unsigned long long)gap);
		return DOCA_ERROR_BAD_STATE;
	}
	if (reserved <= gap)
		return DOCA_SUCCESS;
	q->dev->sq_rsvd_index = gap;
	return gdk_gpu_write(x->q.pub.gpu_dev, &dev->sq_rsvd_index, &gap, sizeof(gap));
}

/* Prepares one queue for gdk_verbs_qp_clear_abort(), which clears the status afterwards. */
static doca_error_t prepare_clear(const struct gdk_export *x, const struct gdk_export_queue *q)
{
	struct gdk_qp_state *st;
	uint64_t reserved;
	doca_error_t err = read_state(x, q, &st, &reserved);

	if (err != DOCA_SUCCESS)
		return err;
	if (st->status && st->status != -ECANCELED && st->status != -ENOTCONN) {
		gdk_err("QP 0x%x: cannot clear the abort: it ended with error status %d; reset the "
			"QP",
			x->q.pub.qp->qpn, st->status);
		err = DOCA_ERROR_BAD_STATE;
	} else {
		err = undo_reservations(x, q, st, reserved);
	}
	free(st);
	return err;
}

doca_error_t gdk_verbs_qp_clear_abort(struct doca_gpu_verbs_qp *qp)
{
	struct gdk_export_queue q;
	struct gdk_export *x;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	x = gdk_to_export(qp);
	q = gdk_export_sq(x);
	err = prepare_clear(x, &q);
	q = gdk_export_rq(x);
	if (err == DOCA_SUCCESS && q.cq)
		err = prepare_clear(x, &q);
	if (err == DOCA_SUCCESS)
		err = state_store32(x, offsetof(struct gdk_qp_state, abort_word), 0);
	if (err == DOCA_SUCCESS)
		err = state_store32(x, offsetof(struct gdk_qp_state, status), 0);
	return err;
}

doca_error_t gdk_verbs_qp_set_wait_limit(struct doca_gpu_verbs_qp *qp, uint64_t ns)
{
	const size_t at = offsetof(struct gdk_qp_state, wait_limit_ns);
	struct gdk_export *x;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	x = gdk_to_export(qp);
	x->wait_limit_ns = ns;
	err = gdk_gpu_write(qp->gpu_dev, (uint8_t *)x->q.state + at, &ns, sizeof(ns));
	if (err == DOCA_SUCCESS && x->rq.cq)
		err = gdk_gpu_write(qp->gpu_dev, (uint8_t *)x->rq.state + at, &ns, sizeof(ns));
	return err;
}
