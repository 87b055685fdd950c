/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The CUDA GPU object, on the stand-in driver: PCI addresses, memory of each kind,
 * mappings of host memory and doorbell pages, dmabufs, and cleanup when a
 * call of the driver fails.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../../core/gpu/gpu.h"
#include "../../core/util.h"
#include "../lib/capture.h"
#include "../lib/standin.h"

#define BDF "8A:00.0"

static doca_gpu_t *open_gpu(const char *bdf)
{
	doca_gpu_t *gpu = NULL;

	cr_assert_eq(doca_gpu_create(bdf, &gpu), DOCA_SUCCESS);
	return gpu;
}

static void close_gpu(doca_gpu_t *gpu)
{
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	cr_expect_eq(standin_cuda_live(), 0, "%d driver objects leaked", standin_cuda_live());
}

static void *page(void)
{
	void *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(mem, MAP_FAILED);
	return mem;
}

static void expect_list(const char *name, doca_error_t want, const char *text)
{
	doca_gpu_t *gpu = NULL;
	const char *log;

	capture_begin();
	cr_expect_eq(doca_gpu_create(name, &gpu), want);
	log = capture_end();
	cr_expect(strstr(log, text), "\"%s\" is not in the log: %s", text, log);
	cr_expect_null(gpu);
}

Test(gpu_cuda, unknown_gpu_is_not_found_and_those_present_are_listed)
{
#define PRESENT "(present: 0000:8A:00.0, 0000:8B:00.0, \"host\" for CPU threads"
	standin_cuda();
	unsetenv("CUDA_VISIBLE_DEVICES");
	expect_list("0000:01:00.0", DOCA_ERROR_NOT_FOUND,
		    "GPU 0000:01:00.0: not found " PRESENT ")");
	expect_list("0", DOCA_ERROR_INVALID_VALUE, "GPU \"0\": not a PCI address");
	expect_list("0", DOCA_ERROR_INVALID_VALUE, PRESENT ")");
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	expect_list("01:00.0", DOCA_ERROR_NOT_FOUND,
		    PRESENT "; others may be hidden by "
			    "CUDA_VISIBLE_DEVICES=1)");
	cr_expect_eq(standin_cuda_live(), 0);
}

Test(gpu_cuda, pci_addresses_in_every_spelling)
{
	static const char *const names[] = { "8a:00.0", "8A:00.0", "0000:8a:00.0",
					     "00000000:8A:00.0" };
	size_t i;

	standin_cuda();
	for (i = 0; i < GDK_ARRAY_SIZE(names); i++) {
		doca_gpu_t *gpu = open_gpu(names[i]);

		cr_expect_str_eq(gdk_gpu_name(gpu), "0000:8a:00.0");
		cr_expect_not(gdk_gpu_is_host(gpu));
		close_gpu(gpu);
	}
}

Test(gpu_cuda, gpu_memory_is_aligned_and_has_no_cpu_address)
{
	static const size_t aligns[] = { 0, 512, 65536, 8ul << 20 };
	doca_gpu_t *gpu;
	size_t i;

	standin_cuda();
	gpu = open_gpu(BDF);
	for (i = 0; i < GDK_ARRAY_SIZE(aligns); i++) {
		void *ptr, *cpu = &cpu;

		cr_assert_eq(
			doca_gpu_mem_alloc(gpu, 3000, aligns[i], DOCA_GPU_MEM_TYPE_GPU, &ptr, &cpu),
			DOCA_SUCCESS);
		cr_expect_eq((uintptr_t)ptr % (aligns[i] ? aligns[i] : 16), 0);
		cr_expect_null(cpu);
		cr_expect_null(gdk_gpu_cpu_ptr(gpu, ptr));
		cr_expect_null(gdk_gpu_host_mem(gpu, ptr));
		cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	}
	close_gpu(gpu);
}

Test(gpu_cuda, copies_go_through_the_driver)
{
	char back[16] = "";
	doca_gpu_t *gpu;
	void *ptr;
	long calls;

	standin_cuda();
	gpu = open_gpu(BDF);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 16, 0, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	calls = standin_cuda_calls();
	cr_expect_eq(gdk_gpu_fill(gpu, ptr, 0, 16), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_write(gpu, ptr, "hello", 5), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_read(gpu, back, ptr, 16), DOCA_SUCCESS);
	cr_expect_str_eq(back, "hello");
	cr_expect_geq(standin_cuda_calls() - calls, 6);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	close_gpu(gpu);
}

