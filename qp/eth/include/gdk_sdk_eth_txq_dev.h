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

#include "device/gdk/by_hand_dev.h"
#include "doca_gpunetio_eth_def.h"
#include "gdk_sdk_shape.h"

/* flags of struct gdk_eth_tx */
#define GDK_ETH_TXF_CPU_CQ    0x1u /* the CPU handles completions; CQEs are in host memory */
#define GDK_ETH_TXF_EMPW      0x2u /* the NIC executes multi-packet WQEs */
#define GDK_ETH_TXF_WAIT      0x4u /* the NIC waits for a time */
#define GDK_ETH_TXF_REAL_TIME 0x8u /* timestamps are seconds << 32 | nanoseconds */

/** Counters of a send queue for NOTIFY, in GPU memory. `spans` follow, one for each slot. */
struct gdk_eth_marks {
	uint64_t noted; /**< number of WQEs with SEND_FLAG_NOTIFY */
	uint8_t pad0[GDK_STATE_LINE - 8];
	uint64_t taken; /**< number of them for which a poll has waited */
	uint8_t pad1[GDK_STATE_LINE - 8];
	/* uint32_t spans[depth]: for the last slot of a reservation, the number of its slots, until
	 * it is submitted; else 0 */
};

/** What a send queue has beside the members of a queue pair. */
struct gdk_eth_tx {
	uint64_t marks; /**< struct gdk_eth_marks, GPU address */
	/** uint64_t notes[depth], GPU address. Completions on the GPU: WQE k with NOTIFY has entry
	 * k, with the low 32 bits of its slot and, << 32, of k + 1. Completions on the CPU: the
	 * slot i of a WQE with NOTIFY has entry i, with i + 1; in host memory. If the queue can
	 * wait for a time, entry depth + i is the time of slot i, if entry i has GDK_ETH_TIMED. */
	uint64_t notes;
	uint32_t flags; /**< GDK_ETH_TXF_* */
	uint32_t cs;	/**< cs_flags of the Ethernet segment */
	uint8_t pad[40];
};

/** In a note: the WQE was to be sent at a given time. */
#define GDK_ETH_TIMED (1ull << 63)

/** A send queue, as kernels use it: the device struct of a queue pair. Programs may read wqe_pi and
 * wqe_mask, and may add to wqe_pi. */
struct doca_gpu_eth_txq {
	union {
		struct doca_gpu_dev_verbs_qp qp; /**< the members of a queue pair */
		struct {
			uint64_t wqe_pi; /**< number of slots reserved */
			uint8_t pad0[54];
			uint16_t wqe_mask; /**< number of slots - 1 */
			uint8_t pad1[160];
			struct gdk_eth_tx tx; /**< in place of the receive CQ */
			uint8_t pad2[8];
		};
	};
};

GDK_STATE_ASSERT(sizeof(struct doca_gpu_eth_txq) == sizeof(struct doca_gpu_dev_verbs_qp), "size");
GDK_STATE_ASSERT(offsetof(struct doca_gpu_eth_txq, wqe_pi) ==
			 offsetof(struct doca_gpu_dev_verbs_qp, sq_rsvd_index),
		 "wqe_pi");
GDK_STATE_ASSERT(offsetof(struct doca_gpu_eth_txq, wqe_mask) ==
			 offsetof(struct doca_gpu_dev_verbs_qp, sq_wqe_mask),
		 "wqe_mask");
GDK_STATE_ASSERT(offsetof(struct doca_gpu_eth_txq, tx) ==
			 offsetof(struct doca_gpu_dev_verbs_qp, cq_rq),
		 "tx");
GDK_STATE_ASSERT(sizeof(struct gdk_eth_tx) == 64, "gdk_eth_tx");

/** A WQE of a send queue. */
struct doca_gpu_dev_eth_txq_wqe {
	struct doca_gpu_dev_verbs_wqe slot; /**< one slot */
};

/** Packets that a multi-packet WQE holds at most: its size has 6 bits, in segments. */
#define GDK_ETH_EMPW_MAX 61u
/* WAIT for a time: opcode modifier and operation (mlx5_prm.h of DPDK 22.11). The mask selects the
 * bits that are compared. DPDK compares the low 35, so that a wait is at most 4 s long; all bits
 * have no such limit. Whether a ConnectX accepts them has not been observed. */
