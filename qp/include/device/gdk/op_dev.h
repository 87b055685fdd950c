/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Operations. gdk_op_run() posts every operation. It alone cuts transfers into pieces, computes
 * tickets, executes operations for groups of threads, and posts operations that need more slots
 * than the ring has. An operation begins with the pieces of a transfer, one WQE each, or with one
 * WAIT WQE, which makes the NIC wait for a CQE of another CQ. At most one WQE follows, the tail: a
 * signal, an atomic operation or a dump (onesided_dev.h).
 */
#ifndef GDK_OP_DEV_H
#define GDK_OP_DEV_H

#include "device/gdk/post_dev.h"

#define GDK_CHUNK  DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE /* most bytes that one WQE transfers */
#define GDK_INLINE DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE	 /* most bytes of data inside one WQE */

enum gdk_move_kind {
	GDK_MOVE_NONE,
	GDK_MOVE_WRITE,
	GDK_MOVE_WRITE_IMM, /* one WQE, of 1 to GDK_CHUNK bytes */
	GDK_MOVE_READ,
	GDK_MOVE_INLINE, /* the WQE contains `data`; laddr is not used */
	GDK_MOVE_SEND,	 /* one message of up to GDK_CHUNK bytes; raddr is not used */
	GDK_MOVE_SEND_IMM,
	GDK_MOVE_WAIT, /* moves no data: waits for CQE raddr.addr of CQ number raddr.key */
};
enum gdk_tail_kind { GDK_TAIL_NONE, GDK_TAIL_ADD, GDK_TAIL_CAS, GDK_TAIL_SET, GDK_TAIL_DUMP };

struct gdk_op_move {
	enum gdk_move_kind kind;
	struct doca_gpu_dev_verbs_addr raddr, laddr;
	const void *data;
	uint64_t size;
	uint32_t imm_be;
};

/* The tail of an operation is its last WQE, after those that move data. It changes the 8-byte word
 * at raddr, or is a dump WQE for laddr. */
struct gdk_op_tail {
	enum gdk_tail_kind kind;
	struct doca_gpu_dev_verbs_addr raddr;
	struct doca_gpu_dev_verbs_addr laddr; /* gets the old value (ADD, CAS), or is read (DUMP) */
	uint64_t value, compare;	      /* compare: used by CAS only */
};

struct gdk_op {
	struct gdk_op_move move;
	struct gdk_op_tail tail;
};

/* A signal. It changes the 8-byte word at raddr. */
struct gdk_signal {
	enum doca_gpu_dev_verbs_signal_op op;
	struct doca_gpu_dev_verbs_addr raddr, laddr; /* an addition stores the old value at laddr */
	uint64_t value;
};

GDK_FN struct gdk_signal gdk_signal_of(enum doca_gpu_dev_verbs_signal_op op,
				       struct doca_gpu_dev_verbs_addr raddr,
				       struct doca_gpu_dev_verbs_addr laddr, uint64_t value)
{
	const struct gdk_signal s = { op, raddr, laddr, value };

	return s;
}

GDK_FN struct gdk_op_move gdk_move_of(enum gdk_move_kind kind, struct doca_gpu_dev_verbs_addr raddr,
				      struct doca_gpu_dev_verbs_addr laddr, uint64_t size)
{
	const struct gdk_op_move m = { kind, raddr, laddr, NULL, size, 0 };

	return m;
}

GDK_FN struct gdk_op_move gdk_move_inline(struct doca_gpu_dev_verbs_addr raddr, const void *data,
					  uint64_t size)
{
	struct gdk_op_move m = gdk_move_of(GDK_MOVE_INLINE, raddr, raddr, size);

	m.data = data;
	return m;
}

GDK_FN struct gdk_op_move gdk_move_none(void)
{
	const struct doca_gpu_dev_verbs_addr none = { 0, 0 };

	return gdk_move_of(GDK_MOVE_NONE, none, none, 0);
}

