/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What every one-sided operation is: bytes moved in pieces, one WQE each, or a
 * wait, and at most one WQE after that (a signal, or a dump). One body posts them
 * all: chunks, rings shorter than an operation, tickets and scopes are settled here.
 */
#ifndef GDK_OP_DEV_H
#define GDK_OP_DEV_H

#include "../../device/gdk/post_dev.h"

#define GDK_INLINE DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE /* bytes that one WQE carries */

enum gdk_move_kind {
	GDK_MOVE_NONE,
	GDK_MOVE_WRITE,
	GDK_MOVE_READ,
	GDK_MOVE_INLINE, /* data, in place of laddr */
	GDK_MOVE_WAIT,	 /* nothing moves: waits for CQE raddr.addr of CQ raddr.key */
};
enum gdk_tail_kind { GDK_TAIL_NONE, GDK_TAIL_ADD, GDK_TAIL_SET, GDK_TAIL_DUMP };

struct gdk_op_move {
	enum gdk_move_kind kind;
	struct doca_gpu_dev_verbs_addr raddr, laddr;
	const void *data;
	uint64_t size;
};

struct gdk_op_tail {
	enum gdk_tail_kind kind;
	struct doca_gpu_dev_verbs_addr raddr; /* the word that a signal changes */
	struct doca_gpu_dev_verbs_addr laddr; /* gets its old value on addition; is dumped */
	uint64_t value;
};

struct gdk_op {
	struct gdk_op_move move;
	struct gdk_op_tail tail;
};

GDK_FN struct doca_gpu_dev_verbs_addr gdk_no_addr(void)
{
	const struct doca_gpu_dev_verbs_addr none = { 0, 0 };

	return none;
}

GDK_FN uint64_t gdk_move_step(const struct gdk_op_move *m)
{
	return m->kind == GDK_MOVE_INLINE ? (uint64_t)GDK_INLINE : (uint64_t)GDK_CHUNK;
}

/* Nothing to move takes a slot too: every operation has a ticket. */
GDK_FN uint64_t gdk_move_pieces(const struct gdk_op_move *m)
{
	const uint64_t step = gdk_move_step(m);

	if (m->kind == GDK_MOVE_NONE)
		return 0;
	return m->size > step ? (m->size + step - 1) / step : 1;
}

/* Piece i in slot idx; a length of 0 would mean 2 GiB, so that is a NOP. */
GDK_FN void gdk_move_write(const struct gdk_wqes *w, const struct gdk_op_move *m, uint64_t i,
			   uint64_t idx)
{
	const uint64_t step = gdk_move_step(m), off = i * step, left = m->size - off;
	const uint32_t bytes = (uint32_t)(left < step ? left : step);
	struct doca_gpu_dev_verbs_wqe *wqe;
	struct gdk_rdma_segs segs;

	if (m->kind == GDK_MOVE_WAIT) {
		wqe = gdk_wqe_in(w, idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT, 2);
		gdk_seg_wait(wqe, (uint32_t)m->raddr.addr, m->raddr.key);
	} else if (m->size != 0 && m->kind == GDK_MOVE_INLINE) {
		gdk_write_inl_in(w, idx, m->raddr.addr + off, gdk_key_doca(m->raddr.key),
				 (const uint8_t *)m->data + off, bytes);
	} else {
		segs = gdk_rdma_segs_of(m->raddr, m->laddr, off, bytes);
		gdk_wqe_move(w, idx,
			     m->kind == GDK_MOVE_READ ? DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ
						      : DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
			     bytes, &segs);
	}
}

GDK_FN void gdk_tail_write(const struct gdk_wqes *w, const struct gdk_op_tail *t, uint64_t idx)
{
	const uint32_t add = DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA;
	const gdk_key_t rkey = gdk_key_doca(t->raddr.key), lkey = gdk_key_doca(t->laddr.key);

	if (t->kind == GDK_TAIL_ADD)
		gdk_segs_atomic(gdk_wqe_in(w, idx, add, 4), add, t->raddr.addr, rkey, t->laddr.addr,
				lkey, 8, t->value, 0);
	else if (t->kind == GDK_TAIL_SET)
		gdk_write_inl_in(w, idx, t->raddr.addr, rkey, &t->value, 8);
	else
		gdk_seg_data(gdk_wqe_in(w, idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP, 2), 1,
			     t->laddr.addr, lkey, 1);
}

/*
 * Posts op, as many pieces in one reservation as the ring holds. The pieces and
 * the tail follow each other in the queue; in between there may be WQEs of
 * other threads when the operation is longer than the ring.
 */
GDK_SLOW_FN int gdk_op_post(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_op *op,
			    doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode,
			    gdk_handler_t handler, uint32_t code_opt)
{
	const uint32_t depth = gdk_ldc32(&gdk_state_of_qp(qp)->depth);
	const uint64_t pieces = gdk_move_pieces(&op->move);
	const uint64_t total = pieces + (op->tail.kind != GDK_TAIL_NONE);
	const struct gdk_wqes w = gdk_wqes_of(qp);
	uint64_t at = 0, base, i;
	uint32_t n;
	int err;

	do {
		n = total - at < depth ? (uint32_t)(total - at) : depth;
		err = gdk_reserve(qp, n, mode, code_opt, &base);
		*ticket = base + n - 1;
		if (err)
			return err;
		for (i = at; i < at + n && i < pieces; i++)
			gdk_move_write(&w, &op->move, i, base + (i - at));
		at += n;
		if (at > pieces)
			gdk_tail_write(&w, &op->tail, *ticket);
		gdk_post(qp, base, *ticket, mode, handler, code_opt);
	} while (at < total);
	return 0;
}

/*
 * By every thread of the group: one reservation and one doorbell for all, where each
 * has one piece at most and the ring holds them all; else each posts by itself. In a
 * group's queue the tail follows its thread's piece; a dump follows all pieces, once,
 * and is everybody's ticket.
 */
GDK_FN int gdk_op_run(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_op *op,
		      doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode, gdk_handler_t handler,
		      gdk_exec_t scope, uint32_t code_opt)
{
	const uint32_t piece = op->move.kind != GDK_MOVE_NONE;
	const uint32_t dump = op->tail.kind == GDK_TAIL_DUMP && scope != GDK_THREAD;
	const uint32_t tail = op->tail.kind != GDK_TAIL_NONE && !dump;
	struct gdk_batch b;
	int err;

	if (gdk_group_any(gdk_move_pieces(&op->move) > 1, scope) ||
	    !gdk_group_fits(qp, piece + tail, dump, scope)) {
		const struct gdk_op copy = *op; /* so that *op itself may be in registers */

		return gdk_op_post(qp, &copy, ticket, gdk_single_mode(mode, scope), handler,
				   code_opt);
	}
	err = gdk_batch_begin(qp, piece + tail, dump, mode, scope, code_opt, &b);
	*ticket = dump ? b.extra : b.idx + piece + tail - 1;
	if (err)
		return err;
	if (piece)
		gdk_move_write(&b.wqes, &op->move, 0, b.idx);
	if (tail || (dump && b.lead))
		gdk_tail_write(&b.wqes, &op->tail, *ticket);
	gdk_batch_end(qp, &b, mode, handler, scope, code_opt);
	return 0;
}

#endif
