/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One side of the transfer, with the interface of the DOCA SDK: GPU, NIC, buffers, an RDMA object
 * with its connections, and the kernel. Each step that fails prints its error.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doca_buf_array.h"
#include "doca_dev.h"
#include "doca_gpunetio.h"
#include "doca_rdma.h"

#include "grid.h"
#include "rdma_write.h"

#define SEND_QUEUE 1024u /* at least the threads of a block, whose weak writes are not committed */
#define ACCESS	   (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE)

#define TRY(call) \
	do { \
		doca_error_t err_ = call; \
\
		if (err_ != DOCA_SUCCESS) \
			return ex_error("%s: %s", #call, doca_error_get_descr(err_)); \
	} while (0)

struct area {
	struct doca_mmap *map;
	struct doca_buf_arr *bufs;
};

struct rw_side {
	const struct rw_options *opt;
	const struct ex_grid_ops *grid;
	struct doca_gpu *gpu;
	struct doca_dev *dev;
	struct doca_rdma *rdma;
	bool running; /* the context of rdma */
	struct doca_rdma_connection **connections;
	struct rw_blob *details;
	struct area local, remote;
	/* GPU addresses */
	void *mem; /* of the local buffers */
	struct rw_job *job;
	uint32_t *imm, *conn; /* results of the receives */
	int *status;	      /* of each thread */
	enum rw_mode mode;
	uint8_t *expected; /* what the buffers contain after the round */
};

static uint32_t num_bufs(const struct rw_side *s)
{
	return s->opt->connections * s->opt->writes;
}

static size_t num_bytes(const struct rw_side *s)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return ((size_t)num_bufs(s) * s->opt->size + page - 1) / page * page;
}

/* ---- opening ---- */

static int open_nic(struct rw_side *s)
{
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE] = "";
	const char *want = s->opt->device;
	doca_error_t err = DOCA_ERROR_NOT_FOUND;
	struct doca_devinfo **list;
	uint32_t num, i;

	TRY(doca_devinfo_create_list(&list, &num));
	for (i = 0; i < num && err == DOCA_ERROR_NOT_FOUND; i++)
		if (!want ||
		    (doca_devinfo_get_ibdev_name(list[i], name, sizeof(name)) == DOCA_SUCCESS &&
		     !strcmp(name, want)))
			err = doca_dev_open(list[i], &s->dev);
	doca_devinfo_destroy_list(list);
	if (err == DOCA_SUCCESS)
		return 0;
	return ex_error("cannot open %s%s: %s (ibv_devices lists the RDMA devices)",
			want ? "RDMA device " : "an RDMA device", want ? want : "",
			doca_error_get_descr(err));
}

int rw_open(struct rw_side **side, const struct rw_options *opt)
{
	struct rw_side *s = calloc(1, sizeof(*s));

	*side = s;
	if (!s)
		return ex_error("no memory");
	s->opt = opt;
	s->grid = ex_grid_get(opt->gpu);
	if (!s->grid || s->grid->open(opt->gpu))
		return -1;
	TRY(doca_gpu_create(opt->gpu, &s->gpu));
	return open_nic(s);
}

/* ---- creation ---- */

static int alloc(struct rw_side *s, size_t len, void *ptr)
{
	void *mem;

	TRY(doca_gpu_mem_alloc(s->gpu, len, (size_t)sysconf(_SC_PAGESIZE), DOCA_GPU_MEM_TYPE_GPU,
			       &mem, NULL));
	memcpy(ptr, &mem, sizeof(mem));
	return 0;
}

static int open_bufs(struct rw_side *s, struct area *a)
{
	TRY(doca_buf_arr_create(num_bufs(s), &a->bufs));
	TRY(doca_buf_arr_set_target_gpu(a->bufs, s->gpu));
	TRY(doca_buf_arr_set_params(a->bufs, a->map, s->opt->size, 0));
	TRY(doca_buf_arr_start(a->bufs));
	return 0;
}

/* GPU memory is registered by a dmabuf if the GPU can export one. */
static int create_buffers(struct rw_side *s)
{
	struct area *a = &s->local;
	size_t len = num_bytes(s);
	doca_error_t err;
	int fd = -1;

	s->expected = malloc(len);
	if (!s->expected)
		return ex_error("no memory for %zu bytes", len);
	if (alloc(s, len, &s->mem))
		return -1;
	TRY(doca_mmap_create(&a->map));
	TRY(doca_mmap_add_dev(a->map, s->dev));
	TRY(doca_mmap_set_permissions(a->map, ACCESS));
	if (strcmp(s->opt->gpu, "host") &&
	    doca_gpu_dmabuf_fd(s->gpu, s->mem, len, &fd) == DOCA_SUCCESS)
		err = doca_mmap_set_dmabuf_memrange(a->map, fd, s->mem, 0, len);
	else
		err = doca_mmap_set_memrange(a->map, s->mem, len);
	if (err == DOCA_SUCCESS)
		err = doca_mmap_start(a->map);
	if (fd >= 0)
		close(fd);
	if (err != DOCA_SUCCESS)
		return ex_error("registration of the buffers: %s", doca_error_get_descr(err));
	return open_bufs(s, a);
}

