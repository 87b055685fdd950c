/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * One-sided operations of GPU threads: put, get, signal, wait.
 * The functions are those of DOCA GPUNetIO open.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH

#include "doca_gpunetio_dev_verbs_qp.cuh"
#include "device/doca_gpunetio_dev_verbs_onesided.cuh"

#endif
