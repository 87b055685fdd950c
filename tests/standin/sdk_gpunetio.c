/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* libdoca_gpunetio.so of the stand-in SDK: a GPU whose memory is host memory. Records
 * each call like the other libraries; see sdk.h. */
#include <fcntl.h>
#include <stdlib.h>

#include "sdk.h"

EXPORT int doca_gpu_create(const char *bus_id, void **gpu);
EXPORT int doca_gpu_create(const char *bus_id, void **gpu)
{
	int err = sdk_call("doca_gpu_create(%s)", bus_id);

	if (!err)
		*gpu = sdk_new("gpu", NULL);
	return err;
}

DELETE(doca_gpu_destroy)

EXPORT int doca_gpu_mem_alloc(void *gpu, size_t size, size_t alignment, int type, void **gpu_ptr,
			      void **cpu_ptr);
EXPORT int doca_gpu_mem_alloc(void *gpu, size_t size, size_t alignment, int type, void **gpu_ptr,
			      void **cpu_ptr)
{
	int err = sdk_call("doca_gpu_mem_alloc(%s, %zu, %zu, %d, %s)", sdk_name(gpu), size,
			   alignment, type, cpu_ptr ? "cpu" : "NULL");
	void *mem;

	if (err)
		return err;
	if (posix_memalign(&mem, alignment > 16 ? alignment : 16, size))
		return 7;
	*gpu_ptr = mem;
	if (cpu_ptr)
		*cpu_ptr = mem;
	sdk_new("memory", mem);
	return OK;
}

EXPORT int doca_gpu_mem_free(void *gpu, void *gpu_ptr);
EXPORT int doca_gpu_mem_free(void *gpu, void *gpu_ptr)
{
	int err = sdk_call("doca_gpu_mem_free(%s, %p)", sdk_name(gpu), gpu_ptr);

	if (!err) {
		sdk_delete(sdk_of_user(gpu_ptr));
		free(gpu_ptr);
	}
	return err;
}

EXPORT int doca_gpu_dmabuf_fd(void *gpu, void *gpu_ptr, size_t size, int *fd);
EXPORT int doca_gpu_dmabuf_fd(void *gpu, void *gpu_ptr, size_t size, int *fd)
{
	int err = sdk_call("doca_gpu_dmabuf_fd(%s, %p, %zu)", sdk_name(gpu), gpu_ptr, size);

	if (!err)
		*fd = open("/dev/null", O_RDWR);
	return err;
}
