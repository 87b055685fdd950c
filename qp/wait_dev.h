/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Waiting and polling. All slots below `completed` are complete. A thread that finds a CQE raises
 * it; other threads may find it raised without having loaded the CQE.
 *
 * Order: the NIC writes the payload before the CQE. The thread that finds the CQE executes an
 * acquire fence of system scope, then a release fence, and then raises completed. A thread that
 * finds completed raised executes an acquire fence before it loads payload.
 *
 * While every WQE generates a CQE and has one slot (`uneven` is 0), CQE and slot indices differ by
 * a constant, and one load of one CQE answers whether a slot is complete: gdk_own_quick() and
 * gdk_wait_quick(), which are inlined into the caller's kernel. All the rest, for every kind of
 * wait and poll, is in the functions gdk_own_slow() and gdk_shared_slow().
 */
#ifndef GDK_WAIT_DEV_H
#define GDK_WAIT_DEV_H

#include "../../device/gdk/cq_dev.h"
#include "../../device/gdk/own_dev.h"
#include "../../device/gdk/token_dev.h"
#include "../../device/gdk/wait_time_dev.h"

typedef enum doca_gpu_dev_verbs_resource_sharing_mode gdk_mode_t;
#define GDK_EXCLUSIVE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE

/* Options of gdk_own_slow() and gdk_shared_slow(), with those of gdk_own_ring(). */
#define GDK_WAIT       0x100u  /* wait until slots are complete */
#define GDK_WAIT_ONCE  0x200u  /* poll once: EBUSY if not complete */
#define GDK_WAIT_CQES  0x400u  /* count CQEs, not slots */
#define GDK_WAIT_KEEP  0x800u  /* a wait that fails does not end the QP */
#define GDK_WAIT_ROOM  0x1000u /* for room in the ring: first polls a later slot */
#define GDK_WAIT_QUICK 0x2000u /* shared use: begin with gdk_wait_quick() */
#define GDK_POLLED     0x4000u /* gdk_own_slow() only: it has repeated the doorbell for a poll */
#define GDK_SERVE      0x8000u /* gdk_shared_slow() only */
#define GDK_WANT       0x4000u /* gdk_shared_slow() only: raise `wanted` */

#define GDK_QUICK_POLLS 64 /* polls of gdk_wait_quick() and gdk_own_quick() */

/* ---- completion ---- */

/* Polls for the CQE with absolute index `at`. collapsed: any CQE in entry 0. Returns whether it has
 * arrived. */
GDK_FN int gdk_cqe_poll(const struct gdk_qp_state *st, uint64_t at, int collapsed,
			struct gdk_cqe_tail *t)
{
	const int owned = gdk_cqe_arrived(st, at, t);

	return owned || (collapsed && t->opcode != DOCA_GPUNETIO_IB_MLX5_CQE_INVALID);
}

/* An error flushes all WQEs that follow. If this CQE is a flush, gdk_qp_error_wqe() finds the first
 * error. */
GDK_FN void gdk_note_error(struct gdk_qp_state *st, uint64_t index, uint64_t at)
{
	gdk_red_min64(&st->error_wqe, index, GDK_SCOPE_GPU);
	gdk_red_min64(&st->error_ci, at, GDK_SCOPE_GPU);
}

/* Shared use: stores that all slots below `done` are complete, and all CQEs below the absolute
 * index `ci` are processed. Their order does not matter, see gdk_fold(). */
GDK_FN void gdk_raise_completed(struct gdk_qp_state *st, uint64_t ci, uint64_t done)
{
	gdk_fence_rel(GDK_SCOPE_GPU); /* the payload, then completed */
	gdk_red_max64(&st->cqe_ci, ci, GDK_SCOPE_GPU);
	gdk_red_max64(&st->completed, done, GDK_SCOPE_GPU);
}

/*
 * Shared use: polls for the completion of a slot in even use. Returns 1 if it is complete, 0 if it
 * is not, or if the answer needs more work. The slot must have been rung, see gdk_cqe_arrived().
 * rung is loaded with acquire order, because `uneven` is stored before its WQE is published and
 * rung.
 */
