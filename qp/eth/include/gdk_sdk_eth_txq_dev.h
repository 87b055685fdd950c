/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Sending packets on the device. Programs include doca_gpunetio_dev_eth_txq.cuh; code on CPU
 * threads may include this file.
 *
 * A send queue has the slots, the doorbell and the completion state of an exported queue pair
 * (device/gdk/post_dev.h), so threads share it in the same ways. Its WQEs are those of Ethernet
 * queues. Slots become free by CQEs: the WQE that contains the last slot of either half of the ring
 * always generates one, others only on request (SEND_FLAG_NOTIFY).
 *
 * How to post:
 *   gdk_eth_send() and the others reserve, write and ring;
 *   gdk_eth_reserve(), gdk_eth_wqe_send() and the others, gdk_eth_submit(): reserve first;
 *   gdk_eth_wqe_send(), gdk_eth_submit(): one thread or block knows that the slots are free;
 *   gdk_eth_wqe_send(), an addition to wqe_pi, gdk_eth_submit(): as before.
 * A submit vouches for its slots: the caller has written all slots below the index since the last
 * submit. If they were reserved by one gdk_eth_reserve(), it vouches for these slots only, so that
 * other threads may have reserved the slots below and not written them yet.
 */
#ifndef GDK_SDK_ETH_TXQ_DEV_H
#define GDK_SDK_ETH_TXQ_DEV_H

#include "gdk_sdk_eth_wqe_dev.h"

/* ---- reserve and submit ---- */

GDK_FN uint32_t *gdk_eth_span(const struct doca_gpu_eth_txq *txq, uint64_t last)
{
	const uint32_t mask = gdk_ldc16(GDK_QP_AT(txq, sq_wqe_mask));

	return (uint32_t *)(gdk_eth_marks(txq) + 1) + ((uint32_t)last & mask);
}

/** Reserves n slots, and waits for room. *idx: the first. Returns 0, -EINVAL (n is 0 or exceeds the
 * ring), or the status that ended the queue; then the caller writes no slot. */
GDK_FN int gdk_eth_reserve(struct doca_gpu_eth_txq *txq, uint32_t n, gdk_mode_t mode, uint64_t *idx)
{
	const int err = gdk_reserve(&txq->qp, n, mode, 0, idx);

	if (!err)
		gdk_st32(gdk_eth_span(txq, *idx + n - 1), n, GDK_SCOPE_GPU);
	return err;
}

/** Rings for all slots below an index, which may be masked to 16 bits, as soon as they are written.
 * The caller vouches for its slots: see above. */
GDK_FN void gdk_eth_submit(struct doca_gpu_eth_txq *txq, uint64_t pi, struct gdk_how how)
{
	struct gdk_qp_state *st = gdk_state_of_qp(&txq->qp);
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	uint64_t from, end;
	uint32_t span;

	pi = gdk_eth_extend(st, pi);
	if (pi <= rung || gdk_ended(st, gdk_mode_scope(how.mode)))
		return;
	if (how.mode == GDK_EXCLUSIVE) {
		(void)gdk_max64(gdk_rsvd_index(&txq->qp), pi, GDK_SCOPE_THREAD);
		gdk_st32(gdk_eth_span(txq, pi - 1), 0, GDK_SCOPE_THREAD);
		gdk_submit(&txq->qp, pi, how);
		return;
	}
	span = gdk_rmw_xchg32(gdk_eth_span(txq, pi - 1), 0, GDK_SCOPE_GPU);
	end = gdk_max64(gdk_rsvd_index(&txq->qp), pi, gdk_mode_scope(how.mode));
	from = span ? pi - span : end < pi ? end : rung;
	if (from < rung)
		from = rung;
	gdk_mark_ready(&txq->qp, from, pi - 1, how.mode, how.handler);
	gdk_submit(&txq->qp, pi, how);
}

/* ---- send ---- */

/* May the slots of a group that posts at once wait for ever? See gdk_op_most(). */
GDK_FN int gdk_eth_too_many(const struct doca_gpu_eth_txq *txq, uint32_t slots, gdk_exec_t exec)
{
	const uint32_t depth = gdk_ldc16(GDK_QP_AT(txq, sq_wqe_mask)) + 1u;

	return gdk_exec_size(exec) * slots > gdk_op_most(depth);
}

