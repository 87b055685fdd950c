/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf */
/*
 * Buffer arrays of the SDK's interface: what kernels read of local and of remote memory, on the
 * host GPU and in memory of the stand-in CUDA GPU, and calls in a wrong order.
 */
/* core/gpu/gpu.h includes headers of DOCA GPUNetIO open. */
#define GDK_BOTH_SHAPES

#include <criterion/criterion.h>
#include <endian.h>
#include <string.h>

#include "doca_buf_array.h"
#include "gdk_sdk_buf_dev.h"

#include "../../core/gpu/gpu.h"
#include "../lib/standin.h"
#include "doca_base_rig.h"

#define LEN 8192u

static uint8_t mem[LEN] __attribute__((aligned(4096)));
static struct doca_dev *dev;
static struct doca_gpu *gpu;
static struct doca_mmap *map;

static void open_on(const char *name)
{
	dev = rig_open();
	cr_assert_eq(doca_gpu_create(name, &gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_create(&map), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_add_dev(map, dev), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_memrange(map, mem, LEN), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
							    DOCA_ACCESS_FLAG_RDMA_WRITE),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(map), DOCA_SUCCESS);
}

static void open_host(void)
{
	open_on("host");
}

static void open_cuda(void)
{
	standin_cuda();
	open_on("8a:00.0");
}

static void close_all(void)
{
	cr_expect_eq(doca_mmap_destroy(map), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS, "a buffer array leaks GPU memory");
	cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
}

TestSuite(doca_buf_arr, .init = open_host, .fini = close_all);
TestSuite(doca_buf_arr_cuda, .init = open_cuda, .fini = close_all);

static struct doca_buf_arr *start(size_t num, struct doca_mmap *mmap, size_t size, uint64_t offset)
{
	struct doca_buf_arr *arr;

	cr_assert_eq(doca_buf_arr_create(num, &arr), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_set_target_gpu(arr, gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_set_params(arr, mmap, size, offset), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_start(arr), DOCA_SUCCESS);
	return arr;
}

/* The array and its buffers are num buffers of size bytes from first on, with this key. */
static void expect(const struct doca_gpu_buf_arr *arr, size_t num, uintptr_t first, size_t size,
		   uint32_t key)
{
	struct doca_gpu_buf *buf = NULL;
	uintptr_t addr = 0;
	uint32_t mkey = 0;

	for (size_t i = 0; i < num; i++) {
		cr_assert_eq(doca_gpu_dev_buf_get_buf(arr, i, &buf), DOCA_SUCCESS);
		cr_expect_eq(doca_gpu_dev_buf_get_addr(buf, &addr), DOCA_SUCCESS);
		cr_expect_eq(doca_gpu_dev_buf_get_mkey(buf, &mkey), DOCA_SUCCESS);
		cr_expect_eq(addr, first + i * size, "buffer %zu", i);
		cr_expect_eq(mkey, htobe32(key), "buffer %zu", i);
	}
	cr_expect_eq(doca_gpu_dev_buf_get_buf(arr, num, &buf), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_buf_get_buf(arr, UINT64_MAX, &buf), DOCA_ERROR_INVALID_VALUE);
}

Test(doca_buf_arr, kernels_read_addresses_and_the_key)
{
	struct doca_buf_arr *arr = start(7, map, 1000, 24);
	struct doca_gpu_buf_arr *on_gpu;
	uint32_t key;

	cr_assert_eq(doca_mmap_get_mkey(map, dev, &key), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_get_gpu_handle(arr, &on_gpu), DOCA_SUCCESS);
	expect(on_gpu, 7, (uintptr_t)mem + 24, 1000, key);
	REFUSED(DOCA_ERROR_IN_USE, "", doca_gpu_destroy(gpu));
	cr_expect_eq(doca_buf_arr_stop(arr), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_set_params(arr, map, 10, 0), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_start(arr), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_get_gpu_handle(arr, &on_gpu), DOCA_SUCCESS);
	expect(on_gpu, 7, (uintptr_t)mem, 10, key);
	cr_expect_eq(doca_buf_arr_destroy(arr), DOCA_SUCCESS);
}

Test(doca_buf_arr, remote_memory_has_the_remote_key)
{
	struct doca_gpu_buf_arr *on_gpu;
	struct doca_mmap *remote;
	struct doca_buf_arr *arr;
	const void *desc;
	uint32_t key;
	size_t len;

	cr_assert_eq(doca_mmap_export_rdma(map, dev, &desc, &len), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_create_from_export(NULL, desc, len, dev, &remote), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_get_mkey(remote, dev, &key), DOCA_SUCCESS);
	arr = start(1, remote, LEN, 0);
	cr_assert_eq(doca_buf_arr_get_gpu_handle(arr, &on_gpu), DOCA_SUCCESS);
	expect(on_gpu, 1, (uintptr_t)mem, LEN, key);
	/* The DOCA sample of DMA destroys the mmap first. */
	cr_expect_eq(doca_mmap_destroy(remote), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_arr_destroy(arr), DOCA_SUCCESS);
}

Test(doca_buf_arr, calls_in_a_wrong_order_are_refused)
{
	struct doca_gpu_buf_arr *on_gpu = NULL;
	struct doca_buf_arr *arr;

	cr_assert_eq(doca_buf_arr_create(4, &arr), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "has no mmap", doca_buf_arr_start(arr));
	cr_assert_eq(doca_buf_arr_set_params(arr, map, LEN / 4, 0), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "has no GPU", doca_buf_arr_start(arr));
	cr_assert_eq(doca_buf_arr_set_target_gpu(arr, gpu), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_buf_arr_stop(arr));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_buf_arr_get_gpu_handle(arr, &on_gpu));
	cr_expect_null(on_gpu);
	cr_assert_eq(doca_buf_arr_set_params(arr, map, LEN / 4, 1), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "do not fit into the mmap", doca_buf_arr_start(arr));
	cr_assert_eq(doca_buf_arr_set_params(arr, map, 1, LEN + 1), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "do not fit into the mmap", doca_buf_arr_start(arr));
	cr_assert_eq(doca_buf_arr_set_params(arr, map, SIZE_MAX / 4 + 1, 0), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "do not fit into the mmap", doca_buf_arr_start(arr));
	cr_assert_eq(doca_buf_arr_set_params(arr, map, LEN / 4, 0), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_stop(map), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "is not started", doca_buf_arr_start(arr));
	cr_assert_eq(doca_mmap_start(map), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_start(arr), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_buf_arr_start(arr));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_buf_arr_set_params(arr, map, 1, 0));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_buf_arr_set_target_gpu(arr, gpu));
	cr_expect_eq(doca_buf_arr_destroy(arr), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "num_elem 0", doca_buf_arr_create(0, &arr));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "buf_arr NULL", doca_buf_arr_destroy(NULL));
}

