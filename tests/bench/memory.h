/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Counts the host memory that a program and its libraries hold, without that of the
 * software NIC and the CUDA driver. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void memory_begin(void); /* starts counting; must be called after all libraries are loaded */
size_t memory_held(
	void); /* bytes of malloc and of anonymous mappings, allocated since then and not freed */

#ifdef __cplusplus
}
#endif

#endif
