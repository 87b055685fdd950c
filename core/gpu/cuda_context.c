/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The loaded CUDA driver, the results of its calls, and the current context. */
#include "core/gpu/gpu_cuda.h"
#include "core/log/log.h"

const struct gdk_cuda *gdk_cu;

doca_error_t gdk_cuda_judge(const struct doca_gpu *gpu, const char *call, int ret)
{
	if (!ret)
		return DOCA_SUCCESS;
	gdk_err("GPU %s: %s failed: %s (%d)", gpu->name, call, gdk_cuda_error(gdk_cu, ret), ret);
	return ret == GDK_CU_OUT_OF_MEMORY ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
}

doca_error_t gdk_cuda_enter(const struct doca_gpu *gpu)
{
	return gdk_cuda_judge(gpu, "cuCtxPushCurrent", gdk_cu->push(gpu->cu_context));
}

void gdk_cuda_leave(void)
{
	void *popped;

	gdk_cu->pop(&popped);
}
