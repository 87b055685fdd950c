/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Completion as the device data path sees it: CQEs are folded into the QP's
 * state, which says which slots are complete and whether the QP has ended, and
 * every wait is a wait for that state. Publishing and ringing are qp_dev.h's.
 */
#ifndef GDK_CQ_DEV_H
#define GDK_CQ_DEV_H

#include "../../device/gdk/platform.h"

#define GDK_CQE_OPCODE_ERR DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR
#define GDK_SYNDROME_FLUSH 0x05u

GDK_FN struct gdk_qp_state *gdk_state_of_qp(const struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct gdk_qp_state *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, gdk_state));
}

GDK_FN struct gdk_qp_state *gdk_state_of_cq(const struct doca_gpu_dev_verbs_cq *cq)
{
	return (struct gdk_qp_state *)(uintptr_t)gdk_ldc64(GDK_CQ_AT(cq, gdk_state));
}

GDK_FN struct doca_gpu_dev_verbs_cq *gdk_qp_cq(struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct doca_gpu_dev_verbs_cq *)(uintptr_t)GDK_QP_AT(qp, cq_sq);
}

/* Ends the QP, once: the first status stays. Returns the one that did. */
GDK_FN int gdk_state_end(struct gdk_qp_state *st, int status)
{
	uint32_t old = gdk_rmw_cas32((uint32_t *)&st->status, 0, (uint32_t)status, GDK_SCOPE_GPU);

	return old ? (int)old : status;
}

/* 0, or what ended the QP; an abort by the host becomes its status here. */
GDK_FN int gdk_state_status(struct gdk_qp_state *st)
{
	uint64_t both = gdk_ld64((const uint64_t *)(const void *)&st->status, GDK_SCOPE_GPU);

	if (!both)
		return 0;
	return (uint32_t)both ? (int)(uint32_t)both : gdk_state_end(st, -ECANCELED);
}

GDK_FN int gdk_qp_status(const struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_state_status(gdk_state_of_qp(qp));
}

/* Of a QP that has ended: the WQE that failed; where that is not known (abort,
 * limit), the first that is not complete. */
GDK_FN uint64_t gdk_qp_error_wqe(const struct doca_gpu_dev_verbs_qp *qp)
{
	const struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const uint64_t index = gdk_ld64(&st->error_wqe, GDK_SCOPE_GPU);

	return index != GDK_NO_WQE ? index : gdk_ld64(&st->completed, GDK_SCOPE_GPU);
}

/* wqe_counter, signature and op_own of a CQE: one load, so they belong together. */
struct gdk_cqe_tail {
	uint16_t counter;
	uint8_t opcode, owner;
};

GDK_FN struct gdk_cqe_tail gdk_cqe_read(const struct doca_gpu_dev_verbs_cq *cq, uint64_t index)
{
	const uint64_t base = gdk_ldc64(GDK_CQ_AT(cq, cqe_daddr));
	struct gdk_cqe_tail t;
	uint32_t w = gdk_ld32((const uint32_t *)(uintptr_t)(base + index * 64 + 60), GDK_SCOPE_SYS);

	t.counter = gdk_bswap16((uint16_t)w);
	t.opcode = (uint8_t)(w >> 28);
	t.owner = (uint8_t)(w >> 24 & 1);
	return t;
}

GDK_FN int gdk_cqe_is_error(const struct gdk_cqe_tail *t)
{
	return t->opcode == GDK_CQE_OPCODE_ERR || t->opcode == DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR;
}

/* Is the CQE with this absolute index there, or a later one in its entry? */
GDK_FN int gdk_cqe_arrived(const struct doca_gpu_dev_verbs_cq *cq, uint64_t index,
			   struct gdk_cqe_tail *t)
{
	const uint32_t num = gdk_ldc32(GDK_CQ_AT(cq, cqe_num));

