/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A CUDA GPU (gpu_priv.h). It retains the primary context, which the CUDA runtime also uses,
 * and makes it current during each call only, so that the caller's current context does not
 * change. Copies use a non-blocking stream, so that they do not wait for a kernel that polls.
 * Freed memory is kept for reuse (kept.c).
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/gpu_cuda.h"
#include "core/log/log.h"

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- memory ---- */

/* cuMemAlloc() aligns to 256 bytes, and in practice aligns blocks of 2 MiB or more to 2 MiB. */
#define CUDA_ALIGN	 256u
#define CUDA_LARGE	 ((size_t)2 << 20)
#define FILL_IMAGE_BYTES ((size_t)256 << 10)

static doca_error_t alloc_new(struct doca_gpu *gpu, struct gdk_cuda_mem *mem, size_t len)
{
	gdk_cu_ptr base;
	doca_error_t err = gdk_cuda_judge(gpu, "cuMemAlloc", gdk_cu->mem_alloc(&base, len));

	if (!err)
		*mem = (struct gdk_cuda_mem){ .base = base, .len = len };
	return err;
}

/* Allocates size bytes with an alignment. A block that turns out to be misaligned is kept, because
 * freeing it would wait for kernels. */
static doca_error_t alloc_aligned(struct doca_gpu *gpu, struct gdk_block *block, size_t size,
				  size_t align)
{
	bool aligned = align <= CUDA_ALIGN || (size >= CUDA_LARGE && align <= CUDA_LARGE);
	struct gdk_cuda_mem *mem = &block->mem;
	doca_error_t err = DOCA_SUCCESS;

	if (gdk_kept_take(gpu, false, size, align, mem))
		goto done;
	err = alloc_new(gpu, mem, aligned ? size : size + align);
	if (!err && aligned && mem->base & (align - 1)) {
		gdk_kept_put(gpu, mem);
		err = alloc_new(gpu, mem, size + align);
	}
done:
	if (!err)
		block->gpu_ptr = gdk_align_up(mem->base, align);
	return err;
}

static doca_error_t alloc_device(struct doca_gpu *gpu, struct gdk_block *block, size_t size,
				 size_t align)
{
	int sync = 1;
	doca_error_t err;

	if (size > SIZE_MAX - align - page_size()) {
		gdk_err("GPU %s: cannot allocate %zu bytes: size too large", gpu->name, size);
		return DOCA_ERROR_NO_MEMORY;
	}
	if (align >= page_size()) /* a dmabuf must end on a page boundary */
		size = gdk_align_up(size, page_size());
	err = alloc_aligned(gpu, block, size, align);
	if (err)
		return err;
	/* SYNC_MEMOPS: a copy by CUDA does not return before the NIC can read the copied data. */
	if (gdk_cu->pointer_set(&sync, GDK_CU_POINTER_ATTR_SYNC_MEMOPS, block->mem.base))
		gdk_dbg("GPU %s: cannot set SYNC_MEMOPS on memory at 0x%llx", gpu->name,
			(unsigned long long)block->mem.base);
	return DOCA_SUCCESS;
}

static doca_error_t alloc_gdr(struct doca_gpu *gpu, struct gdk_block *block, size_t align)
{
	size_t size;
	doca_error_t err;

	if (block->size > SIZE_MAX - GDK_GPU_PAGE) {
		gdk_err("GPU %s: cannot allocate %zu bytes: size too large", gpu->name,
			block->size);
		return DOCA_ERROR_NO_MEMORY;
	}
	size = gdk_align_up(block->size, GDK_GPU_PAGE);
	err = alloc_device(gpu, block, size, align > GDK_GPU_PAGE ? align : GDK_GPU_PAGE);
	if (err)
		return err;
	err = gdk_gdr_map(block->gpu_ptr, size, &block->gdr);
	if (err)
		goto free_device;
	block->cpu_ptr = block->gdr.cpu_ptr;
	return DOCA_SUCCESS;

free_device:
	if (err == DOCA_ERROR_NOT_SUPPORTED)
		gdk_err("GPU %s: cannot allocate memory of type GPU_CPU: GDRCopy is not available",
			gpu->name);
	gdk_kept_put(gpu, &block->mem);
	return err;
}