/* A fill copies an image, at most 256 KiB at a time. */
Test(gpu_cuda, fill_of_more_than_an_image)
{
	const size_t len = (512 << 10) + 100;
	uint8_t *back = malloc(len + 1);
	doca_gpu_t *gpu;
	size_t i;
	void *ptr;

	standin_cuda();
	gpu = open_gpu(BDF);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, len + 1, 0, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	cr_assert_eq(gdk_gpu_fill(gpu, ptr, 1, len + 1), DOCA_SUCCESS);
	cr_assert_eq(gdk_gpu_fill(gpu, ptr, 2, len), DOCA_SUCCESS);
	cr_assert_eq(gdk_gpu_read(gpu, back, ptr, len + 1), DOCA_SUCCESS);
	for (i = 0; i < len; i++)
		cr_assert_eq(back[i], 2, "byte %zu", i);
	cr_expect_eq(back[len], 1);
	free(back);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	close_gpu(gpu);
}

Test(gpu_cuda, pinned_host_memory_has_a_host_address)
{
	doca_gpu_t *gpu;
	void *ptr, *cpu;

	standin_cuda();
	gpu = open_gpu(BDF);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 100, 65536, DOCA_GPU_MEM_TYPE_CPU_GPU, &ptr, &cpu),
		     DOCA_SUCCESS);
	cr_expect_eq((uintptr_t)cpu % 65536, 0);
	memset(cpu, 3, 100);
	cr_expect_eq(gdk_gpu_cpu_ptr(gpu, (char *)ptr + 99), (char *)cpu + 99);
	cr_expect_eq(gdk_gpu_host_mem(gpu, ptr), cpu);
	cr_expect_null(gdk_gpu_cpu_ptr(gpu, (char *)ptr + 100));
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	close_gpu(gpu);
}

Test(gpu_cuda, gdrcopy_memory_has_a_cpu_address)
{
	doca_gpu_t *gpu;
	char back[6] = "";
	void *ptr, *cpu;

	standin_cuda();
	standin_gdr();
	gpu = open_gpu(BDF);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 70000, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &ptr, &cpu),
		     DOCA_SUCCESS);
	cr_expect_neq(cpu, ptr);
	memcpy(cpu, "both", 5);
	cr_expect_eq(memcmp(ptr, "both", 5), 0);
	cr_expect_eq(gdk_gpu_write(gpu, (char *)ptr + 69990, "last", 5), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_read(gpu, back, (char *)ptr + 69990, 5), DOCA_SUCCESS);
	cr_expect_str_eq(back, "last");
	cr_expect_null(gdk_gpu_host_mem(gpu, ptr));
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	cr_expect_eq(standin_gdr_live(), 0);
	close_gpu(gpu);
}

Test(gpu_cuda, gdrcopy_is_found_by_its_path_variable)
{
	char path[4096];
	doca_gpu_t *gpu;
	void *ptr, *cpu;

	standin_cuda();
	standin_path(path, sizeof(path), "");
	setenv("GDRCOPY_PATH_L", path, 1);
	gpu = open_gpu(BDF);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 1, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &ptr, &cpu),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	close_gpu(gpu);
}

static void expect_gdrcopy_warning(const char *variable, const char *value, const char *text)
{
	doca_gpu_t *gpu;
	void *ptr, *cpu;

	standin_cuda();
	setenv(variable, value, 1);
	gpu = open_gpu(BDF);
	capture_begin();
	/* It succeeds if the machine has GDRCopy. */
	if (doca_gpu_mem_alloc(gpu, 1, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &ptr, &cpu) == DOCA_SUCCESS)
		doca_gpu_mem_free(gpu, ptr);
	cr_expect(strstr(capture_end(), text), "%s", capture_text);
	close_gpu(gpu);
}

Test(gpu_cuda, wrong_path_of_gdrcopy_is_reported)
{
	expect_gdrcopy_warning("GDRCOPY_PATH_L", "/nowhere",
			       "ignoring GDRCOPY_PATH_L=\"/nowhere\" (expected libgdrapi.so.2 or "
			       "its folder: ");
}

