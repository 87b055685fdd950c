/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of a buffer, for the objects whose tasks use it. The members of one list are
 * linked; owner is the inventory or pool that the buffer returns to.
 */
#ifndef GDK_DOCA_BUF_PRIV_H
#define GDK_DOCA_BUF_PRIV_H

#include "qp/doca/mmap.h"

#include "doca_buf.h"

struct gdk_bufs;

struct doca_buf {
	struct gdk_bufs *owner;
	struct doca_mmap *mmap;
	void *addr;
	size_t len;
	void *data;
	size_t data_len;
	uint16_t refs;	       /* 0: free */
	bool chained;	       /* another buffer is in front of it */
	struct doca_buf *next; /* in its list, or in the list of free buffers */
};

#endif
