/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Blocks and warps made of CPU threads, one thread per lane. Collective functions (sync,
 * ballot, shuffle, match, least value) are meetings: the lanes arrive under a mutex, yield, and
 * wait by futex for the last one. When a meeting is over it does not change any more, so the lanes
 * read its result without the mutex: if all lanes that wake up needed it, they would wait for each
 * other. A thread becomes a lane with gdk_host_enter() and ends with gdk_host_leave(). Any other
 * thread is a whole warp, of one lane, and a block of one thread.
 *
 * As on a GPU, all lanes of a mask must call the same function with the same mask. The others
 * do not wait for a lane that has left. A wrong call, or a lane that does not arrive within
 * GDK_HOST_LIMIT_NS, aborts the process with a message, where a GPU would hang.
 */
#ifndef GDK_PLATFORM_WARP_H
#define GDK_PLATFORM_WARP_H

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/gdk/platform_fn.h"
#include "device/gdk/platform_yield.h"

#ifndef __cplusplus
long syscall(long number, ...); /* unistd.h does not declare it for strict C11 */
#endif

#define GDK_HOST_LANES	   32
#define GDK_HOST_LIMIT_NS  100000000000u /* time limit for a meeting, then abort */
#define GDK_HOST_GATHER_NS 1000000u	 /* longest wait of gdk_activemask for other lanes */
#define GDK_HOST_YIELDS	   4		 /* before a lane sleeps in a meeting */

enum gdk_host_call {
	GDK_HOST_NOTHING,
	GDK_HOST_SYNC,
	GDK_HOST_BALLOT,
	GDK_HOST_SHUFFLE,
	GDK_HOST_MATCH,
	GDK_HOST_LEAST,
	GDK_HOST_GATHER, /* gdk_activemask: its mask is the lanes that arrived */
};

/* One collective call of the lanes in mask. A lane is in at most one meeting at a time, so a
 * warp needs at most one meeting per lane. Lanes store `returned` and, to end the meeting, `call`
 * without the warp's lock. */
struct gdk_host_meeting {
	uint32_t call;		       /* enum gdk_host_call */
	uint32_t mask, came, returned; /* bit per lane: expected, arrived, returned */
	uint32_t want;		       /* GATHER: number of lanes that completes it */
	uint32_t over;		       /* 1: complete, so the lanes return; futex */
	uint64_t value[GDK_HOST_LANES];
};

struct gdk_host_warp {
	pthread_mutex_t lock;
	uint32_t lanes; /* bit per lane that has not left the warp */
	uint32_t size;	/* number of lanes at the start */
	uint32_t seed;	/* state of the random generator that chooses the size of GATHERs */
	struct gdk_host_meeting meeting[GDK_HOST_LANES];
};

struct gdk_host_block {
	pthread_mutex_t lock;
	uint32_t size, threads; /* number of threads at the start, and of those that remain */
	uint32_t came, round; /* barrier: threads that arrived; number of completed rounds, futex */
	int any, any_of[2];   /* OR of the predicates: of this round; of the last two rounds */
	uint32_t least, least_of[2]; /* least value, likewise */
	uint64_t word;		     /* value of the broadcast */
	struct gdk_host_warp *warp;
};

/* Identity of the calling thread. block and warp are NULL if it is not a lane. gdk_host_self is
 * defined weak, so that several object files can include this header and share the variable. */
struct gdk_host_lane {
	struct gdk_host_block *block;
	struct gdk_host_warp *warp;
	uint32_t rank, lane;
};
extern __thread struct gdk_host_lane gdk_host_self;
__attribute__((__weak__)) __thread struct gdk_host_lane gdk_host_self;

GDK_SLOW_FN void gdk_host_die(const char *why, uint32_t mask, uint32_t came)
{
	fprintf(stderr, "host warp: lane %u of thread %u: %s (mask %08x, arrived %08x)\n",
		(unsigned int)gdk_host_self.lane, (unsigned int)gdk_host_self.rank, why,
		(unsigned int)mask, (unsigned int)came);
	abort();
}

/* Initializes a block of size threads. warps has one element per 32 threads; the last warp may
 * have fewer lanes. */
