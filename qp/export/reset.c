/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Resets an exported queue pair after a transition to RST: its rings, state block and
 * indices get the content that they had at export. Only the CQ continues where it was, because the
 * NIC keeps its index. Most of this file determines that index. The transition itself is in
 * modify.c.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "device/gdk/cq_dev.h"
#include "qp/export/export.h"
#include "device/gdk/state.h"

#define CQE_BYTES    64u
#define COUNTER_MASK 0xffffffu
/* Maximum delay, in CQEs, of the firmware's producer counter of a collapsed CQ. No source documents
 * it. It must be small: a counter that is up to this value below base counts as not advanced. */
#define COLLAPSED_LAG 64u

static doca_error_t queue_write(doca_gpu_t *gpu, void *dst, const void *src, size_t len)
{
	if (gpu)
		return gdk_gpu_write(gpu, dst, src, len);
	memcpy(dst, src, len);
	return DOCA_SUCCESS;
}

/*
 * Finds the producer index. If some CQEs are invalid, the first invalid one at or after base is
 * the producer. If all are valid, it is where the owner bit (the parity of the lap) changes.
 */
uint64_t gdk_cq_find_producer(const uint8_t *ring, uint32_t num, uint64_t base)
{
	uint8_t first = ring[CQE_BYTES - 1] & 1;
	uint32_t i;

	for (i = 0; i < num; i++)
		if (ring[(((base + i) & (num - 1)) + 1) * CQE_BYTES - 1] >> 4 ==
		    DOCA_GPUNETIO_IB_MLX5_CQE_INVALID)
			return base + i;
	for (i = 1; i < num; i++)
		if ((ring[(i + 1) * (size_t)CQE_BYTES - 1] & 1) != first)
			return (first ? num : 0) + (uint64_t)i;
	return first ? 0 : num;
}

/* Marks all CQEs invalid. The owner bit of each is the opposite of what the NIC writes next. */
static void invalidate_ring(uint8_t *ring, uint32_t num, uint64_t producer)
{
	uint64_t at;
	uint32_t i;

	memset(ring, 0, (size_t)num * CQE_BYTES);
	for (i = 0; i < num; i++) {
		at = producer + i;
		ring[((at & (num - 1)) + 1) * CQE_BYTES - 1] = 0xf0 | (at & num ? 0 : 1);
	}
}

/*
 * Number of CQEs since export or the last reset, from the WQE index of the newest CQE. This is
 * possible only if each WQE generated a CQE (signalled, one slot) and no other queue uses the
 * CQ; otherwise *num is UINT64_MAX.
 */
static doca_error_t count_cqes(doca_gpu_t *gpu, const struct gdk_export_queue *q,
			       const uint8_t *ring, uint64_t newest, uint64_t *num)
{
	const struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct gdk_qp_state st;
	uint64_t index = 0;
	doca_error_t err;

	*num = UINT64_MAX;
	err = gdk_gpu_read(gpu, &st, q->state, sizeof(st));
	/* A QP whose two queues share the CQ uses it twice. */
	if (err != DOCA_SUCCESS || atomic_load(&q->cq->users) != 1 || st.uneven)
		return err;
	cqe = (const void *)(ring + newest % q->cq->cqe_num * CQE_BYTES);
	if (cqe->op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_INVALID)
		*num = 0;
	else if (gdk_counter_extend(st.rung, be16toh(cqe->wqe_counter), &index))
		*num = index + 1;
	return DOCA_SUCCESS;
}

/*
 * The firmware's counter has 24 bits and can lag behind the ring. seen is the producer index modulo
 * laps, as the ring shows it. The result is the value nearest to the counter that agrees with the
 * ring. laps is a power of two, so it divides 2^24.
 */
uint64_t gdk_cq_nearest(uint32_t counter, uint64_t seen, uint64_t laps, uint64_t base)
{
	uint64_t off = (seen - counter) & (laps - 1);
	uint64_t at = counter + off - (off > laps / 2 ? laps : 0);

	return base + ((at - base) & COUNTER_MASK);
}

/* As gdk_cq_nearest, for a collapsed CQ, whose ring does not show the producer. A counter up
 * to COLLAPSED_LAG below base is an old value; the result is then base. */
uint64_t gdk_cq_extend(uint32_t counter, uint64_t base)
{
	uint64_t behind = (base - counter) & COUNTER_MASK;

	return behind <= COLLAPSED_LAG ? base : base + ((counter - base) & COUNTER_MASK);
}

static void compare_counter(const struct doca_verbs_cq_t *cq, uint32_t counter, uint64_t producer)
{
	uint32_t at = (uint32_t)producer & COUNTER_MASK, lag = (at - counter) & COUNTER_MASK;

	if (lag > (cq->collapsed ? COLLAPSED_LAG : cq->cqe_num))
		gdk_warn("CQ 0x%x: producer counter 0x%x differs from the index 0x%x of the newest "
			 "CQE by more than a late update can explain",
			 cq->cqn, counter, at);
	else if (lag)
		gdk_info("CQ 0x%x: producer counter 0x%x lags behind the newest CQE, index 0x%x",
			 cq->cqn, counter, at);
}

/*
 * Finds the index of the next CQE. A reset of the QP does not change the indices of the CQ, and
 * device code needs them to recognize new CQEs. The function uses the best source available:
 *   1. the WQE index in the newest CQE, if each WQE generates one CQE and the ring agrees;
 *   2. the ring together with the firmware's counter;
 *   3. the counter alone, if the CQ is collapsed;
 *   4. the ring alone for a CQ of the SDK, whose counter cannot be queried. This assumes less
 *      than two laps since the last reset.
 */
