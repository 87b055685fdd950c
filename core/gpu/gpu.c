/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * doca_gpu: open and close, the table of memory blocks, copies and mappings (gpu.h). The
 * differences between a CUDA GPU and the host GPU are in gpu->ops (gpu_cuda.c, gpu_host.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu_priv.h"
#include "host/gdaki_core.h"
#include "core/log/log.h"
#include "core/sdk/sdk_dev.h"
#include "core/reclaim.h"

#define MIN_ALIGN 16 /* as malloc guarantees */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_gpu *opened;

bool gdk_gpu_needs_dump(const doca_gpu_t *gpu)
{
	return gpu->needs_dump;
}

/* ---- the table of blocks; the caller holds gpu->lock ---- */

/* Index of the first block with gpu_ptr > ptr. */
static size_t upper_bound(const struct doca_gpu *gpu, uintptr_t ptr)
{
	size_t low = 0, high = gpu->num_blocks;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (gpu->blocks[mid]->gpu_ptr <= ptr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct gdk_block *gdk_gpu_find_block(struct doca_gpu *gpu, const void *gpu_ptr)
{
	size_t i = upper_bound(gpu, (uintptr_t)gpu_ptr);
	struct gdk_block *block = i ? gpu->blocks[i - 1] : NULL;

	return block && (uintptr_t)gpu_ptr - block->gpu_ptr < block->size ? block : NULL;
}

static doca_error_t reserve_slot(struct doca_gpu *gpu)
{
	size_t max = gpu->max_blocks ? 2 * gpu->max_blocks : 16;
	struct gdk_block **grown;

	if (gpu->num_blocks < gpu->max_blocks)
		return DOCA_SUCCESS;
	grown = realloc(gpu->blocks, max * sizeof(*grown));
	if (!grown) {
		gdk_err("GPU %s: no memory for the table of memory blocks", gpu->name);
		return DOCA_ERROR_NO_MEMORY;
	}
	gpu->blocks = grown;
	gpu->max_blocks = max;
	return DOCA_SUCCESS;
}

static doca_error_t insert_block(struct doca_gpu *gpu, struct gdk_block *block)
{
	doca_error_t err = reserve_slot(gpu);
	size_t i;

	if (err)
		return err;
	i = upper_bound(gpu, block->gpu_ptr);
	memmove(&gpu->blocks[i + 1], &gpu->blocks[i],
		(gpu->num_blocks - i) * sizeof(gpu->blocks[0]));
	gpu->blocks[i] = block;
	gpu->num_blocks++;
	atomic_fetch_add(&gpu->users, 1);
	return DOCA_SUCCESS;
}

static void remove_block(struct doca_gpu *gpu, const struct gdk_block *block)
{
	size_t i = upper_bound(gpu, block->gpu_ptr) - 1;

	while (gpu->blocks[i] != block) /* a mapping can have the address of a block */
		i--;
	gpu->num_blocks--;
	memmove(&gpu->blocks[i], &gpu->blocks[i + 1],
		(gpu->num_blocks - i) * sizeof(gpu->blocks[0]));
	atomic_fetch_sub(&gpu->users, 1);
}

/* ---- open and close ---- */

/* "8A:00.0", "0000:8a:00.0" and "00000000:8A:00.0" become "0000:8a:00.0". */
static bool parse_bdf(const char *text, char *bdf, size_t len)
{
	unsigned int domain = 0, bus, slot, func;
	int used = 0;

	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &func, &used) != 4 ||
	    text[used]) {
		domain = 0;
		used = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &slot, &func, &used) != 3 || text[used])
			return false;
	}
	return domain <= 0xffff && slot < 32 && func < 8 &&
	       snprintf(bdf, len, "%04x:%02x:%02x.%x", domain, bus, slot, func) < (int)len;
}