/* The send of one thread or group, with a WAIT before it if `waits`. */
GDK_FN int gdk_eth_post(struct doca_gpu_eth_txq *txq, struct gdk_eth_pkt pkt, uint32_t flags,
			int waits, uint64_t when, struct gdk_how how,
			doca_gpu_dev_eth_ticket_t *ticket)
{
	const uint32_t alone = how.exec == GDK_THREAD, lead = waits ? 1 : 0;
	const uint32_t cs = gdk_eth_cs(txq);
	struct gdk_post p;
	uint64_t at;
	int err;

	/* A thread has a WAIT of its own; a group has one, in the first slot. */
	err = gdk_post_begin(&txq->qp, &p, 1 + (alone ? lead : 0), alone ? 0 : lead, how);
	at = p.idx + lead;
	*ticket = at;
	if (err)
		return err;
	if (waits && (alone || p.rank == 0))
		gdk_eth_wait_at(txq, gdk_get_wqe_ptr(&txq->qp, alone ? p.idx : p.base),
				alone ? p.idx : p.base, when, 0);
	gdk_eth_send_at(txq, &p.wqes, at, pkt, flags, cs);
	if (waits && (alone || p.rank == 0) && flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY)
		gdk_eth_note_time(txq, at, when);
	gdk_post_end(&p, how);
	return 0;
}

/* gdk_eth_post() by each thread of the group in turn: half of the ring is too short for all. A
 * group then has one WAIT, that of the first thread. */
GDK_SLOW_FN int gdk_eth_in_turn(struct doca_gpu_eth_txq *txq, struct gdk_eth_pkt pkt,
				uint32_t flags, int waits, uint64_t when, struct gdk_how how,
				doca_gpu_dev_eth_ticket_t *ticket)
{
	const struct gdk_how one = gdk_how(how.mode, how.handler, GDK_THREAD, how.opt);
	uint32_t turn;
	int err = 0;

	GDK_LOOP
	for (turn = 0; turn < gdk_exec_size(how.exec); turn++) {
		if (turn == gdk_exec_rank(how.exec))
			err = gdk_eth_post(txq, pkt, flags, waits && turn == 0, when, one, ticket);
		gdk_exec_sync(how.exec);
	}
	return err;
}

/* Writes the WQE of a thread in exclusive use, and rings. sys: as in gdk_own_end(). */
GDK_FN void gdk_eth_own_write(struct doca_gpu_eth_txq *txq, struct gdk_post *p,
			      struct gdk_eth_pkt pkt, uint32_t flags, uint32_t cs,
			      struct gdk_how how, int sys)
{
	gdk_own_prepare(&txq->qp, p, how.opt);
	gdk_fence_load_store(GDK_SCOPE_THREAD); /* as in gdk_own_reserve() */
	gdk_eth_send_at(txq, &p->wqes, p->base, pkt, flags, cs);
	gdk_own_end(p, how.handler, how.opt, sys);
}

/* gdk_eth_post() by one thread in exclusive use, without WAIT. As in gdk_op_run(), the common case
 * has one branch, and its loads are in flight together before it. */
GDK_FN int gdk_eth_own(struct doca_gpu_eth_txq *txq, struct gdk_eth_pkt pkt, uint32_t flags,
		       struct gdk_how how, doca_gpu_dev_eth_ticket_t *ticket)
{
	struct doca_gpu_dev_verbs_qp *qp = &txq->qp;
	const uint32_t cs = gdk_eth_cs(txq);
	struct gdk_post p;
	int err;

	GDK_UNSET(p);
	p.st = gdk_state_of_qp(qp);
	p.wqes = gdk_wqes_of_qp(qp);
	p.total = 1;
	how.handler = gdk_handler_of(qp, how.handler);
	if (GDK_RARE(gdk_own_plain(qp, &p, 1, how.handler, how.opt))) {
		*ticket = p.base;
		err = gdk_own_make_plain(qp, &p, 1, how.handler, how.opt);
		p.wqes = gdk_wqes_of_qp(qp);
		if (!err)
			gdk_eth_own_write(txq, &p, pkt, flags, gdk_eth_cs(txq), how, 1);
		return err;
	}
	*ticket = p.base;
	gdk_eth_own_write(txq, &p, pkt, flags, cs, how, 0);
	return 0;
}

/**
 * Sends one packet for each thread of the group. All threads of a warp or block call this with the
 * same how (WARP and BLOCK scope); each has its own packet and gets its own ticket. A group makes
 * one reservation and rings one doorbell.
 *
 * @param flags SEND_FLAG_NOTIFY: the WQE generates a CQE
 * @return 0, or the status that ended the queue; the ticket is set in any case
 */
