/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The operations of a connection of the RDMA library: part of replay.c. */
#ifndef RDMA_OPS_H
#define RDMA_OPS_H

static uint64_t ends[16]; /* the operations below it are those of the first 1, 2, ... commits */
static unsigned num_commits, counted;
/* What a thread knows: operations below it are written, and committed. */
static uint64_t written[THREADS], known[THREADS];
static uint64_t commit_to[THREADS], waited_to[THREADS];

static void start_object(void)
{
	memset(&object, 0, sizeof(object));
	object.rdma.conns = (uintptr_t)&object.conn;
	object.rdma.num = 1;
	object.conn.qp = (uintptr_t)qp;
	num_commits = counted = 0;
	memset(written, 0, sizeof(written));
	memset(known, 0, sizeof(known));
}

static void word_changes(int loc, uint64_t old, uint64_t v)
{
	if (loc == COMMITS)
		ends[num_commits++] = commit_to[self];
	if (loc == WAITED && v > old)
		waited_to[self] = v;
}

/* The WQE has 16 bits of its index. */
static void check_wqe(uint64_t w, uint64_t index)
{
	if ((gdk_bswap32((uint32_t)w) >> 8 & 0xffff) != (index & 0xffff))
		fail("a WQE has the index of another lap");
	if (written[self] < index + 1)
		written[self] = index + 1;
}

static void check_object(void)
{
	if (newest(&m, COMMITS) != num_commits)
		fail("a commit is lost");
	if (newest(&m, WAITED) != counted)
		fail("a commit is not counted once");
}

static void run_write(struct gdk_rdma_at at)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 0x100 };
	const struct gdk_op_move move = gdk_move_of(GDK_MOVE_READ, a, a, 64);

	if (gdk_rdma_post(&object.rdma, 0, &move, 0, at))
		fail("an operation cannot be posted");
}

static void run_commit(unsigned weak)
{
	commit_to[self] = weak ? newest(&m, RSVD) + weak : written[self];
	if (weak ? gdk_rdma_commit_weak(&object.rdma, 0, weak)
		 : gdk_rdma_commit_strong(&object.rdma, 0))
		fail("a commit fails");
	known[self] = commit_to[self];
}

/* Forbidden: that the data of an operation which is committed, as the thread knows, need not be
 * visible, nor those of a commit that the wait has counted. */
static void run_wait_all(void)
{
	uint64_t to = known[self], i;
	uint32_t num;

	waited_to[self] = 0;
	if (gdk_rdma_wait_all(&object.rdma, &num))
		fail("a wait fails");
	counted += num;
	if (waited_to[self] && to < ends[waited_to[self] - 1])
		to = ends[waited_to[self] - 1];
	for (i = to > queues[0].slots ? to - queues[0].slots : 0; i < to; i++)
		if (!pays(i))
			fail("a thread that has waited may read old data");
}

static void run_info(void)
{
	uint32_t position, mask;

	if (gdk_rdma_info(&object.rdma, 0, &position, &mask) || mask != sc->depth - 1 ||
	    position > mask)
		fail("the next position is wrong");
}

static uint64_t most(const uint64_t *of)
{
	uint64_t v = 0;
	int t;

	for (t = 0; t < THREADS; t++)
		v = of[t] > v ? of[t] : v;
	return v;
}

static void run_op(const struct op *o)
{
	uint64_t v;

	switch (o->what) {
	case STRONG:
		run_write(gdk_rdma_next());
		break;
	case WEAK: /* masked or not */
		run_write(gdk_rdma_at(any(2) ? o->to : o->to & (sc->depth - 1)));
		break;
	case COMMIT:
	case COMMIT_WEAK:
		run_commit(o->to);
		break;
	case WAIT_ALL:
		run_wait_all();
		break;
	case INFO:
		run_info();
		break;
	case GIVE:
		give(o->to, known[self]);
		break;
	case TAKE:
		v = take(o->to);
		known[self] = v > known[self] ? v : known[self];
		written[self] = v > written[self] ? v : written[self];
		break;
	default:
		run_meeting();
		written[self] = most(written);
	}
}

#endif
