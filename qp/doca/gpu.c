/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * doca_gpu_mem_alloc() and doca_gpu_destroy() of the SDK's interface. Blocks that the program
 * allocates are marked, because the library allocates blocks of the same GPU for its own objects
 * (exported queue pairs, semaphores, arrays of buffers). These objects must be destroyed first.
 */
#ifndef GDK_BOTH_SHAPES
#define GDK_BOTH_SHAPES
#endif

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/reclaim.h"
#include "host/doca_gpunetio.h"
#include "qp/doca/left.h"
#include "qp/doca/verbs/shape.h"

doca_error_t gdk_doca_gpu_mem_alloc(doca_gpu_t *gpu_dev, size_t size, size_t alignment,
				    enum doca_gpu_mem_type mtype, void **memptr_gpu,
				    void **memptr_cpu)
{
	doca_error_t err = doca_gpu_mem_alloc(gpu_dev, size, alignment, mtype, memptr_gpu,
					      memptr_cpu);

	if (err != DOCA_SUCCESS)
		return err;
	pthread_mutex_lock(&gpu_dev->lock);
	gdk_gpu_find_block(gpu_dev, *memptr_gpu)->of_program = true;
	pthread_mutex_unlock(&gpu_dev->lock);
	return DOCA_SUCCESS;
}

/* Returns the number of blocks of the program, their bytes, and the address of one of them. */
static unsigned int find_blocks(doca_gpu_t *gpu, size_t *bytes, void **one)
{
	unsigned int num = 0;
	size_t i;

	*bytes = 0;
	pthread_mutex_lock(&gpu->lock);
	for (i = 0; i < gpu->num_blocks; i++)
		if (gpu->blocks[i]->of_program) {
			num++;
			*bytes += gpu->blocks[i]->size;
			*one = (void *)gpu->blocks[i]->gpu_ptr;
		}
	pthread_mutex_unlock(&gpu->lock);
	return num;
}

/* Releases what the program left, if nothing else uses the GPU. */
static doca_error_t release(doca_gpu_t *gpu)
{
	const struct gdk_left left = gdk_doca_left(NULL, gpu);
	size_t bytes;
	void *one = NULL;
	unsigned int blocks = find_blocks(gpu, &bytes, &one);
	doca_error_t err;

	if (!(blocks || left.umems) || left.in_queues || atomic_load(&gpu->users) != (int)blocks)
		return DOCA_SUCCESS; /* doca_gpu_destroy() reports the users, if there are any */
	gdk_warn("GPU %s: doca_gpu_destroy releases %u memory blocks (%zu bytes) and %u umems that "
		 "the program has not freed",
		 gpu->name, blocks, bytes, left.umems);
	err = gdk_doca_release(NULL, gpu);
	while (err == DOCA_SUCCESS && find_blocks(gpu, &bytes, &one))
		err = doca_gpu_mem_free(gpu, one);
	return err;
}

doca_error_t gdk_doca_gpu_destroy(doca_gpu_t *gpu_dev)
{
	doca_error_t err;

	GDK_CHECK_PTR(gpu_dev);
	gdk_reclaim(gpu_dev, NULL);
	err = release(gpu_dev);
	return err != DOCA_SUCCESS ? err : doca_gpu_destroy(gpu_dev);
}