static int create_rdma(struct rw_side *s)
{
	const struct rw_options *opt = s->opt;

	TRY(doca_rdma_create(s->dev, &s->rdma));
	TRY(doca_rdma_set_permissions(s->rdma, ACCESS));
	TRY(doca_rdma_set_send_queue_size(s->rdma, SEND_QUEUE));
	TRY(doca_rdma_set_recv_queue_size(s->rdma, num_bufs(s)));
	TRY(doca_rdma_set_max_num_connections(s->rdma, opt->connections));
	TRY(doca_rdma_set_grh_enabled(s->rdma, true));
	if (opt->gid_index != UINT32_MAX)
		TRY(doca_rdma_set_gid_index(s->rdma, opt->gid_index));
	TRY(gdk_rdma_set_nic_handler(s->rdma, (enum doca_gpu_dev_verbs_nic_handler)opt->handler));
	TRY(doca_ctx_set_datapath_on_gpu(doca_rdma_as_ctx(s->rdma), s->gpu));
	TRY(doca_ctx_start(doca_rdma_as_ctx(s->rdma)));
	s->running = true;
	TRY(gdk_rdma_set_wait_limit(s->rdma, opt->timeout_s * 1000000000ull));
	return 0;
}

int rw_create(struct rw_side *s)
{
	uint32_t i, num = s->opt->connections;

	s->connections = calloc(num, sizeof(*s->connections));
	s->details = calloc(num, sizeof(*s->details));
	if (!s->connections || !s->details)
		return ex_error("no memory for %u connections", num);
	if (create_buffers(s) || create_rdma(s) || alloc(s, sizeof(*s->job), &s->job) ||
	    alloc(s, num_bufs(s) * sizeof(*s->imm), &s->imm) ||
	    alloc(s, num_bufs(s) * sizeof(*s->conn), &s->conn) ||
	    alloc(s, s->opt->threads * sizeof(*s->status), &s->status))
		return -1;
	for (i = 0; i < num; i++) /* connection i has index i in kernels */
		TRY(doca_rdma_export(s->rdma, &s->details[i].bytes, &s->details[i].len,
				     &s->connections[i]));
	return 0;
}

/* ---- descriptions ---- */

struct rw_blob rw_describe_connection(struct rw_side *s, uint32_t i)
{
	return s->details[i];
}

int rw_describe_buffers(struct rw_side *s, struct rw_blob *blob)
{
	TRY(doca_mmap_export_rdma(s->local.map, s->dev, &blob->bytes, &blob->len));
	return 0;
}

int rw_connect(struct rw_side *s, uint32_t i, struct rw_blob blob)
{
	TRY(doca_rdma_connect(s->rdma, blob.bytes, blob.len, s->connections[i]));
	return 0;
}

int rw_open_remote_buffers(struct rw_side *s, struct rw_blob blob)
{
	TRY(doca_mmap_create_from_export(NULL, blob.bytes, blob.len, s->dev, &s->remote.map));
	return open_bufs(s, &s->remote);
}

int rw_get_qp(struct rw_side *s, struct doca_gpu_verbs_qp **qp)
{
	TRY(gdk_rdma_connection_get_qp(s->connections[0], qp));
	return 0;
}

/* ---- the kernel ---- */

/* The data of a round differs from that of the others. The server's buffers are empty at first. */
static int fill(struct rw_side *s)
{
	size_t i, len = num_bytes(s);
	int rc;

	memset(s->expected, 0, len);
	rc = s->opt->server ? 0 : s->grid->copy(s->mem, s->expected, len);
	for (i = 0; i < (size_t)num_bufs(s) * s->opt->size; i++)
		s->expected[i] = (uint8_t)((i * 2654435761u >> 13) + s->mode * 101u + 1);
	return s->opt->server ? s->grid->copy(s->mem, s->expected, len) : rc;
}

