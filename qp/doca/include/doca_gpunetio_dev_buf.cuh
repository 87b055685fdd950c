/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Buffer arrays in kernels. doca_buf_array.h creates them.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_BUF_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_BUF_CUH

#include "gdk_sdk_buf_dev.h"

#endif
