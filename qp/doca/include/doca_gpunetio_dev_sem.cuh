/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Semaphores in kernels. doca_gpunetio.h creates them.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_SEM_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_SEM_CUH

#include "gdk_sdk_semaphore_dev.h"

#endif
