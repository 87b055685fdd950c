/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Copies buffers of host memory to GPU memory by the NIC, triggered by a kernel, with the interface
 * of the DOCA SDK. Each step that fails prints its error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doca_buf_array.h"
#include "doca_dev.h"
#include "doca_dma.h"
#include "doca_gpunetio.h"

#include "dma_memcpy.h"
#include "grid.h"

#define NAP_NS	50000 /* between two polls for the end of the kernel */
#define LIMIT_S 60    /* time limit of the kernel */
#define ACCESS	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE)

#define TRY(call) \
	do { \
		doca_error_t err_ = call; \
\
		if (err_ != DOCA_SUCCESS) { \
			fprintf(stderr, "error: %s: %s\n", #call, doca_error_get_descr(err_)); \
			return -1; \
		} \
	} while (0)

struct area {
	void *mem; /* GPU address of the destination */
	struct doca_mmap *map;
	struct doca_buf_arr *bufs;
};

struct copier {
	const struct dm_options *opt;
	const struct ex_grid_ops *grid;
	struct doca_dev *dev;
	struct doca_gpu *gpu;
	struct area from, to;
	struct doca_dma *dma;
	struct dm_job *job; /* in memory that threads can access, as status */
	int *status;
	bool running; /* the context of dma */
};

static size_t bytes(const struct copier *c)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return ((size_t)c->opt->size * DM_BUFFERS + page - 1) / page * page;
}

/* ---- opening ---- */

static int open_nic(struct copier *c)
{
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE] = "";
	struct doca_devinfo **list;
	uint32_t num, i;
	doca_error_t err = DOCA_ERROR_NOT_FOUND;

	TRY(doca_devinfo_create_list(&list, &num));
	for (i = 0; i < num && err == DOCA_ERROR_NOT_FOUND; i++)
		if (!c->opt->device ||
		    (doca_devinfo_get_ibdev_name(list[i], name, sizeof(name)) == DOCA_SUCCESS &&
		     !strcmp(name, c->opt->device)))
			err = doca_dev_open(list[i], &c->dev);
	doca_devinfo_destroy_list(list);
	if (err == DOCA_SUCCESS)
		return 0;
	fprintf(stderr, "error: cannot open the RDMA device %s: %s (ibv_devices lists them)\n",
		c->opt->device ? c->opt->device : "", doca_error_get_descr(err));
	return -1;
}

/* GPU memory is registered by a dmabuf if the GPU can export one. */
static int set_range(struct copier *c, struct area *a, bool on_gpu)
{
	int fd;

	if (on_gpu && strcmp(c->opt->gpu, "host") &&
	    doca_gpu_dmabuf_fd(c->gpu, a->mem, bytes(c), &fd) == DOCA_SUCCESS)
		TRY(doca_mmap_set_dmabuf_memrange(a->map, fd, a->mem, 0, bytes(c)));
	else
		TRY(doca_mmap_set_memrange(a->map, a->mem, bytes(c)));
	return 0;
}

static int open_area(struct copier *c, struct area *a, bool on_gpu)
{
	TRY(doca_mmap_create(&a->map));
	TRY(doca_mmap_add_dev(a->map, c->dev));
	TRY(doca_mmap_set_permissions(a->map, ACCESS));
	if (set_range(c, a, on_gpu))
		return -1;
	TRY(doca_mmap_start(a->map));
	TRY(doca_buf_arr_create(DM_BUFFERS, &a->bufs));
	TRY(doca_buf_arr_set_target_gpu(a->bufs, c->gpu));
	TRY(doca_buf_arr_set_params(a->bufs, a->map, c->opt->size, 0));
	TRY(doca_buf_arr_start(a->bufs));
	return 0;
}

static int open_memory(struct copier *c)
{
	size_t i, len = bytes(c);
	uint8_t *from;

	if (posix_memalign(&c->from.mem, (size_t)sysconf(_SC_PAGESIZE), len)) {
		c->from.mem = NULL;
		fprintf(stderr, "error: no memory for %zu bytes\n", len);
		return -1;
	}
	from = c->from.mem;
	for (i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 2654435761u >> 13);
	TRY(doca_gpu_mem_alloc(c->gpu, len, (size_t)sysconf(_SC_PAGESIZE), DOCA_GPU_MEM_TYPE_GPU,
			       &c->to.mem, NULL));
	return open_area(c, &c->from, false) || open_area(c, &c->to, true) ? -1 : 0;
}

static int open_dma(struct copier *c, struct dm_result *result)
{
	enum gdk_dma_engine engine;

	TRY(doca_dma_create(c->dev, &c->dma));
	if (c->opt->by_write)
		TRY(gdk_dma_set_engine(c->dma, GDK_DMA_ENGINE_RDMA_WRITE));
	TRY(doca_ctx_set_datapath_on_gpu(doca_dma_as_ctx(c->dma), c->gpu));
	TRY(doca_ctx_start(doca_dma_as_ctx(c->dma)));
	c->running = true;
	TRY(gdk_dma_get_engine(c->dma, &engine, &result->max_bytes));
	result->engine = gdk_dma_engine_text(engine);
	return 0;
}

