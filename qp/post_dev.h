/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Batches: the operations of a group of threads in one reservation, one publication
 * and at most one doorbell. Groups are the lanes of a warp that happen to post to one
 * QP together (THREAD scope), a whole warp, or a whole thread block. Reads and writes
 * of any length are here as well, since all operations contain one.
 */
#ifndef GDK_POST_DEV_H
#define GDK_POST_DEV_H

#include "../../device/gdk/one_dev.h"

#define GDK_CHUNK DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE /* most bytes of one WQE */

typedef enum doca_gpu_dev_verbs_exec_scope gdk_exec_t;
#define GDK_THREAD	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define GDK_WARP_SCOPE	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define GDK_BLOCK_SCOPE GDK_EXEC_SCOPE_BLOCK

/* Those who post together. */
struct gdk_group {
	uint32_t mask, from;   /* lanes, and which of them reserves; of a block: 0 */
	uint32_t rank, size;   /* of this thread, and of the group */
	uint32_t slots, extra; /* for each thread, and once */
};

struct gdk_batch {
	uint64_t idx;	/* first of this thread's slots */
	uint64_t extra; /* first of the extra slots, which come after */
	uint64_t base;	/* of the group */
	uint32_t total; /* slots of the group */
	int lead;	/* writes the extra slots */
	int first;	/* reserves, publishes and rings for the group */
	int whole;	/* the group is a whole warp */
	struct gdk_group g;
	struct gdk_wqes wqes;
	struct gdk_sq q;
	struct gdk_early x; /* of `first` */
};

/* The group's slots, by one thread: *base at once. True: that is not all (gdk_batch_wait). */
GDK_FN int gdk_batch_reserve(struct doca_gpu_dev_verbs_qp *qp, struct gdk_batch *b, gdk_mode_t mode,
			     uint32_t code_opt, uint64_t *base)
{
	const int scope = gdk_mode_scope(mode);
	const uint32_t n = b->g.size * b->g.slots + b->g.extra;
	const int slow = gdk_reserve_now(qp, &b->q, n, scope, code_opt, base);

	/* In flight with it. */
	b->x = gdk_early_of(b->q.st, scope);
	b->q.flags = gdk_ldc32(&b->q.st->flags);
	/* The NIC's reads of the slots' last use, its CQE, completed; then our writes, and
	 * those of the others, whom we tell. */
	gdk_fence_load_store(scope);
	return slow;
}

GDK_FN void gdk_batch_place(struct gdk_batch *b, uint64_t base)
{
	b->base = base;
	b->idx = base + b->g.rank * b->g.slots;
	b->extra = base + b->g.size * b->g.slots;
	b->total = b->g.size * b->g.slots + b->g.extra;
	b->lead = b->first = b->g.rank == 0;
}

GDK_FN int gdk_batch_alone(struct doca_gpu_dev_verbs_qp *qp, struct gdk_batch *b, gdk_mode_t mode,
			   uint32_t code_opt)
{
	uint64_t base;
	int slow;

	b->g.mask = 1u << gdk_lane();
	b->g.from = gdk_lane();
	b->g.rank = 0;
	b->g.size = 1;
	slow = gdk_batch_reserve(qp, b, mode, code_opt, &base);
	gdk_batch_place(b, base);
	return slow;
}

#define GDK_SLOW (1u << 31) /* in the upper half of a base that is handed round */

/* Lanes of a warp. */
GDK_FN int gdk_batch_lanes(struct doca_gpu_dev_verbs_qp *qp, struct gdk_batch *b, gdk_mode_t mode,
			   uint32_t code_opt)
{
	uint32_t high = 0, low = 0;
	uint64_t base;

	if (gdk_lane() == b->g.from) {
		if (gdk_batch_reserve(qp, b, mode, code_opt, &base))
			high = GDK_SLOW;
		high |= (uint32_t)(base >> 32);
		low = (uint32_t)base;
	}
	high = gdk_shfl32m(b->g.mask, high, b->g.from);
	low = gdk_shfl32m(b->g.mask, low, b->g.from);
	gdk_batch_place(b, gdk_pack(low, high & ~GDK_SLOW));
	return (int32_t)high < 0;
}