GDK_FN int gdk_wait_quick(struct gdk_qp_state *st, uint64_t slot, uint32_t polls)
{
	const uint32_t flags = gdk_ldc32(&st->flags), num = gdk_ldc32(&st->cq_num);
	const uint64_t at = slot + gdk_ldc64(&st->cq_rsvd);
	const uint32_t *tail = gdk_cqe_word(st, at & (num - 1));
	const uint32_t owner = at & num ? 1 : 0;
	uint64_t done, ended;
	uint32_t uneven, word;

	if (gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU) <= slot || flags & GDK_QPF_COLLAPSED)
		return 0;
	uneven = gdk_ld32(&st->uneven, GDK_SCOPE_GPU);
	GDK_LOOP
	do {
		/* These loads are in flight together. */
		gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
		word = gdk_ld32(tail, GDK_SCOPE_SYS);
		if (ended | uneven)
			return 0;
		if (done > slot) {
			/* Another thread found the CQE. Acquire: pairs with its release in
			 * gdk_raise_completed(). */
			gdk_fence_acq(GDK_SCOPE_GPU);
			return 1;
		}
		if (word >> 28 < GDK_CQE_OPCODE_ERR && (word >> 24 & 1) == owner) {
			gdk_fence_acq(GDK_SCOPE_SYS); /* the CQE, then the payload */
			gdk_raise_completed(st, at + 1, slot + 1);
			return 1;
		}
	} while (--polls);
	return 0;
}

/*
 * Polls the CQE with absolute index `at`. The counter of a CQE tells which WQE is complete. As
 * long as completed is still `done`, its value before the CQE was loaded, after all else is loaded,
 * the slot of the WQE is not reused and rung is at most one lap above it, so the counter and the
 * length of the WQE can be trusted. Returns 0: completed was raised or has changed; EBUSY: no CQE;
 * -EIO: an error, which is stored.
 */
GDK_FN int gdk_fold(struct gdk_qp_state *st, uint64_t done, uint64_t at)
{
	const int collapsed = (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED) != 0;
	struct gdk_cqe_tail t;
	uint64_t index, end;

	if (!gdk_cqe_poll(st, at, collapsed, &t))
		return EBUSY;
	gdk_fence_acq(GDK_SCOPE_SYS);
	if (!gdk_counter_extend(gdk_ld64(&st->rung, GDK_SCOPE_GPU), t.counter, &index))
		return EBUSY;
	end = index + gdk_wqe_slots(st, index);
	gdk_fence_acq(GDK_SCOPE_GPU);
	if (gdk_ld64(&st->completed, GDK_SCOPE_GPU) != done)
		return 0;
	if (gdk_cqe_is_error(&t)) {
		gdk_note_error(st, index, at);
		return -EIO;
	}
	if (collapsed && end <= done)
		return EBUSY;
	gdk_raise_completed(st, collapsed ? 0 : at + 1, end);
	return 0;
}

/* ---- the loop ---- */

/*
 * What gdk_wait_quick() does not answer. done: completed, loaded by the caller. turn: `look` of
 * the timer. Returns 0: poll again; EBUSY: not complete; -EIO: an error, which is stored;
 * GDK_REACHED: complete.
 * A thread whose slots are not rung does not poll CQEs. Otherwise every thread that waits would
 * find the same CQE and raise completed for it.
 */