static int open_all(struct copier *c, struct dm_result *result)
{
	c->grid = ex_grid_get(c->opt->gpu);
	if (!c->grid || c->grid->open(c->opt->gpu))
		return -1;
	TRY(doca_gpu_create(c->opt->gpu, &c->gpu));
	return open_nic(c) || open_memory(c) || open_dma(c, result) ? -1 : 0;
}

/* ---- the kernel ---- */

static int fill_job(struct copier *c)
{
	struct dm_job job = { .size = c->opt->size, .copies = c->opt->copies };
	size_t len = c->opt->threads * sizeof(*c->status);
	void *mem;

	TRY(doca_dma_get_gpu_handle(c->dma, &job.dma));
	TRY(doca_buf_arr_get_gpu_handle(c->from.bufs, &job.from));
	TRY(doca_buf_arr_get_gpu_handle(c->to.bufs, &job.to));
	TRY(doca_gpu_mem_alloc(c->gpu, sizeof(job), 64, DOCA_GPU_MEM_TYPE_GPU, &mem, NULL));
	c->job = mem;
	TRY(doca_gpu_mem_alloc(c->gpu, len, 64, DOCA_GPU_MEM_TYPE_GPU, &mem, NULL));
	c->status = mem;
	return c->grid->copy(c->job, &job, sizeof(job));
}

/* Waits for the end of the kernel. After the time limit, an abort ends its threads' waits. */
static int wait_for_kernel(struct copier *c)
{
	const struct timespec nap = { 0, NAP_NS };
	time_t end = time(NULL) + LIMIT_S;
	bool aborted = false;
	int rc;

	while (!(rc = c->grid->done())) {
		nanosleep(&nap, NULL);
		if (time(NULL) < end)
			continue;
		if (aborted) {
			fprintf(stderr, "error: the kernel does not end\n");
			return -1;
		}
		aborted = true;
		end = time(NULL) + LIMIT_S;
		TRY(gdk_dma_abort(c->dma));
	}
	return rc < 0 ? -1 : 0;
}

static int check_status(struct copier *c)
{
	int *status = calloc(c->opt->threads, sizeof(*status));
	uint32_t i;
	int rc = -1;

	if (!status)
		return -1;
	if (c->grid->copy(status, c->status, c->opt->threads * sizeof(*status)))
		goto free_status;
	for (i = 0; i < c->opt->threads && !status[i]; i++)
		;
	rc = i < c->opt->threads ? -1 : 0;
	if (rc)
		fprintf(stderr, "error: thread %u: %s\n", i,
			doca_error_get_descr((doca_error_t)status[i]));
free_status:
	free(status);
	return rc;
}

static int copy(struct copier *c, struct dm_result *result)
{
	struct ex_job job = { .num_queues = 1, .blocks = 1, .threads = c->opt->threads };

	if (fill_job(c))
		return -1;
	job.arg = c->job;
	job.status = c->status;
	if (c->grid->launch(&job) || wait_for_kernel(c) || check_status(c))
		return -1;
	result->seconds = c->grid->seconds();
	return 0;
}

static int compare(struct copier *c, struct dm_result *result)
{
	uint32_t used = c->opt->copies < DM_BUFFERS ? c->opt->copies : DM_BUFFERS, i;
	uint8_t *found = malloc(bytes(c));
	const uint8_t *from = c->from.mem;
	size_t size = c->opt->size;
	int rc;

	if (!found)
		return -1;
	rc = c->grid->copy(found, c->to.mem, bytes(c));
	for (i = 0; !rc && i < used; i++)
		result->wrong += memcmp(found + i * size, from + i * size, size) != 0;
	free(found);
	return rc;
}

/* ---- closing ---- */

static void close_area(struct area *a)
{
	if (a->bufs)
		doca_buf_arr_destroy(a->bufs);
	if (a->map)
		doca_mmap_destroy(a->map);
}

static void close_all(struct copier *c)
{
	if (c->running)
		doca_ctx_stop(doca_dma_as_ctx(c->dma));
	if (c->dma)
		doca_dma_destroy(c->dma);
	close_area(&c->from);
	close_area(&c->to);
	if (c->job)
		doca_gpu_mem_free(c->gpu, c->job);
	if (c->status)
		doca_gpu_mem_free(c->gpu, c->status);
	if (c->to.mem)
		doca_gpu_mem_free(c->gpu, c->to.mem);
	free(c->from.mem);
	if (c->dev)
		doca_dev_close(c->dev);
	if (c->gpu)
		doca_gpu_destroy(c->gpu);
	if (c->grid)
		c->grid->close();
}

int dm_run(const struct dm_options *opt, struct dm_result *result)
{
	struct copier c = { .opt = opt };
	int rc;

	memset(result, 0, sizeof(*result));
	rc = open_all(&c, result) || copy(&c, result) || compare(&c, result) ? -1 : 0;
	close_all(&c);
	return rc;
}
