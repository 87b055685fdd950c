/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data of the programs: fills the sender's slots, fills the receiver's memory with other bytes
 * before the transfer, and checks the receiver's memory afterwards. pattern.h defines the pattern.
 */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "common.h"
#include "pattern.h"

/* What a slot has to contain. */
enum content {
	EMPTY,	/* every byte differs from that of a message; the stamp is 0 */
	SOURCE, /* data of a message; the stamp is 0 */
	MESSAGE,
};

struct slot {
	const struct ex_shape *shape;
	uint8_t *bytes;
	uint32_t thread, number;
	enum content content;
	uint64_t seed, lap;
};

/* The number of messages in a slot after `iters` messages of its thread. */
static uint64_t messages_of(const struct ex_shape *s, uint32_t number, uint64_t iters)
{
	return iters > number ? (iters - number - 1) / s->window + 1 : 0;
}

/* Word w of the data before the stamp. */
static uint64_t body_word(const struct slot *slot, uint32_t w)
{
	uint64_t word = ex_mix(slot->seed + w);

	return htole64(slot->content == EMPTY ? ~word : word);
}

static uint32_t body_len(const struct ex_shape *s)
{
	return s->size < EX_STAMP ? 0 : s->size - EX_STAMP;
}

static void write_slot(const struct slot *slot)
{
	const uint32_t len = body_len(slot->shape);

	for (uint32_t off = 0; off < len; off += 8) {
		uint64_t word = body_word(slot, off / 8);

		memcpy(slot->bytes + off, &word, len - off < 8 ? len - off : 8);
	}
	ex_store_stamp(slot->bytes, slot->shape->size,
		       slot->content == MESSAGE ? ex_stamp_word(slot->seed, slot->lap) : 0);
}

/* Returns the offset of the first wrong byte of a slot and its expected value, or the size. */
static uint32_t first_wrong(const struct slot *slot, uint8_t *want)
{
	const uint32_t size = slot->shape->size, len = body_len(slot->shape);
	_Alignas(8) uint8_t expected[EX_STAMP];

	for (uint32_t off = 0; off < size;) {
		uint32_t n = size - off < 8 ? size - off : 8;

		if (off < len) {
			uint64_t word = body_word(slot, off / 8);

			n = len - off < 8 ? len - off : 8;
			memcpy(expected, &word, n);
		} else {
			ex_store_stamp(expected, n,
				       slot->content == MESSAGE
					       ? ex_stamp_word(slot->seed, slot->lap)
					       : 0);
		}
		for (uint32_t b = 0; memcmp(slot->bytes + off, expected, n) && b < n; b++)
			if (slot->bytes[off + b] != expected[b]) {
				*want = expected[b];
				return off + b;
			}
		off += n;
	}
	return size;
}

static void init_slot(struct slot *slot, const struct ex_shape *s, uint32_t queue, uint8_t *data,
		      bool server, uint64_t index)
{
	*slot = (struct slot){
		.shape = s,
		.bytes = data + index * s->size,
		.thread = (uint32_t)(index / s->window),
		.number = (uint32_t)(index % s->window),
	};
	slot->seed = ex_slot_seed(server, queue, slot->thread, slot->number);
}

void ex_pattern_write(const struct ex_shape *s, uint32_t queue, uint8_t *data, bool server,
		      enum ex_content content)
{
	static const enum content contents[] = {
		[EX_EMPTY] = EMPTY,
		[EX_PUT_SOURCE] = SOURCE,
		[EX_GET_SOURCE] = MESSAGE,
	};
	struct slot slot;

	for (uint64_t i = 0; i < (uint64_t)s->threads * s->window; i++) {
		init_slot(&slot, s, queue, data, server, i);
		slot.content = contents[content];
		write_slot(&slot);
	}
}

int ex_pattern_check(const struct ex_shape *s, uint32_t queue, uint8_t *data, bool server,
		     bool gets, uint64_t iters)
{
	struct slot slot;

	for (uint64_t i = 0; i < (uint64_t)s->threads * s->window; i++) {
		uint64_t messages;
		uint32_t wrong;
		uint8_t want = 0;

		init_slot(&slot, s, queue, data, server, i);
		messages = messages_of(s, slot.number, iters);
		slot.content = messages ? MESSAGE : EMPTY;
		slot.lap = messages && !gets ? messages - 1 : 0;
		wrong = first_wrong(&slot, &want);
		if (wrong == s->size)
			continue;
		if (!messages)
			return ex_error("Validation failed: byte %u of slot %u of thread %u of "
					"queue pair %u was written, but has no message",
					wrong, slot.number, slot.thread, queue);
		return ex_error("Validation failed: byte %u of message %" PRIu64 " of thread %u of "
				"queue pair %u is 0x%02x, expected 0x%02x (%u bytes)",
				wrong, (messages - 1) * s->window + slot.number, slot.thread, queue,
				slot.bytes[wrong], want, s->size);
	}
	return 0;
}