#define GDK_REACHED (-1000)
GDK_FN int gdk_look(struct gdk_qp_state *st, uint64_t need, uint64_t done, uint32_t turn,
		    uint32_t how)
{
	const int collapsed = (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED) != 0;
	const uint64_t rsvd = gdk_ldc64(&st->cq_rsvd);
	/* Acquire: rung, then uneven (wqe.h); and completed, then the CQE (gdk_fold()). */
	const uint64_t rung = gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU);
	uint64_t at = need - 1 + rsvd, reached = done, ahead = (rung - need) / 2;

	if (rung < need)
		return EBUSY;
	if (collapsed || gdk_ld32(&st->uneven, GDK_SCOPE_GPU)) {
		/* The next CQE. A collapsed CQ has one entry.
		 * Acquire: the CQEs below ci, then those of the next lap in the same entries. */
		at = gdk_ld64_acq(&st->cqe_ci, GDK_SCOPE_GPU);
		if (how & GDK_WAIT_CQES && !collapsed)
			reached = at - rsvd;
		if (reached >= need)
			return GDK_REACHED;
		/* There is at most one CQE for each slot, so the wanted one is at this guess, or
		 * between the next CQE and it. Turns poll either alternately. */
		ahead = need - 1 - reached;
		if (ahead >= gdk_ldc32(&st->cq_num) || !(turn & 2))
			ahead = 0;
	}
	if (turn & 1) /* polls no CQE */
		return reached < need ? EBUSY : GDK_REACHED;
	/* In even use: the slot in the middle of those that are rung and not below need, so that
	 * few polls complete many slots. */
	if (!(how & GDK_WAIT_ONCE))
		at += ahead;
	return gdk_fold(st, done, at);
}

/*
 * Exclusive use: polls for the completion of a slot in even use. Returns 1 if it is complete, 0 if
 * it is not, or if the answer needs more work: gdk_own_slow(). It is inlined into the caller's
 * kernel.
 */
GDK_FN int gdk_own_quick(struct gdk_qp_state *st, uint64_t slot)
{
	const int own = GDK_SCOPE_THREAD;
	const uint32_t flags = gdk_ldc32(&st->flags), num = gdk_ldc32(&st->cq_num);
	const uint32_t depth = gdk_ldc32(&st->depth);
	const uint64_t at = slot + gdk_ldc64(&st->cq_rsvd);
	const uint32_t *tail = gdk_cqe_word(st, at & (num - 1));
	const uint32_t owner = at & num ? 1 : 0;
	uint64_t rung, doorbells, done, ended, plain_at;
	uint32_t uneven, word, polls = GDK_QUICK_POLLS;
	int slow_path;

	/* One branch, so that all these loads are in flight together. */
	gdk_ld64x2(&st->completed, &done, &ended, own);
	gdk_ld64x2(&st->rung, &rung, &doorbells, own);
	uneven = gdk_ld32(&st->uneven, own) | (flags & GDK_QPF_COLLAPSED);
	plain_at = gdk_ld64(&st->plain_at, own);
	slow_path = (ended != 0) | (uneven != 0) | (rung <= slot);
	if (GDK_RARE(slow_path | (done > slot)))
		return !slow_path;
	GDK_LOOP
	do {
		word = gdk_ld32(tail, GDK_SCOPE_SYS);
		if (word >> 28 < GDK_CQE_OPCODE_ERR && (word >> 24 & 1) == owner) {
			gdk_fence_acq(GDK_SCOPE_SYS); /* the CQE, then the payload */
			gdk_st64(&st->cqe_ci, at + 1, own);
			gdk_st64(&st->completed, slot + 1, own);
			gdk_plain_raise(plain_at, slot + 1, depth);
			return 1;
		}
	} while (--polls);
	return 0;
}

/*
 * Exclusive use, all that is not plain: rings slots below `to` (gdk_own_ring()); and with GDK_WAIT
 * waits until the slots below to - behind are complete (GDK_WAIT_CQES: as many CQEs), or polls
 * once. Returns 0, EBUSY (GDK_WAIT_ONCE only), the status that ended the QP, or why the wait ended.
 * Unless GDK_WAIT_KEEP is set, a wait that fails ends the QP. The state belongs to this thread, so
 * no access must be ordered but those of the NIC and the host. Values are loaded again in each
 * turn, rather than kept in registers, because the registers of this function are added to those of
 * every kernel that posts.
 */
