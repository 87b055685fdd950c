/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Build-time features that applications of DOCA GPUNetIO test. This library defines all of them
 * as 1: the code is always compiled in, and the library tests at run time whether driver and
 * device support the feature.
 */
#ifndef DOCA_GPUNETIO_CONFIG_H
#define DOCA_GPUNETIO_CONFIG_H

/** 1: doca_verbs_uar_create() accepts DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED. */
#define DOCA_GPUNETIO_HAVE_DEDICATED_NC_UAR 1
/** 1: doca_verbs_umem_create() accepts a dmabuf file descriptor. */
#define DOCA_GPUNETIO_HAVE_MLX5DV_UMEM_DMABUF 1
/** 1: doca_gpu_get_dmabuf_fd() is compiled in. */
#define DOCA_GPUNETIO_HAVE_CUDA_DMABUF 1

#endif
