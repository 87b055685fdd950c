/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receives. The host gives the receive queue of an exported QP a device struct (gdk_rq) and a state
 * block of its own. In them, the members that describe a send queue describe the receive queue: its
 * ring, its CQ, and word 0 of the DBREC. The functions that reserve, publish, ring and wait for
 * send WQEs are therefore used for receives, too. Three points differ:
 *   - A slot has 16 to 512 bytes, so this file computes its address.
 *   - The doorbell is the DBREC alone. gdk_rq has the handler GPU_SM_DB, and its register is a word
 *     that is not read. So neither the register of the QP nor the counter of a CPU proxy is stored.
 *   - The NIC writes one CQE for each receive WQE, in the order of the WQEs. So the index of a
 *     receive WQE is also the index of its CQE.
 * A ticket is the index of a receive WQE.
 *
 * To offer a receive slot means to ring for it, so that the NIC may use it. To mark it ready means
 * to publish it (slots_dev.h).
 *   - gdk_rq_submit(pi) offers the slots below pi, up to the first slot that is not marked ready.
 *     If pi is above the reserved index, the call first reserves the slots up to pi and marks them
 *     ready; the caller has written them, now or in an earlier lap of the ring.
 *   - A wait offers no slot that is not marked ready.
 *   - gdk_recv() in exclusive use offers all slots below its own, as every post in exclusive use
 *     does. Before this call, the caller must mark the slots ready that it has reserved.
 *
 * If a receive fails, or a wait for it ends with an error, the whole QP has ended, as after a
 * failed send. Waits for receives return the status that ended the QP.
 */
#ifndef GDK_RECV_DEV_H
#define GDK_RECV_DEV_H

#include "device/gdk/onesided_dev.h"

#define GDK_RECV_TERMINATOR 0x100u /* lkey of the segment that ends a receive WQE */

/* Returns the device struct of the receive queue, or NULL if the receive queue was not exported. */
GDK_FN struct doca_gpu_dev_verbs_qp *gdk_rq_of(const struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct doca_gpu_dev_verbs_qp *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, gdk_rq));
}

GDK_FN struct doca_gpu_dev_verbs_cq *gdk_qp_cq_rq(struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct doca_gpu_dev_verbs_cq *)(uintptr_t)GDK_QP_AT(qp, cq_rq);
}

/* ---- WQEs ---- */

GDK_FN struct doca_gpunetio_ib_mlx5_wqe_data_seg *
gdk_get_rwqe_ptr(const struct doca_gpu_dev_verbs_qp *qp, uint64_t idx)
{
	const uint64_t base = gdk_ldc64(GDK_QP_AT(qp, rq_wqe_daddr));
	const uint32_t mask = gdk_ldc32(GDK_QP_AT(qp, rq_wqe_mask));
	const uint32_t shift = gdk_ldc32(GDK_QP_AT(qp, gdk_rq_shift)) & 0xff;

	return (struct doca_gpunetio_ib_mlx5_wqe_data_seg *)(uintptr_t)(base +
									((idx & mask) << shift));
}

/* Returns the number of data segments of a receive WQE. */
GDK_FN uint32_t gdk_rwqe_segs(const struct doca_gpu_dev_verbs_qp *qp)
{
	return 1u << ((gdk_ldc32(GDK_QP_AT(qp, gdk_rq_shift)) & 0xff) - 4);
}

/* Writes segment i of a receive WQE. A segment of 0 bytes ends the list. */
GDK_FN void gdk_rwqe_seg(struct doca_gpunetio_ib_mlx5_wqe_data_seg *wqe, uint32_t i, uint64_t addr,
			 gdk_key_t key, uint32_t bytes)
{
	const uint32_t end = gdk_bswap32(GDK_RECV_TERMINATOR);

	gdk_st_wqe16(&wqe[i], gdk_pack(gdk_bswap32(bytes & 0x7fffffffu), bytes ? key.be : end),
		     bytes ? gdk_bswap64(addr) : 0);
}

/* Writes a receive WQE with one buffer of up to 1 GiB. If `bytes` is 0, it has no
 * buffer: it can receive a message without data, or an RDMA write with immediate. */