GDK_SLOW_FN void gdk_host_block_init(struct gdk_host_block *b, struct gdk_host_warp *warps,
				     uint32_t size, uint32_t seed)
{
	uint32_t at, i, n;

	pthread_mutex_init(&b->lock, NULL);
	b->size = b->threads = size;
	b->came = b->round = 0;
	b->any = 0;
	b->least = UINT32_MAX;
	b->word = 0;
	b->warp = warps;
	for (at = 0; at < size; at += GDK_HOST_LANES, warps++) {
		n = size - at < GDK_HOST_LANES ? size - at : GDK_HOST_LANES;
		pthread_mutex_init(&warps->lock, NULL);
		warps->lanes = n == GDK_HOST_LANES ? UINT32_MAX : (1u << n) - 1;
		warps->size = n;
		warps->seed = seed * 2654435761u + at + 1;
		for (i = 0; i < GDK_HOST_LANES; i++)
			warps->meeting[i].call = GDK_HOST_NOTHING;
	}
}

/* Frees the locks of a block. All its threads must have left. */
GDK_SLOW_FN void gdk_host_block_fini(struct gdk_host_block *b)
{
	uint32_t at;

	for (at = 0; at < b->size; at += GDK_HOST_LANES)
		pthread_mutex_destroy(&b->warp[at / GDK_HOST_LANES].lock);
	pthread_mutex_destroy(&b->lock);
}

GDK_SLOW_FN void gdk_host_enter(struct gdk_host_block *b, uint32_t rank)
{
	gdk_host_self.block = b;
	gdk_host_self.warp = b->warp + rank / GDK_HOST_LANES;
	gdk_host_self.rank = rank;
	gdk_host_self.lane = rank % GDK_HOST_LANES;
}

/* Waits while *word has the value `old`. Returns 0 if it still has it after ns. A yield is cheaper
 * than a sleep, and often enough: on a few processors, the other threads arrive before it is this
 * thread's turn again. Acquire: pairs with the release store of the word. */
GDK_SLOW_FN int gdk_host_sleep(const uint32_t *word, uint32_t old, uint64_t ns)
{
	struct timespec t;
	int yields;

	for (yields = 0; yields < GDK_HOST_YIELDS && !gdk_host_late; yields++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != old)
			return 1;
		gdk_host_yield();
	}
	if (gdk_host_late)
		gdk_host_late--; /* the futex is the sleep of this turn */
	t.tv_sec = (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old)
		if (syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, old, &t, NULL, 0) &&
		    errno == ETIMEDOUT)
			return __atomic_load_n(word, __ATOMIC_ACQUIRE) != old;
	return 1;
}

/* Wakes up all threads that wait for word, which the caller has stored. The caller should not hold
 * the lock, which these threads need soon. */
GDK_SLOW_FN void gdk_host_wake(const uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, NULL, NULL, 0);
}

/* ---- warps ---- */

/* Returns the open meeting of this call and mask, or opens one. The caller of this function and of
 * the next three holds the warp's lock. */
GDK_SLOW_FN struct gdk_host_meeting *gdk_host_find(struct gdk_host_warp *w, enum gdk_host_call call,
						   uint32_t mask)
{
	struct gdk_host_meeting *m, *idle = NULL;
	uint32_t open;

	for (m = w->meeting; m < w->meeting + GDK_HOST_LANES; m++) {
		/* Acquire: pairs with the release of the last lane that returned. */
		open = __atomic_load_n(&m->call, __ATOMIC_ACQUIRE);
		if (open == GDK_HOST_NOTHING)
			idle = m;
		else if (!m->over && m->mask == mask && open == (uint32_t)call)
			return m;
		else if (!m->over && m->mask == mask)
			gdk_host_die("the lanes of the mask called different functions", mask,
				     m->came);
	}
	if (!idle)
		gdk_host_die("too many open meetings", mask, 0);
	idle->mask = mask;
	idle->came = idle->returned = 0;
	__atomic_store_n(&idle->over, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&idle->call, (uint32_t)call, __ATOMIC_RELAXED);
	return idle;
}

/* Chooses at random how many lanes complete a GATHER meeting: all, one, or any number. */
GDK_SLOW_FN uint32_t gdk_host_want(struct gdk_host_warp *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 17;
	w->seed ^= w->seed << 5;
	switch (w->seed >> 8 & 3) {
	case 0:
		return GDK_HOST_LANES;
	case 1:
		return 1;
	default:
		return 1 + (w->seed >> 12) % w->size;
	}
}