GDK_SLOW_FN int gdk_own_slow(struct gdk_qp_state *st, uint64_t to, uint32_t behind,
			     uint64_t limit_ns, uint32_t how)
{
	const uint32_t collapsed = gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED;
	struct gdk_wait_timer w = { 0, GDK_REPEAT_NS, 0, 0 };
	uint64_t rung, done, ended, at, end, index;
	struct gdk_cqe_tail t;
	uint64_t waited;
	uint32_t uneven;
	int err;

	GDK_LOOP
	for (;;) {
		/* GPU scope: the host stores the status. */
		gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
		rung = gdk_ld64(&st->rung, GDK_SCOPE_THREAD);
		err = -ECANCELED; /* gdk_wait_end() returns an earlier status */
		if (ended)
			break;
		if (how & (GDK_OWN_TAKE | GDK_RING_AGAIN) || (how & GDK_RING && rung < to)) {
			rung = gdk_own_ring(st, rung, to, how);
			how &= ~(GDK_OWN_TAKE | GDK_RING_AGAIN);
			/* More than one doorbell, or refused (debug_dev.h): the QP has ended. */
			if (how & GDK_RING_ALL && rung < to)
				continue;
		}
		if (!(how & GDK_WAIT))
			return 0;
		/* The compiler then computes to - behind again, and keeps no register for it. */
		GDK_COMPUTED32(behind);
		end = to - behind;
		at = end - 1 + gdk_ldc64(&st->cq_rsvd);
		uneven = gdk_ld32(&st->uneven, GDK_SCOPE_THREAD) | collapsed;
		if (uneven) {
			at = gdk_ld64(&st->cqe_ci, GDK_SCOPE_THREAD);
			if (how & GDK_WAIT_CQES && !collapsed)
				done = at - gdk_ldc64(&st->cq_rsvd);
		} else if (how & GDK_WAIT_ROOM) {
			/* The first poll in a full ring is for the middle of the rung slots, so
			 * that few polls complete many slots. */
			end += (rung - end) / 2;
			at = end - 1 + gdk_ldc64(&st->cq_rsvd);
			how ^= GDK_WAIT_ROOM;
		}
		if (done >= to - behind)
			return 0;
		index = end - 1;
		if ((uneven || rung > index) && gdk_cqe_poll(st, at, collapsed != 0, &t) &&
		    (!uneven || gdk_counter_extend(rung, t.counter, &index))) {
			gdk_fence_acq(GDK_SCOPE_SYS); /* the CQE, then the payload */
			if (gdk_cqe_is_error(&t)) {
				gdk_note_error(st, index, at);
				err = -EIO;
				break;
			}
			end = index + (uneven ? gdk_wqe_slots(st, index) : 1);
			done = gdk_ld64(&st->completed, GDK_SCOPE_THREAD);
			/* Another lane that waits may have raised completed, but not cqe_ci. */
			if (end > done || !collapsed) {
				gdk_st64(&st->cqe_ci, at + 1, GDK_SCOPE_THREAD);
				done = end > done ? end : done;
				gdk_st64(&st->completed, done, GDK_SCOPE_THREAD);
				gdk_plain_raise(gdk_ld64(&st->plain_at, GDK_SCOPE_THREAD), done,
						gdk_ldc32(&st->depth));
				if (!uneven)
					return 0;
				continue;
			}
		}
		if (how & GDK_WAIT_ONCE) {
			if (how & GDK_POLLED || !gdk_poll_repeats(st, rung))
				return EBUSY;
			how |= GDK_RING_AGAIN | GDK_POLLED;
			continue;
		}
		waited = gdk_wait_turn(st, &w, &limit_ns, 0);
		if (!waited)
			continue;
		how |= GDK_RING_AGAIN;
		err = gdk_wait_check(st, waited, limit_ns);
		if (err && how & GDK_WAIT_KEEP)
			return err;
		if (err)
			break;
	}
	return gdk_wait_end(st, err);
}

/* Shared use: may slots below `to` be rung only if the caller rings? Returns where it then finds
 * the token. want: raise `wanted`, so that a thread rings them once they are published. */
