/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What buffers, pools and GPU buffer arrays use of a mmap.
 */
#ifndef GDK_DOCA_MMAP_PRIV_H
#define GDK_DOCA_MMAP_PRIV_H

#include "qp/doca/dev.h"

#include "doca_mmap.h"

/* Checks that the mmap is started and contains the range; otherwise logs the reason. */
doca_error_t gdk_mmap_check(const struct doca_mmap *mmap, const void *addr, size_t len,
			    const char *func);

/* The start and the bytes of the range. */
void gdk_mmap_range(const struct doca_mmap *mmap, void **addr, size_t *len);

/* The key of a started mmap for the NIC that was added first. */
uint32_t gdk_mmap_key(const struct doca_mmap *mmap);

/* Whether the key permits RDMA writes. */
bool gdk_mmap_remote_write(const struct doca_mmap *mmap);

/* Count the buffers and pools in a mmap. */
void gdk_mmap_hold(struct doca_mmap *mmap);
void gdk_mmap_release(struct doca_mmap *mmap);

#endif
