/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the program gpunetio_verbs_alltoall and its kernel share: the layout of the memory, the
 * contents of the messages, and the progress of the threads. C and CUDA.
 *
 * A rank has one queue pair for each other rank. A queue pair has A2A_SLOTS slots from which it
 * puts, and as many into which the peer puts. Iteration n uses slot n % A2A_SLOTS. The threads of a
 * queue pair divide each block of `size` bytes into pieces. Thread t puts piece t, and the peer's
 * flag t counts the pieces that arrived. With a companion queue pair, flag threads + t of this side
 * counts the pieces that were put: the companion adds to it.
 *
 * No slot is overwritten before it was checked: thread t puts piece n only after it has received
 * and checked the peer's piece n - 1. The peer's thread t put that piece after it had received and
 * checked our piece n - 2, the last one in the same slot. So the messages in one direction permit
 * those in the other direction, and two slots suffice without any other synchronization.
 */
#ifndef ALLTOALL_H
#define ALLTOALL_H

#include <stdbool.h>
#include <stdint.h>

#include "job.h"

#define A2A_SLOTS 2

enum a2a_step { A2A_BEGIN, A2A_POSTED, A2A_CHECKED };

struct a2a_thread {	     /* progress of one thread of the grid, kept between launches */
	uint64_t done;	     /* complete iterations */
	uint64_t ticket;     /* of the put of iteration `done`, once it is posted */
	uint32_t step;	     /* enum a2a_step: what is done of iteration `done` */
	uint32_t wrong;	     /* pieces with a wrong byte; the rest describes the first one */
	uint64_t wrong_iter; /* iteration */
	uint32_t wrong_at;   /* offset in the block */
	uint8_t got, expected;
};

struct a2a_run { /* ex_job.arg: read by all threads */
	uint32_t rank;
	uint32_t check;	      /* all bytes of each check-th iteration are checked */
	uint64_t last;	      /* number of the last iteration of the run */
	uint64_t bad_iter;    /* planted fault: a byte of queue pair 0 is wrong; UINT64_MAX: none */
	uint64_t wait_ns;     /* a launch ends if a thread waits this long for a flag, */
	uint64_t launch_ns;   /* and after this time */
	const uint32_t *peer; /* rank of the peer of each queue pair */
	struct a2a_thread *threads; /* queue pair * threads + thread */
};

/* Bytes from one slot to the next. */
EX_FN uint64_t a2a_stride(uint32_t size)
{
	return ((uint64_t)size + 63) / 64 * 64;
}

/* Bytes of a thread's piece, a multiple of 8. The last pieces can be shorter or empty. */
EX_FN uint64_t a2a_piece(uint32_t size, uint32_t threads)
{
	return (((uint64_t)size + threads - 1) / threads + 7) / 8 * 8;
}

EX_FN uint64_t a2a_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/*
 * Word w of the block that rank `from` puts to rank `to` in iteration iter. The sum changes every
 * byte of a slot from one use to the next: a byte that was not written again is always wrong.
 */
EX_FN uint64_t a2a_word(uint32_t from, uint32_t to, uint64_t iter, uint64_t w)
{
	uint64_t base =
		a2a_mix(a2a_mix((uint64_t)from << 32 | to) + w * A2A_SLOTS + iter % A2A_SLOTS);

	return base + iter / A2A_SLOTS * 0x0101010101010101ull;
}

/* Whether all bytes of an iteration are checked, and not only the first 8 of each piece. */
EX_FN bool a2a_whole(const struct a2a_run *run, uint64_t iter)
{
	return iter % run->check == 0 || iter == run->last;
}

#endif