#define GDK_ETH_WAIT_OP	  (2u << 24 | (uint32_t)DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT)
#define GDK_ETH_WAIT_COND 5u
#define GDK_ETH_WAIT_MASK UINT64_MAX

/** A packet in registered memory. */
struct gdk_eth_pkt {
	uint64_t addr;	/**< address */
	__be32 mkey;	/**< lkey, big-endian */
	uint32_t bytes; /**< at least 14, without the frame check sequence */
};

GDK_FN struct gdk_eth_pkt gdk_eth_pkt(uint64_t addr, __be32 mkey, uint32_t bytes)
{
	const struct gdk_eth_pkt p = { addr, mkey, bytes };

	return p;
}

#define GDK_TXQ_AT(txq, field) \
	((const char *)(txq) + offsetof(struct doca_gpu_eth_txq, tx) + \
	 offsetof(struct gdk_eth_tx, field))

GDK_FN uint32_t gdk_eth_tx_flags(const struct doca_gpu_eth_txq *txq)
{
	return gdk_ldc32(GDK_TXQ_AT(txq, flags));
}

GDK_FN struct gdk_eth_marks *gdk_eth_marks(const struct doca_gpu_eth_txq *txq)
{
	return (struct gdk_eth_marks *)(uintptr_t)gdk_ldc64(GDK_TXQ_AT(txq, marks));
}

GDK_FN uint64_t *gdk_eth_entry(const struct doca_gpu_eth_txq *txq, uint64_t i)
{
	const uint32_t mask = gdk_ldc16(GDK_QP_AT(txq, sq_wqe_mask));

	return (uint64_t *)(uintptr_t)gdk_ldc64(GDK_TXQ_AT(txq, notes)) + ((uint32_t)i & mask);
}

/* The index near the last doorbell that has these low 16 bits, for callers that mask indices. At
 * most one lap above it, or below it. */
GDK_FN uint64_t gdk_eth_extend(const struct gdk_qp_state *st, uint64_t idx)
{
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	const uint16_t more = (uint16_t)((uint16_t)idx - (uint16_t)rung);

	if (more <= gdk_ldc32(&st->depth))
		return rung + more;
	return rung - (uint16_t)(0u - more);
}

/* ---- WQEs ---- */

/* Notes that the WQE at idx generates a CQE for the program, before the WQE is published. */
GDK_FN void gdk_eth_note(const struct doca_gpu_eth_txq *txq, uint64_t idx)
{
	uint64_t k;

	if (gdk_eth_tx_flags(txq) & GDK_ETH_TXF_CPU_CQ) {
		gdk_st64(gdk_eth_entry(txq, idx), idx + 1, GDK_SCOPE_SYS);
		return;
	}
	k = gdk_rmw_add64(&gdk_eth_marks(txq)->noted, 1, GDK_SCOPE_GPU);
	gdk_st64(gdk_eth_entry(txq, k), gdk_pack((uint32_t)idx, (uint32_t)k + 1), GDK_SCOPE_GPU);
}

/* Adds the time for which a WQE waits to its note, so that the CPU counts how late it is. */
GDK_FN void gdk_eth_note_time(const struct doca_gpu_eth_txq *txq, uint64_t idx, uint64_t when)
{
	uint64_t *entry = gdk_eth_entry(txq, idx);

	if (!(gdk_eth_tx_flags(txq) & GDK_ETH_TXF_CPU_CQ))
		return;
	gdk_st64(entry + gdk_ldc16(GDK_QP_AT(txq, sq_wqe_mask)) + 1, when, GDK_SCOPE_SYS);
	gdk_st64(entry, (idx + 1) | GDK_ETH_TIMED, GDK_SCOPE_SYS);
}

/* Control segment of a WQE of ds segments at idx. flags: SEND_FLAG_NOTIFY or 0. w: of the queue. */
GDK_FN void gdk_eth_ctrl_as(const struct doca_gpu_eth_txq *txq, const struct gdk_wqes *w, void *at,
			    uint64_t idx, uint32_t op, uint32_t ds, uint32_t flags)
{
	const uint32_t half = w->mask >> 1;
	uint32_t ce = 0;

	if (flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY) {
		gdk_eth_note(txq, idx);
		ce = GDK_CE_ALWAYS;
	} else if (half - ((uint32_t)idx & half) < (ds + 3) / 4) {
		ce = GDK_CE_ALWAYS; /* as gdk_wqe_signal() */
	}
	gdk_st_wqe16(
		at,
		gdk_pack(gdk_bswap32(op | ((uint32_t)idx & 0xffff) << 8), w->qpn8_be | ds << 24),
		gdk_pack(ce << 24, 0));
}

