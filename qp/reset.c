/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Reset of an exported queue pair, which went through RST: rings, state and
 * indices are put back to where they were at export, but for the CQ's, which the
 * NIC keeps.
 */
#include <stdlib.h>
#include <string.h>

#include "../core/log.h"
#include "export.h"
#include "state.h"

#define CQE_BYTES 64u

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
 * Where the NIC writes the next CQE. A reset of the QP leaves the CQ where it is, and
 * how many CQEs there were depends on signalling, so the firmware is asked, which
 * counts in 24 bits; counters wait for CQEs by this index. The ring knows it modulo
 * two laps: enough for those who poll, and what counts where the two differ.
 */
static doca_error_t find_producer(const struct gdk_export *x, const uint8_t *ring,
				  uint64_t *producer)
{
	const struct doca_verbs_cq_t *cq = x->cq;
	const uint64_t base = x->dev.cq_sq.cqe_rsvd, laps = 2ull * cq->cqe_num;
	uint64_t seen = cq->collapsed ? 0 : gdk_cq_find_producer(ring, cq->cqe_num, base);
	uint32_t counter;
	doca_error_t err;

	*producer = seen;
	if (cq->sdk)
		return DOCA_SUCCESS;
	err = gdk_cq_query_producer(cq, &counter);
	if (err != DOCA_SUCCESS)
		return err;
	*producer = base + ((counter - base) & 0xffffff);
	if (!cq->collapsed && (*producer - seen) % laps) {
		gdk_warn("CQ 0x%x: its producer counter is 0x%x, and the ring ends at 0x%llx of "
			 "0x%llx: counters will not work", cq->cqn, counter,
			 (unsigned long long)(seen % laps), (unsigned long long)laps);
		*producer = seen;
	}
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
