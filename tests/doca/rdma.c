/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls each function of the RDMA library, host and device, with arguments of the types that
 * NVIDIA's sample and NIXL pass. tests/doca_calls.sh compiles this file as C11, C++17 and CUDA, and
 * links it. It is not executed: main() does nothing without arguments.
 */
#include <stddef.h>
#include <stdint.h>

#include <doca_buf_array.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_gpunetio.h>
#include <doca_pe.h>
#include <doca_rdma.h>

#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_rdma.cuh>

#define CALL(call) \
	do { \
		doca_error_t status = call; \
\
		if (status != DOCA_SUCCESS) \
			return status; \
	} while (0)

struct objects {
	struct doca_dev *dev;
	struct doca_devinfo *info;
	struct doca_gpu *gpu;
	struct doca_rdma *rdma;
	struct doca_ctx *ctx;
	struct doca_gpu_dev_rdma *gpu_rdma;
	struct doca_rdma_connection *connection;
	struct doca_gpu_verbs_qp *qp;
	const void *details;
	size_t details_len;
	int events;
};

/* ---- host ---- */

static void on_request(struct doca_rdma_connection *connection, union doca_data ctx_user_data)
{
	struct objects *o = (struct objects *)ctx_user_data.ptr;

	o->events += doca_rdma_connection_accept(connection, NULL, 0) != DOCA_SUCCESS;
}

static void on_event(struct doca_rdma_connection *connection, union doca_data connection_user_data,
		     union doca_data ctx_user_data)
{
	struct objects *o = (struct objects *)ctx_user_data.ptr;

	(void)connection_user_data;
	o->connection = connection;
	o->events++;
}

static doca_error_t configure(struct objects *o)
{
	const uint32_t permissions = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
				     DOCA_ACCESS_FLAG_RDMA_WRITE;
	union doca_data data;

	data.ptr = o;
	CALL(doca_rdma_cap_task_write_is_supported((const struct doca_devinfo *)o->info));
	CALL(doca_rdma_create(o->dev, &o->rdma));
	o->ctx = doca_rdma_as_ctx(o->rdma);
	CALL(doca_rdma_set_permissions(o->rdma, permissions));
	CALL(doca_rdma_set_gid_index(o->rdma, 0));
	CALL(doca_rdma_set_send_queue_size(o->rdma, 8192));
	CALL(doca_ctx_set_datapath_on_gpu(o->ctx, o->gpu));
	CALL(doca_rdma_set_recv_queue_size(o->rdma, 8192));
	CALL(doca_rdma_set_grh_enabled(o->rdma, true));
	CALL(doca_rdma_set_max_num_connections(o->rdma, 2));
	CALL(gdk_rdma_set_nic_handler(o->rdma, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO));
	CALL(doca_rdma_set_connection_state_callbacks(o->rdma, on_request, on_event, on_event,
						      on_event));
	CALL(doca_ctx_set_user_data(o->ctx, data));
	return doca_ctx_start(o->ctx);
}

static doca_error_t connect_both(struct objects *o)
{
	struct doca_rdma_addr *addr = NULL;
	union doca_data data;
	uint32_t index;

	data.u64 = 0;
	CALL(doca_rdma_get_gpu_handle(o->rdma, &o->gpu_rdma));
	CALL(doca_rdma_export(o->rdma, &o->details, &o->details_len, &o->connection));
	CALL(doca_rdma_connect(o->rdma, o->details, o->details_len, o->connection));
	CALL(doca_rdma_connection_set_user_data(o->connection, data));
	CALL(gdk_rdma_connection_get_qp(o->connection, &o->qp));
	CALL(gdk_rdma_connection_get_index(o->connection, &index));
	CALL(gdk_rdma_set_wait_limit(o->rdma, 1000000000));
	CALL(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "192.0.2.1", 13579, &addr));
	CALL(doca_rdma_connect_to_addr(o->rdma, addr, data));
	CALL(doca_rdma_addr_destroy(addr));
	CALL(doca_rdma_start_listen_to_port(o->rdma, 13579));
	return doca_rdma_stop_listen_to_port(o->rdma, 13579);
}

