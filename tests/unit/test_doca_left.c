/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A program closes its GPU and its NIC without having destroyed all UARs, umems and memory, as
 * NVIDIA's samples do: these are released. While another object uses the GPU or the NIC, closing
 * fails and changes nothing.
 */
#include "doca_rig.h"
#include "gdk_sdk_semaphore.h"

#include "../lib/failalloc.h"
#include "../lib/nicfail.h"

/* Like REFUSED(), for a call that succeeds with a warning. */
#define WARNED(text, call) REFUSED(DOCA_SUCCESS, text, call)

static void samples_run(void)
{
	struct nic n = nic_open();
	struct side a, b;

	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	side_open(&n, &b, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	side_export(&n, &a, H(AUTO));
	side_leave(&n, &a);
	side_leave(&n, &b);
	OK(doca_verbs_pd_destroy(n.vpd));
	OK(doca_verbs_context_destroy(n.context));
	WARNED("doca_gpu_destroy releases 2 memory blocks (8192 bytes) and 2 umems",
	       doca_gpu_destroy(n.gpu));
	WARNED("doca_dev_close releases 0 umems and 2 UARs", doca_dev_close(n.dev));
}

Test(doca_left, the_order_of_the_samples, .timeout = 60)
{
	uint32_t objects;
	size_t live;

	nicfail_find();
	samples_run(); /* what libmlx5 keeps is allocated */
	objects = nicfail_live();
	live = failalloc_live();
	samples_run();
	cr_expect_eq(nicfail_live(), objects, "%u objects of the NIC remain", nicfail_live());
	cr_expect_eq(failalloc_live(), live, "memory remains");
}

Test(doca_left, the_nic_is_closed_first, .timeout = 60)
{
	struct nic n = nic_open();
	struct side a;

	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	side_leave(&n, &a);
	WARNED("doca_dev_close releases 1 umems and 1 UARs", doca_dev_close(n.dev));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "UAR 0x", doca_uar_destroy(a.uar));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "does not exist", doca_umem_destroy(a.dbr_mem.umem));
	OK(doca_verbs_pd_destroy(n.vpd));
	OK(doca_verbs_context_destroy(n.context));
	WARNED("releases 1 memory blocks (4096 bytes) and 0 umems", doca_gpu_destroy(n.gpu));
}

Test(doca_left, nothing_is_released_while_a_queue_pair_exists, .timeout = 60)
{
	struct nic n = nic_open();
	struct side a;

	side_open(&n, &a, DOCA_UAR_ALLOCATION_TYPE_NONCACHE);
	for (int exported = 0; exported < 2; exported++) {
		REFUSED(DOCA_ERROR_IN_USE, "still exist", doca_gpu_destroy(n.gpu));
		REFUSED(DOCA_ERROR_IN_USE, "still use it", doca_dev_close(n.dev));
		if (!exported)
			side_export(&n, &a, H(AUTO));
	}
	side_close(&n, &a); /* all handles are valid */
	nic_close(&n);
}

/* The CPU address of the memory is registered, so the umem does not refer to the GPU. */
Test(doca_left, a_umem_by_its_cpu_address, .timeout = 60)
{
	struct nic n = nic_open();
	struct doca_umem *umem;
	void *on_gpu, *on_cpu;

	OK(doca_gpu_mem_alloc(n.gpu, 8192, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &on_gpu, &on_cpu));
	OK(doca_umem_create(n.dev, (char *)on_cpu + 4096, 4096, FLAGS, &umem));
	WARNED("releases 1 memory blocks (8192 bytes) and 1 umems", doca_gpu_destroy(n.gpu));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "does not exist", doca_umem_destroy(umem));
	nic_release(&n);
}

/* Memory that doca_gpu_mem_alloc() has not allocated; and a UAR in place of a umem. */
Test(doca_left, a_umem_of_other_memory, .timeout = 60)
{
	struct nic n = nic_open();
	void *mem = aligned_alloc(4096, 4096);
	struct doca_umem *umem;
	struct doca_uar *uar;

	OK(doca_umem_gpu_create(n.gpu, n.dev, mem, 4096, FLAGS, &umem));
	OK(doca_uar_create(n.dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "UAR 0x", doca_uar_destroy((struct doca_uar *)umem));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "umem 0x", doca_umem_destroy((struct doca_umem *)uar));
	OK(doca_uar_destroy(uar));
	WARNED("releases 0 memory blocks (0 bytes) and 1 umems", doca_gpu_destroy(n.gpu));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "does not exist", doca_umem_destroy(umem));
	nic_release(&n);
	free(mem);
}

Test(doca_left, an_object_of_the_library_keeps_the_memory, .timeout = 60)
{
	struct doca_gpu_semaphore *sem;
	struct doca_gpu *gpu;
	uint8_t *mem;

	OK(doca_gpu_create("host", &gpu));
	OK(doca_gpu_mem_alloc(gpu, 4096, 0, DOCA_GPU_MEM_TYPE_GPU, (void **)&mem, NULL));
	OK(doca_gpu_semaphore_create(gpu, &sem));
	OK(doca_gpu_semaphore_set_items_num(sem, 4));
	OK(doca_gpu_semaphore_set_memory_type(sem, DOCA_GPU_MEM_TYPE_GPU));
	OK(doca_gpu_semaphore_start(sem));
	REFUSED(DOCA_ERROR_IN_USE, "memory blocks and mappings still exist", doca_gpu_destroy(gpu));
	memset(mem, 1, 4096);
	OK(doca_gpu_semaphore_stop(sem));
	OK(doca_gpu_semaphore_destroy(sem));
	WARNED("releases 1 memory blocks", doca_gpu_destroy(gpu));
}

/* The kernel refuses to end the registration: GPU and memory remain, and a second try succeeds. */
Test(doca_left, a_failed_release_can_be_repeated, .timeout = 60)
{
	struct nic n = nic_open();
	struct queue q = queue_open(&n, 4096);

	nicfail_find();
	nicfail_next(0, 0, 0, 1);
	REFUSED(DOCA_ERROR_DRIVER, "cannot deregister it", doca_gpu_destroy(n.gpu));
	memset(q.mem, 1, 4096);
	WARNED("releases 1 memory blocks (4096 bytes) and 1 umems", doca_gpu_destroy(n.gpu));
	nic_release(&n);
}
