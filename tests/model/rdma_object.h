/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* An RDMA object with one connection, which is queue 0, or with a receive queue: part of replay.c.
 * Words that several threads change are in the memory of weak.h. */
#ifndef RDMA_OBJECT_H
#define RDMA_OBJECT_H

static struct {
	struct doca_gpu_dev_rdma rdma;
	struct gdk_rdma_conn conn;
	struct doca_gpu_dev_rdma_r recv;
	struct gdk_rdma_result results[4];
	gdk_rdma_map_t map;
} object __attribute__((aligned(GDK_STATE_LINE)));

#if SRQ
enum { COMMITTED = WORD0, RETURNED, POLLED, BUSY, RESULT0 };
static const void *const words[WORDS] = {
	&object.recv.committed,	 &object.recv.returned,	  &object.recv.polled,
	&object.recv.busy,	 &object.results[0].conn, &object.results[1].conn,
	&object.results[2].conn, &object.results[3].conn,
};
#else
enum { COMMITTED = WORD0, COMMITS, WAITED };
static const void *const words[WORDS] = { &object.conn.committed, &object.conn.commits,
					  &object.conn.waited };
#endif

static int word_loc(const char *c)
{
	int i;

	for (i = 0; i < WORDS; i++)
		if (c == words[i])
			return WORD0 + i;
	return LOCS;
}

static int is_object(const char *c)
{
	return c >= (const char *)&object && c < (const char *)(&object + 1);
}

/* Called for each store to a word. */
static void word_changes(int loc, uint64_t old, uint64_t v);
/* Called before a WQE is stored. index: of its slot, in this lap; w: its first 8 bytes. */
static void check_wqe(uint64_t w, uint64_t index);

/* The memory of weak.h keeps values from thread to thread. */
static void give(unsigned at, uint64_t v)
{
	gdk_fence_rel(user_scope() + 1);
	gdk_st64(&mail[at], v + 1, user_scope() + 1);
}

static uint64_t take(unsigned at)
{
	uint64_t v;

	while (!(v = gdk_ld64(&mail[at], user_scope() + 1)))
		weak_idle();
	gdk_fence_acq(user_scope() + 1);
	return v - 1;
}

#endif
