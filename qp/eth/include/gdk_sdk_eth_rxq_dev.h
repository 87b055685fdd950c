/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Receiving packets on the device. Programs include doca_gpunetio_dev_eth_rxq.cuh; code on CPU
 * threads may include this file.
 *
 * Packets have 64-bit indices that count from 0 since the start of the queue and never wrap. Packet
 * i is in slot i modulo the number of slots. The threads that receive are one group: a thread, a
 * warp or a block, always the same threads in one call. Calls on one queue must not overlap.
 *
 * When is a slot overwritten? A slot belongs to the program from the receive that returned its
 * packet until it is released:
 *   - by the next receive on the queue, which releases all packets that were returned before;
 *   - or, if receives have the option GDK_ETH_KEEP, by gdk_eth_release().
 * The NIC fills released slots in the order of their indices, so that a released slot is
 * overwritten when all slots behind it have been filled. A program that sends a packet out of its
 * slot must not release it before the send is complete.
 */
#ifndef GDK_SDK_ETH_RXQ_DEV_H
#define GDK_SDK_ETH_RXQ_DEV_H

#include "device/gdk/ring_dev.h"
#include "doca_gpunetio_eth_def.h"
#include "gdk_sdk_shape.h"

/* flags of struct doca_gpu_eth_rxq */
#define GDK_ETH_RXF_REAL_TIME 0x1u /* timestamps are seconds << 32 | nanoseconds */
#define GDK_ETH_RXF_MCST      0x2u /* mcst is a send queue */

/** A receive queue, as kernels use it. Indices are those of packets. */
struct doca_gpu_eth_rxq {
	/* Written by the host only. Addresses are GPU addresses. */
	uint64_t pkts;	/**< slot 0 */
	uint64_t cqes;	/**< CQE 0 */
	uint64_t dbrec; /**< DBREC word 0 */
	uint64_t mcst; /**< the send queue that waits for packets (struct doca_gpu_eth_txq), or 0 */
	uint32_t num;  /**< slots, a power of two; the CQ has as many entries */
	uint32_t stride; /**< bytes from one slot to the next */
	__be32 mkey;	 /**< key of the buffer, big-endian */
	uint32_t flags;	 /**< GDK_ETH_RXF_* */
	uint8_t pad0[GDK_STATE_LINE - 48];

	/* Written by rank 0 of the group that receives. */
	uint64_t next;	       /**< index of the packet that the next receive returns first */
	uint64_t freed;	       /**< packets below it are released: DBREC = freed + num */
	uint64_t dbrecs;       /**< DBREC updates */
	uint64_t error_packet; /**< index of the packet that ended the queue, or UINT64_MAX */
	int32_t status;	       /**< 0, or the negative errno that ended the queue; stays */
	uint32_t abort_word;   /**< set by the host; loaded together with status */
	uint8_t pad1[GDK_STATE_LINE - 40];
};

GDK_STATE_ASSERT(sizeof(struct doca_gpu_eth_rxq) == 2 * GDK_STATE_LINE, "one line per writer");
GDK_STATE_ASSERT(offsetof(struct doca_gpu_eth_rxq, status) % 8 == 0, "and abort_word: one access");

/** Options of gdk_eth_recv(): the slots of earlier packets are not released. */
#define GDK_ETH_KEEP 1u

/* CQEs that a thread tests at once. */
#ifndef GDK_ETH_FLIGHT
#define GDK_ETH_FLIGHT 4u
#endif

/* What ended a pass over CQEs, beside the number of packets before it, in one 32-bit value. */
#define GDK_ETH_PASS_BITS    3u
#define GDK_ETH_PASS_WAIT    0u /* no CQE yet */
#define GDK_ETH_PASS_ERROR   1u /* an error CQE */
#define GDK_ETH_PASS_OVERRUN 2u /* a CQE of another packet */
#define GDK_ETH_PASS_ENDED   3u /* the queue has ended, or the host has aborted it */
#define GDK_ETH_PASS_LATE    4u /* the time is over */
#define GDK_ETH_PASS_FULL    5u /* as many packets as the call may return */