GDK_FN void gdk_eth_ctrl(const struct doca_gpu_eth_txq *txq, void *at, uint64_t idx, uint32_t op,
			 uint32_t ds, uint32_t flags)
{
	struct gdk_wqes w;

	w.ring = 0; /* not used */
	w.mask = gdk_ldc16(GDK_QP_AT(txq, sq_wqe_mask));
	w.qpn8_be = gdk_ldc32(GDK_QP_AT(txq, sq_num_shift8_be));
	gdk_eth_ctrl_as(txq, &w, at, idx, op, ds, flags);
}

GDK_FN void gdk_eth_data(void *at, struct gdk_eth_pkt pkt)
{
	gdk_st_wqe16(at, gdk_pack(gdk_bswap32(pkt.bytes & 0x7fffffffu), pkt.mkey),
		     gdk_bswap64(pkt.addr));
}

/* The Ethernet segment: checksums, no inline header. */
GDK_FN uint32_t gdk_eth_cs(const struct doca_gpu_eth_txq *txq)
{
	return gdk_ldc32(GDK_TXQ_AT(txq, cs));
}

GDK_FN void gdk_eth_eseg(void *at, uint32_t cs)
{
	gdk_st_wqe16(at, gdk_pack(0, cs), 0);
}

GDK_FN void gdk_eth_send_at(const struct doca_gpu_eth_txq *txq, struct doca_gpu_dev_verbs_wqe *wqe,
			    uint64_t idx, struct gdk_eth_pkt pkt, uint32_t flags)
{
	gdk_eth_ctrl(txq, gdk_seg(wqe, 0), idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND, 3, flags);
	gdk_eth_eseg(gdk_seg(wqe, 1), gdk_eth_cs(txq));
	gdk_eth_data(gdk_seg(wqe, 2), pkt);
}

GDK_FN void gdk_eth_wait_at(const struct doca_gpu_eth_txq *txq, struct doca_gpu_dev_verbs_wqe *wqe,
			    uint64_t idx, uint64_t when, uint32_t flags)
{
	gdk_eth_ctrl(txq, gdk_seg(wqe, 0), idx, GDK_ETH_WAIT_OP, 3, flags);
	gdk_st_wqe16(gdk_seg(wqe, 1), gdk_pack(gdk_bswap32(GDK_ETH_WAIT_COND), 0), 0);
	gdk_st_wqe16(gdk_seg(wqe, 2), gdk_bswap64(when), GDK_ETH_WAIT_MASK);
	if (flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY)
		gdk_eth_note_time(txq, idx, when);
}

/** Slots of a multi-packet WQE of n packets. */
GDK_FN uint32_t gdk_eth_empw_slots(uint32_t n)
{
	return (2 + n + 3) / 4;
}

/** Returns the slot of an index, which may be masked to 16 bits. */
GDK_FN struct doca_gpu_dev_eth_txq_wqe *gdk_eth_wqe_ptr(const struct doca_gpu_eth_txq *txq,
							uint64_t idx)
{
	return (struct doca_gpu_dev_eth_txq_wqe *)gdk_get_wqe_ptr(&txq->qp, idx);
}

/* The index of a slot for gdk_eth_ctrl(), which notes need as a whole. */
GDK_FN uint64_t gdk_eth_whole(const struct doca_gpu_eth_txq *txq, uint64_t idx, uint32_t flags)
{
	return flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY
		       ? gdk_eth_extend(gdk_state_of_qp(&txq->qp), idx)
		       : idx;
}

/** Writes a send to the slot of an index, which may be masked to 16 bits. */
GDK_FN void gdk_eth_wqe_send(const struct doca_gpu_eth_txq *txq, uint64_t idx,
			     struct gdk_eth_pkt pkt, uint32_t flags)
{
	gdk_eth_send_at(txq, gdk_get_wqe_ptr(&txq->qp, idx), gdk_eth_whole(txq, idx, flags), pkt,
			flags);
}

