/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Semaphores of the SDK's interface: status, packets and information, set by the CPU and by the
 * device functions on CPU threads, in each kind of memory, and calls in a wrong order.
 */
/* core/gpu/gpu.h includes headers of DOCA GPUNetIO open. */
#define GDK_BOTH_SHAPES

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "gdk_sdk_semaphore_dev.h"

#include "../../core/gpu/gpu.h"
#include "../lib/standin.h"
#include "doca_base_rig.h"

#define S(name) DOCA_GPU_SEMAPHORE_STATUS_##name
#define M(name) DOCA_GPU_MEM_TYPE_##name

static struct doca_gpu *gpu;

static void open_host(void)
{
	cr_assert_eq(doca_gpu_create("host", &gpu), DOCA_SUCCESS);
}

static void open_cuda(void)
{
	standin_cuda();
	standin_gdr();
	cr_assert_eq(doca_gpu_create("8a:00.0", &gpu), DOCA_SUCCESS);
}

static void close_gpu(void)
{
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS, "a semaphore leaks GPU memory");
}

TestSuite(doca_semaphore, .init = open_host, .fini = close_gpu);
TestSuite(doca_semaphore_cuda, .init = open_cuda, .fini = close_gpu);

static struct doca_gpu_semaphore *start(uint32_t num, enum doca_gpu_mem_type type, uint32_t info)
{
	struct doca_gpu_semaphore *sem;

	cr_assert_eq(doca_gpu_semaphore_create(gpu, &sem), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_semaphore_set_memory_type(sem, type), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_semaphore_set_items_num(sem, num), DOCA_SUCCESS);
	if (info)
		cr_assert_eq(doca_gpu_semaphore_set_custom_info(sem, info, type), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_semaphore_start(sem), DOCA_SUCCESS);
	return sem;
}

static enum doca_gpu_semaphore_status status(struct doca_gpu_semaphore *sem, uint32_t idx)
{
	enum doca_gpu_semaphore_status s = (enum doca_gpu_semaphore_status)77;

	cr_expect_eq(doca_gpu_semaphore_get_status(sem, idx, &s), DOCA_SUCCESS);
	return s;
}

Test(doca_semaphore, cpu_and_device_see_the_status_of_each_other)
{
	struct doca_gpu_semaphore *sem = start(3, M(CPU_GPU), 24);
	enum doca_gpu_semaphore_status s;
	struct doca_gpu_semaphore_gpu *dev;
	void *cpu_info = NULL, *dev_info = NULL, *next = NULL;

	cr_assert_eq(doca_gpu_semaphore_get_gpu_handle(sem, &dev), DOCA_SUCCESS);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(status(sem, i), S(FREE));
	cr_expect_eq(doca_gpu_dev_semaphore_set_status(dev, 1, S(READY)), DOCA_SUCCESS);
	cr_expect_eq(status(sem, 1), S(READY));
	cr_expect(status(sem, 0) == S(FREE) && status(sem, 2) == S(FREE), "another item changed");
	cr_expect_eq(doca_gpu_semaphore_set_status(sem, 1, S(ERROR)), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_dev_semaphore_get_status(dev, 1, &s), DOCA_SUCCESS);
	cr_expect_eq(s, S(ERROR));
	cr_expect_eq(doca_gpu_semaphore_get_custom_info_addr(sem, 1, &cpu_info), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_dev_semaphore_get_custom_info_addr(dev, 1, &dev_info), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_dev_semaphore_get_custom_info_addr(dev, 2, &next), DOCA_SUCCESS);
	cr_expect_eq(cpu_info, dev_info);
	cr_expect_eq((char *)next - (char *)dev_info, 32, "24 bytes, aligned to 16");
	for (int i = 0; i < 24; i++)
		cr_expect_eq(((char *)cpu_info)[i], 0);
	REFUSED(DOCA_ERROR_IN_USE, "", doca_gpu_destroy(gpu));
	cr_expect_eq(doca_gpu_semaphore_stop(sem), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_semaphore_start(sem), DOCA_SUCCESS);
	cr_expect_eq(status(sem, 1), S(FREE), "a status survived the stop");
	cr_expect_eq(doca_gpu_semaphore_destroy(sem), DOCA_SUCCESS);
}