static doca_error_t register_host(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr)
{
	gdk_cu_ptr ptr;
	doca_error_t err;

	err = gdk_cuda_judge(gpu, "cuMemHostRegister",
			     gdk_cu->host_register(cpu_ptr, len,
						   GDK_CU_HOSTREGISTER_PORTABLE |
							   GDK_CU_HOSTREGISTER_DEVICEMAP));
	if (err)
		return err;
	err = gdk_cuda_judge(gpu, "cuMemHostGetDevicePointer",
			     gdk_cu->host_device_ptr(&ptr, cpu_ptr, 0));
	if (err) {
		gdk_cu->host_unregister(cpu_ptr);
		return err;
	}
	*gpu_ptr = (void *)(uintptr_t)ptr;
	return DOCA_SUCCESS;
}

static doca_error_t alloc_new_host(struct doca_gpu *gpu, struct gdk_cuda_mem *mem, size_t size,
				   size_t align)
{
	void *gpu_ptr;
	doca_error_t err;
	int sys_err;

	sys_err = gdk_host_alloc(&mem->host, size, align, gpu->numa_node);
	if (sys_err) {
		gdk_err("GPU %s: cannot allocate %zu bytes of host memory: %s", gpu->name, size,
			strerror(sys_err));
		return DOCA_ERROR_NO_MEMORY;
	}
	err = register_host(gpu, mem->host.addr, size, &gpu_ptr);
	if (err) {
		gdk_host_free(&mem->host);
		return err;
	}
	mem->on_host = true;
	mem->base = (uintptr_t)gpu_ptr;
	mem->len = size;
	return DOCA_SUCCESS;
}

static doca_error_t alloc_host(struct doca_gpu *gpu, struct gdk_block *block, size_t align)
{
	struct gdk_cuda_mem *mem = &block->mem;
	doca_error_t err;

	if (gdk_kept_take(gpu, true, block->size, align, mem)) {
		block->gpu_ptr = mem->base;
		block->cpu_ptr = mem->host.addr;
		return DOCA_SUCCESS;
	}
	err = alloc_new_host(gpu, mem, block->size, align);
	if (!err) {
		block->gpu_ptr = mem->base;
		block->cpu_ptr = mem->host.addr;
	}
	return err;
}

static doca_error_t cuda_alloc(struct doca_gpu *gpu, struct gdk_block *block, size_t align)
{
	doca_error_t err = gdk_cuda_enter(gpu);

	if (err)
		return err;
	switch (block->type) {
	case DOCA_GPU_MEM_TYPE_GPU:
		err = alloc_device(gpu, block, block->size, align);
		break;
	case DOCA_GPU_MEM_TYPE_GPU_CPU:
		err = alloc_gdr(gpu, block, align);
		break;
	case DOCA_GPU_MEM_TYPE_CPU_GPU:
		err = alloc_host(gpu, block, align);
		break;
	}
	gdk_cuda_leave();
	return err;
}

static void cuda_free(struct doca_gpu *gpu, struct gdk_block *block)
{
	bool entered = !gdk_cuda_enter(gpu);

	if (block->gdr.cpu_ptr)
		gdk_gdr_unmap(&block->gdr);
	gdk_kept_put(gpu, &block->mem);
	if (entered)
		gdk_cuda_leave();
}

static doca_error_t finish(struct doca_gpu *gpu, const char *call, int ret)
{
	doca_error_t err = gdk_cuda_judge(gpu, call, ret);

	if (!err)
		err = gdk_cuda_judge(gpu, "cuStreamSynchronize",
				     gdk_cu->stream_sync(gpu->cu_stream));
	gdk_cuda_leave();
	return err;
}

static doca_error_t cuda_write(struct doca_gpu *gpu, void *dst, const void *src, size_t len)
{
	doca_error_t err = gdk_cuda_enter(gpu);

	if (err)
		return err;
	return finish(gpu, "cuMemcpyHtoDAsync",
		      gdk_cu->copy_to((uintptr_t)dst, src, len, gpu->cu_stream));
}

static doca_error_t cuda_read(struct doca_gpu *gpu, void *dst, const void *src, size_t len)
{
	doca_error_t err = gdk_cuda_enter(gpu);

	if (err)
		return err;
	return finish(gpu, "cuMemcpyDtoHAsync",
		      gdk_cu->copy_from(dst, (uintptr_t)src, len, gpu->cu_stream));
}

/* Copies an image instead of cuMemsetD8Async(), which starts a kernel. No other kernel runs while a
 * kernel of the program occupies the whole GPU. */
