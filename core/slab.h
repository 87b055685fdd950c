/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Memory of queues: units of one size for many queue pairs, in blocks of up to
 * 64 units that are allocated and registered with the NIC once. A block appears
 * when no other has room, as large as all that there are, and goes with its last
 * unit; one of the smallest stays until GPU or NIC is closed, for the next QP.
 * Of each unit, one part begins on a page, where the firmware wants rings to
 * begin; the other parts of all units lie together behind those.
 */
#ifndef GDK_SLAB_H
#define GDK_SLAB_H

#include "../umem/umem.h"
#include "host/doca_gpunetio_high_level.h"

#define GDK_SLAB_LINE 128u

/* What the units of a block have in common. */
struct gdk_slab_kind {
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	enum doca_gpu_mem_type mem;
	enum doca_gpu_verbs_mem_reg_type reg; /* of memory of the GPU */
	size_t pages;			      /* bytes, a multiple of the page size or 0 */
	size_t lines;			      /* bytes, a multiple of GDK_SLAB_LINE */
	/* Where in the pages a CQ's entries begin, and how many; none: 0. */
	size_t cq_at;
	uint32_t cqe_num;
};

/* GPU addresses. */
struct gdk_slab_unit {
	struct doca_verbs_umem *umem;
	void *pages, *lines;
};

/* The unit is zero, but for the CQ's entries, which are nobody's. */
doca_error_t gdk_slab_get(const struct gdk_slab_kind *kind, struct gdk_slab_unit *unit);
/* ptr: pages, or lines of a kind without pages. */
void gdk_slab_put(struct doca_verbs_umem *umem, void *ptr);
/* Before a GPU or a NIC is closed: releases blocks of it that nobody uses. */
void gdk_slab_trim(const doca_gpu_t *gpu, const struct doca_dev *dev);

#endif
