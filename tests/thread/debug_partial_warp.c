/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Runs partial_warp.c as a debug build (GDK_DEBUG). */
#ifndef GDK_DEBUG
#define GDK_DEBUG
#endif

#include "partial_warp.c"
