/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Host memory that a program and its libraries hold, less the software NIC and the driver. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void memory_begin(void);  /* when all libraries are loaded */
size_t memory_held(void); /* bytes since then; what malloc gave, and whole anonymous maps */

#ifdef __cplusplus
}
#endif

#endif
