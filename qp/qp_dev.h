/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Slots of the send queue as callers use them: reserve, write the WQEs, mark them
 * ready, submit. Exclusive use is that of one thread (or one warp through its
 * batches), which marks slots in the order of their indices.
 */
#ifndef GDK_QP_DEV_H
#define GDK_QP_DEV_H

#include "../../device/gdk/by_hand_dev.h"
#include "../../device/gdk/tail_dev.h"

#define GDK_RECORD_LOOKS 1000u /* some 100 us */

/* Raises wanted to pi and sees to it that it is served. Exclusive: the caller
 * wrote all below pi, and rings at once. */
GDK_FN void gdk_want(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q, uint64_t pi,
		     int scope, gdk_handler_t handler, struct gdk_bf_source src)
{
	uint64_t left, written;
	struct gdk_early x;

	if (scope == GDK_SCOPE_THREAD) {
		x = gdk_early_of(q->st, scope);
		if (!gdk_state_status(q->st))
			gdk_ring_exclusive(qp, q, &x, pi, handler, src);
		return;
	}
	gdk_red_max64(&q->st->wanted, pi, scope);
	/* wanted, then left: see ring_dev.h */
	gdk_fence_sc(scope);
	gdk_ld64x2((const uint64_t *)(const void *)&q->st->left, &left, &written, scope);
	if (left | written)
		gdk_take_left(qp, q->st, scope, handler, src);
}

/* As gdk_want, for waiters, who know only that others shall publish. */
GDK_SLOW_FN void gdk_want_published(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, int scope)
{
	const struct gdk_bf_source none = { NULL, 0 };
	const struct gdk_sq q = gdk_sq_of(qp);
	uint64_t written;

	if (gdk_ld64(&q.st->rung, scope) >= pi)
		return;
	if (scope == GDK_SCOPE_THREAD && gdk_ld32(&q.st->left, scope) == GDK_LEFT) {
		scope = GDK_SCOPE_GPU; /* what shared use published */
	} else if (scope == GDK_SCOPE_THREAD) {
		written = gdk_ld64(&q.st->written, scope);
		pi = pi < written ? pi : written;
	}
	gdk_want(qp, &q, pi, scope, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, none);
}

/* Sees to it that slots below `published` are rung as they are published, then waits
 * until all below need are complete. */
GDK_SLOW_FN int gdk_wait_slots(struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
			       uint64_t published, uint64_t need, int scope, uint64_t limit_ns)
{
	gdk_want_published(qp, published, scope);
	if (scope == GDK_SCOPE_THREAD)
		gdk_settle(qp, st);
	return gdk_wait_completed(st, gdk_qp_cq(qp), need, scope, limit_ns);
}

/* The QP has ended, or slots from idx on, below `end` (0: anyhow), have to wait until the
 * ring has room. A failed wait ends the QP: its slots would stay a hole. */
GDK_SLOW_FN int gdk_reserve_wait(struct doca_gpu_dev_verbs_qp *qp, struct gdk_qp_state *st,
				 uint64_t idx, uint64_t end, uint32_t depth, int scope)
{
	int err = gdk_state_status(st);

	if (err || end <= depth)
		return err;
	err = gdk_wait_slots(qp, st, idx, end - depth, scope,
			     gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU));
	return err ? gdk_state_end(st, err) : 0;
}

/* n slots from *idx on; true: the QP has ended, or they have to be waited for
 * (gdk_reserve_wait). */
GDK_FN int gdk_reserve_now(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q, uint32_t n,
			   int scope, uint32_t code_opt, uint64_t *idx)
{
	uint64_t done, ended;

	/* Accesses in flight together; status and abort word come with completed. */
	*idx = gdk_add64(gdk_rsvd_index(qp), n, scope);
	gdk_ld64x2(&q->st->completed, &done, &ended, scope);
	return ended ||
	       (!(code_opt & GDK_OPT_SKIP_CHECK) && (uint32_t)(*idx + n - done) > q->depth);
}

