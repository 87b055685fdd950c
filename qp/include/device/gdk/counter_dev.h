/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One-sided operations that increase a counter when they are complete, without any thread: a
 * companion QP executes a WAIT for the CQE of the operation, and then an atomic addition to the
 * counter. The counter is memory like any other.
 *
 * A WAIT counts CQEs. So every WQE of the main QP must be signalled and have one slot. This holds
 * for the WQEs of onesided_dev.h. Otherwise the functions return -ENOTSUP and post nothing.
 */
#ifndef GDK_COUNTER_DEV_H
#define GDK_COUNTER_DEV_H

#include "device/gdk/onesided_dev.h"

struct gdk_counter {
	struct doca_gpu_dev_verbs_qp *companion;
	struct doca_gpu_dev_verbs_addr raddr; /* the counter, 8 bytes */
	struct doca_gpu_dev_verbs_addr laddr; /* receives the counter's old value */
	uint64_t value;			      /* is added to the counter */
};

/* Returns `how` for the main QP. The companion's slots become free only when the WQEs of the main
 * QP that it waits for have been executed. So a thread that may have to wait for these slots rings
 * the main QP, even if SKIP_DB_RINGING is set. Only a thread in exclusive use knows that it need
 * not wait. */
GDK_FN struct gdk_how gdk_counter_how(const struct gdk_counter *c, struct gdk_how how)
{
	struct gdk_qp_state *st = gdk_state_of_qp(c->companion);
	const uint64_t unused = gdk_ld64(&st->completed, GDK_SCOPE_THREAD) + gdk_ldc32(&st->depth) -
				gdk_ld64(gdk_rsvd_index(c->companion), GDK_SCOPE_THREAD);

	if (how.mode != GDK_EXCLUSIVE || unused < 2 * (uint64_t)gdk_exec_size(how.exec))
		how.opt &= ~(uint32_t)GDK_OPT_SKIP_DB;
	return how;
}

/* Makes the companion wait for the WQE in slot `slot` of qp, and then add to the counter. */
GDK_FN int gdk_count(const struct doca_gpu_dev_verbs_qp *qp, uint64_t slot,
		     const struct gdk_counter *c, struct gdk_how how)
{
	const struct doca_gpu_dev_verbs_addr cqe = {
		slot + gdk_ldc64(GDK_QP_AT(qp, cq_sq.cqe_rsvd)),
		gdk_ldc32(GDK_QP_AT(qp, cq_sq.cq_num)),
	};
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_WAIT, cqe, cqe, 0),
				   gdk_tail_of(GDK_TAIL_ADD, c->raddr, c->laddr, c->value) };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_op_run(c->companion, &op, &ticket, how);
}

/* Executes op on qp, and adds to the counter when op is complete. The ticket is that of op. */
GDK_FN int gdk_op_run_counted(struct doca_gpu_dev_verbs_qp *qp, const struct gdk_op *op,
			      const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			      struct gdk_how how)
{
	int err;

	*ticket = gdk_ld64(gdk_rsvd_index(qp), gdk_mode_scope(how.mode));
	if (gdk_ld32(&gdk_state_of_qp(qp)->uneven, GDK_SCOPE_GPU))
		return -ENOTSUP;
	err = gdk_op_run(qp, op, ticket, gdk_counter_how(c, how));
	return err ? err : gdk_count(qp, *ticket, c, how);
}

GDK_FN int gdk_put_counter(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			   struct doca_gpu_dev_verbs_addr laddr, size_t size,
			   const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			   struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_WRITE, raddr, laddr, size),
				   gdk_tail_none() };

	return gdk_op_run_counted(qp, &op, c, ticket, how);
}

GDK_FN int gdk_p_counter(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			 const void *data, size_t size, const struct gdk_counter *c,
			 doca_gpu_dev_verbs_ticket_t *ticket, struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_inline(raddr, data, size), gdk_tail_none() };

	return gdk_op_run_counted(qp, &op, c, ticket, how);
}

GDK_FN int gdk_signal_counter(struct doca_gpu_dev_verbs_qp *qp, struct gdk_signal signal,
			      const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			      struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_none(), gdk_tail_signal(signal) };

	return gdk_op_run_counted(qp, &op, c, ticket, how);
}

GDK_FN int gdk_get_counter(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
			   struct doca_gpu_dev_verbs_addr laddr, size_t size,
			   const struct gdk_counter *c, doca_gpu_dev_verbs_ticket_t *ticket,
			   struct gdk_how how)
{
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_READ, raddr, laddr, size),
				   gdk_tail_none() };

	return gdk_op_run_counted(qp, &op, c, ticket, how);
}

/* Calls gdk_submit() for n QPs. */
GDK_FN void gdk_submit_multi(struct doca_gpu_dev_verbs_qp *const *qps, const uint64_t *pis,
			     uint32_t n, struct gdk_how how)
{
	for (uint32_t i = 0; i < n; i++)
		gdk_submit(qps[i], pis[i], how);
}

#endif
