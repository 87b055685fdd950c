/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* nic_put.c compiled as a debug build (GDK_DEBUG): its checks of WQEs must accept
 * everything that these threads post. */
#ifndef GDK_DEBUG
#define GDK_DEBUG
#endif

#include "nic_put.c"
