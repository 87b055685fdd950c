/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Slots, WQEs and doorbells, for GPU threads that post by themselves.
 * The functions are those of DOCA GPUNetIO open.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_QP_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_QP_CUH

#include "device/doca_gpunetio_dev_verbs_qp.cuh"
#include "doca_gpunetio_verbs_def.h"

#endif