/* Completes a meeting if all its lanes have arrived. A GATHER meeting is also complete if it has
 * the wanted number of lanes or its time is over. Returns 1 if it has completed the meeting; the
 * caller must then wake up the lanes, after it has released the lock. */
GDK_SLOW_FN int gdk_host_settle(const struct gdk_host_warp *w, struct gdk_host_meeting *m,
				int time_is_over)
{
	const int gather = m->call == GDK_HOST_GATHER;
	const uint32_t missing = (gather ? UINT32_MAX : m->mask) & w->lanes & ~m->came;

	if (missing &&
	    !(gather && (time_is_over || (uint32_t)__builtin_popcount(m->came) >= m->want)))
		return 0;
	if (gather)
		m->mask = m->came;
	__atomic_store_n(&m->over, 1, __ATOMIC_RELEASE);
	return 1;
}

/* Returns the least value of the lanes that came. */
GDK_SLOW_FN uint64_t gdk_host_least(const struct gdk_host_meeting *m)
{
	uint64_t least = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < GDK_HOST_LANES; i++)
		if (m->came >> i & 1 && m->value[i] < least)
			least = m->value[i];
	return least;
}

/* Returns the result for a lane: a mask for ballot, match and GATHER, a value for shuffle and least
 * value. */
GDK_SLOW_FN uint64_t gdk_host_result(const struct gdk_host_meeting *m, uint64_t v, uint32_t from)
{
	uint32_t i, bits = 0;

	if (m->call == GDK_HOST_SHUFFLE) {
		if (!(m->came >> from & 1))
			gdk_host_die("shuffle from a lane that is not in the mask", m->mask,
				     m->came);
		return m->value[from];
	}
	if (m->call == GDK_HOST_GATHER)
		return m->mask;
	if (m->call == GDK_HOST_LEAST)
		return gdk_host_least(m);
	for (i = 0; i < GDK_HOST_LANES; i++)
		if (m->came >> i & 1 && m->value[i] == v)
			bits |= 1u << i;
	return bits;
}

/* As on a GPU, a warp counts 32 lanes even if the last warp of the block has fewer threads. */
GDK_FN uint32_t gdk_host_warp_size(void)
{
	return gdk_host_self.warp ? GDK_HOST_LANES : 1;
}

GDK_FN uint32_t gdk_host_warp_mask(void)
{
	return gdk_host_self.warp ? UINT32_MAX : 1;
}

GDK_FN uint32_t gdk_host_block_size(void)
{
	return gdk_host_self.block ? gdk_host_self.block->size : 1;
}

/* Result of a collective call for a thread that is not in a warp. */
GDK_SLOW_FN uint64_t gdk_host_alone(enum gdk_host_call call, uint64_t v)
{
	return call == GDK_HOST_SHUFFLE || call == GDK_HOST_BALLOT || call == GDK_HOST_LEAST ? v
											     : 1;
}

/* Executes one collective call: joins the meeting, waits until it is complete and returns its
 * result. v is this lane's value. mask is 0 for GATHER. */
GDK_SLOW_FN uint64_t gdk_host_meet(enum gdk_host_call call, uint32_t mask, uint64_t v,
				   uint32_t from)
{
	struct gdk_host_warp *w = gdk_host_self.warp;
	const uint32_t bit = 1u << gdk_host_self.lane;
	struct gdk_host_meeting *m;
	uint64_t result;
	uint32_t came;
	int over;

	if (!w)
		return gdk_host_alone(call, v);
	if (call != GDK_HOST_GATHER && !(mask & bit))
		gdk_host_die("the calling lane is not in its mask", mask, 0);
	pthread_mutex_lock(&w->lock);
	m = gdk_host_find(w, call, mask);
	if (!m->came)
		m->want = gdk_host_want(w);
	m->came |= bit;
	m->value[gdk_host_self.lane] = v;
	over = gdk_host_settle(w, m, 0);
	pthread_mutex_unlock(&w->lock);
	if (!over &&
	    !gdk_host_sleep(&m->over, 0,
			    call == GDK_HOST_GATHER ? GDK_HOST_GATHER_NS : GDK_HOST_LIMIT_NS)) {
		pthread_mutex_lock(&w->lock);
		if (!m->over && call != GDK_HOST_GATHER)
			gdk_host_die("a lane of the mask did not arrive", m->mask, m->came);
		if (!m->over)
			over = gdk_host_settle(w, m, 1);
		pthread_mutex_unlock(&w->lock);
	}
	if (over)
		gdk_host_wake(&m->over);
	result = gdk_host_result(m, call == GDK_HOST_BALLOT ? 1 : v, from % GDK_HOST_LANES);
	/* Release: all lanes have read the meeting before gdk_host_find() uses it again. Only the
	 * last lane may access it after it has set its bit. */
	came = m->came;
	if (__atomic_or_fetch(&m->returned, bit, __ATOMIC_ACQ_REL) == came)
		__atomic_store_n(&m->call, GDK_HOST_NOTHING, __ATOMIC_RELEASE);
	return result;
}

