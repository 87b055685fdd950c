/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of the RDMA library: two RDMA objects of one process, which are connected to each other
 * by one or more connections, and for each a buffer array of which the other has a remote one.
 * Kernels are functions of this process (GPU "host").
 */
#ifndef RDMA_RIG_H
#define RDMA_RIG_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doca_buf_array.h"
#include "doca_dev.h"
#include "doca_gpunetio.h"
#include "doca_mmap.h"
#include "doca_pe.h"
#include "doca_rdma.h"
#include "gdk_sdk_rdma_dev.h"

#define RIG_BYTES 65536u
#define RIG_LIMIT 40000000000ull /* time limit of waits, ns */
#define RIG_FLAGS \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE | \
	 DOCA_ACCESS_FLAG_RDMA_READ)
/* Prints a call that fails, and aborts. */
#define OK(call) \
	do { \
		doca_error_t err_ = call; \
\
		if (err_ != DOCA_SUCCESS) { \
			fprintf(stderr, "%s:%d: %s returned %s\n", __FILE__, __LINE__, #call, \
				doca_error_get_name(err_)); \
			abort(); \
		} \
	} while (0)

/* Memory, and buffers of `size` bytes in it. */
struct rig_mem {
	uint8_t *mem;
	struct doca_mmap *map, *remote_map; /* remote_map: as the other side sees it */
	struct doca_buf_arr *arr, *remote_arr;
	struct doca_gpu_buf_arr *bufs, *remote; /* for kernels */
};

struct rig_side {
	struct doca_rdma *rdma;
	struct doca_gpu_dev_rdma *dev;
	struct doca_gpu_dev_rdma_r *recv;
	struct doca_rdma_connection *conn[16];
	const void *details[16];
	size_t details_len[16];
	struct rig_mem m;
};

struct rig_how {
	uint32_t conns, send, recv; /* 0: 1, 64, 64 */
	size_t bytes, buf;	    /* of the memory, and of a buffer; 0: RIG_BYTES, 256 */
	uint32_t flags;		    /* permissions; 0: RIG_FLAGS */
	enum doca_gpu_dev_verbs_nic_handler handler;
	uint32_t gid; /* 1 + the index; 0: not set */
};

struct rig {
	struct doca_dev *nic;
	struct doca_gpu *gpu;
	struct rig_how how;
	struct rig_side a, b;
};

static inline struct doca_dev *rig_nic(void)
{
	struct doca_devinfo **list;
	struct doca_dev *dev;
	uint32_t num = 0;

	OK(doca_devinfo_create_list(&list, &num));
	OK(num ? doca_dev_open(list[0], &dev) : DOCA_ERROR_NOT_FOUND);
	OK(doca_devinfo_destroy_list(list));
	return dev;
}

static inline struct doca_buf_arr *rig_buf_arr(struct rig *r, struct doca_mmap *map,
					       struct doca_gpu_buf_arr **dev)
{
	struct doca_buf_arr *arr;

	OK(doca_buf_arr_create(r->how.bytes / r->how.buf, &arr));
	OK(doca_buf_arr_set_params(arr, map, r->how.buf, 0));
	OK(doca_buf_arr_set_target_gpu(arr, r->gpu));
	OK(doca_buf_arr_start(arr));
	OK(doca_buf_arr_get_gpu_handle(arr, dev));
	return arr;
}

static inline void rig_mem_open(struct rig *r, struct rig_mem *m)
{
	const void *desc;
	size_t len;

	m->mem = aligned_alloc(4096, r->how.bytes);
	memset(m->mem, 0, r->how.bytes);
	OK(doca_mmap_create(&m->map));
	OK(doca_mmap_add_dev(m->map, r->nic));
	OK(doca_mmap_set_memrange(m->map, m->mem, r->how.bytes));
	OK(doca_mmap_set_permissions(m->map, RIG_FLAGS));
	OK(doca_mmap_start(m->map));
	OK(doca_mmap_export_rdma(m->map, r->nic, &desc, &len));
	OK(doca_mmap_create_from_export(NULL, desc, len, r->nic, &m->remote_map));
	m->arr = rig_buf_arr(r, m->map, &m->bufs);
	m->remote_arr = rig_buf_arr(r, m->remote_map, &m->remote);
}