GDK_FN void gdk_group_warp(struct gdk_group *g)
{
	g->mask = gdk_warp_mask();
	g->from = 0;
	g->rank = gdk_lane();
	g->size = gdk_warp_size();
}

GDK_FN int gdk_batch_warp(struct doca_gpu_dev_verbs_qp *qp, struct gdk_batch *b, gdk_mode_t mode,
			  uint32_t code_opt)
{
	gdk_group_warp(&b->g);
	gdk_syncwarp();
	return gdk_batch_lanes(qp, b, mode, code_opt);
}

/* Addresses have less than 49 bits, of which the last three are 0, and who reserves 32768
 * slots is alone. */
GDK_FN uint64_t gdk_batch_key(struct doca_gpu_dev_verbs_qp *qp, uint32_t n, uint32_t code_opt)
{
	const uint32_t opt = code_opt & (GDK_OPT_SKIP_CHECK | GDK_OPT_SKIP_DB);

	return (uint64_t)(uintptr_t)qp ^ (uint64_t)n << 49 ^ opt;
}

/* Those who converged, b->g.mask, are all lanes of the warp, and post as many slots to the same
 * QP with the same options, which it has room for. */
GDK_FN int gdk_is_whole(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_batch *b,
			uint32_t code_opt)
{
	const uint32_t all = gdk_warp_mask(), size = gdk_warp_size(), n = b->g.slots;
	const uint64_t key = gdk_batch_key(qp, n, code_opt);

	return size > 1 && b->g.mask == all &&
	       gdk_ballot(gdk_shfl64(key, 0) == key && size * n <= b->q.depth) == all;
}

/* Those of the lanes that converged, b->g.mask, which post as many slots to the same QP with
 * the same options. */
GDK_FN int gdk_batch_peers(struct doca_gpu_dev_verbs_qp *qp, struct gdk_batch *b, gdk_mode_t mode,
			   uint32_t code_opt)
{
	const uint32_t below = (1u << gdk_lane()) - 1, n = b->g.slots;
	uint32_t mask = b->g.mask;

	if (mask & (mask - 1))
		mask = gdk_match64(mask, gdk_batch_key(qp, n, code_opt));
	b->g.mask = mask;
	b->g.from = gdk_ctz32(mask);
	b->g.rank = gdk_popc32(mask & below);
	b->g.size = gdk_popc32(mask);
	if (b->g.size > 1 && b->g.size * n <= b->q.depth)
		return gdk_batch_lanes(qp, b, mode, code_opt);
	return gdk_batch_alone(qp, b, mode, code_opt);
}

GDK_FN int gdk_batch_block(struct doca_gpu_dev_verbs_qp *qp, struct gdk_batch *b, gdk_mode_t mode,
			   uint32_t code_opt)
{
	const uint64_t slow = (uint64_t)GDK_SLOW << 32;
	uint64_t base = 0;

	b->g.mask = b->g.from = 0;
	b->g.rank = gdk_block_rank();
	b->g.size = gdk_block_size();
	gdk_block_sync();
	if (b->g.rank == 0 && gdk_batch_reserve(qp, b, mode, code_opt, &base))
		base |= slow;
	base = gdk_block_bcast64(base);
	gdk_batch_place(b, base & ~slow);
	return (base & slow) != 0;
}

/* The QP has ended, or the slots have to be waited for, by the thread that reserved. */
GDK_FN int gdk_batch_wait(struct doca_gpu_dev_verbs_qp *qp, struct gdk_batch *b, int block,
			  int scope, uint32_t code_opt)
{
	const uint64_t end = code_opt & GDK_OPT_SKIP_CHECK ? 0 : b->base + b->total;
	int err = 0;

	if (b->first) {
		err = gdk_reserve_wait(qp, b->q.st, b->base, end, b->q.depth, scope);
		b->x = gdk_early_of(b->q.st, scope);
	}
	if (block)
		return (int)(uint32_t)gdk_block_bcast64((uint32_t)err);
	return (int)gdk_shfl32m(b->g.mask, (uint32_t)err, b->g.from);
}