static doca_error_t close_all(struct objects *o)
{
	CALL(doca_rdma_connection_disconnect(o->connection));
	CALL(gdk_rdma_abort(o->rdma));
	CALL(doca_ctx_stop(o->ctx));
	return doca_rdma_destroy(o->rdma);
}

/* ---- device ---- */

GDK_FN doca_error_t post(struct doca_gpu_dev_rdma *rdma, struct doca_gpu_buf *to,
			 struct doca_gpu_buf *from)
{
	uint8_t flag[1] = { 1 };
	uint64_t base = 70000;
	uint32_t thread = 3, conn = 0, position, mask, num;
	int buf_index = 0;

	CALL(doca_gpu_dev_rdma_write_strong(rdma, conn, to, 0, from, 0, 128, buf_index + thread,
					    DOCA_GPU_RDMA_WRITE_FLAG_IMM));
	CALL(doca_gpu_dev_rdma_send_strong(rdma, conn, from, 0, 128, buf_index + thread,
					   DOCA_GPU_RDMA_SEND_FLAG_IMM));
	CALL(doca_gpu_dev_rdma_write_inline_strong(rdma, conn, to, buf_index, flag, sizeof(flag), 0,
						   DOCA_GPU_RDMA_WRITE_FLAG_NONE));
	CALL(doca_gpu_dev_rdma_commit_strong(rdma, conn));
	CALL(doca_gpu_rdma_get_info(rdma, conn, &position, &mask));
	CALL(doca_gpu_dev_rdma_write_inline_weak(rdma, conn, to, buf_index, flag, sizeof(flag), 0,
						 DOCA_GPU_RDMA_WRITE_FLAG_NONE, position & mask));
	CALL(doca_gpu_dev_rdma_read_weak(rdma, 0, to, 0, from, 0, 128, conn,
					 (base + thread) & 0xFFFF));
	CALL(doca_gpu_dev_rdma_write_weak(rdma, 0, to, 0, from, 0, 128, conn,
					  DOCA_GPU_RDMA_WRITE_FLAG_NONE, (base + thread) & 0xFFFF));
	CALL(gdk_rdma_send_weak(rdma, 0, gdk_rdma_addr(from, 64), 64, 0,
				DOCA_GPU_RDMA_SEND_FLAG_NONE, thread));
	CALL(doca_gpu_dev_rdma_commit_weak(rdma, conn, 4));
	CALL(gdk_rdma_read_strong(rdma, conn, to, 0, from, 0, 64));
	return doca_gpu_dev_rdma_wait_all(rdma, &num);
}

GDK_FN doca_error_t receive(struct doca_gpu_dev_rdma *rdma, struct doca_gpu_buf *buf)
{
	struct doca_gpu_dev_rdma_r *r;
	uint32_t num, imm_val[2], conn_idx[2];

	CALL(doca_gpu_dev_rdma_get_recv(rdma, &r));
	CALL(doca_gpu_dev_rdma_recv_strong(r, NULL, 0, 0, 0));
	CALL(doca_gpu_dev_rdma_recv_strong(r, buf, 128, 128, 0));
	CALL(doca_gpu_dev_rdma_recv_commit_strong(r));
	CALL(doca_gpu_dev_rdma_recv_weak(r, buf, 8192, 0, 0, 2));
	CALL(doca_gpu_dev_rdma_recv_commit_weak(r, 1));
	CALL(doca_gpu_dev_rdma_recv_wait_all(r, DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB, &num, NULL, NULL));
	return doca_gpu_dev_rdma_recv_wait_all(r, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &num, imm_val,
					       conn_idx);
}

#ifdef __CUDACC__
__global__ void kernel(struct doca_gpu_dev_rdma *rdma, struct doca_gpu_buf *to,
		       struct doca_gpu_buf *from, doca_error_t *err)
{
	err[0] = post(rdma, to, from);
	err[1] = receive(rdma, from);
}
#endif

int main(int argc, char **argv)
{
	struct objects o;

	(void)argv;
	if (argc < 2)
		return 0;
	o.dev = NULL;
	o.info = NULL;
	o.gpu = NULL;
	o.events = 0;
#ifndef __CUDACC__
	if (argc > 2)
		return post(NULL, NULL, NULL) || receive(NULL, NULL);
#endif
	return configure(&o) || connect_both(&o) || close_all(&o);
}
