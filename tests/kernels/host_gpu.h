/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
#ifndef KERNELS_HOST_GPU_H
#define KERNELS_HOST_GPU_H

#ifdef __cplusplus
extern "C" {
#endif

/* Launches two kernels on a stream. Returns whether the second begins before the first ends. */
int host_gpu_overlaps(void);

#ifdef __cplusplus
}
#endif

#endif
