/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A CUDA GPU (gpu_priv.h). It retains the primary context, which the CUDA runtime also uses,
 * and makes it current during each call only, so that the caller's current context does not
 * change. Copies use a non-blocking stream, so that they do not wait for a kernel that polls.
 *
 * A register page is registered with CUDA once per process, in the context of the first GPU
 * that maps it. The page holds its own reference to that context.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/cuda_driver.h"
#include "core/gpu/gpu_priv.h"
#include "core/log.h"

static const struct gdk_cuda *cu; /* set by gdk_gpu_cuda_open */

/* Converts the result of a CUDA call to a DOCA error, and logs a failure. */
static doca_error_t judge(const struct doca_gpu *gpu, const char *call, int ret)
{
	if (!ret)
		return DOCA_SUCCESS;
	gdk_err("GPU %s: %s failed: %s (%d)", gpu->name, call, gdk_cuda_error(cu, ret), ret);
	return ret == GDK_CU_OUT_OF_MEMORY ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
}

static doca_error_t enter(const struct doca_gpu *gpu)
{
	return judge(gpu, "cuCtxPushCurrent", cu->push(gpu->cu_context));
}

static void leave(void)
{
	void *popped;

	cu->pop(&popped);
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- memory ---- */

/* Allocates size bytes with an alignment. The driver's allocation often has a larger alignment than
 * guaranteed, so first try without extra bytes. */
static doca_error_t alloc_aligned(struct doca_gpu *gpu, struct gdk_block *block, size_t size,
				  size_t align)
{
	gdk_cu_ptr base;
	doca_error_t err = judge(gpu, "cuMemAlloc", cu->mem_alloc(&base, size));

	if (err || !(base & (align - 1)))
		goto done;
	cu->mem_free(base);
	err = judge(gpu, "cuMemAlloc", cu->mem_alloc(&base, size + align));
done:
	if (err)
		return err;
	block->base = base;
	block->gpu_ptr = gdk_align_up(base, align);
	return DOCA_SUCCESS;
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
	if (cu->pointer_set(&sync, GDK_CU_POINTER_ATTR_SYNC_MEMOPS, block->base))
		gdk_dbg("GPU %s: cannot set SYNC_MEMOPS on memory at 0x%llx", gpu->name,
			(unsigned long long)block->base);
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
	cu->mem_free(block->base);
	return err;
}

static doca_error_t register_host(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr)
{
	gdk_cu_ptr ptr;
	doca_error_t err;

	err = judge(
		gpu, "cuMemHostRegister",
		cu->host_register(cpu_ptr, len,
				  GDK_CU_HOSTREGISTER_PORTABLE | GDK_CU_HOSTREGISTER_DEVICEMAP));
	if (err)
		return err;
	err = judge(gpu, "cuMemHostGetDevicePointer", cu->host_device_ptr(&ptr, cpu_ptr, 0));
	if (err) {
		cu->host_unregister(cpu_ptr);
		return err;
	}
	*gpu_ptr = (void *)(uintptr_t)ptr;
	return DOCA_SUCCESS;
}

static doca_error_t alloc_host(struct doca_gpu *gpu, struct gdk_block *block, size_t align)
{
	void *gpu_ptr;
	doca_error_t err;
	int sys_err;

	sys_err = gdk_host_alloc(&block->host, block->size, align, gpu->numa_node);
	if (sys_err) {
		gdk_err("GPU %s: cannot allocate %zu bytes of host memory: %s", gpu->name,
			block->size, strerror(sys_err));
		return DOCA_ERROR_NO_MEMORY;
	}
	err = register_host(gpu, block->host.addr, block->size, &gpu_ptr);
	if (err) {
		gdk_host_free(&block->host);
		return err;
	}
	block->gpu_ptr = (uintptr_t)gpu_ptr;
	block->cpu_ptr = block->host.addr;
	return DOCA_SUCCESS;
}

static doca_error_t cuda_alloc(struct doca_gpu *gpu, struct gdk_block *block, size_t align)
{
	doca_error_t err = enter(gpu);

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
	leave();
	return err;
}

static void cuda_free(struct doca_gpu *gpu, struct gdk_block *block)
{
	bool entered = !enter(gpu);

	if (block->type == DOCA_GPU_MEM_TYPE_CPU_GPU) {
		judge(gpu, "cuMemHostUnregister", cu->host_unregister(block->host.addr));
		gdk_host_free(&block->host);
	} else {
		if (block->gdr.cpu_ptr)
			gdk_gdr_unmap(&block->gdr);
		judge(gpu, "cuMemFree", cu->mem_free(block->base));
	}
	if (entered)
		leave();
}

static doca_error_t finish(struct doca_gpu *gpu, const char *call, int ret)
{
	doca_error_t err = judge(gpu, call, ret);

	if (!err)
		err = judge(gpu, "cuStreamSynchronize", cu->stream_sync(gpu->cu_stream));
	leave();
	return err;
}

static doca_error_t cuda_write(struct doca_gpu *gpu, void *dst, const void *src, size_t len)
{
	doca_error_t err = enter(gpu);

	if (err)
		return err;
	return finish(gpu, "cuMemcpyHtoDAsync",
		      cu->copy_to((uintptr_t)dst, src, len, gpu->cu_stream));
}

static doca_error_t cuda_read(struct doca_gpu *gpu, void *dst, const void *src, size_t len)
{
	doca_error_t err = enter(gpu);

	if (err)
		return err;
	return finish(gpu, "cuMemcpyDtoHAsync",
		      cu->copy_from(dst, (uintptr_t)src, len, gpu->cu_stream));
}

static doca_error_t cuda_fill(struct doca_gpu *gpu, void *dst, int byte, size_t len)
{
	doca_error_t err = enter(gpu);

	if (err)
		return err;
	return finish(gpu, "cuMemsetD8Async",
		      cu->fill8((uintptr_t)dst, (unsigned char)byte, len, gpu->cu_stream));
}

static doca_error_t cuda_map_host(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr)
{
	doca_error_t err = enter(gpu);

	if (err)
		return err;
	err = register_host(gpu, cpu_ptr, len, gpu_ptr);
	leave();
	return err;
}

static doca_error_t cuda_unmap_host(struct doca_gpu *gpu, void *cpu_ptr)
{
	doca_error_t err = enter(gpu);

	if (err)
		return err;
	err = judge(gpu, "cuMemHostUnregister", cu->host_unregister(cpu_ptr));
	leave();
	return err;
}

/* ---- register pages ---- */

struct reg_page {
	struct reg_page *next;
	uintptr_t page;
	unsigned int count; /* number of mappings for all GPUs */
	bool owned;	    /* this file registered the page, not the application */
	int device;	    /* CUDA device of context */
	void *context;
	const char *how;
};

static pthread_mutex_t pages_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reg_page *pages;

static struct reg_page **find_page(uintptr_t page)
{
	struct reg_page **at = &pages;

	while (*at && (*at)->page != page)
		at = &(*at)->next;
	return at;
}

/* Registers a page with CUDA, as device memory or else as ordinary memory. Returns 0 or the CUDA
 * error. A driver that does not support the flag IOMEMORY may return an error before it checks
 * whether the page is already registered. So the second attempt also detects this. */
static int try_register(struct reg_page *page)
{
	static const struct {
		unsigned int flags;
		const char *how;
	} ways[] = {
		{ GDK_CU_HOSTREGISTER_IOMEMORY, "the register page is mapped as device memory" },
		{ 0, "the register page is mapped as ordinary memory" },
	};
	int ret = 0;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(ways); i++) {
		ret = cu->host_register((void *)page->page, page_size(),
					GDK_CU_HOSTREGISTER_PORTABLE |
						GDK_CU_HOSTREGISTER_DEVICEMAP | ways[i].flags);
		page->owned = !ret;
		page->how = ways[i].how;
		if (ret == GDK_CU_HOST_MEMORY_ALREADY_REGISTERED) {
			page->how = "the register page was registered by the application";
			return 0;
		}
		if (!ret)
			break;
	}
	return ret;
}