GDK_FN void gdk_wqe_recv(const struct doca_gpu_dev_verbs_qp *qp,
			 struct doca_gpunetio_ib_mlx5_wqe_data_seg *wqe, uint64_t addr,
			 gdk_key_t key, uint32_t bytes)
{
	gdk_rwqe_seg(wqe, 0, addr, key, bytes);
	if (bytes && gdk_rwqe_segs(qp) > 1)
		gdk_rwqe_seg(wqe, 1, 0, key, 0);
}

/* Writes a receive WQE with n buffers, which the NIC fills in their order. Returns 0, or -EINVAL if
 * the WQE is too short for n buffers; it is then not written. */
GDK_FN int gdk_wqe_recv_list(const struct doca_gpu_dev_verbs_qp *qp,
			     struct doca_gpunetio_ib_mlx5_wqe_data_seg *wqe,
			     const struct doca_gpu_dev_verbs_addr *bufs, const uint32_t *bytes,
			     uint32_t n)
{
	const uint32_t most = gdk_rwqe_segs(qp);
	uint32_t i, at = 0;

	if (n > most)
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (bytes[i]) /* a segment of 0 bytes would end the list */
			gdk_rwqe_seg(wqe, at++, bufs[i].addr, gdk_key_doca(bufs[i].key), bytes[i]);
	if (at < most)
		gdk_rwqe_seg(wqe, at, 0, gdk_key_be(0), 0);
	return 0;
}

/* ---- reserve, mark, submit ---- */

/* Ends the QP, because its receive queue has ended with err. Returns the status that ended the
 * QP. */
GDK_FN int gdk_rq_ended(const struct doca_gpu_dev_verbs_qp *qp, int err)
{
	return gdk_state_end(gdk_state_of_qp(qp), err);
}

/* As gdk_reserve(), in the receive queue. If too few slots are free, waits until receives
 * complete. */
GDK_FN int gdk_rq_reserve(struct doca_gpu_dev_verbs_qp *qp, uint32_t n, gdk_mode_t mode,
			  uint32_t opt, uint64_t *idx)
{
	struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);
	int err;

	*idx = 0;
	if (!rq)
		return -EOPNOTSUPP;
	err = gdk_reserve(rq, n, mode, opt, idx);
	/* A wrong n gives -EINVAL, which does not end the QP. */
	return GDK_RARE(err && gdk_qp_status(rq)) ? gdk_rq_ended(qp, err) : err;
}

/* Marks the slots from `from` to `to`, both included, ready. rq: the device struct of the receive
 * queue. In exclusive use gdk_mark_ready() stores `to + 1` in `marked` (state.h), which means that
 * all slots below `to + 1` are published. In a receive queue, slots below `from` may be
 * unpublished. So this function sets `marked` back to 0. */
GDK_FN void gdk_rq_mark(const struct doca_gpu_dev_verbs_qp *rq, uint64_t from, uint64_t to,
			gdk_mode_t mode)
{
	gdk_mark_ready(rq, from, to, mode, GDK_DB);
	if (mode == GDK_EXCLUSIVE)
		gdk_st64(&gdk_state_of_qp(rq)->marked, 0, GDK_SCOPE_THREAD);
}

/* As gdk_mark_ready(), in the receive queue. The caller has written the WQEs of the slots `from` to
 * `to`. */
GDK_FN void gdk_rq_mark_ready(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
			      gdk_mode_t mode)
{
	const struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);

	if (rq)
		gdk_rq_mark(rq, from, to, mode);
}

/* Raises rq_wqe_pi of the caller's device struct to pi: the receives below pi were submitted. */
GDK_FN void gdk_rq_store_pi(struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, gdk_mode_t mode)
{
	(void)gdk_max64((uint64_t *)(uintptr_t)GDK_QP_AT(qp, rq_wqe_pi), pi, gdk_mode_scope(mode));
}

/* Exclusive use: offers the slots below pi, up to the first slot that is not marked ready. */
GDK_FN void gdk_rq_own_ring(struct gdk_qp_state *st, uint64_t pi)
{
	const uint32_t depth = gdk_ldc32(&st->depth);
	uint64_t end = gdk_ld64(&st->rung, GDK_SCOPE_THREAD), at;

	GDK_LOOP
	do {
		at = end;
		end = gdk_scan_ready(st, depth, at);
	} while (end != at && end < pi);
	end = end < pi ? end : pi;
	(void)gdk_own_slow(st, end, 0, 0, GDK_RING | GDK_RING_ALL | GDK_OWN_TAKE);
}

/* Rings for the slots below pi, up to the first slot that is not marked ready. gdk_rq_submit()
 * describes when the others are rung. */
