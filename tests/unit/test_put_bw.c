/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data check of the put_bw example's server. It must accept correct data and
 * find the errors that the tests plant, which a faulty NIC could cause.
 */
#include <criterion/criterion.h>

#include "../../examples/gpunetio_verbs_put_bw/put_bw_pattern.c"

/* Replaces ex_error() of examples/common/exchange.c, so that expected errors are not printed. */
int ex_error(const char *fmt, ...)
{
	(void)fmt;
	return -1;
}

static const struct put_bw_shape shapes[] = {
	{ .threads = 3, .iters = 5, .size = 13, .window = 5 },
	{ .threads = 2, .iters = 7, .size = 1, .window = 7 },
	{ .threads = 2, .iters = 10, .size = 24, .window = 4 },
	{ .threads = 1, .iters = 9, .size = 8, .window = 1 },
};
#define NUM_SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define MAX_BYTES  256

/* Copies all messages in order, as a NIC would, except message `lost` of thread 0. */
static void transfer(const struct put_bw_shape *s, uint8_t *src, uint8_t *dst, uint32_t lost)
{
	put_bw_fill(s, src);
	put_bw_poison(s, dst);
	for (uint32_t i = 0; i < s->iters; i++)
		for (uint32_t t = 0; t < s->threads; t++) {
			uint64_t slot = put_bw_slot(s, t, i);

			put_bw_stamp(s, src + slot, t, i);
			if (t || i != lost)
				memcpy(dst + slot, src + slot, s->size);
		}
}

Test(put_bw, correct_data_passes)
{
	uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	for (size_t k = 0; k < NUM_SHAPES; k++) {
		cr_assert_leq(put_bw_bytes(&shapes[k]), MAX_BYTES);
		transfer(&shapes[k], src, dst, UINT32_MAX);
		cr_assert_eq(put_bw_check(&shapes[k], dst), 0, "shape %zu: correct data refused",
			     k);
	}
}

Test(put_bw, any_wrong_byte_is_found)
{
	uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	for (size_t k = 0; k < NUM_SHAPES; k++) {
		transfer(&shapes[k], src, dst, UINT32_MAX);
		for (size_t b = 0; b < put_bw_bytes(&shapes[k]); b++) {
			dst[b] ^= 1;
			cr_assert_eq(put_bw_check(&shapes[k], dst), -1,
				     "shape %zu: wrong byte %zu not found", k, b);
			dst[b] ^= 1;
		}
	}
}

Test(put_bw, lost_message_is_found)
{
	uint8_t src[MAX_BYTES], dst[MAX_BYTES];

	/*
	 * A later message in the same part of the window hides a lost one, so lose
	 * only one of the last `window` messages.
	 */
	for (size_t k = 0; k < NUM_SHAPES; k++)
		for (uint32_t i = shapes[k].iters - shapes[k].window; i < shapes[k].iters; i++) {
			transfer(&shapes[k], src, dst, i);
			cr_assert_eq(put_bw_check(&shapes[k], dst), -1,
				     "shape %zu: lost message %u not found", k, i);
		}
}

Test(put_bw, swapped_messages_are_found)
{
	const struct put_bw_shape *s = &shapes[0];
	uint8_t src[MAX_BYTES], dst[MAX_BYTES], tmp[16];
	uint64_t a = put_bw_slot(s, 0, 1), b = put_bw_slot(s, 2, 1);

	transfer(s, src, dst, UINT32_MAX);
	memcpy(tmp, dst + a, s->size);
	memcpy(dst + a, dst + b, s->size);
	memcpy(dst + b, tmp, s->size);
	cr_assert_eq(put_bw_check(s, dst), -1);
}
