/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dup 0.002 --reorder 0.002 --seed 9 */
/*
 * Several threads post receives to the queue of two connections, commit them, and take results, as
 * several blocks would. In each round they fill the queue, and the main thread sends as many
 * messages while all threads take results. Each message must be returned to one thread, once, with
 * its connection.
 */
#include <endian.h>
#include <pthread.h>
#include <time.h>

#include "../lib/rdma_rig.h"

#define RECEIVERS 3u
#define CONNS	  2u
#define DEPTH	  32u /* messages of a round */
#define ROUNDS	  120u

static struct rig r;
static uint32_t times[ROUNDS * DEPTH]; /* how often a message was returned */
static uint32_t returned, arrived;
static int failed;

static void fail(const char *what, uint64_t a, uint64_t b)
{
	if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "%s: %llu, %llu\n", what, (unsigned long long)a,
			(unsigned long long)b);
}

static int has_failed(void)
{
	return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

/* Leaves the processor to the NIC. */
static void pause_10us(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
}

/* All threads meet, and go on as nearly at the same time as possible. */
static void meet(uint32_t *turn)
{
	const uint32_t all = (RECEIVERS + 1) * ++*turn;
	uint32_t spins = 0;

	__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < all)
		if (++spins > 100)
			pause_10us();
}

static void send_round(uint32_t round)
{
	doca_error_t err;
	uint32_t num;

	for (uint32_t i = round * DEPTH; i < (round + 1) * DEPTH; i++) {
		const uint32_t conn = i % CONNS;

		if (doca_gpu_dev_rdma_send_strong(r.a.dev, conn, rig_buf(&r.a, conn), 0, 8,
						  htobe32(conn << 24 | i),
						  DOCA_GPU_RDMA_SEND_FLAG_IMM))
			fail("a send failed", conn, i);
		if (doca_gpu_dev_rdma_commit_strong(r.a.dev, conn))
			fail("a commit failed", conn, i);
	}
	err = doca_gpu_dev_rdma_wait_all(r.a.dev, &num);
	if (err || num != DEPTH)
		fail("a wait failed, or has counted other commits", err, num);
}

static void note(uint32_t imm_be, uint32_t conn)
{
	const uint32_t imm = be32toh(imm_be), i = imm & 0xffffff;

	if (imm >> 24 != conn || conn >= CONNS || i >= ROUNDS * DEPTH)
		fail("a receive names another connection", imm, conn);
	else if (__atomic_fetch_add(&times[i], 1, __ATOMIC_RELAXED))
		fail("a message was returned twice", conn, i);
	__atomic_fetch_add(&returned, 1, __ATOMIC_RELAXED);
}

/* Until the queue is full. */
static void post(uint32_t me)
{
	doca_error_t err;

	do {
		err = doca_gpu_dev_rdma_recv_strong(r.b.recv, rig_buf(&r.b, me), 256, 0, 0);
		if (err && err != DOCA_ERROR_FULL)
			fail("a receive cannot be posted", me, err);
	} while (!err);
	if (doca_gpu_dev_rdma_recv_commit_strong(r.b.recv))
		fail("a commit of receives failed", me, 0);
}

static void take(uint32_t round, int block)
{
	uint32_t imm[DEPTH], conn[DEPTH], num;

	do {
		const doca_error_t err = doca_gpu_dev_rdma_recv_wait_all(
			r.b.recv,
			block ? DOCA_GPU_RDMA_RECV_WAIT_FLAG_B : DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB,
			&num, imm, conn);

		if (err || num > DEPTH)
			fail("a wait failed", err, num);
		for (uint32_t i = 0; i < num && i < DEPTH; i++)
			note(imm[i], conn[i]);
		if (!num)
			pause_10us();
	} while (__atomic_load_n(&returned, __ATOMIC_RELAXED) < (round + 1) * DEPTH &&
		 !has_failed());
}

static void *receiver(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	uint32_t turn = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (!has_failed())
			post(me);
		meet(&turn); /* the queue is full */
		if (!has_failed())
			take(round, round % 4 == me);
		meet(&turn); /* all results were taken */
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[RECEIVERS];
	uint32_t turn = 0;

	rig_begin(&r, (struct rig_how){ .conns = CONNS, .recv = DEPTH });
	OK(gdk_rdma_set_wait_limit(r.a.rdma, 60000000000ull)); /* the machine may be busy */
	OK(gdk_rdma_set_wait_limit(r.b.rdma, 60000000000ull));
	for (uintptr_t i = 0; i < RECEIVERS; i++)
		if (pthread_create(&threads[i], NULL, receiver, (void *)i))
			abort();
	for (uint32_t round = 0; round < ROUNDS; round++) {
		meet(&turn);
		if (!has_failed())
			send_round(round);
		meet(&turn);
	}
	for (uint32_t i = 0; i < RECEIVERS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < ROUNDS * DEPTH; i++)
		if (times[i] != 1)
			fail("a message was not returned once", i, times[i]);
	rig_end(&r);
	return failed;
}
