/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * WARP scope needs a whole warp (qp/README.md). In a block of 20 threads an operation reserves and
 * publishes 32 slots, as on a GPU, and 12 of them are not written. debug_partial_warp.c is the
 * debug build of this file: it refuses the operation. In THREAD and BLOCK scope each thread posts.
 */
#define GDK_WARP 32

#include <pthread.h>

#include "device/gdk/platform.h"

static int lines; /* printed by the debug build */
#define GDK_DEBUG_PRINT(text) ((void)(text), __atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED))

#include "../unit/rig.h"

#define THREADS 20u
#define DEPTH	64u

static struct gdk_host_block block;
static struct gdk_host_warp warp;
static struct rig rig;
static gdk_mode_t mode;
static gdk_exec_t scope;
static int status[THREADS];
static doca_gpu_dev_verbs_ticket_t tickets[THREADS];

static void *lane(void *arg)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, htobe32(0x100) };
	const uint32_t rank = (uint32_t)(uintptr_t)arg;

	gdk_host_enter(&block, rank);
	status[rank] = gdk_put(&rig.qp, a, a, 8, &tickets[rank], gdk_how(mode, RIG_AUTO, scope, 0));
	gdk_host_leave();
	return NULL;
}

/* Returns the number of slots that one put by each of the threads reserves. */
static uint64_t put(gdk_mode_t m, gdk_exec_t s)
{
	pthread_t t[THREADS];
	uint32_t i;

	mode = m;
	scope = s;
	lines = 0;
	rig_init(&rig, DEPTH, RIG_DB, 0);
	gdk_host_block_init(&block, &warp, THREADS, 1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, lane, (void *)(uintptr_t)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	gdk_host_block_fini(&block);
	return rig.qp.sq_rsvd_index;
}

static int check(gdk_mode_t m)
{
	const int whole[] = { GDK_THREAD, GDK_BLOCK_SCOPE };
	int bad = 0, i, refused;

	for (i = m == RIG_EXCL; i < 2; i++) {
		bad |= put(m, (gdk_exec_t)whole[i]) != THREADS || status[0] || lines;
		rig_nic(&rig);
		bad |= rig.pi != THREADS || rig.faults;
		rig_fini(&rig);
	}
	put(m, GDK_WARP_SCOPE);
	refused = rig.st->status == -EINVAL && status[0] == -EINVAL &&
		  status[THREADS - 1] == -EINVAL && !rig.qp.sq_rsvd_index && lines == 1;
#ifdef GDK_DEBUG
	bad |= !refused;
#else
	bad |= refused || rig.qp.sq_rsvd_index != 32 || rig.st->rung != 32 || status[0];
#endif
	if (bad)
		fprintf(stderr, "mode %d: reserved %llu, rung %llu, status %d, %d lines\n", m,
			(unsigned long long)rig.qp.sq_rsvd_index, (unsigned long long)rig.st->rung,
			status[0], lines);
	rig_fini(&rig);
	return bad;
}

int main(void)
{
	return check(RIG_EXCL) | check(RIG_CTA) | check(RIG_GPU);
}
