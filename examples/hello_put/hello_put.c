/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The program of README.md: a queue pair that is connected to itself puts a line of text into
 * other memory of the same process. endpoint.c creates and connects the queue pair.
 */
#include <stdio.h>
#include <string.h>

#include "common.h"
#include "device/gdk/onesided_dev.h"

#define SHARED DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU /* all threads may post to the QP */

int main(int argc, char **argv)
{
	struct ex_options opt = { .gpu = "host", .gid_index = -1 };
	struct doca_gpu_dev_verbs_qp *qp; /* used by the threads that post */
	struct doca_gpu_dev_verbs_addr from, to;
	doca_gpu_dev_verbs_ticket_t ticket;
	struct ex_endpoint ep;
	int rc = ex_no_options(argc, argv); /* --help, --version */

	if (rc >= 0)
		return rc;
	if (ex_endpoint_open(&ep, &opt)) /* opens GPU and NIC, creates the queue pair */
		return 1;
	rc = ex_payload_alloc(&ep, 128, false) || ex_endpoint_connect(&ep, &ep.local) ||
	     ex_check(doca_gpu_verbs_get_qp_dev(ep.qp->qp_gverbs, &qp), "device queue pair");
	if (!rc) {
		strcpy((char *)ep.payload.cpu_ptr, "put by a thread, carried by a NIC");
		from = gdk_addr(ep.payload.addr, gdk_key(ep.payload.mr->lkey));
		to = gdk_addr(ep.local.addr + 64, gdk_key(ep.local.rkey));
		rc = gdk_put(qp, to, from, 64, &ticket, gdk_how(SHARED, GDK_AUTO, GDK_THREAD, 0));
		rc = rc ? rc : gdk_wait(qp, ticket, SHARED);
		printf("status %d: %s\n", rc, (char *)ep.payload.cpu_ptr + 64);
	}
	ex_endpoint_close(&ep);
	return rc != 0;
}
