/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Runs nic_put.c as a debug build (GDK_DEBUG). The debug build's checks of WQEs must accept
 * each WQE that the threads post. */
#ifndef GDK_DEBUG
#define GDK_DEBUG
#endif

#include "nic_put.c"
