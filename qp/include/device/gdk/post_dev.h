/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Posting. gdk_post_begin() reserves slots for a group of threads, the threads write their WQEs,
 * and gdk_post_end() publishes the slots and rings the doorbell. A group is one thread; the lanes
 * of a warp that happen to post together to one QP (THREAD scope, shared use); a warp; or a block.
 *
 *   case                               path
 *   exclusive, one thread, plain: its  gdk_own_plain(), gdk_own_end(), inlined: loads, one branch,
 *   slots are below the plain end      WQEs, fence, `rung`, DBREC, register, ready bits
 *   (status_dev.h)                     (in this order)
 *   exclusive, one thread, not plain,  gdk_op_by_one() (op_dev.h) posts one WQE after the other.
 *   because the plain end is reached,  Before each, gdk_own_slow() waits for room and takes the
 *   shared use has the token, the QP   token, and gdk_plain_set() sets the plain end
 *   has ended, fences need system
 *   scope, or the handler is GPU_SM_BF
 *   exclusive, a group                 gdk_own_reserve(), gdk_own_end(), inlined
 *   shared, the token is parked at     gdk_post_parked(), inlined: one addition without a result
 *   the first slot of the group        for each word of ready bits publishes the slots and takes
 *                                      the token; rings; parks the token
 *   shared, the token is elsewhere     gdk_post_shared() raises `wanted`, executes a fence, flips
 *                                      ready bits. If it then finds the token: rings; parks it
 *   shared, as one of these two; also, before the post, gdk_shared_slow() waits for free slots
 *   the ring is full                   (wait_dev.h)
 *   shared, as one of these two; also, after the post, gdk_shared_slow() takes the token and
 *   the token is left, or slots after  serves it (token_dev.h)
 *   the group are published
 *
 * Memory accesses take fewer instructions in inlined code than in a called function. So common
 * cases are short and inlined, and all the rest is in few functions.
 *
 * Costs on an H200 (tests/bench/post.sh): a fence 250 ns, an atomic operation or a load from the
 * second-level cache 150 to 250 ns, everything else together 100 ns. So an exclusive post has one
 * fence. A shared post waits three times: for the addition that reserves, for a fence after the
 * WQEs, and for a fence after the DBREC. The read-modify-write that parks the token is in flight
 * during the last fence.
 */
#ifndef GDK_POST_DEV_H
#define GDK_POST_DEV_H

#include "device/gdk/wait_dev.h"
#include "device/gdk/wqe.h"

#define GDK_OPT_SKIP_CHECK DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK
#define GDK_OPT_SKIP_DB	   DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING

typedef enum doca_gpu_dev_verbs_exec_scope gdk_exec_t;
#define GDK_THREAD	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define GDK_WARP_SCOPE	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define GDK_BLOCK_SCOPE GDK_EXEC_SCOPE_BLOCK

/* How an operation is executed. All members but opt are compile-time constants in the callers. */
struct gdk_how {
	gdk_mode_t mode;
	gdk_handler_t handler;
	gdk_exec_t exec;
	uint32_t opt; /* enum doca_gpu_dev_verbs_gpu_code_opt */
};

GDK_FN struct gdk_how gdk_how(gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec, uint32_t opt)
{
	const struct gdk_how how = { mode, handler, exec, opt };

	return how;
}

/* The post of a group. A member whose comment begins with "exclusive:" or "shared:" is valid in
 * that use only, and in rank 0 only. */
struct gdk_post {
	struct gdk_qp_state *st;
	struct gdk_wqes wqes;
	uint64_t base;	/* index of the group's first slot */
	uint64_t idx;	/* index of this thread's first slot */
	uint32_t total; /* number of slots of the group */
	uint32_t mask;	/* lanes of the group; not used in BLOCK scope */
	uint32_t rank;	/* number of this thread in the group; 0 reserves and rings */
	uint32_t left;	/* exclusive: `left` of the state block */
	uint32_t *word; /* exclusive: address of the ready bits that include the last slot's */
	uint32_t bits;	/* exclusive: the value to store in *word */
	/* shared: 1 or 2 if the token is parked at slot `base` and gdk_publish_parked() can publish
	 * the group's slots, else 0. With 2, fences need only GPU scope; with 1, system scope. */
	uint32_t parked;
	uint64_t doorbells; /* shared: the loaded counter `doorbells` of the state block */
	struct gdk_db db;   /* exclusive: the doorbell */
};