Test(doca_buf_arr_cuda, the_array_is_in_gpu_memory)
{
	struct doca_buf_arr *arr = start(3, map, 64, 0);
	struct doca_gpu_buf_arr *on_gpu, copy;
	struct doca_gpu_buf bufs[3];
	uint32_t key;

	cr_assert_eq(doca_mmap_get_mkey(map, dev, &key), DOCA_SUCCESS);
	cr_assert_eq(doca_buf_arr_get_gpu_handle(arr, &on_gpu), DOCA_SUCCESS);
	cr_assert_eq(gdk_gpu_read(gpu, &copy, on_gpu, sizeof(copy)), DOCA_SUCCESS);
	cr_expect_null(gdk_gpu_cpu_ptr(gpu, on_gpu), "not memory of kind GPU");
	cr_assert_eq(gdk_gpu_read(gpu, bufs, copy.bufs, sizeof(bufs)), DOCA_SUCCESS);
	copy.bufs = bufs;
	expect(&copy, 3, (uintptr_t)mem, 64, key);
	cr_expect_eq(doca_buf_arr_destroy(arr), DOCA_SUCCESS);
}

static doca_error_t round_trip(void)
{
	struct doca_buf_arr *arr;
	doca_error_t err;

	err = doca_buf_arr_create(3, &arr);
	if (err)
		return err;
	cr_expect_eq(doca_buf_arr_set_target_gpu(arr, gpu), DOCA_SUCCESS);
	cr_expect_eq(doca_buf_arr_set_params(arr, map, 64, 0), DOCA_SUCCESS);
	err = doca_buf_arr_start(arr);
	if (!doca_buf_arr_destroy(arr))
		return err;
	cr_expect_eq(doca_buf_arr_destroy(arr), DOCA_SUCCESS, "a repetition");
	return DOCA_ERROR_DRIVER;
}

Test(doca_buf_arr, failing_allocations_are_reported_and_nothing_leaks)
{
	rig_faults(round_trip, 3, 0);
}

Test(doca_buf_arr_cuda, failing_calls_of_cuda_are_reported_and_nothing_leaks)
{
	rig_cuda_faults(round_trip, 2);
}