/* Adds a page to the list and registers it. The context of gpu is current. The page retains the
 * primary context, because it may exist longer than gpu. */
static doca_error_t add_page(struct doca_gpu *gpu, uintptr_t addr, struct reg_page **added)
{
	struct reg_page *page = calloc(1, sizeof(*page));
	doca_error_t err;
	int ret;

	if (!page) {
		gdk_err("GPU %s: no memory for a register page", gpu->name);
		return DOCA_ERROR_NO_MEMORY;
	}
	page->page = addr;
	page->device = gpu->cu_device;
	err = judge(gpu, "cuDevicePrimaryCtxRetain",
		    cu->primary_retain(&page->context, page->device));
	if (err)
		goto free_page;
	ret = try_register(page);
	err = ret == GDK_CU_OUT_OF_MEMORY ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
	if (ret)
		goto release_context;
	page->next = pages;
	pages = page;
	*added = page;
	return DOCA_SUCCESS;

release_context:
	cu->primary_release(page->device);
free_page:
	free(page);
	return err;
}

/* Unregisters a page, unless the application registered it, and frees it. If the page's context
 * cannot be made current, the page stays in the list and the next mapping reuses it. */
static void drop_page(struct doca_gpu *gpu, struct reg_page **at)
{
	struct reg_page *page = *at;

	if (page->owned) {
		if (judge(gpu, "cuCtxPushCurrent", cu->push(page->context)))
			return;
		judge(gpu, "cuMemHostUnregister", cu->host_unregister((void *)page->page));
		leave();
	}
	*at = page->next;
	cu->primary_release(page->device);
	free(page);
}