/* Set in the index of a slot if no slot may be written: the QP has ended, or none became free. */
#define GDK_FAILED ((uint64_t)1 << 63)

/* ---- exclusive use ---- */

/* Loads what a post of n slots needs into p, and changes no memory. Returns 0 if the case is plain:
 * all slots are below the plain end (status_dev.h). All loads are in flight together, and the
 * caller has one branch; a branch costs a lone thread 30 ns. */
GDK_FN int gdk_own_plain(struct doca_gpu_dev_verbs_qp *qp, struct gdk_post *p, uint32_t n,
			 gdk_handler_t handler, uint32_t opt)
{
	const uint64_t plain = gdk_ld64(gdk_plain_end(qp), GDK_SCOPE_THREAD);
	uint64_t at, last;

	p->base = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_THREAD);
	p->db.pi = p->base + n;
	p->left = GDK_LEFT_OWN;
	/* With SKIP_CHECK the caller knows that the slots are free. If one doorbell can also
	 * announce the whole ring, only a plain end of 0 matters. `last` is then 0, so that
	 * `last >= plain` is true only if `plain` is 0. */
	last = opt & GDK_OPT_SKIP_CHECK && gdk_covers(p->wqes.mask) ? 0 : p->db.pi - 1;
	/* Puts two bits that are always 0 into `last`: bit 0 of the slot's address, and the top bit
	 * of qpn8_be. So the result depends on `ring` and qpn8_be, and the compiler must load both
	 * before the caller branches on the result. */
	at = p->wqes.ring + ((uint64_t)((uint32_t)p->base & p->wqes.mask) << 6);
	last |= (uint64_t)((uint32_t)at << 31 | (p->wqes.qpn8_be & 0x80000000u)) << 32;
	return (last >= plain) | (!(opt & GDK_OPT_SKIP_DB) & (handler == GDK_BF));
}

/* Sets the plain end to the lower of two indices: the end of the free slots, and the end of the
 * slots that one doorbell may announce. The caller owns the token. */
GDK_FN void gdk_plain_set(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_post *p)
{
	uint64_t *at = p->left == GDK_LEFT_SYS ? &p->st->plain_sys : gdk_plain_end(qp);
	const uint32_t depth = gdk_ldc32(&p->st->depth);
	uint64_t end = gdk_ld64(&p->st->completed, GDK_SCOPE_GPU) + depth, most;

	most = gdk_ld64(&p->st->rung, GDK_SCOPE_GPU) + gdk_ring_most(depth);
	if (GDK_CHECKS_WQES)
		return;
	gdk_st64(&p->st->plain_at, (uint64_t)(uintptr_t)at, GDK_SCOPE_THREAD);
	gdk_st64(at, end < most ? end : most, GDK_SCOPE_THREAD);
}

/* Called if gdk_own_plain() does not return 0. As needed, takes the token, rings the doorbell for
 * slots that were posted earlier, and waits for free slots. Then sets the plain end. Returns 0, or
 * the status that ended the QP; then the slots must not be written. */
GDK_FN int gdk_own_make_plain(struct doca_gpu_dev_verbs_qp *qp, struct gdk_post *p, uint32_t n,
			      gdk_handler_t handler, uint32_t opt)
{
	const uint64_t plain = gdk_ld64(&p->st->plain_sys, GDK_SCOPE_THREAD);
	const uint32_t depth = gdk_ldc32(&p->st->depth);
	uint32_t how = GDK_OWN_TAKE;
	int err = 0;

	if (handler == GDK_BF)
		gdk_bf_settle();
	p->left = GDK_LEFT_SYS;
	if (plain >= (opt & GDK_OPT_SKIP_CHECK && gdk_covers(depth - 1) ? 1 : p->db.pi))
		return 0;
	if (!(opt & GDK_OPT_SKIP_DB))
		how |= GDK_RING | GDK_RING_ALL;
	if (p->db.pi > depth && !(opt & GDK_OPT_SKIP_CHECK))
		how |= GDK_RING | GDK_WAIT | GDK_WAIT_ROOM;
	/* This returns at once if there is nothing to do. */
	err = gdk_own_slow(p->st, p->base, depth - n, GDK_QP_LIMIT, how);
	p->left = gdk_ld32(&p->st->left, GDK_SCOPE_GPU);
	if (!err)
		gdk_plain_set(qp, p);
	return err;
}

