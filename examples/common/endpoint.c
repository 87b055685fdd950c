/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One side of an example: opens the GPU and the NIC, creates a high-level queue pair,
 * registers the payload, and connects the queue pair to the peer (RST, INIT, RTR, RTS). It
 * only uses the public API, so applications can copy it. The exchange with the peer is in
 * exchange.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define PORT_NUM       1
#define PAYLOAD_ALIGN  4096
#define PAYLOAD_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define ACK_TIMEOUT    14 /* 4.096 us << 14: 67 ms */
#define RETRIES	       7
#define HOP_LIMIT      64

/* Prints an error and the RDMA devices with the states of their ports. */
static void list_devices(struct ibv_device **list, int num, const char *error)
{
	char text[1024] = "";
	size_t at = 0;

	for (int i = 0; i < num && at < sizeof(text); i++) {
		struct ibv_context *ctx = ibv_open_device(list[i]);
		struct ibv_port_attr port;
		const char *state = "cannot be opened";

		if (ctx)
			state = ibv_query_port(ctx, PORT_NUM, &port)
					? "cannot be queried"
					: ibv_port_state_str(port.state);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s (port %d: %s)",
				       at ? ", " : "", ibv_get_device_name(list[i]), PORT_NUM,
				       state);
		if (ctx)
			ibv_close_device(ctx);
	}
	ex_error("%s; present: %s", error, text);
}

static struct ibv_device *find_device(struct ibv_device **list, int num, const char *name)
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
		list_devices(list, num, error);
	else
		ex_error("no RDMA device found: check with ibv_devices of rdma-core that the NIC's "
			 "driver is loaded, or use the software NIC: softnic-run -- PROGRAM");
	return NULL;
}

static struct ibv_context *open_device(const char *name)
{
	int num = 0;
	struct ibv_device **list = ibv_get_device_list(&num);
	struct ibv_device *device = find_device(list, list ? num : 0, name);
	struct ibv_context *ctx = device ? ibv_open_device(device) : NULL;

	if (device && !ctx)
		ex_error("cannot open RDMA device '%s': %s", ibv_get_device_name(device),
			 strerror(errno));
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static bool is_ipv4(const union ibv_gid *gid)
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

