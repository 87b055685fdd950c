/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Waiting and polling. All slots below `completed`, a word of the state block (state.h), are
 * complete. A thread that finds a CQE raises `completed`; other threads may see it raised without
 * having loaded the CQE.
 *
 * Order: the NIC writes the payload before the CQE. The thread that finds the CQE executes an
 * acquire fence of system scope, then a release fence, and then raises `completed`. A thread that
 * sees `completed` raised executes an acquire fence before it loads the payload.
 *
 * Even use: every WQE has one slot and generates a CQE (`uneven` is 0). Then the indices of CQE and
 * slot differ by a constant, and one load of one CQE shows whether a slot is complete.
 * gdk_own_quick() and gdk_wait_quick() do this; they are inlined into the caller's kernel. All the
 * rest, for every kind of wait and poll, is in the functions gdk_own_slow() and gdk_shared_slow().
 * The absolute index of a CQE counts all CQEs of the CQ, also those before a reset of the QP.
 */
#ifndef GDK_WAIT_DEV_H
#define GDK_WAIT_DEV_H

#include "device/gdk/cq_dev.h"
#include "device/gdk/own_dev.h"
#include "device/gdk/token_dev.h"
#include "device/gdk/wait_time_dev.h"

typedef enum doca_gpu_dev_verbs_resource_sharing_mode gdk_mode_t;
#define GDK_EXCLUSIVE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE

/* Options of gdk_own_slow() and gdk_shared_slow(). They may be combined with those of
 * gdk_own_ring(). */
#define GDK_WAIT       0x100u  /* wait until slots are complete */
#define GDK_WAIT_ONCE  0x200u  /* with GDK_WAIT: poll once; EBUSY if not complete */
#define GDK_WAIT_CQES  0x400u  /* wait for a number of CQEs, not of slots */
#define GDK_WAIT_KEEP  0x800u  /* a wait that fails does not end the QP */
#define GDK_WAIT_ROOM  0x1000u /* wait for free slots: first poll a slot above those needed */
#define GDK_WAIT_QUICK 0x2000u /* shared use: begin with gdk_wait_quick() */
/* Set inside gdk_own_slow(), if the caller has passed GDK_WAIT_ONCE: the poll has found nothing and
 * the doorbell has been repeated (gdk_poll_repeats()), so exactly one more poll is left. */
#define GDK_POLLED 0x4000u
#define GDK_SERVE  0x8000u /* gdk_shared_slow() only: serve the token (token_dev.h) */
#define GDK_WANT   0x4000u /* gdk_shared_slow() only: with GDK_RING, raise `wanted` */

#define GDK_QUICK_POLLS 64 /* polls of gdk_wait_quick() and gdk_own_quick() */

/* ---- completion ---- */

/* Polls for the CQE with absolute index `at`; if collapsed is 1, for any CQE, which is in entry 0.
 * Returns 1 if it has arrived. *t: its counter, opcode and owner bit. */
GDK_FN int gdk_cqe_poll(const struct gdk_qp_state *st, uint64_t at, int collapsed,
			struct gdk_cqe_tail *t)
{
	const int owned = gdk_cqe_arrived(st, at, t);

	return owned || (collapsed && t->opcode != DOCA_GPUNETIO_IB_MLX5_CQE_INVALID);
}

/* Stores the index of the WQE of an error CQE, and the absolute index `at` of the CQE, unless lower
 * ones are stored. An error flushes all later WQEs. If the CQE is that of a flushed WQE,
 * gdk_qp_error_wqe() finds the first error. */
GDK_FN void gdk_note_error(struct gdk_qp_state *st, uint64_t index, uint64_t at)
{
	gdk_red_min64(&st->error_wqe, index, GDK_SCOPE_GPU);
	gdk_red_min64(&st->error_ci, at, GDK_SCOPE_GPU);
}

/* Shared use: raises `completed` to done, below which all slots are complete, and `cqe_ci` to ci,
 * below which all CQEs are processed. ci is an absolute index (see the head of this file). The
 * order of the two stores does not matter (gdk_fold()). */
GDK_FN void gdk_raise_completed(struct gdk_qp_state *st, uint64_t ci, uint64_t done)
{
	/* Release: orders the payload before `completed`. Pairs with the acquire fence of a thread
	 * that sees `completed` raised. */
	gdk_fence_rel(GDK_SCOPE_GPU);
	gdk_red_max64(&st->cqe_ci, ci, GDK_SCOPE_GPU);
	gdk_red_max64(&st->completed, done, GDK_SCOPE_GPU);
}

