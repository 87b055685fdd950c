/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The RDMA device of an endpoint: selects device, port and GID, opens the device, and reports what
 * is present if a selection does not fit.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

#define READS_MAX 16 /* outstanding reads and atomics of a queue pair */

/* Prints an error and the RDMA devices with the states of their ports. */
static void list_devices(struct ibv_device **list, int num, uint8_t port_num, const char *error)
{
	char text[1024] = "";
	size_t at = 0;

	for (int i = 0; i < num && at < sizeof(text); i++) {
		struct ibv_context *ctx = ibv_open_device(list[i]);
		struct ibv_port_attr port;
		const char *state = "cannot be opened";

		if (ctx)
			state = ibv_query_port(ctx, port_num, &port)
					? "cannot be queried"
					: ibv_port_state_str(port.state);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s (port %u: %s)",
				       at ? ", " : "", ibv_get_device_name(list[i]), port_num,
				       state);
		if (ctx)
			ibv_close_device(ctx);
	}
	ex_error("%s; present: %s", error, text);
}

static struct ibv_device *find_device(struct ibv_device **list, int num, const char *name,
				      uint8_t port_num)
{
	char error[128];

	for (int i = 0; i < num; i++)
		if (name ? !strcmp(ibv_get_device_name(list[i]), name) : num == 1)
			return list[i];
	if (name)
		snprintf(error, sizeof(error), "no RDMA device has the name '%.60s' (-d)", name);
	else
		snprintf(error, sizeof(error), "%d RDMA devices: select one with -d", num);
	if (num)
		list_devices(list, num, port_num, error);
	else
		ex_error("no RDMA device found: check with ibv_devices of rdma-core that the NIC's "
			 "driver is loaded, or use the software NIC: softnic-run -- PROGRAM");
	return NULL;
}

static struct ibv_context *open_device(const char *name, uint8_t port_num)
{
	int num = 0;
	struct ibv_device **list = ibv_get_device_list(&num);
	struct ibv_device *device = find_device(list, list ? num : 0, name, port_num);
	struct ibv_context *ctx = device ? ibv_open_device(device) : NULL;

	if (device && !ctx)
		ex_error("cannot open RDMA device '%s': %s%s", ibv_get_device_name(device),
			 strerror(errno),
			 errno == EACCES || errno == EPERM
				 ? " (access to /dev/infiniband/uverbs* is needed)"
				 : "");
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

bool ex_gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* Returns the index of the first RoCEv2 GID with an IPv4 address, otherwise of the first RoCEv2
 * GID, otherwise -1. */
static int default_gid(struct ex_endpoint *ep)
{
	int found = -1;

	for (int i = 0; i < ep->port.gid_tbl_len; i++) {
		struct ibv_gid_entry e;

		if (ibv_query_gid_ex(ep->ctx, ep->port_num, i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (ex_gid_is_ipv4(&e.gid))
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

static int pick_gid(struct ex_endpoint *ep, int wanted)
{
	union ibv_gid gid;
	int index = wanted;

	if (index < 0)
		index = ep->port.link_layer == IBV_LINK_LAYER_ETHERNET ? default_gid(ep) : 0;
	if (index < 0)
		return ex_error("the port has no RoCEv2 GID; give its interface an IP address");
	if (ibv_query_gid(ep->ctx, ep->port_num, index, &gid))
		return ex_error("invalid -l, --gid-index %d: the port has GIDs 0 to %d", index,
				ep->port.gid_tbl_len - 1);
	ep->gid_index = (uint8_t)index;
	memcpy(ep->local.gid, gid.raw, sizeof(ep->local.gid));
	return 0;
}

/* Reads and atomics that the device can have outstanding per queue pair, in both directions. */
static uint32_t max_reads(const struct ibv_device_attr *attr)
{
	int n = attr->max_qp_rd_atom < attr->max_qp_init_rd_atom ? attr->max_qp_rd_atom
								 : attr->max_qp_init_rd_atom;

	return n < 1 ? 1 : n > READS_MAX ? READS_MAX : (uint32_t)n;
}

int ex_nic_open(struct ex_endpoint *ep, const struct ex_options *opt)
{
	struct ibv_device_attr attr;
	const char *name;

	ep->port_num = opt->ib_port ? (uint8_t)opt->ib_port : 1;
	ep->ctx = open_device(opt->device, ep->port_num);
	if (!ep->ctx)
		return -1;
	name = ibv_get_device_name(ep->ctx->device);
	if (ibv_query_device(ep->ctx, &attr))
		return ex_error("cannot query RDMA device '%s': %s", name, strerror(errno));
	if (ep->port_num > attr.phys_port_cnt)
		return ex_error("invalid --ib-port %u: RDMA device '%s' has ports 1 to %u",
				ep->port_num, name, attr.phys_port_cnt);
	if (ibv_query_port(ep->ctx, ep->port_num, &ep->port))
		return ex_error("cannot query port %u of RDMA device '%s': %s", ep->port_num, name,
				strerror(errno));
	if (ep->port.state != IBV_PORT_ACTIVE)
		return ex_error("port %u of RDMA device '%s' is %s, not active: check the cable "
				"and the switch",
				ep->port_num, name, ibv_port_state_str(ep->port.state));
	ep->pd = ibv_alloc_pd(ep->ctx);
	if (!ep->pd)
		return ex_error("cannot allocate a protection domain: %s", strerror(errno));
	if (ex_check(doca_verbs_dev_open(ep->pd, &ep->dev), "doca_verbs_dev_open"))
		return -1;
	ep->local.reads = max_reads(&attr);
	ep->local.lid = ep->port.lid;
	ep->local.mtu = ep->port.active_mtu;
	return pick_gid(ep, opt->gid_index);
}
