/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One-sided operations. A ticket is the index of an operation's last WQE. Every function returns 0
 * or the status that ended the QP; it then posted nothing more, and the ticket is still set.
 */
#ifndef GDK_ONESIDED_DEV_H
#define GDK_ONESIDED_DEV_H

#include "../../device/gdk/by_hand_dev.h"
#include "../../device/gdk/op_dev.h"
#include "../../device/gdk/tail_dev.h"

/* Writes size bytes from laddr to raddr. */
GDK_FN int gdk_put(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		   struct doca_gpu_dev_verbs_addr laddr, size_t size,
		   doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_WRITE, raddr, laddr, size),
				   gdk_tail_none() };

	return gdk_op_run(qp, &op, ticket, how);
}

/* One write of 1 byte to 1 GiB that also consumes a receive WQE at the remote side. imm_be is
 * big-endian. -EINVAL: any other size; nothing is posted. */
GDK_FN int gdk_put_imm(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		       struct doca_gpu_dev_verbs_addr laddr, uint32_t size, uint32_t imm_be,
		       doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct gdk_op op = { gdk_move_of(GDK_MOVE_WRITE_IMM, raddr, laddr, size), gdk_tail_none() };

	if (size == 0 || size > GDK_CHUNK)
		return -EINVAL;
	op.move.imm_be = imm_be;
	return gdk_op_run(qp, &op, ticket, how);
}

/* Compare-and-swap of 8 bytes at raddr. The old value is stored at laddr. */
GDK_FN int gdk_atomic_cas(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			  struct doca_gpu_dev_verbs_addr laddr, uint64_t compare, uint64_t swap,
			  doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct gdk_op op = { gdk_move_none(), gdk_tail_of(GDK_TAIL_CAS, raddr, laddr, swap) };

	op.tail.compare = compare;
	return gdk_op_run(qp, &op, ticket, how);
}

/* As gdk_put(), but the WQEs carry the bytes, so data may be reused at once. A WQE carries 28
 * bytes; more are written in pieces of 28. */
GDK_FN int gdk_p(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		 const void *data, size_t size, doca_gpu_dev_verbs_ticket_t *ticket,
		 struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_inline(raddr, data, size), gdk_tail_none() };

	return gdk_op_run(qp, &op, ticket, how);
}

/* Adds to, or sets, an 8-byte word. */
GDK_FN int gdk_signal(struct doca_gpu_dev_verbs_qp *qp, struct gdk_signal signal,
		      doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_none(), gdk_tail_signal(signal) };

	return gdk_op_run(qp, &op, ticket, how);
}

/* A put, then a signal: a reader that sees the signal sees the data. */
GDK_FN int gdk_put_signal(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			  struct doca_gpu_dev_verbs_addr laddr, size_t size,
			  struct gdk_signal signal, doca_gpu_dev_verbs_ticket_t *ticket,
			  struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_WRITE, raddr, laddr, size),
				   gdk_tail_signal(signal) };

	return gdk_op_run(qp, &op, ticket, how);
}

/* gdk_p(), then a signal. */
GDK_FN int gdk_p_signal(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			const void *data, size_t size, struct gdk_signal signal,
			doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_inline(raddr, data, size), gdk_tail_signal(signal) };

	return gdk_op_run(qp, &op, ticket, how);
}

/* Reads size bytes from raddr to laddr. */
GDK_FN int gdk_get(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		   struct doca_gpu_dev_verbs_addr laddr, size_t size,
		   doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_READ, raddr, laddr, size),
				   gdk_tail_none() };

	return gdk_op_run(qp, &op, ticket, how);
}

/* ---- memory consistency, order ---- */

/* Once complete, the data of earlier gets on this QP is visible to the GPU: the NIC reads one byte
 * at daddr behind its own writes. */
GDK_FN int gdk_dump(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
		    doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_none(), gdk_tail_dump(daddr) };

	return gdk_op_run(qp, &op, ticket, how);
}

