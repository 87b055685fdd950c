/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The doorbell rung by a CPU thread: this side raises a 64-bit counter in host
 * memory, sq_db, to the index up to which the proxy is to ring.
 */
#ifndef GDK_CPU_PROXY_DEV_H
#define GDK_CPU_PROXY_DEV_H

#include "../../device/gdk/gpu_sm_dev.h"

/* The holder of the token alone stores, so the counter never falls. */
GDK_FN void gdk_counter_store(const struct gdk_db *db, uint64_t pi)
{
	gdk_st64(db->reg, pi, GDK_SCOPE_SYS);
}

#endif