Test(doca_semaphore, packets_are_read_only_with_their_status)
{
	struct doca_gpu_semaphore *sem = start(2, M(GPU), 0);
	struct doca_gpu_semaphore_gpu *dev;
	uint64_t idx = 0;
	uint32_t num = 0;
	void *info;

	cr_assert_eq(doca_gpu_semaphore_get_gpu_handle(sem, &dev), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_dev_semaphore_get_packet_info_status(dev, 0, S(READY), &num, &idx),
		     DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(doca_gpu_dev_semaphore_set_packet_info(dev, 0, S(READY), 7, 1ull << 40),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_dev_semaphore_get_packet_info_status(dev, 0, S(READY), &num, &idx),
		     DOCA_SUCCESS);
	cr_expect_eq(num, 7);
	cr_expect_eq(idx, 1ull << 40);
	num = 0;
	cr_expect_eq(doca_gpu_dev_semaphore_get_packet_info_status(dev, 0, S(DONE), &num, &idx),
		     DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(num, 0);
	cr_expect_eq(doca_gpu_dev_semaphore_get_custom_info_addr(dev, 0, &info),
		     DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(doca_gpu_dev_semaphore_set_status(dev, 2, S(READY)), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_semaphore_set_packet_info(dev, 2, S(READY), 1, 1),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_semaphore_get_packet_info_status(dev, 2, S(READY), &num, &idx),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_semaphore_destroy(sem), DOCA_SUCCESS);
}

#define ROUNDS 20000u

/* Fills each item in turn, as a kernel does. */
static void *fill(void *arg)
{
	struct doca_gpu_semaphore_gpu *dev = arg;
	enum doca_gpu_semaphore_status s;
	uint64_t *info = NULL;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		do
			doca_gpu_dev_semaphore_get_status(dev, i % 4, &s);
		while (s != S(FREE));
		doca_gpu_dev_semaphore_get_custom_info_addr(dev, i % 4, (void **)&info);
		info[0] = info[1] = i;
		doca_gpu_dev_semaphore_set_status(dev, i % 4, S(READY));
	}
	return NULL;
}

Test(doca_semaphore, information_is_complete_when_the_status_is_seen, .timeout = 60)
{
	struct doca_gpu_semaphore *sem = start(4, M(CPU_GPU), 16);
	struct doca_gpu_semaphore_gpu *dev;
	pthread_t thread;
	uint32_t wrong = 0;
	uint64_t *info = NULL;

	cr_assert_eq(doca_gpu_semaphore_get_gpu_handle(sem, &dev), DOCA_SUCCESS);
	cr_assert_eq(pthread_create(&thread, NULL, fill, dev), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		while (status(sem, i % 4) != S(READY))
			;
		doca_gpu_semaphore_get_custom_info_addr(sem, i % 4, (void **)&info);
		wrong += info[0] != i || info[1] != i;
		doca_gpu_semaphore_set_status(sem, i % 4, S(FREE));
	}
	pthread_join(thread, NULL);
	cr_expect_eq(wrong, 0);
	cr_expect_eq(doca_gpu_semaphore_destroy(sem), DOCA_SUCCESS);
}

Test(doca_semaphore, calls_in_a_wrong_order_are_refused)
{
	enum doca_gpu_semaphore_status s;
	struct doca_gpu_semaphore_gpu *dev;
	struct doca_gpu_semaphore *sem;
	void *info;

	cr_assert_eq(doca_gpu_semaphore_create(gpu, &sem), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "has no items", doca_gpu_semaphore_start(sem));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_gpu_semaphore_stop(sem));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_gpu_semaphore_get_gpu_handle(sem, &dev));
	REFUSED(DOCA_ERROR_BAD_STATE, "not started", doca_gpu_semaphore_get_status(sem, 0, &s));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "num_items 0", doca_gpu_semaphore_set_items_num(sem, 0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "mtype 3",
		doca_gpu_semaphore_set_memory_type(sem, (enum doca_gpu_mem_type)3));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "nbytes 0",
		doca_gpu_semaphore_set_custom_info(sem, 0, M(GPU)));
	cr_assert_eq(doca_gpu_semaphore_set_items_num(sem, 2), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_semaphore_start(sem), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_gpu_semaphore_start(sem));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started", doca_gpu_semaphore_set_items_num(sem, 2));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started",
		doca_gpu_semaphore_set_memory_type(sem, M(GPU)));
	REFUSED(DOCA_ERROR_BAD_STATE, "is started",
		doca_gpu_semaphore_set_custom_info(sem, 8, M(GPU)));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "idx 2 (expected less than 2",
		doca_gpu_semaphore_get_status(sem, 2, &s));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "status 4",
		doca_gpu_semaphore_set_status(sem, 0, (enum doca_gpu_semaphore_status)4));
	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "have no information",
		doca_gpu_semaphore_get_custom_info_addr(sem, 0, &info));
	cr_expect_eq(doca_gpu_semaphore_destroy(sem), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_INVALID_VALUE, "gpu_dev NULL", doca_gpu_semaphore_create(NULL, &sem));
}