/* Stores p->db.pi as the reserved index. Fills in what gdk_own_end() needs: word, bits, and the
 * other members of db. */
GDK_FN void gdk_own_prepare(struct doca_gpu_dev_verbs_qp *qp, struct gdk_post *p, uint32_t opt)
{
	const uint32_t depth = p->wqes.mask + 1;

	gdk_st64(gdk_rsvd_index(qp), p->db.pi, GDK_SCOPE_THREAD);
	p->word = gdk_ready_half(p->st, depth, p->db.pi - 1);
	p->bits = gdk_own_bits(depth, p->db.pi - 1);
	if (opt & GDK_OPT_SKIP_DB)
		return;
	p->db.reg = (uint64_t *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, sq_db));
	p->db.dbrec = (uint32_t *)(uintptr_t)gdk_ldc64(GDK_QP_AT(qp, sq_dbrec));
	gdk_db_fill(&p->db, p->wqes.qpn8_be, p->db.pi);
}

/* Reserves n slots, the first is stored in *base. Returns 0, or the status that ended the QP. */
GDK_FN int gdk_own_reserve(struct doca_gpu_dev_verbs_qp *qp, struct gdk_post *p, uint32_t n,
			   gdk_handler_t handler, uint32_t opt, uint64_t *base)
{
	int err = 0;

	if (GDK_RARE(gdk_own_plain(qp, p, n, handler, opt))) {
		err = gdk_own_make_plain(qp, p, n, handler, opt);
		p->wqes = gdk_wqes_of_qp(qp);
	}
	*base = p->base;
	gdk_own_prepare(qp, p, opt);
	/* Orders the load that showed that the slots are free before our stores to them. */
	gdk_fence_load_store(GDK_SCOPE_THREAD);
	return err;
}

/* Publishes the slots of a group, and rings the doorbell for them and all slots below. sys: 0 if
 * the caller knows that no fence needs system scope. */
GDK_FN void gdk_own_end(const struct gdk_post *p, gdk_handler_t handler, uint32_t opt, int sys)
{
	const int own = GDK_SCOPE_THREAD;
	const uint32_t depth = p->wqes.mask + 1;
	uint64_t i = p->base, doorbells = 0;

	/* This load is in flight during the fence. If it were earlier, the compiler could make the
	 * thread wait for its value before the fence, up to 200 ns. If it were inside the branches
	 * below, the compiler would replace them by predicated instructions, which cost time even
	 * if not executed. */
	if (!gdk_is_proxy(handler))
		doorbells = gdk_ld64(&p->st->doorbells, own);
	if (opt & GDK_OPT_SKIP_DB) {
		gdk_st64(&p->st->marked, p->db.pi, own);
	} else if (!gdk_debug_refuses(p->st, p->base, p->db.pi)) {
		/* Orders the WQEs before all stores below. DBREC and register need no order in
		 * exclusive use (ring_dev.h). */
		if (sys && p->left == GDK_LEFT_SYS)
			gdk_fence_rel(GDK_SCOPE_SYS);
		else
			gdk_fence_rel(GDK_SCOPE_GPU);
		if (gdk_is_proxy(handler))
			gdk_st64(&p->st->rung, p->db.pi, own);
		else
			gdk_st64x2(&p->st->rung, p->db.pi, doorbells + 1, own);
		if (gdk_has_dbrec(handler))
			gdk_dbrec_store(&p->db);
		gdk_reg_store(&p->db, handler);
	}
	/* After these stores, the slots below p->db.pi are published, and no others. So no old
	 * ready bits need to be kept, and all 32 ready bits of a word are stored at once. */
	GDK_LOOP
	while (p->total > 1 && gdk_word_room(depth, i) < p->db.pi - i) {
		i += gdk_word_room(depth, i);
		gdk_st32(gdk_ready_half(p->st, depth, i - 1), gdk_own_bits(depth, i - 1), own);
	}
	gdk_st32(p->word, p->bits, own);
}