static doca_error_t open_kind(struct doca_gpu *gpu, const char *gpu_bus_id)
{
	char present[512];

	if (!strcmp(gpu_bus_id, "host")) {
		snprintf(gpu->name, sizeof(gpu->name), "host");
		gdk_gpu_host_open(gpu);
		return DOCA_SUCCESS;
	}
	if (!parse_bdf(gpu_bus_id, gpu->name, sizeof(gpu->name))) {
		gdk_gpu_cuda_list(present, sizeof(present));
		gdk_err("cannot open GPU \"%s\": not a PCI address such as 8A:00.0 (present: %s)",
			gpu_bus_id, present);
		return DOCA_ERROR_INVALID_VALUE;
	}
	gpu->numa_node = gdk_pci_numa_node(gpu->name);
	return gdk_gpu_cuda_open(gpu, gpu->name);
}

doca_error_t doca_gpu_create(const char *gpu_bus_id, doca_gpu_t **gpu_dev)
{
	struct doca_gpu *gpu;
	doca_error_t err;

	GDK_CHECK_PTR(gpu_bus_id);
	GDK_CHECK_PTR(gpu_dev);
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu) {
		gdk_err("no memory for GPU %s", gpu_bus_id);
		return DOCA_ERROR_NO_MEMORY;
	}
	err = open_kind(gpu, gpu_bus_id);
	if (err)
		goto free_gpu;
	err = gdk_sdk_gpu_create(gpu, gpu_bus_id);
	if (err)
		goto close_gpu;
	pthread_mutex_init(&gpu->lock, NULL);
	pthread_mutex_init(&gpu->kept_lock, NULL);
	pthread_mutex_lock(&list_lock);
	gpu->next = opened;
	opened = gpu;
	pthread_mutex_unlock(&list_lock);
	*gpu_dev = gpu;
	return DOCA_SUCCESS;

close_gpu:
	gpu->ops->close(gpu);
free_gpu:
	free(gpu);
	return err;
}

static void unlink_gpu(const struct doca_gpu *gpu)
{
	struct doca_gpu **at = &opened;

	pthread_mutex_lock(&list_lock);
	while (*at != gpu)
		at = &(*at)->next;
	*at = gpu->next;
	pthread_mutex_unlock(&list_lock);
}

doca_error_t doca_gpu_destroy(doca_gpu_t *gpu_dev)
{
	int users;

	GDK_CHECK_PTR(gpu_dev);
	gdk_reclaim(gpu_dev, NULL);
	users = atomic_load(&gpu_dev->users);
	if (users) {
		gdk_err("GPU %s: cannot close it: %d memory blocks and mappings still exist",
			gpu_dev->name, users);
		return DOCA_ERROR_IN_USE;
	}
	GDK_SDK_FIRST(gpu_dev, doca_gpu_destroy, gpu_dev->sdk);
	unlink_gpu(gpu_dev);
	gpu_dev->ops->close(gpu_dev);
	pthread_mutex_destroy(&gpu_dev->lock);
	pthread_mutex_destroy(&gpu_dev->kept_lock);
	free(gpu_dev->blocks);
	free(gpu_dev);
	return DOCA_SUCCESS;
}

/* ---- memory ---- */

