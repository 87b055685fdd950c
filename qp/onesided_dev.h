/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One-sided operations, built from reserve, WQE, publish and ring. A ticket is
 * the index of an operation's last WQE. Every function returns 0 or what ended
 * the QP; it then posted nothing more, and the ticket is still set.
 */
#ifndef GDK_ONESIDED_DEV_H
#define GDK_ONESIDED_DEV_H

#include "../../device/gdk/op_dev.h"

GDK_FN int gdk_put(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		   struct doca_gpu_dev_verbs_addr laddr, size_t size,
		   doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode, gdk_handler_t handler,
		   gdk_exec_t scope, uint32_t code_opt)
{
	return gdk_move(qp, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, raddr, laddr, size, ticket,
			mode, handler, scope, code_opt);
}

/* One write of 1 byte to 1 GiB that also consumes a receive at the far end. */
GDK_FN int gdk_put_imm(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		       struct doca_gpu_dev_verbs_addr laddr, uint32_t size, uint32_t imm_be,
		       doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode, gdk_handler_t handler,
		       uint32_t code_opt)
{
	int err;

	if (size == 0 || size > GDK_CHUNK)
		return -EINVAL;
	err = gdk_reserve(qp, 1, mode, code_opt, ticket);
	if (err)
		return err;
	gdk_wqe_rdma(qp, gdk_get_wqe_ptr(qp, *ticket), (uint16_t)*ticket,
		     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM, GDK_CE_ALWAYS, imm_be, raddr.addr,
		     gdk_key_doca(raddr.key), laddr.addr, gdk_key_doca(laddr.key), size);
	gdk_post(qp, *ticket, *ticket, mode, handler, code_opt);
	return 0;
}

/* 8-byte atomic at raddr; the old value lands at laddr. */
GDK_FN int gdk_atomic(struct doca_gpu_dev_verbs_qp *qp, uint32_t op,
		      struct doca_gpu_dev_verbs_addr raddr, struct doca_gpu_dev_verbs_addr laddr,
		      uint64_t compare_add, uint64_t swap, doca_gpu_dev_verbs_ticket_t *ticket,
		      gdk_mode_t mode, gdk_handler_t handler, uint32_t code_opt)
{
	int err = gdk_reserve(qp, 1, mode, code_opt, ticket);

	if (err)
		return err;
	gdk_wqe_atomic(qp, gdk_get_wqe_ptr(qp, *ticket), (uint16_t)*ticket, op, GDK_CE_ALWAYS,
		       raddr.addr, gdk_key_doca(raddr.key), laddr.addr, gdk_key_doca(laddr.key), 8,
		       compare_add, swap);
	gdk_post(qp, *ticket, *ticket, mode, handler, code_opt);
	return 0;
}

GDK_FN int gdk_atomic_cas(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			  struct doca_gpu_dev_verbs_addr laddr, uint64_t compare, uint64_t swap,
			  doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode,
			  gdk_handler_t handler, uint32_t code_opt)
{
	return gdk_atomic(qp, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS, raddr, laddr, compare, swap,
			  ticket, mode, handler, code_opt);
}

/* ---- bytes carried in WQEs ---- */

/* One write of at most 28 bytes, by this thread for itself; s: by value, as gdk_posted. */
GDK_SLOW_FN struct gdk_posted gdk_p_alone(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr raddr,
					  struct gdk_inl_segs s, uint32_t bytes, gdk_mode_t mode,
					  gdk_handler_t handler, uint32_t code_opt)
{
	const struct gdk_wqes w = gdk_wqes_of(qp);
	struct gdk_posted done;

	done.err = gdk_reserve(qp, 1, mode, code_opt, &done.ticket);
	if (done.err)
		return done;
	gdk_inl_in(&w, done.ticket, raddr.addr, gdk_key_doca(raddr.key), s, bytes);
	gdk_post(qp, done.ticket, done.ticket, mode, handler, code_opt);
	return done;
}

