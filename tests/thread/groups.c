/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests groups of lanes in unusual conditions: groups larger than the ring, where each
 * thread posts on its own; lanes with different parameters, where each lane must decide
 * for itself; lanes that arrive late or post to two queue pairs; a companion with fewer slots
 * than the lanes need; indices of more than 32 bits; a failed queue pair, on which each thread
 * must still get its own ticket; a WQE without CQE before a group; and a lane that rings while
 * others keep posting, which must offer the token.
 */
#define GDK_WARP 32
#include <pthread.h>

#include "device/gdk/platform.h"

static void note_ring(void);
static void note_left(const void *p, uint32_t v);

/* The headers that are included below call these wrappers. */
#define gdk_mmio_st64(p, v)   (gdk_mmio_st64(p, v), note_ring())
#define gdk_st32(p, v, scope) (gdk_st32(p, v, scope), note_left(p, v))

#include "../unit/rig.h"

#include "device/gdk/counter_dev.h"

#define THREADS 32u
#define SEEDS	20u
#define ROUNDS	4u
#define WAITS	6u /* rounds of posts that are waited for */

enum way { PUT, P, SIGNAL, WAYS };

static struct gdk_host_block block;
static struct gdk_host_warp warp;
static struct rig rig, other;
static gdk_mode_t mode;
static gdk_exec_t scope;
static enum way way;
static uint64_t ticket[THREADS];
static int status[THREADS], stop, aborted;

static int post(uint32_t code_opt, uint64_t *t)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, htobe32(0x100) };

	if (way == PUT)
		return gdk_put(&rig.qp, a, a, 8, t, gdk_how(mode, RIG_AUTO, scope, code_opt));
	if (way == P)
		return gdk_p(&rig.qp, a, &a, 8, t, gdk_how(mode, RIG_AUTO, scope, code_opt));
	return gdk_signal(&rig.qp, gdk_signal_of(DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, a, a, 1), t,
			  gdk_how(mode, RIG_AUTO, scope, code_opt));
}

static void *post_once(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;

	gdk_host_enter(&block, rank);
	status[rank] = post(0, &ticket[rank]);
	gdk_host_leave();
	return NULL;
}

/* Only the last lane rings the doorbell, for all lanes before it. No lane waits for a
 * completion. */
static void *post_last_rings(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;

	gdk_host_enter(&block, rank);
	status[rank] = post(rank == THREADS - 1 ? 0 : GDK_OPT_SKIP_DB, &ticket[rank]);
	gdk_host_leave();
	return NULL;
}

static void *nic(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		rig_nic(arg);
		gdk_host_yield();
	}
	return NULL;
}

static void *(*nic_runs)(void *) = nic;

/* Sets the state of a queue pair after `index` posts, which must be an even number of laps. */
static void start_at(uint64_t index)
{
	rig.qp.sq_rsvd_index = rig.st->completed = rig.st->cqe_ci = index;
	rig.st->rung = rig.st->parked = index;
	rig.pi = rig.ci = rig.cq_pi = index;
}

static int run(void *(*fn)(void *), uint64_t from, uint32_t depth, uint32_t seed)
{
	pthread_t t[THREADS], nic_thread;
	uint32_t i;
	int bad = 0;

	rig_init(&rig, depth, RIG_DB, 0);
	start_at(from);
	rig.st->abort_word = (uint32_t)aborted;
	gdk_host_block_init(&block, &warp, THREADS, seed);
	stop = 0;
	pthread_create(&nic_thread, NULL, nic_runs, &rig);
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, fn, (void *)(uintptr_t)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		bad |= status[i];
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(nic_thread, NULL);
	rig_nic(&rig);
	gdk_host_block_fini(&block);
	return bad | rig.faults;
}

static int check(const char *what, uint32_t depth, uint64_t executed, int bad)
{
	if (!bad && rig.ci >= executed)
		return 0;
	fprintf(stderr,
		"groups, %s: way %d mode %d scope %d depth %u: status %d, %llu of %llu "
		"executed, %d faults\n",
		what, (int)way, (int)mode, (int)scope, depth, rig.st->status,
		(unsigned long long)rig.ci, (unsigned long long)executed, rig.faults);
	return 1;
}

