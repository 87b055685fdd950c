/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The slab of queue memory: alignment and content of units, the number and size of
 * blocks, and when blocks are allocated and freed.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/gpu/gpu_priv.h"
#include "../../cq/cq.h"
#include "../../umem/slab.h"
#include "../lib/e2e.h"

#define UNITS	  200
#define BOTH_WAYS (GDK_UMEM_TRY_DMABUF | GDK_UMEM_TRY_PEER)

static struct e2e_nic nic;
static struct gdk_slab_kind kind;
static struct gdk_slab_unit unit[UNITS];

static void open_all(void)
{
	e2e_open(&nic);
	kind = (struct gdk_slab_kind){ .gpu = nic.gpu,
				       .dev = nic.dev,
				       .ways = BOTH_WAYS,
				       .pages = 8192,
				       .lines = 384 };
}

static void close_all(void)
{
	e2e_close(&nic); /* fails if a block is left */
}

TestSuite(slab, .init = open_all, .fini = close_all);

static void get(int i)
{
	cr_assert_eq(gdk_slab_get(&kind, &unit[i]), DOCA_SUCCESS);
}

static void put(int i)
{
	gdk_slab_put(unit[i].umem, kind.pages ? unit[i].pages : unit[i].lines);
}

static bool is_byte(const uint8_t *p, size_t len, uint8_t byte)
{
	return *p == byte && !memcmp(p, p + 1, len - 1);
}

static bool in_umem(const struct gdk_slab_unit *u, const void *p, size_t len)
{
	size_t at = (size_t)((const uint8_t *)p - (const uint8_t *)u->umem->addr);

	return at <= u->umem->size && len <= u->umem->size - at;
}

static int num_blocks(void)
{
	return (int)nic.gpu->num_blocks;
}

/* Each unit is filled with its own number, so an overlap is noticed. */
Test(slab, units_are_aligned_zeroed_and_disjoint)
{
	for (int i = 0; i < UNITS; i++) {
		get(i);
		cr_assert_eq((uintptr_t)unit[i].pages % 4096, 0);
		cr_assert_eq((uintptr_t)unit[i].lines % GDK_SLAB_LINE, 0);
		cr_assert(in_umem(&unit[i], unit[i].pages, kind.pages));
		cr_assert(in_umem(&unit[i], unit[i].lines, kind.lines));
		cr_assert(is_byte(unit[i].pages, kind.pages, 0), "pages of unit %d are not zero",
			  i);
		cr_assert(is_byte(unit[i].lines, kind.lines, 0), "lines of unit %d are not zero",
			  i);
		memset(unit[i].pages, i, kind.pages);
		memset(unit[i].lines, i, kind.lines);
	}
	for (int i = 0; i < UNITS; i++) {
		cr_assert(is_byte(unit[i].pages, kind.pages, (uint8_t)i),
			  "pages of unit %d were overwritten", i);
		cr_assert(is_byte(unit[i].lines, kind.lines, (uint8_t)i),
			  "lines of unit %d were overwritten", i);
	}
	/* units per block: 1, 1, 2, 4, 8, 16, 32, then 64 each */
	cr_assert_eq(num_blocks(), 7 + (UNITS - 64 + 63) / 64);
	for (int i = 0; i < UNITS; i++)
		put(i);
}

Test(slab, reused_unit_is_zeroed)
{
	for (int i = 0; i < 4; i++)
		get(i);
	memset(unit[1].pages, 0xaa, kind.pages);
	memset(unit[1].lines, 0xaa, kind.lines);
	put(1);
	get(1);
	cr_assert_eq(num_blocks(), 3, "the freed unit must be reused");
	cr_assert(is_byte(unit[1].pages, kind.pages, 0));
	cr_assert(is_byte(unit[1].lines, kind.lines, 0));
	for (int i = 0; i < 4; i++)
		put(i);
}

Test(slab, smallest_block_is_kept_until_trimmed)
{
	for (int i = 0; i < 70; i++)
		get(i);
	cr_assert_eq(num_blocks(), 8);
	for (int i = 0; i < 70; i++)
		put(i);
	cr_assert_eq(num_blocks(), 1);
	get(0);
	cr_assert_eq(num_blocks(), 1);
	gdk_slab_trim(nic.gpu, NULL);
	cr_assert_eq(num_blocks(), 1, "a block in use must not be freed");
	put(0);
	gdk_slab_trim(nic.gpu, NULL);
	cr_assert_eq(num_blocks(), 0);
}

