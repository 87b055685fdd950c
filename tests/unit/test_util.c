/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Utility functions of core: powers of two, logarithms, alignment, and host memory
 * on a NUMA node.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../core/numa.h"
#include "../../core/util.h"

Test(util, powers_of_two)
{
	cr_expect_not(gdk_is_pow2(0));
	cr_expect(gdk_is_pow2(1));
	cr_expect(gdk_is_pow2(1ull << 63));
	cr_expect_not(gdk_is_pow2(3));
	cr_expect_eq(gdk_roundup_pow2(0), 1);
	cr_expect_eq(gdk_roundup_pow2(1), 1);
	cr_expect_eq(gdk_roundup_pow2(5), 8);
	cr_expect_eq(gdk_roundup_pow2(8), 8);
	cr_expect_eq(gdk_roundup_pow2((1ull << 62) + 1), 1ull << 63);
}

Test(util, logarithm_is_exact)
{
	unsigned int i;

	for (i = 0; i < 64; i++) {
		cr_expect_eq(gdk_ilog2(1ull << i), i);
		cr_expect_eq(gdk_ilog2((1ull << i) | (i ? 1 : 0)), i);
	}
}

Test(util, align_up)
{
	cr_expect_eq(gdk_align_up(0, 64), 0);
	cr_expect_eq(gdk_align_up(1, 64), 64);
	cr_expect_eq(gdk_align_up(64, 64), 64);
	cr_expect_eq(gdk_align_up(65, 64), 128);
}

Test(util, host_memory_is_aligned_and_zero)
{
	size_t align;

	for (align = 16; align <= 4ul << 20; align *= 4) {
		struct gdk_host_block block;
		size_t i;

		cr_assert_eq(gdk_host_alloc(&block, 10000, align, 0), 0);
		cr_expect_eq((uintptr_t)block.addr % align, 0, "alignment %zu", align);
		for (i = 0; i < 10000; i++)
			cr_assert_eq(((char *)block.addr)[i], 0);
		memset(block.addr, 1, 10000);
		gdk_host_free(&block);
	}
}

Test(util, missing_numa_node_is_no_error)
{
	struct gdk_host_block block;

	cr_assert_eq(gdk_host_alloc(&block, 1, 1, 500), 0);
	gdk_host_free(&block);
}

Test(util, host_memory_too_large_is_refused)
{
	struct gdk_host_block block;

	cr_expect_eq(gdk_host_alloc(&block, SIZE_MAX, 1ul << 20, -1), ENOMEM);
	cr_expect_eq(gdk_host_alloc(&block, SIZE_MAX / 2, 16, -1), ENOMEM);
}
