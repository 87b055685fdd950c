/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests sends and receives of groups of lanes: warps of 32 lanes in THREAD and WARP scope, blocks
 * of 40 threads, queues that are shorter than the group, and receives without a doorbell that one
 * submit offers together. Each lane must get a ticket of its own, and the message of that ticket.
 */
#define GDK_WARP 32

#include "../lib/recv_rig.h"

#define CTA    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define MOST   40u
#define ROUNDS 6u

static const struct doca_gpu_dev_verbs_addr nothing;
static struct gdk_host_block block[2];
static struct gdk_host_warp warps[2][2];
static struct recv_rig r;
static uint32_t threads, opt;
static gdk_mode_t mode;
static gdk_exec_t scope;
static uint64_t got[MOST], sent[MOST];
static int status[2][MOST];

static void *receive(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	const struct gdk_how how = gdk_how(mode, GDK_AUTO, scope, opt);

	gdk_host_enter(&block[0], rank);
	status[0][rank] = gdk_recv(r.b.dev, recv_at(&r.b, rank * 64), 64, &got[rank], how);
	gdk_host_leave();
	return NULL;
}

static void *send(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	const struct gdk_how how = gdk_how(mode, GDK_AUTO, scope, 0);

	gdk_host_enter(&block[1], rank);
	status[1][rank] = gdk_send(r.a.dev, recv_at(&r.a, rank * 64), rank + 1, &sent[rank], how);
	gdk_host_leave();
	return NULL;
}

static void run_group(uint32_t which, void *(*fn)(void *), uint32_t seed)
{
	pthread_t t[MOST];
	uint32_t i;

	gdk_host_block_init(&block[which], warps[which], threads, seed);
	for (i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, fn, (void *)(uintptr_t)i);
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	gdk_host_block_fini(&block[which]);
}

/* The message of ticket t is that of the sender with ticket t. */
static int check(uint64_t base)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t seen[MOST] = { 0 };
	uint32_t i, k;
	int bad = 0;

	for (i = 0; i < threads; i++) {
		bad |= status[0][i] | status[1][i];
		if (got[i] - base >= threads || seen[got[i] - base]++)
			return 1;
		bad |= gdk_recv_wait(r.b.dev, got[i], nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
				     E2E_MODE, &cqe);
		for (k = 0; k < threads && sent[k] != got[i]; k++)
			;
		bad |= k == threads || gdk_cqe_bytes(cqe) != k + 1 ||
		       memcmp(r.b.buf.mem + i * 64, r.a.buf.mem + k * 64, k + 1);
	}
	for (i = 0; i < threads; i++)
		bad |= gdk_wait(r.a.dev, sent[i], E2E_MODE);
	return bad;
}

static int run(uint32_t n, gdk_mode_t m, gdk_exec_t s, uint32_t depth, uint32_t o)
{
	uint32_t round;
	int bad = 0;

	threads = n;
	mode = m;
	scope = s;
	opt = o;
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = depth });
	for (uint32_t i = 0; i < RECV_RIG_BYTES; i++)
		r.a.buf.mem[i] = e2e_pattern(i, n);
	for (round = 0; round < ROUNDS && !bad; round++) {
		run_group(0, receive, round);
		if (opt && recv_dbrec(&r.b) != round * threads)
			bad = 1;
		if (opt)
			bad |= gdk_rq_submit(r.b.dev, (round + 1) * threads,
					     gdk_how(m, GDK_AUTO, GDK_THREAD, 0));
		bad |= recv_dbrec(&r.b) != (round + 1) * threads;
		run_group(1, send, round);
		bad |= check((uint64_t)round * threads);
	}
	if (bad)
		fprintf(stderr,
			"%u threads, mode %d, scope %d, queue of %u, options %u: round %u\n", n, m,
			s, depth, o, round);
	recv_rig_close(&r);
	return bad;
}

/* Sends message k when receive k is offered. */
static void *send_one_by_one(void *arg)
{
	const uint32_t num = ROUNDS * threads;
	uint64_t ticket;
	uint32_t k;

	for (k = 0; k < num; k++) {
		while (recv_dbrec(&r.b) <= k)
			gdk_host_yield();
		E2E_REQUIRE(!gdk_send(r.a.dev, recv_at(&r.a, 0), 1, &ticket,
				      gdk_how(E2E_EXCL, GDK_AUTO, GDK_THREAD, 0)));
		E2E_REQUIRE(!gdk_wait(r.a.dev, ticket, E2E_EXCL));
	}
	return arg;
}

/* The queue is shorter than the group: the lanes post one after the other, and wait for room. */
static int run_short(uint32_t n, gdk_mode_t m, gdk_exec_t s)
{
	uint64_t seen[ROUNDS * MOST] = { 0 };
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint32_t round, i;
	pthread_t sender;
	int bad = 0;

	threads = n;
	mode = m;
	scope = s;
	opt = 0;
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 8 });
	pthread_create(&sender, NULL, send_one_by_one, NULL);
	for (round = 0; round < ROUNDS; round++) {
		run_group(0, receive, round);
		for (i = 0; i < threads; i++)
			bad |= status[0][i] || got[i] >= ROUNDS * threads || seen[got[i]]++;
	}
	bad |= gdk_recv_wait_all(r.b.dev, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED, E2E_MODE,
				 &cqe);
	pthread_join(sender, NULL);
	if (bad)
		fprintf(stderr, "%u threads, mode %d, scope %d: a short queue failed\n", n, m, s);
	recv_rig_close(&r);
	return bad;
}

int main(void)
{
	const gdk_mode_t modes[] = { CTA, E2E_MODE };
	int bad = 0;

	for (int i = 0; i < 2; i++) {
		bad |= run(32, modes[i], GDK_THREAD, 64, 0);
		bad |= run(32, modes[i], GDK_WARP_SCOPE, 64, 0);
		bad |= run(40, modes[i], GDK_BLOCK_SCOPE, 64, 0);
		bad |= run(32, modes[i], GDK_WARP_SCOPE, 32, 0);
		bad |= run(32, modes[i], GDK_WARP_SCOPE, 64, GDK_OPT_SKIP_DB);
	}
	bad |= run(32, E2E_EXCL, GDK_WARP_SCOPE, 64, 0);
	bad |= run(40, E2E_EXCL, GDK_BLOCK_SCOPE, 64, 0);
	bad |= run(40, E2E_EXCL, GDK_BLOCK_SCOPE, 64, GDK_OPT_SKIP_DB);
	bad |= run_short(32, E2E_MODE, GDK_WARP_SCOPE);
	bad |= run_short(32, CTA, GDK_WARP_SCOPE);
	bad |= run_short(32, E2E_MODE, GDK_THREAD);
	bad |= run_short(40, E2E_EXCL, GDK_BLOCK_SCOPE);
	return bad != 0;
}