Test(slab, kinds_do_not_share_blocks)
{
	static const struct gdk_slab_kind others[] = {
		{ .ways = BOTH_WAYS, .pages = 4096, .lines = 384 },
		{ .ways = BOTH_WAYS, .pages = 8192, .lines = 256 },
		{ .ways = BOTH_WAYS,
		  .pages = 8192,
		  .lines = 384,
		  .mem = DOCA_GPU_MEM_TYPE_CPU_GPU },
		{ .pages = 8192, .lines = 384, .ways = GDK_UMEM_TRY_PEER },
	};
	struct gdk_slab_unit other;

	get(0);
	put(0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct gdk_slab_kind k = others[i];

		k.gpu = nic.gpu;
		k.dev = nic.dev;
		cr_assert_eq(gdk_slab_get(&k, &other), DOCA_SUCCESS);
		cr_assert_neq(other.umem, unit[0].umem, "kind %zu shares a block with another kind",
			      i);
		gdk_slab_put(other.umem, other.pages);
	}
}

/*
 * In new and reused units, the CQ's entries must be invalid in the first lap, and
 * everything else zero.
 */
Test(slab, cq_entries_are_invalid_at_first)
{
	uint8_t *p;

	kind.format_cq = gdk_cq_format_image;
	kind.cq_at = 4096;
	kind.cqe_num = 64;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 4; i++) {
			get(i);
			p = unit[i].pages;
			cr_assert(is_byte(p, 4096, 0));
			for (uint32_t at = 0; at < 4096; at++)
				cr_assert_eq(p[4096 + at], at % 64 == 63 ? 0xf1 : 0,
					     "byte %u of the CQ", at);
			cr_assert(is_byte(unit[i].lines, kind.lines, 0));
			memset(p, 0xaa, kind.pages);
			memset(unit[i].lines, 0xaa, kind.lines);
		}
		for (int i = 0; i < 4; i++)
			put(i);
	}
}

/* A block is at most 4 MiB, unless a single unit is larger. */
Test(slab, block_size_is_limited)
{
	kind.pages = 1 << 20;
	for (int i = 0; i < 12; i++) {
		get(i);
		cr_assert_leq(unit[i].umem->size, 4u << 20);
	}
	for (int i = 0; i < 12; i++)
		put(i);
	kind.pages = 8 << 20;
	get(0);
	get(1);
	cr_assert_neq(unit[0].umem, unit[1].umem);
	put(0);
	put(1);
}

/* Units that fit into one page share a block from the beginning. */
Test(slab, units_without_pages_share_a_page)
{
	kind.pages = 0;
	kind.lines = 128;
	for (int i = 0; i < 32; i++)
		get(i);
	cr_assert_eq(num_blocks(), 1);
	cr_assert_eq(unit[31].umem->size, 4096);
	get(32);
	cr_assert_eq(num_blocks(), 2);
	for (int i = 0; i < 33; i++)
		put(i);
}

/* Allocates blocks of up to three pages only. The slab must then allocate single units. */
static unsigned int too_large;
static doca_error_t (*real_alloc)(struct doca_gpu *gpu, struct gdk_block *block, size_t align);

static doca_error_t small_alloc(struct doca_gpu *gpu, struct gdk_block *block, size_t align)
{
	if (block->size <= 3 * 4096)
		return real_alloc(gpu, block, align);
	too_large++;
	return DOCA_ERROR_NO_MEMORY;
}

Test(slab, smaller_block_if_a_large_one_is_refused)
{
	struct gdk_gpu_ops ops = *nic.gpu->ops;
	const struct gdk_gpu_ops *before = nic.gpu->ops;

	real_alloc = ops.alloc;
	ops.alloc = small_alloc;
	nic.gpu->ops = &ops;
	for (int i = 0; i < 4; i++)
		get(i);
	cr_assert_eq(too_large, 2);
	cr_assert_eq(num_blocks(), 4);
	kind.pages = 4 * 4096;
	cr_assert_eq(gdk_slab_get(&kind, &unit[4]), DOCA_ERROR_NO_MEMORY);
	kind.pages = 8192;
	nic.gpu->ops = before;
	for (int i = 0; i < 4; i++)
		put(i);
}
