/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The operations of shared receive queues: part of replay.c. */
#ifndef SRQ_OPS_H
#define SRQ_OPS_H

static void write_receive(uint64_t slot)
{
	gdk_wqe_recv(qp, gdk_srq_wqe(qp, slot), 0x1000, gdk_key_be(0x100), 64);
}

static void run_fill(struct gdk_how how)
{
	uint64_t i;

	for (i = 0; i < sc->depth; i++) {
		write_receive(i);
		again[i] = i;
	}
	if (gdk_srq_submit(qp, sc->depth, how))
		fail("a submit fails");
}

/* Waits for a CQE in one of the CQs, and returns its receive. */
static uint64_t next_receive(unsigned mask)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	unsigned c = any(CQS);
	uint64_t i;

	while (!(mask >> c & 1) || gdk_srq_poll(&cqs[c].dev, cqs[c].taken, &cqe)) {
		if (mask >> c & 1)
			weak_idle();
		c = (c + 1) % CQS;
	}
	i = cqs[c].index[cqs[c].taken % 64];
	if (cqs[c].taken >= cqs[c].made)
		fail("a CQE is found that the NIC has not written");
	if (gdk_srq_slot(cqe) != i % sc->depth)
		fail("a CQE names another slot");
	if (!pays(i))
		fail("a thread that has found a CQE may read old data");
	cqs[c].taken++;
	return i;
}

static void post_again(uint64_t i, struct gdk_how how)
{
	again[i % sc->depth] = i + sc->depth;
	if (gdk_srq_repost(qp, (uint32_t)(i % sc->depth), how))
		fail("a slot cannot be posted again");
}

static void run_take(const struct op *o, struct gdk_how how)
{
	unsigned n;
	uint64_t i;

	for (n = 0; n < o->to; n++) {
		i = next_receive(o->from);
		write_receive(i % sc->depth);
		post_again(i, how);
	}
}

/* Mail n is 1 + a receive that another thread shall post again. */
static void run_give(const struct op *o, int scope)
{
	unsigned n;
	uint64_t i;

	for (n = 0; n < o->to; n++) {
		i = next_receive(o->from);
		gdk_fence_rel(scope);
		gdk_st64(&mail[n], i + 1, scope);
	}
}

/* The thread does not write the WQE, so it needs no fence of its own. */
static void run_given(const struct op *o, struct gdk_how how, int scope)
{
	unsigned n;
	uint64_t i;

	for (n = 0; n < o->to; n++) {
		while (!(i = gdk_ld64(&mail[n], scope)))
			weak_idle();
		post_again(i - 1, how);
	}
}

static void run_op(const struct op *o)
{
	const int own = (o->what & OWN) != 0;
	const gdk_mode_t mode = own	   ? GDK_EXCLUSIVE
				: cfg->cta ? DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
					   : DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	const struct gdk_how how = gdk_how(mode, GDK_AUTO, GDK_THREAD,
					   o->what & NO_DB ? GDK_OPT_SKIP_DB : 0);

	threads[self].own = own;
	switch (o->what & ~(OWN | NO_DB)) {
	case FILL:
		run_fill(how);
		break;
	case TAKE:
	case GIVE:
		from[self] = o->from;
		wants[self] = o->to;
		if ((o->what & ~(OWN | NO_DB)) == TAKE)
			run_take(o, how);
		else
			run_give(o, gdk_mode_scope(mode));
		break;
	case GIVEN:
		run_given(o, how, gdk_mode_scope(mode));
		break;
	default:
		run_meeting();
	}
}

#endif
