/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* A C program outside gdaki's tree: a CPU thread puts a message through a NIC. */
#include <device/gdk/onesided_dev.h>

#include "../endpoint.h"

#define SHARED DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define ANY    DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO

static int put(struct endpoint *ep)
{
	struct doca_gpu_dev_verbs_addr from, to;
	struct doca_gpu_dev_verbs_qp *qp;
	doca_gpu_dev_verbs_ticket_t ticket;
	int rc;

	CHECK(doca_gpu_verbs_get_qp_dev(ep->qp->qp_gverbs, &qp));
	from = gdk_addr((uintptr_t)ep->gpu_ptr, gdk_key(ep->mr->lkey));
	to = gdk_addr((uintptr_t)ep->gpu_ptr + BYTES, gdk_key(ep->mr->rkey));
	rc = gdk_put(qp, to, from, BYTES, &ticket, gdk_how(SHARED, ANY, GDK_THREAD, 0));
	return rc ? rc : gdk_wait(qp, ticket, SHARED);
}

int main(void)
{
	struct endpoint ep;
	int rc;

	endpoint_open(&ep, "host", ANY);
	endpoint_connect(&ep);
	message_fill(&ep);
	rc = message_verify(&ep, put(&ep));
	endpoint_close(&ep);
	return rc;
}
