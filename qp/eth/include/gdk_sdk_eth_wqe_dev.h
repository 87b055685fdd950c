/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The send queue as kernels use it, and its WQEs. Part of gdk_sdk_eth_txq_dev.h, which describes
 * the ways to post.
 */
#ifndef GDK_SDK_ETH_WQE_DEV_H
#define GDK_SDK_ETH_WQE_DEV_H

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

/* Segment seg of the WQE at idx, which may continue behind the end of the ring. */
GDK_FN void *gdk_eth_seg(const struct gdk_wqes *w, uint64_t idx, uint32_t seg)
{
	const uint32_t at = ((uint32_t)idx * 4 + seg) & (w->mask * 4 + 3);

	return (void *)(uintptr_t)(w->ring + (uint64_t)at * 16);
}

/* Writes a send of one packet. w and cs, that of gdk_eth_cs(), are loaded before the slot is
 * reserved: a load that follows an atomic operation or a fence misses the first-level cache. */
GDK_FN void gdk_eth_send_at(const struct doca_gpu_eth_txq *txq, const struct gdk_wqes *w,
			    uint64_t idx, struct gdk_eth_pkt pkt, uint32_t flags, uint32_t cs)
{
	const uint64_t at = w->ring + ((uint64_t)((uint32_t)idx & w->mask) << 6);
	struct doca_gpu_dev_verbs_wqe *wqe = (struct doca_gpu_dev_verbs_wqe *)(uintptr_t)at;

	gdk_eth_ctrl_as(txq, w, gdk_seg(wqe, 0), idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND, 3, flags);
	gdk_eth_eseg(gdk_seg(wqe, 1), cs);
	gdk_eth_data(gdk_seg(wqe, 2), pkt);
}

/* Writes the first two segments of a multi-packet WQE of n packets. w, cs: see above. */
GDK_FN void gdk_eth_empw_head(const struct doca_gpu_eth_txq *txq, const struct gdk_wqes *w,
			      uint64_t idx, uint32_t n, uint32_t flags, uint32_t cs)
{
	gdk_eth_ctrl_as(txq, w, gdk_eth_seg(w, idx, 0), idx, GDK_OPCODE_EMPW, 2 + n, flags);
	gdk_eth_eseg(gdk_eth_seg(w, idx, 1), cs);
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
	const struct gdk_wqes w = gdk_wqes_of_qp(&txq->qp);

	gdk_eth_send_at(txq, &w, gdk_eth_whole(txq, idx, flags), pkt, flags, gdk_eth_cs(txq));
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
	const struct gdk_wqes w = gdk_wqes_of_qp(&txq->qp);

	if (!(gdk_eth_tx_flags(txq) & GDK_ETH_TXF_EMPW))
		return -EOPNOTSUPP;
	if (n - 1 >= GDK_ETH_EMPW_MAX || packet >= n)
		return -EINVAL;
	if (packet == 0)
		gdk_eth_empw_head(txq, &w, gdk_eth_whole(txq, idx, flags), n, flags,
				  gdk_eth_cs(txq));
	gdk_eth_data(gdk_eth_seg(&w, idx, (packet + 2) % 4), pkt);
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

#endif
