/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host GPU, on which CPU threads take the place of GPU threads, and the table
 * of memory blocks that every GPU object has.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/gpu/gpu.h"

static doca_gpu_t *open_host(void)
{
	doca_gpu_t *gpu = NULL;

	cr_assert_eq(doca_gpu_create("host", &gpu), DOCA_SUCCESS);
	return gpu;
}

Test(gpu_host, opens_and_closes)
{
	doca_gpu_t *gpu = open_host();

	cr_expect(gdk_gpu_is_host(gpu));
	cr_expect_str_eq(gdk_gpu_name(gpu), "host");
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, bad_arguments_are_refused)
{
	doca_gpu_t *gpu = open_host();
	void *ptr, *cpu;

	cr_expect_eq(doca_gpu_create(NULL, &gpu), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_create("host", NULL), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_create("localhost", &gpu), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_create("8a:00.0x", &gpu), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_mem_alloc(gpu, 0, 0, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_mem_alloc(gpu, 64, 3, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_mem_alloc(gpu, 64, 0, DOCA_GPU_MEM_TYPE_GPU_CPU, &ptr, NULL),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_mem_alloc(gpu, 64, 0, (enum doca_gpu_mem_type)3, &ptr, &cpu),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_destroy(NULL), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, defect_30_every_kind_is_aligned_memory)
{
	static const size_t aligns[] = { 0, 16, 64, 4096, 65536, 2ul << 20 };
	doca_gpu_t *gpu = open_host();
	size_t i, kind;

	for (kind = 0; kind < 3; kind++) {
		for (i = 0; i < GDK_ARRAY_SIZE(aligns); i++) {
			void *ptr = NULL, *cpu = &cpu;

			cr_assert_eq(doca_gpu_mem_alloc(gpu, 5000, aligns[i],
							(enum doca_gpu_mem_type)kind, &ptr, &cpu),
				     DOCA_SUCCESS);
			cr_expect_eq((uintptr_t)ptr % (aligns[i] ? aligns[i] : 16), 0);
			cr_expect_eq(cpu, kind == DOCA_GPU_MEM_TYPE_GPU ? NULL : ptr);
			memset(ptr, 7, 5000);
			cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
		}
	}
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, huge_sizes_are_refused)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, (size_t)1 << 62 };
	doca_gpu_t *gpu = open_host();
	void *ptr, *cpu;

	for (int kind = 0; kind < 3; kind++)
		for (size_t i = 0; i < GDK_ARRAY_SIZE(sizes); i++)
			cr_expect_eq(doca_gpu_mem_alloc(gpu, sizes[i], 4096,
							(enum doca_gpu_mem_type)kind, &ptr, &cpu),
				     DOCA_ERROR_NO_MEMORY, "kind %d, size 0x%zx", kind, sizes[i]);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, destroy_with_memory_left_is_in_use)
{
	doca_gpu_t *gpu = open_host();
	void *ptr;

	cr_assert_eq(doca_gpu_mem_alloc(gpu, 1, 0, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_gpu_mem_free(gpu, (char *)ptr + 1), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, memory_of_another_gpu_is_not_freed)
{
	doca_gpu_t *one = open_host(), *two = open_host();
	void *ptr;

	cr_assert_eq(doca_gpu_mem_alloc(one, 64, 0, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(two, ptr), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(doca_gpu_mem_free(one, ptr), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(one), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(two), DOCA_SUCCESS);
}

Test(gpu_host, copies_and_fill)
{
	doca_gpu_t *gpu = open_host();
	char back[8] = "";
	void *ptr;

	cr_assert_eq(doca_gpu_mem_alloc(gpu, 8, 0, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_write(gpu, ptr, "abcdefg", 8), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_fill(gpu, (char *)ptr + 2, 'z', 2), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_read(gpu, back, ptr, 8), DOCA_SUCCESS);
	cr_expect_str_eq(back, "abzzefg");
	cr_expect_eq(gdk_gpu_cpu_ptr(gpu, (char *)ptr + 3), (char *)ptr + 3);
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, mappings_are_identity_and_counted)
{
	doca_gpu_t *gpu = open_host();
	static char mem[4096];
	void *one, *two, *reg;
	const char *how = NULL;

	cr_assert_eq(gdk_gpu_map_host(gpu, mem, sizeof(mem), &one), DOCA_SUCCESS);
	cr_assert_eq(gdk_gpu_map_host(gpu, mem, 64, &two), DOCA_SUCCESS);
	cr_expect(one == mem && two == mem);
	cr_expect_eq(doca_gpu_mem_free(gpu, mem), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(gdk_gpu_unmap_host(gpu, mem), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_ERROR_IN_USE);
	cr_expect_eq(gdk_gpu_unmap_host(gpu, mem), DOCA_SUCCESS);
	cr_expect_eq(gdk_gpu_unmap_host(gpu, mem), DOCA_ERROR_NOT_FOUND);
	cr_assert_eq(gdk_gpu_map_reg(gpu, mem + 8, &reg, &how), DOCA_SUCCESS);
	cr_expect(reg == mem + 8 && how);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_ERROR_IN_USE);
	cr_expect_eq(gdk_gpu_unmap_reg(gpu, mem + 8), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, defect_17_uar_export_is_found_by_its_gpu_address)
{
	doca_gpu_t *gpu;
	static uint64_t reg[512];
	uint64_t *mapped;
	bool can = false;

	cr_expect_eq(doca_gpu_verbs_export_uar(reg, &mapped), DOCA_ERROR_NOT_FOUND);
	gpu = open_host();
	cr_expect_eq(doca_gpu_verbs_can_gpu_register_uar(reg, &can), DOCA_SUCCESS);
	cr_expect(can);
	cr_assert_eq(doca_gpu_verbs_export_uar(reg, &mapped), DOCA_SUCCESS);
	cr_expect_eq(mapped, reg);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_gpu_verbs_unexport_uar(mapped + 1), DOCA_ERROR_NOT_FOUND);
	cr_expect_eq(doca_gpu_verbs_unexport_uar(mapped), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

Test(gpu_host, has_no_dmabuf)
{
	doca_gpu_t *gpu = open_host();
	int fd = -5;

	cr_expect_eq(doca_gpu_get_dmabuf_fd(gpu, &fd, 8, &fd), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(fd, -5);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

static void *churn(void *arg)
{
	doca_gpu_t *gpu = arg;
	void *ptrs[32];
	int i, round;

	for (round = 0; round < 20; round++) {
		for (i = 0; i < 32; i++)
			if (doca_gpu_mem_alloc(gpu, 64, 0, DOCA_GPU_MEM_TYPE_GPU, &ptrs[i], NULL))
				return arg;
		for (i = 0; i < 32; i++)
			if (doca_gpu_mem_free(gpu, ptrs[(i * 7) % 32]))
				return arg;
	}
	return NULL;
}

Test(gpu_host, allocation_is_thread_safe)
{
	doca_gpu_t *gpu = open_host();
	pthread_t threads[4];
	void *failed;
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, gpu);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		cr_expect_null(failed);
	}
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}

/* Words are copied atomically, the bytes behind them are not: all lengths and alignments. */
Test(gpu_host, copies_of_every_length)
{
	char from[64], to[64], *mem;
	doca_gpu_t *gpu = open_host();
	size_t at, len;
	void *ptr;

	for (at = 0; at < sizeof(from); at++)
		from[at] = (char)(at + 1);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 64, 4096, DOCA_GPU_MEM_TYPE_GPU, &ptr, NULL),
		     DOCA_SUCCESS);
	mem = ptr;
	for (at = 0; at <= 16; at++)
		for (len = 1; len <= 25; len++) {
			memset(mem, 0, 64);
			memset(to, 0, sizeof(to));
			cr_assert_eq(gdk_gpu_write(gpu, mem + at, from, len), DOCA_SUCCESS);
			cr_assert(!memcmp(mem + at, from, len) && !mem[at + len] &&
					  (!at || !mem[at - 1]),
				  "%zu bytes at %zu", len, at);
			cr_assert_eq(gdk_gpu_read(gpu, to + 1, mem + at, len), DOCA_SUCCESS);
			cr_assert(!memcmp(to + 1, from, len) && !to[0] && !to[1 + len]);
		}
	cr_expect_eq(doca_gpu_mem_free(gpu, ptr), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
}
