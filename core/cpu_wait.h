/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
#ifndef GDK_CPU_WAIT_H
#define GDK_CPU_WAIT_H

#include <stdint.h>

/* Returns for how many ns the first 256 threads of this process, in sum, were ready to run but got
 * no processor, since each of them began. 0: the kernel does not count it. */
uint64_t gdk_cpu_wait_ns(void);

#endif