GDK_FN uint64_t gdk_shared_want(struct gdk_qp_state *st, uint64_t to, int want)
{
	if (gdk_ld64(&st->rung, GDK_SCOPE_GPU) >= to)
		return GDK_TOKEN_ELSEWHERE;
	if (want) {
		gdk_red_max64(&st->wanted, to, GDK_SCOPE_GPU);
		/* Orders wanted before left. Pairs with the fence in gdk_offer(). */
		gdk_fence_sc(GDK_SCOPE_GPU);
	}
	return gdk_ld32(&st->left, GDK_SCOPE_GPU) ? GDK_TOKEN_LEFT : GDK_TOKEN_ELSEWHERE;
}

/*
 * Shared use, all that is not plain. GDK_SERVE: serves; `to` is the slot where the caller found the
 * token, or GDK_TOKEN_LEFT. GDK_RING: slots below `to` shall be rung as soon as they are published.
 * GDK_WAIT and results: as gdk_own_slow(). A thread that waits for slots that are not rung takes
 * the token whenever it is left: otherwise the holder would ring alone while all others wait.
 */
GDK_SLOW_FN int gdk_shared_slow(struct gdk_qp_state *st, uint64_t to, uint32_t behind,
				uint64_t limit_ns, uint32_t how)
{
	uint64_t token = how & GDK_SERVE ? to : GDK_TOKEN_ELSEWHERE;
	struct gdk_wait_timer w = { 0, GDK_REPEAT_NS, 0, 0 };
	uint64_t done, ended, waited;
	int err, host_looks;

	GDK_LOOP
	for (;;) {
		if (token != GDK_TOKEN_ELSEWHERE) {
			gdk_serve(st, token);
			/* The limit counts from here, to save registers. A thread does not serve
			 * for ever: without completions the ring becomes full. */
			w.start = 0;
			w.next = GDK_REPEAT_NS;
			w.turns = 0;
			w.look = 0;
		}
		GDK_COMPUTED32(behind); /* as in gdk_own_slow() */
		host_looks = (gdk_ldc32(&st->flags) & GDK_QPF_HOST_LOOKS) != 0;
		if (how & GDK_WAIT_QUICK && !(w.look & 1) &&
		    gdk_wait_quick(st, to - behind - 1,
				   how & GDK_WAIT_ONCE || host_looks ? 1 : GDK_QUICK_POLLS))
			return 0;
		/* GPU scope: any thread, or the host, may store the status. */
		gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
		/* Loads the status rather than exchanging it: thousands of threads come here. */
		if ((uint32_t)ended)
			return (int)(uint32_t)ended;
		err = -ECANCELED;
		if (ended)
			break;
		token = GDK_TOKEN_ELSEWHERE;
		if (how & GDK_RING) {
			token = gdk_shared_want(st, to, how & GDK_WANT);
			how &= ~GDK_WANT;
			if (token != GDK_TOKEN_ELSEWHERE)
				continue;
		}
		if (!(how & GDK_WAIT))
			return 0;
		err = gdk_look(st, to - behind, done, w.look, how);
		if (err == GDK_REACHED) {
			gdk_fence_acq(GDK_SCOPE_SYS); /* completed, then the payload */
			return 0;
		}
		if (err < 0)
			break;
		/* The first turn of a wait for room polled the middle of the rung slots, so that
		 * one CQE frees many. */
		how = (how & ~GDK_WAIT_ROOM) | GDK_WAIT_QUICK;
		if (err == 0)
			continue;
		if (how & GDK_WAIT_ONCE)
			return EBUSY;
		waited = gdk_wait_turn(st, &w, &limit_ns, host_looks ? to - behind : 0);
		if (!waited)
			continue;
		err = gdk_wait_check(st, waited, limit_ns);
		if (err && how & GDK_WAIT_KEEP)
			return err;
		if (err)
			break;
	}
	return gdk_wait_end(st, err);
}

/*
 * For a QP that has ended: the index of the WQE that failed. If that is not known (abort, time
 * limit, a flush in a collapsed CQ), the index of the first WQE that is not complete. The error
 * CQEs are those from the first failed WQE on.
 */