	*t = gdk_cqe_read(cq, index & (num - 1));
	return t->opcode != DOCA_GPUNETIO_IB_MLX5_CQE_INVALID && t->owner == !!(index & num);
}

/*
 * The slot index that a CQE's 16-bit counter stands for: the one among the
 * 65536 below `rung`. rung is stored before the doorbell and read after the
 * CQE, so it is above the index; the callers see to it that the distance is
 * less than 65536. False: rung is not known far enough.
 */
GDK_FN int gdk_counter_extend(uint64_t rung, uint16_t counter, uint64_t *index)
{
	const uint16_t back = (uint16_t)((uint16_t)(rung - 1) - counter);

	*index = rung - 1 - back;
	return rung > back;
}

/* Slots of the completed WQE at index, from its control segment, which stays
 * until `completed` passes index. */
GDK_FN uint32_t gdk_wqe_slots(const struct gdk_qp_state *st, uint64_t index)
{
	uint64_t at;
	uint32_t ds;

	if (!gdk_ld32(&st->long_wqe, GDK_SCOPE_GPU))
		return 1;
	at = gdk_ld64(&st->ring, GDK_SCOPE_GPU) + (index & (gdk_ldc32(&st->depth) - 1)) * 64;
	ds = gdk_bswap32(gdk_ld32((const uint32_t *)(uintptr_t)(at + 4), GDK_SCOPE_GPU)) & 0x3f;
	return ds > 4 ? (ds + 3) / 4 : 1;
}

/* An error CQE for slot index: what is below it is complete, the QP ends. */
GDK_FN int gdk_fold_error(struct gdk_qp_state *st, uint64_t index, int scope)
{
	gdk_max64_rel(&st->completed, index, scope);
	gdk_red_min64(&st->error_wqe, index, GDK_SCOPE_GPU);
	return gdk_state_end(st, -EIO);
}

/* Errors flush what follows them: the first one stands lowest in the CQ. */
GDK_SLOW_FN uint64_t gdk_first_error(struct gdk_qp_state *st,
				     const struct doca_gpu_dev_verbs_cq *cq, uint64_t at,
				     uint64_t index)
{
	const uint64_t rung = gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU);
	uint64_t low = gdk_ld64(&st->cqe_ci, GDK_SCOPE_GPU);
	struct gdk_cqe_tail t;
	uint64_t k;

	if (at > low + gdk_ldc32(GDK_CQ_AT(cq, cqe_num)))
		low = at - gdk_ldc32(GDK_CQ_AT(cq, cqe_num));
	while (at > low) {
		at--;
		if (gdk_cqe_arrived(cq, at, &t) && gdk_cqe_is_error(&t) &&
		    gdk_counter_extend(rung, t.counter, &k) && k < index)
			index = k;
	}
	return index;
}

/*
 * Folds the CQE with absolute index `at`, if it is there: 0 or EBUSY, or the
 * status when it is an error. at is less than cqe_num above the newest CQE, so
 * the owner bit tells.
 *
 * Why the counter and the WQE's length can be trusted: cqe_ci is raised before
 * completed (release), so as long as cqe_ci is seen at or below `at` after both
 * were read, nobody had passed this WQE as complete: its slot is not reused and
 * rung is at most depth beyond it.
 */
GDK_FN int gdk_cq_fold(struct gdk_qp_state *st, const struct doca_gpu_dev_verbs_cq *cq, uint64_t at,
		       int scope)
{
	struct gdk_cqe_tail t;
	uint64_t index;
	uint32_t slots;

	if (!gdk_cqe_arrived(cq, at, &t))
		return EBUSY;
	/* NIC: payload, then CQE. Here: CQE, then payload and state. */
	gdk_fence_acq(GDK_SCOPE_SYS);
	if (!gdk_counter_extend(gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU), t.counter, &index))
		return EBUSY;
	slots = gdk_wqe_slots(st, index);
	gdk_fence_acq(scope);
	if (gdk_ld64(&st->cqe_ci, scope) > at)
		return 0;
	if (gdk_cqe_is_error(&t))
		return gdk_fold_error(st, gdk_first_error(st, cq, at, index), scope);
	gdk_max64_rel(&st->cqe_ci, at + 1, scope);
	gdk_max64_rel(&st->completed, index + slots, scope);
	return 0;
}

