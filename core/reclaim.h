/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Callbacks that free what is kept for reuse, before a GPU or a NIC is closed: slabs, pages of
 * words and UARs. Each counts as a user of its GPU and its NIC. Their code is in higher layers than
 * the functions that close GPU and NIC, so it registers a callback.
 */
#ifndef GDK_RECLAIM_H
#define GDK_RECLAIM_H

#include "host/doca_gpunetio.h"

struct doca_dev;

/* Frees what is unused and belongs to gpu, and what is unused and belongs to dev. Either argument
 * may be NULL. */
typedef void gdk_reclaim_fn(const doca_gpu_t *gpu, const struct doca_dev *dev);

/* Adds a callback. Any thread may call this; the same function may be added repeatedly. */
void gdk_reclaim_register(gdk_reclaim_fn *fn);
/* Calls the callbacks. */
void gdk_reclaim(const doca_gpu_t *gpu, const struct doca_dev *dev);

#endif