/* Shared use: polls at most `polls` times whether a slot is complete. Returns 1 if it is. Returns 0
 * if it is not, or if gdk_shared_slow() must find out, for example because `uneven` is 1 or the CQE
 * is an error. Polls the CQE only if the slot is rung: gdk_cqe_arrived() has the reason. */
GDK_FN int gdk_wait_quick(struct gdk_qp_state *st, uint64_t slot, uint32_t polls)
{
	const uint32_t flags = gdk_ldc32(&st->flags), num = gdk_ldc32(&st->cq_num);
	const uint64_t at = slot + gdk_ldc64(&st->cq_rsvd);
	const uint32_t *tail = gdk_cqe_word(st, at & (num - 1));
	const uint32_t owner = at & num ? 1 : 0;
	uint64_t done, ended;
	uint32_t uneven, word;

	/* Acquire: orders `rung` before `uneven`. A thread that sets `uneven` does so before its
	 * WQE is published, and thus before the WQE is rung. */
	if (gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU) <= slot || flags & GDK_QPF_COLLAPSED)
		return 0;
	uneven = gdk_ld32(&st->uneven, GDK_SCOPE_GPU);
	GDK_LOOP
	do {
		/* The loads of `completed` and of the CQE are in flight together. */
		gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
		word = gdk_ld32(tail, GDK_SCOPE_SYS);
		if (ended | uneven)
			return 0;
		if (done > slot) {
			/* Another thread found the CQE. Acquire: pairs with the release in
			 * gdk_raise_completed(). */
			gdk_fence_acq(GDK_SCOPE_GPU);
			return 1;
		}
		if (word >> 28 < GDK_CQE_OPCODE_ERR && (word >> 24 & 1) == owner) {
			gdk_fence_acq(GDK_SCOPE_SYS); /* orders the CQE before the payload */
			gdk_raise_completed(st, at + 1, slot + 1);
			return 1;
		}
	} while (--polls);
	return 0;
}

/* Shared use: polls for the CQE with absolute index `at`. If it has arrived, raises `completed` to
 * the end of its WQE. done: the value of `completed` before this call. The end of that WQE is
 * computed from the counter of the CQE, `rung`, and the number of slots in the WQE. Then
 * `completed` is loaded again. A slot is used again only after `completed` was raised above it. So
 * if `completed` is still `done`, the WQE was not overwritten, `rung` is at most one lap above
 * `done`, and the end is right. Returns 0 if `completed` was raised here or by another thread;
 * EBUSY if there is no new CQE; -EIO for an error, which is stored. */
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
	/* The entry of a collapsed CQ has the CQE of a WQE below `done` until the next one arrives.
	 * Or `rung` was older than the CQE, and the index is 65536 too low: nothing orders `rung`
	 * before the DBREC, and a NIC may execute a WQE as soon as it reads the DBREC. */
	if (index < done)
		return EBUSY;
	if (gdk_cqe_is_error(&t)) {
		gdk_note_error(st, index, at);
		return -EIO;
	}
	gdk_raise_completed(st, collapsed ? 0 : at + 1, end);
	return 0;
}

/* ---- the loop ---- */

/* Shared use: one turn of a wait that gdk_wait_quick() cannot decide.
 *   need  the slots below this index must be complete; if `how` has GDK_WAIT_CQES, this many CQEs
 *         must have been found
 *   done  the value of `completed`
 *   turn  `look` of the timer (wait_time_dev.h): whether this turn polls a CQE, and which one
 * Returns GDK_REACHED if `need` is reached; 0 if `completed` was raised, so that the caller checks
 * again at once; EBUSY if nothing was found; -EIO for an error CQE, whose WQE is noted in the state
 * block. Threads whose slots are not rung do not poll CQEs, so that fewer threads find the same CQE
 * and raise `completed` for it. */
