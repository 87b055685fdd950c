/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data check of the examples. It must accept correct data and find the errors that the tests
 * plant, which a faulty NIC could cause.
 */
#include <criterion/criterion.h>

#include "../../examples/common/pattern.c"

/* Replaces ex_error() of examples/common/error.c, so that expected errors are not printed. */
int ex_error(const char *fmt, ...)
{
	(void)fmt;
	return -1;
}

static const struct {
	struct ex_shape shape;
	uint64_t iters;
} cases[] = {
	{ { .threads = 3, .size = 13, .window = 5 }, 5 },
	{ { .threads = 2, .size = 1, .window = 7 }, 7 },
	{ { .threads = 2, .size = 24, .window = 4 }, 10 },
	{ { .threads = 1, .size = 8, .window = 1 }, 9 },
	{ { .threads = 2, .size = 1, .window = 2 }, 3 * 512 + 1 }, /* turns repeat after 255 */
	{ { .threads = 2, .size = 17, .window = 6 }, 4 },	   /* slots without a message */
};
#define NUM_CASES (sizeof(cases) / sizeof(cases[0]))
#define MAX_BYTES 256
#define QUEUE	  2
#define NONE	  UINT64_MAX

static size_t bytes_of(const struct ex_shape *s)
{
	return (size_t)s->threads * s->window * s->size;
}

/* Copies all messages of case k in order, as a NIC would, except message `lost` of thread 0. gets:
 * the messages are those of gets, otherwise those of puts. */
static void transfer(size_t k, uint8_t *src, uint8_t *dst, bool gets, uint64_t lost)
{
	const struct ex_shape *s = &cases[k].shape;
	struct ex_dev_queue queues[QUEUE + 1] = { [QUEUE] = { .data = gets ? dst : src } };
	const struct ex_job job = { .queues = queues,
				    .size = s->size,
				    .window = s->window,
				    .client = true };

	cr_assert_leq(bytes_of(s), MAX_BYTES);
	ex_pattern_write(s, QUEUE, src, gets, gets ? EX_GET_SOURCE : EX_PUT_SOURCE);
	ex_pattern_write(s, QUEUE, dst, gets, EX_EMPTY);
	for (uint64_t i = 0; i < cases[k].iters; i++)
		for (uint32_t t = 0; t < s->threads; t++) {
			uint64_t slot = ex_slot(&job, t, i);

			if (gets)
				(void)ex_blank(&job, QUEUE, t, i);
			else
				ex_stamp(&job, QUEUE, t, i);
			if (t || i != lost)
				memcpy(dst + slot, src + slot, s->size);
		}
}

static int check(size_t k, uint8_t *dst, bool gets)
{
	return ex_pattern_check(&cases[k].shape, QUEUE, dst, gets, gets, cases[k].iters);
}

Test(put_bw, correct_data_passes)
{
	_Alignas(8) uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	for (int gets = 0; gets < 2; gets++)
		for (size_t k = 0; k < NUM_CASES; k++) {
			transfer(k, src, dst, gets, NONE);
			cr_assert_eq(check(k, dst, gets), 0, "case %zu: correct data refused", k);
		}
}

Test(put_bw, any_wrong_byte_is_found)
{
	_Alignas(8) uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	for (size_t k = 0; k < NUM_CASES; k++) {
		transfer(k, src, dst, false, NONE);
		for (size_t b = 0; b < bytes_of(&cases[k].shape); b++) {
			dst[b] ^= 1;
			cr_assert_eq(check(k, dst, false), -1, "case %zu: wrong byte %zu not found",
				     k, b);
			dst[b] ^= 1;
		}
	}
}

Test(put_bw, lost_message_is_found)
{
	_Alignas(8) uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	/*
	 * A later message in the same slot hides a lost one, so lose only one of the last `window`
	 * messages.
	 */
	for (int gets = 0; gets < 2; gets++)
		for (size_t k = 0; k < NUM_CASES; k++) {
			uint64_t window = cases[k].shape.window, end = cases[k].iters;

			for (uint64_t i = end > window ? end - window : 0; i < end; i++) {
				transfer(k, src, dst, gets, i);
				cr_assert_eq(check(k, dst, gets), -1,
					     "case %zu: lost message %u not found", k,
					     (unsigned int)i);
			}
		}
}

Test(put_bw, surplus_message_is_found)
{
	_Alignas(8) uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	for (size_t k = 0; k < NUM_CASES; k++) {
		transfer(k, src, dst, false, NONE);
		cr_assert_eq(ex_pattern_check(&cases[k].shape, QUEUE, dst, false, false,
					      cases[k].iters - 1),
			     -1, "case %zu: one message too much not found", k);
	}
}

Test(put_bw, swapped_messages_are_found)
{
	const struct ex_shape *s = &cases[0].shape;
	const struct ex_job job = { .size = s->size, .window = s->window };
	_Alignas(8) uint8_t src[MAX_BYTES], dst[MAX_BYTES], tmp[16];
	uint64_t a = ex_slot(&job, 0, 1), b = ex_slot(&job, 2, 1);

	transfer(0, src, dst, false, NONE);
	memcpy(tmp, dst + a, s->size);
	memcpy(dst + a, dst + b, s->size);
	memcpy(dst + b, tmp, s->size);
	cr_assert_eq(check(0, dst, false), -1);
}

Test(put_bw, data_of_another_queue_pair_or_sender_is_found)
{
	_Alignas(8) uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	transfer(0, src, dst, false, NONE);
	cr_assert_eq(
		ex_pattern_check(&cases[0].shape, QUEUE + 1, dst, false, false, cases[0].iters),
		-1);
	cr_assert_eq(ex_pattern_check(&cases[0].shape, QUEUE, dst, true, false, cases[0].iters),
		     -1);
}

Test(put_bw, turns_of_successive_messages_differ)
{
	for (uint64_t lap = 0; lap < 1000; lap++) {
		cr_assert_neq(ex_turn(lap), ex_turn(lap + 1));
		cr_assert_neq(ex_turn(lap), 0);
	}
}