/* ---- blocks ---- */

/* Ends the round of the barrier if all threads have arrived, and returns whether they have; the
 * caller must then wake them up. The caller holds the block's lock. */
GDK_SLOW_FN int gdk_host_block_through(struct gdk_host_block *b)
{
	if (b->came < b->threads)
		return 0;
	b->came = 0;
	b->least_of[b->round % 2] = b->least;
	b->any_of[b->round % 2] = b->any;
	b->any = 0;
	b->least = UINT32_MAX;
	__atomic_store_n(&b->round, b->round + 1, __ATOMIC_RELEASE);
	return 1;
}

/* Block barrier. Returns whether pred is true for any thread of the block. *least: the value of
 * this thread, and then the least value of all. */
GDK_SLOW_FN int gdk_host_block_meet(int pred, uint32_t *least)
{
	struct gdk_host_block *b = gdk_host_self.block;
	uint32_t round;
	int through;

	if (!b)
		return pred != 0;
	pthread_mutex_lock(&b->lock);
	round = b->round;
	b->came++;
	b->any |= pred != 0;
	if (*least < b->least)
		b->least = *least;
	through = gdk_host_block_through(b);
	pthread_mutex_unlock(&b->lock);
	if (through)
		gdk_host_wake(&b->round);
	else if (!gdk_host_sleep(&b->round, round, GDK_HOST_LIMIT_NS)) {
		pthread_mutex_lock(&b->lock);
		if (b->round == round)
			gdk_host_die("a thread of the block did not arrive", b->threads, b->came);
		pthread_mutex_unlock(&b->lock);
	}
	/* These are not overwritten before this thread is in round + 2. */
	*least = b->least_of[round % 2];
	return b->any_of[round % 2];
}

GDK_SLOW_FN int gdk_host_block_any(int pred)
{
	uint32_t least = UINT32_MAX;

	return gdk_host_block_meet(pred, &least);
}

GDK_SLOW_FN uint32_t gdk_host_block_min32(uint32_t v)
{
	(void)gdk_host_block_meet(0, &v);
	return v;
}

GDK_FN void gdk_host_block_sync(void)
{
	(void)gdk_host_block_any(0);
}

GDK_SLOW_FN uint64_t gdk_host_block_bcast64(uint64_t v)
{
	struct gdk_host_block *b = gdk_host_self.block;

	if (!b)
		return v;
	gdk_host_block_sync(); /* all threads have read the value of the previous broadcast */
	if (gdk_host_self.rank == 0)
		b->word = v;
	gdk_host_block_sync();
	return b->word;
}

/* Removes the calling lane from its warp and block. Completes meetings and barriers that waited
 * only for this lane. */
GDK_SLOW_FN void gdk_host_leave(void)
{
	struct gdk_host_block *b = gdk_host_self.block;
	struct gdk_host_warp *w = gdk_host_self.warp;
	struct gdk_host_meeting *m;

	pthread_mutex_lock(&w->lock);
	w->lanes &= ~(1u << gdk_host_self.lane);
	for (m = w->meeting; m < w->meeting + GDK_HOST_LANES; m++)
		if (__atomic_load_n(&m->call, __ATOMIC_ACQUIRE) != GDK_HOST_NOTHING && !m->over &&
		    gdk_host_settle(w, m, 0))
			gdk_host_wake(&m->over);
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_lock(&b->lock);
	b->threads--;
	if (b->came && gdk_host_block_through(b))
		gdk_host_wake(&b->round);
	pthread_mutex_unlock(&b->lock);
	gdk_host_self.block = NULL;
	gdk_host_self.warp = NULL;
	gdk_host_self.rank = gdk_host_self.lane = 0;
}

#endif
