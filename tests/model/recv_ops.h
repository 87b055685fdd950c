/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The operations of receives: part of replay.c. */
#ifndef RECV_OPS_H
#define RECV_OPS_H

static const struct doca_gpu_dev_verbs_addr buffer = { 0x1000, 0x100 };

/* Forbidden: that the data of a receive which is complete need not be visible. */
static void check_data(uint64_t ticket)
{
	if (!pays(model_slot(&queues[0], ticket)))
		fail("a thread that has waited for a receive may read old data");
}

static void run_recv(struct gdk_how how)
{
	struct thread *th = &threads[self];

	if (gdk_recv(qp, buffer, 64, &th->tickets[th->posted++], how))
		fail("a receive cannot be posted");
}

static void write_receives(uint64_t from, uint64_t end)
{
	for (; from < end; from++)
		gdk_wqe_recv(qp, gdk_get_rwqe_ptr(qp, from), buffer.addr, gdk_key_doca(buffer.key),
			     64);
}

static void run_mark(uint64_t n, int submit, struct gdk_how how)
{
	uint64_t first;

	if (gdk_rq_reserve(qp, (uint32_t)n, how.mode, 0, &first))
		fail("a reservation fails");
	write_receives(first, first + n);
	gdk_rq_mark_ready(qp, first, first + n - 1, how.mode);
	if (submit && gdk_rq_submit(qp, first + n, how))
		fail("a submit of reserved slots fails");
}

static void run_offer(uint64_t from, uint64_t end, int write, struct gdk_how how)
{
	if (write)
		write_receives(from, end);
	if (gdk_rq_submit(qp, end, how))
		fail("a submit fails");
}

static void run_recv_wait(uint64_t ticket, gdk_mode_t mode)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	threads[self].awaits = model_slot(&queues[0], ticket) + 1;
	if (gdk_recv_wait(qp, ticket, buffer, GDK_MCST_AUTO, mode, &cqe))
		fail("a wait for a receive fails");
	threads[self].awaits = 0;
	check_data(ticket);
}

static void run_recv_all(gdk_mode_t mode)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	unsigned i;

	if (gdk_recv_wait_all(qp, buffer, GDK_MCST_AUTO, mode, &cqe))
		fail("a wait for all receives fails");
	for (i = 0; i < threads[self].posted; i++)
		check_data(threads[self].tickets[i]);
}

/* Without a dump, the caller may not read the data if the GPU needs one. */
static void run_recv_poll(uint64_t index, gdk_mode_t mode)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

	if (gdk_poll_cqe_at(gdk_qp_cq_rq(qp), index, mode, &cqe))
		fail("a poll for a receive fails");
	if (!cfg->dump)
		check_data(index);
}

/* As NIXL's kernel. */
static void run_look(uint64_t index)
{
	const uint64_t num = qp->cq_rq.cqe_num;
	const uint32_t *tail = gdk_cqe_word(queues[0].st, index & (num - 1));
	struct gdk_cqe_tail t;

	do {
		weak_idle();
		t = gdk_cqe_tail_of(gdk_ld32(tail, GDK_SCOPE_SYS));
	} while (t.opcode == DOCA_GPUNETIO_IB_MLX5_CQE_INVALID || t.owner != !!(index & num));
	gdk_fence_acq(GDK_SCOPE_SYS);
	if (!cfg->dump)
		check_data(index);
}

static void run_op(const struct op *o)
{
	const int own = (o->what & OWN) != 0;
	const gdk_mode_t mode = own	   ? GDK_EXCLUSIVE
				: cfg->cta ? DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
					   : DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	const struct gdk_how how = gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);

	threads[self].own = own;
	switch (o->what & ~OWN) {
	case RECV:
		run_recv(how);
		break;
	case MARK:
	case BY_HAND:
		run_mark(o->to, (o->what & ~OWN) == BY_HAND, how);
		break;
	case OFFER:
	case AGAIN:
		run_offer(real(o->from), real(o->to + 1u), (o->what & ~OWN) == OFFER, how);
		break;
	case RECV_WAIT:
		run_recv_wait(real(o->to), mode);
		break;
	case RECV_OWN_WAIT:
		run_recv_wait(threads[self].tickets[o->to], mode);
		break;
	case RECV_ALL:
		run_recv_all(mode);
		break;
	case RECV_POLL:
		run_recv_poll(real(o->to), mode);
		break;
	case LOOK:
		run_look(real(o->to));
		break;
	case AFTER:
		while (!threads[o->to].ended)
			weak_idle();
		break;
	default:
		run_meeting();
	}
}

#endif
