/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data of the programs. For C, for CUDA, and for C++ on CPU threads.
 *
 * Each thread owns `window` slots of `size` bytes in the data of its queue pair (these are not
 * slots of the send ring). Its message i goes from its slot i % window to the same slot of the
 * peer. The last 8 bytes of a slot (all bytes of a smaller one) are the stamp, which changes with
 * each message; the other bytes depend on sender, queue pair, thread and slot only. So the expected
 * value of every byte after any number of messages is known.
 *
 * The last byte of a slot is its turn: 1 to 255, different for successive messages of a slot, and 0
 * before the first message. A ping-pong kernel polls it.
 *
 * Puts: the thread writes the stamp (ex_stamp) before each message. Gets: the data of the server
 * does not change, so the thread overwrites the stamp of its own slot (ex_blank) before each
 * message, which must restore it.
 */
#ifndef EXAMPLES_PATTERN_H
#define EXAMPLES_PATTERN_H

#include "job.h"

#define EX_STAMP 8 /* maximum bytes of a stamp */

/* Parameters of the data of one message size, the same on both sides. */
struct ex_shape {
	uint32_t threads, size, window;
};

EX_FN uint64_t ex_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* Start of all values of a slot. server: the server sends the data of this slot. */
EX_FN uint64_t ex_slot_seed(bool server, uint32_t queue, uint32_t thread, uint32_t slot)
{
	return ex_mix(ex_mix((uint64_t)queue << 33 | (uint64_t)server << 32 | thread) + slot);
}

/* Last byte of the message that is number `lap` in its slot. */
EX_FN uint8_t ex_turn(uint64_t lap)
{
	return (uint8_t)(lap % 255 + 1);
}

/* Stamp of the message that is number `lap` in its slot. The last byte in memory is the turn. */
EX_FN uint64_t ex_stamp_word(uint64_t seed, uint64_t lap)
{
	return ex_mix(seed ^ ex_mix(lap)) >> 8 | (uint64_t)ex_turn(lap) << 56;
}

/* Offset of the slot of iteration iter in the data of the queue pair. */
EX_FN uint64_t ex_slot(const struct ex_job *job, uint32_t thread, uint64_t iter)
{
	return ((uint64_t)thread * job->window + iter % job->window) * job->size;
}

/* Stores a stamp at the end of a slot of `size` bytes. */
EX_FN void ex_store_stamp(uint8_t *slot, uint32_t size, uint64_t word)
{
	uint32_t len = size < EX_STAMP ? size : EX_STAMP;

	if (size % EX_STAMP == 0) {
		*(uint64_t *)(slot + size - EX_STAMP) = word;
		return;
	}
	for (uint32_t b = 0; b < len; b++)
		slot[size - len + b] = (uint8_t)(word >> 8 * (EX_STAMP - len + b));
}

/* Writes the stamp of iteration iter into this side's data. For puts, before each one. */
EX_FN void ex_stamp(const struct ex_job *job, uint32_t queue, uint32_t thread, uint64_t iter)
{
	uint64_t lap = iter / job->window;
	uint64_t seed = ex_slot_seed(!job->client, queue, thread, (uint32_t)(iter % job->window));

	ex_store_stamp(job->queues[queue].data + ex_slot(job, thread, iter), job->size,
		       ex_stamp_word(seed, lap));
}

/* Overwrites the stamp of the slot of iteration iter. For gets, before each one. Returns false if
 * the previous get did not restore it. */
EX_FN bool ex_blank(const struct ex_job *job, uint32_t queue, uint32_t thread, uint64_t iter)
{
	uint8_t *slot = job->queues[queue].data + ex_slot(job, thread, iter);
	const bool restored = iter < job->window || slot[job->size - 1] != 0;

	ex_store_stamp(slot, job->size, 0);
	return restored;
}

/* Ping-pong: offset in recv of the byte that becomes ex_turn_of(job, iter) when the peer's message
 * of iteration iter has arrived. */
EX_FN uint64_t ex_turn_offset(const struct ex_job *job, uint32_t thread, uint64_t iter)
{
	return ex_slot(job, thread, iter) + job->size - 1;
}

EX_FN uint8_t ex_turn_of(const struct ex_job *job, uint64_t iter)
{
	return ex_turn(iter / job->window);
}

/* pattern.c, for all slots of one queue pair; data: its data. server: the server sends the data.
 *
 * ex_pattern_write() fills memory: of a receiver (every byte is wrong), of the source of puts (the
 * stamps are missing) or of gets (complete). ex_pattern_check() expects the data after `iters`
 * messages of each thread. It returns 0, or prints the first wrong byte and returns -1. */
enum ex_content { EX_EMPTY, EX_PUT_SOURCE, EX_GET_SOURCE };

#ifdef __cplusplus
extern "C" {
#endif
void ex_pattern_write(const struct ex_shape *s, uint32_t queue, uint8_t *data, bool server,
		      enum ex_content content);
int ex_pattern_check(const struct ex_shape *s, uint32_t queue, uint8_t *data, bool server,
		     bool gets, uint64_t iters);
#ifdef __cplusplus
}
#endif

#endif