GDK_FN int gdk_eth_send(struct doca_gpu_eth_txq *txq, struct gdk_eth_pkt pkt, uint32_t flags,
			struct gdk_how how, doca_gpu_dev_eth_ticket_t *ticket)
{
	if (how.exec == GDK_THREAD && how.mode == GDK_EXCLUSIVE)
		return gdk_eth_own(txq, pkt, flags, how, ticket);
	if (how.exec != GDK_THREAD && GDK_RARE(gdk_eth_too_many(txq, 1, how.exec)))
		return gdk_eth_in_turn(txq, pkt, flags, 0, 0, how, ticket);
	return gdk_eth_post(txq, pkt, flags, 0, 0, how, ticket);
}

/** As gdk_eth_send(); the NIC sends the packets not before a time
 * (doca_eth_txq_calculate_timestamp()), nor any later WQE of the queue. In WARP and BLOCK scope the
 * time of rank 0 is that of the group. -EOPNOTSUPP without doca_eth_txq_set_wait_on_time_offload().
 * With SEND_FLAG_NOTIFY and completions on the CPU, the progress engine counts how late the packet
 * was (gdk_eth_txq_get_counters()); of a group, that of rank 0. */
GDK_FN int gdk_eth_wait(struct doca_gpu_eth_txq *txq, uint64_t when, struct gdk_eth_pkt pkt,
			uint32_t flags, struct gdk_how how, doca_gpu_dev_eth_ticket_t *ticket)
{
	if (!(gdk_eth_tx_flags(txq) & GDK_ETH_TXF_WAIT))
		return -EOPNOTSUPP;
	if (how.exec != GDK_THREAD && GDK_RARE(gdk_eth_too_many(txq, 2, how.exec)))
		return gdk_eth_in_turn(txq, pkt, flags, 1, when, how, ticket);
	return gdk_eth_post(txq, pkt, flags, 1, when, how, ticket);
}

/**
 * Sends `each` packets of each lane of a warp by multi-packet WQEs, with one reservation and one
 * doorbell. All lanes of the warp call this with the same each, flags and how, whose scope is WARP.
 * Packet j of lane l is sent as number j * 32 + l.
 *
 * @param pkts the packets of this lane
 * @param flags SEND_FLAG_NOTIFY: the last WQE generates a CQE
 * @param ticket gets the index of the last WQE
 * @return 0; -EOPNOTSUPP: the NIC has no multi-packet WQEs; -EINVAL: each is 0, or the WQEs need
 *         more than half of the ring; or the status that ended the queue
 */
GDK_FN int gdk_eth_send_multi(struct doca_gpu_eth_txq *txq, const struct gdk_eth_pkt *pkts,
			      uint32_t each, uint32_t flags, struct gdk_how how,
			      doca_gpu_dev_eth_ticket_t *ticket)
{
	const uint32_t lanes = gdk_warp_size(), total = lanes * each, full = GDK_ETH_EMPW_MAX;
	const uint32_t wqes = (total + full - 1) / full, last = total - (wqes - 1) * full;
	const uint32_t depth = gdk_ldc16(GDK_QP_AT(txq, sq_wqe_mask)) + 1u;
	const uint32_t slots = (wqes - 1) * gdk_eth_empw_slots(full) + gdk_eth_empw_slots(last);
	const uint32_t cs = gdk_eth_cs(txq);
	struct gdk_post p;
	uint32_t j, q, w = 0;
	uint64_t at;
	int err;

	if (!(gdk_eth_tx_flags(txq) & GDK_ETH_TXF_EMPW))
		return -EOPNOTSUPP;
	if (!each || slots > gdk_op_most(depth))
		return -EINVAL;
	err = gdk_post_begin(&txq->qp, &p, 0, slots, how);
	*ticket = p.base + (wqes - 1) * gdk_eth_empw_slots(full);
	if (err)
		return err;
	GDK_LOOP
	for (j = 0, q = p.rank; j < each; j++, q += lanes) {
		if (q >= full) { /* a warp has fewer lanes than a full WQE has packets */
			q -= full;
			w++;
		}
		at = p.base + w * gdk_eth_empw_slots(full);
		if (q == 0)
			gdk_eth_empw_head(txq, &p.wqes, at, w + 1 < wqes ? full : last,
					  w + 1 < wqes ? 0 : flags, cs);
		gdk_eth_data(gdk_eth_seg(&p.wqes, at, 2 + q), pkts[j]);
	}
	gdk_post_end(&p, how);
	return 0;
}

