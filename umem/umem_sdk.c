/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode (core/sdk/sdk.h) of umems: registers memory with the SDK, which chooses the way for GPU
 * memory itself.
 */
#include "core/gpu/gpu_priv.h"
#include "core/sdk/sdk.h"
#include "umem/umem.h"

typedef doca_error_t umem_fn(void *dev, void *addr, size_t size, uint32_t access, void **umem);
typedef doca_error_t umem_gpu_fn(void *gpu, void *dev, void *addr, size_t size, uint32_t access,
				 void **umem);

doca_error_t gdk_sdk_umem_create(doca_verbs_umem_t *umem, uint32_t access_flags, int dmabuf_fd)
{
	void *dev = umem->dev->sdk;

	/* For GPU memory the SDK creates its own dmabuf. */
	if (umem->gpu && dmabuf_fd >= 0)
		return GDK_SDK_CALL_AS("doca_umem_gpu_create", umem_gpu_fn, umem->gpu->sdk, dev,
				       umem->addr, umem->size, access_flags, &umem->sdk);
	return GDK_SDK_CALL_AS("doca_umem_create", umem_fn, dev, umem->addr, umem->size,
			       access_flags, &umem->sdk);
}
