/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The doorbell: DBREC and register of each handler, their values and their order.
 *
 * Which order is guaranteed, and why it suffices. W: WQEs, D: DBREC, R: register, C: the
 * proxy's counter. "->" is a release fence of the scope that gdk_nic_fence() selects. GPU scope
 * suffices where ring and DBREC are in GPU memory: stores before the fence are in the second-level
 * cache, from which the NIC reads, before a later store leaves the GPU.
 *
 *   handler    exclusive use     shared use         repeated doorbell
 *   GPU_SM_DB  W -> D, R         W -> D -> R        exclusive waits: after 20 us, then at 8
 *   GPU_SM_BF  W -> D, R         W -> D -> R        times the time each; exclusive polls: at
 *                                                   every 64th that finds nothing; shared use:
 *                                                   by the thread that takes the token
 *   NO_DBR     W -> R            W -> R             no (no DBREC that R could precede)
 *   CPU_PROXY  W -> C            W -> C             no (C is 64 bits wide and only grows)
 *
 * W before D: the NIC may read the DBREC, and then the WQEs, whenever it has dropped an earlier
 * doorbell. D before R: a NIC that handles a doorbell takes the index from the register, and
 * does not need the DBREC. In exclusive use D and R are stored in this order without a fence
 * between them, which saves 250 ns per doorbell. R crosses PCIe to the NIC, and the NIC's read of
 * D crosses it back; D was stored to the GPU's own second-level cache before R. So the NIC can read
 * an old D only if the store of D is delayed by more than a microsecond. If this happens and the
 * NIC has dropped R as well, then
 *   - the next doorbell of the queue pair, whose fence orders D before it, repairs it;
 *   - a thread that waits in exclusive use (gdk_wait, poll_cq_at, poll_cq, a reservation in a full
 *     ring) rings again after 20 us: fence, R. The same is done by poll_one_cq_at and poll_ticket
 *     when they have found nothing 64 times (wait_time_dev.h);
 *   - the first thread of shared use that takes the token rings again before it does anything
 *     else. A wait in shared use takes it only to ring slots that are not rung yet;
 *   - a put that no thread waits for is executed when the next doorbell or wait comes.
 * A repeated doorbell never stores the DBREC. In shared use it is rung by the holder of the token,
 * in exclusive use by any thread that waits.
 *
 * Shared use: the thread that holds the token rings. Holders' DBREC stores are ordered, and so
 * are the counter's: the token moves on after them. Register stores of successive holders are
 * not ordered (gdk_hand_over() moves the token on before it stores the register), so the
 * register may receive a lower index after a higher one. This is believed to be harmless: a NIC
 * compares the index with its own modulo 65536 and ignores an older one, and NVIDIA's headers ring
 * without a lock in the mode without DBREC. With BlueFlame the register is stored before the token
 * moves on.
 */
#ifndef GDK_RING_DEV_H
#define GDK_RING_DEV_H

#include "../../device/gdk/platform.h"

#define GDK_DB	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
#define GDK_BF	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF
#define GDK_NO_DBR DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR
#define GDK_PROXY  DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY
#define GDK_AUTO   DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

typedef enum doca_gpu_dev_verbs_nic_handler gdk_handler_t;

/* Largest number of slots of one ring of the doorbell. The NIC compares 16-bit indices, so a step
 * of 0x8000 would be ambiguous. */
GDK_FN uint32_t gdk_ring_most(uint32_t depth)
{
	return depth < 0x8000u ? depth : 0x4000u;
}

/* May one doorbell cover a ring of mask + 1 slots? */
GDK_FN int gdk_covers(uint32_t mask)
{
	return !(mask & 0x4000u);
}

GDK_FN int gdk_is_proxy(gdk_handler_t handler)
{
	return handler == GDK_PROXY;
}

GDK_FN int gdk_has_dbrec(gdk_handler_t handler)
{
	return handler != GDK_PROXY && handler != GDK_NO_DBR;
}

/* The handler of a call: that of the export where the caller leaves it open, or names BlueFlame,
 * which only gdk_submit_bf() uses. */
GDK_FN gdk_handler_t gdk_handler(const struct gdk_qp_state *st, gdk_handler_t handler)
{
	if (handler == GDK_AUTO || handler == GDK_BF)
		return (gdk_handler_t)gdk_ldc32(&st->handler);
	return handler;
}

/* The same, with the handler of the export from the device struct. */
GDK_FN gdk_handler_t gdk_handler_of(const struct doca_gpu_dev_verbs_qp *qp, gdk_handler_t handler)
{
	if (handler == GDK_AUTO || handler == GDK_BF)
		return (gdk_handler_t)gdk_ldc32(GDK_QP_AT(qp, nic_handler));
	return handler;
}

