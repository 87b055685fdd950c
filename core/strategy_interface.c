/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * GDK_STRATEGY_INTERFACE of gdaki_strategy.h, a header of a higher layer (doorbell). Every doorbell
 * strategy refers to this symbol. If the interface changes, the number in its name changes, so that
 * a strategy compiled for another interface does not link.
 */
#include <stdbool.h>

extern const bool gdk_strategy_interface_1;
const bool gdk_strategy_interface_1 = true;
