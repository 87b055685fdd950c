/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A raw packet queue pair of libibverbs, with which the CPU sends and receives Ethernet frames. It
 * has nothing in common with the queues of the library, and so checks them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "ethernet.h"
#include "queues.h"

#define SENDS	 256u /* frames that are being sent */
#define RECEIVES 1024u
#define SLOT	 2048u /* bytes of a frame, at least ET_BYTES_MAX */

struct et_raw {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
	struct ibv_mr *mr;
	uint8_t *memory; /* slots of sends, then of receives */
	uint8_t mac[6];
	uint32_t posted, done; /* sends */
	uint64_t taken;	       /* slot of the frame that et_raw_poll() returned */
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!ctx)
		ex_error("cannot open the NIC %s", name);
	return ctx;
}

/* The MAC address is in the link-local address of GID 0 (EUI-64). */
static int get_mac(struct ibv_context *ctx, uint8_t mac[6])
{
	union ibv_gid gid;

	if (ibv_query_gid(ctx, 1, 0, &gid))
		return ex_error("cannot read GID 0 of the NIC");
	if (gid.raw[0] != 0xfe || gid.raw[11] != 0xff || gid.raw[12] != 0xfe)
		return ex_error("GID 0 of the NIC is not of its MAC address: is the port "
				"InfiniBand?");
	mac[0] = gid.raw[8] ^ 2;
	memcpy(mac + 1, gid.raw + 9, 2);
	memcpy(mac + 3, gid.raw + 13, 3);
	return 0;
}

int et_nic_mac(const char *device, uint8_t mac[6])
{
	struct ibv_context *ctx = open_device(device);
	int rc = ctx ? get_mac(ctx, mac) : -1;

	if (ctx)
		ibv_close_device(ctx);
	return rc;
}

/* ---- creation ---- */

static int post_receive(struct et_raw *r, uint64_t slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)r->memory + (SENDS + slot) * SLOT,
			       .length = SLOT,
			       .lkey = r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(r->qp, &wr, &bad) ? ex_error("cannot post a receive") : 0;
}

/* A NIC does not deliver frames of a process to the same process, unless the receiver allows it. */
static int create_qp(struct et_raw *r)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = r->send_cq,
		.recv_cq = r->recv_cq,
		.cap = { .max_send_wr = SENDS,
			 .max_recv_wr = RECEIVES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = r->pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	r->qp = mlx5dv_create_qp(r->ctx, &init, &dv);
	if (!r->qp && (errno == EPERM || errno == EACCES))
		return ex_error("a raw packet queue pair needs CAP_NET_RAW: run this as root");
	if (!r->qp)
		return ex_error("raw packet queue pair: %s", strerror(errno));
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		return ex_error("raw packet queue pair: no state INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE))
		return ex_error("raw packet queue pair: no state RTR");
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(r->qp, &attr, IBV_QP_STATE)
		       ? ex_error("raw packet queue pair: no state RTS")
		       : 0;
}

int et_raw_open(struct et_raw **raw, const char *device)
{
	const size_t bytes = (size_t)(SENDS + RECEIVES) * SLOT;
	struct et_raw *r = calloc(1, sizeof(*r));
	uint64_t i;

	*raw = r;
	if (!r)
		return ex_error("no memory");
	r->ctx = open_device(device);
	if (!r->ctx || get_mac(r->ctx, r->mac))
		return -1;
	r->memory = aligned_alloc(4096, bytes);
	r->pd = ibv_alloc_pd(r->ctx);
	r->send_cq = ibv_create_cq(r->ctx, SENDS, NULL, NULL, 0);
	r->recv_cq = ibv_create_cq(r->ctx, RECEIVES, NULL, NULL, 0);
	if (r->memory && r->pd)
		r->mr = ibv_reg_mr(r->pd, r->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!r->send_cq || !r->recv_cq || !r->mr)
		return ex_error("raw packet queue pair: cannot create CQs and memory");
	if (create_qp(r))
		return -1;
	for (i = 0; i < RECEIVES; i++)
		if (post_receive(r, i))
			return -1;
	return 0;
}

int et_raw_steer(struct et_raw *r, uint32_t dst_ip)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_ipv4 ip;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL,
			  .size = sizeof(rule),
			  .num_of_specs = 2,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
		.ip = { .type = IBV_FLOW_SPEC_IPV4, .size = sizeof(rule.ip) },
	};

	memcpy(rule.eth.val.dst_mac, r->mac, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	et_put16((uint8_t *)&rule.eth.val.ether_type, 0x0800);
	rule.eth.mask.ether_type = 0xffff;
	et_put32((uint8_t *)&rule.ip.val.dst_ip, dst_ip);
	rule.ip.mask.dst_ip = UINT32_MAX;
	r->flow = ibv_create_flow(r->qp, &rule.attr);
	return r->flow ? 0 : ex_error("flow rule of a raw packet queue pair: %s", strerror(errno));
}

/* ---- frames ---- */

uint8_t *et_raw_frame(struct et_raw *r)
{
	return r->posted - r->done < SENDS ? r->memory + (size_t)(r->posted % SENDS) * SLOT : NULL;
}

int et_raw_send(struct et_raw *r, uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)et_raw_frame(r),
			       .length = bytes,
			       .lkey = r->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	if (ibv_post_send(r->qp, &wr, &bad))
		return ex_error("cannot post a send");
	r->posted++;
	return 0;
}

int et_raw_poll(struct et_raw *r, const uint8_t **frame, uint32_t *bytes)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(r->send_cq, 1, &wc) == 1) {
		if (wc.status)
			return ex_error("a send failed: %s", ibv_wc_status_str(wc.status));
		r->done++;
	}
	if (ibv_poll_cq(r->recv_cq, 1, &wc) != 1)
		return 0;
	if (wc.status)
		return ex_error("a receive failed: %s", ibv_wc_status_str(wc.status));
	r->taken = wc.wr_id;
	*frame = r->memory + (SENDS + wc.wr_id) * SLOT;
	*bytes = wc.byte_len;
	return 1;
}

int et_raw_return(struct et_raw *r)
{
	return post_receive(r, r->taken);
}

void et_raw_close(struct et_raw *r)
{
	if (!r)
		return;
	if (r->flow)
		ibv_destroy_flow(r->flow);
	if (r->qp)
		ibv_destroy_qp(r->qp);
	if (r->send_cq)
		ibv_destroy_cq(r->send_cq);
	if (r->recv_cq)
		ibv_destroy_cq(r->recv_cq);
	if (r->mr)
		ibv_dereg_mr(r->mr);
	if (r->pd)
		ibv_dealloc_pd(r->pd);
	if (r->ctx)
		ibv_close_device(r->ctx);
	free(r->memory);
	free(r);
}
