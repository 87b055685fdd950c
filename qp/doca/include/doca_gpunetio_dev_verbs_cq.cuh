/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Polling of completion queues by GPU threads.
 * The functions are those of DOCA GPUNetIO open.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_CQ_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_CQ_CUH

#include "device/doca_gpunetio_dev_verbs_cq.cuh"
#include "gdk_sdk_mlx5.h"

#endif