#define GDK_CQE_RECV	  2u   /* opcode: packet received */
#define GDK_CQE_UNWRITTEN 0xfu /* opcode: not written yet */

GDK_FN const uint8_t *gdk_eth_cqe(const struct doca_gpu_eth_rxq *rxq, uint64_t idx)
{
	const uint64_t at = gdk_ldc64(&rxq->cqes);

	return (const uint8_t *)(uintptr_t)(at +
					    ((uint32_t)idx & (gdk_ldc32(&rxq->num) - 1)) * 64ull);
}

/* A 32-bit word of a CQE, in the byte order of the CPU. */
GDK_FN uint32_t gdk_eth_cqe32(const struct doca_gpu_eth_rxq *rxq, uint64_t idx, uint32_t at)
{
	return gdk_bswap32(gdk_ld32((const uint32_t *)(const void *)(gdk_eth_cqe(rxq, idx) + at),
				    GDK_SCOPE_SYS));
}

/** Returns the address of a received packet. It needs no access to memory that the NIC writes. */
GDK_FN uint64_t gdk_eth_pkt_addr(const struct doca_gpu_eth_rxq *rxq, uint64_t idx)
{
	const uint64_t slot = (uint32_t)idx & (gdk_ldc32(&rxq->num) - 1);

	return gdk_ldc64(&rxq->pkts) + slot * gdk_ldc32(&rxq->stride);
}

/** Returns the bytes of a packet that is not released. */
GDK_FN uint32_t gdk_eth_pkt_bytes(const struct doca_gpu_eth_rxq *rxq, uint64_t idx)
{
	return gdk_eth_cqe32(rxq, idx, 0x2c);
}

/** Returns the time of arrival of a packet that is not released: nanoseconds, or ticks if the NIC
 * has no real-time clock. */
GDK_FN uint64_t gdk_eth_pkt_ts(const struct doca_gpu_eth_rxq *rxq, uint64_t idx)
{
	const uint64_t high = gdk_eth_cqe32(rxq, idx, 0x30), low = gdk_eth_cqe32(rxq, idx, 0x34);

	if (gdk_ldc32(&rxq->flags) & GDK_ETH_RXF_REAL_TIME)
		return high * 1000000000ull + low;
	return high << 32 | low;
}

/** @name Bits of gdk_eth_pkt_checks()
 * @{ */
#define GDK_ETH_L2_OK 1u  /**< the Ethernet header is valid */
#define GDK_ETH_L3_OK 2u  /**< the IP header and its checksum are right */
#define GDK_ETH_L4_OK 4u  /**< the TCP or UDP checksum is right */
#define GDK_ETH_IS_L3 8u  /**< it is an IP packet */
#define GDK_ETH_IS_L4 16u /**< it is a TCP or UDP packet, and not a fragment */
/** @} */

/** Returns what the NIC has checked of a packet that is not released (GDK_ETH_L2_OK and others).
 * The bits are those of struct mlx5_cqe64 of rdma-core 44 (hds_ip_ext, l4_hdr_type_etc). */
GDK_FN uint32_t gdk_eth_pkt_checks(const struct doca_gpu_eth_rxq *rxq, uint64_t idx)
{
	const uint32_t word = gdk_eth_cqe32(rxq, idx, 0x1c) >> 16;
	const uint32_t l4 = word >> 4 & 7, l3 = word >> 2 & 3;

	return (word >> 8 & 7) | (l3 ? GDK_ETH_IS_L3 : 0) |
	       (l4 && !(word >> 7 & 1) ? GDK_ETH_IS_L4 : 0);
}