/* gdk_p of 1 to 28 bytes: one WQE, composed from registers where size is a constant. */
GDK_FN int gdk_p_inl(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		     const void *data, uint32_t bytes, doca_gpu_dev_verbs_ticket_t *ticket,
		     gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_inl_segs s = gdk_inl_segs_of(data, bytes);
	struct gdk_posted done;
	struct gdk_batch b;
	int err;

	if (exec == GDK_THREAD && gdk_is_one(mode, handler)) {
		const struct gdk_one one = { DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					     gdk_write_inl_ds(bytes),
					     { gdk_bswap64(raddr.addr),
					       gdk_pack(gdk_key_doca(raddr.key).be, 0), s.w[0],
					       s.w[1], s.w[2], s.w[3] } };

		return gdk_post_one(qp, &one, ticket, handler, code_opt);
	}
	if (!gdk_group_fits(qp, 1, 0, exec)) {
		done = gdk_p_alone(qp, raddr, s, bytes, gdk_single_mode(mode, exec), handler,
				   code_opt);
		*ticket = done.ticket;
		return done.err;
	}
	if (gdk_batch_whole(qp, 1, 0, mode, exec, code_opt, &b)) {
		*ticket = b.idx;
		gdk_inl_in(&b.wqes, b.idx, raddr.addr, gdk_key_doca(raddr.key), s, bytes);
		gdk_batch_end_whole(qp, &b, mode, handler, code_opt);
		return 0;
	}
	err = gdk_batch_other(qp, 1, mode, exec, code_opt, &b);
	*ticket = b.idx;
	if (err)
		return err;
	gdk_inl_in(&b.wqes, b.idx, raddr.addr, gdk_key_doca(raddr.key), s, bytes);
	gdk_batch_end(qp, &b, mode, handler, exec, code_opt);
	return 0;
}

/* As gdk_put, but data may be reused at once: 28 bytes fit into a WQE, and what
 * is longer goes in pieces of 28. */
GDK_FN int gdk_p(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		 const void *data, size_t size, doca_gpu_dev_verbs_ticket_t *ticket,
		 gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_INLINE, raddr, gdk_no_addr(), data, size },
				   { GDK_TAIL_NONE, gdk_no_addr(), gdk_no_addr(), 0 } };

	if (size == 0 || size > GDK_INLINE)
		return gdk_op_run(qp, &op, ticket, mode, handler, exec, code_opt);
	return gdk_p_inl(qp, raddr, data, (uint32_t)size, ticket, mode, handler, exec, code_opt);
}

/* ---- signals: an 8-byte word at sig_raddr is added to, or set ---- */

GDK_FN enum gdk_tail_kind gdk_signal_kind(enum doca_gpu_dev_verbs_signal_op sig_op)
{
	return sig_op == GDK_SIGNAL_OP_SET ? GDK_TAIL_SET : GDK_TAIL_ADD;
}

/* An addition also fetches: the old value lands at sig_laddr. */
GDK_FN int gdk_signal(struct doca_gpu_dev_verbs_qp *qp, enum doca_gpu_dev_verbs_signal_op sig_op,
		      struct doca_gpu_dev_verbs_addr sig_raddr,
		      struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t value,
		      doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode, gdk_handler_t handler,
		      gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_NONE, gdk_no_addr(), gdk_no_addr(), NULL, 0 },
				   { gdk_signal_kind(sig_op), sig_raddr, sig_laddr, value } };

	return gdk_op_run(qp, &op, ticket, mode, handler, exec, code_opt);
}

/* A put, then a signal: who sees the signal sees the data. */
GDK_FN int gdk_put_signal(struct doca_gpu_dev_verbs_qp *qp,
			  enum doca_gpu_dev_verbs_signal_op sig_op,
			  struct doca_gpu_dev_verbs_addr raddr,
			  struct doca_gpu_dev_verbs_addr laddr, size_t size,
			  struct doca_gpu_dev_verbs_addr sig_raddr,
			  struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t value,
			  doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode,
			  gdk_handler_t handler, gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_WRITE, raddr, laddr, NULL, size },
				   { gdk_signal_kind(sig_op), sig_raddr, sig_laddr, value } };

	return gdk_op_run(qp, &op, ticket, mode, handler, exec, code_opt);
}

/* As gdk_put_signal, for bytes carried in WQEs. */
GDK_FN int gdk_p_signal(struct doca_gpu_dev_verbs_qp *qp, enum doca_gpu_dev_verbs_signal_op sig_op,
			struct doca_gpu_dev_verbs_addr raddr, const void *data, size_t size,
			struct doca_gpu_dev_verbs_addr sig_raddr,
			struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t value,
			doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode, gdk_handler_t handler,
			gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_INLINE, raddr, gdk_no_addr(), data, size },
				   { gdk_signal_kind(sig_op), sig_raddr, sig_laddr, value } };

	return gdk_op_run(qp, &op, ticket, mode, handler, exec, code_opt);
}

/* ---- memory consistency, order ---- */

/* Once complete, what earlier gets on this QP brought is visible to the GPU:
 * the NIC reads one byte at daddr behind its own writes. */
GDK_FN int gdk_dump(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
		    doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode, gdk_handler_t handler,
		    gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_NONE, gdk_no_addr(), gdk_no_addr(), NULL, 0 },
				   { GDK_TAIL_DUMP, gdk_no_addr(), daddr, 0 } };

	return gdk_op_run(qp, &op, ticket, mode, handler, exec, code_opt);
}

