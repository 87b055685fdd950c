/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A doorbell strategy <name> defines gdk_doorbell_<name> and gdk_doorbell_<name>_linked in one
 * object, and qp refers to both. If the strategy is not linked, libgdaki_db_none.a defines the
 * first and this file the second. If libgdaki_db_none.a is in front of the strategy on the link
 * line, the second is still undefined when the linker reads the strategy. So the linker takes
 * the strategy too, and reports that the first is defined twice. Without this the linker
 * would ignore the strategy.
 *
 * Weak, because a linker may read this archive before the strategy.
 */
#include <stdbool.h>

__attribute__((__weak__)) const bool gdk_doorbell_gpu_sm_linked = false;
__attribute__((__weak__)) const bool gdk_doorbell_bf_linked = false;
__attribute__((__weak__)) const bool gdk_doorbell_cpu_proxy_linked = false;
