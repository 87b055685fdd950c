/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Reset of an exported queue pair, which went through RST: rings, state and
 * indices are put back to where they were at export, but for the CQ's, which the
 * NIC keeps.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "device/gdk/cq_dev.h"
#include "qp/export.h"
#include "device/gdk/state.h"

#define CQE_BYTES    64u
#define COUNTER_MASK 0xffffffu
/* How old the counter of a collapsed CQ may be. No source says; it must stay small, since
 * that many counts just before 2^24 CQEs after the last reset are taken for none. */
#define COLLAPSED_LAG 64u

atomic_uint gdk_counter_falls;

static doca_error_t queue_write(doca_gpu_t *gpu, void *dst, const void *src, size_t len)
{
	if (gpu)
		return gdk_gpu_write(gpu, dst, src, len);
	memcpy(dst, src, len);
	return DOCA_SUCCESS;
}

/*
 * Entries from base on are valid up to the producer; when all are, their owner
 * bits (the parity of the lap) change at it.
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

/* Invalid, and with the owner bit that the next write to the entry inverts. */
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
 * Number of CQEs since export or the last reset, from the newest entry's WQE index. It is
 * known only if each WQE made a CQE (signalled, one slot) and no other queue completes
 * here; otherwise UINT64_MAX.
 */
static doca_error_t count_cqes(const struct gdk_export *x, const uint8_t *ring, uint64_t newest,
			       uint64_t *num)
{
	const struct doca_verbs_qp_t *qp = x->pub.qp;
	const struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct gdk_qp_state st;
	uint64_t index = 0;
	doca_error_t err;
	bool alone;

	*num = UINT64_MAX;
	alone = atomic_load(&x->cq->users) == 1 && qp->recv_cq != x->cq;
	err = gdk_gpu_read(x->pub.gpu_dev, &st, x->state, sizeof(st));
	if (err != DOCA_SUCCESS || !alone || st.uneven)
		return err;
	cqe = (const void *)(ring + newest % x->cq->cqe_num * CQE_BYTES);
	if (cqe->op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_INVALID)
		*num = 0;
	else if (gdk_counter_extend(st.rung, be16toh(cqe->wqe_counter), &index))
		*num = index + 1;
	return DOCA_SUCCESS;
}

/*
 * The firmware's counter has 24 bits and may be older than the memory, which knows the
 * producer modulo two laps: of the numbers of 24 bits that agree with the memory, the one
 * nearest to the counter. laps is a power of two, so it divides 2^24.
 */
uint64_t gdk_cq_nearest(uint32_t counter, uint64_t seen, uint64_t laps, uint64_t base)
{
	uint64_t off = (seen - counter) & (laps - 1);
	uint64_t at = counter + off - (off > laps / 2 ? laps : 0);

	return base + ((at - base) & COUNTER_MASK);
}

/* A collapsed CQ has the counter alone: a little less than base is an old value. */
uint64_t gdk_cq_extend(uint32_t counter, uint64_t base)
{
	uint64_t behind = (base - counter) & COUNTER_MASK;

	return behind <= COLLAPSED_LAG ? base : base + ((counter - base) & COUNTER_MASK);
}

static void compare_counter(const struct doca_verbs_cq_t *cq, uint32_t counter, uint64_t producer)
{
	uint32_t at = (uint32_t)producer & COUNTER_MASK, lag = (at - counter) & COUNTER_MASK;

	if (lag > (cq->collapsed ? COLLAPSED_LAG : cq->cqe_num))
		gdk_warn("CQ 0x%x: its producer counter is 0x%x, its entries end at 0x%x: they "
			 "disagree by more than a late update of the counter explains",
			 cq->cqn, counter, at);
	else if (lag)
		gdk_info("CQ 0x%x: its producer counter is 0x%x, its entries end at 0x%x", cq->cqn,
			 counter, at);
}