/*
 * Reserves n slots; *idx is the first, also when an error is returned: the
 * caller then writes no slot. A thread that has to wait for its slots first has
 * everything before them rung as it is published, else it might wait for ever.
 * A failed wait ends the QP: its slots would stay a hole.
 */
GDK_FN int gdk_reserve(struct doca_gpu_dev_verbs_qp *qp, uint32_t n, gdk_mode_t mode,
		       uint32_t code_opt, uint64_t *idx)
{
	const int scope = gdk_mode_scope(mode), check = !(code_opt & GDK_OPT_SKIP_CHECK);
	const struct gdk_sq q = gdk_sq_of(qp);
	int err = 0;

	if (n != 1 && (n == 0 || n > q.depth)) {
		*idx = gdk_ld64(gdk_rsvd_index(qp), scope);
		return -EINVAL;
	}
	if (gdk_reserve_now(qp, &q, n, scope, code_opt, idx))
		err = gdk_reserve_wait(qp, q.st, *idx, check ? *idx + n : 0, q.depth, scope);
	/* The NIC's reads of the slots' last use, its CQE, completed; then our writes. */
	gdk_fence_load_store(scope);
	return err;
}

/* The token was left behind published slots: who takes it need not know that others
 * are written, so that these are published, too. */
GDK_SLOW_FN void gdk_publish_left(const struct gdk_sq q, uint64_t from, uint64_t to)
{
	gdk_fence_rel(GDK_SCOPE_GPU);
	(void)gdk_publish(&q, from, to, GDK_SCOPE_GPU);
}

/*
 * The token was found at slot `from`, maybe before the fence behind its last holder's record
 * (gdk_ring_held): whose value, once it is read here, comes before what is stored here. It is
 * on its way; only who updates records by hand, or named another handler than we, can have
 * left another.
 */
GDK_FN void gdk_await_record(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			     uint64_t from, int scope, gdk_handler_t handler)
{
	const int h = gdk_handler(qp, handler);
	const struct gdk_db db = gdk_db_of(qp, from);
	uint32_t i;

	if (!GDK_TOKEN_FIRST || scope == GDK_SCOPE_CTA || !gdk_has_record(h) ||
	    gdk_ldc32(&q->st->flags) & GDK_QPF_SYS_SCOPE)
		return;
	for (i = 0; i < GDK_RECORD_LOOKS; i++)
		if (gdk_ld32(db.dbrec, scope) == (uint32_t)db.dbrec_value)
			return;
}

GDK_FN void gdk_mark_ready_in(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			      uint64_t from, uint64_t to, gdk_mode_t mode, gdk_handler_t handler)
{
	const struct gdk_bf_source none = { NULL, 0 };
	const int scope = gdk_mode_scope(mode);
	uint64_t left, written;

	if (mode == GDK_EXCLUSIVE) {
		if (gdk_ld32(&q->st->left, scope) == GDK_LEFT)
			gdk_publish_left(*q, from, to);
		else
			gdk_st64(&q->st->written, to + 1, scope);
		return;
	}
	if (gdk_state_status(q->st))
		return;
	/* WQEs, then ready bits. */
	gdk_fence_rel(scope);
	gdk_ld64x2((const uint64_t *)(const void *)&q->st->left, &left, &written, scope);
	if (!gdk_publish(q, from, to, scope)) {
		/* Exclusive use has the token, or parked it before what it wrote. */
		if (left > GDK_LEFT || written)
			gdk_take_left(qp, q->st, scope, handler, none);
		return;
	}
	gdk_await_record(qp, q, from, scope, handler);
	/* The token was taken from `from`; who wants more is seen, or sees it left. */
	gdk_fence_sc(scope);
	gdk_serve(qp, *q, from, from, 0, scope, handler, none);
}