GDK_FN struct gdk_op_tail gdk_tail_of(enum gdk_tail_kind kind, struct doca_gpu_dev_verbs_addr raddr,
				      struct doca_gpu_dev_verbs_addr laddr, uint64_t value)
{
	const struct gdk_op_tail t = { kind, raddr, laddr, value, 0 };

	return t;
}

GDK_FN struct gdk_op_tail gdk_tail_none(void)
{
	const struct doca_gpu_dev_verbs_addr none = { 0, 0 };

	return gdk_tail_of(GDK_TAIL_NONE, none, none, 0);
}

GDK_FN struct gdk_op_tail gdk_tail_signal(struct gdk_signal s)
{
	return gdk_tail_of(s.op == GDK_SIGNAL_OP_SET ? GDK_TAIL_SET : GDK_TAIL_ADD, s.raddr,
			   s.laddr, s.value);
}

GDK_FN struct gdk_op_tail gdk_tail_dump(struct doca_gpu_dev_verbs_addr daddr)
{
	return gdk_tail_of(GDK_TAIL_DUMP, daddr, daddr, 0);
}

GDK_FN uint64_t gdk_move_step(const struct gdk_op_move *m)
{
	return m->kind == GDK_MOVE_INLINE ? (uint64_t)GDK_INLINE : (uint64_t)GDK_CHUNK;
}

GDK_FN int gdk_move_is_send(const struct gdk_op_move *m)
{
	return m->kind == GDK_MOVE_SEND || m->kind == GDK_MOVE_SEND_IMM;
}

/* Returns the number of pieces. A transfer of 0 bytes has one piece, a NOP: every operation needs a
 * slot for its ticket. GDK_MOVE_NONE has no piece; the slot of its tail is the ticket. */
GDK_FN uint64_t gdk_move_pieces(const struct gdk_op_move *m)
{
	const uint64_t step = gdk_move_step(m);

	if (m->kind == GDK_MOVE_NONE)
		return 0;
	if (m->kind == GDK_MOVE_WRITE_IMM || m->kind == GDK_MOVE_WAIT || gdk_move_is_send(m))
		return 1;
	return m->size > step ? (m->size + step - 1) / step : 1;
}

/* A move is split into pieces, one WQE each. Returns the size of the largest of these WQEs, in
 * segments of 16 bytes. */
GDK_FN uint32_t gdk_move_segments(const struct gdk_op_move *m)
{
	if (m->kind == GDK_MOVE_INLINE)
		return m->size > 12 ? 4 : 3;
	return m->kind == GDK_MOVE_WAIT || gdk_move_is_send(m) ? 2 : 3;
}

GDK_FN uint32_t gdk_tail_segments(const struct gdk_op_tail *t)
{
	return t->kind == GDK_TAIL_SET ? 3 : t->kind == GDK_TAIL_DUMP ? 2 : 4;
}

/* Returns the WQE of piece i. For the NIC a length of 0 means 2 GiB. So a transfer of 0 bytes is a
 * NOP, and a send of 0 bytes has no data segment. */
GDK_FN struct gdk_one gdk_move_one(const struct gdk_op_move *m, uint64_t i)
{
	const uint64_t step = gdk_move_step(m), off = i * step, rest = m->size - off;
	const uint32_t bytes = (uint32_t)(rest < step ? rest : step);
	const uint32_t op = m->kind == GDK_MOVE_READ ? DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ
			    : m->kind == GDK_MOVE_WRITE_IMM
				    ? DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM
				    : DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE;
	struct gdk_one one;

	if (m->kind == GDK_MOVE_WAIT) {
		one = gdk_one_of(DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT, 2);
		one.w[1] = gdk_pack(gdk_bswap32((uint32_t)m->raddr.addr),
				    gdk_bswap32(m->raddr.key));
		return one;
	}
	if (gdk_move_is_send(m)) {
		one = gdk_one_of(m->kind == GDK_MOVE_SEND ? DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND
							  : DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_IMM,
				 bytes ? 2 : 1);
		one.imm_be = m->imm_be;
		gdk_one_data(&one, 0, m->laddr.addr, gdk_key_doca(m->laddr.key), bytes);
		return one;
	}
	if (m->size != 0 && m->kind == GDK_MOVE_INLINE)
		return gdk_one_inline(m->raddr.addr + off, gdk_key_doca(m->raddr.key),
				      (const uint8_t *)m->data + off, bytes);
	one = gdk_one_of(bytes ? op : (uint32_t)DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP, bytes ? 3 : 1);
	one.imm_be = m->imm_be;
	gdk_one_raddr(&one, m->raddr.addr + off, gdk_key_doca(m->raddr.key));
	gdk_one_data(&one, 2, m->laddr.addr + off, gdk_key_doca(m->laddr.key), bytes);
	return one;
}