#define GDK_REACHED (-1000)
GDK_FN int gdk_look(struct gdk_qp_state *st, uint64_t need, uint64_t done, uint32_t turn,
		    uint32_t how)
{
	const int collapsed = (gdk_ldc32(&st->flags) & GDK_QPF_COLLAPSED) != 0;
	const uint64_t rsvd = gdk_ldc64(&st->cq_rsvd);
	/* The loads come in this order: `completed`, by the caller; `rung`; then `uneven` and the
	 * CQE. gdk_fold() and wqe.h have the reasons. This acquire orders `rung` before the last
	 * two. */
	const uint64_t rung = gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU);
	uint64_t at = need - 1 + rsvd, reached = done, ahead = (rung - need) / 2;

	if (rung < need)
		return EBUSY;
	if (collapsed || gdk_ld32(&st->uneven, GDK_SCOPE_GPU)) {
		/* The entry to poll is that of the next CQE, or the only one of a collapsed CQ.
		 * Acquire: pairs with the release of the thread that raised `cqe_ci`. That thread
		 * has seen the CQE of the lap before in this entry. So our poll reads that CQE or
		 * the new one, never that of two laps before, whose owner bit is the same as that
		 * of the new one. */
		at = gdk_ld64_acq(&st->cqe_ci, GDK_SCOPE_GPU);
		if (how & GDK_WAIT_CQES && !collapsed)
			reached = at - rsvd;
		if (reached >= need)
			return GDK_REACHED;
		/* Use is not even: `at` is the first entry that is not processed. A slot has at
		 * most one CQE, so the CQE for slot need - 1 is at entry at + need - 1 - reached or
		 * before. Turns that poll a CQE alternate between `at` and that last entry. */
		ahead = need - 1 - reached;
		if (ahead >= gdk_ldc32(&st->cq_num) || !(turn & 2))
			ahead = 0;
	}
	if (turn & 1) /* this turn polls no CQE */
		return reached < need ? EBUSY : GDK_REACHED;
	/* Even use: `at` is the CQE of slot need - 1, and `at + ahead` that of the slot halfway
	 * from `need` to `rung`. If this slot is complete, so are all slots below it. */
	if (!(how & GDK_WAIT_ONCE))
		at += ahead;
	return gdk_fold(st, done, at);
}

/* As gdk_raise_completed(), for exclusive use. Atomic, because other lanes may wait at the same
 * time: a store could replace the higher index of another lane. */
GDK_FN void gdk_own_completed(struct gdk_qp_state *st, uint64_t ci, uint64_t done)
{
	gdk_red_max64(&st->cqe_ci, ci, GDK_SCOPE_CTA);
	gdk_red_max64(&st->completed, done, GDK_SCOPE_CTA);
}

/* Exclusive use: polls as gdk_cqe_poll(). If uneven is not 0, computes *index, the index of the
 * CQE's WQE, from `rung`, which was loaded before the CQE. If another lane has posted this WQE
 * since then, the index is below `completed` (gdk_fold()), and the caller polls again. */
GDK_FN int gdk_own_poll(struct gdk_qp_state *st, uint64_t at, uint32_t uneven, uint32_t collapsed,
			uint64_t rung, struct gdk_cqe_tail *t, uint64_t *index)
{
	if (!gdk_cqe_poll(st, at, collapsed != 0, t))
		return 0;
	gdk_fence_acq(GDK_SCOPE_SYS); /* orders the CQE before the payload */
	return !uneven || (gdk_counter_extend(rung, t->counter, index) &&
			   *index >= gdk_ld64(&st->completed, GDK_SCOPE_THREAD));
}

/* Exclusive use: polls whether a slot is complete. Returns 1 if it is; 0 if it is not, or if
 * gdk_own_slow() must find out. It is inlined into the caller's kernel. */
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

	/* One branch after all these loads, so that they are in flight together. */
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
			gdk_fence_acq(GDK_SCOPE_SYS); /* orders the CQE before the payload */
			gdk_own_completed(st, at + 1, slot + 1);
			gdk_plain_raise(plain_at, slot + 1, depth);
			return 1;
		}
	} while (--polls);
	return 0;
}