/*
 * Where the NIC writes the next CQE. A reset of the QP does not change the CQ's indices,
 * and the device code waits for CQEs by them. Sources, best first: the newest CQE of a QP
 * where each WQE makes one CQE; the ring with the firmware's counter; the counter alone
 * if the CQ is collapsed. The SDK's CQs have no counter here: less than two laps passed.
 */
static doca_error_t find_producer(const struct gdk_export *x, const uint8_t *ring,
				  uint64_t *producer)
{
	const struct doca_verbs_cq_t *cq = x->cq;
	const uint64_t base = x->dev.cq_sq.cqe_rsvd, laps = 2ull * cq->cqe_num;
	uint64_t seen = cq->collapsed ? 0 : gdk_cq_find_producer(ring, cq->cqe_num, base), num;
	uint32_t counter = (uint32_t)base & COUNTER_MASK;
	doca_error_t err = count_cqes(x, ring, cq->collapsed ? 0 : seen - 1, &num);

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

static doca_error_t reset_cq(struct gdk_export *x, uint64_t *producer)
{
	struct doca_verbs_cq_t *cq = x->cq;
	uint8_t *ring;
	doca_error_t err = gdk_export_read_cq(x, &ring);

	if (err != DOCA_SUCCESS)
		return err;
	err = find_producer(x, ring, producer);
	if (err == DOCA_SUCCESS) {
		invalidate_ring(ring, cq->cqe_num, cq->collapsed ? 0 : *producer);
		err = queue_write(cq->gpu, cq->buf, ring, (size_t)cq->cqe_num * CQE_BYTES);
	}
	free(ring);
	return err;
}

static doca_error_t reset_sq(struct gdk_export *x)
{
	struct doca_verbs_qp_t *qp = x->pub.qp;
	size_t len = (size_t)qp->sq_num * GDK_WQEBB_SIZE;
	static const uint32_t zero;
	doca_error_t err = DOCA_SUCCESS;

	if (qp->gpu)
		err = gdk_gpu_fill(qp->gpu, qp->sq_buf, 0, len);
	else
		memset(qp->sq_buf, 0, len);
	if (err == DOCA_SUCCESS)
		err = queue_write(qp->umem_dbr->gpu, &qp->dbrec[1], &zero, sizeof(zero));
	return err;
}

/* step_lock is held: no proxy thread rings in between. */
static doca_error_t reset_locked(struct gdk_export *x)
{
	struct doca_gpu_verbs_qp *qp = &x->pub;
	uint64_t producer;
	doca_error_t err;

	err = reset_cq(x, &producer);
	if (err == DOCA_SUCCESS)
		err = reset_sq(x);
	if (err != DOCA_SUCCESS)
		return err;
	if (x->proxy.slot)
		__atomic_store_n(qp->cpu_db, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->sq_wqe_pi_last, 0, __ATOMIC_RELAXED);
	atomic_fetch_add_explicit(&gdk_counter_falls, 1, memory_order_release);
	atomic_store_explicit(&x->proxy.rings, 0, memory_order_relaxed);
	x->dev.sq_rsvd_index = 0;
	x->dev.cq_sq.cqe_rsvd = producer;
	err = gdk_export_write_state(x, producer);
	if (err == DOCA_SUCCESS && qp->qp_gpu && qp->qp_gpu != gdk_export_own_dev(x))
		err = gdk_gpu_write(qp->gpu_dev, qp->qp_gpu, &x->dev, sizeof(x->dev));
	return err;
}

doca_error_t doca_gpu_verbs_reset_tracking_and_memory(struct doca_gpu_verbs_qp *qp_gverbs)
{
	struct gdk_export *x;
	doca_error_t err;

	GDK_CHECK_ARG(qp_gverbs != NULL);
	x = gdk_to_export(qp_gverbs);
	gdk_export_warn_tail(x);
	pthread_spin_lock(&x->proxy.step_lock);
	err = reset_locked(x);
	pthread_spin_unlock(&x->proxy.step_lock);
	return err;
}
