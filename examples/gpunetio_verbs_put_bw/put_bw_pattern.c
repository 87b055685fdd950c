/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data of gpunetio_verbs_put_bw: fills the client's slots, fills the server's memory with
 * other bytes before the transfer, and checks the server's memory afterwards. put_bw.h
 * defines the pattern.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "put_bw.h"

/* Writes the expected bytes of message iter to out. */
static void expected(const struct put_bw_shape *s, uint32_t thread, uint32_t iter, uint8_t *out)
{
	for (uint32_t off = 0; off < s->size; off += 8) {
		uint64_t word = htole64(put_bw_word(s, thread, iter, off / 8));

		memcpy(out + off, &word, s->size - off < 8 ? s->size - off : 8);
	}
}

/* Calls fn for each slot, with the number of the last message in that slot, until fn fails. */
static int for_each_slot(const struct put_bw_shape *s, uint8_t *base,
			 int (*fn)(const struct put_bw_shape *s, uint8_t *slot, uint32_t thread,
				   uint32_t iter, uint8_t *scratch))
{
	uint8_t *scratch = malloc(s->size);
	int rc = scratch ? 0 : ex_error("out of memory");

	for (uint32_t t = 0; !rc && t < s->threads; t++)
		for (uint32_t k = 0; !rc && k < s->window; k++) {
			uint32_t iter = s->iters - s->window + k;

			rc = fn(s, base + put_bw_slot(s, t, iter), t, iter, scratch);
		}
	free(scratch);
	return rc;
}

static int fill_slot(const struct put_bw_shape *s, uint8_t *slot, uint32_t thread, uint32_t iter,
		     uint8_t *scratch)
{
	(void)scratch;
	expected(s, thread, iter, slot);
	for (uint32_t b = 0; b < 8 && b < s->size; b++)
		slot[b] = ~slot[b]; /* wrong until a thread writes the stamp */
	return 0;
}

/* Sets each byte to another value than expected, so that the check detects missing bytes. */
static int poison_slot(const struct put_bw_shape *s, uint8_t *slot, uint32_t thread, uint32_t iter,
		       uint8_t *scratch)
{
	(void)scratch;
	expected(s, thread, iter, slot);
	for (uint32_t b = 0; b < s->size; b++)
		slot[b] = ~slot[b];
	return 0;
}

static int check_slot(const struct put_bw_shape *s, uint8_t *slot, uint32_t thread, uint32_t iter,
		      uint8_t *want)
{
	expected(s, thread, iter, want);
	for (uint32_t b = 0; b < s->size; b++)
		if (slot[b] != want[b])
			return ex_error("Validation failed: byte %u of message %u of thread %u "
					"is 0x%02x, expected 0x%02x",
					b, iter, thread, slot[b], want[b]);
	return 0;
}

int put_bw_fill(const struct put_bw_shape *s, uint8_t *payload)
{
	return for_each_slot(s, payload, fill_slot);
}

int put_bw_poison(const struct put_bw_shape *s, uint8_t *payload)
{
	return for_each_slot(s, payload, poison_slot);
}

int put_bw_check(const struct put_bw_shape *s, uint8_t *payload)
{
	return for_each_slot(s, payload, check_slot);
}
