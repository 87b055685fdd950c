/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Pages of doorbell registers that are mapped for CUDA GPUs (gpu_cuda.h). A page is registered with
 * CUDA once per process, in the context of the first GPU that maps it. It holds its own reference
 * to that context. Unregistering waits for kernels, so a page that a UAR object holds (uar.c) stays
 * registered when no GPU maps it any more, until the UAR is freed or that GPU is closed.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core/gpu/gpu_cuda.h"
#include "core/log/log.h"

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

static struct gdk_reg_hold *holds; /* protected by pages_lock */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static uintptr_t page_of(const void *reg)
{
	return (uintptr_t)reg & ~(page_size() - 1);
}

static bool is_held(uintptr_t page)
{
	const struct gdk_reg_hold *hold = holds;

	while (hold && hold->page != page)
		hold = hold->next;
	return hold;
}

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
		ret = gdk_cu->host_register((void *)page->page, page_size(),
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
	err = gdk_cuda_judge(gpu, "cuDevicePrimaryCtxRetain",
			     gdk_cu->primary_retain(&page->context, page->device));
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
	gdk_cu->primary_release(page->device);
free_page:
	free(page);
	return err;
}

/* Returns false if the page's context cannot be made current. */
static bool unregister(const struct reg_page *page)
{
	const char *call = "cuCtxPushCurrent";
	int ret = gdk_cu->push(page->context);
	bool entered = !ret;

	if (entered) {
		call = "cuMemHostUnregister";
		ret = gdk_cu->host_unregister((void *)page->page);
		gdk_cuda_leave();
	}
	if (ret)
		gdk_err("register page at %p: %s failed: %s (%d)", (void *)page->page, call,
			gdk_cuda_error(gdk_cu, ret), ret);
	return entered;
}

/* Unregisters a page, unless the application registered it, and frees it. If the page's context
 * cannot be made current, the page stays in the list and the next mapping reuses it. */
static void drop_page(struct reg_page **at)
{
	struct reg_page *page = *at;

	if (page->owned && !unregister(page))
		return;
	*at = page->next;
	gdk_cu->primary_release(page->device);
	free(page);
}

static doca_error_t map_reg_locked(struct doca_gpu *gpu, void *reg, void **reg_gpu,
				   const char **how)
{
	uintptr_t addr = page_of(reg);
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
	err = gdk_cuda_judge(gpu, "cuMemHostGetDevicePointer",
			     gdk_cu->host_device_ptr(&ptr, (void *)addr, 0));
	if (err) {
		*how = "the register page is registered, but has no address on this GPU";
		if (!page->count)
			drop_page(find_page(addr));
		return err;
	}
	page->count++;
	*how = page->how;
	*reg_gpu = (void *)(uintptr_t)(ptr + ((uintptr_t)reg - addr));
	return DOCA_SUCCESS;
}

doca_error_t gdk_cuda_map_reg(struct doca_gpu *gpu, void *reg, void **reg_gpu, const char **how)
{
	doca_error_t err;

	*how = "the GPU's context cannot be made current";
	err = gdk_cuda_enter(gpu);
	if (err)
		return err;
	pthread_mutex_lock(&pages_lock);
	err = map_reg_locked(gpu, reg, reg_gpu, how);
	pthread_mutex_unlock(&pages_lock);
	gdk_cuda_leave();
	return err;
}

doca_error_t gdk_cuda_unmap_reg(struct doca_gpu *gpu, void *reg)
{
	doca_error_t err = DOCA_SUCCESS;
	struct reg_page **at;

	pthread_mutex_lock(&pages_lock);
	at = find_page(page_of(reg));
	if (!*at || !(*at)->count) {
		gdk_err("GPU %s: cannot unmap the register page of %p: not mapped", gpu->name, reg);
		err = DOCA_ERROR_NOT_FOUND;
	} else if (!--(*at)->count && !is_held((*at)->page)) {
		drop_page(at);
	}
	pthread_mutex_unlock(&pages_lock);
	return err;
}

/* ---- pages that no GPU maps ---- */

void gdk_reg_hold(struct gdk_reg_hold *hold, const void *reg)
{
	hold->page = page_of(reg);
	pthread_mutex_lock(&pages_lock);
	hold->next = holds;
	holds = hold;
	pthread_mutex_unlock(&pages_lock);
}

bool gdk_reg_is_registered(const struct gdk_reg_hold *hold)
{
	const struct reg_page *page;
	bool owned;

	pthread_mutex_lock(&pages_lock);
	page = *find_page(hold->page);
	owned = page && page->owned;
	pthread_mutex_unlock(&pages_lock);
	return owned;
}

void gdk_reg_release(struct gdk_reg_hold *hold)
{
	struct gdk_reg_hold **at = &holds;
	struct reg_page **page;

	pthread_mutex_lock(&pages_lock);
	while (*at != hold)
		at = &(*at)->next;
	*at = hold->next;
	page = find_page(hold->page);
	if (*page && !(*page)->count && !is_held(hold->page))
		drop_page(page);
	pthread_mutex_unlock(&pages_lock);
}

void gdk_cuda_close_regs(const struct doca_gpu *gpu)
{
	struct reg_page **at = &pages, *page;

	pthread_mutex_lock(&pages_lock);
	while (*at) {
		page = *at;
		if (!page->count && page->device == gpu->cu_device)
			drop_page(at);
		if (*at == page)
			at = &page->next;
	}
	pthread_mutex_unlock(&pages_lock);
}