static doca_error_t cuda_fill(struct doca_gpu *gpu, void *dst, int byte, size_t len)
{
	size_t done = 0, n, most = len < FILL_IMAGE_BYTES ? len : FILL_IMAGE_BYTES;
	void *image = malloc(most ? most : 1);
	doca_error_t err;
	int ret = 0;

	if (!image) {
		gdk_err("GPU %s: no memory for a fill of %zu bytes", gpu->name, len);
		return DOCA_ERROR_NO_MEMORY;
	}
	memset(image, byte, most);
	err = gdk_cuda_enter(gpu);
	if (err)
		goto free_image;
	for (; done < len && !ret; done += n) {
		n = len - done < most ? len - done : most;
		ret = gdk_cu->copy_to((uintptr_t)dst + done, image, n, gpu->cu_stream);
	}
	err = finish(gpu, "cuMemcpyHtoDAsync", ret);
free_image:
	free(image);
	return err;
}

static doca_error_t cuda_map_host(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr)
{
	doca_error_t err = gdk_cuda_enter(gpu);

	if (err)
		return err;
	err = register_host(gpu, cpu_ptr, len, gpu_ptr);
	gdk_cuda_leave();
	return err;
}

static doca_error_t cuda_unmap_host(struct doca_gpu *gpu, void *cpu_ptr)
{
	doca_error_t err = gdk_cuda_enter(gpu);

	if (err)
		return err;
	err = gdk_cuda_judge(gpu, "cuMemHostUnregister", gdk_cu->host_unregister(cpu_ptr));
	gdk_cuda_leave();
	return err;
}

/* ---- dmabuf ---- */

/* pcie selects the PCIe mapping type, for machines where GPU and NIC are also connected by another
 * bus. On such a machine the export succeeds, but only a data-direct function of the NIC can attach
 * the dmabuf (nv-dmabuf.c of NVIDIA's open kernel modules). */
