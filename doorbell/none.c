/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Defines the pointer of one strategy as NULL. The Makefile compiles this file once for each
 * strategy, with -DSTRATEGY=NAME. libgdaki_db_none.a holds the objects. It is behind the
 * strategies on the link line, so the linker takes an object only if it did not find the
 * strategy. core/unlinked.c makes another order an error of the link.
 */
#include "core/util.h"

struct gdk_doorbell;
extern const struct gdk_doorbell *const GDK_PASTE(gdk_doorbell_, STRATEGY);
const struct gdk_doorbell *const GDK_PASTE(gdk_doorbell_, STRATEGY) = NULL;
