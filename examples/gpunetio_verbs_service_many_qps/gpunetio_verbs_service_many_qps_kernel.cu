/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The same puts as in gpunetio_verbs_put_bw. */
#include "../gpunetio_verbs_put_bw/gpunetio_verbs_put_bw_kernel.cu"
