/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf --strict */
/*
 * Nothing waits for the GPU while a kernel of the program runs: queue pairs and memory are created
 * and destroyed on the stand-in driver, which fails a call that would wait.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/spin_life.h"
#include "../lib/standin.h"

#define MIB ((size_t)1 << 20)

static struct e2e_nic nic;

static void open_gpu(void)
{
	setenv("STANDIN_CUDA_IOMEM", "1", 0);
	standin_cuda();
	e2e_open_on(&nic, "8a:00.0");
}

static void close_gpu(void)
{
	e2e_close(&nic);
	cr_expect_eq(standin_cuda_live(), 0);
}

static void quiet(const char *what, unsigned int qp)
{
	cr_assert_eq(standin_cuda_waits(), 0, "a call before %s of QP %u would wait", what, qp);
}

static void life(void)
{
	open_gpu();
	standin_cuda_spin(1);
	spin_life_run(&nic, quiet);
	cr_expect_eq(standin_cuda_waits(), 0);
	standin_cuda_spin(0);
	close_gpu();
}

Test(spin, life_of_100_queue_pairs_waits_for_no_kernel, .timeout = 60)
{
	life();
}

Test(spin, nor_if_cuda_aligns_blocks_to_512_bytes, .timeout = 60)
{
	setenv("STANDIN_CUDA_SKEW", "512", 1);
	life();
}

/* 32768 send slots, 32768 receives of 512 bytes, and their CQs. */
Test(spin, nor_do_the_largest_queues, .timeout = 60)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 32768, .receive_max_sges = 32 };
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .nic_handler = E2E_DB, .sq_nwqe = 32768 };
	struct doca_gpu_verbs_qp_hl *qps[2];

	open_gpu();
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	standin_cuda_spin(1);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &qps[i]), DOCA_SUCCESS);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(qps[i]), DOCA_SUCCESS);
	cr_expect_eq(standin_cuda_waits(), 0);
	standin_cuda_spin(0);
	close_gpu();
}

static void *alloc(size_t size, enum doca_gpu_mem_type type, void **cpu)
{
	void *ptr = NULL;

	cr_assert_eq(doca_gpu_mem_alloc(nic.gpu, size, 4096, type, &ptr, cpu), DOCA_SUCCESS);
	return ptr;
}

static void drop(void *ptr)
{
	cr_assert_eq(doca_gpu_mem_free(nic.gpu, ptr), DOCA_SUCCESS);
}

Test(spin, freed_memory_is_reused_and_host_memory_is_zero_again)
{
	void *first, *second, *cpu;

	open_gpu();
	first = alloc(65536, DOCA_GPU_MEM_TYPE_GPU, NULL);
	drop(first);
	second = alloc(40000, DOCA_GPU_MEM_TYPE_GPU, NULL);
	cr_expect_eq(first, second);
	drop(second);
	second = alloc(8192, DOCA_GPU_MEM_TYPE_GPU, NULL); /* less than half */
	cr_expect_neq(first, second);
	drop(second);
	first = alloc(65536, DOCA_GPU_MEM_TYPE_CPU_GPU, &cpu);
	memset(cpu, 0xa5, 65536);
	drop(first);
	second = alloc(65536, DOCA_GPU_MEM_TYPE_CPU_GPU, &cpu);
	cr_expect_eq(first, second);
	for (int i = 0; i < 65536; i++)
		cr_assert_eq(((uint8_t *)cpu)[i], 0, "byte %d", i);
	drop(second);
	close_gpu();
}

Test(spin, kept_memory_is_bounded)
{
	void *blocks[80], *cpu;
	int before;

	open_gpu();
	before = standin_cuda_live();
	drop(alloc(33 * MIB, DOCA_GPU_MEM_TYPE_CPU_GPU, &cpu)); /* a large block is not kept */
	cr_expect_eq(standin_cuda_live(), before);
	for (int i = 0; i < 80; i++)
		blocks[i] = alloc(16 * MIB, DOCA_GPU_MEM_TYPE_CPU_GPU, &cpu);
	for (int i = 0; i < 80; i++)
		drop(blocks[i]);
	cr_expect_eq(standin_cuda_live() - before, 64, "not 1 GiB is kept");
	close_gpu();
}
