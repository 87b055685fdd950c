/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Messages of an RDMA object with several connections, which share one receive queue. Run it on a
 * wire that loses, duplicates and reorders packets (tests/rdma_conns.sh).
 *
 * Two threads, each for half of the connections, send messages of up to three packets. The
 * receiver posts 128 receives, strong ones or, as NIXL does, weak ones that are written once. Each
 * result must name the connection that the message names, in the order of that connection, with its
 * immediate value and content, once. Each commit must be counted once.
 *
 * usage: rdma_conns [-n MESSAGES] [-c CONNECTIONS] [-s SEED] [-w (weak receives)]
 */
#include <dlfcn.h>
#include <endian.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "../lib/rdma_rig.h"
#include "../softnic/softnic.h"

#define RECEIVES  128u
#define ROOM	  4096u /* bytes of a receive */
#define SLOTS	  64u	/* buffers of a sending thread */
#define SENDERS	  2u
#define MAX_CONNS 16u
#define WAIT_NS	  60000000000ull

#define DIE(...) \
	do { \
		fprintf(stderr, "rdma_conns: "); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		exit(1); \
	} while (0)

static struct rig r;
static uint64_t messages = 10000, seed = 1;
static uint32_t conns = 8;
static bool weak;

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ull + b * 0xbf58476d1ce4e5b9ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 31;
}

/* ---- message n of connection c ---- */

static uint32_t length_of(uint32_t c, uint64_t n)
{
	const uint64_t h = mix(seed + c, n);

	return 16 + (uint32_t)(h >> 8) % (h & 3 ? 200 : 2900);
}

static void fill(uint8_t *p, uint32_t c, uint64_t n)
{
	const uint32_t len = length_of(c, n);
	uint64_t x = mix(seed ^ c, ~n);

	memcpy(p, &(uint64_t){ c }, 8);
	memcpy(p + 8, &n, 8);
	for (uint32_t i = 16; i < len; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		p[i] = (uint8_t)(x >> 56);
	}
}

static uint32_t imm_of(uint32_t c, uint64_t n)
{
	return htobe32(c << 24 | ((uint32_t)n & 0xffffff));
}

static uint64_t share_of(uint32_t c)
{
	return messages / conns + (c < messages % conns);
}

/* ---- sending ---- */

static uint64_t commits;

static void send_one(uint32_t c, uint64_t n, uint32_t buf)
{
	fill(r.a.m.mem + (size_t)buf * ROOM, c, n);
	OK(doca_gpu_dev_rdma_send_strong(r.a.dev, c, rig_buf(&r.a, buf), 0, length_of(c, n),
					 imm_of(c, n), DOCA_GPU_RDMA_SEND_FLAG_IMM));
}

/* Waits until all operations are complete. The commits may be counted for another thread. */
static void wait_all(void)
{
	uint32_t num;

	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	__atomic_fetch_add(&commits, num, __ATOMIC_RELAXED);
}

/* Sends on the connections me, me + SENDERS, ..., up to 4 messages on each in turn. */
static void *sender(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;
	uint64_t n[MAX_CONNS] = { 0 };
	uint32_t buf = 0, made;

	do {
		made = 0;
		for (uint32_t c = me; c < conns; c += SENDERS) {
			const uint32_t before = made;

			for (uint32_t k = 0; k < 4 && n[c] < share_of(c); k++, made++)
				send_one(c, n[c]++, me * SLOTS + buf + made);
			if (made == before)
				continue;
			OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, c));
			__atomic_fetch_sub(&commits, 1, __ATOMIC_RELAXED);
		}
		buf += made;
		if (buf > SLOTS - 4 * MAX_CONNS / SENDERS) {
			wait_all();
			buf = 0;
		}
	} while (made);
	wait_all();
	return NULL;
}

/* ---- receiving ---- */

static void post(uint64_t position)
{
	const uint32_t slot = position % RECEIVES;

	if (weak)
		OK(doca_gpu_dev_rdma_recv_weak(r.b.recv, rig_buf(&r.b, slot), ROOM, 0, 0,
					       (uint32_t)position));
	else
		OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, rig_buf(&r.b, slot), ROOM, 0, 0));
}

