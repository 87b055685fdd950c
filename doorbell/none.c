/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Defines the pointer of one strategy as NULL. The Makefile compiles this file once for each
 * strategy, with -DSTRATEGY=NAME. libgdaki_db_none.a holds the objects.
 *
 * The pointer is a common symbol. The linker takes this object only if it has not found the
 * strategy yet. If the strategy follows on the link line, the linker takes it too, because an
 * archive's definition replaces a common symbol. So its place on the link line does not matter (for
 * gold see core/unlinked.c).
 */
#include "core/util.h"

struct gdk_doorbell;
extern const struct gdk_doorbell *GDK_PASTE(gdk_doorbell_, STRATEGY);
const struct gdk_doorbell *GDK_PASTE(gdk_doorbell_, STRATEGY) __attribute__((__common__));