/** Returns 0, or the status that ended the queue. */
GDK_FN int gdk_eth_rxq_status(const struct doca_gpu_eth_rxq *rxq)
{
	const uint64_t both = gdk_ld64((const uint64_t *)(const void *)&rxq->status, GDK_SCOPE_GPU);

	return (uint32_t)both ? (int)(uint32_t)both : both ? -ECANCELED : 0;
}

/* Lets the NIC fill the slots of packets below `to`. The packets' loads are ordered before by a
 * fence of the caller. */
GDK_FN void gdk_eth_dbrec(struct doca_gpu_eth_rxq *rxq, uint64_t to)
{
	uint32_t *dbrec = (uint32_t *)(uintptr_t)gdk_ldc64(&rxq->dbrec);

	gdk_st64(&rxq->freed, to, GDK_SCOPE_GPU);
	gdk_st64(&rxq->dbrecs, gdk_ld64(&rxq->dbrecs, GDK_SCOPE_GPU) + 1, GDK_SCOPE_GPU);
	gdk_st32(dbrec, gdk_dbrec_value(to + gdk_ldc32(&rxq->num)), GDK_SCOPE_SYS);
}

/**
 * Releases the slots of all packets below an index. One thread calls this, after the other threads
 * of the group are done with these packets, and before or after a receive, not during one. An index
 * above the packets that receives have returned releases those only.
 */
GDK_FN void gdk_eth_release(struct doca_gpu_eth_rxq *rxq, uint64_t to)
{
	const uint64_t next = gdk_ld64(&rxq->next, GDK_SCOPE_GPU);

	if (to > next)
		to = next;
	if (to <= gdk_ld64(&rxq->freed, GDK_SCOPE_GPU))
		return;
	/* Accesses of the packets, then the DBREC. The NIC: DBREC, then the next packets. */
	gdk_fence_acq_rel(GDK_SCOPE_SYS);
	gdk_eth_dbrec(rxq, to);
}

GDK_FN uint32_t gdk_eth_size(enum doca_gpu_dev_eth_exec_scope exec)
{
	return exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK  ? gdk_block_size()
	       : exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP ? gdk_warp_size()
							   : 1;
}

GDK_FN uint32_t gdk_eth_rank(enum doca_gpu_dev_eth_exec_scope exec)
{
	return exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK  ? gdk_block_rank()
	       : exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP ? gdk_lane()
							   : 0;
}

GDK_FN void gdk_eth_sync(enum doca_gpu_dev_eth_exec_scope exec)
{
	if (exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK)
		gdk_block_sync();
	else if (exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP)
		gdk_syncwarp();
}

/*
 * Tests the CQEs of `most` packets from `from` on, at most GDK_ETH_FLIGHT of them by each thread,
 * all loads in flight together. Returns, for the packets that this thread tests, the first one that
 * ends the pass: its number from `from` on, and why.
 */
GDK_FN uint32_t gdk_eth_test(const struct doca_gpu_eth_rxq *rxq, uint64_t from, uint32_t most,
			     uint32_t rank, uint32_t size)
{
	const uint32_t num = gdk_ldc32(&rxq->num);
	uint32_t word[GDK_ETH_FLIGHT], k, i, end;

	GDK_UNROLL
	for (k = 0; k < GDK_ETH_FLIGHT; k++) {
		i = k * size + rank;
		word[k] =
			i < most ? gdk_ld32((const uint32_t *)(const void *)(gdk_eth_cqe(rxq,
											 from + i) +
									     60),
					    GDK_SCOPE_SYS)
				 : 0;
	}
	end = (most < GDK_ETH_FLIGHT * size ? most : GDK_ETH_FLIGHT * size) << GDK_ETH_PASS_BITS |
	      GDK_ETH_PASS_FULL;
	GDK_UNROLL
	for (k = GDK_ETH_FLIGHT; k-- > 0;) {
		const uint32_t opcode = word[k] >> 28, owner = word[k] >> 24 & 1;
		uint32_t why = GDK_ETH_PASS_FULL;

		i = k * size + rank;
		if (i >= most)
			continue;
		if (opcode == GDK_CQE_UNWRITTEN || owner != (((from + i) & num) != 0))
			why = GDK_ETH_PASS_WAIT;
		else if (opcode != GDK_CQE_RECV)
			why = GDK_ETH_PASS_ERROR;
		else if (gdk_bswap16((uint16_t)word[k]) != (uint16_t)(from + i))
			why = GDK_ETH_PASS_OVERRUN;
		if (why != GDK_ETH_PASS_FULL)
			end = i << GDK_ETH_PASS_BITS | why;
	}
	return end;
}