/* A get, then a dump, whose ticket is returned. */
GDK_FN int gdk_get_dump(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			struct doca_gpu_dev_verbs_addr laddr, size_t size,
			struct doca_gpu_dev_verbs_addr daddr, doca_gpu_dev_verbs_ticket_t *ticket,
			struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_READ, raddr, laddr, size),
				   gdk_tail_dump(daddr) };

	return gdk_op_run(qp, &op, ticket, how);
}

/*
 * The WQEs that this thread posts to the QP after the fence start only when the gets and fetching
 * atomics that it posted before are complete. Puts need no fence among themselves: a reliable
 * connection executes them in the order of their slots. The fence is a NOP WQE of its own, which
 * the next doorbell rings, so the order holds for this thread whichever threads share the QP.
 */
GDK_FN int gdk_fence(struct doca_gpu_dev_verbs_qp *qp, gdk_mode_t mode, gdk_handler_t handler)
{
	const struct gdk_how how = gdk_how(mode, handler, GDK_THREAD, GDK_OPT_SKIP_DB),
			     check = gdk_how(mode, handler, GDK_THREAD, 0);
	struct gdk_post p;
	int err = gdk_post_begin(qp, &p, 1, 0, check);

	if (err)
		return err;
	gdk_wqe_nop(qp, gdk_get_wqe_ptr(qp, p.idx), (uint16_t)p.idx,
		    (uint32_t)DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE_FENCE);
	gdk_post_end(&p, how);
	return 0;
}

/* ---- completion: gdk_wait() and polls are in wait_dev.h ---- */

/* Waits until slot idx, reserved without the check, may be written. */
GDK_FN int gdk_wait_slot(struct doca_gpu_dev_verbs_qp *qp, uint64_t idx, gdk_mode_t mode)
{
	const uint32_t depth = gdk_ldc32(&gdk_state_of_qp(qp)->depth);

	return idx < depth ? gdk_qp_status(qp) : gdk_wait(qp, idx - depth, mode);
}

/* Waits until the caller's own *index is `from`, then stores `to`; scope THREAD stores at once. A
 * thread that loads a value above `from` and then executes an acquire fence sees what this caller,
 * and those that advanced the index before, wrote. -ETIMEDOUT after 60 s: *index is unchanged. */
GDK_FN int gdk_index_advance(uint64_t *index, uint64_t from, uint64_t to, int scope)
{
	const uint64_t start = gdk_now_ns();
	uint32_t polls = 0;

	while (scope != GDK_SCOPE_THREAD && gdk_any_ld64(index, scope) != from) {
		gdk_relax(polls++);
		if (gdk_now_ns() - start >= GDK_WAIT_LIMIT_NS)
			return -ETIMEDOUT;
	}
	/* Acquire: what earlier callers wrote. Release: that, and our own writes, before `to`. */
	gdk_fence_acq(scope);
	gdk_fence_rel(scope);
	gdk_any_st64(index, to, scope);
	return 0;
}

/* Waits for all that was reserved before. The last WQE must be signalled. */
GDK_FN int gdk_flush(struct doca_gpu_dev_verbs_qp *qp, gdk_mode_t mode)
{
	const uint64_t end = gdk_ld64(gdk_rsvd_index(qp), gdk_mode_scope(mode));

	return end ? gdk_wait(qp, end - 1, mode) : gdk_qp_status(qp);
}

/* As gdk_wait(); afterwards the data of earlier gets is visible to the GPU. */
GDK_FN int gdk_dump_wait(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
			 doca_gpu_dev_verbs_ticket_t ticket, gdk_mode_t mode, gdk_handler_t handler)
{
	doca_gpu_dev_verbs_ticket_t dump;
	int err = gdk_dump(qp, daddr, &dump, gdk_how(mode, handler, GDK_THREAD, 0));

	return err ? err : gdk_wait(qp, dump > ticket ? dump : ticket, mode);
}

#endif
