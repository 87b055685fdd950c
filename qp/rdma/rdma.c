/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* RDMA objects: options, and the start and stop of their contexts. */
#include "qp/rdma/rdma.h"

#include <stdlib.h>

#include "core/gpu/gpu.h"
#include "core/log/log.h"

#define DEFAULT_SIZE	   128u
#define SIZE_MAX_OF_QUEUES 32768u
#define MAX_CONNS	   4096u
#define ACCESS_ALL \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | \
	 DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC | \
	 DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING)

/* ---- context ---- */

static doca_error_t start(struct doca_ctx *ctx)
{
	struct doca_rdma *rdma = gdk_to_rdma(ctx);
	doca_error_t err;

	if (!ctx->gpu) {
		gdk_err("doca_ctx_start: only kernels can use an RDMA context; call "
			"doca_ctx_set_datapath_on_gpu() first");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	err = gdk_rdma_port_open(rdma);
	if (err != DOCA_SUCCESS)
		return err;
	rdma->conns = calloc(rdma->max_conns, sizeof(*rdma->conns));
	if (!rdma->conns) {
		gdk_err("no memory for %u connections", rdma->max_conns);
		return DOCA_ERROR_NO_MEMORY;
	}
	rdma->num_conns = 0;
	rdma->wait_limit = GDK_WAIT_LIMIT_NS;
	err = gdk_rdma_memory_create(rdma);
	if (err != DOCA_SUCCESS) {
		free(rdma->conns);
		rdma->conns = NULL;
	}
	return err;
}

static doca_error_t stop(struct doca_ctx *ctx)
{
	struct doca_rdma *rdma = gdk_to_rdma(ctx);
	doca_error_t err = gdk_rdma_connections_destroy(rdma);

	if (err == DOCA_SUCCESS)
		err = gdk_rdma_memory_destroy(rdma);
	if (err != DOCA_SUCCESS)
		return err;
	free(rdma->conns);
	rdma->conns = NULL;
	return DOCA_SUCCESS;
}

static bool progress(struct doca_ctx *ctx)
{
	return gdk_rdma_deliver(gdk_to_rdma(ctx));
}

static const struct gdk_ctx_ops ops = {
	.what = "RDMA context",
	.on_gpu = true,
	.start = start,
	.stop = stop,
	.progress = progress,
};

/* ---- objects ---- */

doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma)
{
	struct doca_rdma *new;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(rdma);
	new = calloc(1, sizeof(*new));
	if (!new) {
		gdk_err("no memory for an RDMA object");
		return DOCA_ERROR_NO_MEMORY;
	}
	gdk_ctx_init(&new->ctx, &ops, dev);
	new->permissions = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
	new->send_size = DEFAULT_SIZE;
	new->recv_size = DEFAULT_SIZE;
	new->max_conns = 1;
	new->gid_index = GDK_RDMA_GID_AUTO;
	new->nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO;
	atomic_fetch_add(&dev->users, 1);
	*rdma = new;
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_destroy(struct doca_rdma *rdma)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	err = gdk_ctx_fini(&rdma->ctx);
	if (err != DOCA_SUCCESS)
		return err;
	atomic_fetch_sub(&rdma->ctx.dev->users, 1);
	free(rdma);
	return DOCA_SUCCESS;
}

struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma)
{
	GDK_CHECK_PTR_OR(NULL, rdma);
	return &rdma->ctx;
}

doca_error_t doca_rdma_cap_task_write_is_supported(const struct doca_devinfo *devinfo)
{
	GDK_CHECK_PTR(devinfo);
	return DOCA_SUCCESS;
}

/* ---- options ---- */

doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma, uint32_t permissions)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_ARG(!(permissions & ~(uint32_t)ACCESS_ALL),
		      "permissions 0x%x (expected a set of 0x%x)", permissions, ACCESS_ALL);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err == DOCA_SUCCESS)
		rdma->permissions = permissions;
	return err;
}

doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma, uint32_t send_queue_size)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_RANGE(send_queue_size, 1, SIZE_MAX_OF_QUEUES);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err == DOCA_SUCCESS)
		rdma->send_size = send_queue_size;
	return err;
}

doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma, uint32_t recv_queue_size)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_RANGE(recv_queue_size, 1, SIZE_MAX_OF_QUEUES);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err == DOCA_SUCCESS)
		rdma->recv_size = recv_queue_size;
	return err;
}

doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma, bool grh_enabled)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err == DOCA_SUCCESS)
		rdma->grh = grh_enabled;
	return err;
}

doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_RANGE(gid_index, 0, 255);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err == DOCA_SUCCESS)
		rdma->gid_index = gid_index;
	return err;
}

doca_error_t doca_rdma_set_max_num_connections(struct doca_rdma *rdma, uint32_t max_num_connections)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_RANGE(max_num_connections, 1, MAX_CONNS);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err == DOCA_SUCCESS)
		rdma->max_conns = max_num_connections;
	return err;
}

doca_error_t gdk_rdma_set_nic_handler(struct doca_rdma *rdma,
				      enum doca_gpu_dev_verbs_nic_handler nic_handler)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_ENUM(nic_handler, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err == DOCA_SUCCESS)
		rdma->nic_handler = nic_handler;
	return err;
}

doca_error_t
doca_rdma_set_connection_state_callbacks(struct doca_rdma *rdma,
					 doca_rdma_connection_request_cb_t request_cb,
					 doca_rdma_connection_established_cb_t established_cb,
					 doca_rdma_connection_failure_cb_t failure_cb,
					 doca_rdma_connection_disconnection_cb_t disconnection_cb)
{
	doca_error_t err;

	(void)request_cb; /* no connection manager calls it */
	GDK_CHECK_PTR(rdma);
	err = gdk_ctx_must_be_idle(&rdma->ctx, __func__);
	if (err != DOCA_SUCCESS)
		return err;
	rdma->callbacks = (struct gdk_rdma_callbacks){
		.established = established_cb,
		.failure = failure_cb,
		.disconnection = disconnection_cb,
	};
	return DOCA_SUCCESS;
}

doca_error_t doca_rdma_get_gpu_handle(const struct doca_rdma *rdma,
				      struct doca_gpu_dev_rdma **gpu_rdma)
{
	doca_error_t err;

	GDK_CHECK_PTR(rdma);
	GDK_CHECK_PTR(gpu_rdma);
	err = gdk_rdma_must_run(rdma, __func__);
	if (err == DOCA_SUCCESS)
		*gpu_rdma = rdma->on_gpu;
	return err;
}

/* ---- additions ---- */

doca_error_t gdk_rdma_abort(struct doca_rdma *rdma)
{
	const uint32_t one = 1;
	doca_error_t err;
	uint32_t i;

	GDK_CHECK_PTR(rdma);
	err = gdk_rdma_must_run(rdma, __func__);
	for (i = 0; err == DOCA_SUCCESS && i < rdma->num_conns; i++)
		err = gdk_verbs_qp_abort(rdma->conns[i]->qp->qp_gverbs);
	if (err == DOCA_SUCCESS)
		err = gdk_rdma_srq_store(rdma, offsetof(struct gdk_qp_state, abort_word), &one,
					 sizeof(one));
	return err;
}

doca_error_t gdk_rdma_set_wait_limit(struct doca_rdma *rdma, uint64_t ns)
{
	doca_error_t err;
	uint32_t i;

	GDK_CHECK_PTR(rdma);
	err = gdk_rdma_must_run(rdma, __func__);
	for (i = 0; err == DOCA_SUCCESS && i < rdma->num_conns; i++)
		err = gdk_verbs_qp_set_wait_limit(rdma->conns[i]->qp->qp_gverbs, ns);
	if (err == DOCA_SUCCESS)
		err = gdk_rdma_srq_store(rdma, offsetof(struct gdk_qp_state, wait_limit_ns), &ns,
					 sizeof(ns));
	if (err == DOCA_SUCCESS)
		rdma->wait_limit = ns;
	return err;
}