/* ---- shared use ---- */

#define GDK_AT_TOKEN 0x100u /* the token is parked at the first slot */
#define GDK_NO_RING  0x200u /* publish the slots, but do not ring the doorbell */

/* Reserves n slots, and sets p->parked and p->doorbells. Returns the index of the first slot; the
 * bit GDK_FAILED is set in it if the slots must not be written. */
GDK_FN uint64_t gdk_shared_reserve(struct doca_gpu_dev_verbs_qp *qp, struct gdk_post *p, uint32_t n,
				   int scope, uint32_t opt)
{
	const uint32_t depth = p->wqes.mask + 1;
	struct gdk_qp_state *st = p->st;
	uint64_t done, ended, rung, parked, base, end;
	uint32_t flags;
	int full;

	/* These accesses are in flight together. */
	base = gdk_rmw_add64(gdk_rsvd_index(qp), n, scope);
	gdk_ld64x2(&st->completed, &done, &ended, scope);
	gdk_ld64x2(&st->rung, &rung, &p->doorbells, scope);
	parked = gdk_ld64(&st->parked, scope);
	end = base + n;
	full = !(opt & GDK_OPT_SKIP_CHECK) && (uint32_t)(end - done) > depth;
	/* Sets p->parked if the token is parked at base, and n and depth allow
	 * gdk_publish_parked(). It stays 0 if a CPU thread polls `rung`: a post with p->parked
	 * stores `rung` before the fence that follows the WQEs, so that thread could read a WQE too
	 * early. It also stays 0 with BlueFlame. */
	flags = gdk_ldc32(&st->flags);
	p->parked = 0;
	if ((parked == base) & ((uint32_t)rung == (uint32_t)base) & (n <= GDK_WORD_SLOTS) &
	    (depth >= GDK_WORD_SLOTS) & !(flags & (GDK_QPF_BLUEFLAME | GDK_QPF_RUNG_READ)))
		p->parked = flags & GDK_QPF_SYS_SCOPE ? 1 : 2;
	if (GDK_RARE(full | (ended != 0))) {
		/* A thread that waits for free slots wants all slots before its own to be rung: it
		 * may wait for any of them. */
		if (gdk_shared_slow(st, base, depth - n, GDK_QP_LIMIT,
				    full ? GDK_RING | GDK_WANT | GDK_WAIT | GDK_WAIT_ROOM : 0))
			base |= GDK_FAILED;
		p->parked = 0;
	}
	gdk_fence_load_store(scope); /* orders the check for free slots before the WQEs */
	return base;
}

#define GDK_DBREC_POLLS 1000u /* about 100 us */

/* Waits until the previous holder's store of the DBREC, with the value for `from`, is visible. That
 * holder parked the token at slot `from` after the store, but perhaps before its fence
 * (gdk_hand_over()). Our own DBREC store depends on the load here, so it comes later. The value
 * never comes if the program stores DBRECs itself, or names a handler other than the exported one.
 * So the wait ends after GDK_DBREC_POLLS. */
GDK_FN void gdk_await_dbrec(const struct gdk_db *db, uint64_t from)
{
	uint32_t i;

	GDK_LOOP
	for (i = 0; i < GDK_DBREC_POLLS; i++)
		if (gdk_ld32(db->dbrec, GDK_SCOPE_GPU) == gdk_dbrec_value(from))
			return;
}

/* Returns 1 if the token may move on between DBREC and register. It may not:
 *   - on CPU threads (GDK_TOKEN_FIRST), or without DBREC;
 *   - with BlueFlame: our store of 8 bytes could come in the middle of the next holder's 64 bytes;
 *   - if DBRECs may be in host memory, where the load in gdk_await_dbrec() would take a
 *     microsecond; except in CTA scope, where a fence replaces this load. */
