/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Flat lists: the device structs of several high-level queue pairs in one array (dev_struct.c). */
#include <stdlib.h>

#include "core/log/log.h"
#include "host/doca_gpunetio_high_level.h"
#include "qp/export/export.h"

/* Finds the GPU of the QPs in a list. All must be exported to the same GPU. */
static doca_error_t flat_gpu(struct doca_gpu_verbs_qp_hl **list, uint32_t num, doca_gpu_t **gpu)
{
	uint32_t i;

	*gpu = NULL;
	for (i = 0; i < num; i++) {
		if (!list[i])
			continue;
		if (!list[i]->qp_gverbs) {
			gdk_err("qp_list[%u]: QP %p is not exported", i, (void *)list[i]);
			return DOCA_ERROR_INVALID_VALUE;
		}
		if (*gpu && *gpu != list[i]->gpu_dev) {
			gdk_err("qp_list[%u]: QP %p is on GPU %s, an earlier one on GPU %s", i,
				(void *)list[i], gdk_gpu_name(list[i]->gpu_dev),
				gdk_gpu_name(*gpu));
			return DOCA_ERROR_INVALID_VALUE;
		}
		*gpu = list[i]->gpu_dev;
	}
	if (*gpu)
		return DOCA_SUCCESS;
	gdk_err("qp_list: all %u entries are NULL (expected at least one QP)", num);
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_gpu_verbs_qp_flat_list_create_hl(struct doca_gpu_verbs_qp_hl **qp_list,
						   uint32_t num_elems,
						   struct doca_gpu_dev_verbs_qp **qp_gpu)
{
	struct doca_gpu_verbs_qp **qps;
	doca_gpu_t *gpu;
	doca_error_t err;
	uint32_t i;

	GDK_CHECK_PTR(qp_list);
	GDK_CHECK_ARG(num_elems, "num_elems 0 (expected at least 1)");
	GDK_CHECK_PTR(qp_gpu);
	err = flat_gpu(qp_list, num_elems, &gpu);
	if (err != DOCA_SUCCESS)
		return err;
	qps = calloc(num_elems, sizeof(*qps));
	if (!qps) {
		gdk_err("no memory for a flat list of %u QPs", num_elems);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (i = 0; i < num_elems; i++)
		qps[i] = qp_list[i] ? qp_list[i]->qp_gverbs : NULL;
	err = gdk_dev_array_create(gpu, qps, num_elems, qp_gpu);
	free(qps);
	return err;
}

doca_error_t doca_gpu_verbs_qp_flat_list_destroy_hl(struct doca_gpu_dev_verbs_qp *qp_gpu)
{
	GDK_CHECK_PTR(qp_gpu);
	return gdk_dev_array_destroy(NULL, qp_gpu);
}
