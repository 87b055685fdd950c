/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Operations of GPU threads that a companion queue pair counts; submission to several queue pairs.
 * The functions are those of DOCA GPUNetIO open.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH

#include "doca_gpunetio_dev_verbs_onesided.cuh"
#include "device/doca_gpunetio_dev_verbs_counter.cuh"

#endif
