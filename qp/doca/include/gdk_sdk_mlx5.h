/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Formats of the NIC under their names of libmlx5, which kernels of programs for the SDK use.
 */
#ifndef GDK_SDK_MLX5_H
#define GDK_SDK_MLX5_H

#include <infiniband/mlx5dv.h>

#include "doca_gpunetio_verbs_def.h"

/** CQE with opcode MLX5_CQE_REQ_ERR or MLX5_CQE_RESP_ERR; mlx5_err_cqe lacks hw_err_synd. */
#define mlx5_err_cqe_ex doca_gpunetio_ib_mlx5_err_cqe_ex

/** Type of the segments of a receive WQE. */
#define GDK_RECV_SEG mlx5_wqe_data_seg

#endif