/* While every WQE is signalled and one slot long, CQE and slot indices differ
 * by a constant; the slot is known to be rung. */
GDK_FN int gdk_cq_fold_even(struct gdk_qp_state *st, const struct doca_gpu_dev_verbs_cq *cq,
			    uint64_t slot, int scope)
{
	const uint64_t at = slot + gdk_ldc64(GDK_CQ_AT(cq, cqe_rsvd));
	struct gdk_cqe_tail t;

	if (!gdk_cqe_arrived(cq, at, &t))
		return EBUSY;
	gdk_fence_acq(GDK_SCOPE_SYS);
	if (gdk_cqe_is_error(&t))
		return gdk_fold_error(st, gdk_first_error(st, cq, at, slot), scope);
	gdk_max64_rel(&st->cqe_ci, at + 1, scope);
	gdk_max64_rel(&st->completed, slot + 1, scope);
	return 0;
}

/* Is the error in entry 0 but the flush that follows another? The entry may change
 * after its tail was read, but only to the flush of a later WQE. */
GDK_FN int gdk_cqe_is_flush(const struct doca_gpu_dev_verbs_cq *cq)
{
	const uint64_t base = gdk_ldc64(GDK_CQ_AT(cq, cqe_daddr));

	return gdk_ld32((const uint32_t *)(uintptr_t)(base + 52), GDK_SCOPE_SYS) >> 24 ==
	       GDK_SYNDROME_FLUSH;
}

/*
 * A collapsed CQ shows the newest CQE only. As long as `completed` did not move
 * between before the CQE was read and after all else was, the WQE's slot is not
 * reused and rung is at most depth beyond it. A flush hides which WQE failed: it is
 * at or above `completed`.
 */
GDK_FN int gdk_cq_fold_collapsed(struct gdk_qp_state *st, const struct doca_gpu_dev_verbs_cq *cq,
				 int scope)
{
	const uint64_t before = gdk_ld64_acq(&st->completed, scope);
	const struct gdk_cqe_tail t = gdk_cqe_read(cq, 0);
	uint64_t index;
	uint32_t slots;

	if (t.opcode == DOCA_GPUNETIO_IB_MLX5_CQE_INVALID)
		return EBUSY;
	gdk_fence_acq(GDK_SCOPE_SYS);
	if (!gdk_counter_extend(gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU), t.counter, &index))
		return EBUSY;
	slots = gdk_wqe_slots(st, index);
	gdk_fence_acq(scope);
	if (gdk_ld64(&st->completed, scope) != before)
		return 0;
	if (gdk_cqe_is_error(&t))
		return gdk_fold_error(st, gdk_cqe_is_flush(cq) ? before : index, scope);
	if (index + slots <= before)
		return EBUSY;
	gdk_max64_rel(&st->completed, index + slots, scope);
	return 0;
}

/* One look at the CQ that may complete slots below `need`. 0: the state moved,
 * EBUSY: nothing yet, or the status of the QP. */