/*
 * Exclusive use, for all cases that the inlined functions do not handle. With the options of
 * gdk_own_ring(), takes the token or rings the doorbell for slots below `to`. With GDK_WAIT, then
 * waits until the slots below `to - behind` are complete; with GDK_WAIT_CQES, until `to - behind`
 * CQEs have arrived. GDK_WAIT_ONCE polls once instead of waiting.
 * Returns 0; EBUSY (GDK_WAIT_ONCE only); the status that ended the QP; or why the wait failed. A
 * wait that fails ends the QP, except with GDK_WAIT_KEEP.
 * Other lanes may wait or post at the same time. Otherwise only accesses of the NIC and the host
 * must be ordered. Values are loaded again in each turn of the loop, not kept in GPU registers,
 * because every kernel that posts must also reserve the registers of this function.
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
		/* GPU scope, so that the load bypasses the first-level cache, and finds what the
		 * host stores in `abort_word`, the upper half of `ended`. */
		gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
		rung = gdk_ld64(&st->rung, GDK_SCOPE_THREAD);
		err = -ECANCELED; /* gdk_wait_end() replaces it if the QP has a status already */
		if (ended)
			break;
		if (how & (GDK_OWN_TAKE | GDK_RING_AGAIN) || (how & GDK_RING && rung < to)) {
			rung = gdk_own_ring(st, rung, to, how);
			how &= ~(GDK_OWN_TAKE | GDK_RING_AGAIN);
			/* `rung` is still below `to` if one doorbell was not enough
			 * (gdk_ring_most()), or if the debug build refused a WQE and ended the
			 * QP. */
			if (how & GDK_RING_ALL && rung < to)
				continue;
		}
		if (!(how & GDK_WAIT))
			return 0;
		/* Makes the compiler compute `to - behind` in each turn, which saves a register. */
		GDK_COMPUTED32(behind);
		end = to - behind;
		at = end - 1 + gdk_ldc64(&st->cq_rsvd);
		uneven = gdk_ld32(&st->uneven, GDK_SCOPE_THREAD) | collapsed;
		if (uneven) {
			at = gdk_ld64(&st->cqe_ci, GDK_SCOPE_THREAD);
			if (how & GDK_WAIT_CQES && !collapsed)
				done = at - gdk_ldc64(&st->cq_rsvd);
		} else if (how & GDK_WAIT_ROOM) {
			/* In a full ring the first poll is for the slot halfway from `end` to
			 * `rung`. If it is complete, so are all slots below it. */
			end += (rung - end) / 2;
			at = end - 1 + gdk_ldc64(&st->cq_rsvd);
			how ^= GDK_WAIT_ROOM;
		}
		if (done >= to - behind)
			return 0;
		index = end - 1;
		if ((uneven || rung > index) &&
		    gdk_own_poll(st, at, uneven, collapsed, rung, &t, &index)) {
			if (gdk_cqe_is_error(&t)) {
				gdk_note_error(st, index, at);
				err = -EIO;
				break;
			}
			end = index + (uneven ? gdk_wqe_slots(st, index) : 1);
			gdk_own_completed(st, at + 1, end);
			gdk_plain_raise(gdk_ld64(&st->plain_at, GDK_SCOPE_THREAD), end,
					gdk_ldc32(&st->depth));
			if (!uneven)
				return 0;
			continue;
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

/* Shared use. Returns GDK_TOKEN_LEFT if slots below `to` are not rung and the caller may take the
 * token, otherwise GDK_TOKEN_ELSEWHERE. want: raise `wanted` first, so that slots that are not
 * published yet are rung later. */
GDK_FN uint64_t gdk_shared_want(struct gdk_qp_state *st, uint64_t to, int want)
{
	if (gdk_ld64(&st->rung, GDK_SCOPE_GPU) >= to)
		return GDK_TOKEN_ELSEWHERE;
	if (want) {
		gdk_red_max64(&st->wanted, to, GDK_SCOPE_GPU);
		/* Orders `wanted` before the load of `left`. Pairs with the fence in
		 * gdk_offer(). */
		gdk_fence_sc(GDK_SCOPE_GPU);
	}
	return gdk_ld32(&st->left, GDK_SCOPE_GPU) ? GDK_TOKEN_LEFT : GDK_TOKEN_ELSEWHERE;
}

/*
 * Shared use, for all cases that the inlined functions do not handle. Options:
 *   GDK_SERVE  alone: serve the token (gdk_serve()); `to` is the slot where the caller found the
 *              token, or GDK_TOKEN_LEFT
 *   GDK_RING   ring the doorbell for slots below `to` if the token is left; with GDK_WANT, raise
 *              `wanted`, so that they are rung as soon as they are published
 *   GDK_WAIT   as in gdk_own_slow()
 * Return values: as of gdk_own_slow().
 * A thread that waits for slots that are not rung takes the token whenever it is left. So waiting
 * threads take turns as holder.
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
			/* The time limit counts from here: to keep the start during gdk_serve()
			 * would cost a GPU register. gdk_serve() cannot last for ever: if nothing
			 * completes, the ring becomes full, and no more slots are published. */
			w.start = 0;
			w.next = GDK_REPEAT_NS;
			w.turns = 0;
			w.look = 0;
		}
		/* Makes the compiler compute `to - behind` in each turn, which saves a register. */
		GDK_COMPUTED32(behind);
		host_looks = (gdk_ldc32(&st->flags) & GDK_QPF_HOST_LOOKS) != 0;
		if (how & GDK_WAIT_QUICK && !(w.look & 1) &&
		    gdk_wait_quick(st, to - behind - 1,
				   how & GDK_WAIT_ONCE || host_looks ? 1 : GDK_QUICK_POLLS))
			return 0;
		/* A load of GPU scope reads the second-level cache, where the stores of other
		 * threads and of the host arrive. */
		gdk_ld64x2(&st->completed, &done, &ended, GDK_SCOPE_GPU);
		/* Returns the loaded status, without the compare-and-swap of gdk_wait_end(),
		 * because thousands of threads may be here. */
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
			gdk_fence_acq(GDK_SCOPE_SYS); /* orders `completed` before the payload */
			return 0;
		}
		if (err < 0)
			break;
		/* A wait for room calls gdk_wait_quick() from its second turn on. In the first
		 * turn, gdk_look() polls the CQE of a slot in the middle of those that are rung;
		 * this CQE frees many slots. */
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