/* Every thread has its own extra slots. */
GDK_FN void gdk_batch_own_extra(struct gdk_batch *b, uint32_t slots)
{
	b->extra = b->idx + slots;
	b->lead = 1;
}

/* The first half of gdk_batch_begin. True: that was all, and the group is a whole warp of a
 * shared QP, of which the compiler knows mask, size and ranks; gdk_batch_end_whole may end it. */
GDK_FN int gdk_batch_whole(struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, uint32_t extra,
			   gdk_mode_t mode, gdk_exec_t exec, uint32_t code_opt, struct gdk_batch *b)
{
	uint64_t base;
	int slow = 0;

	GDK_UNSET(base);
	GDK_UNSET(b->x);
	b->whole = 0;
	b->g.slots = exec == GDK_THREAD ? slots + extra : slots;
	b->g.extra = exec == GDK_THREAD ? 0 : extra;
	/* Before the reservation, which takes the line that all this is in from the
	 * first-level cache. */
	b->wqes = gdk_wqes_of(qp);
	b->q = gdk_sq_but_flags(gdk_state_of_qp(qp), b->wqes.mask + 1);
	if (mode == GDK_EXCLUSIVE || exec == GDK_BLOCK_SCOPE)
		return 0;
	b->g.mask = exec == GDK_THREAD ? gdk_activemask() : 0;
	if (exec == GDK_WARP_SCOPE)
		gdk_syncwarp();
	else if (!gdk_is_whole(qp, b, code_opt))
		return 0;
	b->whole = 1;
	gdk_group_warp(&b->g);
	if (gdk_lane() == 0)
		slow = gdk_batch_reserve(qp, b, mode, code_opt, &base);
	b->base = gdk_shfl64m(gdk_warp_mask(), base, 0);
	if (GDK_RARE(gdk_ballot(slow)))
		return 0;
	gdk_batch_place(b, b->base);
	if (exec == GDK_THREAD)
		gdk_batch_own_extra(b, slots);
	return 1;
}

/* The second half: any group, or a whole warp that may have to wait. */
GDK_FN int gdk_batch_other(struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, gdk_mode_t mode,
			   gdk_exec_t exec, uint32_t code_opt, struct gdk_batch *b)
{
	const int scope = gdk_mode_scope(mode);
	int err = 0, slow = 1;

	if (b->whole)
		gdk_batch_place(b, b->base);
	else if (exec == GDK_BLOCK_SCOPE)
		slow = gdk_batch_block(qp, b, mode, code_opt);
	else if (exec == GDK_WARP_SCOPE)
		slow = gdk_batch_warp(qp, b, mode, code_opt);
	else if (mode == GDK_EXCLUSIVE)
		slow = gdk_batch_alone(qp, b, mode, code_opt);
	else
		slow = gdk_batch_peers(qp, b, mode, code_opt);
	if (exec == GDK_THREAD)
		gdk_batch_own_extra(b, slots);
	if (slow) {
		err = gdk_batch_wait(qp, b, exec == GDK_BLOCK_SCOPE, scope, code_opt);
		gdk_fence_load_store(scope);
	}
	return err;
}

/*
 * The threads of a warp or block meet before slots are reserved: one that still waits
 * for slots of its own would wait for the group's, and the group for it.
 * Reserves `slots` for every thread of the group and `extra` after them: for each
 * thread in THREAD scope, once for the group (and its lead) in the others, where all
 * threads call together with equal arguments. On an error nobody writes a slot, and
 * gdk_batch_end is not called.
 */
GDK_FN int gdk_batch_begin(struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, uint32_t extra,
			   gdk_mode_t mode, gdk_exec_t exec, uint32_t code_opt, struct gdk_batch *b)
{
	if (gdk_batch_whole(qp, slots, extra, mode, exec, code_opt, b))
		return 0;
	return gdk_batch_other(qp, slots, mode, exec, code_opt, b);
}

/* The group's other threads meet the one that acts for it. */
GDK_FN void gdk_batch_sync(const struct gdk_batch *b, gdk_mode_t mode, gdk_exec_t scope)
{
	if (scope == GDK_BLOCK_SCOPE)
		gdk_block_sync();
	else if (scope == GDK_WARP_SCOPE || (mode != GDK_EXCLUSIVE && b->whole))
		gdk_syncwarp();
	else if (mode != GDK_EXCLUSIVE)
		gdk_syncwarp_mask(b->g.mask);
}

