/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf */
/*
 * DMA objects with the stand-in of the CUDA driver: what kernels get in GPU memory, and failing
 * calls of the driver.
 */
#include <criterion/criterion.h>

#include "../lib/standin.h" /* before the rig, which then has rig_cuda_faults() */

#include "doca_dma_rig.h"

#include "../../core/gpu/gpu.h"
#include "../../core/reclaim.h"

#define ALL (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE)

static void open_cuda(void)
{
	standin_cuda();
	base_open_on("8a:00.0", ALL);
}

TestSuite(doca_dma_cuda, .init = open_cuda, .fini = base_close, .timeout = 60);

Test(doca_dma_cuda, the_struct_is_in_gpu_memory)
{
	struct doca_gpu_dma copied;

	dma_start(GDK_DMA_ENGINE_COPY, 64);
	cr_assert_eq(gdk_gpu_read(gpu, &copied, handle, sizeof(copied)), DOCA_SUCCESS);
	cr_expect_null(gdk_gpu_cpu_ptr(gpu, handle), "not memory of kind GPU");
	cr_expect(copied.qp && copied.result && copied.result_key >> 32);
	cr_expect_eq((uint32_t)copied.result_key, 0, "the MMO control word");
	cr_expect_eq(copied.max, GDK_DMA_MAX_COPY);
	cr_expect_eq(copied.by_write, 0);
	dma_stop();
	dma_start(GDK_DMA_ENGINE_RDMA_WRITE, 64);
	cr_assert_eq(gdk_gpu_read(gpu, &copied, handle, sizeof(copied)), DOCA_SUCCESS);
	cr_expect_eq(copied.by_write, 1);
	cr_expect_eq(copied.result, 0);
	dma_stop();
}

static doca_error_t start_and_stop(void)
{
	struct doca_dma *d;
	doca_error_t err, stopped = DOCA_SUCCESS;

	OK(doca_dma_create(dev, &d));
	OK(doca_ctx_set_datapath_on_gpu(doca_dma_as_ctx(d), gpu));
	err = doca_ctx_start(doca_dma_as_ctx(d));
	if (!err)
		stopped = doca_ctx_stop(doca_dma_as_ctx(d));
	if (stopped)
		OK(doca_ctx_stop(doca_dma_as_ctx(d)));
	OK(doca_dma_destroy(d));
	gdk_reclaim(gpu, dev);
	gdk_reclaim(gpu, dev);
	return err ? err : stopped;
}

Test(doca_dma_cuda, failing_calls_of_cuda_are_reported_and_nothing_leaks)
{
	rig_cuda_faults(start_and_stop, 3);
}
