/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
#include "cpu_thread.h"

#include <device/gdk/onesided_dev.h>

#define SHARED DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU

int put_by_cpu(struct doca_gpu_dev_verbs_qp *qp, const struct message *message)
{
	doca_gpu_dev_verbs_ticket_t ticket;
	int rc = gdk_put(qp, gdk_addr(message->to, gdk_key(message->rkey)),
			 gdk_addr(message->from, gdk_key(message->lkey)), message->len, &ticket,
			 gdk_how(SHARED, GDK_AUTO, GDK_THREAD, 0));

	return rc ? rc : gdk_wait(qp, ticket, SHARED);
}