/* As gdk_state_error_wqe(). */
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

/* Waits until the WQE is complete whose last slot has the index `ticket`. Rings the doorbell for it
 * first if needed. Returns 0; the status that ended the QP; or the reason why the wait ended:
 * -ETIMEDOUT or -EHOSTDOWN after limit_ns (0: no limit), or -ENOTCONN. These reasons do not end the
 * QP. */
GDK_FN int gdk_wait_for(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
			gdk_mode_t mode, uint64_t limit_ns)
{
	if (limit_ns == GDK_QP_LIMIT)
		limit_ns = 0;
	return gdk_slow(gdk_state_of_qp(qp), ticket + 1, limit_ns,
			GDK_RING | GDK_WAIT | GDK_WAIT_KEEP, mode);
}

/* As gdk_wait_for(), but with the time limit of the QP, and a wait that fails ends the QP. */
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

/* Called after CQE `index` was found: raises cqe_ci of the device CQ, from which programs learn the
 * next index. */
GDK_FN void gdk_cq_polled(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, gdk_mode_t mode)
{
	gdk_red_max64((uint64_t *)(uintptr_t)GDK_CQ_AT(cq, cqe_ci), index + 1,
		      gdk_mode_scope(mode));
}

/* Polls once for CQE `index`, counted from export or reset; on a collapsed CQ, for WQE `index`.
 * Returns 0, EBUSY, or the status that ended the QP. */
GDK_FN int gdk_poll_one_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, gdk_mode_t mode)
{
	int err = gdk_slow(gdk_state_of_cq(cq), index + 1, 0,
			   GDK_WAIT | GDK_WAIT_ONCE | GDK_WAIT_CQES, mode);

	if (!err)
		gdk_cq_polled(cq, index, mode);
	return err;
}

/* As gdk_poll_one_cq_at(), but waits. A wait that fails ends the QP. */
GDK_FN int gdk_poll_cq_at(struct doca_gpu_dev_verbs_cq *cq, uint64_t index, gdk_mode_t mode)
{
	struct gdk_qp_state *st = gdk_state_of_cq(cq);
	int err = 0;

	if (mode != GDK_EXCLUSIVE || !gdk_own_quick(st, index))
		err = gdk_slow(st, index + 1, GDK_QP_LIMIT, GDK_WAIT | GDK_WAIT_CQES, mode);
	if (!err)
		gdk_cq_polled(cq, index, mode);
	return err;
}

/* Waits for the next `count` CQEs after those that were found before. */
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
	int err = gdk_slow(gdk_state_of_qp(qp), index + 1, GDK_QP_LIMIT, GDK_WAIT, mode);

	if (!err)
		gdk_cq_polled(cq, index, mode);
	return err;
}

/* For callers that read CQEs themselves: reports to the NIC, and to the state block, that n more
 * CQEs are consumed. Returns the new consumer index. overrun: the CQ ignores overruns, so it needs
 * no DBREC, and none is stored. */
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
	/* Release: orders the caller's reads of CQEs before the DBREC. After it, the NIC may
	 * overwrite them. */
	if (!overrun)
		gdk_st32_rel(dbrec, gdk_bswap32(ci), GDK_SCOPE_SYS);
	gdk_st64(told, end, GDK_SCOPE_GPU);
	gdk_red_max64((uint64_t *)(uintptr_t)GDK_CQ_AT(cq, cqe_ci), end, GDK_SCOPE_GPU);
	return ci;
}

#endif