GDK_FN int gdk_token_first(gdk_handler_t handler, uint32_t flags, int scope)
{
	return GDK_TOKEN_FIRST && gdk_has_dbrec(handler) && !(flags & GDK_QPF_BLUEFLAME) &&
	       (scope == GDK_SCOPE_CTA || !(flags & GDK_QPF_SYS_SCOPE));
}

/* Rings the doorbell for all slots below db->pi, and parks the token at slot db->pi. The caller has
 * stored db->pi in `rung`. next: the word of this slot; token: its token bit. Returns the old
 * value of the word. If gdk_token_first() allows it, the token moves on between DBREC and register,
 * and travels during the fence between the two. The next holder's DBREC must follow ours. In CTA
 * scope, a fence of this scope orders our DBREC before the token. In GPU scope, the next holder
 * finds the token by `parked`, which is stored after the fence between DBREC and register; or it
 * calls gdk_await_dbrec(). */
GDK_FN uint64_t gdk_hand_over(uint64_t *next, uint64_t token, const struct gdk_db *db,
			      gdk_handler_t handler, uint32_t flags, int scope)
{
	uint64_t old;

	gdk_nic_fence(flags); /* orders WQEs and `rung` before DBREC, register, counter */
	if (gdk_has_dbrec(handler))
		gdk_dbrec_store(db);
	if (gdk_token_first(handler, flags, scope)) {
		if (scope == GDK_SCOPE_CTA)
			gdk_fence_rel(scope);
		old = gdk_rmw_or64(next, token, scope);
		gdk_nic_fence(flags); /* orders the DBREC before the register */
		gdk_mmio_st64(db->reg, db->reg_value);
		return old;
	}
	if (gdk_has_dbrec(handler))
		gdk_nic_fence(flags);
	gdk_reg_store(db, handler);
	/* Orders the counter, or the BlueFlame register, before the token: see gdk_ring(). */
	if (gdk_is_proxy(handler) || flags & GDK_QPF_BLUEFLAME)
		gdk_fence_rel(scope);
	return gdk_rmw_or64(next, token, scope);
}

/* Called after gdk_hand_over() has tried to park the token at slot pi. next, token: as for
 * gdk_hand_over(); old: its result. If the token is parked, stores pi in `parked` and returns
 * GDK_TOKEN_ELSEWHERE. If the slot had been published before, takes the token bit back and returns
 * pi: the caller still holds the token. */
GDK_FN uint64_t gdk_handed_over(struct gdk_qp_state *st, uint32_t depth, uint64_t *next,
				uint64_t token, uint64_t pi, uint64_t old, int scope)
{
	if (GDK_RARE(gdk_word_shows(depth, pi, old))) {
		/* The slot is published. Its publisher found no token, so we still hold it. */
		gdk_red_and64(next, ~token, scope);
		return pi;
	}
	gdk_fence_load_store(scope); /* orders our RMW before `parked`: see gdk_park() */
	gdk_st64(&st->parked, pi, scope);
	return GDK_TOKEN_ELSEWHERE;
}

/* Publishes n slots from `from` on, where the token is parked, and rings the doorbell for them. The
 * QP must have none of the flags GDK_QPF_SYS_SCOPE, GDK_QPF_BLUEFLAME and GDK_QPF_RUNG_READ.
 * doorbells: the loaded value of `doorbells`, a counter in the state block. Returns as
 * gdk_post_shared(). */
GDK_FN uint64_t gdk_post_parked(struct gdk_qp_state *st, uint32_t depth, uint64_t from, uint32_t n,
				uint64_t doorbells, gdk_handler_t handler, int scope)
{
	const struct gdk_db db = gdk_db_of(st, from + n);
	const uint64_t token = gdk_token_bit(depth, db.pi);
	uint64_t *next = gdk_word(st, depth, db.pi), old;

	if (gdk_debug_refuses(st, from, db.pi))
		return GDK_TOKEN_ELSEWHERE;
	gdk_publish_parked(st, depth, from, n, scope);
	gdk_st64x2(&st->rung, db.pi, doorbells + !gdk_is_proxy(handler), GDK_SCOPE_GPU);
	old = gdk_hand_over(next, token, &db, handler, 0, scope);
	return gdk_handed_over(st, depth, next, token, db.pi, old, scope);
}

