/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Connects a queue pair of a port to itself and puts data. A CPU thread posts, so no GPU is needed.
 * It shows that the GID, the path and the DMA of the NIC work.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "device/gdk/onesided_dev.h"

#include "nic.h"

#define BYTES	 4096
#define LIMIT_NS 10000000000ull /* of the put */
#define SHARED	 DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU

struct port_arg {
	const char *device;
	int port;
};

/* Returns 0, or the negative errno of the put. */
static int put_and_compare(struct ex_endpoint *ep, struct doca_gpu_dev_verbs_qp *qp)
{
	uint8_t *data = ep->payload.cpu_ptr;
	struct doca_gpu_dev_verbs_addr from, to;
	doca_gpu_dev_verbs_ticket_t ticket;
	int rc;

	for (int i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i * 7 + 1);
	from = gdk_addr(ep->payload.addr, gdk_key(ep->payload.mr->lkey));
	to = gdk_addr(ep->payload.addr + BYTES, gdk_key(ep->payload.mr->rkey));
	rc = gdk_put(qp, to, from, BYTES, &ticket, gdk_how(SHARED, GDK_AUTO, GDK_THREAD, 0));
	rc = rc ? rc : gdk_wait(qp, ticket, SHARED);
	return rc ? rc : memcmp(data, data + BYTES, BYTES) ? -EBADMSG : 0;
}

static void report_put(struct dr_report *r, const char *scope, const struct ex_endpoint *ep, int rc)
{
	struct gdk_qp_error error = { 0 };

	if (!rc) {
		dr_add(r, scope, "loopback", DR_OK, NULL,
		       "a put of %d bytes from the port to itself arrives (GID index %d)", BYTES,
		       ep->gid_index);
		return;
	}
	(void)gdk_verbs_qp_get_error(ep->qp->qp_gverbs, &error);
	if (error.has_cqe)
		dr_add(r, scope, "loopback", DR_WARN, gdk_syndrome_cause(error.syndrome),
		       "a put from the port to itself fails: %s (syndrome 0x%x, vendor 0x%x)",
		       gdk_syndrome_text(error.syndrome), error.syndrome, error.vendor_err_synd);
	else
		dr_add(r, scope, "loopback", DR_WARN, NULL,
		       "a put from the port to itself fails: %s", strerror(-rc));
}

static int connect_to_itself(struct ex_endpoint *ep, const struct ex_options *opt,
			     struct doca_gpu_dev_verbs_qp **qp)
{
	if (ex_endpoint_open(ep, opt))
		return -1;
	if (ex_payload_alloc(ep, 2 * BYTES, false) || ex_endpoint_connect(ep, &ep->local) ||
	    ex_check(gdk_verbs_qp_set_wait_limit(ep->qp->qp_gverbs, LIMIT_NS), "wait limit") ||
	    ex_check(doca_gpu_verbs_get_qp_dev(ep->qp->qp_gverbs, qp), "device queue pair"))
		return -1;
	return 0;
}

static void probe_port(const struct dr_env *env, struct dr_report *r, const void *argument)
{
	const struct port_arg *arg = argument;
	struct ex_options opt = { .gpu = DR_HOST_GPU,
				  .device = arg->device,
				  .gid_index = -1,
				  .ib_port = (uint8_t)arg->port,
				  .timeout_s = env->timeout_s };
	struct doca_gpu_dev_verbs_qp *qp = NULL;
	struct ex_endpoint ep = { 0 };
	char scope[DR_NAME_LEN + 16];
	struct dr_log log;
	int rc;

	snprintf(scope, sizeof(scope), "%s port %d", arg->device, arg->port);
	dr_log_begin(&log);
	rc = connect_to_itself(&ep, &opt, &qp);
	if (rc)
		ex_endpoint_close(&ep);
	dr_log_end(&log);
	if (rc) {
		dr_add(r, scope, "loopback", DR_FAIL, NULL,
		       "a queue pair of the port cannot be connected: %s", log.text);
		return;
	}
	dr_log_begin(&log);
	rc = put_and_compare(&ep, qp);
	report_put(r, scope, &ep, rc);
	ex_endpoint_close(&ep);
	dr_log_end(&log);
}

void dr_check_loopback(const struct dr_env *env, struct dr_report *r, const char *device)
{
	char scope[DR_NAME_LEN + 16];
	struct dr_names ports;

	(void)dr_list(env, &ports, "/sys/class/infiniband/%s/ports", device);
	for (int i = 0; i < ports.num; i++) {
		struct port_arg arg = { device, atoi(ports.name[i]) };

		if (env->port && env->port != arg.port)
			continue;
		snprintf(scope, sizeof(scope), "%s port %d", device, arg.port);
		if (!dr_failed(r, scope, NULL))
			dr_in_child(env, r, scope, "loopback", probe_port, &arg);
	}
}
