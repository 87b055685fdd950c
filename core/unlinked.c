/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A doorbell strategy NAME defines gdk_doorbell_NAME and gdk_doorbell_NAME_linked in one
 * object file, and qp/export/strategies.c refers to both. If the strategy is not linked,
 * libgdaki_db_none.a defines gdk_doorbell_NAME, and this file defines gdk_doorbell_NAME_linked.
 *
 * The second symbol is for the linker gold. If libgdaki_db_none.a is in front of the strategy,
 * gdk_doorbell_NAME is a common symbol when the linker reads the strategy. The other linkers
 * take the strategy for this symbol (doorbell/none.c), but gold does not. It takes the strategy
 * for the second symbol, unless libgdaki_core.a is also in front of the strategy.
 *
 * The definitions are weak, because a linker may read this archive before the strategy.
 */
#include <stdbool.h>

__attribute__((__weak__)) const bool gdk_doorbell_gpu_sm_linked = false;
__attribute__((__weak__)) const bool gdk_doorbell_bf_linked = false;
__attribute__((__weak__)) const bool gdk_doorbell_cpu_proxy_linked = false;
