/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The doorbell tells the NIC about new WQEs. It is a store to the DBREC (doorbell record, in
 * memory) and a store to the doorbell register; each handler uses one of them or both. With the CPU
 * proxy, the GPU only stores a counter, and a CPU thread that polls it rings the doorbell. This
 * file has the values of these stores and their order.
 *
 * Which order is guaranteed, and why it suffices. W: WQEs, D: DBREC, R: register, C: the proxy's
 * counter. "->" is a release fence of the scope that gdk_nic_fence() selects; a comma is no fence.
 * GPU scope suffices where the CPU cannot access the memory of ring, CQ, DBREC and register: stores
 * before the fence are in the second-level cache, from which the NIC reads, before a later store
 * leaves the GPU.
 *
 *   handler    exclusive use     shared use         is the doorbell repeated?
 *   GPU_SM_DB  W -> D, R         W -> D -> R        yes, see below
 *   GPU_SM_BF  W -> D, R         W -> D -> R        yes, see below
 *   NO_DBR     W -> R            W -> R             no (no DBREC that R could precede)
 *   CPU_PROXY  W -> C            W -> C             no (C is 64 bits wide and only grows)
 *
 * The table has the fences that are needed. gdk_ring() always executes two, one before D and one
 * before R or C. Posts in exclusive use do not call it.
 *
 * W before D: a NIC that has dropped a doorbell may read the DBREC, and then the WQEs, at any time.
 * D before R: this matters only if the NIC drops R and reads D instead; a NIC that handles R takes
 * the index from it. In exclusive use D and R are stored in this order without a fence between
 * them, which saves 250 ns per doorbell. R crosses PCIe to the NIC, and the NIC's read of D crosses
 * it back; D was stored to the GPU's own second-level cache before R. So the NIC can read an old D
 * only if the store of D is delayed by more than a microsecond. If this happens and the NIC has
 * dropped R as well, it learns of the WQEs by one of these events:
 *   - The next doorbell of the queue pair: its fence orders the old D before it.
 *   - A thread that waits in exclusive use (gdk_wait, poll_cq_at, poll_cq, a reservation in a full
 *     ring) repeats the doorbell (fence, R) after 20 us, 160 us, and so on, each time after 8 times
 *     as long. poll_one_cq_at and poll_ticket repeat it at every 64th poll that finds nothing
 *     (wait_time_dev.h).
 *   - The first thread of shared use that takes the token (token_dev.h) repeats the doorbell before
 *     it does anything else. A wait in shared use takes the token only to ring the doorbell for
 *     slots that are not rung yet, so it does not repeat the doorbell of slots that exclusive use
 *     has rung.
 * So a put for which no thread waits is executed after the next doorbell or repetition. A repeated
 * doorbell never stores the DBREC.
 *
 * Shared use: only the thread that holds the token rings the doorbell. The DBREC stores of
 * successive holders are ordered, and so are their stores to the proxy's counter: the token moves
 * on after them. Their register stores are not ordered, because gdk_hand_over() moves the token on
 * before it stores the register. So the register may receive a lower index after a higher one. This
 * is believed to be harmless: a NIC compares the index with its own modulo 65536 and ignores an
 * older one, and NVIDIA's headers ring without a lock in the mode without DBREC. With BlueFlame
 * (bf_dev.h) the register is stored before the token moves on.
 */
#ifndef GDK_RING_DEV_H
#define GDK_RING_DEV_H

#include "device/gdk/platform.h"

#define GDK_DB	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
#define GDK_BF	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF
#define GDK_NO_DBR DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR
#define GDK_PROXY  DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY
#define GDK_AUTO   DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

typedef enum doca_gpu_dev_verbs_nic_handler gdk_handler_t;

/* Returns the most slots that one doorbell may announce. The NIC compares 16-bit indices, so it
 * could not tell the direction of a step of 0x8000. A doorbell for a ring of 0x8000 slots announces
 * at most 0x4000 of them. */
GDK_FN uint32_t gdk_ring_most(uint32_t depth)
{
	return depth < 0x8000u ? depth : 0x4000u;
}

/* Returns 1 if one doorbell may announce all slots of a ring of mask + 1 slots
 * (gdk_ring_most()). */
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

/* Returns the handler to use for a call. GDK_AUTO and GDK_BF select the handler that was chosen
 * when the queue pair was exported to the GPU; only gdk_submit_bf() and gdk_ring_bf() use
 * BlueFlame. Any other value is used as it is. */
GDK_FN gdk_handler_t gdk_handler(const struct gdk_qp_state *st, gdk_handler_t handler)
{
	if (handler == GDK_AUTO || handler == GDK_BF)
		return (gdk_handler_t)gdk_ldc32(&st->handler);
	return handler;
}

/* As gdk_handler(), but loads the exported handler from the device struct instead of the state
 * block (state.h). */
GDK_FN gdk_handler_t gdk_handler_of(const struct doca_gpu_dev_verbs_qp *qp, gdk_handler_t handler)
{
	if (handler == GDK_AUTO || handler == GDK_BF)
		return (gdk_handler_t)gdk_ldc32(GDK_QP_AT(qp, nic_handler));
	return handler;
}

