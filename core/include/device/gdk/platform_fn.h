/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Attributes of device data path functions that are compiled for a CPU. The rest of the
 * platform functions is in platform_cpu.h; platform_cuda.h has both for CUDA.
 */
#ifndef GDK_PLATFORM_FN_H
#define GDK_PLATFORM_FN_H

/* Tests that instantiate hundreds of device functions define GDK_FN themselves, to compile
 * faster. */
#ifndef GDK_FN
#define GDK_FN static inline __attribute__((__always_inline__, __unused__))
#endif
#define GDK_SLOW_FN static __attribute__((__noinline__, __unused__))

#endif
