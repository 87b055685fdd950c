/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests warps and blocks that CPU threads simulate: the collective functions must return
 * what they return on a GPU, for whole and partial warps, for subsets of lanes, and after
 * some lanes have ended. Only the collective functions order the accesses to the test's
 * plain variables; ThreadSanitizer verifies that they synchronize.
 */
#define GDK_WARP 32
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/gdk/platform.h"

#define THREADS 75u /* two warps of 32 lanes and one of 11 */
#define ROUNDS	40u

#define CHECK(cond) \
	do { \
		if (!(cond) && __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED) < 10) \
			fprintf(stderr, "%s:%d: rank %u: %s\n", __FILE__, __LINE__, \
				gdk_block_rank(), #cond); \
	} while (0)

static struct gdk_host_block block;
static struct gdk_host_warp warps[(THREADS + 31) / 32];
static uint64_t plain[THREADS];	 /* ordered by the collectives only */
static uint32_t group_sizes[33]; /* number of converged groups, by their size */
static int bad;

static uint32_t lanes_of(uint32_t warp)
{
	const uint32_t n = THREADS - 32 * warp;

	return n >= 32 ? UINT32_MAX : (1u << n) - 1;
}

static void whole_warp(uint32_t round)
{
	const uint32_t rank = gdk_block_rank(), warp = rank / 32, lane = gdk_lane();
	const uint32_t all = lanes_of(warp), from = round % gdk_popc32(all);

	CHECK(lane == rank % 32 && gdk_warp_size() == 32 && gdk_warp_mask() == UINT32_MAX);
	CHECK(gdk_ballot(lane % 3 == 0) == (0x49249249u & all));
	CHECK(gdk_shfl64(rank * 1000ull + round, from) == (warp * 32 + from) * 1000ull + round);
	CHECK(gdk_match64(all, lane % 2) == (all & (lane % 2 ? 0xaaaaaaaau : 0x55555555u)));
	plain[rank] = round;
	gdk_syncwarp();
	CHECK(plain[warp * 32 + from] == round);
	gdk_syncwarp();
}

/* Odd and even lanes take different branches; the even ones diverge once more. */
static void divergent(uint32_t round)
{
	const uint32_t all = lanes_of(gdk_block_rank() / 32), lane = gdk_lane();
	const uint32_t odd = all & 0xaaaaaaaau, even = all & 0x55555555u;
	uint32_t mine;

	if (lane % 2) {
		CHECK(gdk_shfl64m(odd, lane + round, 1) == 1 + round);
		CHECK(gdk_ballot_mask(odd, lane > 4) == (odd & ~0x1fu));
	} else {
		mine = gdk_match64(even, lane % 4);
		CHECK(mine == (all & (lane % 4 ? 0x44444444u : 0x11111111u)));
		gdk_syncwarp_mask(mine);
		CHECK(gdk_shfl64m(mine, lane, gdk_ctz32(mine)) == lane % 4);
	}
	CHECK(gdk_ballot(1) == all);
}

/* All lanes of a converged group must read the same mask. */
static void gathering(void)
{
	const uint32_t group = gdk_activemask();

	CHECK(group >> gdk_lane() & 1 && !(group & ~lanes_of(gdk_block_rank() / 32)));
	CHECK(gdk_match64(group, group) == group);
	CHECK(gdk_shfl64m(group, group, gdk_ctz32(group)) == group);
	if (gdk_lane() == gdk_ctz32(group))
		__atomic_fetch_add(&group_sizes[gdk_popc32(group)], 1, __ATOMIC_RELAXED);
}

static void whole_block(uint32_t round)
{
	const uint32_t rank = gdk_block_rank(), other = (rank + 33) % THREADS;
	uint32_t i;

	CHECK(gdk_block_size() == THREADS);
	plain[rank] = rank + round;
	gdk_block_sync();
	CHECK(plain[other] == other + round);
	for (i = 0; i < 3; i++) {
		CHECK(gdk_block_bcast64(rank ? 7 : round + i) == round + i);
		CHECK(gdk_block_any(i % 2 && rank == round) == (int)(i % 2));
	}
}

/* Lanes end one after the other; the remaining lanes must not wait for them. */
static void leaving(void)
{
	const uint32_t warp = gdk_block_rank() / 32, all = lanes_of(warp);
	uint32_t i;

	for (i = 0; i < gdk_popc32(all) && i < gdk_lane(); i++) {
		(void)gdk_activemask();
		CHECK(!(gdk_ballot(1) & ~all));
	}
}

static void *lane(void *arg)
{
	uint32_t i;

	gdk_host_enter(&block, (uint32_t)(uintptr_t)arg);
	for (i = 0; i < ROUNDS; i++) {
		whole_warp(i);
		divergent(i);
		gathering();
		whole_block(i);
	}
	leaving();
	gdk_host_leave();
	return NULL;
}

static void alone(void)
{
	CHECK(gdk_lane() == 0 && gdk_warp_size() == 1 && gdk_activemask() == 1);
	CHECK(gdk_ballot(5) == 1 && gdk_ballot(0) == 0 && gdk_shfl64(9, 0) == 9);
	CHECK(gdk_match64(1, 77) == 1 && gdk_shfl64m(1, 8, 0) == 8);
	CHECK(gdk_block_rank() == 0 && gdk_block_size() == 1 && gdk_block_bcast64(3) == 3);
	CHECK(gdk_block_any(2) == 1 && gdk_block_any(0) == 0);
	gdk_syncwarp();
	gdk_block_sync();
}

/* ---- misuse that must abort the process ---- */
static void *wrong_call(void *arg)
{
	gdk_host_enter(&block, (uint32_t)(uintptr_t)arg);
	if (arg)
		gdk_syncwarp();
	else
		(void)gdk_ballot(1);
	gdk_host_leave();
	return NULL;
}

static void *wrong_mask(void *arg)
{
	gdk_host_enter(&block, (uint32_t)(uintptr_t)arg);
	(void)gdk_shfl64m(2, 1, 1);
	return NULL;
}

static void run(void *(*fn)(void *), uint32_t threads, uint32_t seed)
{
	pthread_t t[THREADS];
	uint32_t i;

	gdk_host_block_init(&block, warps, threads, seed);
	for (i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, fn, (void *)(uintptr_t)i);
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	gdk_host_block_fini(&block);
}

static void must_abort(void *(*fn)(void *), uint32_t threads, const char *what)
{
	int pipes[2], status = 0;
	char output[256] = "";
	pid_t pid;

	if (pipe(pipes) || (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		dup2(pipes[1], STDERR_FILENO);
		run(fn, threads, 1);
		_exit(0);
	}
	close(pipes[1]);
	CHECK(read(pipes[0], output, sizeof(output) - 1) > 0 && strstr(output, what));
	close(pipes[0]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

int main(void)
{
	uint32_t between = 0, i;

	must_abort(wrong_call, 2, "different functions");
	must_abort(wrong_mask, 1, "calling lane is not in its mask");
	alone();
	for (i = 1; i < 4; i++)
		run(lane, THREADS, i);
	for (i = 2; i < 32; i++)
		between += group_sizes[i];
	/* gathering() forms at least 360 groups: 3 runs, ROUNDS rounds, 3 warps. Some must have
	 * one lane, and some between 2 and 31 lanes. */
	CHECK(group_sizes[1] && between);
	return bad != 0;
}