/* Returns the value of the DBREC for a producer index: its low 16 bits, as a big-endian word. */
GDK_FN uint32_t gdk_dbrec_value(uint64_t pi)
{
	return gdk_bswap32_16((uint32_t)pi);
}

/* Returns the 8 bytes to store to the register. They are the first two words of a control segment,
 * both big-endian: index << 8, and QP number << 8. The index is that of the next WQE, which is not
 * written yet; the field for the size of a WQE (ds) is 0. */
GDK_FN uint64_t gdk_db_value(uint32_t qpn8_be, uint64_t pi)
{
	return (uint64_t)qpn8_be << 32 | gdk_bswap32_24((uint32_t)pi, 0);
}

/* The doorbell that announces all slots below index pi: addresses and values of its stores. They
 * are computed before the fence, so that only the stores remain after it. */
struct gdk_db {
	uint64_t *reg; /* the register, or the counter of the CPU proxy */
	uint32_t *dbrec;
	uint64_t reg_value, pi;
	uint32_t dbrec_value;
};

/* Fills in pi and the two values. The addresses do not depend on pi, and the caller sets them. */
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

/* Executes a release fence. It has system scope if the CPU can access the memory of ring, CQ, DBREC
 * or register (GDK_QPF_SYS_SCOPE), otherwise GPU scope. flags: `flags` of the state block
 * (state.h). */
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

/* Stores the register or, with the CPU proxy, its counter. Only the holder of the token
 * (token_dev.h), or a program that uses gdk_ring_proxy(), stores the counter. The counter never
 * decreases. */
GDK_FN void gdk_reg_store(const struct gdk_db *db, gdk_handler_t handler)
{
	if (gdk_is_proxy(handler))
		gdk_st64(db->reg, db->pi, GDK_SCOPE_SYS);
	else
		gdk_mmio_st64(db->reg, db->reg_value);
}

/*
 * Rings the doorbell for all slots below `to`. If `again` is 1, repeats the last doorbell, whose
 * index is `to`, and does not store the DBREC. The WQEs have been written, and the caller holds the
 * token (token_dev.h) or is in exclusive use. Posts in exclusive use do not call this function;
 * they ring by gdk_own_end(). flags: `flags` of the state block. lanes: 1 in exclusive use, where
 * several lanes may wait and ring at the same time (gdk_own_ring()); `rung` must not go back then.
 * Order: the WQEs; a fence; `rung`; the DBREC; a fence; the register.
 *   - `rung` comes after the WQEs, because a CPU thread may poll it and then store the DBREC itself
 *     (GDK_QPF_RUNG_READ).
 *   - The register comes after `rung`, because a thread that finds a CQE computes the index of the
 *     WQE from `rung`. That thread has an acquire fence between its loads of the CQE and of `rung`,
 *     with which the fence before the register pairs.
 */
GDK_FN void gdk_ring(struct gdk_qp_state *st, uint64_t to, int again, uint32_t flags, int lanes)
{
	const gdk_handler_t handler = (gdk_handler_t)gdk_ldc32(&st->handler);
	const uint64_t doorbells = lanes ? 0 : gdk_ld64(&st->doorbells, GDK_SCOPE_GPU);
	const struct gdk_db db = gdk_db_of(st, to);

	if (again && (!gdk_has_dbrec(handler) || !to))
		return;
	/* Orders the WQEs before all stores below: `rung`, the DBREC, and the register or the
	 * counter. */
	gdk_nic_fence(flags);
	if (!again) {
		if (lanes)
			gdk_red_max64(&st->rung, to, GDK_SCOPE_GPU);
		else
			gdk_st64x2(&st->rung, to, doorbells + !gdk_is_proxy(handler),
				   GDK_SCOPE_GPU);
		if (gdk_has_dbrec(handler))
			gdk_dbrec_store(&db);
	}
	/* Orders `rung` and the DBREC before the register. */
	gdk_nic_fence(flags);
	if (flags & GDK_QPF_BLUEFLAME)
		gdk_bf_settle();
	gdk_reg_store(&db, handler);
	if (lanes) { /* adding 0 takes less code than a branch */
		gdk_red_add64(&st->doorbells, !gdk_is_proxy(handler), GDK_SCOPE_GPU);
		gdk_red_add64(&st->bare_rings, again != 0, GDK_SCOPE_GPU);
	} else if (again) {
		gdk_red_inc64(&st->doorbells, GDK_SCOPE_GPU);
		gdk_red_inc64(&st->bare_rings, GDK_SCOPE_GPU);
	}
	/* Release: orders our store of the counter, or of a BlueFlame register, before the token
	 * moves on. The next holder takes the token before it stores either of them. */
	if (gdk_is_proxy(handler) || flags & GDK_QPF_BLUEFLAME)
		gdk_fence_rel(GDK_SCOPE_GPU);
}

#endif
