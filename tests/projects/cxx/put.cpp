/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A C++ program outside gdaki's tree: a CPU thread puts a message through a NIC, with the same
 * templates as a kernel.
 */
#include <memory>

#include <doca_gpunetio_device.h>

#include "../endpoint.h"

static int put(endpoint *ep)
{
	doca_gpu_dev_verbs_qp *qp;
	doca_gpu_dev_verbs_ticket_t ticket;
	doca_gpu_dev_verbs_addr from, to;

	CHECK(doca_gpu_verbs_get_qp_dev(ep->qp->qp_gverbs, &qp));
	from = gdk_addr(reinterpret_cast<uintptr_t>(ep->gpu_ptr), gdk_key(ep->mr->lkey));
	to = gdk_addr(reinterpret_cast<uintptr_t>(ep->gpu_ptr) + BYTES, gdk_key(ep->mr->rkey));
	doca_gpu_dev_verbs_put(qp, to, from, BYTES, &ticket);
	return doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket);
}

int main()
{
	auto ep = std::make_unique<endpoint>();

	endpoint_open(ep.get(), "host", DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO);
	endpoint_connect(ep.get());
	message_fill(ep.get());
	int rc = message_verify(ep.get(), put(ep.get()));
	endpoint_close(ep.get());
	return rc;
}