GDK_FN struct gdk_one gdk_tail_one(const struct gdk_op_tail *t)
{
	const int cas = t->kind == GDK_TAIL_CAS;
	const gdk_key_t rkey = gdk_key_doca(t->raddr.key), lkey = gdk_key_doca(t->laddr.key);
	struct gdk_one one;

	if (t->kind == GDK_TAIL_SET)
		return gdk_one_inline(t->raddr.addr, rkey, &t->value, 8);
	if (t->kind == GDK_TAIL_DUMP) {
		one = gdk_one_of(DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP, 2);
		gdk_one_data(&one, 0, t->laddr.addr, lkey, 1);
		return one;
	}
	one = gdk_one_of(cas ? DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS
			     : DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA,
			 4);
	gdk_one_raddr(&one, t->raddr.addr, rkey);
	one.w[2] = gdk_bswap64(t->value);
	one.w[3] = cas ? gdk_bswap64(t->compare) : 0;
	gdk_one_data(&one, 4, t->laddr.addr, lkey, 8);
	return one;
}

/* Returns whether pred is true for any thread of the group. */
GDK_FN int gdk_group_any(int pred, gdk_exec_t exec)
{
	if (exec == GDK_BLOCK_SCOPE)
		return gdk_block_any(pred);
	return exec == GDK_WARP_SCOPE ? gdk_ballot(pred) != 0 : pred;
}

/* ---- rare operations ---- */

/* Posts one WQE in exclusive use. The function is inlined into every operation, so it is small
 * rather than fast: it calls functions for most of its work. Stores the index of the WQE's slot in
 * *ticket. Returns 0 or the status that ended the QP. */
GDK_FN int gdk_own_single(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_one *one,
			  doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct gdk_post p;
	int err;

	GDK_UNSET(p);
	p.st = gdk_state_of_qp(qp);
	p.base = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_THREAD);
	p.db.pi = p.base + 1;
	p.total = 1;
	*ticket = p.base;
	how.handler = gdk_handler_of(qp, how.handler);
	err = gdk_own_make_plain(qp, &p, 1, how.handler, how.opt);
	/* Loaded after gdk_own_make_plain(), so that it occupies no registers during that call. */
	p.wqes = gdk_wqes_of_qp(qp);
	gdk_own_prepare(qp, &p, how.opt);
	if (err)
		return err;
	gdk_fence_load_store(GDK_SCOPE_THREAD); /* orders the check for free slots before the WQE */
	gdk_one_write(&p.wqes, p.base, one, 4);
	gdk_own_end(&p, how.handler, how.opt, 1);
	return 0;
}

