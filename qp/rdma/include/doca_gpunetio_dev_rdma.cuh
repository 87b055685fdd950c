/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The RDMA library in kernels. doca_rdma.h creates its objects.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_RDMA_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_RDMA_CUH

#include "gdk_sdk_rdma_dev.h"

#endif
