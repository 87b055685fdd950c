/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The GPU "host", which is made of CPU threads (gpu_priv.h). All kinds of memory are host
 * memory, and CPU threads use a register page at the address where libmlx5 mapped it. The
 * application creates the threads.
 */
#include <string.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"

static doca_error_t host_alloc(struct doca_gpu *gpu, struct gdk_block *block, size_t align)
{
	int sys_err = gdk_host_alloc(&block->host, block->size, align, gpu->numa_node);

	if (sys_err) {
		gdk_err("GPU %s: cannot allocate %zu bytes: %s", gpu->name, block->size,
			strerror(sys_err));
		return DOCA_ERROR_NO_MEMORY;
	}
	block->gpu_ptr = (uintptr_t)block->host.addr;
	block->cpu_ptr = block->host.addr;
	return DOCA_SUCCESS;
}

static void host_free(struct doca_gpu *gpu, struct gdk_block *block)
{
	(void)gpu;
	gdk_host_free(&block->host);
}

static doca_error_t host_map(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr)
{
	(void)gpu;
	(void)len;
	*gpu_ptr = cpu_ptr;
	return DOCA_SUCCESS;
}

static doca_error_t host_unmap(struct doca_gpu *gpu, void *cpu_ptr)
{
	(void)gpu;
	(void)cpu_ptr;
	return DOCA_SUCCESS;
}

static doca_error_t host_map_reg(struct doca_gpu *gpu, void *reg, void **reg_gpu, const char **how)
{
	(void)gpu;
	*reg_gpu = reg;
	*how = "CPU threads write the register page directly";
	return DOCA_SUCCESS;
}

static doca_error_t host_dmabuf_fd(struct doca_gpu *gpu, void *gpu_ptr, size_t len, bool pcie,
				   int *fd)
{
	(void)len;
	(void)pcie;
	(void)fd;
	gdk_info("GPU %s: cannot export host memory at %p as a dmabuf", gpu->name, gpu_ptr);
	return DOCA_ERROR_NOT_SUPPORTED;
}

static bool host_is_current(const struct doca_gpu *gpu)
{
	(void)gpu;
	return false;
}

static void host_close(struct doca_gpu *gpu)
{
	(void)gpu;
}

static const struct gdk_gpu_ops host_ops = {
	.alloc = host_alloc,
	.free = host_free,
	.map_host = host_map,
	.unmap_host = host_unmap,
	.map_reg = host_map_reg,
	.unmap_reg = host_unmap,
	.dmabuf_fd = host_dmabuf_fd,
	.is_current = host_is_current,
	.close = host_close,
};

void gdk_gpu_host_open(struct doca_gpu *gpu)
{
	gpu->ops = &host_ops;
	gpu->numa_node = -1;
}

bool gdk_gpu_is_host(const doca_gpu_t *gpu)
{
	return gpu->ops == &host_ops;
}
