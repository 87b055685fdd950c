/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A callback that frees cached memory before a GPU or a NIC is closed. Slabs are kept for
 * reuse, and a kept slab counts as a user of its GPU and its NIC. The slab allocator is in a
 * higher layer than the functions that close them, so it registers this callback.
 */
#ifndef GDK_RECLAIM_H
#define GDK_RECLAIM_H

#include "host/doca_gpunetio.h"

struct doca_dev;

/* Frees the unused slabs that belong to gpu, and the unused slabs that belong to dev. Either
 * argument may be NULL. */
typedef void gdk_reclaim_fn(const doca_gpu_t *gpu, const struct doca_dev *dev);

/* Sets the callback. Any thread may call this; the same function may be set repeatedly. */
void gdk_reclaim_register(gdk_reclaim_fn *fn);
/* Calls the callback, if one is set. */
void gdk_reclaim(const doca_gpu_t *gpu, const struct doca_dev *dev);

#endif
