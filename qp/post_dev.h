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

#include "qp_dev.h"

#define GDK_CHUNK DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE /* most bytes of one WQE */

typedef enum doca_gpu_dev_verbs_exec_scope gdk_exec_t;
#define GDK_THREAD DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define GDK_WARP_SCOPE DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define GDK_BLOCK_SCOPE GDK_EXEC_SCOPE_BLOCK

struct gdk_batch {
	uint64_t idx;	/* first of this thread's slots */
	uint64_t extra; /* first of the extra slots, which come after */
	uint64_t base;	/* of the group */
	uint32_t total; /* slots of the group */
	uint32_t mask;	/* lanes of the group in THREAD scope; 0: one thread alone */
	int lead;	/* writes the extra slots */
	int first;	/* reserves, publishes and rings for the group */
	struct gdk_sq q;
	struct gdk_early x; /* of `first` */
};

/* The converged lanes that post as many slots to the same QP. */
GDK_FN uint32_t gdk_peers(const struct doca_gpu_dev_verbs_qp *qp, uint32_t n)
{
	const uint32_t active = gdk_activemask(), some = gdk_ctz32(active);
	/* Addresses have less than 49 bits, and who reserves 32768 slots is alone. */
	const uint64_t key = (uint64_t)(uintptr_t)qp ^ (uint64_t)n << 49;

	if (active == 1u << some ||
	    gdk_ballot_mask(active, gdk_shfl64m(active, key, some) == key) == active)
		return active;
	return gdk_match64(active, key);
}

#define GDK_FAILED ((uint64_t)1 << 63) /* in a base that is handed round: an error follows */

GDK_FN void gdk_batch_place(struct gdk_batch *b, uint32_t rank, uint32_t size, uint32_t slots,
			    uint32_t extra)
{
	b->base &= ~GDK_FAILED;
	b->idx = b->base + rank * slots;
	b->extra = b->base + size * slots;
	b->total = size * slots + extra;
	b->lead = b->first = rank == 0;
}

/* Every thread has its own extra slots. */
GDK_FN int gdk_batch_lanes(struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, uint32_t extra,
			   gdk_mode_t mode, uint32_t code_opt, struct gdk_batch *b)
{
	const uint32_t n = slots + extra, lane = gdk_lane();
	uint32_t first = lane, size = 1;
	int err = 0;

	b->mask = mode == GDK_EXCLUSIVE ? 0 : gdk_peers(qp, n);
	if (b->mask) {
		first = gdk_ctz32(b->mask);
		size = gdk_popc32(b->mask);
		if (size == 1 || (uint64_t)size * n > b->q.depth) {
			first = lane;
			size = 1;
			b->mask = 0;
		}
	}
	if (lane == first)
		err = gdk_reserve_in(qp, &b->q, n * size, mode, code_opt, &b->base, &b->x);
	if (b->mask) {
		b->base = gdk_shfl64m(b->mask, b->base | (err ? GDK_FAILED : 0), first);
		if (b->base & GDK_FAILED)
			err = (int)(uint32_t)gdk_shfl64m(b->mask, (uint32_t)err, first);
		gdk_batch_place(b, gdk_popc32(b->mask & ((1u << lane) - 1)), size, n, 0);
	} else {
		gdk_batch_place(b, 0, 1, n, 0);
	}
	b->extra = b->idx + slots;
	b->lead = 1;
	return err;
}

GDK_FN int gdk_batch_warp(struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, uint32_t extra,
			  gdk_mode_t mode, uint32_t code_opt, struct gdk_batch *b)
{
	const uint32_t lane = gdk_lane(), size = gdk_warp_size();
	int err = 0;

	b->mask = 0;
	gdk_syncwarp();
	if (lane == 0)
		err = gdk_reserve_in(qp, &b->q, size * slots + extra, mode, code_opt, &b->base,
				     &b->x);
	b->base = gdk_shfl64(b->base | (err ? GDK_FAILED : 0), 0);
	if (b->base & GDK_FAILED)
		err = (int)(uint32_t)gdk_shfl64((uint32_t)err, 0);
	gdk_batch_place(b, lane, size, slots, extra);
	return err;
}

GDK_FN int gdk_batch_block(struct doca_gpu_dev_verbs_qp *qp, uint32_t slots, uint32_t extra,
			   gdk_mode_t mode, uint32_t code_opt, struct gdk_batch *b)
{
	const uint32_t rank = gdk_block_rank(), size = gdk_block_size();
	int err = 0;

	b->mask = 0;
	gdk_block_sync();
	if (rank == 0)
		err = gdk_reserve_in(qp, &b->q, size * slots + extra, mode, code_opt, &b->base,
				     &b->x);
	b->base = gdk_block_bcast64(b->base | (err ? GDK_FAILED : 0));
	if (b->base & GDK_FAILED)
		err = (int)(uint32_t)gdk_block_bcast64((uint32_t)err);
	gdk_batch_place(b, rank, size, slots, extra);
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
			   gdk_mode_t mode, gdk_exec_t scope, uint32_t code_opt,
			   struct gdk_batch *b)
{
	const struct gdk_early none = { 0, 0, 0, 0, 0 };

