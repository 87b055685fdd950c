/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dma none */
/*
 * DMA objects on a NIC without a copy engine: RDMA writes copy, the log says so, and memory that
 * they may not write is refused.
 */
#include "doca_dma_rig.h"

#include "doca_buf_inventory.h"

#define LOCAL DOCA_ACCESS_FLAG_LOCAL_READ_WRITE

TestSuite(doca_dma_none, .timeout = 60);

Test(doca_dma_none, rdma_writes_copy)
{
	enum gdk_dma_engine engine;
	uint64_t max;

	base_open(LOCAL | DOCA_ACCESS_FLAG_RDMA_WRITE);
	dma_start(GDK_DMA_ENGINE_AUTO, 16);
	OK(gdk_dma_get_engine(dma, &engine, &max));
	cr_expect_eq(engine, GDK_DMA_ENGINE_RDMA_WRITE);
	cr_expect_eq(max, 1u << 30);
	OK(copy(1, 0, 2, 0, SIZE));
	OK(gdk_gpu_dev_dma_wait_all(handle, 20 * SECOND));
	cr_expect_arr_eq(to.mem + 2 * SIZE, from.mem + SIZE, SIZE);
	dma_stop();
	base_close();
}

Test(doca_dma_none, the_engine_is_not_supported)
{
	base_open(LOCAL);
	OK(doca_dma_create(dev, &dma));
	OK(gdk_dma_set_engine(dma, GDK_DMA_ENGINE_COPY));
	OK(doca_ctx_set_datapath_on_gpu(doca_dma_as_ctx(dma), gpu));
	capture_begin();
	cr_expect_eq(doca_ctx_start(doca_dma_as_ctx(dma)), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(capture_end(), "the NIC has no copy engine; select"));
	OK(doca_dma_destroy(dma));
	base_close();
}

Test(doca_dma_none, memory_without_permission_fails)
{
	base_open(LOCAL);
	dma_start(GDK_DMA_ENGINE_AUTO, 16);
	OK(copy(1, 0, 2, 0, SIZE));
	cr_expect_eq(gdk_gpu_dev_dma_wait_all(handle, 0), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(to.mem[2 * SIZE], 0);
	dma_stop();
	base_close();
}

static void never(struct doca_dma_task_memcpy *task, union doca_data user, union doca_data of_ctx)
{
	(void)task, (void)user, (void)of_ctx;
	cr_expect_fail("a callback was called");
}

Test(doca_dma_none, a_task_without_permission_is_refused)
{
	struct doca_dma_task_memcpy *t;
	union doca_data user = { .u64 = 0 };
	struct doca_buf_inventory *inv;
	struct doca_buf *src, *dst;

	base_open(LOCAL);
	OK(doca_buf_inventory_create(2, &inv));
	OK(doca_buf_inventory_start(inv));
	OK(doca_buf_inventory_buf_get_by_data(inv, from.map, from.mem, SIZE, &src));
	OK(doca_buf_inventory_buf_get_by_addr(inv, to.map, to.mem, SIZE, &dst));
	OK(doca_dma_create(dev, &dma));
	OK(doca_dma_task_memcpy_set_conf(dma, never, never, 1));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	capture_begin();
	cr_expect_eq(doca_dma_task_memcpy_alloc_init(dma, src, dst, user, &t),
		     DOCA_ERROR_NOT_PERMITTED);
	cr_expect(strstr(capture_end(), "DOCA_ACCESS_FLAG_RDMA_WRITE"));
	dma_stop();
	OK(doca_buf_dec_refcount(src, NULL));
	OK(doca_buf_dec_refcount(dst, NULL));
	OK(doca_buf_inventory_destroy(inv));
	base_close();
}