Test(gpu_cuda, disabling_gdrcopy_by_a_word_is_reported)
{
	expect_gdrcopy_warning("DOCA_GPUNETIO_DISABLE_GDRCOPY", "yes",
			       "ignoring DOCA_GPUNETIO_DISABLE_GDRCOPY=\"yes\" (expected 0 or 1), "
			       "using 0");
}

Test(gpu_cuda, gpu_cpu_memory_needs_gdrcopy)
{
	doca_gpu_t *gpu;
	void *ptr, *cpu;

	standin_cuda();
	setenv("DOCA_GPUNETIO_DISABLE_GDRCOPY", "1", 1);
	gpu = open_gpu(BDF);
	cr_expect_eq(doca_gpu_mem_alloc(gpu, 1, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &ptr, &cpu),
		     DOCA_ERROR_NOT_SUPPORTED);
	close_gpu(gpu);
}

Test(gpu_cuda, dmabuf_fd_maps_the_memory)
{
	char back[5] = "";
	doca_gpu_t *gpu;
	void *ptr;
	int fd = -1;

	standin_cuda();
	gpu = open_gpu(BDF);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 5000, 65536, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_get_dmabuf_fd(gpu, ptr, 5000, &fd), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_write(gpu, ptr, "dma", 4), DOCA_SUCCESS);
	cr_expect_eq(pread(fd, back, 4, 0), 4);
	cr_expect_str_eq(back, "dma");
	close(fd);
	cr_expect_eq(doca_gpu_get_dmabuf_fd(gpu, (char *)ptr + 8, 64, &fd),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	close_gpu(gpu);
}

Test(gpu_cuda, driver_without_dmabuf_is_not_supported)
{
	doca_gpu_t *gpu;
	void *ptr;
	int fd = -5;

	standin_cuda();
	setenv("STANDIN_CUDA_DMABUF", "0", 1);
	gpu = open_gpu(BDF);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 64, 4096, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_get_dmabuf_fd(gpu, ptr, 64, &fd), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(fd, -5);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	close_gpu(gpu);
}

/* Maps two registers of a page. iomem: STANDIN_CUDA_IOMEM; word: expected in the text of `how`. */
static void check_reg(const char *iomem, const char *word)
{
	char *reg_page = page();
	void *first, *second;
	const char *how;
	doca_gpu_t *gpu;

	standin_cuda();
	setenv("STANDIN_CUDA_IOMEM", iomem, 1);
	gpu = open_gpu(BDF);
	cr_assert_eq(gdk_gpu_map_reg(gpu, reg_page + 0x800, &first, &how), DOCA_SUCCESS);
	cr_expect(strstr(how, word), "reason: %s", how);
	cr_expect_eq(first, reg_page + 0x800);
	cr_assert_eq(gdk_gpu_map_reg(gpu, reg_page + 0x600, &second, NULL), DOCA_SUCCESS);
	cr_expect_eq(second, reg_page + 0x600);
	cr_expect_eq(gdk_gpu_unmap_reg(gpu, reg_page + 0x800), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_ERROR_IN_USE);
	cr_expect_eq(gdk_gpu_unmap_reg(gpu, reg_page + 0x600), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_unmap_reg(gpu, reg_page + 0x600), DOCA_ERROR_NOT_FOUND);
	close_gpu(gpu);
}

Test(gpu_cuda, register_page_as_device_memory)
{
	check_reg("1", "device memory");
}

Test(gpu_cuda, register_page_as_ordinary_memory)
{
	check_reg("0", "ordinary memory");
}

Test(gpu_cuda, refused_register_page_reports_the_reason)
{
	const char *how = NULL;
	doca_gpu_t *gpu;
	void *reg;
	bool can = true;

	standin_cuda();
	setenv("STANDIN_CUDA_IOMEM", "2", 1);
	gpu = open_gpu(BDF);
	cr_expect_eq(gdk_gpu_map_reg(gpu, page(), &reg, &how), DOCA_ERROR_DRIVER);
	cr_expect(strstr(how, "PeerMappingOverride"));
	cr_expect_eq(doca_gpu_verbs_can_gpu_register_uar(page(), &can), DOCA_SUCCESS);
	cr_expect_not(can);
	setenv("STANDIN_CUDA_IOMEM", "1", 1); /* the earlier result must not be cached */
	cr_expect_eq(doca_gpu_verbs_can_gpu_register_uar(page(), &can), DOCA_SUCCESS);
	cr_expect(can);
	close_gpu(gpu);
}