/* All slots are written. Theirs, sync, and then the first's fence, which covers what
 * the sync showed it. After the second sync the group is converged again: without it, lanes
 * that need not ring go ahead, and groups fall apart under contention. */
GDK_FN void gdk_batch_end(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_batch *b,
			  gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t scope,
			  uint32_t code_opt)
{
	gdk_batch_sync(b, mode, scope);
	if (b->first)
		gdk_post_in(qp, &b->q, &b->x, b->wqes.qpn8_be, b->base, b->base + b->total - 1,
			    mode, handler, code_opt);
	gdk_batch_sync(b, mode, scope);
}

/* The same after gdk_batch_whole. */
GDK_FN void gdk_batch_end_whole(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_batch *b,
				gdk_mode_t mode, gdk_handler_t handler, uint32_t code_opt)
{
	gdk_syncwarp();
	if (gdk_lane() == 0)
		gdk_post_in(qp, &b->q, &b->x, b->wqes.qpn8_be, b->base, b->base + b->total - 1,
			    mode, handler, code_opt);
	gdk_syncwarp();
}

/* ---- reads and writes ---- */

/* The bytes from off on, or as many as a WQE has. */
GDK_FN uint32_t gdk_chunk(uint64_t size, uint64_t off)
{
	return (uint32_t)(size - off < GDK_CHUNK ? size - off : GDK_CHUNK);
}

/* The segments of a read or write after the first: they are made before its slot is known. */
struct gdk_rdma_segs {
	uint64_t w[4];
};

GDK_FN struct gdk_rdma_segs gdk_rdma_segs_of(struct doca_gpu_dev_verbs_addr raddr,
					     struct doca_gpu_dev_verbs_addr laddr, uint64_t off,
					     uint32_t bytes)
{
	struct gdk_rdma_segs s;

	s.w[0] = gdk_bswap64(raddr.addr + off);
	s.w[1] = gdk_pack(gdk_key_doca(raddr.key).be, 0);
	s.w[2] = gdk_pack(gdk_bswap32(bytes & 0x7fffffffu), gdk_key_doca(laddr.key).be);
	s.w[3] = gdk_bswap64(laddr.addr + off);
	return s;
}

/* One read or write; nothing to move is a NOP, for a length of 0 means 2 GiB. */
GDK_FN void gdk_wqe_move(const struct gdk_wqes *w, uint64_t idx, uint32_t op, uint32_t bytes,
			 const struct gdk_rdma_segs *s)
{
	struct doca_gpu_dev_verbs_wqe *wqe;

	if (bytes == 0) {
		(void)gdk_wqe_in(w, idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP, 1);
		return;
	}
	wqe = gdk_wqe_in(w, idx, op, 3);
	gdk_st_wqe16(gdk_seg(wqe, 1), s->w[0], s->w[1]);
	gdk_st_wqe16(gdk_seg(wqe, 2), s->w[2], s->w[3]);
}

GDK_FN uint64_t gdk_chunks(uint64_t size)
{
	return size ? (size + GDK_CHUNK - 1) / GDK_CHUNK : 1;
}

/* Does any thread of the group have more than one WQE's worth? */
GDK_FN int gdk_group_any(int pred, gdk_exec_t scope)
{
	if (scope == GDK_BLOCK_SCOPE)
		return gdk_block_any(pred);
	return scope == GDK_WARP_SCOPE ? gdk_ballot(pred) != 0 : pred;
}

/* Can all threads of the group have their slots (two at most) and `extra` at once? */
GDK_FN int gdk_group_fits(const struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, uint32_t extra,
			  gdk_exec_t scope)
{
	const uint32_t size = scope == GDK_BLOCK_SCOPE	? gdk_block_size()
			      : scope == GDK_WARP_SCOPE ? gdk_warp_size()
							: 1;

	return (scope == GDK_THREAD && slots + extra == 1) ||
	       size * slots + extra <= gdk_ldc32(&gdk_state_of_qp(qp)->depth);
}

