/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Shared receive queues (SRQ). Several QPs consume the receives of an SRQ. An exported SRQ has a
 * device struct and a state block, as an exported receive queue has (recv_dev.h), but no CQ. Its
 * completions are in the receive CQs of the QPs. These CQs have no state block;
 * gdk_verbs_srq_get_cq_dev() makes them available to GPU threads.
 *
 * A QP takes the next receive when a message begins, and the NIC writes the CQE when the message
 * ends. So receives may complete in another order than they were posted, if messages have several
 * packets. The slots are therefore posted again one by one, each when it is complete: the thread
 * that finds a CQE calls gdk_srq_repost() for the slot that the CQE names. It may rewrite the WQE
 * first. The NIC gets a slot when all slots before it in the ring are posted again, too.
 *
 *	for (slot = 0; slot < depth; slot++)
 *		gdk_wqe_recv(srq, gdk_srq_wqe(srq, slot), address, key, bytes);
 *	gdk_srq_submit(srq, depth, how);
 *	...
 *	if (gdk_srq_poll(cq, index, &cqe) == 0)
 *		gdk_srq_repost(srq, gdk_srq_slot(cqe), how);
 */
#ifndef GDK_SRQ_DEV_H
#define GDK_SRQ_DEV_H

#include "device/gdk/recv_dev.h"

/* Returns the address of a slot's WQE. The index of a receive may be passed instead of the slot. */
GDK_FN struct doca_gpunetio_ib_mlx5_wqe_data_seg *
gdk_srq_wqe(const struct doca_gpu_dev_verbs_qp *srq, uint64_t slot)
{
	return gdk_get_rwqe_ptr(srq, slot);
}

/* Posts all receives below index pi for the first time. The caller has written them. All slots of
 * the queue (doca_verbs_srq_get_wq() returns their number) must be posted in this way before any
 * slot is posted again. Returns 0, or -EINVAL as gdk_rq_submit(). */
GDK_FN int gdk_srq_submit(struct doca_gpu_dev_verbs_qp *srq, uint64_t pi, struct gdk_how how)
{
	return gdk_rq_offer(srq, srq, pi, how);
}

/*
 * Returns the index of the complete receive in this slot, whose CQE the caller has seen. This is
 * idx, the highest index of this slot below `rung`. Or it is idx + depth, if the load of `rung`
 * returned the value from before the last doorbell: gdk_ring() has no fence between `rung` and the
 * DBREC. A fence does order the ready bit before the DBREC, so the ready bit tells which.
 */
GDK_FN uint64_t gdk_srq_index(struct gdk_qp_state *st, uint32_t depth, uint32_t slot)
{
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	const uint64_t idx = rung - 1 - ((rung - 1 - slot) & (depth - 1));

	return gdk_is_ready(st, depth, idx) ? idx : idx + depth;
}

/*
 * Posts a slot again. Call it once for each completion of the slot (gdk_srq_slot() returns the slot
 * of a CQE); the WQE may be rewritten first. The CQE must have been loaded before this call:
 * gdk_srq_poll() orders that; a caller that loads the CQE itself must execute an acquire fence of
 * system scope after the load. Returns 0, or -EINVAL if gdk_srq_submit() has not posted all slots
 * of the queue before.
 */
GDK_FN int gdk_srq_repost(struct doca_gpu_dev_verbs_qp *srq, uint32_t slot, struct gdk_how how)
{
	const int scope = gdk_mode_scope(how.mode);
	struct gdk_qp_state *st = gdk_state_of_qp(srq);
	const uint32_t depth = gdk_ldc32(&st->depth);
	uint64_t idx, end;

	/* Another thread may have found the CQE and passed the slot number to the caller in memory.
	 * Acquire: pairs with that thread's release. Orders the load of the slot number before the
	 * loads of the reserved index, `rung` and the ready bit. */
	gdk_fence_acq(GDK_SCOPE_GPU);
	if (gdk_ld64(gdk_rsvd_index(srq), scope) < depth)
		return -EINVAL;
	idx = gdk_srq_index(st, depth, slot) + depth;
	end = gdk_max64(gdk_rsvd_index(srq), idx + 1, scope);
	gdk_mark_ready(srq, idx, idx, how.mode, GDK_DB);
	/* `end` is the reserved index before this call. Earlier calls may have posted slots between
	 * idx and `end`, which can now be rung, too. */
	if (!(how.opt & GDK_OPT_SKIP_DB))
		gdk_rq_ring(st, end > idx ? end : idx + 1, how.mode);
	return 0;
}

/*
 * Polls once for CQE `index` of a receive CQ, counted from the creation of the CQ. *cqe is the
 * address of the CQE. Returns 0, EBUSY (positive, as in DOCA) if there is no CQE yet, or -EIO for
 * an error CQE, whose slot can be posted again, too. After 0, later loads of the data are ordered
 * after the CQE, for CPU threads and for GPUs that need no DUMP (gdk_recv_dump()). One thread polls
 * a CQ; if another thread takes over, the program orders the two.
 */
GDK_FN int gdk_srq_poll(const struct doca_gpu_dev_verbs_cq *cq, uint64_t index,
			struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	const uint32_t lap = index & cq->cqe_num ? 1 : 0;
	uint32_t word;

	*cqe = (struct doca_gpunetio_ib_mlx5_cqe64 *)(void *)(cq->cqe_daddr +
							      (index & cq->cqe_mask) *
								      DOCA_GPUNETIO_VERBS_CQE_SIZE);
	word = gdk_ld32((const uint32_t *)(const void *)((const char *)*cqe + 60), GDK_SCOPE_SYS);
	if ((word >> 24 & 1) != lap || word >> 28 == DOCA_GPUNETIO_IB_MLX5_CQE_INVALID)
		return EBUSY;
	gdk_fence_acq(GDK_SCOPE_SYS); /* orders the CQE before the data */
	return word >> 28 >= GDK_CQE_OPCODE_ERR ? -EIO : 0;
}

/* Returns the slot that a CQE names. */
GDK_FN uint32_t gdk_srq_slot(const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	const uint32_t word = gdk_any_ld32((const uint32_t *)(const void *)((const char *)cqe + 60),
					   GDK_SCOPE_SYS);

	return (word & 0xff) << 8 | (word >> 8 & 0xff);
}

#endif