/* Offers n receives from a position on. Weak ones are written in the first lap only. */
static void offer(uint64_t position, uint32_t n)
{
	for (uint32_t i = 0; i < n && (!weak || position < RECEIVES); i++)
		post(position + i);
	if (!weak)
		OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
	else
		OK(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, n));
}

static void check(uint64_t position, uint32_t imm, uint32_t c, uint64_t *next)
{
	const uint8_t *p = r.b.m.mem + position % RECEIVES * ROOM;
	uint64_t named[2];
	uint8_t want[ROOM];

	memcpy(named, p, sizeof(named));
	if (c >= conns || named[0] != c)
		DIE("receive %" PRIu64 " names connection %u, its message %" PRIu64, position, c,
		    named[0]);
	if (named[1] != next[c] || imm != imm_of(c, next[c]))
		DIE("connection %u: message %" PRIu64
		    ", immediate 0x%x, instead of message %" PRIu64,
		    c, named[1], be32toh(imm), next[c]);
	fill(want, c, next[c]);
	if (memcmp(want, p, length_of(c, next[c])))
		DIE("connection %u, message %" PRIu64 ": its content changed", c, next[c]);
	next[c]++;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void receive_all(void)
{
	uint32_t imm[RECEIVES], conn[RECEIVES], num;
	uint64_t next[MAX_CONNS] = { 0 }, got = 0, since = now_ns();

	while (got < messages) {
		OK(doca_gpu_dev_rdma_recv_wait_all(r.b.recv, DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB, &num,
						   imm, conn));
		for (uint32_t i = 0; i < num; i++)
			check(got + i, imm[i], conn[i], next);
		if (num) {
			offer(got + RECEIVES, num);
			got += num;
			since = now_ns();
		} else if (now_ns() - since > WAIT_NS) {
			DIE("no message after %" PRIu64, got);
		} else {
			sched_yield();
		}
	}
	for (uint32_t c = 0; c < conns; c++)
		if (next[c] != share_of(c))
			DIE("connection %u: %" PRIu64 " messages", c, next[c]);
}

static void parse(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "n:c:s:w")) != -1) {
		if (opt == 'n')
			messages = strtoull(optarg, NULL, 0);
		else if (opt == 'c')
			conns = (uint32_t)strtoul(optarg, NULL, 0);
		else if (opt == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (opt == 'w')
			weak = true;
		else
			exit(2);
	}
	if (!conns || conns > MAX_CONNS)
		DIE("1 to %u connections", MAX_CONNS);
}

static uint64_t faults(void)
{
	const struct sn_stats *(*get)(void);

	*(void **)&get = dlsym(RTLD_DEFAULT, "sn_stats_get");
	if (!get)
		DIE("it does not run on the software NIC (softnic-run)");
	return get()->faults_injected;
}

int main(int argc, char **argv)
{
	const struct rig_how how = { .send = 32,
				     .recv = RECEIVES,
				     .bytes = RECEIVES * 2 * ROOM,
				     .buf = ROOM };
	struct rig_how h = how;
	pthread_t threads[SENDERS];

	parse(argc, argv);
	h.conns = conns;
	rig_begin(&r, h);
	OK(gdk_rdma_set_wait_limit(r.a.rdma, WAIT_NS));
	offer(0, RECEIVES);
	for (uintptr_t i = 0; i < SENDERS; i++)
		if (pthread_create(&threads[i], NULL, sender, (void *)i))
			DIE("no thread");
	receive_all();
	for (uint32_t i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	wait_all();
	if (commits)
		DIE("%" PRId64 " more commits were counted than made", (int64_t)commits);
	printf("%s receives: %" PRIu64 " messages on %u connections, %" PRIu64 " faults\n",
	       weak ? "weak" : "strong", messages, conns, faults());
	rig_end(&r);
	return 0;
}