/**
 * Writes one packet of a multi-packet WQE. Each of its packets is written once, by any threads;
 * packet 0 also writes the head of the WQE. NOT_SUPPORTED by the NIC: returns -EOPNOTSUPP and
 * writes nothing. n outside of 1 to 61, or a packet that is not below n: -EINVAL.
 *
 * @param idx slot of this packet: that of the WQE plus (packet + 2) / 4; may be masked to 16 bits
 */
GDK_FN int gdk_eth_wqe_empw(const struct doca_gpu_eth_txq *txq, uint64_t idx, uint32_t n,
			    uint32_t packet, struct gdk_eth_pkt pkt, uint32_t flags)
{
	struct doca_gpu_dev_verbs_wqe *wqe = gdk_get_wqe_ptr(&txq->qp, idx);

	if (!(gdk_eth_tx_flags(txq) & GDK_ETH_TXF_EMPW))
		return -EOPNOTSUPP;
	if (n - 1 >= GDK_ETH_EMPW_MAX || packet >= n)
		return -EINVAL;
	if (packet == 0) {
		gdk_eth_ctrl(txq, gdk_seg(wqe, 0), gdk_eth_whole(txq, idx, flags), GDK_OPCODE_EMPW,
			     2 + n, flags);
		gdk_eth_eseg(gdk_seg(wqe, 1), gdk_eth_cs(txq));
	}
	gdk_eth_data(gdk_seg(wqe, (packet + 2) % 4), pkt);
	return 0;
}

/** Writes a WQE that makes the NIC wait for a time (doca_eth_txq_calculate_timestamp()), to one
 * slot. Returns 0, or -EOPNOTSUPP without doca_eth_txq_set_wait_on_time_offload(). */
GDK_FN int gdk_eth_wqe_wait(const struct doca_gpu_eth_txq *txq, uint64_t idx, uint64_t when,
			    uint32_t flags)
{
	if (!(gdk_eth_tx_flags(txq) & GDK_ETH_TXF_WAIT))
		return -EOPNOTSUPP;
	gdk_eth_wait_at(txq, gdk_get_wqe_ptr(&txq->qp, idx), gdk_eth_whole(txq, idx, flags), when,
			flags);
	return 0;
}

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
	gdk_eth_send_at(txq, gdk_get_wqe_ptr(&txq->qp, at), at, pkt, flags);
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
	const uint64_t at = p->wqes.ring + ((uint64_t)((uint32_t)p->base & p->wqes.mask) << 6);
	struct doca_gpu_dev_verbs_wqe *wqe = (struct doca_gpu_dev_verbs_wqe *)(uintptr_t)at;

	gdk_own_prepare(&txq->qp, p, how.opt);
	gdk_fence_load_store(GDK_SCOPE_THREAD); /* as in gdk_own_reserve() */
	gdk_eth_ctrl_as(txq, &p->wqes, gdk_seg(wqe, 0), p->base, DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND,
			3, flags);
	gdk_eth_eseg(gdk_seg(wqe, 1), cs);
	gdk_eth_data(gdk_seg(wqe, 2), pkt);
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
	uint32_t j, q, w, n;
	struct gdk_post p;
	int err;

	if (!(gdk_eth_tx_flags(txq) & GDK_ETH_TXF_EMPW))
		return -EOPNOTSUPP;
	if (!each || slots > gdk_op_most(depth))
		return -EINVAL;
	err = gdk_post_begin(&txq->qp, &p, 0, slots, how);
	*ticket = p.base + (wqes - 1) * gdk_eth_empw_slots(full);
	if (err)
		return err;
	for (j = 0; j < each; j++) {
		q = j * lanes + p.rank;
		w = q / full;
		n = w + 1 < wqes ? full : last;
		(void)gdk_eth_wqe_empw(txq,
				       p.base + w * gdk_eth_empw_slots(full) + (q % full + 2) / 4,
				       n, q % full, pkts[j], w + 1 < wqes ? 0 : flags);
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
	if (!n || err == EBUSY)
		return 0;
	if (!err && gdk_any_cas64(&marks->taken, from, from + n, GDK_SCOPE_GPU) == from)
		*done = n;
	return err;
}

#endif
