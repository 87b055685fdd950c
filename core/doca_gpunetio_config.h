/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Build-time configuration that applications of DOCA GPUNetIO test for. What is
 * 1 here is always compiled in; whether driver and device have it is found out
 * at run time.
 */
#ifndef DOCA_GPUNETIO_CONFIG_H
#define DOCA_GPUNETIO_CONFIG_H

/* DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED can be asked for. */
#define DOCA_GPUNETIO_HAVE_DEDICATED_NC_UAR 1
/* A umem can be made from a dmabuf file descriptor. */
#define DOCA_GPUNETIO_HAVE_MLX5DV_UMEM_DMABUF 1
/* doca_gpu_get_dmabuf_fd is compiled in. */
#define DOCA_GPUNETIO_HAVE_CUDA_DMABUF 1

#endif