/* Threads of a group that post each for itself are many, whatever the mode says. */
GDK_FN gdk_mode_t gdk_single_mode(gdk_mode_t mode, gdk_exec_t scope)
{
	return mode == GDK_EXCLUSIVE && scope != GDK_THREAD
		       ? DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
		       : mode;
}

/* By value: a pointer would put the caller's variables into local memory. */
struct gdk_posted {
	uint64_t ticket;
	int err;
};

/* In chunks, as many in one reservation as the ring holds; each thread for itself,
 * so that lanes of an exclusive warp are then many threads. */
GDK_SLOW_FN struct gdk_posted gdk_move_long(struct doca_gpu_dev_verbs_qp *qp, uint32_t op,
					    struct doca_gpu_dev_verbs_addr raddr,
					    struct doca_gpu_dev_verbs_addr laddr, uint64_t size,
					    gdk_mode_t mode, gdk_handler_t handler,
					    uint32_t code_opt)
{
	const uint32_t depth = gdk_ldc32(&gdk_state_of_qp(qp)->depth);
	uint64_t chunks = gdk_chunks(size), off = 0, base, i;
	const struct gdk_wqes w = gdk_wqes_of(qp);
	struct gdk_posted done = { 0, 0 };
	struct gdk_rdma_segs segs;
	uint32_t n;

	do {
		n = chunks < depth ? (uint32_t)chunks : depth;
		done.err = gdk_reserve(qp, n, mode, code_opt, &base);
		done.ticket = base + n - 1;
		if (done.err)
			break;
		for (i = 0; i < n; i++, off += GDK_CHUNK) {
			segs = gdk_rdma_segs_of(raddr, laddr, off, gdk_chunk(size, off));
			gdk_wqe_move(&w, base + i, op, gdk_chunk(size, off), &segs);
		}
		gdk_post(qp, base, done.ticket, mode, handler, code_opt);
		chunks -= n;
	} while (chunks);
	return done;
}

/* Moves size bytes for every thread of the group; each gets its own ticket, that of
 * its last WQE. */
GDK_FN int gdk_move(struct doca_gpu_dev_verbs_qp *qp, uint32_t op,
		    struct doca_gpu_dev_verbs_addr raddr, struct doca_gpu_dev_verbs_addr laddr,
		    uint64_t size, doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode,
		    gdk_handler_t handler, gdk_exec_t scope, uint32_t code_opt)
{
	struct gdk_rdma_segs segs;
	struct gdk_posted done;
	struct gdk_batch b;
	int err;

	if (gdk_group_any(size > GDK_CHUNK, scope) || !gdk_group_fits(qp, 1, 0, scope)) {
		done = gdk_move_long(qp, op, raddr, laddr, size, gdk_single_mode(mode, scope),
				     handler, code_opt);
		*ticket = done.ticket;
		return done.err;
	}
	segs = gdk_rdma_segs_of(raddr, laddr, 0, (uint32_t)size);
	GDK_COMPUTED(segs.w[0]);
	GDK_COMPUTED(segs.w[3]);
	if (scope == GDK_THREAD && gdk_is_one(mode, handler)) {
		const struct gdk_one one = { size ? op : (uint32_t)DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP,
					     size ? 3u : 1u,
					     { segs.w[0], segs.w[1], segs.w[2], segs.w[3], 0, 0 } };

		return gdk_post_one(qp, &one, ticket, handler, code_opt);
	}
	if (gdk_batch_whole(qp, 1, 0, mode, scope, code_opt, &b)) {
		*ticket = b.idx;
		gdk_wqe_move(&b.wqes, b.idx, op, (uint32_t)size, &segs);
		gdk_batch_end_whole(qp, &b, mode, handler, code_opt);
		return 0;
	}
	err = gdk_batch_other(qp, 1, mode, scope, code_opt, &b);
	*ticket = b.idx;
	if (err)
		return err;
	gdk_wqe_move(&b.wqes, b.idx, op, (uint32_t)size, &segs);
	gdk_batch_end(qp, &b, mode, handler, scope, code_opt);
	return 0;
}

#endif
