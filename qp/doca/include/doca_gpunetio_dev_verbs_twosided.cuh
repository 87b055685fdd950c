/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Two-sided operations of GPU threads: send, receive, wait for a receive.
 * The functions are those of device/doca_gpunetio_dev_verbs_twosided.cuh. Segments of receive WQEs
 * have the type of libmlx5.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH

#include "doca_gpunetio_dev_verbs_onesided.cuh"
#include "device/doca_gpunetio_dev_verbs_twosided.cuh"

#endif