int rw_launch(struct rw_side *s, enum rw_mode mode)
{
	const struct rw_options *opt = s->opt;
	struct rw_job rw = {
		.mode = mode,
		.connections = opt->connections,
		.writes = opt->writes,
		.size = opt->size,
		.imm = s->imm,
		.conn = s->conn,
	};
	struct ex_job job = {
		.num_queues = 1,
		.blocks = 1,
		.threads = opt->threads,
		.client = opt->server != NULL,
		.arg = s->job,
		.status = s->status,
	};

	s->mode = mode;
	TRY(doca_rdma_get_gpu_handle(s->rdma, &rw.rdma));
	TRY(doca_buf_arr_get_gpu_handle(s->local.bufs, &rw.local));
	if (s->remote.bufs)
		TRY(doca_buf_arr_get_gpu_handle(s->remote.bufs, &rw.remote));
	if (fill(s) || s->grid->copy(s->job, &rw, sizeof(rw)))
		return -1;
	return s->grid->launch(&job) ? ex_error("cannot start the kernel") : 0;
}

int rw_done(struct rw_side *s)
{
	int rc = s->grid->done();

	return rc < 0 ? ex_error("the kernel failed") : rc;
}

double rw_seconds(struct rw_side *s)
{
	return s->grid->seconds();
}

int rw_abort(struct rw_side *s)
{
	TRY(gdk_rdma_abort(s->rdma));
	return 0;
}

/* ---- checks ---- */

int rw_check_kernel(struct rw_side *s)
{
	int status[RW_THREADS_MAX];
	uint32_t i;

	if (s->grid->copy(status, s->status, s->opt->threads * sizeof(*status)))
		return ex_error("cannot read the results of the kernel");
	for (i = 0; i < s->opt->threads; i++)
		if (status[i])
			return ex_error("thread %u: %s", i,
					doca_error_get_descr((doca_error_t)status[i]));
	return 0;
}

/* Each write was received once, on its connection. seen has a byte of each buffer. */
static int check_receives(const struct rw_side *s, const uint32_t *imm, const uint32_t *conn,
			  uint8_t *seen)
{
	uint32_t i, buf;

	for (i = 0; i < num_bufs(s); i++) {
		buf = imm[i] - rw_imm(0);
		if (buf >= num_bufs(s) || seen[buf])
			return ex_error("receive %u: wrong immediate value %u", i, imm[i]);
		if (conn[i] != buf / s->opt->writes)
			return ex_error("receive %u: connection %u (expected %u)", i, conn[i],
					buf / s->opt->writes);
		seen[buf] = 1;
	}
	return 0;
}

static int check_data(const struct rw_side *s, const uint8_t *found)
{
	size_t i, len = num_bytes(s);

	for (i = 0; i < len; i++)
		if (found[i] != s->expected[i])
			return ex_error("byte %zu of buffer %zu is 0x%02x (expected 0x%02x)",
					i % s->opt->size, i / s->opt->size, found[i],
					s->expected[i]);
	return 0;
}

int rw_check_data(struct rw_side *s)
{
	uint32_t num = num_bufs(s), *imm = calloc(num, sizeof(*imm));
	uint32_t *conn = calloc(num, sizeof(*conn));
	uint8_t *seen = calloc(num, 1), *found = malloc(num_bytes(s));
	struct rw_job rw;
	int rc = -1;

	if (!imm || !conn || !seen || !found)
		ex_error("no memory for %zu bytes", num_bytes(s));
	else if (s->grid->copy(&rw, s->job, sizeof(rw)) ||
		 s->grid->copy(imm, s->imm, num * sizeof(*imm)) ||
		 s->grid->copy(conn, s->conn, num * sizeof(*conn)) ||
		 s->grid->copy(found, s->mem, num_bytes(s)))
		ex_error("cannot read the received data");
	else if (rw.received != num)
		ex_error("%u receives (expected %u)", rw.received, num);
	else
		rc = check_receives(s, imm, conn, seen) || check_data(s, found) ? -1 : 0;
	free(imm);
	free(conn);
	free(seen);
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

static void release(struct rw_side *s, void *mem)
{
	if (mem)
		doca_gpu_mem_free(s->gpu, mem);
}

void rw_close(struct rw_side *s)
{
	if (!s)
		return;
	if (s->running)
		doca_ctx_stop(doca_rdma_as_ctx(s->rdma));
	if (s->rdma)
		doca_rdma_destroy(s->rdma);
	close_area(&s->remote);
	close_area(&s->local);
	release(s, s->mem);
	release(s, s->job);
	release(s, s->imm);
	release(s, s->conn);
	release(s, s->status);
	if (s->dev)
		doca_dev_close(s->dev);
	if (s->gpu)
		doca_gpu_destroy(s->gpu);
	if (s->grid)
		s->grid->close();
	free(s->connections);
	free(s->details);
	free(s->expected);
	free(s);
}