/* Publishes [from, to], whose WQEs are written; it is rung when somebody wants it. */
GDK_FN void gdk_mark_ready(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
			   gdk_mode_t mode, gdk_handler_t handler)
{
	const struct gdk_sq q = gdk_sq_of(qp);

	gdk_mark_ready_in(qp, &q, from, to, mode, handler);
}

/* Has all slots below pi rung: now, or when the last of them is published. */
GDK_FN void gdk_submit(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, gdk_mode_t mode,
		       gdk_handler_t handler, uint32_t code_opt)
{
	const struct gdk_bf_source none = { NULL, 0 };
	const struct gdk_sq q = gdk_sq_of(qp);

	if (!(code_opt & GDK_OPT_SKIP_DB))
		gdk_want(qp, &q, pi, gdk_mode_scope(mode), handler, none);
}

/* As gdk_submit; wqe is a copy of the last WQE, in shared memory on a GPU. */
GDK_FN void gdk_submit_bf(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, const void *wqe,
			  gdk_mode_t mode, uint32_t code_opt)
{
	const struct gdk_bf_source src = { wqe, pi - 1 };
	const struct gdk_sq q = gdk_sq_of(qp);

	if (!(code_opt & GDK_OPT_SKIP_DB))
		gdk_want(qp, &q, pi, gdk_mode_scope(mode),
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF, src);
}

/*
 * For a warp that copies the WQE itself: true if slot pi - 1 alone is to be rung, by
 * BlueFlame. The caller then holds the token, and all but the register is written.
 */
GDK_FN int gdk_bf_begin(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q, uint64_t pi,
			int scope)
{
	const gdk_handler_t bf = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF;
	const struct gdk_bf_source none = { NULL, 0 };
	const struct gdk_db db = gdk_db_of(qp, pi);
	uint64_t rung;

	if (gdk_ldc32(GDK_QP_AT(qp, nic_handler)) != (uint32_t)bf || gdk_state_status(q->st))
		return 0;
	if (scope == GDK_SCOPE_THREAD) {
		if (gdk_ld64(&q->st->rung, scope) + 1 != pi ||
		    gdk_ld32(&q->st->left, scope) == GDK_LEFT)
			return 0;
		gdk_own_rung(q, gdk_ld32(&q->st->left, scope), gdk_ld64(&q->st->written, scope),
			     pi - 1, pi);
	} else {
		gdk_red_max64(&q->st->wanted, pi, scope);
		/* wanted, then left: see ring_dev.h */
		gdk_fence_sc(scope);
		if (!gdk_rmw_xchg32(&q->st->left, 0, scope))
			return 0;
		gdk_fence_sc(scope);
		rung = gdk_ld64(&q->st->rung, scope);
		if (rung + 1 != pi || gdk_scan_ready(q, rung, scope) != pi) {
			gdk_serve(qp, *q, rung, rung, 0, scope, bf, none);
			return 0;
		}
		/* Publisher: WQE, fence, ready bit. Here: bit, fence, record. */
		gdk_fence_acq(scope);
	}
	if (gdk_debug_refuses(qp, q->st, pi - 1, pi))
		return 0;
	gdk_note_ring(q, pi, scope, bf);
	gdk_fence_rel(gdk_sq_scope(q));
	return gdk_ring_record(&db, pi, gdk_sq_scope(q), bf);
}

/* The register is written: the token goes on. */
GDK_FN void gdk_bf_end(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q, uint64_t pi,
		       int scope)
{
	const struct gdk_bf_source none = { NULL, 0 };

	if (scope != GDK_SCOPE_THREAD && !gdk_park(q, pi, scope))
		gdk_serve(qp, *q, pi, pi, 0, scope, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF,
			  none);
}

