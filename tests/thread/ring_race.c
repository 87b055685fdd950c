/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks that no doorbell is lost. In each round one thread publishes slot k and never
 * rings, while another publishes and submits slot k + 1: both slots must be rung in the
 * end. A range that is published at once must be rung as a whole or not at all. Then
 * many threads reserve runs of slots that wrap a ring of 2 and of 64 slots: a thread
 * that waits for a free slot must ring the slots that others only published.
 */
#include <pthread.h>

#include "../unit/rig.h"

#ifndef RACE_ROUNDS
#define RACE_ROUNDS 20000
#endif
#define RUNNERS 8
#define RUNS	400

static struct rig rig;
static uint64_t base;
static unsigned int turn, done;
static int stop;

static void write_nop(uint64_t idx)
{
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx, GDK_CE_ALWAYS);
}

/* Waits until round n starts. Returns 0 if the test has ended. */
static int await_round(unsigned int n)
{
	uint32_t spins = 0;

	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < n) {
		if (__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
			return 0;
		gdk_relax(spins++);
	}
	return 1;
}

static void *publish_only(void *arg)
{
	unsigned int n;

	for (n = 1; n <= RACE_ROUNDS && await_round(n); n++) {
		write_nop(base);
		gdk_mark_ready(&rig.qp, base, base, RIG_GPU, RIG_AUTO);
		__atomic_fetch_add(&done, 1, __ATOMIC_ACQ_REL);
	}
	return arg;
}

static void *publish_and_submit(void *arg)
{
	unsigned int n;

	for (n = 1; n <= RACE_ROUNDS && await_round(n); n++) {
		write_nop(base + 1);
		gdk_mark_ready(&rig.qp, base + 1, base + 1, RIG_GPU, RIG_AUTO);
		gdk_submit(&rig.qp, base + 2, gdk_how(RIG_GPU, RIG_AUTO, GDK_THREAD, 0));
		__atomic_fetch_add(&done, 1, __ATOMIC_ACQ_REL);
	}
	return arg;
}

static int neighbours(void)
{
	pthread_t a, b;
	unsigned int n;
	uint32_t spins = 0;
	int bad = 0;

	rig_init(&rig, 64, RIG_DB, 0);
	stop = 0;
	pthread_create(&a, NULL, publish_only, NULL);
	pthread_create(&b, NULL, publish_and_submit, NULL);
	for (n = 1; n <= RACE_ROUNDS && !bad; n++) {
		bad = gdk_reserve(&rig.qp, 2, RIG_GPU, 0, &base);
		__atomic_store_n(&done, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&turn, n, __ATOMIC_RELEASE);
		while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != 2)
			gdk_relax(spins++);
		rig_nic(&rig);
		if (rig.ci != base + 2) {
			fprintf(stderr, "round %u: lost doorbell, executed %llu of %llu slots\n", n,
				(unsigned long long)rig.ci, (unsigned long long)base + 2);
			bad = 1;
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	bad |= rig.faults != 0;
	rig_fini(&rig);
	return bad;
}

static void *nic(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		rig_nic(&rig);
		gdk_host_yield();
	}
	return arg;
}

/* Runs of 1 to 3 slots, each published from the last slot to the first. Only the last
 * run is submitted, so that free slots depend on the waiters, which must ring. */
static void *runner(void *arg)
{
	unsigned int i, n, k;
	uint64_t idx;

	for (i = 0; i < RUNS; i++) {
		n = rig.depth > 2 ? 1 + i % 3 : 1 + i % 2;
		if (gdk_reserve(&rig.qp, n, RIG_CTA, 0, &idx))
			return arg;
		for (k = n; k-- > 0;) {
			write_nop(idx + k);
			gdk_mark_ready(&rig.qp, idx + k, idx + k, RIG_CTA, RIG_AUTO);
		}
	}
	gdk_submit(&rig.qp, idx + n, gdk_how(RIG_CTA, RIG_AUTO, GDK_THREAD, 0));
	return NULL;
}

/* Publishes ranges of 16 slots that whole_ranges() has already submitted. */
static void *publisher(void *arg)
{
	unsigned int i, k;
	uint64_t idx;

	for (i = 0; i < RUNS * 20; i++) {
		if (gdk_reserve(&rig.qp, 16, RIG_GPU, 0, &idx))
			return arg;
		for (k = 0; k < 16; k++)
			write_nop(idx + k);
		gdk_mark_ready(&rig.qp, idx, idx + 15, RIG_GPU, RIG_AUTO);
	}
	return NULL;
}

/* While the publisher runs, this thread submits up to the end and thereby rings
 * whatever is published. It must never ring part of a range, because a range could be
 * one long WQE. */
static int whole_ranges(void)
{
	const uint64_t end = RUNS * 20 * 16;
	pthread_t thread;
	void *failed;
	int cut = 0;

	rig_init(&rig, 64, RIG_DB, 0);
	pthread_create(&thread, NULL, publisher, &rig);
	while (rig.ci < end && !cut && !gdk_qp_status(&rig.qp)) {
		gdk_submit(&rig.qp, end, gdk_how(RIG_GPU, RIG_AUTO, GDK_THREAD, 0));
		cut = gdk_ld64(&rig.st->rung, GDK_SCOPE_GPU) % 16 != 0;
		rig_nic(&rig);
	}
	if (cut) {
		fprintf(stderr, "only a part of a range was rung\n");
		gdk_state_end(rig.st, -ECANCELED);
	}
	pthread_join(thread, &failed);
	cut |= failed != NULL || rig.faults || rig.ci != end;
	rig_fini(&rig);
	return cut;
}

static int wrapping(uint32_t depth)
{
	pthread_t thread[RUNNERS], nic_thread;
	void *failed;
	int bad = 0, i;

	rig_init(&rig, depth, RIG_DB, 0);
	stop = 0;
	pthread_create(&nic_thread, NULL, nic, NULL);
	for (i = 0; i < RUNNERS; i++)
		pthread_create(&thread[i], NULL, runner, &rig);
	for (i = 0; i < RUNNERS; i++) {
		pthread_join(thread[i], &failed);
		bad |= failed != NULL;
	}
	bad |= gdk_flush(&rig.qp, RIG_CTA) != 0;
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(nic_thread, NULL);
	bad |= rig.faults || rig.ci != rig.qp.sq_rsvd_index || rig.cq_pi != rig.ci;
	if (bad)
		fprintf(stderr, "depth %u: status %d, executed %llu of %llu\n", depth,
			rig.st->status, (unsigned long long)rig.ci,
			(unsigned long long)rig.qp.sq_rsvd_index);
	rig_fini(&rig);
	return bad;
}

int main(void)
{
	return neighbours() | whole_ranges() | wrapping(2) | wrapping(64);
}