		if (ibv_query_gid_ex(ep->ctx, PORT_NUM, i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (is_ipv4(&e.gid))
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
	if (ibv_query_gid(ep->ctx, PORT_NUM, index, &gid))
		return ex_error("invalid -l, --gid-index %d: the port has GIDs 0 to %d", index,
				ep->port.gid_tbl_len - 1);
	ep->gid_index = (uint8_t)index;
	memcpy(ep->local.gid, gid.raw, sizeof(ep->local.gid));
	return 0;
}

static int open_nic(struct ex_endpoint *ep, const struct ex_options *opt)
{
	ep->ctx = open_device(opt->device);
	if (!ep->ctx)
		return -1;
	if (ibv_query_port(ep->ctx, PORT_NUM, &ep->port))
		return ex_error("cannot query port %d: %s", PORT_NUM, strerror(errno));
	if (ep->port.state != IBV_PORT_ACTIVE)
		return ex_error("port %d of RDMA device '%s' is %s, not active: check the cable "
				"and the switch",
				PORT_NUM, ibv_get_device_name(ep->ctx->device),
				ibv_port_state_str(ep->port.state));
	ep->pd = ibv_alloc_pd(ep->ctx);
	if (!ep->pd)
		return ex_error("cannot allocate a protection domain: %s", strerror(errno));
	if (ex_check(doca_verbs_dev_open(ep->pd, &ep->dev), "doca_verbs_dev_open"))
		return -1;
	ep->local.lid = ep->port.lid;
	ep->local.mtu = ep->port.active_mtu;
	return pick_gid(ep, opt->gid_index);
}

/* A CPU_PROXY queue pair needs a CPU thread that rings. A proxy service has such threads. AUTO may
 * choose CPU_PROXY, too, and the library logs a warning if no service runs then. */
static int start_service(struct ex_endpoint *ep, enum doca_gpu_dev_verbs_nic_handler handler)
{
	if (handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY &&
	    handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO)
		return 0;
	return ex_check(doca_gpu_verbs_create_service(&ep->service), "proxy service");
}

static int stop_service(struct ex_endpoint *ep)
{
	doca_gpu_verbs_service_t service = ep->service;

	ep->service = NULL;
	return service ? ex_check(doca_gpu_verbs_destroy_service(service), "destroy proxy service")
		       : 0;
}

/* Adds the queue pair to the service, or stops a service that it does not need. */
static int use_service(struct ex_endpoint *ep)
{
	if (ep->qp->nic_handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
		return stop_service(ep);
	return ex_check(doca_gpu_verbs_service_monitor_qp(ep->service, ep->qp->qp_gverbs),
			"proxy service, monitor");
}

static int create_qp(struct ex_endpoint *ep, const struct ex_options *opt)
{
	bool no_dbr = opt->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR;
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = ep->gpu,
		.net_dev = ep->dev,
		.ibpd = ep->pd,
		.sq_nwqe = EX_QUEUE_SIZE,
		.nic_handler = opt->handler,
		.mreg_type = DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_DEFAULT,
		.send_dbr_mode_ext = no_dbr ? DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW
					    : DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
	};

	if (start_service(ep, opt->handler) ||
	    ex_check(doca_gpu_verbs_create_qp_hl(&attr, &ep->qp), "queue pair") ||
	    ex_check(doca_verbs_qp_get_qpn(ep->qp->qp, &ep->local.qpn), "queue pair number"))
		return -1;
	return use_service(ep);
}

int ex_endpoint_open(struct ex_endpoint *ep, const struct ex_options *opt)
{
	struct timespec ts;

	*ep = (struct ex_endpoint){ 0 };
	clock_gettime(CLOCK_REALTIME, &ts);
	ep->local.psn = (uint32_t)(ts.tv_nsec ^ getpid() << 8) & 0xffffff;
	if (ex_check(doca_gpu_create(opt->gpu, &ep->gpu), opt->gpu) || open_nic(ep, opt) ||
	    create_qp(ep, opt)) {
		ex_endpoint_close(ep);
		return -1;
	}
	return 0;
}

static struct ibv_mr *register_dmabuf(struct ex_endpoint *ep)
{
	struct ex_payload *pl = &ep->payload;
	struct ibv_mr *mr;
	int fd;

	if (doca_gpu_get_dmabuf_fd(ep->gpu, pl->gpu_ptr, pl->len, &fd) != DOCA_SUCCESS)
		return NULL;
	mr = ibv_reg_dmabuf_mr(ep->pd, 0, pl->len, pl->addr, fd, PAYLOAD_ACCESS);
	close(fd);
	return mr;
}

int ex_payload_alloc(struct ex_endpoint *ep, size_t len, bool in_gpu)
{
	enum doca_gpu_mem_type type = in_gpu ? DOCA_GPU_MEM_TYPE_GPU : DOCA_GPU_MEM_TYPE_CPU_GPU;
	struct ex_payload *pl = &ep->payload;
	void *gpu_ptr, *cpu_ptr = NULL;

	pl->len = (len + PAYLOAD_ALIGN - 1) / PAYLOAD_ALIGN * PAYLOAD_ALIGN;
	if (ex_check(doca_gpu_mem_alloc(ep->gpu, pl->len, PAYLOAD_ALIGN, type, &gpu_ptr,
					in_gpu ? NULL : &cpu_ptr),
		     "payload memory"))
		return -1;
	pl->gpu_ptr = gpu_ptr;
	pl->cpu_ptr = cpu_ptr;
	pl->addr = (uintptr_t)(in_gpu ? gpu_ptr : cpu_ptr);
	if (in_gpu)
		pl->mr = register_dmabuf(ep);
	if (!pl->mr)
		pl->mr = ibv_reg_mr(ep->pd, (void *)(uintptr_t)pl->addr, pl->len, PAYLOAD_ACCESS);
	if (!pl->mr)
		return ex_error("cannot register payload of %zu bytes in %s memory: %s", pl->len,
				in_gpu ? "GPU" : "host", strerror(errno));
	ep->local.addr = pl->addr;
	ep->local.rkey = pl->mr->rkey;
	return 0;
}

/* Frees everything in reverse order. The service must be destroyed first, because it monitors the
 * QP. */
void ex_endpoint_close(struct ex_endpoint *ep)
{
	(void)stop_service(ep);
	if (ep->qp)
		ex_check(doca_gpu_verbs_destroy_qp_hl(ep->qp), "destroy queue pair");
	if (ep->payload.mr && ibv_dereg_mr(ep->payload.mr))
		ex_error("cannot deregister payload: %s", strerror(errno));
	if (ep->payload.gpu_ptr)
		ex_check(doca_gpu_mem_free(ep->gpu, ep->payload.gpu_ptr), "free payload memory");
	if (ep->dev)
		ex_check(doca_verbs_dev_close(ep->dev), "close device");
	if (ep->pd && ibv_dealloc_pd(ep->pd))
		ex_error("cannot free the protection domain: %s", strerror(errno));
	if (ep->ctx && ibv_close_device(ep->ctx))
		ex_error("cannot close the RDMA device: %s", strerror(errno));
	if (ep->gpu)
		ex_check(doca_gpu_destroy(ep->gpu), "destroy GPU");
	*ep = (struct ex_endpoint){ 0 };
}

/* Makes a call. If it fails, prints the call and the error, and returns -1 from the function that
 * uses the macro. */
#define SET(call) \
	do { \
		if (ex_check(call, #call)) \
			return -1; \
	} while (0)

static enum doca_verbs_addr_type addr_type(const struct ex_endpoint *ep)
{
	union ibv_gid gid;

	if (ep->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return ep->port.flags & IBV_QPF_GRH_REQUIRED ? DOCA_VERBS_ADDR_TYPE_IB_GRH
							     : DOCA_VERBS_ADDR_TYPE_IB_NO_GRH;
	memcpy(gid.raw, ep->local.gid, sizeof(gid.raw));
	return is_ipv4(&gid) ? DOCA_VERBS_ADDR_TYPE_IPv4 : DOCA_VERBS_ADDR_TYPE_IPv6;
}

static int fill_ah(const struct ex_endpoint *ep, const struct ex_peer *peer,
		   doca_verbs_ah_attr_t *ah)
{
	struct doca_verbs_gid gid;

	memcpy(gid.raw, peer->gid, sizeof(gid.raw));
	SET(doca_verbs_ah_attr_set_addr_type(ah, addr_type(ep)));
	SET(doca_verbs_ah_attr_set_gid(ah, gid));
	SET(doca_verbs_ah_attr_set_sgid_index(ah, ep->gid_index));
	SET(doca_verbs_ah_attr_set_hop_limit(ah, HOP_LIMIT));
	SET(doca_verbs_ah_attr_set_sl(ah, 0));
	SET(doca_verbs_ah_attr_set_dlid(ah, peer->lid));
	return 0;
}

static int fill_qp_attr(const struct ex_endpoint *ep, const struct ex_peer *peer,
			doca_verbs_ah_attr_t *ah, doca_verbs_qp_attr_t *attr)
{
	uint32_t mtu = peer->mtu < ep->local.mtu ? peer->mtu : ep->local.mtu;

	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return ex_error("invalid MTU code %u of the peer", peer->mtu);
	/* enum ibv_mtu counts from 1, enum doca_verbs_mtu_size from 0 */
	SET(doca_verbs_qp_attr_set_path_mtu(attr, (enum doca_verbs_mtu_size)(mtu - 1)));
	SET(doca_verbs_qp_attr_set_port_num(attr, PORT_NUM));
	SET(doca_verbs_qp_attr_set_pkey_index(attr, 0));
	SET(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	SET(doca_verbs_qp_attr_set_allow_remote_read(attr, 1));
	SET(doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC));
	SET(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	SET(doca_verbs_qp_attr_set_dest_qp_num(attr, peer->qpn));
	SET(doca_verbs_qp_attr_set_rq_psn(attr, peer->psn));
	SET(doca_verbs_qp_attr_set_sq_psn(attr, ep->local.psn));
	SET(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	SET(doca_verbs_qp_attr_set_ack_timeout(attr, ACK_TIMEOUT));
	SET(doca_verbs_qp_attr_set_retry_cnt(attr, RETRIES));
	SET(doca_verbs_qp_attr_set_rnr_retry(attr, 1));
	return 0;
}

static int walk_states(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr)
{
	static const struct {
		enum doca_verbs_qp_state next;
		int mask;
	} steps[] = {
		{ DOCA_VERBS_QP_STATE_INIT,
		  DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
			  DOCA_VERBS_QP_ATTR_ATOMIC_MODE | DOCA_VERBS_QP_ATTR_PKEY_INDEX |
			  DOCA_VERBS_QP_ATTR_PORT_NUM },
		{ DOCA_VERBS_QP_STATE_RTR,
		  DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
			  DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
			  DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER },
		{ DOCA_VERBS_QP_STATE_RTS,
		  DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
			  DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		SET(doca_verbs_qp_attr_set_next_state(attr, steps[i].next));
		SET(doca_verbs_qp_modify(qp, attr, steps[i].mask | DOCA_VERBS_QP_ATTR_NEXT_STATE));
	}
	return 0;
}

int ex_endpoint_connect(struct ex_endpoint *ep, const struct ex_peer *peer)
{
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr;
	int rc = -1;

	if (ex_check(doca_verbs_ah_attr_create(ep->dev, &ah), "address handle"))
		return -1;
	if (ex_check(doca_verbs_qp_attr_create(&attr), "queue pair attributes"))
		goto destroy_ah;
	if (!fill_ah(ep, peer, ah) && !fill_qp_attr(ep, peer, ah, attr))
		rc = walk_states(ep->qp->qp, attr);
	doca_verbs_qp_attr_destroy(attr);
destroy_ah:
	doca_verbs_ah_attr_destroy(ah);
	return rc;
}