/* Publishes n slots from `from` on, whose WQEs are written. If this thread then gets the token,
 * rings the doorbell, too, unless GDK_NO_RING is set. what: the handler, and at most one of
 * GDK_NO_RING and GDK_AT_TOKEN (the token is parked at `from`). doorbells: as for
 * gdk_post_parked(), needed with GDK_AT_TOKEN only. Returns
 * GDK_TOKEN_ELSEWHERE if the caller is done. Otherwise the caller must call gdk_shared_slow(). If a
 * slot is returned, the caller holds the token at this slot and must serve it. If GDK_TOKEN_LEFT is
 * returned, the caller must first take the token from `left`. */
GDK_FN uint64_t gdk_post_shared(struct gdk_qp_state *st, uint64_t from, uint32_t n,
				uint64_t doorbells, uint32_t what, int scope)
{
	const uint32_t depth = gdk_ldc32(&st->depth), flags = gdk_ldc32(&st->flags);
	const gdk_handler_t handler = (gdk_handler_t)(what & 0xff);
	const struct gdk_db db = gdk_db_of(st, from + n);
	const uint64_t token = gdk_token_bit(depth, db.pi);
	uint64_t *next = gdk_word(st, depth, db.pi), old;
	uint32_t left = 0;

	if (what & GDK_AT_TOKEN) {
		if (gdk_debug_refuses(st, from, db.pi))
			return GDK_TOKEN_ELSEWHERE;
		gdk_publish_parked(st, depth, from, n, scope);
	} else {
		if (what & GDK_NO_RING) {
			gdk_fence_rel(scope); /* orders WQEs before ready bits */
		} else {
			gdk_red_max64(&st->wanted, db.pi, scope);
			/* orders WQEs before ready bits, `wanted` before `left`: token_dev.h */
			gdk_fence_sc(scope);
			left = gdk_ld32(&st->left, scope);
		}
		old = gdk_ld64(next, scope);
		if (!gdk_publish(st, depth, from, n, scope))
			return left ? GDK_TOKEN_LEFT : GDK_TOKEN_ELSEWHERE;
		if (scope != GDK_SCOPE_CTA && gdk_token_first(handler, flags, scope))
			gdk_await_dbrec(&db, from);
		/* If one of these conditions holds, the caller serves the token (gdk_serve())
		 * instead. gdk_word_shows(): slot db.pi is published already, so gdk_serve()
		 * announces it together with our slots. */
		if (what & GDK_NO_RING || flags & (GDK_QPF_BLUEFLAME | GDK_QPF_RUNG_READ) ||
		    gdk_word_shows(depth, db.pi, old) || gdk_debug_refuses(st, from, db.pi))
			return from;
		/* Orders our DBREC after that of the previous holder, whose token we found. */
		gdk_fence_load_store(scope);
		doorbells = gdk_ld64(&st->doorbells, GDK_SCOPE_GPU);
	}
	gdk_st64x2(&st->rung, db.pi, doorbells + !gdk_is_proxy(handler), GDK_SCOPE_GPU);
	old = gdk_hand_over(next, token, &db, handler, flags, scope);
	return gdk_handed_over(st, depth, next, token, db.pi, old, scope);
}

GDK_SLOW_FN uint64_t gdk_post_cta(struct gdk_qp_state *st, uint64_t from, uint32_t n,
				  uint64_t doorbells, uint32_t what)
{
	return gdk_post_shared(st, from, n, doorbells, what, GDK_SCOPE_CTA);
}

GDK_SLOW_FN uint64_t gdk_post_gpu(struct gdk_qp_state *st, uint64_t from, uint32_t n,
				  uint64_t doorbells, uint32_t what)
{
	return gdk_post_shared(st, from, n, doorbells, what, GDK_SCOPE_GPU);
}

