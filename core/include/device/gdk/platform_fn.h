/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Attributes of the functions of the device data path, and memory scopes. */
#ifndef GDK_PLATFORM_FN_H
#define GDK_PLATFORM_FN_H

/* Ordered from narrow to wide, so that scopes can be compared. */
#define GDK_SCOPE_THREAD 0
#define GDK_SCOPE_CTA	 1
#define GDK_SCOPE_GPU	 2
#define GDK_SCOPE_SYS	 3

/* Tests that instantiate hundreds of device functions define GDK_FN themselves, to compile
 * faster. */
#ifdef __CUDACC__
#ifndef GDK_FN
#define GDK_FN __device__ static __forceinline__
#endif
#define GDK_SLOW_FN __device__ static __noinline__ __attribute__((unused))
#else
#ifndef GDK_FN
#define GDK_FN static inline __attribute__((__always_inline__, __unused__))
#endif
#define GDK_SLOW_FN static __attribute__((__noinline__, __unused__))
#endif

#endif
