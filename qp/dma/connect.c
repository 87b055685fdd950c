/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Connects a queue pair to itself through the first port of the NIC. The copy engine needs a queue
 * pair in the state RTS and does not use the connection; RDMA writes use it.
 */
#include <errno.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/dma/queue.h"
#include "qp/verbs/qp.h"

#define PORT	    1
#define ACK_TIMEOUT 17 /* 4.096 us << 17: 537 ms; a loaded CPU may delay a software NIC */
#define RETRIES	    7
#define HOP_LIMIT   64

static doca_error_t query_port(struct doca_dev *dev, struct ibv_port_attr *port)
{
	int rc = ibv_query_port(dev->ctx, PORT, port);

	if (!rc)
		return DOCA_SUCCESS;
	gdk_err("%s: cannot query port %u: %s", ibv_get_device_name(dev->ctx->device), PORT,
		strerror(rc));
	return DOCA_ERROR_DRIVER;
}

/* A GID for packets to this port itself: RoCE v2 if there is one, of IPv4 if possible. */
static uint8_t pick_gid(struct doca_dev *dev, const struct ibv_port_attr *port)
{
	struct ibv_gid_entry e;
	int i, v2 = 0;

	for (i = 0; port->link_layer == IBV_LINK_LAYER_ETHERNET && i < port->gid_tbl_len; i++) {
		if (ibv_query_gid_ex(dev->ctx, PORT, (uint32_t)i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (gdk_gid_is_v4(e.gid.raw))
			return (uint8_t)i;
		v2 = v2 ? v2 : i;
	}
	return (uint8_t)v2;
}

static enum doca_verbs_addr_type addr_type(const struct ibv_port_attr *port, const uint8_t *gid)
{
	if (port->link_layer != IBV_LINK_LAYER_ETHERNET)
		return port->flags & IBV_QPF_GRH_REQUIRED ? DOCA_VERBS_ADDR_TYPE_IB_GRH
							  : DOCA_VERBS_ADDR_TYPE_IB_NO_GRH;
	return gdk_gid_is_v4(gid) ? DOCA_VERBS_ADDR_TYPE_IPv4 : DOCA_VERBS_ADDR_TYPE_IPv6;
}

static doca_error_t fill_path(struct doca_dev *dev, const struct ibv_port_attr *port,
			      doca_verbs_ah_attr_t *ah)
{
	uint8_t index = pick_gid(dev, port);
	struct doca_verbs_gid gid;
	union ibv_gid found;

	if (ibv_query_gid(dev->ctx, PORT, index, &found)) {
		gdk_err("%s: cannot query GID %u of port %u: %s",
			ibv_get_device_name(dev->ctx->device), index, PORT, strerror(errno));
		return DOCA_ERROR_DRIVER;
	}
	memcpy(gid.raw, found.raw, sizeof(gid.raw));
	return doca_verbs_ah_attr_set_addr_type(ah, addr_type(port, gid.raw)) ?:
	       doca_verbs_ah_attr_set_gid(ah, gid) ?:
	       doca_verbs_ah_attr_set_sgid_index(ah, index) ?:
	       doca_verbs_ah_attr_set_hop_limit(ah, HOP_LIMIT) ?:
	       doca_verbs_ah_attr_set_dlid(ah, port->lid);
}

/* enum ibv_mtu counts from 1, enum doca_verbs_mtu_size from 0. */
static enum doca_verbs_mtu_size mtu_of(const struct ibv_port_attr *port)
{
	return (enum doca_verbs_mtu_size)((int)port->active_mtu - IBV_MTU_256);
}

static doca_error_t fill_attr(doca_verbs_qp_t *qp, const struct ibv_port_attr *port,
			      doca_verbs_ah_attr_t *ah, doca_verbs_qp_attr_t *attr)
{
	return doca_verbs_qp_attr_set_path_mtu(attr, mtu_of(port)) ?:
	       doca_verbs_qp_attr_set_port_num(attr, PORT) ?:
	       doca_verbs_qp_attr_set_pkey_index(attr, 0) ?:
	       doca_verbs_qp_attr_set_allow_remote_write(attr, 1) ?:
	       doca_verbs_qp_attr_set_allow_remote_read(attr, 0) ?:
	       doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_NONE) ?:
	       doca_verbs_qp_attr_set_ah_attr(attr, ah) ?:
	       doca_verbs_qp_attr_set_dest_qp_num(attr, qp->qpn) ?:
	       doca_verbs_qp_attr_set_rq_psn(attr, 0) ?:
	       doca_verbs_qp_attr_set_sq_psn(attr, 0) ?:
	       doca_verbs_qp_attr_set_max_dest_rd_atomic(attr, 1) ?:
	       doca_verbs_qp_attr_set_max_rd_atomic(attr, 1) ?:
	       doca_verbs_qp_attr_set_min_rnr_timer(attr, 1) ?:
	       doca_verbs_qp_attr_set_ack_timeout(attr, ACK_TIMEOUT) ?:
	       doca_verbs_qp_attr_set_retry_cnt(attr, RETRIES) ?:
	       doca_verbs_qp_attr_set_rnr_retry(attr, 1);
}

#define A(name) DOCA_VERBS_QP_ATTR_##name

static doca_error_t to_rts(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr)
{
	static const struct {
		enum doca_verbs_qp_state next;
		int mask;
	} steps[] = {
		{ DOCA_VERBS_QP_STATE_INIT, A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ) |
						    A(ATOMIC_MODE) | A(PKEY_INDEX) | A(PORT_NUM) },
		{ DOCA_VERBS_QP_STATE_RTR, A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) |
						   A(MIN_RNR_TIMER) | A(MAX_DEST_RD_ATOMIC) },
		{ DOCA_VERBS_QP_STATE_RTS,
		  A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC) },
	};
	doca_error_t err = DOCA_SUCCESS;
	size_t i;

	for (i = 0; !err && i < sizeof(steps) / sizeof(steps[0]); i++)
		err = doca_verbs_qp_attr_set_next_state(attr, steps[i].next)
			      ?: doca_verbs_qp_modify(qp, attr, steps[i].mask | A(NEXT_STATE));
	return err;
}

doca_error_t gdk_dma_connect(struct doca_dev *dev, doca_verbs_qp_t *qp)
{
	struct ibv_port_attr port;
	doca_verbs_qp_attr_t *attr;
	doca_verbs_ah_attr_t *ah;
	doca_error_t err;

	err = query_port(dev, &port);
	if (err)
		return err;
	err = doca_verbs_ah_attr_create(dev, &ah);
	if (err)
		return err;
	err = doca_verbs_qp_attr_create(&attr);
	if (err)
		goto destroy_ah;
	err = fill_path(dev, &port, ah) ?: fill_attr(qp, &port, ah, attr) ?: to_rts(qp, attr);
	doca_verbs_qp_attr_destroy(attr);
destroy_ah:
	doca_verbs_ah_attr_destroy(ah);
	return err;
}
