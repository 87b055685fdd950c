/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Slab allocator for queue memory. A slab is a block of up to 64 units, allocated and
 * registered with the NIC as a whole; a unit is memory of one queue pair. When all slabs of a
 * kind are full, the next one gets as many units as they have together, up to 64 units and
 * 4 MiB. A slab is freed when its last unit is freed. But one empty slab of the smallest size is
 * kept for the next QP, until the GPU or the NIC is closed.
 *
 * A unit has two parts: pages, which begin on a page boundary, as the firmware requires for
 * rings, and lines (DBRECs, state), which are behind the pages of all units of the slab.
 */
#ifndef GDK_SLAB_H
#define GDK_SLAB_H

#include "umem/umem.h"

#define GDK_SLAB_LINE 128u

/* Properties that all units of a slab share. */
struct gdk_slab_kind {
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	enum doca_gpu_mem_type mem;
	unsigned int ways; /* GDK_UMEM_TRY_*: how GPU memory may be registered */
	size_t pages;	   /* bytes, a multiple of the page size or 0 */
	size_t lines;	   /* bytes, a multiple of GDK_SLAB_LINE */
	size_t cq_at;	   /* offset of the CQEs in pages */
	uint32_t cqe_num;  /* number of CQEs; 0: no CQ */
	/* Writes the initial content of the CQEs, whose memory is zero. */
	void (*format_cq)(uint8_t *cqes, uint32_t cqe_num);
};

/* A unit. pages and lines are GPU addresses. */
struct gdk_slab_unit {
	struct doca_verbs_umem *umem;
	void *pages, *lines;
};

/* Gets a unit. Its memory is zero, except the CQEs, which format_cq wrote. */
doca_error_t gdk_slab_get(const struct gdk_slab_kind *kind, struct gdk_slab_unit *unit);
/* Frees a unit. umem is the unit's umem. ptr is the unit's pages, or its lines if the kind has no
 * pages. */
void gdk_slab_put(struct doca_verbs_umem *umem, void *ptr);
/* Frees the unused slabs of a GPU or a NIC, before it is closed (core/reclaim.h). */
void gdk_slab_trim(const doca_gpu_t *gpu, const struct doca_dev *dev);

#endif