GDK_FN int gdk_shared_single(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_one *one,
			     doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const uint32_t what = (uint32_t)gdk_handler(st, how.handler) |
			      (how.opt & GDK_OPT_SKIP_DB ? GDK_NO_RING : 0);
	const struct gdk_wqes w = gdk_wqes_of(st);
	const uint64_t idx = gdk_rmw_add64(gdk_rsvd_index(qp), 1, GDK_SCOPE_GPU);
	const int room = idx > w.mask && !(how.opt & GDK_OPT_SKIP_CHECK);
	uint64_t at;
	int err;

	*ticket = idx;
	err = gdk_shared_slow(st, idx, w.mask, GDK_QP_LIMIT,
			      room ? GDK_RING | GDK_WANT | GDK_WAIT | GDK_WAIT_ROOM : 0);
	if (err)
		return err;
	gdk_fence_load_store(GDK_SCOPE_GPU); /* orders the check for free slots before the WQE */
	gdk_one_write(&w, idx, one, 4);
	at = gdk_mode_scope(how.mode) == GDK_SCOPE_CTA ? gdk_post_cta(st, idx, 1, 0, what)
						       : gdk_post_gpu(st, idx, 1, 0, what);
	if (at != GDK_TOKEN_ELSEWHERE)
		(void)gdk_shared_slow(st, at, 0, 0, GDK_SERVE);
	return 0;
}

/*
 * Posts the WQEs of one thread's operation one after the other. Between them there may be WQEs of
 * other threads. gdk_op_run() calls it if the WQEs of the operation or of its group cannot be
 * reserved at once, and if an operation of exclusive use is not plain (post_dev.h). Returns what
 * gdk_op_run() returns.
 */
GDK_FN int gdk_op_by_one(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_op *op,
			 doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const uint64_t pieces = gdk_move_pieces(&op->move);
	const uint64_t end = pieces + (op->tail.kind != GDK_TAIL_NONE);
	struct gdk_one one;
	uint64_t i = 0;
	int err;

	GDK_LOOP
	do {
		one = i < pieces ? gdk_move_one(&op->move, i) : gdk_tail_one(&op->tail);
		err = how.mode == GDK_EXCLUSIVE ? gdk_own_single(qp, &one, ticket, how)
						: gdk_shared_single(qp, &one, ticket, how);
	} while (!err && ++i < end);
	return err;
}

/* Calls gdk_op_by_one() in each thread of the group in turn. */
GDK_FN int gdk_op_in_turn(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_op *op,
			  doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	uint32_t turn;
	int err = 0;

	if (how.exec == GDK_THREAD)
		return gdk_op_by_one(qp, op, ticket, how);
	GDK_LOOP
	for (turn = 0; turn < gdk_exec_size(how.exec); turn++) {
		if (turn == gdk_exec_rank(how.exec))
			err = gdk_op_by_one(qp, op, ticket, how);
		gdk_exec_sync(how.exec);
	}
	return err;
}

/*
 * Returns 1 if the threads of the group must post in turn, because one of them has several pieces.
 * Large values of gdk_p() are an exception: their pieces are reserved at once if all threads have
 * the same number of pieces.
 */
GDK_FN int gdk_op_differs(const struct gdk_op_move *m, uint64_t pieces, gdk_exec_t exec)
{
	uint64_t first;

	if (!GDK_RARE(gdk_group_any(pieces > 1, exec)))
		return 0;
	if (m->kind != GDK_MOVE_INLINE)
		return 1;
	if (exec == GDK_THREAD)
		return 0;
	first = exec == GDK_BLOCK_SCOPE ? gdk_block_bcast64(pieces) : gdk_shfl64(pieces, 0);
	return gdk_group_any(pieces != first, exec);
}

/* Computes the first WQE of an operation without a tail. gdk_op_run() calls it before the branch
 * that depends on the state of *qp, so that the WQE is computed while the loads of this state are
 * in flight. The call also makes the compiler use one base address for these loads. It is not made
 * for an operation with a tail, because it would cost registers. */
GDK_FN struct gdk_one gdk_op_early(struct doca_gpu_dev_verbs_qp **qp, const struct gdk_op *op)
{
	struct gdk_one one = gdk_move_one(&op->move, 0);

	GDK_COMPUTED(one.w[0]);
	GDK_COMPUTED(one.w[1]);
	GDK_COMPUTED(one.w[2]);
	GDK_COMPUTED(one.w[3]);
	GDK_COMPUTED(*qp);
	return one;
}