/* Publishes the group's slots, and rings the doorbell if the token is parked at the first of them.
 * If the caller then still holds the token, also serves it (gdk_serve()): rings the doorbell for
 * slots that other threads publish, until the token is parked or left. The common case is inlined:
 * p->parked is 2, so the token is parked at the group's first slot, and no fence needs system
 * scope. */
GDK_FN void gdk_shared_end(const struct gdk_post *p, struct gdk_how how)
{
	const int scope = gdk_mode_scope(how.mode);
	const gdk_handler_t handler = gdk_handler(p->st, how.handler);
	const uint32_t what = (uint32_t)handler | (how.opt & GDK_OPT_SKIP_DB ? GDK_NO_RING
						   : p->parked		     ? GDK_AT_TOKEN
									     : 0);
	uint64_t at;

	if (!GDK_RARE((p->parked != 2) | ((how.opt & GDK_OPT_SKIP_DB) != 0)))
		at = gdk_post_parked(p->st, p->wqes.mask + 1, p->base, p->total, p->doorbells,
				     handler, scope);
	else if (scope == GDK_SCOPE_CTA)
		at = gdk_post_cta(p->st, p->base, p->total, p->doorbells, what);
	else
		at = gdk_post_gpu(p->st, p->base, p->total, p->doorbells, what);
	if (GDK_RARE(at != GDK_TOKEN_ELSEWHERE))
		(void)gdk_shared_slow(p->st, at, 0, 0, GDK_SERVE);
}

/* ---- groups ---- */

/* Returns the number of threads of the warp or block in WARP or BLOCK scope; 1 in THREAD scope. */
GDK_FN uint32_t gdk_exec_size(gdk_exec_t exec)
{
	return exec == GDK_BLOCK_SCOPE	? gdk_block_size()
	       : exec == GDK_WARP_SCOPE ? gdk_warp_size()
					: 1;
}

GDK_FN uint32_t gdk_exec_rank(gdk_exec_t exec)
{
	return exec == GDK_BLOCK_SCOPE ? gdk_block_rank() : exec == GDK_WARP_SCOPE ? gdk_lane() : 0;
}

/* In WARP and BLOCK scope, all threads of the warp or block wait for each other. */
GDK_FN void gdk_exec_sync(gdk_exec_t exec)
{
	if (exec == GDK_BLOCK_SCOPE)
		gdk_block_sync();
	else if (exec == GDK_WARP_SCOPE)
		gdk_syncwarp();
}

/* THREAD scope, shared use: returns the lanes that post together with the caller. They have
 * converged, and post the same number of slots to the same QP with the same options. If they need
 * more than `most` slots, each posts by itself. A whole warp is recognized first, which costs less.
 * The parts of key do not overlap: addresses have less than 49 bits, the lowest three 0. */
GDK_FN uint32_t gdk_converged(struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, uint32_t opt,
			      uint32_t most)
{
	const uint32_t active = gdk_activemask(), all = gdk_warp_mask();
	const uint64_t key = (uint64_t)(uintptr_t)qp ^ (uint64_t)slots << 49 ^
			     (opt & (GDK_OPT_SKIP_CHECK | GDK_OPT_SKIP_DB));
	uint32_t mask = active;

	if (active == all && gdk_ballot(gdk_shfl64(key, 0) == key) == all)
		mask = all;
	else if (active & (active - 1))
		mask = gdk_match64(active, key);
	return gdk_popc32(mask) * slots <= most ? mask : 1u << gdk_lane();
}

/* All threads of the group wait for each other. */
GDK_FN void gdk_post_sync(const struct gdk_post *p, struct gdk_how how)
{
	if (how.exec == GDK_BLOCK_SCOPE)
		gdk_block_sync();
	else if (how.exec == GDK_WARP_SCOPE ||
		 (how.exec == GDK_THREAD && how.mode != GDK_EXCLUSIVE)) {
		if (p->mask == gdk_warp_mask())
			gdk_syncwarp();
		else
			gdk_syncwarp_mask(p->mask);
	}
}

