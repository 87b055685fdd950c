/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * An empty slot for one strategy, compiled once per strategy with -DSTRATEGY=
 * its name. libgdaki_db_none.a holds all of them and comes last on the link
 * line, so that a slot is empty only when its strategy was not linked.
 */
#include "core/util.h"

struct gdk_doorbell;
extern const struct gdk_doorbell *const GDK_PASTE(gdk_doorbell_, STRATEGY);
const struct gdk_doorbell *const GDK_PASTE(gdk_doorbell_, STRATEGY) = NULL;