/* The least value of the group. */
GDK_FN uint32_t gdk_eth_least(uint32_t v, enum doca_gpu_dev_eth_exec_scope exec)
{
	return exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK  ? gdk_block_min32(v)
	       : exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP ? gdk_warp_min32(v)
							   : v;
}

/* How long a receive waits. */
struct gdk_eth_timer {
	uint64_t limit_ns, start; /* start 0: not started */
	uint32_t turns;
};

/* Rank 0, whose own CQE is not there: why the pass ends. */
GDK_FN uint32_t gdk_eth_idle(const struct doca_gpu_eth_rxq *rxq, struct gdk_eth_timer *t)
{
	uint64_t now;

	if (gdk_eth_rxq_status(rxq))
		return GDK_ETH_PASS_ENDED;
	if (!t->limit_ns)
		return GDK_ETH_PASS_LATE;
	gdk_relax(t->turns++);
	now = gdk_now_ns();
	if (!t->start)
		t->start = now;
	return now - t->start >= t->limit_ns ? GDK_ETH_PASS_LATE : GDK_ETH_PASS_WAIT;
}

/* Ends the queue by an error of packet idx, unless it has ended. */
GDK_FN void gdk_eth_rxq_end(struct doca_gpu_eth_rxq *rxq, uint64_t idx, int status)
{
	if (gdk_ld32((const uint32_t *)&rxq->status, GDK_SCOPE_GPU))
		return;
	gdk_st64(&rxq->error_packet, idx, GDK_SCOPE_GPU);
	gdk_st32((uint32_t *)&rxq->status, (uint32_t)status, GDK_SCOPE_GPU);
}

/*
 * Waits for packets from `next` on. Returns their number, and in *why what ended the wait. All
 * threads of the group get the same results: rank 0 tests the first missing packet in each pass,
 * and alone decides whether the wait goes on.
 */
GDK_FN uint32_t gdk_eth_gather(const struct doca_gpu_eth_rxq *rxq, uint64_t next, uint32_t most,
			       int any, struct gdk_eth_timer *t,
			       enum doca_gpu_dev_eth_exec_scope exec, uint32_t *why)
{
	const uint32_t rank = gdk_eth_rank(exec), size = gdk_eth_size(exec);
	uint32_t got = 0, end, first = 1;

	GDK_LOOP
	for (;;) {
		end = gdk_eth_test(rxq, next + got, most - got, rank, size);
		if (rank == 0 && first && gdk_eth_rxq_status(rxq))
			end = GDK_ETH_PASS_ENDED;
		else if (rank == 0 && end == GDK_ETH_PASS_WAIT && !(any && got))
			end = gdk_eth_idle(rxq, t);
		end = gdk_eth_least(end, exec);
		first = 0;
		got += end >> GDK_ETH_PASS_BITS;
		*why = end & ((1u << GDK_ETH_PASS_BITS) - 1);
		if (*why == GDK_ETH_PASS_WAIT ? any && got && !(end >> GDK_ETH_PASS_BITS)
					      : *why != GDK_ETH_PASS_FULL || got == most)
			return got;
	}
}

