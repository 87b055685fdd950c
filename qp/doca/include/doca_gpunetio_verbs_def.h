/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Constants, enumerations, device structs and formats of the NIC that host and device code share.
 * They are those of DOCA GPUNetIO open, and some have another name here.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_VERBS_DEF_H
#define GDK_SDK_DOCA_GPUNETIO_VERBS_DEF_H

#include "common/doca_gpunetio_verbs_def.h"
#include "common/doca_gpunetio_verbs_dev.h"
#include "gdk_sdk_shape.h"

/** Opcode of a control segment: RDMA write. */
#define DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE
/** Opcode of a control segment: send. */
#define DOCA_GPUNETIO_MLX5_OPCODE_SEND DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND

/** Bit of fm_ce_se: the WQE generates a CQE. */
#define DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE
/** Bit of fm_ce_se: the WQE generates a CQE only if it fails. */
#define DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_ERROR_UPDATE DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_ERROR_UPDATE

/** Template parameter code_opt: BlueFlame without doorbell. No effect: a submission of this library
 * always writes the DBREC. */
#define DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_BF_UNRELIABLE DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT

/** As DOCA_GPUNETIO_VOLATILE. */
#define DOCA_GPUNETIO_VERBS_VOLATILE(x) DOCA_GPUNETIO_VOLATILE(x)

#endif