/*
 * Executes op for every thread of the group. In WARP and BLOCK scope all threads call it with the
 * same `how`. Each thread has its own op, of the same kind, and gets its own ticket: the index of
 * its last WQE. The group makes one reservation and rings one doorbell. Rank 0 writes the dump of a
 * group once, behind the slots of all threads, and all threads get the ticket of the dump. If the
 * transfer of a thread needs several WQEs (gdk_op_differs() describes the only exception), or if
 * the group needs more than gdk_op_most() slots, the threads post one after the other instead, each
 * WQE by itself.
 * Returns 0 or the status that ended the QP.
 */
GDK_FN int gdk_op_run(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_op *op,
		      doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const int dump = op->tail.kind == GDK_TAIL_DUMP && how.exec != GDK_THREAD;
	const uint64_t pieces = gdk_move_pieces(&op->move);
	const int differs = gdk_op_differs(&op->move, pieces, how.exec);
	const uint64_t moves = op->move.kind == GDK_MOVE_INLINE ? pieces
								: op->move.kind != GDK_MOVE_NONE;
	const uint64_t slots = moves + (op->tail.kind != GDK_TAIL_NONE && !dump);
	const uint64_t total = gdk_exec_size(how.exec) * slots + (uint32_t)dump;
	const int own = how.exec == GDK_THREAD && how.mode == GDK_EXCLUSIVE;
	const int early = own && op->tail.kind == GDK_TAIL_NONE;
	const uint32_t n = (uint32_t)slots;
	gdk_handler_t handler = how.handler;
	struct gdk_post p;
	struct gdk_one one;
	uint32_t i;
	int err, slow_path;

	GDK_UNSET(one);
	if (own) {
		/* A branch costs a lone thread 30 ns. So before the WQEs are written, there is only
		 * the branch below that ends in gdk_op_by_one(). `early` is known at compile time
		 * in most calls. */
		if (early)
			one = gdk_op_early(&qp, op);
		GDK_UNSET(p);
		p.st = gdk_state_of_qp(qp);
		p.wqes = gdk_wqes_of_qp(qp);
		p.total = n;
		handler = gdk_handler_of(qp, how.handler);
		slow_path = gdk_own_plain(qp, &p, n, handler, how.opt);
		if (GDK_RARE(slow_path | differs |
			     (total > 1 && total > gdk_op_most(p.wqes.mask + 1))))
			return gdk_op_by_one(qp, op, ticket, how);
		gdk_own_prepare(qp, &p, how.opt);
		/* Orders the check for free slots before the WQEs: see gdk_own_reserve(). */
		gdk_fence_load_store(GDK_SCOPE_THREAD);
		p.idx = p.base;
		*ticket = p.base + n - 1;
	} else {
		if (GDK_RARE(differs ||
			     (total > 1 &&
			      total > gdk_op_most(gdk_ldc32(&gdk_state_of_qp(qp)->depth)))))
			return gdk_op_in_turn(qp, op, ticket, how);
		err = gdk_post_begin(qp, &p, n, (uint32_t)dump, how);
		*ticket = dump ? p.base + p.total - 1 : p.idx + n - 1;
		if (GDK_RARE(err))
			return err;
	}
	if (!early)
		one = gdk_move_one(&op->move, 0);
	GDK_LOOP
	for (i = 0; i < moves;) {
		gdk_one_write(&p.wqes, p.idx + i, &one, gdk_move_segments(&op->move));
		if (++i < moves)
			one = gdk_move_one(&op->move, i);
	}
	if (op->tail.kind != GDK_TAIL_NONE && (!dump || p.rank == 0)) {
		one = gdk_tail_one(&op->tail);
		gdk_one_write(&p.wqes, *ticket, &one, gdk_tail_segments(&op->tail));
	}
	if (own)
		gdk_own_end(&p, handler, how.opt, 0);
	else
		gdk_post_end(&p, how);
	return 0;
}

#endif
