/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One WQE of one slot by the one thread that owns the QP: the shortest way there is from a
 * call to the register. In the plain case there is room for the slot, all below it is rung,
 * and shared use left nothing behind. Whether that is so, and all that is to be stored, is
 * known before the first store of the WQE: one branch, and straight on, for a branch costs a
 * lonely thread as much as ten additions. What is not plain goes the general way.
 */
#ifndef GDK_ONE_DEV_H
#define GDK_ONE_DEV_H

#include "../../device/gdk/qp_dev.h"

/* All but the control segment: ds - 1 segments as they lie in the WQE. */
struct gdk_one {
	uint32_t op, ds;
	uint64_t w[6];
};

GDK_FN void gdk_one_write(const struct gdk_wqes *w, uint64_t idx, const struct gdk_one *one)
{
	struct doca_gpu_dev_verbs_wqe *wqe = gdk_wqe_in(w, idx, one->op, one->ds);

	if (one->ds > 1)
		gdk_st_wqe16(gdk_seg(wqe, 1), one->w[0], one->w[1]);
	if (one->ds > 2)
		gdk_st_wqe16(gdk_seg(wqe, 2), one->w[2], one->w[3]);
	if (one->ds > 3)
		gdk_st_wqe16(gdk_seg(wqe, 3), one->w[4], one->w[5]);
}

/*
 * Reserves slot *at, for GDK_LEFT_SYS did before; left: where the token is in the plain case,
 * which says the scope of the fence, too. False: the case is not plain, nothing else was stored.
 */
GDK_FN int gdk_one_plain(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_one *one, uint64_t *at,
			 uint32_t left, gdk_handler_t handler, uint32_t code_opt)
{
	const gdk_handler_t bf = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF;
	const int own = GDK_SCOPE_THREAD, ring = !(code_opt & GDK_OPT_SKIP_DB);
	const int h = gdk_handler(qp, handler);
	const int proxy = h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	const struct gdk_wqes w = gdk_wqes_of(qp);
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const struct gdk_sq q = gdk_sq_but_flags(st, w.mask + 1);
	const uint64_t idx = left == GDK_LEFT_SYS ? *at : gdk_add64(gdk_rsvd_index(qp), 1, own);
	const uint64_t pi = idx + 1;
	uint64_t done, ended, doorbells;
	uint64_t *word;
	uint32_t bits;
	struct gdk_early x;
	struct gdk_db db;
	int odd;

	*at = idx;
	/* In flight together, all of it from the first-level cache. */
	gdk_ld64x2(&st->completed, &done, &ended, own);
	x = gdk_early_of(st, own);
	db = gdk_db_of(qp, pi);
	doorbells = x.doorbells + !proxy;
	word = gdk_word(&q, idx);
	bits = gdk_own_bits(&q, idx);
	GDK_COMPUTED(doorbells);
	GDK_COMPUTED(word);
	if (ring)
		odd = (ended | (x.left ^ left)) != 0 || (uint32_t)x.rung != (uint32_t)idx ||
		      h == (int)bf;
	else
		odd = ended || (uint32_t)x.left == GDK_LEFT;
	if (!(code_opt & GDK_OPT_SKIP_CHECK))
		odd |= (uint32_t)(pi - done) > q.depth;
	if (GDK_RARE(odd))
		return 0;
	/* The NIC's reads of the slot's last use, its CQE, completed; then our writes. */
	gdk_fence_load_store(own);
	gdk_one_write(&w, idx, one);
	if (!ring) {
		gdk_st64(&st->written, pi, own);
		return 1;
	}
	if (gdk_debug_refuses(qp, st, idx, pi))
		return 1;
	/* WQE, fence, the rest: see gdk_ring_exclusive. */
	gdk_fence_rel(left == GDK_LEFT_SYS ? GDK_SCOPE_SYS : GDK_SCOPE_GPU);
	gdk_st64x2(&st->rung, pi, doorbells, own);
	if (proxy) {
		gdk_counter_store(&db, pi);
	} else {
		if (h != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
			gdk_dbrec_store(&db);
		gdk_db_store(&db);
	}
	gdk_st64(word, bits, own);
	return 1;
}

GDK_SLOW_FN int gdk_one_general(struct doca_gpu_dev_verbs_qp *qp, struct gdk_one one, uint64_t idx,
				gdk_handler_t handler, uint32_t code_opt)
{
	const uint64_t end = code_opt & GDK_OPT_SKIP_CHECK ? 0 : idx + 1;
	const struct gdk_wqes w = gdk_wqes_of(qp);
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	int err;

	if (gdk_one_plain(qp, &one, &idx, GDK_LEFT_SYS, handler, code_opt))
		return 0;
	if (gdk_state_status(st) || end > gdk_ld64(&st->completed, GDK_SCOPE_THREAD) + w.mask + 1) {
		err = gdk_reserve_wait(qp, st, idx, end, w.mask + 1, GDK_SCOPE_THREAD);
		if (err)
			return err;
	}
	/* As above. */
	gdk_fence_load_store(GDK_SCOPE_THREAD);
	gdk_one_write(&w, idx, &one);
	gdk_post(qp, idx, idx, GDK_EXCLUSIVE, handler, code_opt);
	return 0;
}

/* Is it for gdk_post_one? With BlueFlame nothing is plain. */
GDK_FN int gdk_is_one(gdk_mode_t mode, gdk_handler_t handler)
{
	return mode == GDK_EXCLUSIVE && handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF;
}

GDK_FN int gdk_post_one(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_one *one,
			doca_gpu_dev_verbs_ticket_t *ticket, gdk_handler_t handler,
			uint32_t code_opt)
{
	if (gdk_one_plain(qp, one, ticket, GDK_LEFT_OWN, handler, code_opt))
		return 0;
	return gdk_one_general(qp, *one, *ticket, handler, code_opt);
}

#endif