/* Rank 0, after the fence: stores what the receive found. */
GDK_FN void gdk_eth_settle(struct doca_gpu_eth_rxq *rxq, uint64_t next, uint32_t got, uint32_t why)
{
	if (got)
		gdk_st64(&rxq->next, next + got, GDK_SCOPE_GPU);
	if (why == GDK_ETH_PASS_ERROR)
		gdk_eth_rxq_end(rxq, next + got, -EIO);
	else if (why == GDK_ETH_PASS_OVERRUN)
		gdk_eth_rxq_end(rxq, next + got, -EOVERFLOW);
	else if (why == GDK_ETH_PASS_ENDED)
		gdk_eth_rxq_end(rxq, GDK_NO_WQE, gdk_eth_rxq_status(rxq));
}

/** What a receive returned. */
struct gdk_eth_batch {
	uint64_t first; /**< index of the first packet */
	uint32_t num;	/**< number of packets */
};

/**
 * Receives packets by a group of threads, all of which call this with the same arguments and get
 * the same results. A block may have any number of threads; a warp must be whole. Waits until
 * max_pkts packets have arrived or the time is over; with max_pkts 0, until at least one has
 * arrived and the next one has not. A slot that is not released cannot get a packet, so at most the
 * free slots are returned.
 *
 * Releases the packets of earlier calls, unless opt contains GDK_ETH_KEEP: all threads of the group
 * are done with them. There is one fence for each call that returns packets: it orders the CQEs
 * before the packets, and the loads of earlier packets before the DBREC.
 *
 * Returns 0, also if no packet has arrived, or the negative status that ended the queue: -EIO (an
 * error CQE), -EOVERFLOW (the CQ was overrun), -ECANCELED (the host called gdk_eth_rxq_abort()).
 * Packets that arrived before an error are returned first.
 */
GDK_FN int gdk_eth_recv(struct doca_gpu_eth_rxq *rxq, uint32_t max_pkts, uint64_t timeout_ns,
			uint32_t opt, enum doca_gpu_dev_eth_exec_scope exec,
			struct gdk_eth_batch *batch)
{
	const uint32_t num = gdk_ldc32(&rxq->num), rank = gdk_eth_rank(exec);
	struct gdk_eth_timer t = { timeout_ns, 0, 0 };
	uint64_t next, freed, to;
	uint32_t most, got, why;

	gdk_eth_sync(exec); /* the threads are done with earlier packets */
	next = gdk_ld64(&rxq->next, GDK_SCOPE_GPU);
	freed = gdk_ld64(&rxq->freed, GDK_SCOPE_GPU);
	to = opt & GDK_ETH_KEEP ? freed : next;
	/* Usually the slots are released after the fence below. Here if the free slots are not
	 * enough, or half of the ring. A thread that sees what rank 0 stores computes the same. */
	if (max_pkts ? max_pkts > freed + num - next : to - freed > num / 2) {
		if (to != freed && rank == 0) {
			gdk_fence_acq_rel(GDK_SCOPE_SYS); /* as in gdk_eth_release() */
			gdk_eth_dbrec(rxq, to);
		}
		freed = to;
	}
	most = (uint32_t)(freed + num - next);
	if (max_pkts && max_pkts < most)
		most = max_pkts;
	got = gdk_eth_gather(rxq, next, most, !max_pkts, &t, exec, &why);
	/* CQEs, then packets. Accesses of earlier packets, then the DBREC: as in gdk_eth_release().
	 */
	if (got || rank == 0)
		gdk_fence_acq_rel(GDK_SCOPE_SYS);
	gdk_eth_sync(exec);
	if (rank == 0) {
		if (to > gdk_ld64(&rxq->freed, GDK_SCOPE_GPU))
			gdk_eth_dbrec(rxq, to);
		gdk_eth_settle(rxq, next, got, why);
	}
	batch->first = next;
	batch->num = got;
	if (got || !(why == GDK_ETH_PASS_ERROR || why == GDK_ETH_PASS_OVERRUN ||
		     why == GDK_ETH_PASS_ENDED))
		return 0;
	gdk_eth_sync(exec); /* rank 0 has stored the status */
	return gdk_eth_rxq_status(rxq);
}

#endif
