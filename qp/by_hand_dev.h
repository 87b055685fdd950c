/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For those who order and ring by themselves: record, register, BlueFlame and the
 * proxy's counter, one by one. What is rung so is noted as rung first, since
 * completions are understood relative to it.
 */
#ifndef GDK_BY_HAND_DEV_H
#define GDK_BY_HAND_DEV_H

#include "../../device/gdk/exclusive_dev.h"

/* What exclusive use wrote has its ready bits only when it is rung. */
GDK_SLOW_FN void gdk_note_written(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi,
				  uint64_t written)
{
	const struct gdk_sq q = gdk_sq_of(qp);
	const uint64_t rung = gdk_ld64(&q.st->rung, GDK_SCOPE_GPU);

	if (pi > rung)
		gdk_own_rung(&q, gdk_ld32(&q.st->left, GDK_SCOPE_GPU), written, rung, pi);
}

GDK_FN void gdk_note_rung(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			  uint64_t pi)
{
	const uint64_t written = gdk_ld64(&st->written, GDK_SCOPE_GPU);

	if (written)
		gdk_note_written(qp, pi, written);
	gdk_red_max64(&st->rung, pi, GDK_SCOPE_GPU);
}

GDK_FN void gdk_note_doorbell(struct gdk_qp_state *st)
{
	gdk_red_add64(&st->doorbells, 1, GDK_SCOPE_GPU);
	gdk_red_add64(&st->bare_rings, 1, GDK_SCOPE_GPU);
}

GDK_FN int gdk_opt_async(uint32_t code_opt)
{
	return GDK_ASYNC_STORE && code_opt & DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE;
}

/* WQEs, then the record; the NIC may read either at any time after. */
GDK_FN void gdk_update_dbr(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, uint32_t code_opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_db db = gdk_db_of(qp, pi);

	if (gdk_debug_refuses_below(qp, pi))
		return;
	if (gdk_opt_async(code_opt)) {
		gdk_st32_async(db.dbrec, (uint32_t)db.dbrec_value);
	} else {
		gdk_fence_rel(gdk_nic_scope(st));
		gdk_dbrec_store(&db);
	}
	gdk_red_add64(&st->bare_records, 1, GDK_SCOPE_GPU);
}

/* Record (or WQEs), then the register. */
GDK_FN void gdk_ring_db(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, uint32_t code_opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_db db = gdk_db_of(qp, pi);

	if (gdk_debug_refuses_below(qp, pi))
		return;
	gdk_note_rung(qp, st, pi);
	if (gdk_opt_async(code_opt)) {
		gdk_mmio_st64_async(db.reg, db.reg_value);
	} else {
		gdk_fence_rel(gdk_nic_scope(st));
		gdk_db_store(&db);
	}
	gdk_note_doorbell(st);
}

/* The index after the WQE, which carries 16 bits of its own: it is at most a ring above
 * what was rung, or below that. */
GDK_FN uint64_t gdk_wqe_end(struct gdk_qp_state *st, const void *wqe)
{
	const uint32_t first = gdk_ld32((const uint32_t *)wqe, GDK_SCOPE_GPU);
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	const uint16_t more = (uint16_t)((gdk_bswap32(first) >> 8) + 1 - (uint16_t)rung);

	return more <= gdk_ldc32(&st->depth) ? rung + more : rung;
}

/* False: the debug build refuses it. */
GDK_FN int gdk_bf_by_hand(const struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			  const void *wqe)
{
	const uint64_t pi = gdk_wqe_end(st, wqe);

	if (gdk_debug_refuses_below(qp, pi))
		return 0;
	gdk_note_rung(qp, st, pi);
	return 1;
}

GDK_FN void gdk_ring_bf(const struct doca_gpu_dev_verbs_qp *qp, const void *wqe)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	if (!gdk_bf_by_hand(qp, st, wqe))
		return;
	gdk_fence_rel(gdk_nic_scope(st));
	gdk_bf_send(qp, st, wqe, GDK_SCOPE_GPU);
	gdk_note_doorbell(st);
}

/* The same by a warp. */
GDK_FN void gdk_ring_bf_warp(const struct doca_gpu_dev_verbs_qp *qp, const void *wqe)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	struct gdk_bf_copy copy;
	int good = 0;

	gdk_bf_ld64_warp(copy.w, wqe);
	if (gdk_lane() == 0)
		good = gdk_bf_by_hand(qp, st, wqe);
	if (!gdk_shfl64((uint64_t)good, 0))
		return;
	gdk_fence_rel(gdk_nic_scope(st));
	gdk_bf_store_warp(qp, st, &copy, GDK_SCOPE_GPU);
	if (gdk_lane() == 0)
		gdk_note_doorbell(st);
	gdk_syncwarp();
}

/* WQEs, then the counter: the proxy reads the counter (acquire) and rings, and the NIC
 * reads the WQEs. The proxy itself reads none, so the fence is as wide as before a
 * register: it is one with a CPU behind. */
GDK_FN void gdk_ring_proxy(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi,
			   enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_db db = gdk_db_of(qp, pi);

	if (gdk_debug_refuses_below(qp, pi))
		return;
	gdk_note_rung(qp, st, pi);
	gdk_fence_rel(gdk_nic_scope(st));
	if (mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
		gdk_counter_store(&db, pi);
	else
		gdk_red_max64(db.reg, pi, GDK_SCOPE_SYS);
}

#endif
