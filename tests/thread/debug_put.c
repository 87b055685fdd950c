/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* nic_put.c compiled for the debug build, which must not refuse any WQE of these threads. */
#ifndef GDK_DEBUG
#define GDK_DEBUG
#endif

#include "nic_put.c"