GDK_FN void gdk_rq_ring(struct gdk_qp_state *st, uint64_t pi, gdk_mode_t mode)
{
	if (mode != GDK_EXCLUSIVE)
		(void)gdk_shared_slow(st, pi, 0, 0, GDK_RING | GDK_WANT);
	else if (!gdk_ended(st, GDK_SCOPE_THREAD))
		gdk_rq_own_ring(st, pi);
}

/* Implements gdk_rq_submit(). rq is the device struct of the receive queue, or of an SRQ. */
GDK_FN int gdk_rq_offer(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *rq,
			uint64_t pi, struct gdk_how how)
{
	const int scope = gdk_mode_scope(how.mode);
	struct gdk_qp_state *st;
	uint64_t from;
	uint32_t polls;

	if (how.opt & GDK_OPT_SKIP_DB)
		return 0;
	st = gdk_state_of_qp(rq);
	/* A CQE or a reservation has shown the caller that its slots are free, so `rung` is at
	 * least pi - depth. But this load may return an older value: gdk_ring() has no fence
	 * between `rung` and the DBREC, so a CQE may be visible before `rung`; and no fence orders
	 * this load after the one that showed the free slots. So the load is repeated before the
	 * call fails. */
	GDK_LOOP
	for (polls = 0; pi > gdk_ld64(&st->rung, GDK_SCOPE_GPU) + gdk_ldc32(&st->depth); polls++)
		if (polls == GDK_DBREC_POLLS)
			return gdk_debug_above(st, pi);
	from = gdk_max64(gdk_rsvd_index(rq), pi, scope);
	if (from < pi)
		gdk_rq_mark(rq, from, pi - 1, how.mode);
	gdk_rq_ring(st, pi, how.mode);
	gdk_rq_store_pi(qp, pi, how.mode);
	return 0;
}

/*
 * Offers all slots below pi to the NIC. A slot that is not marked ready yet, and those behind it,
 * are offered later: in shared use by the call that marks the slot, in exclusive use by the next
 * submit, gdk_recv() or wait.
 * Returns 0, -EOPNOTSUPP if the receive queue is not exported, or -EINVAL if pi is more than a
 * whole ring above the slots that are offered already. In this case nothing is offered, because
 * the ring is too small for these receives.
 */
GDK_FN int gdk_rq_submit(struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, struct gdk_how how)
{
	struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);

	return rq ? gdk_rq_offer(qp, rq, pi, how) : -EOPNOTSUPP;
}

/* As gdk_rq_submit(), for a caller that has only the low 32 bits of the index. It has no sharing
 * mode: any thread may call it in every mode. */
GDK_FN void gdk_rq_update_dbr(struct doca_gpu_dev_verbs_qp *qp, uint32_t pi)
{
	struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);
	uint64_t rung;

	if (!rq)
		return;
	rung = gdk_ld64(&gdk_state_of_qp(rq)->rung, GDK_SCOPE_GPU);
	(void)gdk_rq_submit(
		qp, rung + (uint64_t)(int64_t)(int32_t)(pi - (uint32_t)rung),
		gdk_how(DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU, GDK_DB, GDK_THREAD, 0));
}

/* Waits until slot idx may be written. The slot was reserved with SKIP_AVAILABILITY_CHECK. */
GDK_FN int gdk_rq_wait_slot(struct doca_gpu_dev_verbs_qp *qp, uint64_t idx, gdk_mode_t mode)
{
	struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);
	const int err = rq ? gdk_wait_slot(rq, idx, mode) : -EOPNOTSUPP;

	return GDK_RARE(err && rq) ? gdk_rq_ended(qp, err) : err;
}

/* ---- receive ---- */

/* Posts one receive for each thread of the group. gdk_recv(), below, describes the arguments. */
GDK_FN int gdk_recv_round(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *rq,
			  struct doca_gpu_dev_verbs_addr laddr, uint32_t size,
			  doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct gdk_post p;
	int err = gdk_post_begin(rq, &p, 1, 0, how);

	*ticket = p.idx;
	if (GDK_RARE(err))
		return gdk_rq_ended(qp, err);
	gdk_wqe_recv(qp, gdk_get_rwqe_ptr(qp, p.idx), laddr.addr, gdk_key_doca(laddr.key), size);
	gdk_post_end(&p, how);
	if (p.rank == 0 && !(how.opt & GDK_OPT_SKIP_DB))
		gdk_rq_store_pi(qp, p.base + p.total, how.mode);
	return 0;
}

