/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * User memory of firmware objects: the page size that the kernel gives a umem, and
 * where in it a ring may begin.
 *
 * The DMA address of a byte is modelled as its virtual address, in one piece, as an
 * IOMMU or huge pages make it; that of a dmabuf as the offset in it, as GPU memory is
 * aligned to 2 MiB. So pages are as large as they can be on a real machine, and the
 * offset rule as strict.
 */
#include "front.h"

#define RING_UNITS    64u /* of a page: the places where a ring may begin */
#define ADAPTER_SHIFT 12u

static uint64_t low_bits(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (1ull << n) - 1;
}

static uint32_t bits_of(uint64_t v)
{
	return v ? 64u - (uint32_t)__builtin_clzll(v) : 0;
}

/*
 * The best size as ib_umem_find_best_pgsz (Linux core/umem.c): the smallest that is listed
 * and holds all in one page, else the largest that is listed. Linux 5.10 to 6.6, with
 * whole_pages, returns none below its own page size.
 */
static uint64_t best_page(const struct sn_cfg *cfg, uint64_t dma, uint64_t len, uint64_t bitmap)
{
	uint32_t span = bits_of((dma + len - 1) ^ dma);
	uint64_t spanning;

	if (cfg->whole_pages)
		bitmap &= ~((uint64_t)cfg->page_size - 1);
	if (!(bitmap & (2ull * cfg->page_size - 1)))
		return 0;
	spanning = bitmap & ~low_bits(span ? span : 1);
	if (spanning)
		bitmap &= low_bits((uint32_t)__builtin_ctzll(spanning) + 1);
	return 1ull << (bits_of(bitmap) - 1);
}

/* As devx_umem_find_best_pgsize (Linux hw/mlx5/devx.c). */
uint64_t sn_umem_page(const struct sn_cfg *cfg, uint64_t dma, uint64_t len, uint64_t bitmap)
{
	uint32_t kernel_shift = bits_of(cfg->page_size) - 1, most = bits_of(len - 1);
	uint64_t page;

	bitmap &= low_bits((most > kernel_shift ? most : kernel_shift) + 1);
	bitmap &= ~low_bits(ADAPTER_SHIFT);
	page = best_page(cfg, dma, len, bitmap);
	/* A larger page than the kernel's must hold nothing but the umem. */
	while (page > cfg->page_size && (dma % page || len % page))
		page /= 2;
	return page;
}

/*
 * A ring begins on a multiple of 1/64 of the page: contexts have 6 bits for that
 * (page_offset; Linux hw/mlx5/mem.c quantizes by 64), and the firmware asks the same of
 * *_umem_offset (UCX pull request 11103). Which status it answers is not known.
 */
uint8_t sn_cmd_ring(struct sn_cmd *cmd, const struct sn_ring *ring, uint32_t syndrome, uint64_t *va)
{
	struct sn_umem *u = sn_find_umem(cmd->dev, ring->umem);
	uint64_t unit = u ? u->page / RING_UNITS : 0, off = ring->offset;

	if (u && off <= u->len)
		off += ring->page_offset * unit;
	if (!u || off > u->len || ring->len > u->len - off)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, syndrome, "ring outside its umem");
	if (off % unit || (u->first + off) % unit) {
		sn_trace("umem %u: a ring at offset %#llx, pages of %llu", u->id,
			 (unsigned long long)off, (unsigned long long)u->page);
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, syndrome,
				   "ring at no multiple of 1/64 of the umem's page");
	}
	*va = u->va + off;
	return SN_OK;
}