/* ---- completion ---- */

/** Waits until the WQE of a ticket, and all before it, are complete. Returns 0, or the status that
 * ended the queue. The WQE, or a later one, must generate a CQE: with NOTIFY, or at the end of half
 * the ring. Works wherever completions are handled. */
GDK_FN int gdk_eth_wait_for(struct doca_gpu_eth_txq *txq, doca_gpu_dev_eth_ticket_t ticket,
			    gdk_mode_t mode)
{
	return gdk_wait(&txq->qp, ticket, mode);
}

/* Finds the slot of WQE k with NOTIFY. Returns 0; EBUSY: there is none yet; 1: it is complete,
 * because its entry was used again. */
#define GDK_ETH_NOTE_OLD 1
GDK_FN int gdk_eth_find_note(struct doca_gpu_eth_txq *txq, uint64_t k, uint64_t *slot)
{
	const uint64_t e = gdk_ld64(gdk_eth_entry(txq, k), GDK_SCOPE_GPU);
	const uint64_t rung = gdk_ld64(&gdk_state_of_qp(&txq->qp)->rung, GDK_SCOPE_GPU);
	const uint32_t tag = (uint32_t)(e >> 32), want = (uint32_t)k + 1;

	if (e && (int32_t)(tag - want) > 0)
		return GDK_ETH_NOTE_OLD;
	if (!e || tag != want)
		return EBUSY;
	*slot = rung + (uint64_t)(int64_t)(int32_t)((uint32_t)e - (uint32_t)rung);
	return 0;
}

/**
 * Waits for the completion of WQE k of those with SEND_FLAG_NOTIFY, counted from 0 in the order in
 * which they were written; with wait 0, looks once. Completions must be on the GPU.
 *
 * @return 0; EBUSY (wait 0 only); -EOPNOTSUPP: the CPU handles completions; -ETIMEDOUT: WQE k was
 *         not written in time; or the status that ended the queue
 */
GDK_FN int gdk_eth_poll_at(struct doca_gpu_eth_txq *txq, uint64_t k, int wait, gdk_mode_t mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(&txq->qp);
	uint64_t slot = 0, start = 0, now, limit;
	uint32_t turns = 0;
	int err;

	if (gdk_eth_tx_flags(txq) & GDK_ETH_TXF_CPU_CQ)
		return -EOPNOTSUPP;
	GDK_LOOP
	for (;;) {
		err = gdk_eth_find_note(txq, k, &slot);
		if (err != EBUSY)
			break;
		err = gdk_state_status(st);
		if (err || !wait)
			return err ? err : EBUSY;
		gdk_relax(turns++);
		now = gdk_now_ns();
		start = start ? start : now;
		limit = gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU);
		if (limit && now - start > limit)
			return -ETIMEDOUT;
	}
	if (err == GDK_ETH_NOTE_OLD)
		return gdk_state_status(st);
	return wait ? gdk_wait(&txq->qp, slot, mode) : gdk_poll_ticket(&txq->qp, slot, mode);
}

/**
 * Waits for the next n completions of WQEs with SEND_FLAG_NOTIFY, after those for which earlier
 * calls have waited; with wait 0, takes those of them that have arrived.
 *
 * @param last wait 0: looks at the last one only, so that it takes all or none
 * @param done gets the number that was taken
 * @return as gdk_eth_poll_at(), 0 also if none was taken
 */
GDK_FN int gdk_eth_poll(struct doca_gpu_eth_txq *txq, uint32_t n, int last, int wait,
			gdk_mode_t mode, uint32_t *done)
{
	struct gdk_eth_marks *marks = gdk_eth_marks(txq);
	uint64_t from;
	int err = 0;

	*done = 0;
	if (!n)
		return 0;
	if (wait) {
		from = gdk_rmw_add64(&marks->taken, n, GDK_SCOPE_GPU);
		err = gdk_eth_poll_at(txq, from + n - 1, 1, mode);
		*done = err ? 0 : n;
		return err;
	}
	from = gdk_ld64(&marks->taken, GDK_SCOPE_GPU);
	GDK_LOOP
	for (; n; n = last ? 0 : n - 1) {
		err = gdk_eth_poll_at(txq, from + n - 1, 0, mode);
		if (err != EBUSY)
			break;
	}
	if (err == EBUSY)
		return 0;
	if (!err && gdk_any_cas64(&marks->taken, from, from + n, GDK_SCOPE_GPU) == from)
		*done = n;
	return err;
}

#endif