static doca_error_t cuda_dmabuf_fd(struct doca_gpu *gpu, void *gpu_ptr, size_t len, bool pcie,
				   int *fd)
{
	size_t size = gdk_align_up(len, page_size());
	int made = -1, ret;
	doca_error_t err;

	if (!gpu->has_dmabuf || !gdk_cu->handle_for_range) {
		gdk_info("GPU %s: the driver does not support dmabuf export", gpu->name);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if ((uintptr_t)gpu_ptr & (page_size() - 1)) {
		gdk_info("GPU %s: cannot export a dmabuf at %p: not on a page boundary", gpu->name,
			 gpu_ptr);
		return DOCA_ERROR_INVALID_VALUE;
	}
	err = gdk_cuda_enter(gpu);
	if (err)
		return err;
	ret = gdk_cu->handle_for_range(&made, (uintptr_t)gpu_ptr, size, GDK_CU_HANDLE_DMA_BUF_FD,
				       pcie ? GDK_CU_DMA_BUF_MAPPING_PCIE : 0);
	gdk_cuda_leave();
	if (ret || made < 0) {
		gdk_info("GPU %s: cuMemGetHandleForAddressRange of %zu bytes at %p%s failed: %s",
			 gpu->name, size, gpu_ptr, pcie ? ", PCIe mapping" : "",
			 gdk_cuda_error(gdk_cu, ret));
		return ret == GDK_CU_OUT_OF_MEMORY ? DOCA_ERROR_NO_MEMORY
						   : DOCA_ERROR_NOT_SUPPORTED;
	}
	*fd = made;
	return DOCA_SUCCESS;
}

/* ---- open and close ---- */

static bool cuda_is_current(const struct doca_gpu *gpu)
{
	int device;

	return !gdk_cu->current_device(&device) && device == gpu->cu_device;
}

static void cuda_trim(struct doca_gpu *gpu)
{
	if (gdk_cuda_enter(gpu))
		return;
	gdk_kept_close(gpu);
	gdk_cuda_close_regs(gpu);
	gdk_cuda_leave();
}

static void cuda_close(struct doca_gpu *gpu)
{
	cuda_trim(gpu);
	if (!gdk_cuda_enter(gpu)) {
		gdk_cuda_judge(gpu, "cuStreamDestroy", gdk_cu->stream_destroy(gpu->cu_stream));
		gdk_cuda_leave();
	}
	gdk_cuda_judge(gpu, "cuDevicePrimaryCtxRelease", gdk_cu->primary_release(gpu->cu_device));
}

static const struct gdk_gpu_ops cuda_ops = {
	.alloc = cuda_alloc,
	.free = cuda_free,
	.write = cuda_write,
	.read = cuda_read,
	.fill = cuda_fill,
	.map_host = cuda_map_host,
	.unmap_host = cuda_unmap_host,
	.map_reg = gdk_cuda_map_reg,
	.unmap_reg = gdk_cuda_unmap_reg,
	.dmabuf_fd = cuda_dmabuf_fd,
	.is_current = cuda_is_current,
	.trim = cuda_trim,
	.close = cuda_close,
};

static doca_error_t create_stream(struct doca_gpu *gpu)
{
	doca_error_t err = gdk_cuda_enter(gpu);

	if (err)
		return err;
	err = gdk_cuda_judge(gpu, "cuStreamCreate",
			     gdk_cu->stream_create(&gpu->cu_stream, GDK_CU_STREAM_NON_BLOCKING));
	gdk_cuda_leave();
	return err;
}

/* Appends text to a string in a buffer of len bytes. It is truncated if it does not fit. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t len, const char *fmt,
							 ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + used, len - used, fmt, args);
	va_end(args);
}

/* Appends the GPUs that the driver has. */
static void list_gpus(const struct gdk_cuda *driver, char *text, size_t len)
{
	int i, device, num = 0;
	char bdf[32];

	if (!driver->device_count || !driver->device_get || !driver->device_pci ||
	    driver->device_count(&num))
		return;
	for (i = 0; i < num; i++)
		if (!driver->device_get(&device, i) &&
		    !driver->device_pci(bdf, sizeof(bdf), device))
			append(text, len, "%s, ", bdf);
}

void gdk_gpu_cuda_list(char *text, size_t len)
{
	const char *why, *visible = getenv("CUDA_VISIBLE_DEVICES");
	const struct gdk_cuda *driver = gdk_cuda_load(&why);

	text[0] = '\0';
	if (driver)
		list_gpus(driver, text, len);
	append(text, len, "\"host\" for CPU threads");
	if (!driver)
		append(text, len, "; %s", why);
	else if (visible)
		append(text, len, "; others may be hidden by CUDA_VISIBLE_DEVICES=%s", visible);
}

doca_error_t gdk_gpu_cuda_open(struct doca_gpu *gpu, const char *bdf)
{
	const struct gdk_cuda *driver;
	char present[512];
	const char *why;
	doca_error_t err;
	int ret, dmabuf = 0, major = 0;

	driver = gdk_cuda_load(&why);
	if (!driver) {
		gdk_err("GPU %s: %s (\"host\" needs no GPU and no driver)", bdf, why);
		return DOCA_ERROR_NOT_FOUND;
	}
	__atomic_store_n(&gdk_cu, driver, __ATOMIC_RELEASE);
	ret = gdk_cu->device_by_pci(&gpu->cu_device, bdf);
	if (ret == GDK_CU_NO_DEVICE || ret == GDK_CU_INVALID_DEVICE) {
		gdk_gpu_cuda_list(present, sizeof(present));
		gdk_err("GPU %s: not found (present: %s)", bdf, present);
		return DOCA_ERROR_NOT_FOUND;
	}
	if (ret)
		return gdk_cuda_judge(gpu, "cuDeviceGetByPCIBusId", ret);
	if (gdk_cu->device_attribute(&dmabuf, GDK_CU_ATTR_DMA_BUF_SUPPORTED, gpu->cu_device))
		gdk_dbg("GPU %s: the driver does not know the attribute for dmabuf support", bdf);
	gpu->has_dmabuf = dmabuf;
	ret = gdk_cu->device_attribute(&major, GDK_CU_ATTR_CAPABILITY_MAJOR, gpu->cu_device);
	gpu->needs_dump = ret || major < 9; /* unknown: a DUMP that is not needed does no harm */
	err = gdk_cuda_judge(gpu, "cuDevicePrimaryCtxRetain",
			     gdk_cu->primary_retain(&gpu->cu_context, gpu->cu_device));
	if (err)
		return err;
	err = create_stream(gpu);
	if (err)
		goto release_context;
	gpu->ops = &cuda_ops;
	return DOCA_SUCCESS;

release_context:
	gdk_cu->primary_release(gpu->cu_device);
	return err;
}