/* As gdk_submit_bf, by all lanes of a warp with the same arguments; wqe is anywhere. */
GDK_FN void gdk_submit_bf_warp(const struct doca_gpu_dev_verbs_qp *qp, uint64_t pi, const void *wqe,
			       gdk_mode_t mode, uint32_t code_opt)
{
	const int scope = gdk_mode_scope(mode);
	const struct gdk_sq q = gdk_sq_of(qp);
	struct gdk_bf_copy copy;
	int copies = 0;

	if (code_opt & GDK_OPT_SKIP_DB)
		return;
	gdk_syncwarp();
	gdk_bf_ld64_warp(copy.w, wqe);
	if (gdk_lane() == 0) {
		copies = gdk_bf_begin(qp, &q, pi, scope);
		if (!copies)
			gdk_submit(qp, pi, mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF, 0);
	}
	if (gdk_shfl64((uint64_t)copies, 0)) {
		gdk_bf_store_warp(qp, q.st, &copy, scope);
		if (gdk_lane() == 0)
			gdk_bf_end(qp, &q, pi, scope);
	}
	gdk_syncwarp();
}

/*
 * Rings [from, to] from behind the fence after the WQEs on, and puts the token at to + 1:
 * what its word was before. On a GPU the token goes on its way while the fence that the
 * register needs is under way. Who finds it stores the next record, which comes after ours: in
 * a thread block by a fence of the block's own scope (10 ns); else by `parked`, which follows
 * our fence, or by a look at the record (gdk_await_record). The token follows the register
 * where that takes WQEs by BlueFlame, for our doorbell could land in the next holder's 64 bytes,
 * where records are in host memory, and where a thread may stand still (platform.h). bf: the
 * register takes them.
 */
GDK_FN uint64_t gdk_ring_held(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			      const struct gdk_held *held, uint64_t from, uint64_t to, int bf,
			      int scope, int nic, int h)
{
	const struct gdk_bf_source none = { NULL, 0 };
	uint64_t old;

	if (!GDK_TOKEN_FIRST || (scope != GDK_SCOPE_CTA && nic == GDK_SCOPE_SYS) ||
	    !gdk_has_record(h) || bf) {
		gdk_ring_out(qp, q, &held->db, from, to + 1, scope, nic, h, none);
		/* rung was stored before the first fence: the next holder sees it. */
		return gdk_rmw_or64(held->next, held->token, scope);
	}
	gdk_dbrec_store(&held->db);
	/* Record, then token; there: token, then record. */
	if (scope == GDK_SCOPE_CTA)
		gdk_fence_rel(scope);
	old = gdk_rmw_or64(held->next, held->token, scope);
	/* Record, then register: see gdk_ring_record. */
	gdk_fence_rel(nic);
	gdk_db_store(&held->db);
	return old;
}

/*
 * [from, to], where the token is parked at `from`: nobody else takes it there, so the
 * caller holds it, and rings for these before it looks who has published more. Their
 * ready bits are turned before the fence, so that who has the token next sees them. x: read
 * when the token was seen; few: see gdk_held_few, and nothing goes by BlueFlame; nic: the scope
 * that orders what the NIC reads.
 */
GDK_FN void gdk_post_held(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			  const struct gdk_early *x, const struct gdk_held *held, uint64_t from,
			  uint64_t to, int few, int scope, gdk_handler_t handler, int nic)
{
	const struct gdk_bf_source none = { NULL, 0 };
	const int h = gdk_handler(qp, handler), bf = !few && q->flags & GDK_QPF_BLUEFLAME;
	const int proxy = h == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	uint64_t old;

	if (gdk_debug_refuses(qp, q->st, from, to + 1))
		return;
	/* Its last holder stored rung, fenced and parked it. Here: token, fence, rung. */
	if (bf)
		gdk_fence_acq(scope); /* and the half of the register that is next */
	gdk_publish_held(q, held, from, to, few, scope);
	gdk_st64x2(&q->st->rung, to + 1, x->doorbells + !proxy, GDK_SCOPE_GPU);
	/* WQEs and rung, then record or register. */
	gdk_fence_rel(nic);
	old = gdk_ring_held(qp, q, held, from, to, bf, scope, nic, h);
	if (!GDK_RARE(gdk_word_says(q, to + 1, old))) {
		gdk_parked(q, to + 1, scope);
		return;
	}
	/* Published by now; its publisher saw no token, which we still hold. */
	gdk_red_and64(held->next, ~held->token, scope);
	/* The token, then words: those two laps old look alike. */
	gdk_fence_acq(scope);
	gdk_serve(qp, *q, to + 1, to + 1, 0, scope, handler, none);
}

