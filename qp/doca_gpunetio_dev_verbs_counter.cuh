/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA GPUNetIO device API, several QPs at once (a QP and its counter's
 * companion): submission of all in one call.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH
#define DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH

#include "doca_gpunetio_dev_verbs_qp.cuh"

template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_multi_qps_no_dbr(struct doca_gpu_dev_verbs_qp **qps,
							  uint64_t *prod_indices, GDK_CODE_OPT)
{
	for (unsigned int i = 0; i < num_qps; i++)
		doca_gpu_dev_verbs_submit_db_no_dbr<resource_sharing_mode, sync_scope>(
			qps[i], prod_indices[i], code_opt);
}

template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_multi_qps(struct doca_gpu_dev_verbs_qp **qps,
						   uint64_t *prod_indices, GDK_CODE_OPT)
{
	for (unsigned int i = 0; i < num_qps; i++)
		doca_gpu_dev_verbs_submit_db<resource_sharing_mode, sync_scope>(
			qps[i], prod_indices[i], code_opt);
}

#endif