static doca_error_t map_reg_locked(struct doca_gpu *gpu, void *reg, void **reg_gpu,
				   const char **how)
{
	uintptr_t addr = (uintptr_t)reg & ~(page_size() - 1);
	struct reg_page *page = *find_page(addr);
	gdk_cu_ptr ptr;
	doca_error_t err;

	*how = "the driver refused to register the page as device memory and as ordinary memory "
	       "(is PeerMappingOverride=1 set?)";
	if (!page) {
		err = add_page(gpu, addr, &page);
		if (err == DOCA_ERROR_NO_MEMORY)
			*how = "no memory to register the page";
		if (err)
			return err;
	}
	err = judge(gpu, "cuMemHostGetDevicePointer", cu->host_device_ptr(&ptr, (void *)addr, 0));
	if (err) {
		*how = "the register page is registered, but has no address on this GPU";
		if (!page->count)
			drop_page(gpu, find_page(addr));
		return err;
	}
	page->count++;
	*how = page->how;
	*reg_gpu = (void *)(uintptr_t)(ptr + ((uintptr_t)reg - addr));
	return DOCA_SUCCESS;
}

static doca_error_t cuda_map_reg(struct doca_gpu *gpu, void *reg, void **reg_gpu, const char **how)
{
	doca_error_t err;

	*how = "the GPU's context cannot be made current";
	err = enter(gpu);
	if (err)
		return err;
	pthread_mutex_lock(&pages_lock);
	err = map_reg_locked(gpu, reg, reg_gpu, how);
	pthread_mutex_unlock(&pages_lock);
	leave();
	return err;
}

