/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The operations of receives of the RDMA library: part of replay.c. */
#ifndef RDMA_RECV_OPS_H
#define RDMA_RECV_OPS_H

static unsigned returned;	  /* results, by all threads */
static uint64_t written[THREADS]; /* receives below it are posted, as the thread knows, */
static uint64_t known[THREADS];	  /* and committed */

static void start_object(void)
{
	struct doca_gpu_dev_rdma_r *r = &object.recv;

	memset(&object, 0, sizeof(object));
	object.rdma.conns = (uintptr_t)&object.conn; /* not connected */
	object.rdma.num = 1;
	object.map = 1; /* QP number 0, connection 0 */
	r->rdma = (uintptr_t)&object.rdma;
	r->srq = (uintptr_t)qp;
	r->results = (uintptr_t)object.results;
	r->map = (uintptr_t)&object.map;
	r->cq = cqs[0].dev;
	returned = 0;
	memset(written, 0, sizeof(written));
	memset(known, 0, sizeof(known));
	wants[0] = UINT32_MAX;
	from[0] = ~0u;
}

/* Forbidden: that the data of a receive which a thread returns need not be visible to it. */
static void word_changes(int loc, uint64_t old, uint64_t v)
{
	if ((loc == RETURNED || loc == POLLED) && v <= old)
		fail("results are returned, or CQEs are read, twice");
	for (; loc == RETURNED && old < v; old++)
		if (!pays(old))
			fail("a thread that returns a receive may read old data");
}

static void check_wqe(uint64_t w, uint64_t index)
{
	(void)w;
	if (written[self] < index + 1)
		written[self] = index + 1;
}

static void check_object(void)
{
	if (newest(&m, RETURNED) != returned)
		fail("a receive is not returned once");
	if (queues[0].last < newest(&m, COMMITTED))
		fail("a receive that is committed is not offered");
}

/* A receive that is refused because its slot is in use is posted later. */
static void run_receive(struct gdk_rdma_at at)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 0x100 };
	int err;

	while ((err = gdk_rdma_recv(&object.recv, a, 64, at)) == -ENOBUFS)
		weak_idle();
	if (err)
		fail("a receive cannot be posted");
}

static void run_commit(unsigned weak)
{
	uint64_t to = weak ? newest(&m, RSVD) + weak : written[self];
	int err;

	do {
		err = weak ? gdk_rdma_recv_commit_weak(&object.recv, weak)
			   : gdk_rdma_recv_commit_strong(&object.recv);
		if (err == -ENOBUFS)
			weak_idle();
	} while (err == -ENOBUFS);
	if (err)
		fail("a commit fails");
	known[self] = to;
}

static void receive(int block)
{
	uint32_t imm[8], conn[8];
	struct gdk_rdma_out out = { 0, imm, conn };

	if (gdk_rdma_recv_wait(&object.recv, block, &out))
		fail("a wait for receives fails");
	returned += out.num;
}

/* Forbidden: that the data of a receive which is committed, as the thread knows, need not be
 * visible, although another thread has returned it. */
static void run_wait(void)
{
	const uint64_t to = known[self];
	uint64_t i;

	receive(1);
	for (i = to > queues[0].slots ? to - queues[0].slots : 0; i < to; i++)
		if (!pays(i))
			fail("a thread that has waited may read old data");
}

static void run_poll(uint64_t until)
{
	while (newest(&m, RETURNED) < until) {
		receive(0);
		weak_idle();
	}
}

static void run_op(const struct op *o)
{
	uint64_t v;
	int t;

	switch (o->what) {
	case STRONG:
		run_receive(gdk_rdma_next());
		break;
	case WEAK: /* masked or not */
		run_receive(gdk_rdma_at(any(2) ? o->to : o->to & (sc->depth - 1)));
		break;
	case COMMIT:
	case COMMIT_WEAK:
		run_commit(o->to);
		break;
	case WAIT:
		run_wait();
		break;
	case POLL:
		run_poll(o->to);
		break;
	case GIVE:
		give(o->to, known[self]);
		break;
	case TAKE:
		v = take(o->to);
		known[self] = v > known[self] ? v : known[self];
		break;
	default:
		run_meeting();
		for (t = 0; t < THREADS; t++)
			if (written[self] < written[t])
				written[self] = written[t];
	}
}

#endif
