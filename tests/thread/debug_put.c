/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* As nic_put, in the debug build: it finds nothing wrong in what threads post. */
#ifndef GDK_DEBUG
#define GDK_DEBUG
#endif

#include "nic_put.c"
