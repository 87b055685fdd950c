/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A CUDA program outside gdaki's tree: a GPU thread puts a message through a NIC. Without a GPU a
 * CPU thread does it (cpu_thread.c).
 */
#include <cuda_runtime.h>

#include <doca_gpunetio_device.h>

#include "../endpoint.h"
#include "cpu_thread.h"

__global__ void put(struct doca_gpu_dev_verbs_qp *qp, struct message message, int *status)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	struct doca_gpu_dev_verbs_addr from, to;

	from = gdk_addr(message.from, gdk_key(message.lkey));
	to = gdk_addr(message.to, gdk_key(message.rkey));
	doca_gpu_dev_verbs_put(qp, to, from, message.len, &ticket);
	*status = doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket);
}

static int put_by_gpu(struct doca_gpu_dev_verbs_qp *qp, const struct message *message)
{
	int *status;
	int rc;

	CHECK(cudaMallocManaged(&status, sizeof(*status)));
	*status = -1;
	put<<<1, 1>>>(qp, *message, status);
	CHECK(cudaDeviceSynchronize());
	rc = *status;
	CHECK(cudaFree(status));
	return rc;
}

int main()
{
	struct doca_gpu_dev_verbs_qp *qp;
	struct message message;
	struct endpoint ep;
	char gpu[32] = "host";
	int rc;

	if (cudaDeviceGetPCIBusId(gpu, sizeof(gpu), 0) != cudaSuccess)
		strcpy(gpu, "host");
	endpoint_open(&ep, gpu, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO);
	endpoint_connect(&ep);
	message_fill(&ep);
	message.from = (uintptr_t)ep.gpu_ptr;
	message.to = message.from + BYTES;
	message.len = BYTES;
	message.lkey = ep.mr->lkey;
	message.rkey = ep.mr->rkey;
	CHECK(doca_gpu_verbs_get_qp_dev(ep.qp->qp_gverbs, &qp));
	rc = strcmp(gpu, "host") ? put_by_gpu(qp, &message) : put_by_cpu(qp, &message);
	rc = message_verify(&ep, rc);
	endpoint_close(&ep);
	return rc;
}