/* The DBREC word of a producer index: its low 16 bits, big-endian. */
GDK_FN uint32_t gdk_dbrec_value(uint64_t pi)
{
	return gdk_bswap32_16((uint32_t)pi);
}

/* The 8 bytes stored to the register: the first two words of a control segment, index << 8 and
 * QP number << 8, both big-endian. The index is that of the next WQE, and the size is 0. */
GDK_FN uint64_t gdk_db_value(uint32_t qpn8_be, uint64_t pi)
{
	return (uint64_t)qpn8_be << 32 | gdk_bswap32_24((uint32_t)pi, 0);
}

/* Addresses and values of the doorbell for all slots below an index, computed before the fence so
 * that only the stores remain after it. */
struct gdk_db {
	uint64_t *reg; /* register, or counter of the CPU proxy */
	uint32_t *dbrec;
	uint64_t reg_value, pi;
	uint32_t dbrec_value;
};

/* Fills in the values; the addresses are those of the QP. */
GDK_FN void gdk_db_fill(struct gdk_db *db, uint32_t qpn8_be, uint64_t pi)
{
	db->reg_value = gdk_db_value(qpn8_be, pi);
	db->dbrec_value = gdk_dbrec_value(pi);
	db->pi = pi;
}

GDK_FN struct gdk_db gdk_db_of(const struct gdk_qp_state *st, uint64_t pi)
{
	struct gdk_db db;

	db.reg = (uint64_t *)(uintptr_t)gdk_ldc64(&st->reg);
	db.dbrec = (uint32_t *)(uintptr_t)gdk_ldc64(&st->dbrec);
	gdk_db_fill(&db, gdk_ldc32(&st->qpn8_be), pi);
	return db;
}

/* Release fence of the scope that contains ring, DBREC, register and NIC (flags: those of the state
 * block). */
GDK_FN void gdk_nic_fence(uint32_t flags)
{
	if (flags & GDK_QPF_SYS_SCOPE)
		gdk_fence_rel(GDK_SCOPE_SYS);
	else
		gdk_fence_rel(GDK_SCOPE_GPU);
}

GDK_FN void gdk_dbrec_store(const struct gdk_db *db)
{
	gdk_st32(db->dbrec, db->dbrec_value, GDK_SCOPE_SYS);
}

/* Stores the register, or the counter of the proxy. Only the holder of the token stores the
 * counter, so it never falls. */
GDK_FN void gdk_reg_store(const struct gdk_db *db, gdk_handler_t handler)
{
	if (gdk_is_proxy(handler))
		gdk_st64(db->reg, db->pi, GDK_SCOPE_SYS);
	else
		gdk_mmio_st64(db->reg, db->reg_value);
}

/*
 * Rings for all slots below `to`, or repeats the last doorbell, whose index is `to` (again); then
 * the DBREC is not stored. The caller holds the token, and the WQEs are written. flags: those of
 * the state block.
 * rung is stored after the WQEs, because a CPU thread may poll it and store the DBREC itself
 * (GDK_QPF_RUNG_READ), and before the register: a thread that finds a CQE computes the WQE's index
 * from rung. The fence before the register pairs with its acquire fence between CQE and rung.
 */
GDK_FN void gdk_ring(struct gdk_qp_state *st, uint64_t to, int again, uint32_t flags)
{
	const gdk_handler_t handler = (gdk_handler_t)gdk_ldc32(&st->handler);
	const uint64_t doorbells = gdk_ld64(&st->doorbells, GDK_SCOPE_GPU);
	const struct gdk_db db = gdk_db_of(st, to);

	if (again && (!gdk_has_dbrec(handler) || !to))
		return;
	gdk_nic_fence(flags); /* WQEs, then rung, DBREC, register or counter */
	if (!again) {
		gdk_st64x2(&st->rung, to, doorbells + !gdk_is_proxy(handler), GDK_SCOPE_GPU);
		if (gdk_has_dbrec(handler))
			gdk_dbrec_store(&db);
	}
	gdk_nic_fence(flags); /* rung and DBREC, then register */
	if (flags & GDK_QPF_BLUEFLAME)
		gdk_bf_settle();
	gdk_reg_store(&db, handler);
	if (again) { /* rung stays: the lanes of a warp in exclusive use may all repeat */
		gdk_red_inc64(&st->doorbells, GDK_SCOPE_GPU);
		gdk_red_inc64(&st->bare_rings, GDK_SCOPE_GPU);
	}
	/* Counter, or BlueFlame register, then the token. The next holder takes the token before
	 * it stores them. */
	if (gdk_is_proxy(handler) || flags & GDK_QPF_BLUEFLAME)
		gdk_fence_rel(GDK_SCOPE_GPU);
}

#endif