GDK_FN int gdk_cq_step(struct gdk_qp_state *st, const struct doca_gpu_dev_verbs_cq *cq,
		       uint64_t need, int scope)
{
	uint64_t ci, done, rung;
	int err;

	if (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED)
		return gdk_cq_fold_collapsed(st, cq, scope);
	/* uneven was set before its WQE was published and rung: read it after rung. */
	rung = gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU);
	if (rung < need)
		return EBUSY;
	if (!gdk_ld32(&st->uneven, GDK_SCOPE_GPU)) {
		/* Half of what is in flight at once, so that looks are few. */
		ci = need - 1 + (rung - need) / 2;
		if (ci > need && (err = gdk_cq_fold_even(st, cq, ci, scope)) != EBUSY)
			return err;
		return gdk_cq_fold_even(st, cq, need - 1, scope);
	}
	/* At most one CQE per slot: the wanted one is at or below this guess. */
	ci = gdk_ld64_acq(&st->cqe_ci, scope);
	done = gdk_ld64(&st->completed, scope);
	if (need > done + 1 && need - done - 1 < gdk_ldc32(GDK_CQ_AT(cq, cqe_num)) &&
	    gdk_cq_fold(st, cq, ci + (need - done - 1), scope) == 0)
		return 0;
	return gdk_cq_fold(st, cq, ci, scope);
}

/*
 * Waits: what bounds them is in one place.
 *
 * Where the CQ or the state is in host memory each look is a read over PCIe, and the lanes
 * of a warp take turns with their looks: one that rings, or posts, among thirty that wait
 * gets on as they do. So who waits for such a queue pair pauses between looks, about a
 * sixteenth of the time that it has waited at most, and about as long as a look; but who
 * has to wait for another lap of the ring is not next, and may sleep for longer. Lanes that
 * are in the same turn wait for the longest of their pauses. On an H200, by 16896 threads
 * on one ring of 64 slots in host memory, 50000 operations take 0.9 s instead of 1.3, and 2
 * instead of more than 45 in the debug build, where who rings also reads every WQE.
 */
#define GDK_PAUSE_TURNS	   16u /* looks before a pause is twice as long */
#define GDK_PAUSE_FIRST_NS 32u
#define GDK_PAUSE_NEAR_NS  1024u /* a look over PCIe takes 1200 */
#define GDK_PAUSE_FAR_NS   32768u

struct gdk_wait_timer {
	uint64_t start, limit_ns;
	uint32_t spins;
	uint32_t longest_ns; /* that a pause is asked for; 0: none is made */
};

GDK_FN void gdk_wait_start(struct gdk_wait_timer *w, uint64_t limit_ns)
{
	w->start = 0;
	w->limit_ns = limit_ns;
	w->spins = 0;
	w->longest_ns = 0;
}

GDK_FN uint32_t gdk_wait_pause(const struct gdk_wait_timer *w)
{
	const uint32_t step = w->spins / GDK_PAUSE_TURNS;
	uint32_t ns;

	if (!step || !w->longest_ns)
		return 0;
	ns = step < 16 ? GDK_PAUSE_FIRST_NS << (step - 1) : GDK_PAUSE_FAR_NS;
	return ns < w->longest_ns ? ns : w->longest_ns;
}

/* One idle turn; true when the time is over. */
GDK_FN int gdk_wait_turn(struct gdk_wait_timer *w)
{
	const uint32_t ns = gdk_wait_pause(w);
	uint64_t now;

	if (ns)
		gdk_pause_ns(ns);
	gdk_relax(w->spins);
	if (w->spins++ % 64 && !ns)
		return 0;
	now = gdk_now_ns();
	if (!w->start)
		w->start = now;
	return now - w->start >= w->limit_ns;
}

GDK_FN uint32_t gdk_longest_pause(const struct gdk_qp_state *st)
{
	return gdk_ldc32(&st->flags) & GDK_QPF_HOST_LOOKS ? GDK_PAUSE_NEAR_NS : 0;
}

#define GDK_WAIT_CHECK_NS 1000000u /* first check of a wait */

/* Time of the first check of a wait. limit_ns is 0 if there is no limit; limit_ns - 1
 * is then UINT64_MAX. */
GDK_FN uint64_t gdk_wait_first(uint64_t limit_ns)
{
	return limit_ns - 1 < GDK_WAIT_CHECK_NS ? limit_ns - 1 : GDK_WAIT_CHECK_NS;
}