GDK_FN uint64_t gdk_state_error_wqe(const struct gdk_qp_state *st)
{
	const uint64_t rung = gdk_ld64(&st->rung, GDK_SCOPE_GPU);
	uint64_t index = gdk_ld64(&st->error_wqe, GDK_SCOPE_GPU);
	uint64_t at = gdk_ld64(&st->error_ci, GDK_SCOPE_GPU);
	struct gdk_cqe_tail t;

	if (index == GDK_NO_WQE ||
	    (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED && gdk_cqe_is_flush(st)))
		return gdk_ld64(&st->completed, GDK_SCOPE_GPU);
	if (at == GDK_NO_WQE || gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED)
		return index;
	while (at > gdk_ldc64(&st->cq_rsvd) && gdk_cqe_arrived(st, --at, &t) &&
	       gdk_cqe_is_error(&t))
		(void)gdk_counter_extend(rung, t.counter, &index);
	return index;
}

GDK_FN uint64_t gdk_qp_error_wqe(const struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_state_error_wqe(gdk_state_of_qp(qp));
}

/* ---- waits and polls of callers ---- */

GDK_FN int gdk_slow(struct gdk_qp_state *st, uint64_t to, uint64_t limit_ns, uint32_t how,
		    gdk_mode_t mode)
{
	if (mode == GDK_EXCLUSIVE)
		return gdk_own_slow(st, to, 0, limit_ns, how);
	if (how & GDK_RING)
		how |= GDK_WANT;
	if (how & GDK_WAIT)
		how |= GDK_WAIT_QUICK;
	return gdk_shared_slow(st, to, 0, limit_ns, how);
}

/*
 * Waits until the WQE of the ticket is complete. A WQE that was not rung yet is rung first. Returns
 * 0, the status that ended the QP, or the reason why the wait ended: -ETIMEDOUT or -EHOSTDOWN after
 * limit_ns (0: no limit), or -ENOTCONN. The end of the wait does not end the QP.
 */
GDK_FN int gdk_wait_for(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
			gdk_mode_t mode, uint64_t limit_ns)
{
	if (limit_ns == GDK_QP_LIMIT)
		limit_ns = 0;
	return gdk_slow(gdk_state_of_qp(qp), ticket + 1, limit_ns,
			GDK_RING | GDK_WAIT | GDK_WAIT_KEEP, mode);
}

/* As gdk_wait_for(), with the QP's own limit. A wait that fails ends the QP. */
GDK_FN int gdk_wait(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
		    gdk_mode_t mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	if (mode == GDK_EXCLUSIVE && gdk_own_quick(st, ticket))
		return 0;
	return gdk_slow(st, ticket + 1, GDK_QP_LIMIT, GDK_RING | GDK_WAIT, mode);
}

/* Polls once for the WQE of the ticket. Returns 0, EBUSY, or the status that ended the QP. */
GDK_FN int gdk_poll_ticket(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
			   gdk_mode_t mode)
{
	return gdk_slow(gdk_state_of_qp(qp), ticket + 1, 0, GDK_WAIT | GDK_WAIT_ONCE, mode);
}

/* After a poll that found CQE `index`: raises cqe_ci of the CQ, which programs read to learn the
 * next index. ci: its value before, for exclusive use, loaded before the poll to save time. */
GDK_FN void gdk_cq_polled(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, uint64_t ci,
			  gdk_mode_t mode)
{
	uint64_t *at = (uint64_t *)(uintptr_t)GDK_CQ_AT(cq, cqe_ci);

	if (mode != GDK_EXCLUSIVE)
		gdk_red_max64(at, index + 1, gdk_mode_scope(mode));
	else if (ci <= index)
		gdk_st64(at, index + 1, GDK_SCOPE_THREAD);
}

/* cqe_ci of the CQ, for gdk_cq_polled(). */
GDK_FN uint64_t gdk_cq_ci(const struct doca_gpu_dev_verbs_cq *cq, gdk_mode_t mode)
{
	if (mode != GDK_EXCLUSIVE)
		return 0;
	return gdk_ld64((const uint64_t *)(uintptr_t)GDK_CQ_AT(cq, cqe_ci), GDK_SCOPE_THREAD);
}

