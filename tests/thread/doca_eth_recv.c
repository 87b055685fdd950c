/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests when slots of a receive queue are used again. A NIC thread writes packets and CQEs by plain
 * stores as soon as the DBREC permits it; a thread, a warp and a block of two warps receive, and
 * their threads read the packets by plain loads, also packets whose CQE another thread tested.
 * Every packet must arrive once and unchanged. ThreadSanitizer verifies that the receive orders all
 * these accesses, and those of the next packet in the same slot.
 */
#define GDK_WARP 32
#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/bound.h"
#include "gdk_sdk_eth_rxq_dev.h"

#define NUM	    64u
#define WORDS	    8u	  /* of a packet */
#define PACKETS	    2000u /* 31 laps */
#define THREADS_MAX 40u	  /* a warp of 32 lanes and one of 8 */
#define PATTERN	    0x9e3779b97f4a7c15ull
#define BOUND_NS    60000000000ull /* without a packet: failed */

static struct doca_gpu_eth_rxq rxq;
static uint64_t packets[NUM][WORDS];
static uint32_t cqes[NUM][16] __attribute__((aligned(64)));
static uint32_t dbrec;

static struct run {
	enum doca_gpu_dev_eth_exec_scope exec;
	uint32_t threads, most, opt;
} run;

static struct gdk_host_block block;
static struct gdk_host_warp warps[2];
static uint32_t handled, bad; /* packets that threads have read; those that were wrong */

static void *nic(void *arg)
{
	uint32_t i, k, seed = 1;

	for (i = 0; i < PACKETS; i++) {
		while (!((be32toh(__atomic_load_n(&dbrec, __ATOMIC_ACQUIRE)) - i) & 0xffff))
			gdk_host_yield();
		for (k = 0; k < WORDS; k++)
			packets[i % NUM][k] = (i + k) * PATTERN;
		cqes[i % NUM][11] = htobe32(i + 60);
		__atomic_store_n(&cqes[i % NUM][15],
				 htobe32(i << 16 | GDK_CQE_RECV << 4 | (i / NUM & 1)),
				 __ATOMIC_RELEASE);
		seed = seed * 1103515245u + 12345u;
		/* Some receives find an incomplete batch. Each yield costs a whole round of the
		 * threads of a busy machine. */
		if (seed >> 25 == 0)
			gdk_host_yield();
	}
	return arg;
}

static void check(uint64_t idx)
{
	const uint64_t *p = (const uint64_t *)(uintptr_t)gdk_eth_pkt_addr(&rxq, idx);
	uint32_t k, wrong = gdk_eth_pkt_bytes(&rxq, idx) != idx + 60;

	for (k = 0; k < WORDS; k++)
		wrong |= p[k] != (idx + k) * PATTERN;
	if (wrong && __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED) < 10)
		fprintf(stderr, "doca_eth_recv: packet %llu is wrong\n", (unsigned long long)idx);
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *receiver(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	struct gdk_eth_batch b = { 0, 0 };
	uint64_t next = 0;
	uint32_t i;
	int err;

	gdk_host_enter(&block, rank);
	while (next < PACKETS) {
		const uint32_t left = (uint32_t)(PACKETS - next);

		err = gdk_eth_recv(&rxq, run.most < left ? run.most : left, UINT64_MAX, run.opt,
				   run.exec, &b);
		if (err || !b.num || b.first != next) {
			fprintf(stderr,
				"doca_eth_recv: thread %u of %u, at most %u packets, options 0x%x: "
				"%d, %u packets from %llu, expected packet %llu\n",
				rank, run.threads, run.most, run.opt, err, b.num,
				(unsigned long long)b.first, (unsigned long long)next);
			exit(1);
		}
		for (i = rank; i < b.num; i += run.threads)
			check(b.first + i);
		next += b.num;
		if (run.opt & GDK_ETH_KEEP) {
			gdk_eth_sync(run.exec);
			if (rank == 0)
				gdk_eth_release(&rxq, next);
		}
	}
	gdk_host_leave();
	return NULL;
}

static void await_packets(void)
{
	const struct timespec nap = { 0, 1000000 };
	struct bound b = bound_begin(0, false);
	uint32_t n;

	while ((n = __atomic_load_n(&handled, __ATOMIC_RELAXED)) < PACKETS) {
		if (bound_passed(&b, n, BOUND_NS)) {
			fprintf(stderr, "doca_eth_recv: no progress after %u packets\n", n);
			exit(1);
		}
		nanosleep(&nap, NULL);
	}
}

static void receive(enum doca_gpu_dev_eth_exec_scope exec, uint32_t num, uint32_t most,
		    uint32_t opt)
{
	pthread_t sender, threads[THREADS_MAX];
	uint32_t i;

	run = (struct run){ exec, num, most, opt };
	handled = 0;
	memset(&rxq, 0, sizeof(rxq));
	memset(cqes, 0xff, sizeof(cqes));
	rxq.pkts = (uintptr_t)packets;
	rxq.cqes = (uintptr_t)cqes;
	rxq.dbrec = (uintptr_t)&dbrec;
	rxq.num = NUM;
	rxq.stride = sizeof(packets[0]);
	dbrec = htobe32(NUM);
	gdk_host_block_init(&block, warps, num, most + 1);
	pthread_create(&sender, NULL, nic, NULL);
	for (i = 0; i < num; i++)
		pthread_create(&threads[i], NULL, receiver, (void *)(uintptr_t)i);
	await_packets();
	for (i = 0; i < num; i++)
		pthread_join(threads[i], NULL);
	pthread_join(sender, NULL);
	gdk_host_block_fini(&block);
	if (handled != PACKETS) {
		fprintf(stderr, "doca_eth_recv: %u packets instead of %u\n", handled, PACKETS);
		exit(1);
	}
}

int main(void)
{
	static const struct {
		enum doca_gpu_dev_eth_exec_scope exec;
		uint32_t threads;
	} groups[] = {
		{ DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD, 1 },
		{ DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP, 32 },
		{ DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK, THREADS_MAX },
	};
	static const uint32_t most[] = { 0, 24, NUM };
	uint32_t g, m;

	for (g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (m = 0; m < sizeof(most) / sizeof(most[0]); m++) {
			receive(groups[g].exec, groups[g].threads, most[m], 0);
			receive(groups[g].exec, groups[g].threads, most[m], GDK_ETH_KEEP);
		}
	return bad != 0;
}
