/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Defines the pointer of one strategy as NULL. It is compiled once per strategy, with
 * -DSTRATEGY=NAME. libgdaki_db_none.a contains all of these objects and stands behind the
 * strategies on the link line, so that the linker takes one only if the strategy is missing.
 */
#include "core/util.h"

struct gdk_doorbell;
extern const struct gdk_doorbell *const GDK_PASTE(gdk_doorbell_, STRATEGY);
const struct gdk_doorbell *const GDK_PASTE(gdk_doorbell_, STRATEGY) = NULL;
