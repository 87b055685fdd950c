/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Stores the reclaim callback and calls it (reclaim.h). umem/slab.c sets it.
 */
#include <stdatomic.h>

#include "core/reclaim.h"

static gdk_reclaim_fn *_Atomic registered;

void gdk_reclaim_register(gdk_reclaim_fn *fn)
{
	atomic_store(&registered, fn);
}

void gdk_reclaim(const doca_gpu_t *gpu, const struct doca_dev *dev)
{
	gdk_reclaim_fn *fn = atomic_load(&registered);

	if (fn)
		fn(gpu, dev);
}