static doca_error_t block_free(struct doca_gpu *gpu, struct gdk_block *block)
{
	GDK_SDK(gpu, doca_gpu_mem_free, gpu->sdk, (void *)block->gpu_ptr);
	gpu->ops->free(gpu, block);
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_mem_alloc(doca_gpu_t *gpu_dev, size_t size, size_t alignment,
				enum doca_gpu_mem_type mtype, void **memptr_gpu, void **memptr_cpu)
{
	struct gdk_block *block;
	doca_error_t err;

	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	GDK_CHECK_ARG(!alignment || gdk_is_pow2(alignment),
		      "alignment %zu (expected a power of two)", alignment);
	GDK_CHECK_ENUM(mtype, DOCA_GPU_MEM_TYPE_CPU_GPU);
	GDK_CHECK_PTR(memptr_gpu);
	GDK_CHECK_ARG(memptr_cpu || mtype == DOCA_GPU_MEM_TYPE_GPU,
		      "memptr_cpu NULL (expected a pointer; only mtype DOCA_GPU_MEM_TYPE_GPU, %d, "
		      "allows NULL)",
		      DOCA_GPU_MEM_TYPE_GPU);
	block = calloc(1, sizeof(*block));
	if (!block) {
		gdk_err("GPU %s: no memory for the description of a memory block", gpu_dev->name);
		return DOCA_ERROR_NO_MEMORY;
	}
	block->size = size;
	block->type = mtype;
	if (gpu_dev->sdk)
		err = gdk_sdk_mem_alloc(gpu_dev, block, alignment);
	else
		err = gpu_dev->ops->alloc(gpu_dev, block,
					  alignment > MIN_ALIGN ? alignment : MIN_ALIGN);
	if (err)
		goto free_block;
	pthread_mutex_lock(&gpu_dev->lock);
	err = insert_block(gpu_dev, block);
	pthread_mutex_unlock(&gpu_dev->lock);
	if (err)
		goto free_mem;
	*memptr_gpu = (void *)block->gpu_ptr;
	if (memptr_cpu)
		*memptr_cpu = mtype == DOCA_GPU_MEM_TYPE_GPU ? NULL : block->cpu_ptr;
	return DOCA_SUCCESS;

free_mem:
	(void)block_free(gpu_dev, block);
free_block:
	free(block);
	return err;
}

doca_error_t doca_gpu_mem_free(doca_gpu_t *gpu, void *memptr_gpu)
{
	struct gdk_block *block;
	doca_error_t err;

	GDK_CHECK_PTR(gpu);
	GDK_CHECK_PTR(memptr_gpu);
	pthread_mutex_lock(&gpu->lock);
	block = gdk_gpu_find_block(gpu, memptr_gpu);
	if (block && block->gpu_ptr == (uintptr_t)memptr_gpu && !block->is_mapping)
		remove_block(gpu, block);
	else
		block = NULL;
	pthread_mutex_unlock(&gpu->lock);
	if (!block) {
		gdk_err("GPU %s: cannot free %p: not a memory block of this GPU", gpu->name,
			memptr_gpu);
		return DOCA_ERROR_NOT_FOUND;
	}
	err = block_free(gpu, block);
	free(block);
	return err;
}

/* Returns the CPU address of gpu_ptr, or NULL. only_host: returns NULL also for GPU memory that the
 * CPU can access. */
static void *cpu_address(struct doca_gpu *gpu, const void *gpu_ptr, bool only_host)
{
	struct gdk_block *block;
	void *cpu_ptr = NULL;

	if (gdk_gpu_is_host(gpu))
		return (void *)(uintptr_t)gpu_ptr;
	pthread_mutex_lock(&gpu->lock);
	block = gdk_gpu_find_block(gpu, gpu_ptr);
	if (block && block->cpu_ptr && (!only_host || block->type == DOCA_GPU_MEM_TYPE_CPU_GPU))
		cpu_ptr = (char *)block->cpu_ptr + ((uintptr_t)gpu_ptr - block->gpu_ptr);
	pthread_mutex_unlock(&gpu->lock);
	return cpu_ptr;
}

void *gdk_gpu_cpu_ptr(doca_gpu_t *gpu, const void *gpu_ptr)
{
	return cpu_address(gpu, gpu_ptr, false);
}

void *gdk_gpu_host_mem(doca_gpu_t *gpu, const void *gpu_ptr)
{
	return cpu_address(gpu, gpu_ptr, true);
}

/*
 * Returns the number of 64-bit words to copy with atomic accesses. CPU threads of a host GPU
 * can access the memory at the same time, so its aligned words are copied atomically. For a
 * CUDA GPU the number is 0: atomic accesses to GPU memory would be slow, and the CUDA driver's
 * copies are not atomic either.
 */
static size_t whole_words(const doca_gpu_t *gpu, const void *shared, size_t len)
{
	return gdk_gpu_is_host(gpu) && (uintptr_t)shared % 8 == 0 ? len / 8 : 0;
}

static void copy_in(const doca_gpu_t *gpu, uint64_t *to, const char *from, size_t len)
{
	const size_t words = whole_words(gpu, to, len);
	uint64_t word;
	size_t i;

	for (i = 0; i < words; i++, from += 8) {
		memcpy(&word, from, 8);
		__atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
	}
	memcpy(to + words, from, len - words * 8);
	/* Orders these stores, possibly to write-combining memory, before later stores. */
	__sync_synchronize();
}

static void copy_out(const doca_gpu_t *gpu, char *to, const uint64_t *from, size_t len)
{
	const size_t words = whole_words(gpu, from, len);
	uint64_t word;
	size_t i;

	for (i = 0; i < words; i++, to += 8) {
		word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		memcpy(to, &word, 8);
	}
	memcpy(to, from + words, len - words * 8);
}

/* The CPU copies wherever it can access the memory. It can access all memory of a host GPU, so only
 * a CUDA GPU has operations for copies. */
doca_error_t gdk_gpu_write(doca_gpu_t *gpu, void *dst_gpu, const void *src, size_t len)
{
	void *cpu_ptr = gdk_gpu_cpu_ptr(gpu, dst_gpu);

	if (!cpu_ptr)
		return gpu->ops->write(gpu, dst_gpu, src, len);
	copy_in(gpu, cpu_ptr, src, len);
	return DOCA_SUCCESS;
}

doca_error_t gdk_gpu_read(doca_gpu_t *gpu, void *dst, const void *src_gpu, size_t len)
{
	void *cpu_ptr = gdk_gpu_cpu_ptr(gpu, src_gpu);

	if (!cpu_ptr)
		return gpu->ops->read(gpu, dst, src_gpu, len);
	copy_out(gpu, dst, cpu_ptr, len);
	return DOCA_SUCCESS;
}

doca_error_t gdk_gpu_fill(doca_gpu_t *gpu, void *dst_gpu, int byte, size_t len)
{
	uint64_t *to = gdk_gpu_cpu_ptr(gpu, dst_gpu), word;
	size_t i, words;

	if (!to)
		return gpu->ops->fill(gpu, dst_gpu, byte, len);
	words = whole_words(gpu, to, len);
	memset(&word, byte, sizeof(word));
	for (i = 0; i < words; i++)
		__atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
	memset(to + words, byte, len - words * 8);
	__sync_synchronize();
	return DOCA_SUCCESS;
}

/* ---- mappings of host memory ---- */

static struct gdk_block *find_mapping(struct doca_gpu *gpu, const void *cpu_ptr)
{
	size_t i;

	for (i = 0; i < gpu->num_blocks; i++)
		if (gpu->blocks[i]->is_mapping && gpu->blocks[i]->cpu_ptr == cpu_ptr)
			return gpu->blocks[i];
	return NULL;
}

static doca_error_t add_mapping(struct doca_gpu *gpu, void *cpu_ptr, size_t len, void **gpu_ptr)
{
	struct gdk_block *block = calloc(1, sizeof(*block));
	doca_error_t err;

	if (!block) {
		gdk_err("GPU %s: no memory for a mapping", gpu->name);
		return DOCA_ERROR_NO_MEMORY;
	}
	err = gpu->ops->map_host(gpu, cpu_ptr, len, gpu_ptr);
	if (err)
		goto free_block;
	*block = (struct gdk_block){
		.gpu_ptr = (uintptr_t)*gpu_ptr,
		.cpu_ptr = cpu_ptr,
		.size = len,
		.type = DOCA_GPU_MEM_TYPE_CPU_GPU,
		.is_mapping = true,
		.maps = 1,
	};
	err = insert_block(gpu, block);
	if (err)
		goto unmap;
	return DOCA_SUCCESS;

unmap:
	gpu->ops->unmap_host(gpu, cpu_ptr);
free_block:
	free(block);
	return err;
}

doca_error_t gdk_gpu_map_host(doca_gpu_t *gpu, void *cpu_ptr, size_t len, void **gpu_ptr)
{
	struct gdk_block *block;
	doca_error_t err = DOCA_SUCCESS;
	void *mapped;

	pthread_mutex_lock(&gpu->lock);
	block = find_mapping(gpu, cpu_ptr);
	if (block && block->size >= len) {
		block->maps++;
		mapped = (void *)block->gpu_ptr;
	} else {
		err = add_mapping(gpu, cpu_ptr, len, &mapped);
	}
	pthread_mutex_unlock(&gpu->lock);
	if (!err)
		*gpu_ptr = mapped;
	return err;
}

doca_error_t gdk_gpu_unmap_host(doca_gpu_t *gpu, void *cpu_ptr)
{
	doca_error_t err = DOCA_SUCCESS;
	struct gdk_block *block;

	pthread_mutex_lock(&gpu->lock);
	block = find_mapping(gpu, cpu_ptr);
	if (!block) {
		gdk_err("GPU %s: cannot unmap host memory at %p: not mapped", gpu->name, cpu_ptr);
		err = DOCA_ERROR_NOT_FOUND;
	} else if (!--block->maps) {
		remove_block(gpu, block);
		err = gpu->ops->unmap_host(gpu, cpu_ptr);
		free(block);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

/* ---- register pages ---- */

doca_error_t gdk_gpu_map_reg(doca_gpu_t *gpu, void *reg, void **reg_gpu, const char **how)
{
	const char *text = NULL;
	doca_error_t err = gpu->ops->map_reg(gpu, reg, reg_gpu, &text);

	if (how)
		*how = text;
	if (!err)
		atomic_fetch_add(&gpu->users, 1);
	return err;
}

doca_error_t gdk_gpu_unmap_reg(doca_gpu_t *gpu, void *reg)
{
	doca_error_t err = gpu->ops->unmap_reg(gpu, reg);

	if (!err)
		atomic_fetch_sub(&gpu->users, 1);
	return err;
}

const char *gdk_gpu_name(const doca_gpu_t *gpu)
{
	return gpu->name;
}

doca_error_t gdk_gpu_dmabuf_fd(doca_gpu_t *gpu, void *gpu_ptr, size_t len, int *fd)
{
	return gpu->ops->dmabuf_fd(gpu, gpu_ptr, len, false, fd);
}

static doca_error_t get_dmabuf_fd(doca_gpu_t *gpu, void *ptr, size_t size, bool pcie, int *fd)
{
	doca_error_t err = gpu->ops->dmabuf_fd(gpu, ptr, size, pcie, fd);

	if (err)
		gdk_err("GPU %s: cannot export a dmabuf%s of %zu bytes at memptr_gpu %p: %s",
			gpu->name, pcie ? " with PCIe mapping" : "", size, ptr,
			err == DOCA_ERROR_INVALID_VALUE ? "not on a page boundary; allocate it "
							  "with the page size as alignment"
							: doca_error_get_descr(err));
	return err;
}

doca_error_t doca_gpu_get_dmabuf_fd(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size,
				    int *dmabuf_fd)
{
	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(memptr_gpu);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	GDK_CHECK_PTR(dmabuf_fd);
	GDK_SDK_AS(gpu_dev, "doca_gpu_dmabuf_fd", doca_gpu_get_dmabuf_fd, gpu_dev->sdk, memptr_gpu,
		   size, dmabuf_fd);
	return get_dmabuf_fd(gpu_dev, memptr_gpu, size, false, dmabuf_fd);
}

doca_error_t gdk_gpu_get_dmabuf_fd_pcie(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size,
					int *dmabuf_fd)
{
	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(memptr_gpu);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	GDK_CHECK_PTR(dmabuf_fd);
	if (gpu_dev->sdk)
		return DOCA_ERROR_NOT_SUPPORTED;
	return get_dmabuf_fd(gpu_dev, memptr_gpu, size, true, dmabuf_fd);
}

void gdk_gpu_trim(struct doca_gpu *gpu)
{
	if (gpu->ops->trim)
		gpu->ops->trim(gpu);
}

struct doca_gpu *gdk_gpu_current(void)
{
	struct doca_gpu *gpu, *found = NULL;
	bool several = false;

	pthread_mutex_lock(&list_lock);
	for (gpu = opened; gpu; gpu = gpu->next) {
		if (gpu->ops->is_current(gpu)) {
			found = gpu;
			several = false;
			break;
		}
		several = several || (found && !(gdk_gpu_is_host(found) && gdk_gpu_is_host(gpu)));
		found = gpu;
	}
	pthread_mutex_unlock(&list_lock);
	if (found && !several)
		return found;
	gdk_err("%s", several ? "several GPUs are open: make the CUDA context of one current"
			      : "no GPU is open: call doca_gpu_create first");
	return NULL;
}