static doca_error_t find_producer(doca_gpu_t *gpu, const struct gdk_export_queue *q,
				  const uint8_t *ring, uint64_t *producer)
{
	const struct doca_verbs_cq_t *cq = q->cq;
	const uint64_t base = q->dev->cq_sq.cqe_rsvd, laps = 2ull * cq->cqe_num;
	uint64_t seen = cq->collapsed ? 0 : gdk_cq_find_producer(ring, cq->cqe_num, base), num;
	uint32_t counter = (uint32_t)base & COUNTER_MASK;
	doca_error_t err = count_cqes(gpu, q, ring, cq->collapsed ? 0 : seen - 1, &num);

	if (err == DOCA_SUCCESS && !cq->sdk)
		err = gdk_cq_query_producer(cq, &counter);
	if (err != DOCA_SUCCESS)
		return err;
	if (num != UINT64_MAX && (cq->collapsed || (base + num - seen) % laps == 0))
		*producer = base + num;
	else if (cq->collapsed)
		*producer = gdk_cq_extend(counter, base);
	else if (cq->sdk)
		*producer = base + ((seen - base) & (laps - 1));
	else
		*producer = gdk_cq_nearest(counter, seen, laps, base);
	if (!cq->sdk)
		compare_counter(cq, counter, *producer);
	return DOCA_SUCCESS;
}

static doca_error_t reset_cq(doca_gpu_t *gpu, const struct gdk_export_queue *q, uint64_t *producer)
{
	struct doca_verbs_cq_t *cq = q->cq;
	uint8_t *ring;
	doca_error_t err = gdk_export_read_cq(cq, &ring);

	if (err != DOCA_SUCCESS)
		return err;
	err = find_producer(gpu, q, ring, producer);
	if (err == DOCA_SUCCESS) {
		invalidate_ring(ring, cq->cqe_num, cq->collapsed ? 0 : *producer);
		err = queue_write(cq->gpu, cq->buf, ring, (size_t)cq->cqe_num * CQE_BYTES);
	}
	free(ring);
	return err;
}

/* Clears the WQEs of a queue and its word of the DBREC. */
static doca_error_t reset_wqes(struct doca_verbs_qp_t *qp, void *buf, size_t len, uint32_t *dbrec)
{
	static const uint32_t zero;
	doca_error_t err = DOCA_SUCCESS;

	if (qp->gpu)
		err = gdk_gpu_fill(qp->gpu, buf, 0, len);
	else
		memset(buf, 0, len);
	if (err == DOCA_SUCCESS)
		err = queue_write(qp->umem_dbr->gpu, dbrec, &zero, sizeof(zero));
	return err;
}

/* Resets the receive queue, if it is exported. The caller writes x->dev afterwards. */
static doca_error_t reset_rq(struct gdk_export *x)
{
	struct doca_verbs_qp_t *qp = x->q.pub.qp;
	const struct gdk_export_queue q = gdk_export_rq(x);
	uint64_t producer = 0;
	doca_error_t err;

	if (!q.cq)
		return DOCA_SUCCESS;
	err = reset_cq(x->q.pub.gpu_dev, &q, &producer);
	if (err == DOCA_SUCCESS)
		err = reset_wqes(qp, qp->rq_buf, (size_t)qp->rq_num * qp->rwqe_size, &qp->dbrec[0]);
	if (err != DOCA_SUCCESS)
		return err;
	q.dev->sq_rsvd_index = 0;
	q.dev->cq_sq.cqe_rsvd = producer;
	x->dev.cq_rq.cqe_rsvd = producer;
	x->dev.rq_wqe_pi = 0;
	return gdk_export_write_queue(x, &q, producer);
}

/* The caller holds step_lock, so that no proxy thread rings meanwhile. */
static doca_error_t reset_locked(struct gdk_export *x)
{
	const struct gdk_export_queue q = gdk_export_sq(x);
	struct doca_gpu_verbs_qp *qp = &x->q.pub;
	uint64_t producer = 0;
	doca_error_t err;

	err = reset_cq(qp->gpu_dev, &q, &producer);
	if (err == DOCA_SUCCESS)
		err = reset_wqes(qp->qp, qp->qp->sq_buf, (size_t)qp->qp->sq_num * GDK_WQEBB_SIZE,
				 &qp->qp->dbrec[1]);
	if (err == DOCA_SUCCESS)
		err = reset_rq(x);
	if (err != DOCA_SUCCESS)
		return err;
	__atomic_store_n(&qp->sq_wqe_pi_last, 0, __ATOMIC_RELAXED);
	gdk_store_hint(&x->q);
	/* Relaxed: resets and proxy steps hold step_lock, and other threads only read the value. */
	atomic_store_explicit(&x->q.proxy.rings, 0, memory_order_relaxed);
	if (x->q.decision.db->reset)
		x->q.decision.db->reset(&x->q.pub);
	x->dev.sq_rsvd_index = 0;
	x->dev.cq_sq.cqe_rsvd = producer;
	err = gdk_export_write_queue(x, &q, producer);
	if (err == DOCA_SUCCESS && qp->qp_gpu && qp->qp_gpu != gdk_export_own_dev(x))
		err = gdk_gpu_write(qp->gpu_dev, qp->qp_gpu, &x->dev, sizeof(x->dev));
	return err;
}

doca_error_t doca_gpu_verbs_reset_tracking_and_memory(struct doca_gpu_verbs_qp *qp_gverbs)
{
	struct gdk_export *x;
	doca_error_t err;

	GDK_CHECK_PTR(qp_gverbs);
	x = gdk_to_export(qp_gverbs);
	gdk_watch_report(x);
	gdk_export_warn_tail(x);
	pthread_spin_lock(&x->q.proxy.step_lock);
	err = reset_locked(x);
	pthread_spin_unlock(&x->q.proxy.step_lock);
	return err;
}
