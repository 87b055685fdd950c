/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A doorbell strategy NAME defines gdk_doorbell_NAME and gdk_doorbell_NAME_linked in one
 * object file, and other parts of the library refer to both. If the strategy is not linked,
 * libgdaki_db_none.a defines gdk_doorbell_NAME, and this file defines gdk_doorbell_NAME_linked.
 *
 * The second symbol detects a wrong order on the link line. If libgdaki_db_none.a is in front of
 * the strategy, gdk_doorbell_NAME is defined when the linker reads the strategy, but
 * gdk_doorbell_NAME_linked is not. So the linker also takes the strategy's object file, and
 * reports that gdk_doorbell_NAME is defined twice. Without the second symbol the linker would
 * ignore the strategy without a message.
 *
 * The definitions are weak, because a linker may read this archive before the strategy.
 */
#include <stdbool.h>

__attribute__((__weak__)) const bool gdk_doorbell_gpu_sm_linked = false;
__attribute__((__weak__)) const bool gdk_doorbell_bf_linked = false;
__attribute__((__weak__)) const bool gdk_doorbell_cpu_proxy_linked = false;
