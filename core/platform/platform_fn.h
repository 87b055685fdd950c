/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* How functions of the device data path are declared for a CPU. */
#ifndef GDK_PLATFORM_FN_H
#define GDK_PLATFORM_FN_H

#define GDK_FN	    static inline __attribute__((__always_inline__, __unused__))
#define GDK_SLOW_FN static __attribute__((__noinline__, __unused__))

#endif
