/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A CUDA driver or GDRCopy library that is missing, lacks a function or fails to
 * initialize; memory that the driver aligns less than requested; pages that the
 * application has registered. Each failure must be logged with its reason.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "../../core/gpu/gpu.h"
#include "../lib/capture.h"
#include "../lib/standin.h"

#define BDF "8a:00.0"

static doca_gpu_t *open_gpu(void)
{
	doca_gpu_t *gpu = NULL;

	cr_assert_eq(doca_gpu_create(BDF, &gpu), DOCA_SUCCESS);
	return gpu;
}

static void close_gpu(doca_gpu_t *gpu)
{
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	cr_expect_eq(standin_cuda_live(), 0);
}

/* ---- CUDA ---- */

static void expect_no_gpu(const char *reason)
{
	doca_gpu_t *gpu = NULL;
	const char *log;

	/* only the first call tries to load the driver, but each must log the reason */
	for (int i = 0; i < 2; i++) {
		capture_begin();
		cr_expect_eq(doca_gpu_create(BDF, &gpu), DOCA_ERROR_NOT_FOUND);
		log = capture_end();
		cr_expect(strstr(log, "GPU 0000:8a:00.0") && strstr(log, reason), "log: %s", log);
		cr_expect_null(gpu);
	}
	capture_begin();
	cr_expect_eq(doca_gpu_create("gpu0", &gpu), DOCA_ERROR_INVALID_VALUE);
	log = capture_end();
	cr_expect(strstr(log, "present: \"host\" for CPU threads; ") && strstr(log, reason),
		  "log: %s", log);
	cr_expect_eq(doca_gpu_create("host", &gpu), DOCA_SUCCESS, "the host GPU needs no driver");
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_driver, no_driver)
{
	if (dlopen("libcuda.so.1", RTLD_LAZY))
		cr_skip_test("this machine has a CUDA driver");
	expect_no_gpu("cannot load the CUDA driver: libcuda.so.1");
}

Test(gpu_driver, driver_lacks_a_function)
{
	void *lib = standin_open("old/libcuda.so.1");

	expect_no_gpu("libcuda.so.1 has no cuStreamDestroy_v2");
	standin_close(lib, "old/libcuda.so.1");
}

Test(gpu_driver, driver_fails_to_initialize)
{
	setenv("STANDIN_CUDA_FAIL", "1", 1);
	standin_cuda();
	expect_no_gpu("cuInit failed: CUDA_ERROR_OUT_OF_MEMORY");
}

/* The stand-in driver returns memory that begins 512 bytes after the start of a page. */
Test(gpu_driver, memory_is_aligned_beyond_the_drivers_alignment)
{
	static const size_t aligns[] = { 0, 256, 512, 4096, 65536, 1 << 20 };
	doca_gpu_t *gpu;
	void *mem, *cpu;

	setenv("STANDIN_CUDA_SKEW", "512", 1);
	standin_cuda();
	standin_gdr();
	gpu = open_gpu();
	for (size_t i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++)
		for (int type = 0; type < 2; type++) {
			cr_assert_eq(doca_gpu_mem_alloc(gpu, 5000, aligns[i],
							type ? DOCA_GPU_MEM_TYPE_GPU_CPU
							     : DOCA_GPU_MEM_TYPE_GPU,
							&mem, &cpu),
				     DOCA_SUCCESS);
			cr_expect_eq(aligns[i] ? (uintptr_t)mem % aligns[i] : 0, 0);
			memset(mem, 1, 5000); /* all of the memory must be usable */
			cr_expect_eq(doca_gpu_mem_free(gpu, mem), DOCA_SUCCESS);
		}
	cr_expect_eq(standin_gdr_live(), 0);
	close_gpu(gpu);
}

Test(gpu_driver, huge_sizes_are_refused)
{
	static const enum doca_gpu_mem_type types[] = { DOCA_GPU_MEM_TYPE_GPU,
							DOCA_GPU_MEM_TYPE_GPU_CPU,
							DOCA_GPU_MEM_TYPE_CPU_GPU };
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, (size_t)1 << 62 };
	doca_gpu_t *gpu;
	void *mem, *cpu;

	standin_cuda();
	standin_gdr();
	gpu = open_gpu();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
			cr_expect_eq(doca_gpu_mem_alloc(gpu, sizes[j], 4096, types[i], &mem, &cpu),
				     DOCA_ERROR_NO_MEMORY, "type %d, size 0x%zx", types[i],
				     sizes[j]);
	close_gpu(gpu);
}

/* Mapping and unmapping a register must keep the application's registration of its page. */
static void try_registered(const char *iomem)
{
	int (*retain)(void **context, int device), (*set)(void *context);
	int (*reg)(void *ptr, size_t size, unsigned int flags), (*unreg)(void *ptr);
	uint64_t *page = aligned_alloc(4096, 4096);
	void *lib = standin_open("libcuda.so.1"), *mapped, *context;
	const char *how = NULL;
	doca_gpu_t *gpu;

	setenv("STANDIN_CUDA_IOMEM", iomem, 1);
	*(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&reg = dlsym(lib, "cuMemHostRegister_v2");
	*(void **)&unreg = dlsym(lib, "cuMemHostUnregister");
	gpu = open_gpu();
	cr_assert_eq(retain(&context, 0) | set(context), 0);
	cr_assert_eq(reg(page, 4096, 2), 0);
	cr_assert_eq(gdk_gpu_map_reg(gpu, page + 5, &mapped, &how), DOCA_SUCCESS);
	cr_expect_str_eq(how, "the register page was registered by the application");
	cr_expect_eq(mapped, page + 5);
	cr_expect_eq(gdk_gpu_unmap_reg(gpu, page + 5), DOCA_SUCCESS);
	cr_expect_eq(unreg(page), 0, "the application's registration is gone");
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	set(NULL);
	free(page);
}

Test(gpu_driver, register_page_registered_by_the_application)
{
	standin_cuda();
	try_registered("1");
	try_registered("0");
}

/* ---- GDRCopy ---- */

static void expect_no_gdrcopy(const char *reason)
{
	doca_gpu_t *gpu;
	const char *log;
	void *mem, *cpu;

	standin_cuda();
	gpu = open_gpu();
	capture_begin();
	cr_expect_eq(doca_gpu_mem_alloc(gpu, 4096, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &mem, &cpu),
		     DOCA_ERROR_NOT_SUPPORTED);
	log = capture_end();
	cr_expect(strstr(log, reason), "log: %s", log);
	cr_expect(strstr(log, "memory of type GPU_CPU: GDRCopy is not available"), "log: %s", log);
	close_gpu(gpu);
}

Test(gpu_driver, gdrcopy_lacks_a_function)
{
	void *lib = standin_open("old/libgdrapi.so");

	expect_no_gdrcopy("libgdrapi has no gdr_unmap");
	standin_close(lib, "old/libgdrapi.so");
}

Test(gpu_driver, gdrcopy_without_its_kernel_module)
{
	void *lib = standin_gdr();

	standin_gdr_fail_at(1);
	expect_no_gdrcopy("gdr_open failed (is the kernel module gdrdrv loaded?)");
	standin_close(lib, "libgdrapi.so");
}
