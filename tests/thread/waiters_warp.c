/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Like waiters.c, for warps and blocks: on a full queue pair, groups of lanes post in
 * every scope, or diverge and wait in two ways. One lane waits for the group's slots.
 * All lanes must return the status that ended the wait, and no lane must block in a
 * collective operation.
 */
#define GDK_WARP 32

#include <pthread.h>

#include "../lib/post_slots.h"
#include "../unit/rig.h"

#define THREADS 64u
#define DEPTH	64u

enum ending { ERROR_CQE, ABORT, LIMIT, ENDINGS };
enum way { PUT_THREAD, PUT_WARP, PUT_BLOCK, SIGNAL_WARP, WAIT, APART, WAYS };

static struct gdk_host_block block;
static struct gdk_host_warp warps[THREADS / GDK_WARP];
static struct rig rig;
static enum way way;
static unsigned int started;
static int status[THREADS];
static uint64_t error_wqe[THREADS];

static int put(gdk_exec_t scope)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, htobe32(0x100) };
	doca_gpu_dev_verbs_ticket_t t;

	return gdk_put(&rig.qp, a, a, 8, &t, gdk_how(RIG_GPU, RIG_AUTO, scope, 0));
}

static int signal_warp(void)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, htobe32(0x100) };
	doca_gpu_dev_verbs_ticket_t t;

	return gdk_put_signal(&rig.qp, a, a, 8,
			      gdk_signal_of(DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, a, a, 1), &t,
			      gdk_how(RIG_GPU, RIG_AUTO, GDK_WARP_SCOPE, 0));
}

static int wait_by(uint32_t rank)
{
	switch (way) {
	case PUT_THREAD:
		return put(GDK_THREAD);
	case PUT_WARP:
		return put(GDK_WARP_SCOPE);
	case PUT_BLOCK:
		return put(GDK_BLOCK_SCOPE);
	case SIGNAL_WARP:
		return signal_warp();
	case WAIT:
		return gdk_wait(&rig.qp, rank, RIG_GPU);
	default:
		return rank % 2 ? put(GDK_THREAD) : gdk_poll_cq_at(&rig.qp.cq_sq, rank, RIG_GPU);
	}
}

static void *lane_main(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;

	gdk_host_enter(&block, rank);
	__atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
	status[rank] = wait_by(rank);
	error_wqe[rank] = gdk_qp_error_wqe(&rig.qp);
	gdk_host_leave();
	return NULL;
}

static void open_full(enum ending ending)
{
	uint64_t idx, i;

	rig_init(&rig, DEPTH, RIG_DB, 0);
	rig.st->wait_limit_ns = ending == LIMIT ? 50000000u : 0;
	if (gdk_reserve(&rig.qp, DEPTH, RIG_GPU, 0, &idx)) {
		fprintf(stderr, "waiters_warp: reserving %u slots of an empty queue failed\n",
			DEPTH);
		abort();
	}
	for (i = 0; i < DEPTH; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	post_slots(&rig.qp, 0, DEPTH - 1, RIG_GPU, RIG_AUTO, 0);
}

/* Ends the waits. The error hits the first WQE, so that no slot becomes free, not even
 * for the smallest group. */
static void end(enum ending ending)
{
	const struct timespec t = { .tv_nsec = 5000000 };
	uint32_t spins = 0;

	while (__atomic_load_n(&started, __ATOMIC_RELAXED) < THREADS)
		gdk_relax(spins++);
	nanosleep(&t, NULL);
	if (ending == ERROR_CQE) {
		rig.fail_at = 0;
		rig_nic(&rig);
	} else if (ending == ABORT) {
		__atomic_store_n(&rig.st->abort_word, 1, __ATOMIC_SEQ_CST);
	}
}

/* Starts a thread with a small stack. Tries several times, because a busy machine can be out
 * of threads for a moment. */
static void start(pthread_t *thread, uint32_t rank)
{
	const struct timespec t = { .tv_nsec = 20000000 };
	pthread_attr_t attr;
	int err = EAGAIN, tries;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (tries = 0; err == EAGAIN && tries < 500; tries++) {
		if (tries)
			nanosleep(&t, NULL);
		err = pthread_create(thread, &attr, lane_main, (void *)(uintptr_t)rank);
	}
	pthread_attr_destroy(&attr);
	if (!err)
		return;
	fprintf(stderr, "waiters_warp: creating thread %u failed: %s\n", rank, strerror(err));
	abort();
}

static int run(enum ending ending, uint32_t seed)
{
	static const int expected[] = { -EIO, -ECANCELED, -ETIMEDOUT };
	pthread_t t[THREADS];
	int bad = 0;
	uint32_t i;

	open_full(ending);
	started = 0;
	gdk_host_block_init(&block, warps, THREADS, seed);
	for (i = 0; i < THREADS; i++)
		start(&t[i], i);
	end(ending);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	gdk_host_block_fini(&block);
	for (i = 0; i < THREADS; i++)
		bad |= status[i] != expected[ending] || error_wqe[i] != 0;
	bad |= rig.st->rung != DEPTH || rig.faults;
	for (i = 0; bad && i < THREADS; i++)
		fprintf(stderr, "waiters_warp: ending %d way %d thread %u: status %d, WQE %llu\n",
			ending, way, i, status[i], (unsigned long long)error_wqe[i]);
	rig_fini(&rig);
	return bad;
}

int main(void)
{
	uint32_t seed = 1;
	int bad = 0;

	for (unsigned int w = 0; w < WAYS; w++) {
		way = (enum way)w;
		for (unsigned int e = 0; e < ENDINGS; e++)
			bad |= run((enum ending)e, seed++);
	}
	return bad;
}
