/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Memory that is kept for reuse, and so keeps its GPU and NIC in use, is freed before one
 * of them is closed. The slab, which is in a higher layer, registers the function that
 * does so.
 */
#ifndef GDK_RECLAIM_H
#define GDK_RECLAIM_H

#include "host/doca_gpunetio.h"

struct doca_dev;

/* Frees what is kept for a GPU or for a NIC and not in use; NULL matches none. */
typedef void gdk_reclaim_fn(const doca_gpu_t *gpu, const struct doca_dev *dev);

/* Any thread; repeated calls with the same function are allowed. */
void gdk_reclaim_register(gdk_reclaim_fn *fn);
/* Calls the registered function, if there is one. */
void gdk_reclaim(const doca_gpu_t *gpu, const struct doca_dev *dev);

#endif