	b->base = 0;
	b->x = none;
	b->q = gdk_sq_of(qp);
	if (scope == GDK_BLOCK_SCOPE)
		return gdk_batch_block(qp, slots, extra, mode, code_opt, b);
	if (scope == GDK_WARP_SCOPE)
		return gdk_batch_warp(qp, slots, extra, mode, code_opt, b);
	return gdk_batch_lanes(qp, slots, extra, mode, code_opt, b);
}

/* The group's other threads meet the one that acts for it. */
GDK_FN void gdk_batch_sync(const struct gdk_batch *b, gdk_exec_t scope)
{
	if (scope == GDK_BLOCK_SCOPE)
		gdk_block_sync();
	else if (scope == GDK_WARP_SCOPE)
		gdk_syncwarp();
	else if (b->mask)
		gdk_syncwarp_mask(b->mask);
}

/* All slots are written. Theirs, sync, and then the first's fence, which covers what
 * the sync showed it. After the second sync the group is converged again. */
GDK_FN void gdk_batch_end(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_batch *b,
			  gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t scope,
			  uint32_t code_opt)
{
	gdk_batch_sync(b, scope);
	if (b->first)
		gdk_post_in(qp, &b->q, &b->x, b->base, b->base + b->total - 1, mode, handler,
			    code_opt);
	gdk_batch_sync(b, scope);
}

/* ---- reads and writes ---- */

/* One read or write; nothing to move is a NOP, for a length of 0 means 2 GiB. */
GDK_FN void gdk_wqe_move(const struct doca_gpu_dev_verbs_qp *qp, uint64_t idx, uint32_t op,
			 struct doca_gpu_dev_verbs_addr raddr,
			 struct doca_gpu_dev_verbs_addr laddr, uint64_t off, uint64_t size)
{
	struct doca_gpu_dev_verbs_wqe *wqe = gdk_get_wqe_ptr(qp, idx);
	const uint64_t left = size - off;

	if (size == 0)
		gdk_wqe_nop(qp, wqe, (uint16_t)idx, GDK_CE_ALWAYS);
	else
		gdk_wqe_rdma(qp, wqe, (uint16_t)idx, op, GDK_CE_ALWAYS, 0, raddr.addr + off,
			     gdk_key_doca(raddr.key), laddr.addr + off, gdk_key_doca(laddr.key),
			     (uint32_t)(left < GDK_CHUNK ? left : GDK_CHUNK));
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
	const uint32_t size = scope == GDK_BLOCK_SCOPE ? gdk_block_size() :
			      scope == GDK_WARP_SCOPE  ? gdk_warp_size() : 1;

	return (scope == GDK_THREAD && slots + extra == 1) ||
	       size * slots + extra <= gdk_ldc32(&gdk_state_of_qp(qp)->depth);
}

/* Threads of a group that post each for itself are many, whatever the mode says. */
GDK_FN gdk_mode_t gdk_single_mode(gdk_mode_t mode, gdk_exec_t scope)
{
	return mode == GDK_EXCLUSIVE && scope != GDK_THREAD ?
		       DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA : mode;
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
	struct gdk_posted done = { 0, 0 };
	uint32_t n;

	do {
		n = chunks < depth ? (uint32_t)chunks : depth;
		done.err = gdk_reserve(qp, n, mode, code_opt, &base);
		done.ticket = base + n - 1;
		if (done.err)
			break;
		for (i = 0; i < n; i++, off += GDK_CHUNK)
			gdk_wqe_move(qp, base + i, op, raddr, laddr, off, size);
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
	struct gdk_posted done;
	struct gdk_batch b;
	int err;

	if (gdk_group_any(size > GDK_CHUNK, scope) || !gdk_group_fits(qp, 1, 0, scope)) {
		done = gdk_move_long(qp, op, raddr, laddr, size, gdk_single_mode(mode, scope),
				     handler, code_opt);
		*ticket = done.ticket;
		return done.err;
	}
	err = gdk_batch_begin(qp, 1, 0, mode, scope, code_opt, &b);
	*ticket = b.idx;
	if (err)
		return err;
	gdk_wqe_move(qp, b.idx, op, raddr, laddr, 0, size);
	gdk_batch_end(qp, &b, mode, handler, scope, code_opt);
	return 0;
}

#endif
