/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One-sided operations that raise a counter when they are complete, without any
 * thread: a companion QP holds a WAIT for the operation's CQE and then an atomic
 * addition to the counter, which the companion reaches like any memory.
 *
 * A WAIT counts CQEs, so every WQE of the main QP must be signalled and of one
 * slot, as all of onesided_dev.h are; else -ENOTSUP and nothing is posted.
 */
#ifndef GDK_COUNTER_DEV_H
#define GDK_COUNTER_DEV_H

#include "../../device/gdk/onesided_dev.h"

struct gdk_counter {
	struct doca_gpu_dev_verbs_qp *companion;
	struct doca_gpu_dev_verbs_addr raddr; /* the counter, 8 bytes */
	struct doca_gpu_dev_verbs_addr laddr; /* gets its old value */
	uint64_t value;			      /* is added */
};

/* The companion's slots come back when the WQEs that it waits for have been
 * executed, so the one who may have to wait for slots rings the main QP: only a
 * thread alone knows that it will not. */
GDK_FN uint32_t gdk_counter_main_opt(const struct gdk_counter *c, gdk_mode_t mode,
				     uint32_t code_opt)
{
	struct gdk_qp_state *st = gdk_state_of_qp(c->companion);
	const uint64_t free = gdk_ld64(&st->completed, GDK_SCOPE_THREAD) + gdk_ldc32(&st->depth) -
			      gdk_ld64(gdk_rsvd_index(c->companion), GDK_SCOPE_THREAD);

	if (mode != GDK_EXCLUSIVE || free < 2)
		code_opt &= ~(uint32_t)GDK_OPT_SKIP_DB;
	return code_opt;
}

/* Has the companion wait for the WQE in slot `slot` of qp, then count. */
GDK_FN int gdk_count(const struct doca_gpu_dev_verbs_qp *qp, uint64_t slot,
		     const struct gdk_counter *c, gdk_mode_t mode, gdk_handler_t handler,
		     gdk_exec_t exec, uint32_t code_opt)
{
	const struct doca_gpu_dev_verbs_addr cqe = {
		slot + gdk_ldc64(GDK_QP_AT(qp, cq_sq.cqe_rsvd)),
		gdk_ldc32(GDK_QP_AT(qp, cq_sq.cq_num)),
	};
	const struct gdk_op op = { { GDK_MOVE_WAIT, cqe, gdk_no_addr(), NULL, 0 },
				   { GDK_TAIL_ADD, c->raddr, c->laddr, c->value } };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_op_run(c->companion, &op, &ticket, mode, handler, exec, code_opt);
}

/* The ticket is the operation's, on qp. */
GDK_FN int gdk_op_run_counted(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_op *op,
			      const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			      gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec,
			      uint32_t code_opt)
{
	int err;

	*ticket = gdk_ld64(gdk_rsvd_index(qp), gdk_mode_scope(mode));
	if (gdk_ld32(&gdk_state_of_qp(qp)->uneven, GDK_SCOPE_GPU))
		return -ENOTSUP;
	err = gdk_op_run(qp, op, ticket, mode, handler, exec,
			 gdk_counter_main_opt(c, mode, code_opt));
	return err ? err : gdk_count(qp, *ticket, c, mode, handler, exec, code_opt);
}

GDK_FN int gdk_put_counter(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			   struct doca_gpu_dev_verbs_addr laddr, size_t size,
			   const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			   gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec,
			   uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_WRITE, raddr, laddr, NULL, size },
				   { GDK_TAIL_NONE, gdk_no_addr(), gdk_no_addr(), 0 } };

	return gdk_op_run_counted(qp, &op, c, ticket, mode, handler, exec, code_opt);
}

GDK_FN int gdk_p_counter(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			 const void *data, size_t size, const struct gdk_counter *c,
			 doca_gpu_dev_verbs_ticket_t *ticket, gdk_mode_t mode,
			 gdk_handler_t handler, gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_INLINE, raddr, gdk_no_addr(), data, size },
				   { GDK_TAIL_NONE, gdk_no_addr(), gdk_no_addr(), 0 } };

	return gdk_op_run_counted(qp, &op, c, ticket, mode, handler, exec, code_opt);
}

GDK_FN int
gdk_put_signal_counter(struct doca_gpu_dev_verbs_qp *qp, enum doca_gpu_dev_verbs_signal_op sig_op,
		       struct doca_gpu_dev_verbs_addr raddr, struct doca_gpu_dev_verbs_addr laddr,
		       size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
		       struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t value,
		       const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
		       gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec, uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_WRITE, raddr, laddr, NULL, size },
				   { gdk_signal_kind(sig_op), sig_raddr, sig_laddr, value } };

	return gdk_op_run_counted(qp, &op, c, ticket, mode, handler, exec, code_opt);
}

GDK_FN int gdk_signal_counter(struct doca_gpu_dev_verbs_qp *qp,
			      enum doca_gpu_dev_verbs_signal_op sig_op,
			      struct doca_gpu_dev_verbs_addr sig_raddr,
			      struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t value,
			      const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			      gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec,
			      uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_NONE, gdk_no_addr(), gdk_no_addr(), NULL, 0 },
				   { gdk_signal_kind(sig_op), sig_raddr, sig_laddr, value } };

	return gdk_op_run_counted(qp, &op, c, ticket, mode, handler, exec, code_opt);
}

GDK_FN int gdk_get_counter(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			   struct doca_gpu_dev_verbs_addr laddr, size_t size,
			   const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			   gdk_mode_t mode, gdk_handler_t handler, gdk_exec_t exec,
			   uint32_t code_opt)
{
	const struct gdk_op op = { { GDK_MOVE_READ, raddr, laddr, NULL, size },
				   { GDK_TAIL_NONE, gdk_no_addr(), gdk_no_addr(), 0 } };

	return gdk_op_run_counted(qp, &op, c, ticket, mode, handler, exec, code_opt);
}

/* Submission to n QPs: see gdk_submit. */
GDK_FN void gdk_submit_multi(struct doca_gpu_dev_verbs_qp *const *qps, const uint64_t *pis,
			     uint32_t n, gdk_mode_t mode, gdk_handler_t handler, uint32_t code_opt)
{
	for (uint32_t i = 0; i < n; i++)
		gdk_submit(qps[i], pis[i], mode, handler, code_opt);
}

#endif