static int larger_than_ring(void)
{
	static const gdk_exec_t scopes[] = { GDK_THREAD, GDK_WARP_SCOPE, GDK_BLOCK_SCOPE };
	const uint32_t depth = THREADS / 2;
	int bad = 0, err;
	uint32_t i;

	for (i = 0; i < 6 * WAYS; i++) {
		scope = scopes[i / WAYS % 3];
		way = (enum way)(i % WAYS);
		mode = i < 3 * WAYS ? RIG_GPU : RIG_EXCL;
		if (mode == RIG_EXCL && scope == GDK_THREAD)
			continue;
		err = run(post_once, 0, depth, i);
		bad |= check("larger than the ring", depth, THREADS, err);
		rig_fini(&rig);
	}
	return bad;
}

/* The lanes post behind a WQE that generates no CQE, to a ring that has one slot less than they
 * need. */
static void *post_behind(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	uint64_t at;
	int err = 0;

	gdk_host_enter(&block, rank);
	if (rank == 0) {
		rig.st->wait_limit_ns = 5000000000u;
		err = gdk_reserve(&rig.qp, 1, mode, 0, &at);
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, at), (uint16_t)at, 0);
		rig_post(&rig, at, at, mode, RIG_AUTO, 0);
	}
	gdk_block_sync();
	status[rank] = err | post(0, &ticket[rank]);
	gdk_host_leave();
	return NULL;
}

static int behind_a_wqe_without_cqe(void)
{
	static const gdk_exec_t scopes[] = { GDK_THREAD, GDK_WARP_SCOPE, GDK_BLOCK_SCOPE };
	int bad = 0, err;
	uint32_t i;

	way = PUT;
	for (i = 0; i < 5; i++) {
		mode = i < 3 ? RIG_GPU : RIG_EXCL;
		scope = scopes[i < 3 ? i : i - 2];
		err = run(post_behind, 0, THREADS, 0);
		bad |= check("behind a WQE without CQE", THREADS, 1 + THREADS, err);
		rig_fini(&rig);
	}
	return bad;
}

static int last_lane_rings(void)
{
	uint32_t i;
	int bad = 0, err;

	mode = RIG_GPU;
	scope = GDK_THREAD;
	way = PUT;
	for (i = 0; i < SEEDS; i++) {
		err = run(post_last_rings, 0, 2 * THREADS, i);
		bad |= check("the last lane rings", 2 * THREADS, ticket[THREADS - 1] + 1, err);
		rig_fini(&rig);
	}
	return bad;
}

/* Each lane waits for its own slot. In warp and block scope the slot must already be
 * rung when the post returns. */
static void *post_and_wait(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	uint32_t i;
	int err = 0;

	gdk_host_enter(&block, rank);
	for (i = 0; i < WAITS && !err; i++) {
		err = post(0, &ticket[rank]);
		if (!err && scope != GDK_THREAD &&
		    gdk_ld64_acq(&rig.st->rung, GDK_SCOPE_GPU) <= ticket[rank])
			err = -ERANGE;
		if (!err)
			err = gdk_wait(&rig.qp, ticket[rank], mode);
	}
	status[rank] = err;
	gdk_host_leave();
	return NULL;
}

static int long_indices(void)
{
	static const gdk_exec_t scopes[] = { GDK_THREAD, GDK_WARP_SCOPE, GDK_BLOCK_SCOPE };
	const uint64_t from = ((uint64_t)7 << 32) - 4 * THREADS, end = from + THREADS * WAITS;
	int bad = 0, err;
	uint32_t i;

	mode = RIG_GPU;
	way = PUT;
	for (i = 0; i < 3; i++) {
		scope = scopes[i];
		err = run(post_and_wait, from, 2 * THREADS, i);
		bad |= check("long indices", 2 * THREADS, end, err || rig.qp.sq_rsvd_index != end);
		rig_fini(&rig);
	}
	return bad;
}

/* Some lanes first post on their own and arrive late. They wait for slots in a ring
 * that the warp fills. */