Test(gpu_cuda, two_gpus_share_a_register_page)
{
	doca_gpu_t *one, *two;
	char *reg = page();
	void *a, *b;

	standin_cuda();
	one = open_gpu("8a:00.0");
	two = open_gpu("8b:00.0");
	cr_assert_eq(gdk_gpu_map_reg(one, reg, &a, NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_gpu_map_reg(two, reg, &b, NULL), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_unmap_reg(one, reg), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(one), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_unmap_reg(two, reg), DOCA_SUCCESS);
	close_gpu(two);
}

/* The page belongs to the second GPU. */
Test(gpu_cuda, held_register_page_stays_until_its_gpu_is_closed)
{
	struct gdk_reg_hold hold;
	char *reg = page();
	doca_gpu_t *gpu;
	void *mapped;

	standin_cuda();
	gpu = open_gpu("8b:00.0");
	gdk_reg_hold(&hold, reg);
	cr_assert_eq(gdk_gpu_map_reg(gpu, reg, &mapped, NULL), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_unmap_reg(gpu, reg), DOCA_SUCCESS);
	cr_expect(gdk_reg_is_registered(&hold));
	close_gpu(gpu);
	cr_expect_not(gdk_reg_is_registered(&hold));
	gdk_reg_release(&hold);
}

Test(gpu_cuda, held_register_page_is_unregistered_by_its_owner)
{
	struct gdk_reg_hold hold;
	char *reg = page();
	const char *log;
	doca_gpu_t *gpu;
	void *mapped;
	int fail;

	standin_cuda();
	gpu = open_gpu(BDF);
	for (fail = 0; fail < 2; fail++) {
		gdk_reg_hold(&hold, reg);
		cr_assert_eq(gdk_gpu_map_reg(gpu, reg, &mapped, NULL), DOCA_SUCCESS);
		cr_expect_eq(gdk_gpu_unmap_reg(gpu, reg), DOCA_SUCCESS);
		cr_expect(gdk_reg_is_registered(&hold));
		capture_begin();
		standin_cuda_fail_at(fail ? 2 : 0); /* the first call makes the context current */
		gdk_reg_release(&hold);
		standin_cuda_fail_at(0);
		log = capture_end();
		cr_expect_eq(!!strstr(log, "cuMemHostUnregister failed"), fail, "log: %s", log);
		cr_expect_not(gdk_reg_is_registered(&hold));
	}
	close_gpu(gpu);
}

Test(gpu_cuda, export_uses_the_current_context)
{
	int (*push)(void *), (*pop)(void **), (*retain)(void **, int), (*release)(int);
	doca_gpu_t *one, *two;
	void *context, *lib;
	uint64_t *reg = page(), *mapped;

	standin_cuda();
	lib = standin_open("libcuda.so.1");
	push = (int (*)(void *))dlsym(lib, "cuCtxPushCurrent_v2");
	pop = (int (*)(void **))dlsym(lib, "cuCtxPopCurrent_v2");
	retain = (int (*)(void **, int))dlsym(lib, "cuDevicePrimaryCtxRetain");
	release = (int (*)(int))dlsym(lib, "cuDevicePrimaryCtxRelease_v2");
	one = open_gpu("8a:00.0");
	two = open_gpu("8b:00.0");
	cr_expect_eq(doca_gpu_verbs_export_uar(reg, &mapped), DOCA_ERROR_NOT_FOUND);
	cr_assert_eq(retain(&context, 0), 0);
	cr_assert_eq(push(context), 0);
	cr_assert_eq(doca_gpu_verbs_export_uar(reg, &mapped), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(one), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_gpu_destroy(two), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_verbs_unexport_uar(mapped), DOCA_SUCCESS);
	cr_expect_eq(pop(&context), 0);
	cr_expect_neq(pop(&context), 0, "a context is still current");
	release(0);
	close_gpu(one);
}

static doca_error_t open_step(doca_gpu_t *unused, void **result)
{
	(void)unused;
	return doca_gpu_create(BDF, (doca_gpu_t **)result);
}

static doca_error_t alloc_step(doca_gpu_t *gpu, void **ptr, enum doca_gpu_mem_type type)
{
	void *cpu;

	return doca_gpu_mem_alloc(gpu, 4096, 4096, type, ptr, &cpu);
}

static doca_error_t gpu_step(doca_gpu_t *gpu, void **ptr)
{
	return alloc_step(gpu, ptr, DOCA_GPU_MEM_TYPE_GPU);
}

static doca_error_t gdr_step(doca_gpu_t *gpu, void **ptr)
{
	return alloc_step(gpu, ptr, DOCA_GPU_MEM_TYPE_GPU_CPU);
}

static doca_error_t host_step(doca_gpu_t *gpu, void **ptr)
{
	return alloc_step(gpu, ptr, DOCA_GPU_MEM_TYPE_CPU_GPU);
}

static doca_error_t reg_step(doca_gpu_t *gpu, void **ptr)
{
	static void *reg;

	if (!reg)
		reg = page();
	return gdk_gpu_map_reg(gpu, reg, ptr, NULL);
}

static doca_error_t map_step(doca_gpu_t *gpu, void **ptr)
{
	static void *mem;

	if (!mem)
		mem = page();
	return gdk_gpu_map_host(gpu, mem, 4096, ptr);
}

/*
 * Runs a step again and again, with its 1st, 2nd, ... driver call failing, until
 * the step succeeds. A failed step must leak nothing and must not write its result.
 * At least `min` runs must fail.
 */
static void *fail_each(doca_gpu_t *gpu, doca_error_t (*step)(doca_gpu_t *, void **), long min)
{
	int before = standin_cuda_live();
	void *untouched = &before, *result;
	long n, failures = 0;

	for (n = 1; n < 40; n++) {
		result = untouched;
		standin_cuda_fail_at(n);
		if (!step(gpu, &result)) {
			bool passed_all = standin_cuda_calls() && failures >= min;

			standin_cuda_fail_at(0);
			cr_expect(passed_all, "only %ld calls failed before the step succeeded",
				  failures);
			return result;
		}
		failures++;
		cr_expect_eq(standin_cuda_live(), before, "failure of call %ld leaks", n);
		cr_expect_eq(result, untouched);
	}
	cr_assert_fail("the step never succeeded");
	return NULL;
}

Test(gpu_cuda, every_failing_call_is_unwound)
{
	doca_gpu_t *gpu;
	void *ptr;

	standin_cuda();
	standin_gdr();
	close_gpu(open_gpu(BDF)); /* loads the driver */
	gpu = fail_each(NULL, open_step, 1);
	ptr = fail_each(gpu, gpu_step, 2);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	ptr = fail_each(gpu, gdr_step, 2);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	ptr = fail_each(gpu, host_step, 3);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	ptr = fail_each(gpu, map_step, 3);
	cr_expect_eq(gdk_gpu_unmap_host(gpu, ptr), DOCA_SUCCESS);
	ptr = fail_each(gpu, reg_step, 2);
	cr_expect_eq(gdk_gpu_unmap_reg(gpu, ptr), DOCA_SUCCESS);
	close_gpu(gpu);
}

Test(gpu_cuda, every_failing_gdrcopy_call_is_unwound)
{
	doca_gpu_t *gpu;
	void *ptr, *cpu;
	long n;
	int before;

	standin_cuda();
	standin_gdr();
	gpu = open_gpu(BDF);
	cr_assert_eq(alloc_step(gpu, &ptr, DOCA_GPU_MEM_TYPE_GPU_CPU), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	before = standin_cuda_live();
	for (n = 1; n <= 2; n++) {
		standin_gdr_fail_at(n);
		cr_expect_eq(doca_gpu_mem_alloc(gpu, 1, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &ptr, &cpu),
			     DOCA_ERROR_DRIVER);
		cr_expect_eq(standin_gdr_live(), 0);
		cr_expect_eq(standin_cuda_live(), before);
	}
	standin_gdr_fail_at(0);
	close_gpu(gpu);
}
