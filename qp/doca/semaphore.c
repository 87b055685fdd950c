/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Semaphores: three allocations in memory of a GPU. The items and their information are of the
 * kinds that the caller chose, so that the side that polls is near; the struct that kernels get
 * never changes and is in GPU memory.
 */
#include "qp/doca/dev.h"

#include <stdlib.h>

#include "core/gpu/gpu.h"
#include "core/log/log.h"
#include "doorbell/mmio.h"
#include "gdk_sdk_semaphore_dev.h"

#define ALIGN	   64u
#define INFO_ALIGN 16u

struct doca_gpu_semaphore {
	struct doca_gpu *gpu;
	enum doca_gpu_mem_type type, info_type;
	uint32_t num, info_bytes;
	bool started;
	struct gdk_sdk_semaphore_item *items_cpu; /* NULL: the CPU cannot access them */
	uint8_t *info_cpu;			  /* NULL: as above, or there is none */
	struct doca_gpu_semaphore_gpu image;	  /* GPU addresses */
	struct doca_gpu_semaphore_gpu *on_gpu;	  /* its copy in GPU memory */
};

static doca_error_t must_be(const struct doca_gpu_semaphore *sem, bool started, const char *func)
{
	if (sem->started == started)
		return DOCA_SUCCESS;
	if (started)
		gdk_err("%s: the semaphore is not started; call doca_gpu_semaphore_start() first",
			func);
	else
		gdk_err("%s: the semaphore is started; call doca_gpu_semaphore_stop() first", func);
	return DOCA_ERROR_BAD_STATE;
}

/* ---- creation and settings ---- */