static void *post_some_late(void *arg)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, htobe32(0x100) };
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	uint32_t i;
	int err = 0;

	gdk_host_enter(&block, rank);
	for (i = 0; i < ROUNDS && !err; i++) {
		if (rank % 3 == 2) {
			gdk_host_yield();
			err = gdk_put(&rig.qp, a, a, 8, &ticket[rank],
				      gdk_how(mode, RIG_AUTO, GDK_THREAD, 0));
		}
		err |= post(0, &ticket[rank]);
	}
	status[rank] = err;
	gdk_host_leave();
	return NULL;
}

static int late_lanes(void)
{
	const uint64_t end = ROUNDS * (THREADS + THREADS / 3);
	int bad = 0, err;
	uint32_t i;

	mode = RIG_GPU;
	way = P;
	for (i = 0; i < 4; i++) {
		scope = i % 2 ? GDK_WARP_SCOPE : GDK_BLOCK_SCOPE;
		err = run(post_some_late, 0, 2 * THREADS, i);
		bad |= check("some lanes come late", 2 * THREADS, end, err);
		rig_fini(&rig);
	}
	return bad;
}

/* Even lanes post to one queue pair, odd lanes to another; the NIC executes the other
 * queue pair's WQEs only at the end. */
static void *post_to_two(void *arg)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, htobe32(0x100) };
	const uint32_t rank = (uint32_t)(uintptr_t)arg;
	uint32_t i;
	int err = 0;

	gdk_host_enter(&block, rank);
	for (i = 0; i < ROUNDS && !err; i++)
		err = gdk_put(rank % 2 ? &other.qp : &rig.qp, a, a, 8, &ticket[rank],
			      gdk_how(mode, RIG_AUTO, GDK_THREAD, 0));
	status[rank] = err;
	gdk_host_leave();
	return NULL;
}

static int two_queue_pairs(void)
{
	const uint32_t depth = 2 * THREADS;
	int bad = 0, err;
	uint32_t i;

	mode = RIG_GPU;
	for (i = 0; i < SEEDS; i++) {
		rig_init(&other, depth, RIG_DB, 0);
		err = run(post_to_two, 0, depth, i);
		rig_nic(&other);
		err |= other.faults || other.ci != ROUNDS * THREADS / 2 || other.ci != rig.ci;
		bad |= check("two queue pairs", depth, ROUNDS * THREADS / 2, err);
		rig_fini(&other);
		rig_fini(&rig);
	}
	return bad;
}

/* Counts the puts of a warp by `other`. The doorbells are skipped. */
static void *post_counted(void *arg)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, htobe32(0x100) };
	const struct gdk_counter c = { &other.qp, a, a, 1 };
	const uint32_t rank = (uint32_t)(uintptr_t)arg;

	gdk_host_enter(&block, rank);
	status[rank] = gdk_put_counter(&rig.qp, a, a, 8, &c, &ticket[rank],
				       gdk_how(mode, RIG_AUTO, scope, GDK_OPT_SKIP_DB));
	gdk_host_leave();
	return NULL;
}

/* The NIC of both queue pairs. A WAIT of the companion waits for a CQE of the main queue pair. */
static void *nic_of_both(void *arg)
{
	const uint8_t *wqe;
	uint32_t op, cqe;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		rig_nic(&rig);
		rig_take(&other, 0x800);
		while (other.ci < other.pi) {
			wqe = other.ring + (other.ci & (other.depth - 1)) * 64;
			memcpy(&op, wqe, 4);
			memcpy(&cqe, wqe + 24, 4);
			if ((be32toh(op) & 0xff) == DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT &&
			    be32toh(cqe) >= rig.cq_pi)
				break;
			other.ci += rig_exec(&other);
		}
		gdk_host_yield();
	}
	return NULL;
}

/* The companion has fewer slots than the lanes need, so the puts must be rung. */
static int short_companion(void)
{
	uint32_t depth;
	int bad = 0, err;

	mode = RIG_EXCL;
	scope = GDK_WARP_SCOPE;
	nic_runs = nic_of_both;
	for (depth = 2; depth <= 4 * THREADS; depth *= 2) {
		rig_init(&other, depth, RIG_DB, 0);
		other.st->wait_limit_ns = 2000000000u;
		err = run(post_counted, 0, 2 * THREADS, depth);
		err |= other.qp.sq_rsvd_index != 2 * THREADS;
		bad |= check("short companion", depth, depth < 2 * THREADS ? THREADS : 0, err);
		rig_fini(&other);
		rig_fini(&rig);
	}
	nic_runs = nic;
	return bad;
}