/*
 * The check of a wait after waited_ns: 0 if it continues up to its limit, otherwise the status
 * that ends it. The host writes the hints (qp/watch.c): it clears GDK_HINT_UNCONNECTED after the
 * firmware has moved the QP to RTS, so a wait that began before continues.
 */
GDK_SLOW_FN int gdk_wait_check(const struct gdk_qp_state *st, uint64_t waited_ns, uint64_t limit_ns)
{
	struct gdk_watch_word *word = (struct gdk_watch_word *)(uintptr_t)gdk_ldc64(&st->watch);
	const uint32_t hints = word ? gdk_ld32(&word->hints, GDK_SCOPE_SYS) : 0;

	if (hints & GDK_HINT_UNCONNECTED)
		return -ENOTCONN;
	if (waited_ns < limit_ns - 1)
		return 0;
	return hints & GDK_HINT_UNSERVED ? -EHOSTDOWN : -ETIMEDOUT;
}

/* Ends the QP because a wait ended with err, and returns the status that ended it. Reports
 * -ENOTCONN to the host. */
GDK_SLOW_FN int gdk_wait_end(struct gdk_qp_state *st, int err)
{
	struct gdk_watch_word *word = (struct gdk_watch_word *)(uintptr_t)gdk_ldc64(&st->watch);
	uint32_t old = gdk_rmw_cas32((uint32_t *)&st->status, 0, (uint32_t)err, GDK_SCOPE_GPU);

	if (old)
		return (int)old;
	if (err == -ENOTCONN && word)
		gdk_st32(&word->refused, 1, GDK_SCOPE_SYS);
	return err;
}

/* Until all slots below need are complete. */
GDK_SLOW_FN int gdk_wait_completed(struct gdk_qp_state *st, const struct doca_gpu_dev_verbs_cq *cq,
				   uint64_t need, int scope, uint64_t limit_ns)
{
	const uint32_t near = gdk_longest_pause(st), depth = gdk_ldc32(&st->depth);
	struct gdk_wait_timer w;
	uint64_t done, ended;
	int err;

	gdk_wait_start(&w, gdk_wait_first(limit_ns));
	for (;;) {
		/* At GPU scope: the status may come from anywhere. */
		gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
		if (ended)
			return gdk_state_status(st);
		if (done >= need)
			break;
		err = gdk_cq_step(st, cq, need, scope);
		if (err < 0)
			return err;
		w.longest_ns = near && need - done > depth ? GDK_PAUSE_FAR_NS : near;
		if (err != EBUSY || !gdk_wait_turn(&w))
			continue;
		err = gdk_wait_check(st, w.limit_ns, limit_ns);
		if (err)
			return err;
		w.limit_ns = limit_ns - 1;
	}
	/* Another thread may have seen the CQE: its release of completed, then this. */
	gdk_fence_acq(GDK_SCOPE_SYS);
	return 0;
}

/* Is the WQE of this ticket complete? 0, EBUSY or the QP's status. */
GDK_FN int gdk_poll_ticket(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
			   enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const int scope = gdk_mode_scope(mode);
	int err = gdk_state_status(st);

	if (!err && gdk_ld64(&st->completed, scope) <= ticket)
		err = gdk_cq_step(st, gdk_qp_cq(qp), ticket + 1, scope);
	if (err)
		return err;
	if (gdk_ld64(&st->completed, scope) <= ticket)
		return EBUSY;
	gdk_fence_acq(GDK_SCOPE_SYS);
	return 0;
}

/* One look at CQE `index`, counted from export or reset: 0, EBUSY or a status.
 * On a collapsed CQ the index is that of a WQE. */