/*
 * Posts a receive of up to 1 GiB for each thread of the group. If size is 0, the receive has no
 * buffer. gdk_recv_wait() takes *ticket. In exclusive use the caller must have marked ready all
 * slots that it has reserved before. If the ring is full, the function waits until a receive is
 * complete. Returns 0, -EINVAL if size is too large, -EOPNOTSUPP if the receive queue is not
 * exported, or the status that ended the QP. In a warp or block either all threads pass valid
 * sizes, or none does.
 */
GDK_FN int gdk_recv(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr laddr,
		    size_t size, doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);
	uint32_t turn, group;
	int err = 0;

	*ticket = 0;
	if (!rq)
		return -EOPNOTSUPP;
	if (size > GDK_CHUNK)
		return -EINVAL;
	how.handler = GDK_DB;
	if (how.exec == GDK_THREAD)
		return gdk_recv_round(qp, rq, laddr, (uint32_t)size, ticket, how);
	group = gdk_exec_size(how.exec);
	if (group <= gdk_ring_most(gdk_ldc32(&gdk_state_of_qp(rq)->depth)))
		return gdk_recv_round(qp, rq, laddr, (uint32_t)size, ticket, how);
	/* The ring is too short for the group, so its threads post one after the other. */
	GDK_LOOP
	for (turn = 0; turn < group; turn++) {
		if (turn == gdk_exec_rank(how.exec))
			err = gdk_recv_round(qp, rq, laddr, (uint32_t)size, ticket,
					     gdk_how(how.mode, how.handler, GDK_THREAD, how.opt));
		gdk_exec_sync(how.exec);
	}
	return err;
}

/* ---- completion ---- */

/* Returns the address of CQE `index`, which is counted from export or reset. */
GDK_FN struct doca_gpunetio_ib_mlx5_cqe64 *gdk_cqe_at(const struct doca_gpu_dev_verbs_cq *cq,
						      uint64_t index)
{
	const uint64_t at = index + gdk_ldc64(GDK_CQ_AT(cq, cqe_rsvd));
	const uint32_t mask = gdk_ldc32(GDK_CQ_AT(cq, cqe_num)) - 1;

	return (struct doca_gpunetio_ib_mlx5_cqe64
			*)(uintptr_t)(gdk_ldc64(GDK_CQ_AT(cq, cqe_daddr)) +
				      (at & mask) * DOCA_GPUNETIO_VERBS_CQE_SIZE);
}

/* Returns the number of bytes of the message. */
GDK_FN uint32_t gdk_cqe_bytes(const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	return gdk_bswap32(gdk_any_ld32((const uint32_t *)(const void *)((const char *)cqe + 44),
					GDK_SCOPE_SYS));
}

/* Returns the immediate value of a send or write with immediate. It is big-endian, as it was
 * posted. */
GDK_FN __be32 gdk_cqe_imm(const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	return gdk_any_ld32((const uint32_t *)(const void *)((const char *)cqe + 36),
			    GDK_SCOPE_SYS);
}

#define GDK_CQE_INLINE_32 4u /* bit of op_own: the CQE contains up to 32 bytes of data */
#define GDK_CQE_INLINE_64 8u /* up to 64 bytes precede the CQE, in an entry of 128 bytes */

/* Returns 1 if the NIC has written the data of the message to the CQ entry: to the CQE itself, or
 * to the first half of an entry of 128 bytes, whose second half is the CQE. */
GDK_FN int gdk_cqe_is_inline(const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	const uint32_t word = gdk_any_ld32((const uint32_t *)(const void *)((const char *)cqe + 60),
					   GDK_SCOPE_SYS);

	return (word >> 24 & (GDK_CQE_INLINE_32 | GDK_CQE_INLINE_64)) != 0;
}

/* For a CQE with inline data (gdk_cqe_is_inline() returns 1): returns the address of the data, 64
 * bytes before the CQE or at the CQE itself. The data has gdk_cqe_bytes() bytes. */
GDK_FN uint8_t *gdk_cqe_inl_data(struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	const uint32_t word = gdk_any_ld32((const uint32_t *)(const void *)((char *)cqe + 60),
					   GDK_SCOPE_SYS);

	return (uint8_t *)cqe - (word >> 24 & GDK_CQE_INLINE_64 ? 64 : 0);
}