static doca_error_t cuda_unmap_reg(struct doca_gpu *gpu, void *reg)
{
	doca_error_t err = DOCA_SUCCESS;
	struct reg_page **at;

	pthread_mutex_lock(&pages_lock);
	at = find_page((uintptr_t)reg & ~(page_size() - 1));
	if (!*at) {
		gdk_err("GPU %s: cannot unmap the register page of %p: not mapped", gpu->name, reg);
		err = DOCA_ERROR_NOT_FOUND;
	} else if (!--(*at)->count) {
		drop_page(gpu, at);
	}
	pthread_mutex_unlock(&pages_lock);
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

	if (!gpu->has_dmabuf || !cu->handle_for_range) {
		gdk_info("GPU %s: the driver does not support dmabuf export", gpu->name);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if ((uintptr_t)gpu_ptr & (page_size() - 1)) {
		gdk_info("GPU %s: cannot export a dmabuf at %p: not on a page boundary", gpu->name,
			 gpu_ptr);
		return DOCA_ERROR_INVALID_VALUE;
	}
	err = enter(gpu);
	if (err)
		return err;
	ret = cu->handle_for_range(&made, (uintptr_t)gpu_ptr, size, GDK_CU_HANDLE_DMA_BUF_FD,
				   pcie ? GDK_CU_DMA_BUF_MAPPING_PCIE : 0);
	leave();
	if (ret || made < 0) {
		gdk_info("GPU %s: cuMemGetHandleForAddressRange of %zu bytes at %p%s failed: %s",
			 gpu->name, size, gpu_ptr, pcie ? ", PCIe mapping" : "",
			 gdk_cuda_error(cu, ret));
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

	return !cu->current_device(&device) && device == gpu->cu_device;
}

static void cuda_close(struct doca_gpu *gpu)
{
	if (!enter(gpu)) {
		judge(gpu, "cuStreamDestroy", cu->stream_destroy(gpu->cu_stream));
		leave();
	}
	judge(gpu, "cuDevicePrimaryCtxRelease", cu->primary_release(gpu->cu_device));
}

static const struct gdk_gpu_ops cuda_ops = {
	.alloc = cuda_alloc,
	.free = cuda_free,
	.write = cuda_write,
	.read = cuda_read,
	.fill = cuda_fill,
	.map_host = cuda_map_host,
	.unmap_host = cuda_unmap_host,
	.map_reg = cuda_map_reg,
	.unmap_reg = cuda_unmap_reg,
	.dmabuf_fd = cuda_dmabuf_fd,
	.is_current = cuda_is_current,
	.close = cuda_close,
};

static doca_error_t create_stream(struct doca_gpu *gpu)
{
	doca_error_t err = enter(gpu);

	if (err)
		return err;
	err = judge(gpu, "cuStreamCreate",
		    cu->stream_create(&gpu->cu_stream, GDK_CU_STREAM_NON_BLOCKING));
	leave();
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
	__atomic_store_n(&cu, driver, __ATOMIC_RELEASE);
	ret = cu->device_by_pci(&gpu->cu_device, bdf);
	if (ret == GDK_CU_NO_DEVICE || ret == GDK_CU_INVALID_DEVICE) {
		gdk_gpu_cuda_list(present, sizeof(present));
		gdk_err("GPU %s: not found (present: %s)", bdf, present);
		return DOCA_ERROR_NOT_FOUND;
	}
	if (ret)
		return judge(gpu, "cuDeviceGetByPCIBusId", ret);
	if (cu->device_attribute(&dmabuf, GDK_CU_ATTR_DMA_BUF_SUPPORTED, gpu->cu_device))
		gdk_dbg("GPU %s: the driver does not know the attribute for dmabuf support", bdf);
	gpu->has_dmabuf = dmabuf;
	ret = cu->device_attribute(&major, GDK_CU_ATTR_CAPABILITY_MAJOR, gpu->cu_device);
	gpu->needs_dump = ret || major < 9; /* unknown: a DUMP that is not needed does no harm */
	err = judge(gpu, "cuDevicePrimaryCtxRetain",
		    cu->primary_retain(&gpu->cu_context, gpu->cu_device));
	if (err)
		return err;
	err = create_stream(gpu);
	if (err)
		goto release_context;
	gpu->ops = &cuda_ops;
	return DOCA_SUCCESS;

release_context:
	cu->primary_release(gpu->cu_device);
	return err;
}