static inline void rig_mem_close(struct rig_mem *m)
{
	OK(doca_buf_arr_destroy(m->arr));
	OK(doca_buf_arr_destroy(m->remote_arr));
	OK(doca_mmap_destroy(m->map));
	OK(doca_mmap_destroy(m->remote_map));
	free(m->mem);
}

static inline struct doca_rdma *rig_rdma(const struct rig *r)
{
	struct doca_rdma *rdma;

	OK(doca_rdma_create(r->nic, &rdma));
	OK(doca_rdma_set_permissions(rdma, r->how.flags));
	OK(doca_rdma_set_send_queue_size(rdma, r->how.send));
	OK(doca_rdma_set_recv_queue_size(rdma, r->how.recv));
	OK(doca_rdma_set_max_num_connections(rdma, r->how.conns));
	OK(doca_rdma_set_grh_enabled(rdma, true));
	OK(gdk_rdma_set_nic_handler(rdma, r->how.handler));
	if (r->how.gid)
		OK(doca_rdma_set_gid_index(rdma, r->how.gid - 1));
	OK(doca_ctx_set_datapath_on_gpu(doca_rdma_as_ctx(rdma), r->gpu));
	return rdma;
}

static inline void rig_side_open(struct rig *r, struct rig_side *s)
{
	uint32_t i;

	s->rdma = rig_rdma(r);
	OK(doca_ctx_start(doca_rdma_as_ctx(s->rdma)));
	OK(gdk_rdma_set_wait_limit(s->rdma, RIG_LIMIT));
	OK(doca_rdma_get_gpu_handle(s->rdma, &s->dev));
	OK(doca_gpu_dev_rdma_get_recv(s->dev, &s->recv));
	for (i = 0; i < r->how.conns; i++)
		OK(doca_rdma_export(s->rdma, &s->details[i], &s->details_len[i], &s->conn[i]));
	rig_mem_open(r, &s->m);
}

static inline void rig_connect(struct rig *r)
{
	uint32_t i;

	for (i = 0; i < r->how.conns; i++) {
		OK(doca_rdma_connect(r->a.rdma, r->b.details[i], r->b.details_len[i],
				     r->a.conn[i]));
		OK(doca_rdma_connect(r->b.rdma, r->a.details[i], r->a.details_len[i],
				     r->b.conn[i]));
	}
}

/* With defaults, and no objects. */
static inline void rig_base(struct rig *r, struct rig_how how)
{
	memset(r, 0, sizeof(*r));
	how.conns = how.conns ? how.conns : 1;
	how.send = how.send ? how.send : 64;
	how.recv = how.recv ? how.recv : 64;
	how.bytes = how.bytes ? how.bytes : RIG_BYTES;
	how.buf = how.buf ? how.buf : 256;
	how.flags = how.flags ? how.flags : RIG_FLAGS;
	r->how = how;
	r->nic = rig_nic();
	OK(doca_gpu_create("host", &r->gpu));
}

/* Without the connection. */
static inline void rig_create(struct rig *r, struct rig_how how)
{
	rig_base(r, how);
	rig_side_open(r, &r->a);
	rig_side_open(r, &r->b);
}

static inline void rig_begin(struct rig *r, struct rig_how how)
{
	rig_create(r, how);
	rig_connect(r);
}

static inline void rig_side_close(struct rig_side *s)
{
	OK(doca_ctx_stop(doca_rdma_as_ctx(s->rdma)));
	OK(doca_rdma_destroy(s->rdma));
	rig_mem_close(&s->m);
}

static inline void rig_close(struct rig *r)
{
	OK(doca_gpu_destroy(r->gpu));
	OK(doca_dev_close(r->nic));
}

static inline void rig_end(struct rig *r)
{
	rig_side_close(&r->a);
	rig_side_close(&r->b);
	rig_close(r);
}

/* A buffer of a side, and the same buffer for the other side. */
static inline struct doca_gpu_buf *rig_buf(struct rig_side *s, uint64_t i)
{
	struct doca_gpu_buf *buf = NULL;

	OK(doca_gpu_dev_buf_get_buf(s->m.bufs, i, &buf));
	return buf;
}

static inline struct doca_gpu_buf *rig_remote(struct rig_side *s, uint64_t i)
{
	struct doca_gpu_buf *buf = NULL;

	OK(doca_gpu_dev_buf_get_buf(s->m.remote, i, &buf));
	return buf;
}

#endif