/* A value of the argument mcst of gdk_recv_wait(): post a DUMP WQE only if the GPU needs it. */
#define GDK_MCST_AUTO ((enum doca_gpu_dev_verbs_mcst_mode)2)

/* Makes the data of complete receives visible to the GPU: posts a DUMP WQE to the send queue, by
 * which the NIC reads one byte at daddr, in registered local memory, and waits for it. Does nothing
 * if mcst is DISABLED, or if it is GDK_MCST_AUTO and the GPU needs no DUMP. */
GDK_FN int gdk_recv_dump(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
			 enum doca_gpu_dev_verbs_mcst_mode mcst, gdk_mode_t mode)
{
	if (mcst == DOCA_GPUNETIO_VERBS_MCST_DISABLED)
		return 0;
	if (mcst == GDK_MCST_AUTO && !(gdk_ldc32(GDK_QP_AT(qp, gdk_rq_shift)) >> 8 & 0xff))
		return 0;
	return gdk_dump_wait(qp, daddr, 0, mode, GDK_AUTO);
}

/*
 * Waits until the receive of the ticket is complete and its data is visible. gdk_recv_dump()
 * describes daddr and mcst. *cqe is the address of the CQE. The CQE is overwritten when N more
 * receives are complete, where N is the number of CQ entries. Returns 0, -EOPNOTSUPP if the receive
 * queue is not exported, or the status that ended the QP.
 */
GDK_FN int gdk_recv_wait(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
			 struct doca_gpu_dev_verbs_addr daddr,
			 enum doca_gpu_dev_verbs_mcst_mode mcst, gdk_mode_t mode,
			 struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);
	int err;

	*cqe = NULL;
	if (!rq)
		return -EOPNOTSUPP;
	err = gdk_qp_status(qp);
	if (err)
		return err;
	*cqe = gdk_cqe_at(gdk_qp_cq(rq), ticket);
	err = gdk_wait(rq, ticket, mode);
	if (GDK_RARE(err != 0))
		return gdk_rq_ended(qp, err);
	return gdk_recv_dump(qp, daddr, mcst, mode);
}

/* As gdk_recv_wait(), but waits for all receives that were reserved before the call. *cqe is the
 * CQE of the last of them, or NULL if there was none. */
GDK_FN int gdk_recv_wait_all(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
			     enum doca_gpu_dev_verbs_mcst_mode mcst, gdk_mode_t mode,
			     struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	struct doca_gpu_dev_verbs_qp *rq = gdk_rq_of(qp);
	const uint64_t end = rq ? gdk_ld64(gdk_rsvd_index(rq), gdk_mode_scope(mode)) : 0;

	*cqe = NULL;
	if (!rq)
		return -EOPNOTSUPP;
	if (!end)
		return gdk_qp_status(qp);
	return gdk_recv_wait(qp, end - 1, daddr, mcst, mode, cqe);
}

/* As gdk_recv_wait(), without CQE and DUMP. */
GDK_FN int gdk_rq_wait(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
		       gdk_mode_t mode)
{
	const struct doca_gpu_dev_verbs_addr none = { 0, 0 };
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	return gdk_recv_wait(qp, ticket, none, DOCA_GPUNETIO_VERBS_MCST_DISABLED, mode, &cqe);
}

GDK_FN int gdk_rq_flush(struct doca_gpu_dev_verbs_qp *qp, gdk_mode_t mode)
{
	const struct doca_gpu_dev_verbs_addr none = { 0, 0 };
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	return gdk_recv_wait_all(qp, none, DOCA_GPUNETIO_VERBS_MCST_DISABLED, mode, &cqe);
}

/* Polls once for CQE `index`, and stores its address in *cqe. Returns 0, EBUSY, or the status that
 * ended the QP. */
GDK_FN int gdk_poll_one_cqe_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, gdk_mode_t mode,
			       struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	*cqe = gdk_cqe_at(cq, index);
	return gdk_poll_one_cq_at(cq, index, mode);
}

/* As gdk_poll_one_cqe_at(), but waits. A wait that fails ends the receive queue at once, and the
 * whole QP at the next call that waits for a receive or for a free slot of the receive queue. */
GDK_FN int gdk_poll_cqe_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, gdk_mode_t mode,
			   struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	*cqe = gdk_cqe_at(cq, index);
	return gdk_poll_cq_at(cq, index, mode);
}

#endif