GDK_FN int gdk_get(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		   struct doca_gpu_dev_verbs_addr laddr, size_t size,
		   doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode, gdk_handler_t handler,
		   gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_READ, raddr, laddr, NULL, size },
				   { GDK_TAIL_NONE, gdk_no_addr(), gdk_no_addr(), 0 } };

	return gdk_op_run(qp, &op, ticket, mode, handler, exec, code_opt);
}

/* A get with the dump behind it, whose ticket is returned. */
GDK_FN int gdk_get_dump(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			struct doca_gpu_dev_verbs_addr laddr, size_t size,
			struct doca_gpu_dev_verbs_addr daddr, doca_gpu_dev_verbs_ticket_t *ticket,
			gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_READ, raddr, laddr, NULL, size },
				   { GDK_TAIL_DUMP, gdk_no_addr(), daddr, 0 } };

	return gdk_op_run(qp, &op, ticket, mode, handler, exec, code_opt);
}

/*
 * What this thread posts to the QP from here on starts only after the gets and
 * fetching atomics posted to it before have completed. Puts need no fence among
 * themselves: a reliable connection delivers them in the order of their slots.
 * The fence is a NOP of its own, which the next doorbell brings along, so that
 * it is this thread's next operation that stands behind it, whoever shares the QP.
 */
GDK_FN int gdk_fence(struct doca_gpu_dev_verbs_qp *qp, gdk_mode_t mode, gdk_handler_t handler)
{
	struct gdk_batch b;
	int err = gdk_batch_begin(qp, 1, 0, mode, GDK_THREAD, 0, &b);

	if (err)
		return err;
	gdk_wqe_nop(qp, gdk_get_wqe_ptr(qp, b.idx), (uint16_t)b.idx,
		    (uint32_t)DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE_FENCE);
	gdk_batch_end(qp, &b, mode, handler, GDK_THREAD, GDK_OPT_SKIP_DB);
	return 0;
}

/* ---- completion ---- */

/* Waits until the WQE of the ticket is complete. A WQE that was not rung yet is rung first. Returns
 * 0, the status that ended the QP, or the reason why the wait ended: -ETIMEDOUT or -EHOSTDOWN after
 * limit_ns (0: no limit), or -ENOTCONN. The end of the wait does not end the QP. */
GDK_FN int gdk_wait_for(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
			gdk_mode_t mode, uint64_t limit_ns)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);

	return gdk_wait_slots(qp, st, ticket + 1, ticket + 1, gdk_mode_scope(mode), limit_ns);
}

/* As gdk_wait_for, with the QP's own limit. A wait that fails ends the QP. */
GDK_FN int gdk_wait(struct doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket,
		    gdk_mode_t mode)
{
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	int err = gdk_wait_for(qp, ticket, mode, gdk_ld64(&st->wait_limit_ns, GDK_SCOPE_GPU));

	return err ? gdk_wait_end(st, err) : 0;
}

/* Slot idx, reserved without the check, may be written. */
GDK_FN int gdk_wait_slot(struct doca_gpu_dev_verbs_qp *qp, uint64_t idx, gdk_mode_t mode)
{
	const uint32_t depth = gdk_ldc32(&gdk_state_of_qp(qp)->depth);

	return idx < depth ? gdk_qp_status(qp) : gdk_wait(qp, idx - depth, mode);
}

/* An index of the caller's own goes from `from` to `to` when it has come there: what
 * was written before is seen by who finds it beyond. */
GDK_FN int gdk_index_advance(uint64_t *index, uint64_t from, uint64_t to, int scope)
{
	struct gdk_wait_timer w;

	gdk_fence_rel(scope);
	gdk_wait_start(&w, GDK_WAIT_LIMIT_NS);
	while (scope != GDK_SCOPE_THREAD && gdk_ld64(index, scope) != from)
		if (gdk_wait_turn(&w))
			return -ETIMEDOUT;
	gdk_fence_acq(scope);
	gdk_st64(index, to, scope);
	return 0;
}

/* Waits for all that was reserved before; its last WQE must be signalled. */
GDK_FN int gdk_flush(struct doca_gpu_dev_verbs_qp *qp, gdk_mode_t mode)
{
	const uint64_t end = gdk_ld64(gdk_rsvd_index(qp), gdk_mode_scope(mode));

	return end ? gdk_wait(qp, end - 1, mode) : gdk_qp_status(qp);
}

/* As gdk_wait; the data of earlier gets is then visible to the GPU. */
GDK_FN int gdk_dump_wait(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
			 doca_gpu_dev_verbs_ticket_t ticket, gdk_mode_t mode, gdk_handler_t handler)
{
	doca_gpu_dev_verbs_ticket_t dump;
	int err = gdk_dump(qp, daddr, &dump, mode, handler, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD,
			   0);

	return err ? err : gdk_wait(qp, dump > ticket ? dump : ticket, mode);
}

#endif