/* Returns rank 0's v to all threads of the group. */
GDK_FN uint64_t gdk_post_bcast(const struct gdk_post *p, struct gdk_how how, uint64_t v)
{
	if (how.exec == GDK_BLOCK_SCOPE)
		return gdk_block_bcast64(v);
	if (how.exec == GDK_THREAD && how.mode == GDK_EXCLUSIVE)
		return v;
	/* A shuffle with a constant mask takes fewer instructions. */
	if (p->mask == gdk_warp_mask())
		return gdk_shfl64(v, 0);
	return gdk_shfl64m(p->mask, v, gdk_ctz32(p->mask));
}

/*
 * Reserves `slots` slots for each thread of the group, and `extra` slots once, behind them. In
 * THREAD scope extra is 0. Returns 0, or the status that ended the QP; then no slot may be written,
 * and gdk_post_end() must not be called.
 * The threads of a warp or block wait for each other first. Otherwise rank 0 could reserve while
 * another thread still has to reserve for an earlier post. If the ring is then full, that thread
 * waits for the slots of this post, one of which it has to write itself: a deadlock.
 */
GDK_FN int gdk_post_begin(struct doca_gpu_dev_verbs_qp *qp, struct gdk_post *p, uint32_t slots,
			  uint32_t extra, struct gdk_how how)
{
	const int scope = gdk_mode_scope(how.mode);
	uint32_t size = gdk_exec_size(how.exec);
	uint64_t base;
	int err;

	GDK_UNSET(base);
	GDK_UNSET(*p);
	p->st = gdk_state_of_qp(qp);
	p->wqes = gdk_wqes_of_qp(qp);
	p->mask = how.exec == GDK_WARP_SCOPE ? gdk_warp_mask() : 1u << gdk_lane();
	p->rank = gdk_exec_rank(how.exec);
	p->total = slots + extra;
	if (how.exec == GDK_THREAD && how.mode == GDK_EXCLUSIVE) {
		err = gdk_own_reserve(qp, p, p->total, gdk_handler(p->st, how.handler), how.opt,
				      &p->base);
		p->idx = p->base;
		return err;
	}
	if (how.exec == GDK_THREAD) {
		p->mask = gdk_converged(qp, slots, how.opt, gdk_op_most(p->wqes.mask + 1));
		size = gdk_popc32(p->mask);
		p->rank = gdk_popc32(p->mask & ((1u << gdk_lane()) - 1));
	}
	p->total = size * slots + extra;
	if (how.exec != GDK_THREAD)
		gdk_post_sync(p, how);
	if (how.exec == GDK_WARP_SCOPE && gdk_debug_partial(p->st))
		return gdk_state_status(p->st);
	if (p->rank == 0) {
		if (how.mode != GDK_EXCLUSIVE)
			base = gdk_shared_reserve(qp, p, p->total, scope, how.opt);
		else if (gdk_own_reserve(qp, p, p->total, gdk_handler(p->st, how.handler), how.opt,
					 &base))
			base |= GDK_FAILED;
	}
	base = gdk_post_bcast(p, how, base);
	p->base = base & ~GDK_FAILED;
	p->idx = p->base + p->rank * slots;
	return GDK_RARE(base & GDK_FAILED)
		       ? (int)gdk_ld32((const uint32_t *)&p->st->status, GDK_SCOPE_GPU)
		       : 0;
}

/* Called by all threads of the group after they have written their slots. After the first barrier,
 * rank 0 executes a fence and rings the doorbell; the fence is cumulative, so it also orders the
 * WQEs that the other threads wrote before the barrier. The second barrier makes the lanes converge
 * again; otherwise, later groups would have fewer lanes under contention. */
GDK_FN void gdk_post_end(const struct gdk_post *p, struct gdk_how how)
{
	gdk_post_sync(p, how);
	if (p->rank == 0) {
		if (how.mode == GDK_EXCLUSIVE)
			gdk_own_end(p, gdk_handler(p->st, how.handler), how.opt, 1);
		else
			gdk_shared_end(p, how);
	}
	gdk_post_sync(p, how);
}

#endif
