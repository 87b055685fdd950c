/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Opens and closes the queue of a DMA object. The queue pair is a high-level one. All copies of a
 * queue share one result of the copy engine: its contents are not used.
 */
#include "qp/dma/queue.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu.h"
#include "core/log/log.h"
#include "gdk_sdk_dma_dev.h"

#define RESULT_LEN 64u

const char *gdk_dma_engine_text(enum gdk_dma_engine engine)
{
	switch (engine) {
	case GDK_DMA_ENGINE_AUTO:
		return "automatic choice";
	case GDK_DMA_ENGINE_COPY:
		return "copy engine";
	case GDK_DMA_ENGINE_RDMA_WRITE:
		return "RDMA write";
	}
	return "?";
}

static const char *name_of(const struct doca_dev *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

static doca_error_t choose(struct gdk_dma_queue *q, enum gdk_dma_engine want)
{
	const struct gdk_caps *caps = &q->dev->caps;

	if (want == GDK_DMA_ENGINE_COPY && !caps->copy_engine) {
		gdk_err("%s: the NIC has no copy engine; select GDK_DMA_ENGINE_RDMA_WRITE or _AUTO",
			name_of(q->dev));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	q->engine = want;
	if (want == GDK_DMA_ENGINE_AUTO)
		q->engine = caps->copy_engine ? GDK_DMA_ENGINE_COPY : GDK_DMA_ENGINE_RDMA_WRITE;
	q->max = q->engine == GDK_DMA_ENGINE_COPY ? 1ull << caps->log_copy_max
						  : DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE;
	gdk_info("%s: DMA copies by %s, up to %llu bytes a request%s", name_of(q->dev),
		 gdk_dma_engine_text(q->engine), (unsigned long long)q->max,
		 caps->copy_engine ? "" : ": the NIC has no copy engine");
	return DOCA_SUCCESS;
}

static doca_error_t create_qp(struct gdk_dma_queue *q, uint32_t requests)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = q->gpu,
		.net_dev = q->dev,
		.sq_nwqe = (uint16_t)requests,
		.nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
	};
	uint32_t flags = q->engine == GDK_DMA_ENGINE_COPY ? GDK_QP_HL_COPY_ENGINE : 0;
	doca_error_t err = gdk_verbs_create_qp_hl(&attr, flags, &q->qp);

	if (err)
		return err;
	err = gdk_dma_connect(q->dev, q->qp->qp);
	if (err || q->qp->nic_handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
		return err;
	return doca_gpu_verbs_create_service(&q->service)
		       ?: doca_gpu_verbs_service_monitor_qp(q->service, q->qp->qp_gverbs);
}

static doca_error_t register_result(struct gdk_dma_queue *q)
{
	int sys_err;

	if (q->engine != GDK_DMA_ENGINE_COPY)
		return DOCA_SUCCESS;
	if (posix_memalign(&q->result, RESULT_LEN, RESULT_LEN)) {
		q->result = NULL;
		gdk_err("no memory for the results of a copy engine");
		return DOCA_ERROR_NO_MEMORY;
	}
	errno = 0;
	q->result_mr = ibv_reg_mr(q->dev->pd, q->result, RESULT_LEN, IBV_ACCESS_LOCAL_WRITE);
	if (q->result_mr)
		return DOCA_SUCCESS;
	sys_err = errno;
	gdk_err("%s: cannot register %u bytes for the results of the copy engine: %s",
		name_of(q->dev), RESULT_LEN, strerror(sys_err));
	return sys_err == ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
}

static doca_error_t write_struct(struct gdk_dma_queue *q)
{
	struct doca_gpu_dma image = {
		.max = q->max,
		.by_write = q->engine == GDK_DMA_ENGINE_RDMA_WRITE,
	};
	doca_error_t err = doca_gpu_verbs_get_qp_dev(q->qp->qp_gverbs, &image.qp);
	void *on_gpu;

	if (q->result) {
		image.result = htobe64((uintptr_t)q->result);
		/* the MMO control word is 0, and the key is the second word of the segment */
		image.result_key = htole64((uint64_t)htobe32(q->result_mr->lkey) << 32);
	}
	if (!err)
		err = doca_gpu_mem_alloc(q->gpu, sizeof(image), 64, DOCA_GPU_MEM_TYPE_GPU, &on_gpu,
					 NULL);
	if (err)
		return err;
	q->on_gpu = on_gpu;
	return gdk_gpu_write(q->gpu, on_gpu, &image, sizeof(image));
}

doca_error_t gdk_dma_queue_open(struct gdk_dma_queue *q, struct doca_dev *dev, doca_gpu_t *gpu,
				enum gdk_dma_engine want, uint32_t requests)
{
	doca_error_t err;

	memset(q, 0, sizeof(*q));
	q->dev = dev;
	q->gpu = gpu;
	err = choose(q, want) ?: create_qp(q, requests) ?: register_result(q) ?: write_struct(q);
	if (err)
		gdk_dma_queue_close(q);
	return err;
}

static doca_error_t drop_result(struct gdk_dma_queue *q)
{
	int rc = q->result_mr ? ibv_dereg_mr(q->result_mr) : 0;

	if (rc) {
		gdk_err("%s: cannot deregister the results of the copy engine: %s", name_of(q->dev),
			strerror(rc));
		return DOCA_ERROR_DRIVER;
	}
	q->result_mr = NULL;
	free(q->result);
	q->result = NULL;
	return DOCA_SUCCESS;
}

doca_error_t gdk_dma_queue_close(struct gdk_dma_queue *q)
{
	doca_error_t err = DOCA_SUCCESS;

	if (q->service)
		err = doca_gpu_verbs_destroy_service(q->service);
	if (err)
		return err;
	q->service = NULL;
	if (q->qp)
		err = doca_gpu_verbs_destroy_qp_hl(q->qp);
	if (err)
		return err;
	q->qp = NULL;
	if (q->on_gpu)
		err = doca_gpu_mem_free(q->gpu, q->on_gpu);
	if (err)
		return err;
	q->on_gpu = NULL;
	return drop_result(q);
}