GDK_FN int gdk_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index,
			      enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct gdk_qp_state *st = gdk_state_of_cq(cq);
	const int scope = gdk_mode_scope(mode);
	const uint64_t at = index + gdk_ldc64(GDK_CQ_AT(cq, cqe_rsvd));
	uint64_t ci, rung;
	int err = gdk_state_status(st);

	if (err)
		return err;
	if (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED) {
		if (gdk_ld64(&st->completed, scope) <= index)
			err = gdk_cq_fold_collapsed(st, cq, scope);
		if (!err && gdk_ld64(&st->completed, scope) <= index)
			err = EBUSY;
	} else {
		ci = gdk_ld64_acq(&st->cqe_ci, scope);
		rung = gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU);
		if (at >= ci && !gdk_ld32(&st->uneven, GDK_SCOPE_GPU))
			err = index < rung ? gdk_cq_fold_even(st, cq, index, scope) : EBUSY;
		else if (at >= ci + gdk_ldc32(GDK_CQ_AT(cq, cqe_num)))
			err = EBUSY;
		else if (at >= ci)
			err = gdk_cq_fold(st, cq, at, scope);
	}
	if (!err)
		gdk_fence_acq(GDK_SCOPE_SYS);
	return err;
}

GDK_FN int gdk_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index,
			  enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct gdk_qp_state *st = gdk_state_of_cq(cq);
	const uint64_t limit_ns = gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU);
	struct gdk_wait_timer w;
	int err;

	gdk_wait_start(&w, gdk_wait_first(limit_ns));
	w.longest_ns = gdk_longest_pause(st);
	while ((err = gdk_poll_one_cq_at(cq, index, mode)) == EBUSY) {
		if (!gdk_wait_turn(&w))
			continue;
		err = gdk_wait_check(st, w.limit_ns, limit_ns);
		if (err)
			return gdk_wait_end(st, err);
		w.limit_ns = limit_ns - 1;
	}
	return err;
}

/* The next count CQEs after those folded so far. */
GDK_FN int gdk_poll_cq(struct doca_gpu_dev_verbs_cq *cq, uint32_t count,
		       enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct gdk_qp_state *st = gdk_state_of_cq(cq);
	uint64_t done;

	if (!count)
		return 0;
	if (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED)
		done = gdk_ld64(&st->completed, gdk_mode_scope(mode));
	else
		done = gdk_ld64(&st->cqe_ci, gdk_mode_scope(mode)) -
		       gdk_ldc64(GDK_CQ_AT(cq, cqe_rsvd));
	return gdk_poll_cq_at(cq, done + count - 1, mode);
}

GDK_FN int gdk_poll_collapsed_at(struct doca_gpu_dev_verbs_qp *qp, uint64_t index,
				 enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	int err = gdk_wait_completed(st, gdk_qp_cq(qp), index + 1, gdk_mode_scope(mode),
				     gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU));

	return err ? gdk_wait_end(st, err) : 0;
}

/*
 * Tells the NIC that n more CQEs were consumed, and the QP's state, for users who
 * look at CQEs by themselves. Returns the new consumer index. Not for a CQ whose
 * overrun is ignored, which has no use for a record: overrun leaves it alone.
 */
GDK_FN uint32_t gdk_cq_consume(struct doca_gpu_dev_verbs_cq *cq, uint32_t n, int overrun)
{
	uint64_t *told = (uint64_t *)(uintptr_t)GDK_CQ_AT(cq, cqe_ci);
	uint32_t *dbrec = (uint32_t *)(uintptr_t)gdk_ldc64(GDK_CQ_AT(cq, dbrec));
	uint64_t i = gdk_ld64(told, GDK_SCOPE_GPU), end = i + n;
	uint32_t ci;

	for (; i < end; i++)
		(void)gdk_poll_one_cq_at(cq, i, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU);
	ci = (uint32_t)(end + gdk_ldc64(GDK_CQ_AT(cq, cqe_rsvd))) & DOCA_GPUNETIO_VERBS_CQE_CI_MASK;
	/* The CQEs were read; then the NIC may write over them. */
	if (!overrun)
		gdk_st32_rel(dbrec, gdk_bswap32(ci), GDK_SCOPE_SYS);
	gdk_st64(told, end, GDK_SCOPE_GPU);
	return ci;
}

#endif
