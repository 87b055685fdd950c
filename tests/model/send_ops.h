/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The operations of a send queue: part of replay.c. */
#ifndef SEND_OPS_H
#define SEND_OPS_H

/* Forbidden: that a WQE is overwritten which the NIC may still read. */
static void write_wqes(const struct op *o)
{
	const uint64_t len = o->to - o->from + 1u;
	unsigned i;

	if (o->what == PUBLISH && len > 1 && sc->cqes) { /* as gdk_wqe_signal() */
		lengths[o->from] = (unsigned)len;
		gdk_st32(&queues[0].st->long_wqe, 1, GDK_SCOPE_GPU);
		gdk_st32(&queues[0].st->uneven, 1, GDK_SCOPE_GPU);
	}
	step();
	for (i = o->from; i <= o->to; i++) {
		const view v = join(m.cur[self], m.ordered[self]);

		if (oldest(&m, v, READ0 + (int)(i % queues[0].slots)) != i / queues[0].slots)
			fail("a WQE is overwritten before the NIC has read it");
		store(&m, self, WQE0 + (int)(i % queues[0].slots),
		      (i / queues[0].slots + 1) | (uint64_t)gdk_bswap32((uint32_t)len * 4) << 32);
	}
}

static void run_post(const struct op *o, struct gdk_how how)
{
	const uint32_t n = (o->to - o->from + 1u) * sc->scale;
	struct gdk_post p;

	qp->sq_rsvd_index = real(o->from);
	if (gdk_post_begin(qp, &p, n, 0, how))
		fail("a reservation fails");
	write_wqes(o);
	gdk_post_end(&p, how);
}

static void run_publish(const struct op *o, gdk_mode_t mode)
{
	uint64_t first;

	qp->sq_rsvd_index = real(o->from);
	if (gdk_reserve(qp, (o->to - o->from + 1u) * sc->scale, mode, 0, &first))
		fail("a reservation fails");
	write_wqes(o);
	gdk_mark_ready(qp, first, real(o->to + 1u) - 1, mode, GDK_AUTO);
}

/* Forbidden: that the payload of a WQE which is complete need not be visible. */
static void run_wait(const struct op *o, gdk_mode_t mode)
{
	if (gdk_wait(qp, real(o->to + 1u) - 1, mode))
		fail("a wait fails");
	if (!pays(o->to))
		fail("a thread that has waited may read old payload");
}

/* `to` is the index of a CQE, `from` the slot of its WQE. */
static void run_poll(const struct op *o, gdk_mode_t mode)
{
	if (gdk_poll_cq_at(&qp->cq_sq, o->to, mode))
		fail("a poll fails");
	if (!pays(o->from))
		fail("a thread that has found a CQE may read old payload");
}

/* The caller orders and rings by itself. */
static void run_hand(const struct op *o, const uint64_t *wqe)
{
	const uint64_t pi = real(o->to + 1u);

	write_wqes(o);
	if (gdk_has_dbrec(cfg->handler))
		gdk_update_dbr(qp, pi, 0);
	if (cfg->handler == GDK_PROXY)
		gdk_ring_proxy(qp, pi,
			       any(2) ? GDK_EXCLUSIVE
				      : DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU);
	else if (cfg->handler != GDK_BF)
		gdk_ring_db(qp, pi, 0);
	else if (any(2))
		gdk_ring_bf(qp, wqe);
	else
		gdk_ring_bf_warp(qp, wqe);
	gdk_bf_settle();
}

/* A WQE that is posted by itself, as by a group for which the ring is too short. */
static void run_single(const struct op *o, int own, struct gdk_how how)
{
	const struct doca_gpu_dev_verbs_addr at = { 0x1000, 0x100 };
	const struct gdk_op_tail tail = gdk_tail_dump(at);
	const struct gdk_one one = gdk_tail_one(&tail);
	doca_gpu_dev_verbs_ticket_t ticket;

	qp->sq_rsvd_index = real(o->from);
	if (own ? gdk_own_single(qp, &one, &ticket, how)
		: gdk_shared_single(qp, &one, &ticket, how))
		fail("a WQE cannot be posted by itself");
}

/* Forbidden: that the WQE of a thread that advanced the index before need not be visible. */
static void run_advance(const struct op *o)
{
	const struct op slot = { PUBLISH, o->from, o->from };
	unsigned i;

	write_wqes(&slot);
	if (gdk_index_advance(&own_index, o->from, o->to, user_scope() + 1))
		fail("an index is not advanced");
	for (i = 0; i < o->from; i++)
		if (!oldest(&m, m.cur[self], WQE0 + (int)i))
			fail("a thread that has advanced the index may read an old WQE");
}

static void run_op(const struct op *o)
{
	const int own = o->what >= OWN_POST && o->what <= OWN_SINGLE;
	const gdk_mode_t mode = own	   ? GDK_EXCLUSIVE
				: cfg->cta ? DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
					   : DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	const struct gdk_how how = gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
	uint64_t wqe[8] = { gdk_bswap32_24((uint32_t)real(o->to) - 1, 0) };

	threads[self].own = own;
	switch (own ? o->what - OWN_POST + POST : o->what) {
	case POST:
		run_post(o, how);
		break;
	case PUBLISH:
		run_publish(o, mode);
		break;
	case SUBMIT:
		gdk_submit(qp, real(o->to), how);
		break;
	case BF:
		if (any(2))
			gdk_submit_bf(qp, real(o->to), wqe, how);
		else
			gdk_submit_bf_warp(qp, real(o->to), wqe, how);
		break;
	case WAIT:
		run_wait(o, mode);
		break;
	case SINGLE:
		run_single(o, own, how);
		break;
	case POLL:
		run_poll(o, mode);
		break;
	case HAND:
		threads[self].own = HAND;
		wqe[0] = gdk_bswap32_24((uint32_t)real(o->to), 0);
		run_hand(o, wqe);
		break;
	case ADVANCE:
		run_advance(o);
		break;
	default:
		run_meeting();
	}
}

#endif
