/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Copies of memory by the NIC, in kernels. doca_dma.h creates the object.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_DMA_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_DMA_CUH

#include "gdk_sdk_dma_dev.h"

#endif