/* Polls once for CQE `index`, counted from export or reset. On a collapsed CQ the index is that of
 * a WQE. Returns 0, EBUSY, or the status that ended the QP. */
GDK_FN int gdk_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, gdk_mode_t mode)
{
	const uint64_t ci = gdk_cq_ci(cq, mode);
	int err = gdk_slow(gdk_state_of_cq(cq), index + 1, 0,
			   GDK_WAIT | GDK_WAIT_ONCE | GDK_WAIT_CQES, mode);

	if (!err)
		gdk_cq_polled(cq, index, ci, mode);
	return err;
}

/* As gdk_poll_one_cq_at(), but waits. A wait that fails ends the QP. */
GDK_FN int gdk_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, gdk_mode_t mode)
{
	struct gdk_qp_state *st = gdk_state_of_cq(cq);
	const uint64_t ci = gdk_cq_ci(cq, mode);
	int err = 0;

	if (mode != GDK_EXCLUSIVE || !gdk_own_quick(st, index))
		err = gdk_slow(st, index + 1, GDK_QP_LIMIT, GDK_WAIT | GDK_WAIT_CQES, mode);
	if (!err)
		gdk_cq_polled(cq, index, ci, mode);
	return err;
}

/* Waits for the next count CQEs after those processed so far. */
GDK_FN int gdk_poll_cq(struct doca_gpu_dev_verbs_cq *cq, uint32_t count, gdk_mode_t mode)
{
	struct gdk_qp_state *st = gdk_state_of_cq(cq);
	uint64_t done;

	if (!count)
		return 0;
	if (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED)
		done = gdk_ld64(&st->completed, gdk_mode_scope(mode));
	else
		done = gdk_ld64(&st->cqe_ci, gdk_mode_scope(mode)) - gdk_ldc64(&st->cq_rsvd);
	return gdk_poll_cq_at(cq, done + count - 1, mode);
}

GDK_FN int gdk_poll_collapsed_at(struct doca_gpu_dev_verbs_qp *qp, uint64_t index, gdk_mode_t mode)
{
	struct doca_gpu_dev_verbs_cq *cq = gdk_qp_cq(qp);
	const uint64_t ci = gdk_cq_ci(cq, mode);
	int err = gdk_slow(gdk_state_of_qp(qp), index + 1, GDK_QP_LIMIT, GDK_WAIT, mode);

	if (!err)
		gdk_cq_polled(cq, index, ci, mode);
	return err;
}

/*
 * Reports to the NIC, and to the QP's state, that the caller has consumed n more CQEs, for callers
 * that read CQEs themselves. Returns the new consumer index. With overrun, the CQ ignores overruns
 * and has no use for a DBREC, which is then not stored.
 */
GDK_FN uint32_t gdk_cq_consume(struct doca_gpu_dev_verbs_cq *cq, uint32_t n, int overrun)
{
	uint64_t *told = &gdk_state_of_cq(cq)->cqes_told;
	uint32_t *dbrec = (uint32_t *)(uintptr_t)gdk_ldc64(GDK_CQ_AT(cq, dbrec));
	uint64_t i = gdk_ld64(told, GDK_SCOPE_GPU), end = i + n;
	uint32_t ci;

	GDK_LOOP
	for (; i < end; i++)
		(void)gdk_poll_one_cq_at(cq, i, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU);
	ci = (uint32_t)(end + gdk_ldc64(GDK_CQ_AT(cq, cqe_rsvd))) & DOCA_GPUNETIO_VERBS_CQE_CI_MASK;
	/* Release: the CQEs were read before the NIC may overwrite them. */
	if (!overrun)
		gdk_st32_rel(dbrec, gdk_bswap32(ci), GDK_SCOPE_SYS);
	gdk_st64(told, end, GDK_SCOPE_GPU);
	gdk_red_max64((uint64_t *)(uintptr_t)GDK_CQ_AT(cq, cqe_ci), end, GDK_SCOPE_GPU);
	return ci;
}

#endif