static void *post_to_failed_qp(void *arg)
{
	const uint32_t rank = (uint32_t)(uintptr_t)arg;

	gdk_host_enter(&block, rank);
	ticket[rank] = UINT64_MAX;
	status[rank] = post(0, &ticket[rank]) != -ECANCELED;
	gdk_host_leave();
	return NULL;
}

static int tickets_on_failed_qp(void)
{
	static const gdk_exec_t scopes[] = { GDK_THREAD, GDK_WARP_SCOPE, GDK_BLOCK_SCOPE };
	uint32_t i, k, seen;
	int bad = 0, err;

	mode = RIG_GPU;
	aborted = 1;
	for (i = 0; i < 3 * WAYS; i++) {
		scope = scopes[i / WAYS];
		way = (enum way)(i % WAYS);
		err = run(post_to_failed_qp, 0, THREADS, i);
		for (k = 0, seen = 0; k < THREADS; k++)
			seen |= ticket[k] < THREADS ? 1u << ticket[k] : 0;
		bad |= check("failed QP", THREADS, 0, err || seen != UINT32_MAX || rig.st->rung);
		rig_fini(&rig);
	}
	aborted = 0;
	return bad;
}

/* ---- a lane that rings passes the token on ---- */

#define OTHERS 200u /* slots that are posted during the doorbells of the group */

static uint32_t to_post, offers, rang_most; /* to_post: 0 in the other tests */
static __thread uint32_t rang, nested;	    /* rang: doorbells of a lane since its last offer */

static void post_for_another(void)
{
	uint64_t idx;

	nested = 1;
	if (!gdk_reserve(&rig.qp, 1, mode, 0, &idx)) {
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx, GDK_CE_ALWAYS);
		rig_post(&rig, idx, idx, mode, RIG_AUTO, 0);
	}
	nested = 0;
}

/* Another thread posts while a lane rings. */
static void note_ring(void)
{
	uint32_t most;

	if (nested || !__atomic_load_n(&to_post, __ATOMIC_RELAXED))
		return;
	most = __atomic_load_n(&rang_most, __ATOMIC_RELAXED);
	rang++;
	while (rang > most && !__atomic_compare_exchange_n(&rang_most, &most, rang, 0,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (__atomic_fetch_sub(&to_post, 1, __ATOMIC_RELAXED) > 1)
		post_for_another();
	else
		__atomic_store_n(&to_post, 0, __ATOMIC_RELAXED);
}

static void note_left(const void *p, uint32_t v)
{
	if (nested || p != &rig.st->left || v != GDK_LEFT)
		return;
	rang = 0;
	__atomic_fetch_add(&offers, 1, __ATOMIC_RELAXED);
}

static int token_is_passed_on(void)
{
	static const gdk_exec_t scopes[] = { GDK_THREAD, GDK_WARP_SCOPE, GDK_BLOCK_SCOPE };
	int bad = 0, err;
	uint32_t i;

	way = PUT;
	for (i = 0; i < 6; i++) {
		scope = scopes[i % 3];
		mode = i < 3 ? RIG_GPU : RIG_CTA;
		offers = rang_most = 0;
		to_post = OTHERS;
		err = run(post_once, 0, 1024, i);
		to_post = 0;
		/* A group posts once, so one lane rings for all others, unless lanes post apart. */
		err |= rang_most > 1 + GDK_RINGS || rig.ci != rig.qp.sq_rsvd_index;
		err |= scope != GDK_THREAD && (!offers || rang_most < GDK_RINGS);
		bad |= check("token is passed on", 1024, THREADS, err);
		rig_fini(&rig);
	}
	return bad;
}

int main(void)
{
	return larger_than_ring() | behind_a_wqe_without_cqe() | last_lane_rings() |
	       long_indices() | late_lanes() | two_queue_pairs() | short_companion() |
	       tickets_on_failed_qp() | token_is_passed_on();
}
