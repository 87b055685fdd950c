/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One-sided operations. A ticket is the index of an operation's last WQE. A function returns 0 or
 * the status that ended the QP, unless its comment says otherwise. If the QP has ended, the
 * function posts nothing more, but it still sets the ticket.
 */
#ifndef GDK_ONESIDED_DEV_H
#define GDK_ONESIDED_DEV_H

#include "device/gdk/by_hand_dev.h"
#include "device/gdk/op_dev.h"
#include "device/gdk/tail_dev.h"

/* Writes size bytes from laddr to raddr. */
GDK_FN int gdk_put(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		   struct doca_gpu_dev_verbs_addr laddr, size_t size,
		   doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_WRITE, raddr, laddr, size),
				   gdk_tail_none() };

	return gdk_op_run(qp, &op, ticket, how);
}

/* Posts one write of 1 byte to 1 GiB that also consumes a receive WQE at the remote side. imm_be is
 * the immediate value, big-endian. For any other size the function returns -EINVAL, posts nothing
 * and does not set the ticket. */
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

/* Compares the 8 bytes at raddr with `compare` and, if they are equal, replaces them with `swap`.
 * The old value is stored at laddr. */
GDK_FN int gdk_atomic_cas(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			  struct doca_gpu_dev_verbs_addr laddr, uint64_t compare, uint64_t swap,
			  doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	struct gdk_op op = { gdk_move_none(), gdk_tail_of(GDK_TAIL_CAS, raddr, laddr, swap) };

	op.tail.compare = compare;
	return gdk_op_run(qp, &op, ticket, how);
}

/* As gdk_put(), but the WQEs contain the data, so the caller may reuse the memory of `data` at
 * once. A WQE contains up to 28 bytes; larger data is written in pieces of 28 bytes. */
GDK_FN int gdk_p(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
		 const void *data, size_t size, doca_gpu_dev_verbs_ticket_t *ticket,
		 struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_inline(raddr, data, size), gdk_tail_none() };

	return gdk_op_run(qp, &op, ticket, how);
}

/* Adds a value to a remote 8-byte word, or sets the word. */
GDK_FN int gdk_signal(struct doca_gpu_dev_verbs_qp *qp, struct gdk_signal signal,
		      doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_none(), gdk_tail_signal(signal) };

	return gdk_op_run(qp, &op, ticket, how);
}

/* Executes a put, then a signal. A reader that sees the signal sees the data. */
GDK_FN int gdk_put_signal(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			  struct doca_gpu_dev_verbs_addr laddr, size_t size,
			  struct gdk_signal signal, doca_gpu_dev_verbs_ticket_t *ticket,
			  struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_WRITE, raddr, laddr, size),
				   gdk_tail_signal(signal) };

	return gdk_op_run(qp, &op, ticket, how);
}

/* Executes gdk_p(), then a signal. */
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

/* Posts a dump: the NIC reads one byte at daddr after its own writes. When the dump is complete,
 * the data of earlier gets on this QP is therefore visible to the GPU. */
GDK_FN int gdk_dump(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
		    doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_none(), gdk_tail_dump(daddr) };

	return gdk_op_run(qp, &op, ticket, how);
}

/* Executes a get, then a dump. The ticket is that of the dump. */
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
 * WQEs that this thread posts to the QP after the fence start only when the gets and fetching
 * atomics that it posted before the fence are complete. Puts need no fence among themselves: a
 * reliable connection executes them in the order of their slots. The fence is a NOP WQE of its own,
 * so the order holds for this thread whichever threads share the QP. The function rings no
 * doorbell; the next doorbell includes the NOP.
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

/* Waits until slot idx may be written. The slot was reserved with SKIP_AVAILABILITY_CHECK. */
GDK_FN int gdk_wait_slot(struct doca_gpu_dev_verbs_qp *qp, uint64_t idx, gdk_mode_t mode)
{
	const uint32_t depth = gdk_ldc32(&gdk_state_of_qp(qp)->depth);

	return idx < depth ? gdk_qp_status(qp) : gdk_wait(qp, idx - depth, mode);
}

/* Advances *index, a variable of the program: waits until its value is `from`, and then stores
 * `to`. In scope THREAD it stores without waiting. A thread that loads a value above `from`, and
 * then executes an acquire fence, sees what this caller, and all callers that advanced the index
 * earlier, wrote before their calls. Returns 0, or -ETIMEDOUT after 60 s; *index is then unchanged.
 */
GDK_FN int gdk_index_advance(uint64_t *index, uint64_t from, uint64_t to, int scope)
{
	const uint64_t start = gdk_now_ns();
	uint32_t polls = 0;

	while (scope != GDK_SCOPE_THREAD && gdk_any_ld64(index, scope) != from) {
		gdk_relax(polls++);
		if (gdk_now_ns() - start >= GDK_WAIT_LIMIT_NS)
			return -ETIMEDOUT;
	}
	/* Acquire: pairs with the release fences of earlier callers. Release: orders their writes
	 * and our own before the store of `to`. */
	gdk_fence_acq(scope);
	gdk_fence_rel(scope);
	gdk_any_st64(index, to, scope);
	return 0;
}

/* Waits until all WQEs whose slots were reserved before the call are complete. The last of these
 * WQEs must be signalled. */
GDK_FN int gdk_flush(struct doca_gpu_dev_verbs_qp *qp, gdk_mode_t mode)
{
	const uint64_t end = gdk_ld64(gdk_rsvd_index(qp), gdk_mode_scope(mode));

	return end ? gdk_wait(qp, end - 1, mode) : gdk_qp_status(qp);
}

/* As gdk_wait(), but also posts a dump and waits for it. Afterwards the data of earlier gets is
 * visible to the GPU. */
GDK_FN int gdk_dump_wait(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr daddr,
			 doca_gpu_dev_verbs_ticket_t ticket, gdk_mode_t mode, gdk_handler_t handler)
{
	doca_gpu_dev_verbs_ticket_t dump;
	int err = gdk_dump(qp, daddr, &dump, gdk_how(mode, handler, GDK_THREAD, 0));

	return err ? err : gdk_wait(qp, dump > ticket ? dump : ticket, mode);
}

#endif
