/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of DMA objects: one NIC, the GPU "host", memory of two mmaps as arrays of buffers, and
 * an object that threads drive.
 */
#ifndef DOCA_DMA_RIG_H
#define DOCA_DMA_RIG_H

#define GDK_BOTH_SHAPES
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "doca_buf_array.h"
#include "doca_dma.h"
#include "host/gdk_gpu.h"
#include "gdk_sdk_dma_dev.h"

#include "doca_base_rig.h"

#define BUFS   64u
#define SIZE   4096u
#define SECOND 1000000000ull
#define OK(call) \
	do { \
		doca_error_t err_ = call; \
\
		cr_assert_eq(err_, DOCA_SUCCESS, "%s returned %s", #call, \
			     doca_error_get_name(err_)); \
	} while (0)

struct area {
	uint8_t *mem; /* BUFS buffers of SIZE bytes */
	struct doca_mmap *map;
	struct doca_buf_arr *arr;
	struct doca_gpu_buf_arr *on_gpu;
};

static struct doca_dev *dev;
static struct doca_gpu *gpu;
static struct area from, to;
static struct doca_dma *dma;
static struct doca_gpu_dma *handle;

static inline void area_open(struct area *a, uint32_t access)
{
	a->mem = aligned_alloc(4096, BUFS * SIZE);
	memset(a->mem, 0, BUFS * SIZE);
	OK(doca_mmap_create(&a->map));
	OK(doca_mmap_add_dev(a->map, dev));
	OK(doca_mmap_set_memrange(a->map, a->mem, BUFS * SIZE));
	OK(doca_mmap_set_permissions(a->map, access));
	OK(doca_mmap_start(a->map));
	OK(doca_buf_arr_create(BUFS, &a->arr));
	OK(doca_buf_arr_set_target_gpu(a->arr, gpu));
	OK(doca_buf_arr_set_params(a->arr, a->map, SIZE, 0));
	OK(doca_buf_arr_start(a->arr));
	OK(doca_buf_arr_get_gpu_handle(a->arr, &a->on_gpu));
}

static inline void area_close(struct area *a)
{
	OK(doca_buf_arr_destroy(a->arr));
	OK(doca_mmap_destroy(a->map));
	free(a->mem);
}

/* Opens all but the object. access: of the destination. */
static inline void base_open_on(const char *name, uint32_t access)
{
	unsigned int i;

	dev = rig_open();
	OK(doca_gpu_create(name, &gpu));
	area_open(&from, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE);
	area_open(&to, access);
	for (i = 0; i < BUFS * SIZE; i++)
		from.mem[i] = (uint8_t)(i * 2654435761u >> 11);
}

static inline void base_open(uint32_t access)
{
	base_open_on("host", access);
}

static inline void base_close(void)
{
	area_close(&from);
	area_close(&to);
	OK(doca_gpu_destroy(gpu));
	OK(doca_dev_close(dev));
}

static inline void dma_start(enum gdk_dma_engine engine, uint32_t requests)
{
	OK(doca_dma_create(dev, &dma));
	OK(gdk_dma_set_engine(dma, engine));
	OK(gdk_dma_set_queue_size(dma, requests));
	OK(doca_ctx_set_datapath_on_gpu(doca_dma_as_ctx(dma), gpu));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	OK(doca_dma_get_gpu_handle(dma, &handle));
}

static inline void dma_stop(void)
{
	OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(doca_dma_destroy(dma));
}

static inline struct doca_gpu_buf *buf_of(struct area *a, unsigned int i)
{
	struct doca_gpu_buf *buf = NULL;

	OK(doca_gpu_dev_buf_get_buf(a->on_gpu, i, &buf));
	return buf;
}

static inline doca_error_t copy(unsigned int i, uint64_t soff, unsigned int j, uint64_t doff,
				uint64_t len)
{
	return doca_gpu_dev_dma_memcpy(handle, buf_of(&from, i), soff, buf_of(&to, j), doff, len);
}

#endif
