/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Slots, WQEs and doorbells, for GPU threads that post by themselves.
 * The functions are those of DOCA GPUNetIO open.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_QP_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_VERBS_QP_CUH

#include "gdk_sdk_shape.h"
#include "device/doca_gpunetio_dev_verbs_qp.cuh"
#include "gdk_sdk_mlx5.h"

/** As doca_gpu_dev_verbs_submit_bf() with the argument code_opt. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode,
	  enum doca_gpu_dev_verbs_sync_scope sync_scope,
	  enum doca_gpu_dev_verbs_gpu_code_opt code_opt>
GDK_FN void doca_gpu_dev_verbs_submit_bf(struct doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
					 struct doca_gpu_dev_verbs_wqe *smem_wqe)
{
	doca_gpu_dev_verbs_submit_bf<resource_sharing_mode, sync_scope>(qp, prod_index, smem_wqe,
									code_opt);
}

#endif