Test(doca_semaphore_cuda, the_cpu_uses_items_in_each_kind_of_memory)
{
	static const enum doca_gpu_mem_type types[] = { M(GPU), M(GPU_CPU), M(CPU_GPU) };
	struct doca_gpu_semaphore_gpu *dev, copy;
	struct doca_gpu_semaphore *sem;
	uint32_t value;
	void *info;

	for (int i = 0; i < 3; i++) {
		sem = start(2, types[i], 8);
		cr_assert_eq(doca_gpu_semaphore_get_gpu_handle(sem, &dev), DOCA_SUCCESS);
		cr_assert_eq(gdk_gpu_read(gpu, &copy, dev, sizeof(copy)), DOCA_SUCCESS);
		cr_expect_eq(copy.num, 2);
		cr_expect_eq(status(sem, 1), S(FREE), "type %d", i);
		cr_expect_eq(doca_gpu_semaphore_set_status(sem, 1, S(DONE)), DOCA_SUCCESS);
		cr_expect_eq(status(sem, 1), S(DONE), "type %d", i);
		cr_assert_eq(gdk_gpu_read(gpu, &value, &copy.items[1].status, sizeof(value)),
			     DOCA_SUCCESS);
		cr_expect_eq(value, S(DONE), "type %d", i);
		if (types[i] == M(GPU))
			REFUSED(DOCA_ERROR_NOT_SUPPORTED, "which the CPU cannot access",
				doca_gpu_semaphore_get_custom_info_addr(sem, 1, &info));
		else
			cr_expect_eq(doca_gpu_semaphore_get_custom_info_addr(sem, 1, &info),
				     DOCA_SUCCESS);
		cr_expect_eq(doca_gpu_semaphore_destroy(sem), DOCA_SUCCESS);
	}
}

static doca_error_t round_trip(void)
{
	struct doca_gpu_semaphore *sem;
	doca_error_t err;

	err = doca_gpu_semaphore_create(gpu, &sem);
	if (err)
		return err;
	cr_expect_eq(doca_gpu_semaphore_set_items_num(sem, 4), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_semaphore_set_custom_info(sem, 8, M(GPU)), DOCA_SUCCESS);
	err = doca_gpu_semaphore_start(sem);
	if (!doca_gpu_semaphore_destroy(sem))
		return err;
	cr_expect_eq(doca_gpu_semaphore_destroy(sem), DOCA_SUCCESS, "a repetition");
	return DOCA_ERROR_DRIVER;
}

Test(doca_semaphore, failing_allocations_are_reported_and_nothing_leaks)
{
	rig_faults(round_trip, 4, 0);
}

Test(doca_semaphore_cuda, failing_calls_of_cuda_are_reported_and_nothing_leaks)
{
	rig_cuda_faults(round_trip, 4);
}
