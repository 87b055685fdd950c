/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Buffer arrays for kernels: one allocation in GPU memory, with the struct that kernels get and
 * the buffers behind it.
 */
#include "qp/doca/mmap.h"

#include <endian.h>
#include <stdlib.h>

#include "core/gpu/gpu.h"
#include "core/log/log.h"
#include "doca_buf_array.h"
#include "gdk_sdk_buf_dev.h"

#define ALIGN 64u

/* What is written to GPU memory. */
struct image {
	struct doca_gpu_buf_arr arr;
	struct doca_gpu_buf bufs[] __attribute__((aligned(16)));
};

struct doca_buf_arr {
	size_t num;
	struct doca_mmap *mmap; /* NULL: not set */
	size_t elem_size;
	uint64_t offset;
	struct doca_gpu *gpu; /* NULL: not set */
	struct image *on_gpu; /* GPU address; NULL: not started */
};

static doca_error_t must_be_stopped(const struct doca_buf_arr *arr, const char *func)
{
	if (!arr->on_gpu)
		return DOCA_SUCCESS;
	gdk_err("%s: the buffer array is started; call doca_buf_arr_stop() first", func);
	return DOCA_ERROR_BAD_STATE;
}

static doca_error_t must_be_started(const struct doca_buf_arr *arr, const char *func)
{
	if (arr->on_gpu)
		return DOCA_SUCCESS;
	gdk_err("%s: the buffer array is not started; call doca_buf_arr_start() first", func);
	return DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_buf_arr_create(size_t num_elem, struct doca_buf_arr **buf_arr)
{
	struct doca_buf_arr *arr;

	GDK_CHECK_PTR(buf_arr);
	GDK_CHECK_ARG(num_elem && num_elem < SIZE_MAX / 2 / sizeof(struct doca_gpu_buf),
		      "num_elem %zu (expected at least 1, and less than the memory can have)",
		      num_elem);
	arr = calloc(1, sizeof(*arr));
	if (!arr) {
		gdk_err("no memory for a buffer array");
		return DOCA_ERROR_NO_MEMORY;
	}
	arr->num = num_elem;
	*buf_arr = arr;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *buf_arr, struct doca_mmap *mmap,
				     size_t elem_size, uint64_t start_offset)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_arr);
	GDK_CHECK_PTR(mmap);
	GDK_CHECK_ARG(elem_size, "elem_size 0 (expected at least 1)");
	err = must_be_stopped(buf_arr, __func__);
	if (err)
		return err;
	buf_arr->mmap = mmap;
	buf_arr->elem_size = elem_size;
	buf_arr->offset = start_offset;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_set_target_gpu(struct doca_buf_arr *buf_arr, struct doca_gpu *gpu_dev)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_arr);
	GDK_CHECK_PTR(gpu_dev);
	err = must_be_stopped(buf_arr, __func__);
	if (!err)
		buf_arr->gpu = gpu_dev;
	return err;
}

/* Checks that the buffers are in the mmap, and returns the address of the first. */
static doca_error_t check_range(const struct doca_buf_arr *arr, uintptr_t *first)
{
	void *addr;
	size_t len;

	gdk_mmap_range(arr->mmap, &addr, &len);
	if (arr->offset > len || arr->elem_size > (len - arr->offset) / arr->num) {
		gdk_err("buffer array: %zu buffers of %zu bytes from offset %llu on do not fit "
			"into the mmap (%zu bytes)",
			arr->num, arr->elem_size, (unsigned long long)arr->offset, len);
		return DOCA_ERROR_INVALID_VALUE;
	}
	*first = (uintptr_t)addr + arr->offset;
	return gdk_mmap_check(arr->mmap, addr, len, "doca_buf_arr_start");
}

static doca_error_t write_image(struct doca_buf_arr *arr, uintptr_t first, void *on_gpu)
{
	size_t len = sizeof(struct image) + arr->num * sizeof(struct doca_gpu_buf), i;
	uint32_t mkey = htobe32(gdk_mmap_key(arr->mmap));
	struct image *image = calloc(1, len);
	doca_error_t err;

	if (!image) {
		gdk_err("no memory for a buffer array of %zu buffers", arr->num);
		return DOCA_ERROR_NO_MEMORY;
	}
	image->arr.bufs = (struct doca_gpu_buf *)((char *)on_gpu + offsetof(struct image, bufs));
	image->arr.num = arr->num;
	for (i = 0; i < arr->num; i++) {
		image->bufs[i].addr = first + i * arr->elem_size;
		image->bufs[i].mkey = mkey;
		image->bufs[i].size = arr->elem_size;
	}
	err = gdk_gpu_write(arr->gpu, on_gpu, image, len);
	free(image);
	return err;
}

doca_error_t doca_buf_arr_start(struct doca_buf_arr *buf_arr)
{
	uintptr_t first;
	doca_error_t err;
	void *on_gpu;

	GDK_CHECK_PTR(buf_arr);
	err = must_be_stopped(buf_arr, __func__);
	if (err)
		return err;
	if (!buf_arr->mmap || !buf_arr->gpu) {
		gdk_err("%s: the buffer array has no %s", __func__,
			buf_arr->mmap ? "GPU; call doca_buf_arr_set_target_gpu() first"
				      : "mmap; call doca_buf_arr_set_params() first");
		return DOCA_ERROR_BAD_STATE;
	}
	err = check_range(buf_arr, &first);
	if (err)
		return err;
	err = doca_gpu_mem_alloc(buf_arr->gpu,
				 sizeof(struct image) + buf_arr->num * sizeof(struct doca_gpu_buf),
				 ALIGN, DOCA_GPU_MEM_TYPE_GPU, &on_gpu, NULL);
	if (err)
		return err;
	err = write_image(buf_arr, first, on_gpu);
	if (err) {
		doca_gpu_mem_free(buf_arr->gpu, on_gpu);
		return err;
	}
	buf_arr->on_gpu = on_gpu;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_arr_stop(struct doca_buf_arr *buf_arr)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_arr);
	err = must_be_started(buf_arr, __func__);
	if (!err)
		err = doca_gpu_mem_free(buf_arr->gpu, buf_arr->on_gpu);
	if (!err)
		buf_arr->on_gpu = NULL;
	return err;
}

doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *buf_arr)
{
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_PTR(buf_arr);
	if (buf_arr->on_gpu)
		err = doca_buf_arr_stop(buf_arr);
	if (!err)
		free(buf_arr);
	return err;
}

doca_error_t doca_buf_arr_get_gpu_handle(const struct doca_buf_arr *buf_arr,
					 struct doca_gpu_buf_arr **gpu_buf_arr)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_arr);
	GDK_CHECK_PTR(gpu_buf_arr);
	err = must_be_started(buf_arr, __func__);
	if (!err)
		*gpu_buf_arr = &buf_arr->on_gpu->arr;
	return err;
}