doca_error_t doca_gpu_semaphore_create(struct doca_gpu *gpu_dev,
				       struct doca_gpu_semaphore **semaphore)
{
	struct doca_gpu_semaphore *sem;

	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(semaphore);
	sem = calloc(1, sizeof(*sem));
	if (!sem) {
		gdk_err("no memory for a semaphore");
		return DOCA_ERROR_NO_MEMORY;
	}
	sem->gpu = gpu_dev;
	*semaphore = sem;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_semaphore_set_memory_type(struct doca_gpu_semaphore *semaphore,
						enum doca_gpu_mem_type mtype)
{
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	GDK_CHECK_ENUM(mtype, DOCA_GPU_MEM_TYPE_CPU_GPU);
	err = must_be(semaphore, false, __func__);
	if (!err)
		semaphore->type = mtype;
	return err;
}

doca_error_t doca_gpu_semaphore_set_items_num(struct doca_gpu_semaphore *semaphore,
					      uint32_t num_items)
{
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	GDK_CHECK_ARG(num_items, "num_items 0 (expected at least 1)");
	err = must_be(semaphore, false, __func__);
	if (!err)
		semaphore->num = num_items;
	return err;
}

doca_error_t doca_gpu_semaphore_set_custom_info(struct doca_gpu_semaphore *semaphore,
						uint32_t nbytes, enum doca_gpu_mem_type mtype)
{
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	GDK_CHECK_RANGE(nbytes, 1, INT32_MAX);
	GDK_CHECK_ENUM(mtype, DOCA_GPU_MEM_TYPE_CPU_GPU);
	err = must_be(semaphore, false, __func__);
	if (err)
		return err;
	semaphore->info_bytes = nbytes;
	semaphore->info_type = mtype;
	return DOCA_SUCCESS;
}

/* ---- start and stop ---- */

static doca_error_t alloc_cleared(struct doca_gpu *gpu, size_t len, enum doca_gpu_mem_type type,
				  void **on_gpu, void **cpu)
{
	doca_error_t err = doca_gpu_mem_alloc(gpu, len, ALIGN, type, on_gpu, cpu);

	if (err)
		return err;
	err = gdk_gpu_fill(gpu, *on_gpu, 0, len);
	if (err) {
		doca_gpu_mem_free(gpu, *on_gpu);
		*on_gpu = NULL;
	}
	return err;
}

static doca_error_t free_block(struct doca_gpu *gpu, void **on_gpu)
{
	doca_error_t err = *on_gpu ? doca_gpu_mem_free(gpu, *on_gpu) : DOCA_SUCCESS;

	if (!err)
		*on_gpu = NULL;
	return err;
}

static doca_error_t free_all(struct doca_gpu_semaphore *sem)
{
	void *items = sem->image.items, *info = sem->image.info, *on_gpu = sem->on_gpu;
	doca_error_t err = free_block(sem->gpu, &on_gpu);

	if (!err)
		err = free_block(sem->gpu, &info);
	if (!err)
		err = free_block(sem->gpu, &items);
	sem->image.items = items;
	sem->image.info = info;
	sem->on_gpu = on_gpu;
	return err;
}

static doca_error_t alloc_all(struct doca_gpu_semaphore *sem)
{
	uint32_t stride = (uint32_t)gdk_align_up(sem->info_bytes, INFO_ALIGN);
	void *items = NULL, *info = NULL, *on_gpu = NULL, *items_cpu = NULL, *info_cpu = NULL;
	doca_error_t err;

	err = alloc_cleared(sem->gpu, sem->num * sizeof(*sem->image.items), sem->type, &items,
			    &items_cpu);
	if (!err && stride)
		err = alloc_cleared(sem->gpu, (size_t)sem->num * stride, sem->info_type, &info,
				    &info_cpu);
	if (!err)
		err = doca_gpu_mem_alloc(sem->gpu, sizeof(sem->image), ALIGN, DOCA_GPU_MEM_TYPE_GPU,
					 &on_gpu, NULL);
	sem->image.items = items;
	sem->image.info = info;
	sem->image.num = sem->num;
	sem->image.info_stride = stride;
	sem->items_cpu = items_cpu;
	sem->info_cpu = info_cpu;
	sem->on_gpu = on_gpu;
	return err ? err : gdk_gpu_write(sem->gpu, on_gpu, &sem->image, sizeof(sem->image));
}

doca_error_t doca_gpu_semaphore_start(struct doca_gpu_semaphore *semaphore)
{
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	err = must_be(semaphore, false, __func__);
	if (err)
		return err;
	if (!semaphore->num) {
		gdk_err("%s: the semaphore has no items; call doca_gpu_semaphore_set_items_num() "
			"first",
			__func__);
		return DOCA_ERROR_BAD_STATE;
	}
	err = alloc_all(semaphore);
	if (err) {
		free_all(semaphore);
		return err;
	}
	semaphore->started = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_semaphore_stop(struct doca_gpu_semaphore *semaphore)
{
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	err = must_be(semaphore, true, __func__);
	if (!err)
		err = free_all(semaphore);
	if (!err)
		semaphore->started = false;
	return err;
}

doca_error_t doca_gpu_semaphore_destroy(struct doca_gpu_semaphore *semaphore)
{
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_PTR(semaphore);
	if (semaphore->started)
		err = doca_gpu_semaphore_stop(semaphore);
	if (!err)
		free(semaphore);
	return err;
}

doca_error_t doca_gpu_semaphore_get_gpu_handle(struct doca_gpu_semaphore *semaphore,
					       struct doca_gpu_semaphore_gpu **semaphore_gpu)
{
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	GDK_CHECK_PTR(semaphore_gpu);
	err = must_be(semaphore, true, __func__);
	if (!err)
		*semaphore_gpu = semaphore->on_gpu;
	return err;
}

/* ---- items ---- */

static doca_error_t check_item(const struct doca_gpu_semaphore *sem, uint32_t idx, const char *func)
{
	doca_error_t err = must_be(sem, true, func);

	if (err)
		return err;
	GDK_CHECK_ARG(idx < sem->num, "idx %u (expected less than %u, the number of items)", idx,
		      sem->num);
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_semaphore_get_status(struct doca_gpu_semaphore *semaphore, uint32_t idx,
					   enum doca_gpu_semaphore_status *status)
{
	doca_error_t err;
	uint32_t value;

	GDK_CHECK_PTR(semaphore);
	GDK_CHECK_PTR(status);
	err = check_item(semaphore, idx, __func__);
	if (err)
		return err;
	if (semaphore->items_cpu) {
		/* Acquire: pairs with the release in doca_gpu_dev_semaphore_set_status(). */
		value = __atomic_load_n(&semaphore->items_cpu[idx].status, __ATOMIC_ACQUIRE);
	} else {
		err = gdk_gpu_read(semaphore->gpu, &value, &semaphore->image.items[idx].status,
				   sizeof(value));
		if (err)
			return err;
	}
	*status = (enum doca_gpu_semaphore_status)value;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_semaphore_set_status(struct doca_gpu_semaphore *semaphore, uint32_t idx,
					   enum doca_gpu_semaphore_status status)
{
	uint32_t value = (uint32_t)status;
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	GDK_CHECK_ENUM(status, DOCA_GPU_SEMAPHORE_STATUS_ERROR);
	err = check_item(semaphore, idx, __func__);
	if (err)
		return err;
	if (!semaphore->items_cpu)
		return gdk_gpu_write(semaphore->gpu, &semaphore->image.items[idx].status, &value,
				     sizeof(value));
	/* Release: pairs with the acquire in doca_gpu_dev_semaphore_get_status(). The fence also
	 * orders earlier stores to write-combined memory of the GPU before the status. */
	gdk_mmio_before_register();
	__atomic_store_n(&semaphore->items_cpu[idx].status, value, __ATOMIC_RELEASE);
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_semaphore_get_custom_info_addr(struct doca_gpu_semaphore *semaphore,
						     uint32_t idx, void **custom_info)
{
	doca_error_t err;

	GDK_CHECK_PTR(semaphore);
	GDK_CHECK_PTR(custom_info);
	err = check_item(semaphore, idx, __func__);
	if (err)
		return err;
	if (!semaphore->info_cpu) {
		if (semaphore->image.info)
			gdk_err("%s: the information is in memory of kind GPU, which the CPU "
				"cannot access; use kind CPU_GPU or GPU_CPU",
				__func__);
		else
			gdk_err("%s: the items have no information; call "
				"doca_gpu_semaphore_set_custom_info()",
				__func__);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*custom_info = semaphore->info_cpu + (size_t)idx * semaphore->image.info_stride;
	return DOCA_SUCCESS;
}