/* As gdk_post, for callers that have the constants and what was read early. */
GDK_FN void gdk_post_in(const struct doca_gpu_dev_verbs_qp *qp, const struct gdk_sq *q,
			const struct gdk_early *x, uint32_t qpn8_be, uint64_t from, uint64_t to,
			gdk_mode_t mode, gdk_handler_t handler, uint32_t code_opt)
{
	const struct gdk_bf_source none = { NULL, 0 };
	const int odd = q->flags & (GDK_QPF_SYS_SCOPE | GDK_QPF_BLUEFLAME);
	const int scope = gdk_mode_scope(mode), sys = q->flags & GDK_QPF_SYS_SCOPE;
	const int seen = (x->parked == from) & (x->rung == from);
	uint64_t left, written, next;
	struct gdk_held held;

	if (code_opt & GDK_OPT_SKIP_DB) {
		gdk_mark_ready_in(qp, q, from, to, mode, handler);
		return;
	}
	if (mode == GDK_EXCLUSIVE) {
		gdk_ring_exclusive(qp, q, x, to + 1, handler, none);
		return;
	}
	if (!GDK_RARE(!(seen & !odd & gdk_is_few(q, from, to)))) {
		held = gdk_held_few(qp, q, qpn8_be, from, to);
		gdk_post_held(qp, q, x, &held, from, to, 1, scope, handler, GDK_SCOPE_GPU);
		return;
	}
	if (seen) {
		held = gdk_held_at(qp, q, from, to);
		if (!sys)
			gdk_post_held(qp, q, x, &held, from, to, 0, scope, handler, GDK_SCOPE_GPU);
		else
			gdk_post_held(qp, q, x, &held, from, to, 0, scope, handler, GDK_SCOPE_SYS);
		return;
	}
	gdk_red_max64(&q->st->wanted, to + 1, scope);
	/* WQEs, then ready bits; and wanted, then left. */
	gdk_fence_sc(scope);
	/* In flight with the publication: left, and whether anybody came after us. */
	gdk_ld64x2((const uint64_t *)(const void *)&q->st->left, &left, &written, scope);
	next = gdk_ld64(gdk_word(q, to + 1), scope);
	if (!gdk_publish(q, from, to, scope)) {
		if (left | written)
			gdk_take_left(qp, q->st, scope, handler, none);
		return;
	}
	gdk_await_record(qp, q, from, scope, handler);
	if (gdk_word_says(q, to + 1, next)) {
		/* Who parked the token, then we: words two laps old look alike. */
		gdk_fence_acq(scope);
		next = from;
	} else {
		/* The last holder's record, then its token; here the token, then ours. */
		gdk_fence_load_store(scope);
		next = to + 1;
	}
	gdk_serve(qp, *q, from, next, 1, scope, handler, none);
}

/* Publish and submit in one. */
GDK_FN void gdk_post(const struct doca_gpu_dev_verbs_qp *qp, uint64_t from, uint64_t to,
		     gdk_mode_t mode, gdk_handler_t handler, uint32_t code_opt)
{
	const struct gdk_sq q = gdk_sq_of(qp);
	const struct gdk_early x = gdk_early_of(q.st, gdk_mode_scope(mode));

	gdk_fence_load_store(gdk_mode_scope(mode));
	gdk_post_in(qp, &q, &x, gdk_ldc32(GDK_QP_AT(qp, sq_num_shift8_be)), from, to, mode, handler,
		    code_opt);
}

#endif
