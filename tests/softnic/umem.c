/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * User memory (umem) of firmware objects: the page size that the kernel chooses for a
 * umem, and the offsets at which a ring may begin. Registration is in uverbs_devx.c.
 *
 * The DMA address of a byte is its virtual address; in a dmabuf, it is the byte's
 * offset. Thus memory is contiguous for DMA, as with an IOMMU or huge pages, and a
 * dmabuf is aligned to 2 MiB, as GPU memory is. The pages are then as large as they can
 * be on a real machine, and the rule for offsets is as strict as it can be there.
 */
#include "front.h"

#define RING_UNITS    64u /* a ring may begin at multiples of 1/64 of a page */
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
 * The page size that ib_umem_find_best_pgsz() (Linux core/umem.c) chooses: the smallest size in
 * the bitmap that covers the umem with one page, otherwise the largest in the bitmap. Linux
 * 5.10 to 6.6, modelled by whole_pages, returns no size below the kernel's page size.
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

/* Returns the page size that devx_umem_find_best_pgsize() (Linux hw/mlx5/devx.c) chooses; 0: no
 * permitted size is possible. */
uint64_t sn_umem_page(const struct sn_cfg *cfg, uint64_t dma, uint64_t len, uint64_t bitmap)
{
	uint32_t kernel_shift = bits_of(cfg->page_size) - 1, most = bits_of(len - 1);
	uint64_t page;

	bitmap &= low_bits((most > kernel_shift ? most : kernel_shift) + 1);
	bitmap &= ~low_bits(ADAPTER_SHIFT);
	page = best_page(cfg, dma, len, bitmap);
	/* a page larger than the kernel's must not extend beyond the umem */
	while (page > cfg->page_size && (dma % page || len % page))
		page /= 2;
	return page;
}

/*
 * A ring must begin at a multiple of 1/64 of the page: contexts have 6 bits for the offset
 * (page_offset; Linux hw/mlx5/mem.c quantizes by 64), and the firmware requires the same of
 * *_umem_offset (UCX pull request 11103). Real firmware's status for a misaligned ring is not
 * known; this NIC returns BAD_PARAM.
 */
uint8_t sn_cmd_ring(struct sn_cmd *cmd, const struct sn_ring *ring, uint32_t syndrome, uint64_t *va)
{
	struct sn_umem *u = sn_find_umem(cmd->dev, ring->umem);
	uint64_t unit = u ? u->page / RING_UNITS : 0, off = ring->offset;

	if (u && off <= u->len)
		off += ring->page_offset * unit;
	if (!u || off > u->len || ring->len > u->len - off)
		return sn_cmd_fail(cmd, SN_ST_BAD_RES, syndrome, "ring exceeds its umem");
	if (off % unit || (u->first + off) % unit) {
		sn_trace("umem %u: refusing ring at offset %#llx, page size %llu", u->id,
			 (unsigned long long)off, (unsigned long long)u->page);
		return sn_cmd_fail(cmd, SN_ST_BAD_PARAM, syndrome,
				   "ring offset is no multiple of 1/64 of the umem's page");
	}
	*va = u->va + off;
	return SN_OK;
}
